"""A request is shown as the server received it, under every policy, even after a restart (R-328)."""

from __future__ import annotations

import itertools
import json
import subprocess
from pathlib import Path

import msgspec
import pytest

from codecompanion.adapters.base import AdapterSettings
from codecompanion.adapters.http.adapter import HttpAdapter
from codecompanion.adapters.registry import make_wire
from codecompanion.context.policy.policy_catalog import policy_names
from codecompanion.engine.chat_views import look
from codecompanion.errors import InputError
from codecompanion.model.history import RequestSent
from codecompanion.wire.requests import Inspect, ShowRequest
from tests.conform.chat import BRIEF
from tests.providers.chat.answers import Answer, Call, reply
from tests.providers.chat.server import ChatServer
from tests.providers.loopback.server import Received
from tests.unit.session.fakes import Bench, ScriptedAdapter, calls, says, submit

NUMBERS = itertools.count(1)


def answer(request: Received) -> Answer:
    """Search twice for each question, then talk; a summary is a summary."""
    body = request.json
    if "tools" not in body:
        return reply(BRIEF)
    newest = [message["role"] for message in body["messages"]][-4:]
    if newest[-1] == "tool" and newest[-3:-2] == ["tool"]:
        return reply("The port is 8089, as its settings say. " * 20)
    number = next(NUMBERS)
    return reply(
        calls=[Call(f"c{number}", "grep_search", json.dumps({"query": "needle", "max_results": number % 90 + 9}))]
    )


def http_adapter(url: str) -> HttpAdapter:
    settings = AdapterSettings(name="http", kind="openai_compatible", base_url=url, model="test-model")
    return HttpAdapter(settings, make_wire(settings, lambda sha: b""), read_key=lambda _: "sk-test")


def repository(folder: Path) -> None:
    subprocess.run(["git", "init", "-q", "-b", "topic"], cwd=folder, check=True, capture_output=True)


async def shown(bench: Bench, session, number: int, item: str = "") -> str:
    found = await look(bench.services, session, ShowRequest(chat="chat-1", request=number, item=item))
    return found["text"]


@pytest.mark.parametrize("policy", policy_names())
async def test_a_request_is_shown_as_the_server_received_it(tmp_path, policy):
    """Prompt, edited messages and tools are shown for every request, including those from before a restart."""
    (tmp_path / "a.txt").write_text("needle in a haystack of words\n" * 80)
    repository(tmp_path)
    settings = {
        "policy": policy, "context_packet": {"enabled_sections": ["repo", "git", "git_dirty_summary"]},
        "system_prompt": None,
    }  # fmt: skip
    async with ChatServer(default=answer, window=0) as server:
        adapter = http_adapter(server.url)
        bench = Bench(tmp_path, adapter, window=9_000, settings=settings)
        session = await bench.open()
        for number in range(1, 9):
            if number == 5:
                (tmp_path / "new.txt").write_text("a changed packet")
                session = await Bench.resume(bench := Bench(
                    tmp_path, adapter, window=9_000, settings=settings, store=bench.store
                ))  # fmt: skip
            session.submit(submit(f"question {number}: which port? " + "words " * 120, number))
            await bench.idle(session)
        await session.log.write_late()
        bodies = [one.body for one in server.requests if one.method == "POST"]
        again = Bench(tmp_path, adapter, window=9_000, settings=settings, store=bench.store)
        session = await again.resume()
        assert len(bodies) >= 20
        texts = [await shown(again, session, number) for number in range(1, len(bodies) + 1)]
        sent = [msgspec.json.format(text.encode(), indent=-1) for text in texts]
        assert sorted(sent) == sorted(bodies)  # parts of a long chat are summarised at the same time
        with_tools = [body for body in sent if b'"tools":' in body]
        assert with_tools == [body for body in bodies if b'"tools":' in body]
        await adapter.aclose()


async def chat_of_two(tmp_path, store=None):
    (tmp_path / "a.txt").write_text("needle in a haystack of words\n" * 80)
    script = [calls((f"c{n}", "grep_search", json.dumps({"query": "needle", "max_results": 60 + n}))) for n in range(3)]
    adapter = ScriptedAdapter("s", [*script, says("found"), says("again")])
    bench = Bench(tmp_path, adapter, settings={"policy": "kodacode"})
    session = await bench.open()
    for number in (1, 2):
        session.submit(submit(f"question {number}", number))
        await bench.idle(session)
    await session.log.write_late()
    return bench, session, adapter


async def test_the_inspector_lists_a_sent_request(tmp_path):
    """Its rows are those at the time of sending; a message is shown as it was sent."""
    bench, session, adapter = await chat_of_two(tmp_path)
    newest = await look(bench.services, session, Inspect(chat="chat-1", request=-1))
    assert (newest["request"], newest["requests"], newest["turn"], newest["note"]) == (5, 5, "turn-2", "")
    third = await look(bench.services, session, Inspect(chat="chat-1", request=3))
    assert [row["role"] for row in third["rows"]] == [
        "system", "tools", "user", "assistant", "tool", "assistant", "tool",
    ]  # fmt: skip
    assert sum(row["tokens"] for row in third["rows"]) == third["total"]
    sent = adapter.requests[2].messages
    for row, message in zip(third["rows"][2:], sent[1:], strict=True):
        assert await shown(bench, session, 3, row["id"]) == message.text
    assert sent[3].text.startswith("[older retained output from grep_search ")
    assert await shown(bench, session, 3, "system") == sent[0].text
    assert '"name": "grep_search"' in await shown(bench, session, 3, "tools")


async def test_a_request_that_does_not_exist_is_refused(tmp_path):
    bench, session, _ = await chat_of_two(tmp_path)
    with pytest.raises(InputError, match=r"This chat has no request 9; expected 1 to 5\."):
        await shown(bench, session, 9)
    with pytest.raises(InputError, match="has no message with the id 'nobody'"):
        await shown(bench, session, 2, "nobody")
    empty = Bench(tmp_path, ScriptedAdapter("s", []))
    with pytest.raises(InputError, match="Nothing has been sent yet"):
        await shown(empty, await empty.open(), -1)


async def test_prompt_and_tools_are_stored_once(tmp_path):
    """If unchanged, neither they nor shaped messages are written again with the next request."""
    bench, _, _ = await chat_of_two(tmp_path)
    sent = [e.payload for e in bench.store.load_events("chat-1") if isinstance(e.payload, RequestSent)]
    assert len({(one.prompt, one.tools) for one in sent}) == 1
    assert [len(one.shaped.replaced) if one.shaped else 0 for one in sent] == [0, 0, 1, 1, 0]
    assert sent[0].shaped is not None
    assert sent[0].shaped.whole


async def test_a_request_of_an_earlier_version_is_shown_with_todays_prompt(tmp_path):
    """A log without contents is still read, with a note."""
    bench, session, _ = await chat_of_two(tmp_path)
    events = [
        msgspec.structs.replace(e, payload=msgspec.structs.replace(e.payload, prompt="", tools="", shaped=None))
        if isinstance(e.payload, RequestSent)
        else e
        for e in bench.store.load_events("chat-1")
    ]
    from codecompanion.session.chat.sent_requests import NOT_RECORDED, read_sent

    found = read_sent(events, 1, session.control, lambda name: pytest.fail(name))
    assert found.note == NOT_RECORDED
    assert found.request.messages[0] == session.control.system_message
