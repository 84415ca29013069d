"""Notices in a chat keep their place when the chat is redrawn (lesson 54)."""

from __future__ import annotations

import re
from collections.abc import Callable

import pytest

from chat_driver import ChatDriver, make_chat
from codecompanion.session.chat.buffer_entries import ASKED_TO_GO_ON
from codecompanion.wire import events
from codecompanion.wire.events import Entry, Severity
from harness import Nvim

USER = Entry(kind="user", text="question", message_id="m1")
REPLY = Entry(kind="reply", text="half", message_id="r", cut=True, adapter="openai", model="gpt-4o")
STOPPED = Entry(kind="note", text="Stopped.", ended="stopped")


def draw_again(chat: ChatDriver, *entries: Entry) -> str:
    chat.nvim.command("edit")
    chat.push(events.Redrawn(), events.Restored(entries=entries, first=True, last=True))
    return chat.text()


def test_notices_reappear_once_at_their_place(chat: ChatDriver) -> None:
    """The end of the turn comes from the log and the rest from this Neovim; each sentence appears once, in order."""
    chat.push(events.Notice(level=Severity.WARN, text="before all"))
    chat.accept("question")
    chat.push(events.Notice(level=Severity.WARN, text="below the question"))
    chat.push(events.ReplyStarted(adapter="openai", model="gpt-4o"), events.Text(text="half"))
    chat.push(events.ReplyFinished(message_id="r", stop="cut"), events.TurnFinished(reason="stopped"))
    chat.push(events.Notice(level=Severity.ERROR, text="after the turn"))
    before = chat.text()
    assert before.index("below the question") < before.index("half") < before.index("Stopped.")
    assert draw_again(chat, USER, REPLY, STOPPED) == before
    assert draw_again(chat, USER, REPLY, STOPPED) == before


def test_a_prompt_to_continue_is_shown_between_the_parts_of_a_reply(chat: ChatDriver) -> None:
    """The continuation prompt that the model reads is shown both live and after a redraw."""
    chat.accept("question")
    chat.push(events.ReplyStarted(adapter="openai", model="gpt-4o"), events.Text(text="half"))
    chat.push(events.ReplyFinished(message_id="r", stop="length"))
    chat.push(events.Notice(level=Severity.INFO, text=ASKED_TO_GO_ON))
    chat.push(events.ReplyStarted(adapter="openai", model="gpt-4o"), events.Text(text="whole"))
    chat.push(events.ReplyFinished(message_id="r2", stop="stop"), events.TurnFinished(reason="done"))
    before = chat.text()
    assert before.count("## CodeCompanion") == 1
    half = Entry(kind="reply", text="half", message_id="r", adapter="openai", model="gpt-4o", opens=True)
    whole = Entry(kind="reply", text="whole", message_id="r2", adapter="openai", model="gpt-4o", opens=False)
    note = Entry(kind="note", text=ASKED_TO_GO_ON)
    assert draw_again(chat, USER, half, note, whole) == before
    chat.nvim.lua("require('codecompanion.chat').last_chat().notices = {}")
    assert draw_again(chat, USER, half, note, whole) == before


def test_a_notice_is_below_its_message_in_a_later_piece(chat: ChatDriver) -> None:
    chat.accept("question")
    chat.push(events.Notice(level=Severity.WARN, text="an old word"))
    chat.nvim.command("edit")
    newest = Entry(kind="user", text="newest", message_id="m9")
    chat.push(
        events.Redrawn(),
        events.Restored(entries=(newest,), first=True, last=False),
        events.Restored(entries=(USER,), first=False, last=True),
    )
    lines = [line for line in chat.text().split("\n") if line and not line.startswith("## ")]
    assert lines == ["question", "! an old word", "newest"]


def test_a_resumed_chat_shows_the_end_of_its_last_turn_and_a_remedy(chat: ChatDriver) -> None:
    """Both come from the log alone, because nothing from another Neovim is remembered."""
    entries = (USER, REPLY, STOPPED)
    chat.push(events.Restored(entries=entries, first=True, last=True))
    chat.nvim.wait_screen(r"· Stopped\. · gr retries")
    assert "cut off" in chat.nvim.screen()


def test_notices_on_opening_are_not_repeated(chat: ChatDriver) -> None:
    """The host sends the notices again when a chat is reopened, but each is shown once."""
    opened = {"adapter": "openai", "model": "gpt-4o", "window": 1000, "policy": "codecompanion", "title": ""}
    warning = events.Notice(level=Severity.WARN, text="The policy is no longer configured.")
    restored = events.Restored(entries=(USER,), first=True, last=True)
    chat.id = "0123456789abcdef"
    chat.nvim.lua("require('codecompanion.chat').resume(...)", chat.id)
    for times in (1, 2):
        chat.nvim.wait_for(lambda times=times: len(chat.sent("open_chat")) == 1 + times, "open_chat")
        chat.push(events.ChatOpened(chat=chat.id, resumed=True, **opened), warning, restored)
        assert chat.text().count("no longer configured") == 1
        chat.nvim.lua(
            """local chat = require('codecompanion.chat').last_chat()
               chat.attached = 'no'
               require('codecompanion.chat.wire.redraw_chat').redraw(chat)"""
        )
    chat.push(events.ChatOpened(chat=chat.id, resumed=True, **opened), warning, restored)
    assert chat.text().count("no longer configured") == 1
    assert chat.text().index("question") < chat.text().index("no longer configured")


def test_a_returned_message_has_no_hint_to_ask_again(chat: ChatDriver) -> None:
    """The message was never stored, so there is nothing to ask again; the notice says where the message is."""
    number = chat.submit("important")
    chat.push(events.TurnFinished(reason="failed", error="The disk is full."))
    chat.push(events.SubmitFailed(submit_id=number, text="important", error="Not sent; your message is in the input."))
    assert "retries" not in chat.nvim.screen()
    assert "✗ Not sent" in chat.text()
    assert chat.input() == "important"
    number = chat.submit("important")
    chat.push(events.State(state="cancelling", label="stopping"))
    chat.push(events.SubmitFailed(submit_id=number, text="important", error="Not sent; you stopped."))
    assert "· Not sent; you stopped." in chat.text(), "who stopped needs no error"


def test_the_return_of_a_long_message_is_reported_in_the_visible_area(chat: ChatDriver) -> None:
    """The reason is above the input; if the input fills the window, it is also shown in the command line."""
    text = "\n".join(f"line {number}" for number in range(200))
    number = chat.submit(text)
    chat.push(events.SubmitFailed(submit_id=number, text=text, error="Not sent: 11,910 tokens, 8,192 fit."))
    chat.nvim.wait_screen("Not sent: 11,910 tokens, 8,192 fit.")
    assert chat.input() == text


def test_a_refused_message_is_reported_below_its_end_during_typing(chat: ChatDriver) -> None:
    """In insert mode, Neovim's "-- INSERT --" erases the command line.

    The reason therefore stays below the message and disappears with it.
    """
    lines = [f"line {number}" for number in range(60)]
    chat.nvim.feed("Gi")
    chat.nvim.request("nvim_paste", "\n".join(lines), True, -1)
    chat.nvim.feed("<C-s>")
    chat.nvim.wait_for(lambda: chat.sent("submit"), "submit")
    why = "Not sent: there is no tool or group 'reviw'; did you mean @{review}? Your message is back in the input."
    number = chat.sent("submit")[-1]["submit_id"]
    chat.push(events.SubmitFailed(submit_id=number, text="\n".join(lines), error=why))
    screen = chat.nvim.wait_screen("line 59\n✗ Not sent: there is no tool or group 'reviw'; did you mean @{review}?")
    assert "-- INSERT --" in screen
    chat.nvim.feed("<CR>more<CR>and more")
    chat.nvim.wait_screen("and more\n✗ Not sent")
    chat.nvim.feed("<Esc>")
    chat.nvim.lua("vim.api.nvim_buf_set_lines(0, -12, -1, false, {})")
    chat.submit("short")
    assert "Not sent" not in chat.nvim.screen()


@pytest.mark.parametrize(("key", "named"), [("gm", "gm"), (False, ":CodeCompanion adapter")])
def test_an_error_names_the_configured_key(nvim_factory: Callable[..., Nvim], key: str | bool, named: str) -> None:
    entry = key and {"modes": {"n": key}}
    chat = make_chat(nvim_factory, options={"interactions": {"chat": {"keymaps": {"change_adapter": entry}}}})
    chat.accept("question")
    chat.push(events.TurnFinished(reason="failed", error="No key. Set it, or choose another adapter with ga."))
    assert f"✗ No key. Set it, or choose another adapter with {named}.\n" in chat.text()


def meter(*, paused: bool) -> events.Meter:
    return events.Meter(tokens=100, window=1000, ratio=0.1, exact=True, edit_at=0.5, compact_at=0.8, paused=paused)


@pytest.mark.parametrize("loaded", [True, False])
def test_a_notice_about_a_pause_disappears_with_the_pause(chat: ChatDriver, loaded: bool) -> None:
    """R-545: after `/redo` nothing is paused, whatever was reported since, and a redraw does not restore the notice."""
    chat.accept("question")
    before = chat.text()
    told = events.Notice(level=Severity.WARN, text="Compaction is paused until then.", while_paused=True)
    chat.push(meter(paused=True), told, events.Notice(level=Severity.WARN, text="something else"))
    assert "Compaction is paused until then." in chat.text()
    if not loaded:
        chat.nvim.command("enew | bdelete #")
    chat.push(meter(paused=True))
    chat.push(meter(paused=False))
    chat.push(meter(paused=False))
    if loaded:
        assert chat.text() == before.replace("\n## Me\n", "\n! something else\n\n## Me\n")
        assert draw_again(chat, USER) == chat.text()
    else:
        chat.nvim.command("buffer #")
        chat.push(events.Redrawn(), events.Restored(entries=(USER,), first=True, last=True))
    assert "something else" in chat.text()
    assert "Compaction is paused until then." not in chat.text()


@pytest.mark.parametrize(("text", "row"), [("x" * 50, "\ngr retries"), ("x" * 20, "✗ x+ · gr retries")])
def test_a_hint_is_not_broken_inside_a_word(nvim_factory: Callable[..., Nvim], text: str, row: str) -> None:
    """Virtual text ignores 'linebreak', so a word that does not fit starts the next row, without a separator."""
    chat = make_chat(nvim_factory, size=(60, 24))
    chat.accept("question")
    chat.push(events.TurnFinished(reason="failed", error=text + "x"))
    screen = chat.nvim.wait_screen("retries")
    assert re.search(row, screen), screen


AWAY = (
    "llama_cpp: no connection to http://127.0.0.1:{port}/v1 (connection refused)."
    " Start the server with: llama-server -m {model}"
)


def test_no_word_of_the_status_of_a_local_server_is_broken(nvim_factory: Callable[..., Nvim]) -> None:
    """In 40 columns, words wrap correctly whatever the length of the last row."""
    chat = make_chat(nvim_factory, size=(40, 24))
    for length in range(1, 36, 2):
        model = "m" * length
        chat.accept("question")
        chat.push(events.TurnFinished(reason="failed", error=AWAY.format(port=8080, model=model)))
        screen = chat.nvim.wait_screen(rf"(?m)-m\s+{model}\b.*\s*gr retries")
        shown = [line.rstrip() for line in screen.split("\n")]
        assert any(line == "gr retries" or line.endswith("· gr retries") for line in shown), screen
        rows = " ".join(shown)
        assert all(word in rows for word in AWAY.split() if not re.search("[{/]", word)), screen


@pytest.mark.parametrize("resumed", [False, True])
@pytest.mark.parametrize("how", ["message", "continue", "notice"])
def test_a_hint_is_shown_until_something_follows(chat: ChatDriver, how: str, resumed: bool) -> None:
    """`gr retries` next to "Stopped." disappears with the next text, "Stopped." once a new question is answered."""
    if resumed:
        chat.push(events.Restored(entries=(USER, REPLY, STOPPED), first=True, last=True))
    else:
        chat.accept("question")
        chat.push(events.ReplyStarted(adapter="openai", model="gpt-4o"), events.Text(text="half"))
        chat.push(events.ReplyFinished(message_id="r", stop="cut"), events.TurnFinished(reason="stopped"))
    chat.nvim.wait_screen(r"· Stopped\. · gr retries")
    if how == "notice":
        chat.push(events.Notice(level=Severity.WARN, text="something else"))
    else:
        chat.push(events.State(state="preparing"))
    if how == "message":
        chat.accept("next")
    chat.push(events.ReplyStarted(adapter="openai", model="gpt-4o"), events.Text(text="and the rest"))
    assert "retries" not in chat.nvim.wait_screen("and the rest")
    assert ("Stopped." in chat.text()) is (how == "message")


@pytest.mark.parametrize("loaded", [True, False])
def test_the_line_about_files_that_wait_for_trust_follows_the_decisions(chat: ChatDriver, loaded: bool) -> None:
    """It keeps the hint of the failure above it, also in a redrawn chat; an unloaded chat follows, too."""
    chat.accept("question")
    chat.push(events.TurnFinished(reason="failed", error="The server said no."))
    if not loaded:
        chat.nvim.command("enew | bdelete #")
    chat.push(events.TrustWaits(waits="AGENTS.md", count=1))
    if not loaded:
        chat.nvim.command("buffer #")
    both = r"✗ The server said no\. · gr retries\s+! Not loaded until trusted: AGENTS\.md · gtr to review"
    failed = Entry(kind="note", text="The server said no.", level=Severity.ERROR, ended="failed")
    draw_again(chat, USER, failed)
    chat.nvim.wait_screen(both)
    if not loaded:
        chat.nvim.command("enew | bdelete #")
    chat.push(events.TrustWaits(waits=""))
    if not loaded:
        chat.nvim.command("buffer #")
        chat.push(events.Redrawn(), events.Restored(entries=(USER, failed), first=True, last=True))
    assert "AGENTS.md" not in chat.text()
    chat.nvim.wait_screen(r"✗ The server said no\. · gr retries")
    chat.push(events.State(state="preparing"))
    assert "retries" not in chat.nvim.screen()


def test_an_unsent_message_is_marked_until_it_is_sent(chat: ChatDriver) -> None:
    """`Not sent` is not shown above the answer to that very message."""
    why = "Not sent: 6,029 tokens, 6,000 fit. Your message is back in the input."
    number = chat.submit("a long question")
    chat.push(events.SubmitFailed(submit_id=number, text="a long question", error=why))
    chat.push(events.TurnFinished(reason="limit", error=why, unsent=True))
    assert why in chat.text()
    number = chat.submit("a long question")
    assert "Not sent" not in chat.text()
    sent = {"message_id": "m1", "text": "a long question", "cycle": 1, "tokens": 9, "number": 1}
    chat.push(events.MessageSent(submit_id=number, **sent))
    chat.push(events.TurnFinished(reason="failed", error="Not sent: 6,100 tokens, 6,000 fit.", unsent=True))
    assert "Not sent" in chat.text()
    chat.push(events.ReplyStarted(adapter="openai", model="gpt-4o"), events.Text(text="because"))
    assert "Not sent" not in chat.text()
    assert "Not sent" not in draw_again(chat, USER, REPLY)
