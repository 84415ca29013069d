"""The question whether to compact while compaction is paused, as the user sees it (R-545)."""

from __future__ import annotations

import re
from collections.abc import Callable

import pytest

from approvals import answered
from chat_driver import ChatDriver, make_chat
from codecompanion.wire import events
from harness import Nvim

TITLE = "20,412 tokens, 20,000 fit"
BODY = "Compaction is paused because of your undo.\nNo: your message goes back into the input."


def ask(chat: ChatDriver) -> int:
    """Send a message that waits for the user's answer about compaction; return its submit id."""
    chat.nvim.feed("<Esc>Gihello<Esc><CR>")
    chat.nvim.wait_for(lambda: chat.sent("submit"), "the submit")
    number = chat.sent("submit")[0]["submit_id"]
    chat.push(
        events.State(state="awaiting_approval", label="waiting for your answer: compact?"),
        events.Queued(submit_id=number),
        events.ApprovalRequested(call_id="compact-1", name="compact", title=TITLE, body=BODY, kind="compact"),
    )
    return number


@pytest.mark.parametrize("columns", [40, 80, 120])
def test_the_bar_shows_the_open_question_at_every_width(nvim_factory: Callable[..., Nvim], columns: int) -> None:
    """R-545: the bar also shows pause and context usage, and the state line names the key leading to the question."""
    chat = make_chat(nvim_factory, size=(columns, 24))
    chat.push(events.Meter(tokens=20_412, window=20_000, ratio=1.0206, exact=False, compact_at=5000, paused=True))
    ask(chat)
    words = "waiting: compact?" if columns == 40 else "waiting for your answer: compact?"
    chat.nvim.wait_screen(rf"⋯ {re.escape(words)} · \]a goes there")
    bar = next(line for line in chat.nvim.screen().split("\n") if "102 %" in line and "## Me" not in line)
    assert "waiting: compact?" in bar
    assert "paused" in bar


def test_the_question_is_a_block_with_two_keys_and_no_prompt(chat: ChatDriver) -> None:
    """The block shows the request that does not fit, the effect of declining, and the pending message.

    Declining asks nothing else.
    """
    number = ask(chat)
    text = "\n".join(chat.nvim.lines())
    assert f"▎ compact: {TITLE} · not sent yet" in text
    assert "".join(f"▎ {line}\n" for line in BODY.split("\n")) in text
    assert "g2 compact and send · g3 do not send\n" in text
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


@pytest.mark.parametrize("key", ["g1"])
def test_other_approval_keys_do_nothing(chat: ChatDriver, key: str) -> None:
    ask(chat)
    chat.nvim.feed("]a" + key)
    chat.nvim.feed("g2")
    chat.nvim.wait_for(lambda: answered(chat) == [("compact-1", "once")], "the one answer")
