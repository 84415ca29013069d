"""The bytes of the fake Messages server match recordings, and it runs in every way that tests need."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import urllib.request
from pathlib import Path
from typing import Any

import pytest
from anthropic.types.beta import BetaMessage, BetaMessageTokensCount, BetaModelInfo, BetaRawMessageStreamEvent
from pydantic import BaseModel, TypeAdapter

from tests.patience import PATIENCE_S
from tests.providers.anthropic.answers import (
    Call,
    Redacted,
    Reply,
    Text,
    Thinking,
    reply,
)
from tests.providers.anthropic.models import SONNET, describe_model
from tests.providers.anthropic.server import AnthropicServer
from tests.providers.anthropic.thread import AnthropicServerThread
from tests.providers.loopback.server import Received
from tests.providers.tests.anthropic.bodies import (
    COMPACT,
    DEMAND,
    EDITING,
    LONG,
    THRESHOLD,
    TOOL,
    ask,
    body,
    edits,
    user,
)

ROOT = Path(__file__).parents[4]


def events_of(server: AnthropicServer, request: Any, *betas: str) -> list[Any]:
    """Return the decoded events of a stream, without sockets."""
    headers = {"x-api-key": "sk-test", "anthropic-version": "2026-10-21", "anthropic-beta": ",".join(betas)}
    answer = server.answer(
        Received("POST", "/v1/messages", headers, json.dumps({**request, "stream": True}).encode(), "beta=true")
    )
    assert answer.status == 200, answer
    events = []
    for part in answer.parts:
        assert isinstance(part, bytes)
        name, content, end = part.decode().split("\n", 2)
        decoded = json.loads(content.removeprefix("data: "))
        assert (name, end) == (f"event: {decoded['type']}", "\n")
        events.append(decoded)
    return events


def names_of(events: list[Any]) -> list[str]:
    return [event.get("delta", {}).get("type") or event["type"] for event in events]


def test_a_stream_has_the_recorded_order_of_events() -> None:
    """A ping follows the first block's start, an empty fragment precedes call arguments, and the signature is last."""
    pieces = (Thinking("hm"), Redacted(), Text("So"), Call("now", '{"a": 1}', "b"), Call("now", "{}", "c"))
    events = events_of(AnthropicServer([Reply(pieces, chunk_chars=8)]), body(tools=[TOOL]))
    begun, ended = "content_block_start", "content_block_stop"
    assert names_of(events) == [
        "message_start",
        *(begun, "ping", "thinking_delta", "signature_delta", ended),
        *(begun, ended),
        *(begun, "text_delta", ended),
        *(begun, "input_json_delta", "input_json_delta", ended),
        *(begun, "input_json_delta", ended),
        *("message_delta", "message_stop"),
    ]
    message = events[0]["message"]
    assert (message["content"], message["stop_reason"], message["usage"]["output_tokens"]) == ([], None, 1)
    assert events[1]["content_block"] == {"type": "thinking", "thinking": "", "signature": ""}
    assert events[11]["content_block"] == {"type": "tool_use", "id": "b", "name": "now", "input": {}}
    assert events[12]["delta"]["partial_json"] == ""
    assert events[-2]["delta"] == {"stop_reason": "tool_use", "stop_sequence": None, "stop_details": None}
    assert events[-2]["usage"]["output_tokens_details"] == {"thinking_tokens": 1}


def test_a_threshold_compaction_is_streamed_in_one_delta_and_an_on_demand_one_in_none() -> None:
    """`message_start` reports the first pass, `message_delta` the reply and the edits."""
    events = events_of(
        AnthropicServer([reply("So", summary="Sum.")]),
        body(user({"type": "text", "text": LONG}), **edits(COMPACT)),
        THRESHOLD,
    )
    assert events[1]["content_block"] == {"type": "compaction", "content": None}
    assert set(events[3]["delta"]) == {"type", "content", "encrypted_content"}
    assert events[3]["delta"]["content"] == "Sum."
    assert events[0]["message"]["context_management"] is None
    assert events[0]["message"]["usage"]["input_tokens"] > 50_000 > events[-2]["usage"]["input_tokens"]
    assert events[-2]["context_management"] == {"applied_edits": []}
    demanded = events_of(AnthropicServer([reply(summary="Sum.")]), body(compaction={"type": "summarize"}), DEMAND)
    assert names_of(demanded) == [
        "message_start",
        "content_block_start",
        "ping",
        "content_block_stop",
        "message_delta",
        "message_stop",
    ]
    assert set(demanded[1]["content_block"]) == {"type", "content", "signature"}
    failed = events_of(
        AnthropicServer([reply("So", compaction_fails=True)]),
        body(user({"type": "text", "text": LONG}), **edits(COMPACT)),
        THRESHOLD,
    )
    assert failed[3]["delta"] == {"type": "compaction_delta", "content": None}


def test_truncated_arguments_are_streamed_unchanged() -> None:
    """This happens if `max_tokens` is reached in the middle of a call."""
    wanted = reply(calls=[Call("now", '{"city": "Par')], stop="max_tokens", chunk_chars=99)
    events = events_of(AnthropicServer([wanted]), body(tools=[TOOL]))
    assert events[4]["delta"] == {"type": "input_json_delta", "partial_json": '{"city": "Par'}
    assert events[-2]["delta"]["stop_reason"] == "max_tokens"
    _, message = ask(body(tools=[TOOL]), server=AnthropicServer([wanted]))
    assert message["content"][0]["input"] == {}


def unknown_in(value: Any, path: str = "") -> list[str]:
    """Return the fields that the SDK's type of a decoded value does not know."""
    if isinstance(value, list):
        return [found for item in value for found in unknown_in(item, path)]
    if not isinstance(value, BaseModel):
        return []
    inner = [found for name in type(value).model_fields for found in unknown_in(getattr(value, name), f"{path}.{name}")]
    return [*(f"{path}.{name}" for name in value.model_extra or ()), *inner]


@pytest.mark.parametrize(
    ("wanted", "request_body", "betas"),
    [
        (reply("So", thinking="hm", calls=[Call("now")]), body(tools=[TOOL]), ()),
        (Reply((Redacted(),), stop="refusal"), body(**edits()), (EDITING, "thinking-binding-controls-2026-08-01")),
        (reply("So"), body(user({"type": "text", "text": LONG}), **edits(COMPACT)), (THRESHOLD,)),
        (reply(compaction_fails=True), body(user({"type": "text", "text": LONG}), **edits(COMPACT)), (THRESHOLD,)),
        (reply(), body(compaction={"type": "summarize"}), (DEMAND,)),
    ],
)
def test_the_sdk_knows_everything_that_is_sent(wanted: Reply, request_body: Any, betas: tuple[str, ...]) -> None:
    """Streamed and complete messages are checked strictly, so that adapters do not learn fields that do not exist."""
    event_type: TypeAdapter[Any] = TypeAdapter(BetaRawMessageStreamEvent)
    for event in events_of(AnthropicServer([wanted]), request_body, *betas):
        if event["type"] != "ping":
            assert unknown_in(event_type.validate_python(event)) == []
    _, message = ask(request_body, *betas, server=AnthropicServer([wanted]))
    assert unknown_in(BetaMessage.model_validate(message)) == []
    message["usage"]["made_up"] = 1
    assert unknown_in(BetaMessage.model_validate(message)) == [".usage.made_up"]


def test_the_sdk_knows_every_field_of_models_and_counts() -> None:
    """As above."""
    counted = {key: value for key, value in body(**edits(COMPACT)).items() if key != "max_tokens"}
    _, count = ask(counted, THRESHOLD, path="/v1/messages/count_tokens")
    assert unknown_in(BetaMessageTokensCount.model_validate(count)) == []
    assert unknown_in(BetaModelInfo.model_validate(describe_model(SONNET, frozenset([DEMAND])))) == []


def test_it_runs_in_a_thread_and_as_a_program_scripted_over_http() -> None:
    """The thread is for tests that are not async, the program for those in another process."""

    def post(port: int, path: str, value: Any) -> Any:
        headers = {"x-api-key": "sk-test", "anthropic-version": "2026-10-21"}
        url, data = f"http://127.0.0.1:{port}{path}", json.dumps(value).encode()
        with urllib.request.urlopen(urllib.request.Request(url, data, headers), timeout=PATIENCE_S) as answer:
            return json.loads(answer.read())

    with AnthropicServerThread([reply("Hello")]) as server:
        assert post(server.port, "/v1/messages", body())["content"][0]["text"] == "Hello"
    command = [sys.executable, "-m", "tests.providers.anthropic.server", "--port", "0"]
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join([str(ROOT), str(ROOT / "python")])}
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, cwd=ROOT, env=environment) as program:
        try:
            assert program.stdout is not None
            port = int(program.stdout.readline())
            script = [{"kind": "reply", "text": "scripted", "thinking": "hm", "calls": [{"name": "now"}]}]
            assert post(port, "/control/script", script) == {"ok": True}
            assert post(port, "/control/clock", {"advance": 301}) == {"ok": True}
            said = post(port, "/v1/messages", body(tools=[TOOL]))
            assert [block["type"] for block in said["content"]] == ["thinking", "text", "tool_use"]
            with pytest.raises(urllib.error.HTTPError):
                post(port, "/v1/messages", body(foo=1))
            assert post(port, "/control/refusals", {}) == ["foo: Extra inputs are not permitted"]
            assert [seen["body"]["messages"] for seen in post(port, "/control/requests", {})] == [[user()]] * 2
        finally:
            program.kill()
