"""Gathered code over the life of a chat: caches, edits, summaries, recall, transcripts."""

from __future__ import annotations

import msgspec
import pytest

from codecompanion.context.policy.policy_catalog import load_policy, policy_names
from codecompanion.model.history import MessageAdded, ViewChanged
from codecompanion.model.messages import GATHERED_TAG, SUMMARY_TAG, GatheredPiece, Message
from codecompanion.model.transcript_format import read_message, write_message
from codecompanion.wire.requests import UndoChange
from tests.summaries import nine_sections
from tests.unit.session.fakes import says
from tests.unit.session.message_context.test_gathering import FakeGatherer, ask, asked, bench_with

CODE = "### File: src/0.py\n" + "secret_recipe = 1\n" * 60


def answer(request):
    return says(nine_sections("Summed up.") if request.purpose == "summary" else "answer " * 30)


@pytest.mark.parametrize("policy", [name for name in policy_names() if not load_policy(name).shape])
async def test_a_request_extends_the_previous_one_unless_something_was_edited(tmp_path, policy):
    """The prompt cache: nothing that was sent moves or changes by itself (lesson 22).

    A policy that shapes each request (R-338) clears code as it does results: of finished turns, beyond a share.
    """
    bench, session = await bench_with(
        tmp_path, FakeGatherer(text=CODE), replies=answer, window=7_000, settings={"policy": policy}
    )
    edits = 0
    for number in range(1, 16):
        await asked(bench, session, ask(f"question {number} " + "words " * 20, number))
        events = await session.log.events()
        changed = sum(isinstance(e.payload, ViewChanged) for e in events)
        chats = [r.messages for r in bench.adapter.requests if r.purpose == "chat"]
        if len(chats) > 1 and changed == edits:
            before, now = ([(m.role, m.text) for m in messages[1:]] for messages in chats[-2:])
            assert now[: len(before)] == before, f"request {number} does not go on from the one before"
        edits = changed
    assert edits, "the window is small enough for something to be edited"
    assert edits <= 12, "in batches, not one by one per message"


async def test_shaping_only_clears_code_and_changes_nothing_else(tmp_path):
    """R-338, R-342: code is not moved; it is cleared once, oldest first, and stays cleared."""
    bench, session = await bench_with(
        tmp_path, FakeGatherer(text=CODE), replies=answer, window=32_000, settings={"policy": "kodacode"}
    )
    cleared = 0
    for number in range(1, 16):
        await asked(bench, session, ask(f"question {number} " + "words " * 150, number))
        chats = [
            [(m.role, m.tag, m.text) for m in r.messages[1:]] for r in bench.adapter.requests if r.purpose == "chat"
        ]
        if len(chats) < 2:
            continue
        before, now = chats[-2:]
        changed = [place for place, (was, one) in enumerate(zip(before, now, strict=False)) if was != one]
        codes = [place for place, (_, tag, _) in enumerate(now) if tag == GATHERED_TAG]
        assert changed == codes[cleared : cleared + len(changed)], "the next oldest, and nothing else"
        assert all(now[place][2].startswith("<important>Code gathered") for place in codes[: cleared + len(changed)])
        assert all(now[place][2] == CODE for place in codes[cleared + len(changed) :])
        cleared += len(changed)
    assert 3 <= cleared < 14, "some are beyond the share of finished turns, the newest are not"


@pytest.mark.parametrize("policy", policy_names())
async def test_a_compaction_removes_the_code_and_names_the_files(tmp_path, policy):
    """Its text is in no summary and in no request for one; an undo restores it."""
    bench, session = await bench_with(tmp_path, FakeGatherer(text=CODE), replies=answer, settings={"policy": policy})
    for number in range(1, 10):
        await asked(bench, session, ask(f"question {number}", number))
    session.compact("")
    await bench.until(lambda: session.task is None)
    asked_for = "".join(m.text for r in bench.adapter.requests if r.purpose == "summary" for m in r.messages)
    assert "secret_recipe" not in asked_for
    summaries = [m for m in session.log.view.messages if m.tag == SUMMARY_TAG]
    if not summaries:  # clearing the code alone was enough for its first tier
        assert sum(m.edited for m in session.log.view.messages if m.tag == GATHERED_TAG) >= 6
    for summary in summaries:
        assert "secret_recipe" not in summary.text
        assert "src/0.py" in asked_for + summary.text
    await session.edits.carry_out(UndoChange(chat="chat-1"))
    assert sum(m.text == CODE for m in session.log.view.messages if m.tag == GATHERED_TAG) >= 9


@pytest.mark.parametrize(("window", "offered"), [(4096, False), (8000, False), (16_000, True)])
async def test_the_code_search_tool_is_offered_if_it_fits(tmp_path, window, offered):
    """Counted and sent: meter, request and callable tools agree; a larger model gets the tool back."""
    bench, session = await bench_with(tmp_path, FakeGatherer(text="", snippets=0), window=window)
    await asked(bench, session, ask("hello"))
    [request] = bench.adapter.requests
    assert ("code_search" in [tool.name for tool in request.tools]) == offered
    assert request.tools == session.control.specs
    control = session.control
    assert control.measured().tokens >= control.meter.counter.tools(request.tools)


async def test_summarised_code_is_found_again_and_recalled(tmp_path):
    bench, session = await bench_with(tmp_path, FakeGatherer(text=CODE), replies=answer)
    for number in range(1, 6):
        await asked(bench, session, ask(f"question {number}", number))
    session.compact("")
    await bench.until(lambda: session.task is None)
    found = await session.removed.listed("secret_recipe")
    assert found["rows"]
    assert found["rows"][0]["title"] == "code: 2 snippets from 2 files"


async def test_a_restored_chat_knows_the_sources_of_its_code(tmp_path):
    """The sources are known after a restart, and in a transcript that is written and read back."""
    bench, session = await bench_with(tmp_path, FakeGatherer(text=CODE), replies=answer)
    await asked(bench, session, ask("why?"))
    message = session.log.view.messages[0]
    await session.close()
    again = await bench.resume()
    assert again is not None
    assert again.log.view.messages[0] == message
    written = write_message(message)
    assert written["meta"]["gathered"][0]["path"] == "src/0.py"
    assert read_message(written, message.id, "here").gathered == message.gathered


def test_old_messages_are_stored_unchanged():
    """A chat without gathered code stores the same bytes as before."""
    plain = Message(id="m", role="user", content="hello", cycle=1)
    assert b"gathered" not in msgspec.json.encode(MessageAdded(message=plain))
    assert "gathered" not in write_message(plain).get("meta", {})
    with_code = Message(id="m", role="user", tag=GATHERED_TAG, gathered=(GatheredPiece("a.py", 1, 2),))
    decoded = msgspec.json.decode(msgspec.json.encode(with_code), type=Message)
    assert decoded == with_code
