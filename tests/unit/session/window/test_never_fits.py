"""A message that can never fit compacts nothing, and returns to the input (R-524).

Seen: a file of 19.4k tokens attached to a chat of 5k in a window of 16k; the chat was summarised without a model, the
old edits shortened, and then the request was not sent.
"""

from __future__ import annotations

import pytest

from codecompanion.context.policy.policy_catalog import policy_names
from codecompanion.errors import ContextOverflow
from codecompanion.model.history import ViewChanged
from codecompanion.model.messages import Message
from codecompanion.wire.events import (
    ApprovalRequested,
    Compacted,
    CompactionStarted,
    ContextEdited,
    Notice,
    SubmitFailed,
    TurnFinished,
)
from codecompanion.wire.requests import Snapshot, UndoChange
from tests.unit.session.fakes import Bench, ScriptedAdapter, calls, says, submit


def big_file(tokens: int) -> Message:
    return Message(id="big", role="user", tag="file", path="docs/big.txt", content="word " * tokens)


async def a_chat(tmp_path, policy: str, window: int, turns: int, *, says_tokens: int = 0, **more):
    """Return a bench and a session with that many answered questions, each with a tool result."""
    (tmp_path / "a.txt").write_text("a line of text\n" * (window // 120))
    reply = says("answer " * (says_tokens or window // 60))

    def answer(request):
        if answers := getattr(adapter, "answer", None):
            return answers(request)
        if request.purpose == "summary":
            return says("A summary of it. " * 20)
        last = request.messages[-1]
        return calls(("c" + last.id, "read_file", '{"path": "a.txt"}')) if last.role == "user" else reply

    adapter = ScriptedAdapter("s", answer)
    bench = Bench(tmp_path, adapter, window=window, settings={"policy": policy, **more})
    session = await bench.open()
    for number in range(1, turns + 1):
        session.submit(submit(f"question {number}", number))
        await bench.idle(session)
    return bench, session


async def changes(session) -> list[ViewChanged]:
    return [e.payload for e in await session.log.events() if isinstance(e.payload, ViewChanged)]


@pytest.mark.parametrize("window", [4_000, 16_000])
@pytest.mark.parametrize("policy", policy_names())
async def test_a_file_larger_than_the_window_compacts_nothing_and_the_question_returns(tmp_path, policy, window):
    prompt = {"system_prompt": "Help.", "policy": policy}
    bench, session = await a_chat(tmp_path, window=window, turns=9, **prompt)
    sent, before, changed = len(bench.adapter.requests), session.log.view.messages, await changes(session)
    await session.attach(big_file(window * 5 // 4))
    bench.events.clear()
    session.submit(submit("what is in the file?", 90))
    await bench.idle(session)
    [back] = bench.of(SubmitFailed)
    assert back.text == "what is in the file?"
    assert "docs/big.txt takes" in back.error
    assert "Detach it (dd on its line)" in back.error
    assert len(bench.adapter.requests) == sent
    assert await changes(session) == changed
    assert not bench.of(CompactionStarted) + bench.of(Compacted) + bench.of(ContextEdited)
    assert [m.id for m in session.log.view.messages] == [*(m.id for m in before), "big"]
    await session.detach(("big",))
    session.submit(submit("and now?", 91))
    await bench.idle(session)
    assert bench.of(TurnFinished)[-1].reason == "done"
    typed = [m.text for m in bench.adapter.requests[-1].messages if m.role == "user" and not m.tag]
    assert "what is in the file?" not in typed
    assert typed[-1] == "and now?"


async def test_a_long_chat_in_a_large_window_is_unchanged_as_well(tmp_path):
    bench, session = await a_chat(tmp_path, "codecompanion", 1_000_000, 3)
    before = session.log.view.messages
    await session.attach(big_file(1_000_000))
    session.submit(submit("what is in the file?", 90))
    await bench.idle(session)
    assert [back.text for back in bench.of(SubmitFailed)] == ["what is in the file?"]
    assert session.log.view.messages[:-1] == before


async def test_a_file_that_fits_beside_a_summary_is_sent(tmp_path):
    """Only a message that can never fit is refused: for others the chat makes room."""
    bench, session = await a_chat(tmp_path, "codecompanion", 16_000, 12, system_prompt="Help.")
    await session.attach(big_file(9_000))
    session.submit(submit("what is in the file?", 90))
    await bench.idle(session)
    assert not bench.of(SubmitFailed)
    assert bench.of(Compacted)
    assert bench.of(TurnFinished)[-1].reason == "done"


async def test_a_refused_request_that_can_never_fit_causes_no_compaction(tmp_path):
    """R-535: the reported window is smaller than the file alone; nothing is compacted, now or when asked again."""
    bench, session = await a_chat(tmp_path, "codecompanion", 64_000, 3, system_prompt="Help.", says_tokens=200)
    changed = await changes(session)
    await session.attach(big_file(20_000))
    bench.adapter.answer = lambda request: (ContextOverflow("s: too long.", 0, 16_000),)
    session.submit(submit("what is in the file?", 90))
    await bench.idle(session)
    assert "docs/big.txt takes" in bench.of(TurnFinished)[-1].error
    sent = len(bench.adapter.requests)
    await session.regenerate(Snapshot())
    await bench.idle(session)
    assert "Not sent" in bench.of(TurnFinished)[-1].error
    assert len(bench.adapter.requests) == sent
    assert await changes(session) == changed


async def test_during_a_pause_there_is_no_question_about_a_message_that_can_never_fit(tmp_path):
    bench, session = await a_chat(tmp_path, "codecompanion", 16_000, 9, system_prompt="Help.")
    session.compact("")
    await bench.idle(session)
    await session.edits.carry_out(UndoChange(chat="chat-1"))
    assert session.control.pause.is_on
    changed = await changes(session)
    await session.attach(big_file(20_000))
    session.submit(submit("what is in the file?", 90))
    await bench.idle(session)
    assert [back.text for back in bench.of(SubmitFailed)] == ["what is in the file?"]
    assert not bench.of(ApprovalRequested)
    assert await changes(session) == changed


@pytest.mark.parametrize(
    ("window", "tokens", "is_told"),
    [(4_000, 3_000, False), (4_000, 4_000, True), (1_000_000, 900_000, False), (0, 900_000, False)],
)
async def test_an_attachment_larger_than_the_window_is_reported_at_once(tmp_path, window, tokens, is_told):
    """It is attached anyway; with an assumed window the result is unknown (R-506)."""
    adapter = ScriptedAdapter("s", lambda request: says("ok"))
    bench = Bench(tmp_path, adapter, window=window, settings={"system_prompt": "Help."}, tools={"enabled": False})
    session = await bench.open()
    bench.events.clear()
    await session.attach(big_file(tokens))
    told = [notice.text for notice in bench.of(Notice)]
    assert [m.id for m in session.log.view.messages] == ["big"]
    assert len(told) == is_told
    if is_told:
        assert told[0].startswith("Too large to send: docs/big.txt takes ")
        assert "window of 4,000" in told[0]
        assert told[0].endswith("Press dd on its line to detach it.")
