"""A compaction in the buffer: announced, cancellable, old turns folded, the summary as a card (R-543, R-544)."""

from __future__ import annotations

import pytest

from chat_driver import ChatDriver
from codecompanion import events

TITLES = [
    "Primary Request and Intent",
    "User Messages",
    "Work Completed",
    "Files and Code",
    "Errors and Fixes",
    "Decisions",
    "Pending Work",
    "Current State",
    "Next Step",
]


def summary(form: str) -> str:
    """A summary with nine sections in one of the forms models write them."""
    body = "1. a numbered item\n2. **another** item\n- and a bullet"
    sections = [form.format(number=number, title=title) + f"\n{body}" for number, title in enumerate(TITLES, 1)]
    return "Below is a summary of a previous conversation:\n\n" + "\n\n".join(sections)


def started() -> events.CompactionStarted:
    """A compaction begins."""
    return events.CompactionStarted(compaction_id="k", trigger="proactive", summariser="claude-haiku")


def compacted(text: str, first: int = 1, last: int = 6) -> events.Compacted:
    """And ends."""
    return events.Compacted(
        compaction_id="k",
        trigger="proactive",
        summariser="claude-haiku",
        summary=text,
        messages=42,
        cycles=(first, last),
        tokens_before=108400,
        tokens_after=14900,
        duration_ms=6100,
    )


def old_turns(chat: ChatDriver) -> None:
    """A few turns to be compacted."""
    for number in range(3):
        chat.accept(f"old question {number}", cycle=number + 1)
        chat.reply(f"old answer {number}")


def test_what_was_said_right_before_is_not_folded_away(chat: ChatDriver) -> None:
    """After an overflow: the window that the provider named, with what to do about it."""
    old_turns(chat)
    chat.push(
        events.Notice(level="INFO", text="an old hint"),
        events.Text(text="more of the answer"),
        events.Notice(level="WARN", text="the window is smaller than you said"),
        events.Notice(level="INFO", text="and a hint"),
        started(),
        compacted("Summary."),
    )
    screen = chat.nvim.wait_screen("Session context compacted")
    assert "the window is smaller than you said" in screen
    assert "and a hint" in screen
    assert "an old hint" not in screen
    assert "more of the answer" not in screen


def test_a_compaction_by_the_provider_before_it_writes_stands_above_the_question(chat: ChatDriver) -> None:
    """R-541: the header that announced the reply moves behind the card; the question stays readable (R-551)."""
    old_turns(chat)
    chat.accept("new question", cycle=4)
    chat.push(events.ReplyStarted(adapter="openai", model="gpt-4o"))
    chat.push(started())
    chat.push(compacted(summary("## {number}. {title}"), 1, 3))
    chat.push(events.Text(text="new answer"))
    lines = chat.text().splitlines()
    card = next(i for i, line in enumerate(lines) if "Session context compacted" in line)
    question = lines.index("new question")
    assert card < question < lines.index("new answer")
    headers = [line for line in lines[card:] if line.startswith("## ") and not line[3].isdigit()]
    assert headers == ["## Me", "## CodeCompanion (openai · gpt-4o)", "## Me"]


def test_while_compacting_the_buffer_says_so_and_how_to_cancel(chat: ChatDriver) -> None:
    """R-543: `Compacting the chat...`; the autocmd fires once; q cancels."""
    chat.record_autocmds()
    old_turns(chat)
    chat.push(started(), events.State(state="compacting", label="compacting"))
    chat.nvim.wait_screen(r"⋯ Compacting the chat\.\.\. · q to cancel")
    chat.nvim.feed("Gityped meanwhile<Esc>q")
    chat.nvim.wait_for(lambda: chat.sent("cancel"), "cancel")
    chat.push(
        events.CompactionFailed(compaction_id="k", reason="Compaction stopped. Nothing was changed.", cancelled=True)
    )
    chat.push(events.TurnFinished(reason="stopped"))
    screen = chat.nvim.screen()
    assert "Compacting the chat" not in screen
    assert "· Compaction stopped. Nothing was changed." in screen
    assert chat.input() == "typed meanwhile"
    names = [name for name, _ in chat.fired() if "Compact" in name]
    assert names == ["CodeCompanionChatCompacting", "CodeCompanionChatCompactFailed"]


@pytest.mark.parametrize("form", ["## {number}. {title}", "{number}. **{title}**", "### {number}. {title}"])
def test_the_summary_is_a_card_with_a_fold_per_section(chat: ChatDriver, form: str) -> None:
    """Sections 1, 7, 8 and 9 are open, the others closed; lists inside are no sections."""
    chat.nvim.request("nvim_ui_try_resize", 100, 60)
    old_turns(chat)
    chat.push(started())
    chat.push(compacted(summary(form)))
    screen = chat.nvim.wait_screen(
        r"▾ Session context compacted · 42 messages · 108\.4k → 14\.9k tokens · proactive · claude-haiku · 6\.1 s"
    )
    for number, title in enumerate(TITLES, 1):
        folded = any(line.startswith(f"▸ {number}. {title}") for line in screen.split("\n"))
        assert folded == (number not in (1, 7, 8, 9)), (title, screen)
    assert "Compacting" not in screen


def test_old_turns_stay_readable_under_a_fold(chat_everywhere: ChatDriver) -> None:
    """Nothing is deleted from the buffer."""
    chat = chat_everywhere
    chat.push(events.ContextItems(items=(events.ContextItem(id="a", kind="rules", label="AGENTS.md"),)))
    old_turns(chat)
    chat.push(started())
    chat.push(compacted("## 1. Intent\nshort"))
    screen = chat.nvim.wait_screen(r"▸ 42 messages compacted \(cycles 1–6\)")
    assert "old answer" not in screen
    assert "> Context:" in screen
    chat.toggle_fold("messages compacted")
    chat.nvim.wait_screen("old answer 2")
    assert chat.text().count("old question") == 3


def test_a_message_that_waits_for_its_answer_stays_below_the_card(chat: ChatDriver) -> None:
    """R-551: it survives verbatim, after the summary."""
    old_turns(chat)
    chat.accept("the pending question", cycle=4)
    chat.push(started())
    chat.push(compacted("## 1. Intent\nshort"))
    chat.reply("the answer")
    lines = [line for line in chat.nvim.screen().split("\n") if line and not line.startswith("~")]
    assert lines[0].startswith("▸ 42 messages compacted")
    assert [
        line for line in lines if "pending question" in line or "Session context" in line or "the answer" in line
    ] == [
        next(line for line in lines if "Session context" in line),
        "the pending question",
        "the answer",
    ]
    assert chat.text().count("## CodeCompanion") == 4


def test_a_second_compaction_folds_what_came_after_the_first(chat: ChatDriver) -> None:
    """Two folds one after the other, the newest card open."""
    old_turns(chat)
    chat.push(compacted("## 1. Intent\nfirst summary"))
    old_turns(chat)
    chat.push(compacted("## 1. Intent\nsecond summary", first=7, last=9))
    screen = chat.nvim.wait_screen(r"▸ 42 messages compacted \(cycles 7–9\)")
    assert "▸ 42 messages compacted (cycles 1–6)" in screen
    assert "first summary" not in screen
    assert "second summary" in screen


def test_a_failed_compaction_is_one_sentence(chat: ChatDriver) -> None:
    """What happened, what was kept, what comes next."""
    reason = "Compaction failed: claude-haiku did not answer in 60 s. Nothing was changed. Next try in 2 cycles."
    old_turns(chat)
    before = chat.text()
    chat.push(started())
    chat.push(events.CompactionFailed(compaction_id="k", reason=reason))
    assert chat.text() == before.removesuffix("## Me\n") + f"! {reason}\n\n## Me\n"
    assert chat.nvim.messages() == ""


def test_text_may_be_typed_and_sent_while_compacting(chat: ChatDriver) -> None:
    """Lesson 16: it is queued and survives the card."""
    old_turns(chat)
    chat.push(started())
    submit_id = chat.submit("sent meanwhile")
    chat.push(events.Queued(submit_id=submit_id))
    chat.nvim.feed("Gidraft<Esc>")
    chat.push(compacted("## 1. Intent\nshort"))
    chat.nvim.settle()
    assert chat.input() == "draft"
    assert "queued" in chat.nvim.screen()
    chat.push(events.MessageSent(submit_id=submit_id, message_id="m", text="sent meanwhile", cycle=4))
    text = chat.text()
    assert text.index("Session context compacted") < text.index("sent meanwhile") < text.index("## Me\ndraft")
