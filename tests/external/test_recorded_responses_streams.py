"""Every recorded Responses reply decodes to the official SDK's result, for any split of the bytes."""

from __future__ import annotations

import json
from pathlib import Path
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
from codecompanion.adapters.errors.error_map import Endpoint, error_from_status
from codecompanion.adapters.openai_responses.decode import ResponsesDecoder
from codecompanion.adapters.openai_responses.wire import OpenAIResponses
from codecompanion.adapters.registry import read_settings
from codecompanion.errors import AdapterError, ModelNotFound, RequestRejected, StreamCut

WIRE = Path(__file__).resolve().parents[3] / "shared" / "data" / "wire"
pytestmark = pytest.mark.skipif(not WIRE.is_dir(), reason=f"the recorded traffic in {WIRE} is not on this machine")
ENDPOINT = Endpoint(name="test", base_url="https://api.test/v1")
SIZES = (1, 2, 3, 7, 64)


def load(name: str) -> list[dict[str, Any]]:
    path = WIRE / name
    return [json.loads(line) for line in path.read_text(encoding="utf-8").split("\n") if line] if path.is_file() else []


def pair_with_expected() -> list[dict[str, Any]]:
    """Return the recorded exchanges, each with its `golden` (None without one).

    A golden whose call ids or figures occur nowhere in the bytes was made from another recording of the same source.
    """
    expected = {(entry["source"], entry["i"]): entry.get("golden") for entry in load("expected.jsonl")}
    recorded = [entry for entry in load("recorded.jsonl") if entry["family"] == "responses"]
    for entry in recorded:
        golden = expected.get((entry["source"], entry["i"]))
        ids = [tool["id"] for tool in golden["tools"]] if golden else []
        entry["golden"] = golden if all(call_id in entry["response"] for call_id in ids) else None
    return recorded


RECORDED = pair_with_expected()
STREAMS = [entry for entry in RECORDED if "event-stream" in entry["content_type"]]
REPLIES = [
    entry
    for entry in RECORDED
    if entry["status"] == 200 and "json" in entry["content_type"] and '"object": "response"' in entry["response"]
]
ERRORS = [entry for entry in RECORDED if entry["status"] >= 400]
COMPACTED = [entry for entry in RECORDED if entry["path"].endswith("/compact")]
COUNTED = [entry for entry in RECORDED if entry["path"].endswith("/input_tokens")]
FILES = sorted((WIRE / "codecompanion").glob("openai_responses_*.txt"))


def name_of(entry: dict[str, Any]) -> str:
    return f"{Path(entry['source']).stem}-{entry['i']}"


def decode(body: bytes, size: int = 0) -> tuple[list[StreamEvent], AdapterError | None]:
    """Decode the body in pieces of this size, 0 = whole; neighbouring deltas are joined."""
    decoder = ResponsesDecoder(ENDPOINT, "openai_responses@api.test")
    events: list[StreamEvent] = []
    for start in range(0, len(body), size or len(body)):
        events.extend(decoder.feed(body[start : start + (size or len(body))]))
    if decoder.problem is None:
        events.extend(decoder.finish())
    return joined(events), decoder.problem


def joined(events: list[StreamEvent]) -> list[StreamEvent]:
    out: list[StreamEvent] = []
    for event in events:
        last = out[-1] if out else None
        if isinstance(event, TextDelta) and isinstance(last, TextDelta) and event.phase == last.phase:
            out[-1] = TextDelta(last.text + event.text, event.phase)
        elif isinstance(event, ReasoningDelta) and isinstance(last, ReasoningDelta):
            out[-1] = ReasoningDelta(last.text + event.text)
        else:
            out.append(event)
    return out


def read_whole(body: bytes) -> tuple[list[StreamEvent], AdapterError | None]:
    decoder = ResponsesDecoder(ENDPOINT, "openai_responses@api.test")
    return joined(decoder.read_json(body)), decoder.problem


def check(events: list[StreamEvent], golden: dict[str, Any]) -> None:
    finished = events[-1]
    assert isinstance(finished, Finished)
    assert "".join(event.text for event in events if isinstance(event, TextDelta)) == golden["text"]
    assert [(call.id, call.name, json.loads(call.arguments)) for call in finished.tool_calls] == [
        (tool["id"], tool["name"], json.loads(tool["arguments"])) for tool in golden["tools"]
    ]
    assert [event.name for event in events if isinstance(event, ToolCallStarted)] == [
        tool["name"] for tool in golden["tools"]
    ]
    assert finished.usage is not None
    assert [finished.usage.prompt_tokens, finished.usage.output_tokens] == golden["usage"]
    assert finished.stop == ("tool_calls" if golden["tools"] else "stop")
    assert golden["stop"] == "completed"
    sealed = sum(isinstance(event, ReasoningDone) for event in events)
    assert sealed <= golden["types"].count("reasoning")


def test_the_recordings_are_really_checked() -> None:
    """A pairing that finds nothing would make the tests below empty."""
    assert sum(entry["golden"] is not None for entry in STREAMS) >= 10
    assert sum(entry["golden"] is not None for entry in REPLIES) >= 50
    assert len(COMPACTED) == len(COUNTED) == 2
    assert len(FILES) == 10


@pytest.mark.parametrize("entry", STREAMS, ids=name_of)
def test_a_recorded_stream_decodes_as_the_sdk_decoded_it_at_any_split(entry: dict[str, Any]) -> None:
    """Text, calls and usage match `expected.jsonl`; the events are the same for pieces of every size and with CRLF."""
    body = entry["response"].encode()
    events, problem = decode(body)
    assert problem is None, problem
    if entry["golden"] is not None:
        check(events, entry["golden"])
    for size in SIZES:
        assert decode(body, size) == (events, None), size
    assert decode(body.replace(b"\n", b"\r\n"), 1) == (events, None)


@pytest.mark.parametrize("entry", STREAMS, ids=name_of)
def test_a_recorded_stream_that_breaks_off_is_never_complete(entry: dict[str, Any]) -> None:
    """Lesson 39: the stream is cut before every event in turn."""
    events = entry["response"].encode().split(b"\n\n")
    last = next(number for number, event in enumerate(events) if b"response.completed" in event)
    for number in range(1, last + 1):
        got, problem = decode(b"\n\n".join(events[:number]) + b"\n\n")
        assert isinstance(problem, StreamCut), number
        assert not any(isinstance(event, Finished) for event in got)


@pytest.mark.parametrize("entry", REPLIES, ids=name_of)
def test_a_recorded_whole_reply_decodes_as_the_sdk_decoded_it(entry: dict[str, Any]) -> None:
    """An endpoint that does not stream sends the reply as one JSON object.

    One that is still in progress is incomplete.
    """
    events, problem = read_whole(entry["response"].encode())
    if json.loads(entry["response"])["status"] in ("queued", "in_progress"):
        assert isinstance(problem, StreamCut)
        return
    assert problem is None
    if entry["golden"] is not None:
        check(events, entry["golden"])


@pytest.mark.parametrize("entry", ERRORS, ids=name_of)
def test_a_recorded_error_is_mapped(entry: dict[str, Any]) -> None:
    """A status and body from the transport become an error with the provider's code."""
    error = error_from_status(entry["status"], json.loads(entry["response"]), {}, ENDPOINT)
    assert type(error) in (ModelNotFound, RequestRejected)
    assert error.code in ("model_not_found", "unsupported_file")


def wire() -> OpenAIResponses:
    table = {"kind": "openai_responses", "base_url": "https://api.test/v1", "model": "gpt-5"}
    return OpenAIResponses(read_settings({"test": table})["test"], lambda sha256: b"")


@pytest.mark.parametrize("entry", COMPACTED, ids=name_of)
def test_a_recorded_compaction_is_kept_unchanged(entry: dict[str, Any]) -> None:
    """R-540: the kept messages, the compaction item and the usage of the pass are unchanged."""
    answer = json.loads(entry["response"])
    done = wire().read_compaction(entry["response"].encode(), ENDPOINT)
    assert done.part is not None
    assert done.usage is not None
    assert json.loads(done.part.encrypted) == answer["output"]
    assert done.part.tokens == done.usage.output_tokens == answer["usage"]["output_tokens"]
    assert done.usage.prompt_tokens == answer["usage"]["input_tokens"]


@pytest.mark.parametrize("entry", COUNTED, ids=name_of)
def test_a_recorded_count_is_read(entry: dict[str, Any]) -> None:
    """The count is the endpoint's `input_tokens`."""
    assert wire().read_count(entry["response"].encode()) == json.loads(entry["response"])["input_tokens"]


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
def test_a_stream_of_codecompanion_decodes_at_any_split(path: Path) -> None:
    """Complete ones end with `Finished`; encrypted reasoning comes before its item."""
    body = path.read_bytes()
    if body.lstrip().startswith(b"{"):
        events, problem = read_whole(body)
    else:
        events, problem = decode(body)
        for size in SIZES:
            again, problem_again = decode(body, size)
            assert (again, str(problem_again)) == (events, str(problem)), size
    if "cancelled" in path.stem:
        assert isinstance(problem, StreamCut)
    else:
        assert problem is None
        assert isinstance(events[-1], Finished)
        assert events[-1].tool_calls or any(isinstance(event, TextDelta) for event in events)
    if "compaction" in path.stem:
        assert isinstance(events[0], CompactionBegun)
        assert sum(isinstance(event, CompactionDone) for event in events) == 1
        done = events[1]
        assert isinstance(done, CompactionDone)
        assert done.part is not None
        assert json.loads(done.part.encrypted)[0]["type"] == "compaction"
    if "reasoning" in path.stem or path.stem.endswith("responses_tools_streaming"):
        sealed = next(event for event in events if isinstance(event, ReasoningDone))
        item = json.loads(sealed.encrypted)
        assert item["encrypted_content"]
        assert any(isinstance(event, ReasoningDelta) for event in events[: events.index(sealed)])
        follower = events[events.index(sealed) + 1]
        assert isinstance(follower, TextDelta | ToolCallStarted)
