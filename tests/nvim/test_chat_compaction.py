"""Compaction in the buffer: announced and cancellable, it folds old turns and shows a summary card (R-543, R-544)."""

from __future__ import annotations

import pytest

from chat_driver import ChatDriver
from codecompanion.session.history.card_sections import card_sections
from codecompanion.wire import events

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
    """Return a nine-section summary in one of the formats that models use."""
    body = "1. a numbered item\n2. **another** item\n- and a bullet"
    sections = [form.format(number=number, title=title) + f"\n{body}" for number, title in enumerate(TITLES, 1)]
    return "Below is a summary of a previous conversation:\n\n" + "\n\n".join(sections)


def started() -> events.CompactionStarted:
    """Return the start event of a compaction."""
    return events.CompactionStarted(compaction_id="k", trigger="proactive", summariser="claude-haiku")


def compacted(text: str, *removed: str, before: str = "", key: str = "k") -> events.Compacted:
    """Return the end event of a compaction that removed these messages from the view."""
    return events.Compacted(
        compaction_id=key,
        trigger="proactive",
        summariser="claude-haiku",
        summary=text,
        sections=card_sections(text),
        messages=42,
        cycles=(1, 6),
        tokens_before=108400,
        tokens_after=14900,
        duration_ms=6100,
        removed=removed,
        summary_ids=(f"s-{key}",),
        before=before,
    )


def old_turns(chat: ChatDriver, first: int = 0) -> tuple[str, ...]:
    """Draw a few turns to be compacted; return the ids of their messages."""
    ids: list[str] = []
    for number in range(first, first + 3):
        ids += [chat.accept(f"old question {number}", cycle=number + 1, number=number + 1), f"a{number}"]
        chat.reply(f"old answer {number}", message_id=f"a{number}")
    return tuple(ids)


def test_a_recent_notice_is_not_folded_away(chat: ChatDriver) -> None:
    """After an overflow, the notices with the window size and a remedy stay visible."""
    old = old_turns(chat)
    chat.push(
        events.Notice(level="INFO", text="an old hint"),
        events.Text(text="more of the answer"),
        events.ReplyFinished(message_id="more", stop="stop"),
        events.Notice(level="WARN", text="the window is smaller than you said"),
        events.Notice(level="INFO", text="and a hint"),
        started(),
        compacted("Summary.", *old, "more"),
    )
    screen = chat.nvim.wait_screen("Summary · 42 messages")
    assert "the window is smaller than you said" in screen
    assert "and a hint" in screen
    assert "an old hint" not in screen
    assert "more of the answer" not in screen


def test_a_providers_compaction_before_the_reply_is_above_the_question(chat: ChatDriver) -> None:
    """R-541: the header of the reply moves after the card; the question stays readable (R-551)."""
    old = old_turns(chat)
    new = chat.accept("new question", cycle=4)
    chat.push(events.ReplyStarted(adapter="openai", model="gpt-4o"))
    chat.push(started())
    chat.push(compacted(summary("## {number}. {title}"), *old, before=new))
    chat.push(events.Text(text="new answer"))
    lines = chat.text().splitlines()
    card = next(i for i, line in enumerate(lines) if "Summary · 42 messages" in line)
    question = lines.index("new question")
    assert card < question < lines.index("new answer")
    headers = [line for line in lines[card:] if line.startswith("## ") and not line[3].isdigit()]
    assert headers == ["## Me", "## CodeCompanion (openai · gpt-4o)", "## Me"]
    assert not lines[card - 1], "the card stands on its own"


def test_during_a_compaction_the_buffer_shows_it_and_how_to_cancel(chat: ChatDriver) -> None:
    """R-543: `compacting the chat` looks like the other states; the autocmd fires once, and q cancels."""
    chat.record_autocmds()
    old_turns(chat)
    chat.push(started(), events.State(state="compacting", label="compacting"))
    chat.nvim.wait_screen(r"⋯ compacting the chat · q to cancel")
    chat.nvim.feed("Gityped meanwhile<Esc>q")
    chat.nvim.wait_for(lambda: chat.sent("cancel"), "cancel")
    chat.push(
        events.CompactionFailed(compaction_id="k", reason="Compaction stopped. Nothing was changed.", cancelled=True)
    )
    chat.push(events.TurnFinished(reason="stopped"))
    screen = chat.nvim.screen()
    assert "compacting the chat" not in screen
    assert "· Compaction stopped. Nothing was changed." in screen
    assert chat.input() == "typed meanwhile"
    names = [name for name, _ in chat.fired() if "Compact" in name]
    assert names == ["CodeCompanionChatCompacting", "CodeCompanionChatCompactFailed"]


@pytest.mark.parametrize("form", ["## {number}. {title}", "{number}. **{title}**", "### {number}. {title}"])
def test_the_summary_is_a_card_with_a_fold_per_section(chat: ChatDriver, form: str) -> None:
    """Sections 1, 7, 8 and 9 are open, the others closed; lists inside are not sections."""
    chat.nvim.request("nvim_ui_try_resize", 100, 60)
    old = old_turns(chat)
    chat.push(started())
    chat.push(compacted(summary(form), *old))
    screen = chat.nvim.wait_screen(r"▎ Summary · 42 messages · 108\.4k → 14\.9k +u undo · K details")
    for number, title in enumerate(TITLES, 1):
        folded = any(line.startswith(f"▸ {number}. {title}") for line in screen.split("\n"))
        assert folded == (number not in (1, 7, 8, 9)), (title, screen)
    assert "Compacting" not in screen


def test_old_turns_stay_readable_in_a_fold(chat_everywhere: ChatDriver) -> None:
    """Nothing is deleted from the buffer."""
    chat = chat_everywhere
    chat.push(events.ContextItems(items=(events.ContextItem(id="a", kind="rules", label="AGENTS.md"),)))
    old = old_turns(chat)
    chat.push(started())
    chat.push(compacted("## 1. Intent\nshort", *old))
    screen = chat.nvim.wait_screen(r"▸ your messages 1–3 · 6 messages summarised")
    assert "old answer" not in screen
    assert "> Context:" in screen
    chat.toggle_fold("messages summarised")
    chat.nvim.wait_screen("old answer 2")
    assert chat.text().count("old question") == 3


def test_a_message_waiting_for_its_answer_stays_below_the_card(chat: ChatDriver) -> None:
    """R-551: it survives verbatim, after the summary."""
    old = old_turns(chat)
    pending = chat.accept("the pending question", cycle=4)
    chat.push(started())
    chat.push(compacted("## 1. Intent\nshort", *old, before=pending))
    chat.reply("the answer")
    lines = [line for line in chat.nvim.screen().split("\n") if line and not line.startswith("~")]
    assert lines[0].startswith("▸ your messages 1–3 · 6 messages summarised")
    assert [line for line in lines if "pending question" in line or "Summary · " in line or "the answer" in line] == [
        next(line for line in lines if "Summary · " in line),
        "the pending question",
        "the answer",
    ]
    assert chat.text().count("## CodeCompanion") == 4


def test_a_second_compaction_folds_what_came_after_the_first(chat: ChatDriver) -> None:
    """One fold contains everything that is no longer sent, including the older summary."""
    old = old_turns(chat)
    chat.push(compacted("## 1. Intent\nfirst summary", *old))
    more = old_turns(chat, 3)
    chat.push(compacted("## 1. Intent\nsecond summary", "s-k", *more, key="k2"))
    screen = chat.nvim.wait_screen("▸ your messages 1–6 · 12 messages summarised")
    assert "first summary" not in screen
    assert "second summary" in screen
    assert chat.text().count("messages summarised") == 1


def test_an_older_summary_that_is_still_sent_is_labelled(chat: ChatDriver) -> None:
    """For a chat whose first message is kept, a summary at the start used to be labelled "0 messages summarised"."""
    old = old_turns(chat)
    chat.push(compacted("## 1. Intent\nfirst summary", *old[1:4], before=old[0]))
    chat.push(compacted("## 1. Intent\nsecond summary", "s-k", *old[4:], before=old[0], key="k2"))
    screen = chat.nvim.wait_screen("▸ an earlier summary, now part of a newer one")
    assert "first summary" not in screen
    assert "second summary" in screen
    assert "old question 0" in screen
    assert "0 messages" not in chat.text()


def test_messages_still_sent_are_not_folded(chat_everywhere: ChatDriver) -> None:
    """Lesson 54: a policy may keep messages between those it summarised; each run of summarised messages is a fold."""
    chat = chat_everywhere
    old = old_turns(chat)
    chat.push(compacted("## 1. Intent\nshort", old[0], old[1], old[3], old[4], old[5], before=old[2]))
    lines = [line for line in chat.nvim.wait_screen("Summary · ").split("\n") if line and not line.startswith("~")]
    shown = [line for line in lines if not line.startswith(("##", "1.", "short"))]
    assert shown[0].startswith("▸ your message 1 · 2 messages summarised")
    assert shown[1].startswith("▎ Summary · 42 messages")
    assert [line for line in shown if "old" in line] == ["old question 1"]
    assert shown.index("old question 1") < next(
        place for place, line in enumerate(shown) if line.startswith("▸ your message 3 · 3 messages summarised")
    )


def test_a_card_takes_two_lines_if_it_would_fill_the_window(chat: ChatDriver) -> None:
    """On a small screen the conversation stays visible; one key opens the card."""
    chat.nvim.request("nvim_ui_try_resize", 80, 24)
    old = old_turns(chat)
    chat.push(compacted(summary("## {number}. {title}"), *old))
    screen = chat.nvim.wait_screen("▸ 9 sections · 46 lines")
    assert "Primary Request" not in screen
    chat.toggle_fold("Below is a summary")
    assert "▸ 2. User Messages" in chat.nvim.wait_screen("Primary Request")


def test_a_failed_compaction_is_one_sentence(chat: ChatDriver) -> None:
    """The sentence gives the cause, says that the messages are kept, and names the next step."""
    reason = "Compaction failed: claude-haiku did not answer within 60 s. Nothing was changed. Next try in 2 cycles."
    old_turns(chat)
    before = chat.text()
    chat.push(started())
    chat.push(events.CompactionFailed(compaction_id="k", reason=reason))
    assert chat.text() == before.removesuffix("## Me\n") + f"! {reason}\n\n## Me\n"
    assert chat.nvim.messages() == ""


def test_text_can_be_typed_and_sent_during_a_compaction(chat: ChatDriver) -> None:
    """Lesson 16: the message is queued and not affected by the card."""
    old = old_turns(chat)
    chat.push(started())
    submit_id = chat.submit("sent meanwhile")
    chat.push(events.Queued(submit_id=submit_id))
    chat.nvim.feed("Gidraft<Esc>")
    chat.push(compacted("## 1. Intent\nshort", *old))
    chat.nvim.settle()
    assert chat.input() == "draft"
    assert "queued" in chat.nvim.screen()
    chat.push(events.MessageSent(submit_id=submit_id, message_id="m", text="sent meanwhile", cycle=4))
    text = chat.text()
    assert text.index("Summary · 42 messages") < text.index("sent meanwhile") < text.index("## Me\ndraft")


def test_a_turn_interrupted_by_a_compaction_has_one_header(chat: ChatDriver) -> None:
    """The card is above the question; later text of the model continues below the same header, as in the log."""
    old = old_turns(chat)
    question = chat.accept("go on", cycle=9)
    call = {"call_id": "c1", "name": "read_file", "title": "read_file a"}
    chat.push(
        events.ReplyStarted(adapter="openai", model="gpt-4o"),
        events.ReplyFinished(message_id="r9", stop="tool_calls"),
        events.ToolStarted(**call),
        events.ToolFinished(message_id="t9", summary="3 lines", preview="x", status="ok", **call),
        started(),
        compacted("Summary.", *old, before=question),
    )
    chat.reply("Done.", message_id="r10")
    text = chat.text()
    assert text.count("## CodeCompanion") == 4
    assert text.index("Summary · 42 messages") < text.index("go on") < text.index("read_file a") < text.index("Done.")
