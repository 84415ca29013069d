"""Malformed tool calls from a model: an error it can read, a chat that continues, even after Resume (lesson 28)."""

from __future__ import annotations

import json

import pytest

from codecompanion.adapters.anthropic_messages.wire import AnthropicMessages
from codecompanion.adapters.base import AdapterSettings, ChatRequest
from codecompanion.adapters.openai_chat.wire import OpenAIChat
from codecompanion.adapters.openai_responses.wire import OpenAIResponses
from codecompanion.model.messages import Message, ToolCall
from codecompanion.session.history.limit_tool_calls import MAX_ARGUMENTS_LENGTH, MAX_ID_LENGTH, MAX_NAME_LENGTH
from codecompanion.wire.events import ToolFinished, TurnFinished
from tests.unit.session.fakes import Bench, ScriptedAdapter, calls, says, submit
from tests.unit.session.test_native_compaction import talk


def nested(levels: int, opening: str = '{"a":', closing: str = "}") -> str:
    return opening * levels + "1" + closing * levels


HOSTILE = {
    "2,000 levels": ("c1", "read_file", nested(2_000)),
    "900 levels": ("c1", "read_file", nested(900)),
    "100,000 levels of lists": ("c1", "read_file", '{"path": ' + nested(100_000, "[", "]") + "}"),
    "levels without an end": ("c1", "read_file", '{"path": ' + "[" * 5_000),
    "a number without end": ("c1", "read_file", '{"path": ' + "9" * 20_000 + "}"),
    "endless": ("c1", "read_file", '{"path": "' + "x" * (2 * MAX_ARGUMENTS_LENGTH) + '"}'),
    "NUL in a path": ("c1", "read_file", '{"path": "a\\u0000b"}'),
    "NUL in the text": ("c1", "read_file", '{"path": "a\x00b"}'),
    "half a surrogate": ("c1", "read_file", '{"path": "\\ud800"}'),
    "a real half surrogate": ("c1", "read_file", '{"path": "\ud800"}'),
    "a huge id": ("i" * 1_000_000, "read_file", '{"path": "a.txt"}'),
    "a surrogate in the id": ("c\ud800", "read_file", '{"path": "a.txt"}'),
    "a huge name": ("c1", "n" * 1_000_000, "{}"),
    "a name of many lines": ("c1", "read\nfile\x00", "{}"),
    "a name with dots": ("c1", "files.read/all", "{}"),
    "no name": ("c1", "", "{}"),
    "an unknown tool": ("c1", "launch_rocket", '{"at": "noon"}'),
    "no object": ("c1", "read_file", "[1, 2]"),
    "many wrong arguments": ("c1", "read_file", json.dumps({f"k{n}": n for n in range(5_000)})),
}


@pytest.mark.parametrize("name", HOSTILE)
async def test_a_hostile_call_is_an_error_and_the_chat_continues(tmp_path, name):
    """The call is answered, stored, sent again and resumed, in every wire format."""
    (tmp_path / "a.txt").write_text("text")
    hostile = HOSTILE[name]
    adapter = ScriptedAdapter("s", [calls(hostile), says("sorry"), says("fine"), says("still fine")])
    bench = Bench(tmp_path, adapter)
    session = await bench.open()
    await talk(bench, session, 2)
    assert [end.reason for end in bench.of(TurnFinished)] == ["done", "done"], bench.of(TurnFinished)
    assert not bench.bugs
    [ran] = bench.of(ToolFinished)
    assert ran.status == ("ok" if "a.txt" in hostile[2] else "error")
    assert not set(ran.title) & set("\n\x00")
    assert len(ran.title) < 500
    [result] = [message for message in session.log.view.messages if message.role == "tool"]
    assert len(result.text) < 4_000
    check_sent(session.log.view.messages)
    await session.close()
    again = await bench.resume()
    again.submit(submit("after resume", 9))
    await bench.idle(again)
    assert again.log.view.messages[-1].text == "still fine"
    check_sent(again.log.view.messages)


def check_sent(messages: tuple[Message, ...]) -> None:
    """Assert that every wire format renders a body that any JSON parser accepts, with acceptable calls."""
    for message in messages:
        for call in message.tool_calls:
            assert len(call.id) <= MAX_ID_LENGTH
            assert len(call.name) <= MAX_NAME_LENGTH
            assert len(call.arguments) <= MAX_ARGUMENTS_LENGTH
    for wire, kind in ((OpenAIChat, "openai"), (OpenAIResponses, "openai_responses"), (AnthropicMessages, "anthropic")):
        settings = AdapterSettings(name="x", kind=kind, base_url="https://x.test/v1", model="m")
        body = json.loads(make(wire, settings).render(ChatRequest(messages=messages, model="m")).body)
        assert body["model"] == "m"


def make(wire, settings):
    return wire(settings, read_blob=lambda sha: b"")


async def test_two_calls_with_one_id_each_get_their_result(tmp_path):
    """Pairs are matched by position (R-004); the wire gets its own ids."""
    (tmp_path / "a.txt").write_text("first")
    (tmp_path / "b.txt").write_text("second")
    twice = [("same", "read_file", '{"path": "a.txt"}'), ("same", "read_file", '{"path": "b.txt"}')]
    adapter = ScriptedAdapter("s", [calls(*twice), says("read both")])
    bench = Bench(tmp_path, adapter)
    session = await bench.open()
    await talk(bench, session, 1)
    results = [message.text for message in session.log.view.messages if message.role == "tool"]
    assert len(results) == 2
    assert "first" in results[0]
    assert "second" in results[1]
    check_sent(session.log.view.messages)


async def test_the_error_for_an_unknown_tool_lists_the_offered_ones(tmp_path):
    """It lists neither disabled tools nor those that are offered only after content was removed."""
    adapter = ScriptedAdapter("s", [calls(("c1", "reed_file", "{}"), ("c2", "recall", '{"key": "x"}')), says("sorry")])
    bench = Bench(tmp_path, adapter)
    session = await bench.open()
    await talk(bench, session, 1)
    offered = {spec.name for spec in adapter.requests[0].tools}
    first, second = [message.text for message in session.log.view.messages if message.role == "tool"]
    assert "Did you mean read_file?" in first
    listed = first.rpartition("The tools are: ")[2].rstrip(".").split(", ")
    assert set(listed) == offered
    assert "recall" not in offered
    assert "There is no tool named 'recall'" in second


async def test_a_disabled_tool_is_not_run(tmp_path):
    """A model may call a tool in a request without tools: nothing runs."""
    adapter = ScriptedAdapter("s", [calls(("c1", "create_file", '{"path": "new.txt", "content": "x"}')), says("oh")])
    bench = Bench(tmp_path, adapter, tools={"enabled": False})
    session = await bench.open()
    await talk(bench, session, 1)
    assert not (tmp_path / "new.txt").exists()
    assert "There is no tool named" in session.log.view.messages[2].text


def test_valid_calls_stay_the_same_object():
    """Nothing is copied unnecessarily."""
    from codecompanion.adapters.base import Finished
    from codecompanion.session.history.limit_tool_calls import tame

    finished = Finished("tool_calls", (ToolCall("c1", "read_file", '{"path": "a.txt"}'),))
    assert tame(finished) is finished
