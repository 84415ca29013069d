"""Replies of endpoints, including loose copies of the format, and their ends and errors."""

from __future__ import annotations

import json
from typing import Any

import pytest

from codecompanion.adapters.base import (
    CompactionBegun,
    CompactionDone,
    Finished,
    ReasoningDelta,
    ReasoningDone,
    StreamEvent,
    TextDelta,
    ToolCallStarted,
)
from codecompanion.adapters.errors.error_map import Endpoint
from codecompanion.adapters.openai_responses.decode import ResponsesDecoder
from codecompanion.errors import (
    AdapterError,
    ContextOverflow,
    EncryptedRefused,
    MalformedReply,
    Overloaded,
    RateLimited,
    StreamCut,
)

ENDPOINT = Endpoint(name="test", base_url="https://api.test/v1", secrets=("sk-1",))
ORIGIN = "openai_responses@api.test"
USAGE = {
    "input_tokens": 100,
    "input_tokens_details": {"cached_tokens": 60, "cache_write_tokens": 10},
    "output_tokens": 20,
    "output_tokens_details": {"reasoning_tokens": 5},
    "total_tokens": 120,
}


def event(kind: str, **fields: Any) -> dict[str, Any]:
    return {"type": f"response.{kind}", **fields}


def added(index: int, **item: Any) -> dict[str, Any]:
    return event("output_item.added", output_index=index, item=item)


def done(index: int, **item: Any) -> dict[str, Any]:
    return event("output_item.done", output_index=index, item=item)


def call(name: str, call_id: str, arguments: str = "{}") -> dict[str, Any]:
    return {"type": "function_call", "id": f"fc_{call_id}", "call_id": call_id, "name": name, "arguments": arguments}


def sealed(name: str) -> dict[str, Any]:
    return {"type": "reasoning", "id": f"rs_{name}", "summary": [], "encrypted_content": f"s-{name}"}


def completed(**fields: Any) -> dict[str, Any]:
    return event("completed", response={"status": "completed", "model": "gpt-5", "usage": USAGE, **fields})


def decode(*events: dict[str, Any]) -> tuple[list[StreamEvent], AdapterError | None]:
    decoder = ResponsesDecoder(ENDPOINT, ORIGIN)
    body = "".join(f"event: {one.get('type')}\ndata: {json.dumps(one)}\n\n" for one in events)
    got = decoder.feed(body.encode())
    if decoder.problem is None:
        got += decoder.finish()
    return got, decoder.problem


def test_reasoning_and_calls_keep_their_order() -> None:
    """The session restores the order of the reply from the order of the events; calls match `ToolCallStarted`."""
    got, problem = decode(
        event("created", response={"status": "in_progress"}),
        done(0, **sealed("a")),
        added(1, **call("read", "call_1", "")),
        event("function_call_arguments.delta", output_index=1, delta='{"p":'),
        event("function_call_arguments.delta", output_index=1, delta="1}"),
        done(1, **call("read", "call_1", '{"p":1}')),
        done(2, **sealed("b")),
        added(3, **call("grep", "call_2", "")),
        done(3, **call("grep", "call_2", "{}")),
        completed(),
    )
    assert problem is None
    assert [type(one).__name__ for one in got] == [
        *("ReasoningDone", "ToolCallStarted", "ReasoningDone", "ToolCallStarted", "Finished")
    ]
    assert isinstance(got[0], ReasoningDone)
    assert got[0].origin == ORIGIN
    assert json.loads(got[0].encrypted) == sealed("a")
    finished = got[-1]
    assert isinstance(finished, Finished)
    assert finished.stop == "tool_calls"
    assert finished.model == "gpt-5"
    assert [(c.id, c.name, c.arguments) for c in finished.tool_calls] == [
        ("call_1", "read", '{"p":1}'),
        ("call_2", "grep", "{}"),
    ]
    assert finished.usage is not None
    assert (finished.usage.input_tokens, finished.usage.cache_read_tokens) == (30, 60)
    assert (finished.usage.cache_write_tokens, finished.usage.reasoning_tokens) == (10, 5)


def test_events_of_items_may_be_interleaved() -> None:
    """Each delta belongs to the item with its index, or with its id."""
    got, problem = decode(
        added(0, **call("read", "call_1", "")),
        added(1, **call("grep", "call_2", "")),
        event("function_call_arguments.delta", output_index=1, delta='{"b":'),
        event("function_call_arguments.delta", output_index=0, delta='{"a":'),
        event("function_call_arguments.delta", output_index=1, delta="2}"),
        event("function_call_arguments.delta", output_index=0, delta="1}"),
        completed(),
    )
    assert problem is None
    finished = got[-1]
    assert isinstance(finished, Finished)
    assert [c.arguments for c in finished.tool_calls] == ['{"a":1}', '{"b":2}']


def test_parts_of_a_summary_are_separated() -> None:
    """Summaries and reasoning text are shown; without encrypted content they cannot be sent back."""
    got, _ = decode(
        added(0, type="reasoning", id="rs_1", summary=[]),
        event("reasoning_summary_text.delta", output_index=0, summary_index=0, delta="**One**"),
        event("reasoning_summary_text.delta", output_index=0, summary_index=0, delta=" is"),
        event("reasoning_summary_text.delta", output_index=0, summary_index=1, delta="**Two**"),
        event("reasoning_text.delta", output_index=0, content_index=0, delta="raw"),
        done(0, type="reasoning", id="rs_1", summary=[{"type": "summary_text", "text": "again"}]),
        event("output_text.delta", output_index=1, delta="Hi"),
        completed(),
    )
    assert got[:2] == [ReasoningDelta("**One** is\n\n**Two**\n\nraw"), TextDelta("Hi")]


def test_phases_are_kept() -> None:
    """Dropping them degrades later replies, according to the SDK's types."""
    got, _ = decode(
        added(0, type="message", role="assistant", phase="commentary"),
        event("output_text.delta", output_index=0, delta="I look"),
        added(1, type="message", role="assistant", phase="final_answer"),
        event("output_text.delta", output_index=1, delta="Done"),
        completed(),
    )
    assert got[:2] == [TextDelta("I look", "commentary"), TextDelta("Done", "final_answer")]


def packed(content: str, name: str = "1") -> dict[str, Any]:
    return {"type": "compaction", "id": f"cmp_{name}", "encrypted_content": content}


def contents(events: list[StreamEvent]) -> list[str]:
    parts = [one.part for one in events if isinstance(one, CompactionDone) and one.part]
    assert all(part.origin == ORIGIN for part in parts)
    return [item["encrypted_content"] for part in parts for item in json.loads(part.encrypted)]


def test_a_compaction_is_reported_once_in_its_final_form() -> None:
    """Recorded encrypted contents change between the start, the end and the finished response."""
    got, problem = decode(
        event("compaction.compacting", output_index=0, item_id="cmp_1"),
        added(0, **packed("half")),
        event("compaction.compacting", output_index=0, item_id="cmp_1"),
        done(0, **packed("whole")),
        event("output_text.delta", output_index=1, delta="Hi"),
        completed(output=[packed("other")]),
    )
    assert problem is None
    assert [type(one) for one in got] == [CompactionBegun, CompactionDone, TextDelta, Finished]
    assert contents(got) == ["whole"]


@pytest.mark.parametrize(
    "rest",
    [
        (),
        (event("reasoning_summary_text.delta", output_index=1, summary_index=0, delta="t"),),
        ({"type": "error", "code": "server_error", "message": "Sorry"},),
    ],
)
def test_an_interrupted_stream_keeps_the_start_of_a_compaction(rest: tuple[dict[str, Any], ...]) -> None:
    """R-539: its content is complete from the start."""
    got, problem = decode(added(0, **packed("half")), *rest)
    assert isinstance(problem, StreamCut)
    assert isinstance(got[0], CompactionBegun)
    assert contents(got) == ["half"]


def test_the_last_reported_compaction_counts() -> None:
    """Some models write two, the second covering all."""
    first, second = packed("early", "1"), packed("all", "2")
    got, _ = decode(added(0, **first), done(0, **first), added(1, **second), done(1, **second), completed())
    assert contents(got) == ["early", "all"]
    assert sum(isinstance(one, CompactionBegun) for one in got) == 1


def test_a_compaction_without_content_has_failed() -> None:
    """It is reported as failed; if only the end event lacks content, the content of the start event is kept."""
    got, _ = decode(added(0, type="compaction", id="cmp_1"), done(0, type="compaction", id="cmp_1"), completed())
    assert got[:2] == [CompactionBegun(), CompactionDone(None)]
    got, _ = decode(added(0, **packed("half")), done(0, type="compaction", id="cmp_1"), completed())
    assert contents(got) == ["half"]


@pytest.mark.parametrize(
    ("reason", "stop"), [("max_output_tokens", "length"), ("content_filter", "filtered"), (None, "length")]
)
def test_an_incomplete_response_is_an_end(reason: str | None, stop: str) -> None:
    """A call truncated by the limit cannot be run."""
    got, problem = decode(
        event("output_text.delta", output_index=0, delta="Hi"),
        added(1, **call("read", "call_1", "")),
        event("function_call_arguments.delta", output_index=1, delta='{"p":'),
        event("incomplete", response={"status": "incomplete", "incomplete_details": {"reason": reason}}),
    )
    assert problem is None
    finished = got[-1]
    assert isinstance(finished, Finished)
    assert (finished.stop, finished.tool_calls, finished.usage) == (stop, (), None)


def test_a_refusal_is_shown_and_ends_filtered() -> None:
    """The refusal is shown as text, so that the user can read the reason."""
    got, _ = decode(event("refusal.delta", output_index=0, delta="I cannot"), completed())
    assert got[0] == TextDelta("I cannot")
    assert isinstance(got[1], Finished)
    assert got[1].stop == "filtered"


@pytest.mark.parametrize("keyed", [True, False])
def test_items_that_were_not_streamed_are_read_from_the_end(keyed: bool) -> None:
    """Endpoints may omit starts, indexes, chunks or ends; no item is reported twice."""
    message = {"type": "message", "id": "msg_1", "content": [{"type": "output_text", "text": "Hello"}]}
    output = [sealed("a"), message, call("read", "call_1", '{"p":1}')]
    place = {"output_index": 1} if keyed else {}
    got, problem = decode(event("output_text.delta", delta="Hello", **place), completed(output=output))
    assert problem is None
    assert [one for one in got if isinstance(one, TextDelta)] == [TextDelta("Hello")]
    assert sum(isinstance(one, ToolCallStarted) for one in got) == 1
    streamed, _ = decode(*(done(index, **item) for index, item in enumerate(output)), completed(output=output))
    assert [type(one) for one in streamed] == [ReasoningDone, TextDelta, ToolCallStarted, Finished]
    only_the_end, _ = decode(completed(output=output))
    assert only_the_end == streamed


def test_items_of_other_kinds_are_ignored() -> None:
    """Hosted tools are never requested; an endpoint that uses one anyway is harmless."""
    got, problem = decode(
        added(0, type="web_search_call", id="ws_1"),
        event("web_search_call.searching", output_index=0),
        done(0, type="web_search_call", id="ws_1", action={"type": "search", "query": "q"}),
        event("output_text.delta", output_index=1, delta="Found"),
        completed(),
    )
    assert problem is None
    assert [type(one) for one in got] == [TextDelta, Finished]


def test_an_error_before_any_output_is_mapped() -> None:
    """The error may be `response.failed`, a flat or nested error event, or an object without a type."""
    for error, expected in (
        ({"code": "context_length_exceeded", "message": "Your input exceeds the context window."}, ContextOverflow),
        ({"code": "rate_limit_exceeded", "message": "Please try again in 2s."}, RateLimited),
        ({"code": "server_error", "message": "Sorry"}, Overloaded),
        ({"code": "invalid_encrypted_content", "message": "could not be verified"}, EncryptedRefused),
    ):
        created = event("created", response={"status": "in_progress", "model": "gpt-5"})
        for told in (
            event("failed", response={"status": "failed", "error": error}),
            {"type": "error", **error},
            {"type": "error", "error": error},
            {"error": error},
        ):
            got, problem = decode(created, told)
            assert type(problem) is expected
            assert problem.code == error["code"]
            assert got == []


def test_an_error_after_output_is_an_interruption() -> None:
    """The received text is kept, and the reason is reported without secrets."""
    got, problem = decode(
        event("output_text.delta", output_index=0, delta="Hi"),
        {"type": "error", "code": "server_error", "message": "no sk-1 today"},
    )
    assert got == [TextDelta("Hi")]
    assert isinstance(problem, StreamCut)
    assert "today" in str(problem)
    assert "sk-1" not in str(problem)


@pytest.mark.parametrize(
    ("body", "expected"),
    [
        (b"", StreamCut),
        (b"data: [DONE]\n\n", StreamCut),
        (b'data: {"type":"response.created","response":{"status":"in_progress"}}\n\n', StreamCut),
        (b'data: {"type":"response.output_text.delta","delta":"Hi"}\n\ndata: [DONE]\n\n', StreamCut),
        (b"data: nonsense\n\n", MalformedReply),
        (b'data: {"type":"response.output_item.added","item":7}\n\n', MalformedReply),
        (b"<html>\n", MalformedReply),
        (b'data: {"type":"response.completed","response":{"status":"cancelled"}}\n\n', StreamCut),
    ],
)
def test_nothing_else_is_a_complete_reply(body: bytes, expected: type[AdapterError]) -> None:
    """Lesson 39."""
    decoder = ResponsesDecoder(ENDPOINT, ORIGIN)
    got = decoder.feed(body)
    if decoder.problem is None:
        got += decoder.finish()
    assert type(decoder.problem) is expected
    assert not any(isinstance(one, Finished) for one in got)


def test_a_call_without_a_name_is_malformed() -> None:
    """It cannot be answered."""
    _, problem = decode(added(0, type="function_call", call_id="call_1"), completed())
    assert isinstance(problem, MalformedReply)


def test_a_complete_reply_is_read_from_json() -> None:
    """Endpoints that do not stream send the whole reply; an error sent instead is mapped."""
    decoder = ResponsesDecoder(ENDPOINT, ORIGIN)
    message = {
        "type": "message",
        "content": [{"type": "output_text", "text": "Hi"}, {"type": "refusal", "refusal": ""}],
    }
    got = decoder.read_json(json.dumps({"status": "completed", "output": [message], "usage": USAGE}).encode())
    assert got[0] == TextDelta("Hi")
    assert isinstance(got[-1], Finished)
    for body, expected in (
        (b'{"error": {"code": "rate_limit_exceeded", "message": "slow"}}', RateLimited),
        (b'{"choices": []}', MalformedReply),
        (b"[1]", MalformedReply),
        (b"{", MalformedReply),
        (b'{"status": "queued", "output": []}', StreamCut),
    ):
        decoder = ResponsesDecoder(ENDPOINT, ORIGIN)
        assert decoder.read_json(body) == []
        assert type(decoder.problem) is expected
