"""The question about rules outside of the repository, as the user sees it (R-549; issue 9, section 5)."""

from __future__ import annotations

import pytest

from approvals import answered
from chat_driver import ChatDriver
from codecompanion.wire import events


def ask(chat: ChatDriver) -> None:
    """Let the host ask about two files."""
    chat.push(
        events.ApprovalRequested(
            call_id="rules-1",
            name="rules",
            title="read 2 files from outside of the repository?",
            body="~/diary.md · 30 bytes · Dear diary\n~/notes.md · 4 bytes · Note",
            kind="rules",
        )
    )


def test_the_block_says_that_nothing_is_read_and_names_its_keys(chat: ChatDriver) -> None:
    """A calm block: no prompt, no "waiting" line, the cursor stays in the input."""
    ask(chat)
    text = "\n".join(chat.nvim.lines())
    assert "▎ rules: read 2 files from outside of the repository? · not read yet" in text
    assert "~/notes.md · 4 bytes · Note" in text
    assert "g2 read in this chat · g3 no · g1 always…" in text
    assert not chat.nvim.blocked()
    assert "waiting for your approval" not in chat.nvim.screen()
    waits = "return require('codecompanion.chat.state.questions').waits(require('codecompanion.chat').current())"
    assert chat.nvim.lua(waits) is False


@pytest.mark.parametrize(("keys", "decision"), [("g2", "once"), ("g1<CR>", "always"), ("g3", "reject")])
def test_a_key_on_the_block_answers_it(chat: ChatDriver, keys: str, decision: str) -> None:
    """Without a second question: a "no" to files needs no reason."""
    ask(chat)
    chat.nvim.feed("<Esc>]a" + keys)
    chat.nvim.wait_for(lambda: answered(chat) == [("rules-1", decision)], "the answer")
    chat.push(events.ApprovalClosed(call_id="rules-1", decision=decision))
    assert "not read yet" not in "\n".join(chat.nvim.lines())


def test_sending_goes_on_and_the_question_outlives_the_turn(chat: ChatDriver) -> None:
    """Unanswered is not loaded, and the buffer goes on saying so."""
    ask(chat)
    chat.nvim.feed("<Esc>Gihello<Esc><CR>")
    chat.nvim.wait_for(lambda: chat.sent("submit"), "the submit")
    assert chat.sent("submit")[0]["text"] == "hello"
    chat.push(
        events.MessageSent(submit_id=chat.sent("submit")[0]["submit_id"], message_id="m1", text="hello", cycle=1),
        events.TurnFinished(reason="done"),
    )
    assert "not read yet" in "\n".join(chat.nvim.lines())
    assert answered(chat) == []
    chat.nvim.feed("<Esc>]ag2")
    chat.nvim.wait_for(lambda: answered(chat) == [("rules-1", "once")], "the answer")
