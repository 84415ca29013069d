"""A summary requested in the chat itself: the server hits its cache, and the user sees the progress (ours)."""

from __future__ import annotations

import json

import pytest

from codecompanion.engine.chat_views import look
from codecompanion.model.history import RequestSent
from codecompanion.wire.events import Compacted
from codecompanion.wire.requests import Inspect
from tests.conform.chat import BRIEF
from tests.providers.chat.answers import Call, counted, reply
from tests.providers.chat.server import ChatServer
from tests.unit.session.chat.test_sent_requests import http_adapter, shown
from tests.unit.session.fakes import Bench, submit

LONG = "The port of the parser is 8089, as its settings say. " * 250


def answers(summary):
    """Return a model that gives long answers, and this reply when a summary is requested in the chat."""

    def answer(request):
        newest = request.json["messages"][-1]["content"]
        if newest.startswith("This message comes from the program"):
            return summary
        return reply(BRIEF) if "<conversation>" in newest else counted(LONG)

    return answer


async def chat_of_eight(tmp_path, server, **settings):
    adapter = http_adapter(server.url)
    bench = Bench(tmp_path, adapter, window=60_000, settings=settings)
    session = await bench.open()
    for number in range(1, 9):
        session.submit(submit(f"question {number}: which port?", number))
        await bench.idle(session)
    return bench, session, adapter


@pytest.mark.parametrize("policy", ["codecompanion", "adaptive"])
async def test_the_summary_prompt_follows_the_messages_already_sent(tmp_path, policy):
    """The same tools and messages, byte for byte: the provider's prompt cache hits."""
    async with ChatServer(default=answers(reply(BRIEF)), window=0) as server:
        bench, session, adapter = await chat_of_eight(tmp_path, server, policy=policy)
        session.compact("")
        await bench.idle(session)
        await session.log.write_late()
        chat, summary = (json.loads(one.body) for one in [r for r in server.requests if r.method == "POST"][-2:])
        known = chat["messages"]
        assert summary["messages"][: len(known)] == known
        assert summary["tools"] == chat["tools"]
        assert [m["role"] for m in summary["messages"][len(known) :]] == ["assistant", "user"]
        done = bench.of(Compacted)[-1]
        assert done.summariser == "test-model in the chat"
        inspected = await look(bench.services, session, Inspect(chat="chat-1", request=-1))
        assert inspected["asked"] == "summary, in the chat"
        body = [one.body for one in server.requests if one.method == "POST"][-1]
        assert json.loads(await shown(bench, session, 9)) == json.loads(body)
        await adapter.aclose()


async def test_a_newly_chosen_model_gets_a_transcript(tmp_path):
    """It has nothing of the chat in its prompt cache."""
    async with ChatServer(default=answers(reply(BRIEF)), window=0) as server:
        bench, session, adapter = await chat_of_eight(tmp_path, server)
        session.control.meter.switch_model(session.control.meter.calibration)
        session.compact("")
        await bench.idle(session)
        assert bench.of(Compacted)[-1].summariser == "test-model"
        await adapter.aclose()


async def test_a_model_that_calls_a_tool_instead_is_not_asked_that_way_again(tmp_path):
    called = reply(calls=[Call("c1", "grep_search", '{"query": "port"}')])
    async with ChatServer(default=answers(called), window=0) as server:
        bench, session, adapter = await chat_of_eight(tmp_path, server)
        for number in (9, 10):
            session.compact("")
            await bench.idle(session)
            for each in range(8):
                session.submit(submit(f"question {number}.{each}", 100 * number + each))
                await bench.idle(session)
        await session.log.write_late()
        sent = [e.payload for e in bench.store.load_events("chat-1") if isinstance(e.payload, RequestSent)]
        assert [one.in_place for one in sent if one.purpose == "summary"] == [True, False, False]
        assert all(done.summariser == "test-model" for done in bench.of(Compacted))
        await adapter.aclose()
