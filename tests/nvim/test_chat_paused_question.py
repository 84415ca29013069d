"""The question whether to compact while compaction is paused, as the user sees it (R-545)."""

from __future__ import annotations

import pytest

from approvals import answered
from chat_driver import ChatDriver
from codecompanion import events

TITLE = "20,412 tokens, 20,000 fit"
BODY = "Compaction is paused since your undo.\nNo: your message goes back into the input."


def ask(chat: ChatDriver) -> int:
    """Let a message that was sent wait for the answer; return its number."""
    chat.nvim.feed("<Esc>Gihello<Esc><CR>")
    chat.nvim.wait_for(lambda: chat.sent("submit"), "the submit")
    number = chat.sent("submit")[0]["submit_id"]
    chat.push(
        events.State(state="awaiting_approval", label="waiting for your answer: compact?"),
        events.Queued(submit_id=number),
        events.ApprovalRequested(call_id="compact-1", name="compact", title=TITLE, body=BODY, kind="compact"),
    )
    return number


def test_it_is_a_block_with_two_keys_and_no_prompt(chat: ChatDriver) -> None:
    """What does not fit, what a no means, and that something waits; a no comes with no second question."""
    number = ask(chat)
    text = "\n".join(chat.nvim.lines())
    assert f"? compact: {TITLE} · not sent yet" in text
    assert BODY in text
    assert "g1 compact and send   g3 do not send\n" in text
    assert not chat.nvim.blocked()
    assert "waiting for your answer: compact?" in chat.nvim.screen()
    chat.nvim.feed("]ag3")
    chat.nvim.wait_for(lambda: answered(chat) == [("compact-1", "reject")], "the answer")
    why = f"Not sent: {TITLE}. Your message is back in the input."
    chat.push(
        events.ApprovalClosed(call_id="compact-1", decision="reject"),
        events.State(state="idle"),
        events.TurnFinished(reason="limit", error=why),
        events.SubmitFailed(submit_id=number, text="hello", error=why),
    )
    lines = chat.nvim.lines()
    assert lines[-1] == "hello"
    assert sum(why in line for line in lines) == 1
    assert not any("? compact" in line for line in lines)


@pytest.mark.parametrize("key", ["g2", "g5"])
def test_other_keys_of_approvals_answer_nothing(chat: ChatDriver, key: str) -> None:
    ask(chat)
    chat.nvim.feed("]a" + key)
    chat.nvim.feed("g1")
    chat.nvim.wait_for(lambda: answered(chat) == [("compact-1", "once")], "the one answer")
