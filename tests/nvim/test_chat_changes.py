"""Undo in the buffer: lines, cards, folds, marks (R-361, R-516, R-545)."""

from __future__ import annotations

import re
from typing import Any

import pytest

from chat_driver import ChatDriver, make_chat
from codecompanion.wire import events
from test_chat_compaction import compacted, old_turns, started


def tool(chat: ChatDriver, call_id: str = "c1") -> None:
    """Run a tool call and its result."""
    fields = {"call_id": call_id, "name": "read_file", "title": f"read_file {call_id}.txt"}
    chat.push(events.ToolStarted(**fields))
    chat.push(
        events.ToolFinished(message_id=f"m-{call_id}", summary="2 lines", preview="1\na\n2", status="ok", **fields)
    )


def edited(*call_ids: str, change_id: str = "e1") -> events.ContextEdited:
    return events.ContextEdited(
        cleared=len(call_ids), tokens_before=48_200, tokens_after=21_700, call_ids=call_ids, change_id=change_id
    )


def marks(undone=(), cleared=(), pinned=(), gone=(), **top: str) -> events.ViewMarks:
    by_kind = {"compacted": tuple(gone)} if gone else {}
    return events.ViewMarks(undone=undone, cleared=cleared, pinned=pinned, gone=by_kind, **top)


def put_cursor(chat: ChatDriver, text: str) -> None:
    row = next(number for number, line in enumerate(chat.text().split("\n"), 1) if text in line)
    chat.nvim.lua("vim.api.nvim_win_set_cursor(0, { ..., 0 })", row)


def test_the_line_of_an_edit_shows_its_undo_key_and_that_it_is_undone(chat: ChatDriver) -> None:
    """R-545: only the newest change offers the key."""
    tool(chat, "c1")
    tool(chat, "c2")
    chat.push(edited("c1"))
    chat.push(edited("c2", change_id="e2"))
    screen = chat.nvim.wait_screen("✂ 1 tool result cleared · 48.2k → 21.7k tokens · u undo")
    assert screen.count("u undo") == 1
    assert len(re.findall("c[12].txt · cleared", screen)) == 2
    chat.push(marks(undone=("e2",), cleared=("m-c1",), next_undo="e1", next_redo="e2"))
    screen = chat.nvim.wait_screen("undone · <C-r> redo · ✂ 1 tool result cleared")
    assert len(re.findall("c[12].txt · cleared", screen)) == 1
    assert screen.count("u undo") == 1
    chat.push(edited("c2", change_id="e3"))
    screen = chat.nvim.wait_screen("undone · ✂")
    assert "C-r" not in screen, "a new change ends what could be redone"


def test_change_keys_without_a_change_give_a_hint(chat: ChatDriver) -> None:
    """Each key gives one hint; `r` on the input header does not wait for a character as Vim's `r` does."""
    chat.accept("question")
    chat.push(events.ReplyStarted(adapter="openai", model="gpt-4o"), events.Text(text="answer"))
    chat.push(events.ReplyFinished(message_id="r", stop="stop"), events.TurnFinished(reason="done"))
    row = chat.text().split("\n").index("answer")
    for key, said in (
        ("]e", "No file change in this chat"),
        ("[e", "No file change in this chat"),
        ("gX", "No file change in this chat"),
        ("j0gR", "No file here to open, and none changed in this chat"),
    ):
        chat.nvim.lua("vim.api.nvim_win_set_cursor(0, { ..., 0 })", row + 1)
        chat.nvim.feed(key)
        chat.nvim.wait_screen(said)
    for line in ("answer", "## Me"):
        lines = chat.text().split("\n")
        last = len(lines) - lines[::-1].index(line)
        chat.nvim.lua("vim.api.nvim_win_set_cursor(0, { ..., 0 })", last)
        chat.nvim.feed("r")
        chat.nvim.wait_screen("Nothing to restore here")
        assert not chat.nvim.blocked()


def test_a_truncated_result_shows_how_much_of_it_is_sent(chat: ChatDriver) -> None:
    """R-524: the result is not called cleared, even when the host sends the view again."""
    tool(chat, "c1")
    tool(chat, "c2")
    cut = events.ContextEdited(
        cleared=1, tokens_before=9_200, tokens_after=6_100, call_ids=("c1", "c2"), change_id="e1",
        changed=("m-c1", "m-c2"), cut={"m-c2": 34},
    )  # fmt: skip
    chat.push(cut)
    screen = chat.nvim.wait_screen("✂ 1 tool result cleared, 1 cut to 34 % · 9.2k → 6.1k tokens · u undo")
    assert screen.count("read_file c1.txt · cleared") == 1
    assert screen.count("read_file c2.txt · cut to 34 %") == 1
    before = chat.nvim.screen()
    chat.push(marks(cleared=("m-c1", "m-c2"), cut={"m-c2": 34}, next_undo="e1"))
    assert chat.nvim.screen() == before
    put_cursor(chat, "c2.txt")
    chat.nvim.wait_screen(r"read_file c2.txt · cut to 34 % +K whole · r restore")
    chat.nvim.feed("r")
    chat.nvim.wait_for(lambda: chat.sent("restore_message"), "the request")
    chat.push(marks(cleared=("m-c1", "m-c2"), next_undo="e1"))
    chat.nvim.wait_screen("read_file c2.txt · cleared +K original · r restore")
    assert "c2.txt · cut to" not in chat.nvim.screen()


def test_the_lines_of_two_edits_in_one_request_are_in_order(chat: ChatDriver) -> None:
    """The newer line used to be above the older one; `u` on either line undoes the edit that can be undone."""
    tool(chat, "c1")
    tool(chat, "c2")
    chat.push(edited("c1"))
    cut = {"cut": {"m-c2": 50}, "changed": ("m-c2",)}
    chat.push(
        events.ContextEdited(
            cleared=0, tokens_before=21_700, tokens_after=9_000, call_ids=("c2",), change_id="e2", **cut
        )
    )
    first = "✂ 1 tool result cleared · 48.2k → 21.7k tokens"
    second = "✂ 1 tool result cut to 50 % · 21.7k → 9.0k tokens"
    chat.nvim.wait_screen(rf"{first}\s+{second} · u undo")
    to_the_edits = """
      for _, mark in ipairs(vim.api.nvim_buf_get_extmarks(0, -1, 0, -1, { details = true })) do
        if #(mark[4].virt_lines or {}) > 1 then vim.api.nvim_win_set_cursor(0, { mark[2] + 1, 0 }) end
      end"""
    chat.nvim.lua(to_the_edits)
    chat.nvim.feed("u")
    chat.nvim.wait_for(lambda: chat.sent("undo_change"), "the request")
    assert chat.sent("undo_change")[0]["change_id"] == "e2"
    chat.push(marks(undone=("e2",), cleared=("m-c1",), next_undo="e1", next_redo="e2"))
    chat.nvim.wait_screen(rf"{first} · u undo\s+undone · <C-r> redo · {second}")


def test_an_undone_card_is_closed_its_turns_are_open_and_redo_folds_them_again(chat: ChatDriver) -> None:
    """R-545: this includes changes undone by a provider switch, which offer no redo key (R-542)."""
    old = old_turns(chat)
    chat.push(started(), compacted("## 1. Intent\nthe summary", *old))
    chat.nvim.wait_screen("▸ your messages 1–3 · 6 messages summarised")
    chat.nvim.request("nvim_ui_try_resize", 40, 30)
    chat.nvim.wait_screen(r"▸ your messages 1–3 · 6 summarised\n")
    chat.nvim.request("nvim_ui_try_resize", 100, 30)
    before = chat.text()
    put_cursor(chat, "Summary · 42")
    chat.nvim.feed("u")
    chat.nvim.wait_for(lambda: chat.sent("undo_change"), "the request")
    assert chat.sent("undo_change")[0]["change_id"] == "k"
    chat.push(marks(undone=("k",), next_redo="k"))
    screen = chat.nvim.wait_screen("▸ undone · <C-r> redo · Summary · 42 messages")
    assert "the summary" not in screen
    assert "messages summarised" not in screen
    assert "old answer 1" in screen
    chat.push(marks(undone=("k",)))
    assert "▸ undone · Summary · 42 messages" in chat.nvim.wait_screen("undone · Summary")
    chat.push(marks(next_undo="k", gone=old))
    screen = chat.nvim.wait_screen("▸ your messages 1–3 · 6 messages summarised")
    assert "the summary" in screen
    assert "old answer 1" not in screen
    assert chat.text() == before


def test_redo_draws_a_card_in_its_policys_form(chat: ChatDriver) -> None:
    """R-327, R-545: a durable summary is a closed card, even after undo and redo."""
    old_turns(chat)
    made = compacted("## 1. Intent\nthe summary")
    fields = {name: getattr(made, name) for name in made.__struct_fields__}
    chat.push(started(), events.Compacted(**fields | {"title": "History Summary", "folded": True}))
    chat.nvim.wait_screen("▸ History Summary")
    chat.push(marks(undone=("k",), next_redo="k"))
    chat.nvim.wait_screen("▸ undone · <C-r> redo · History Summary")
    chat.push(marks(next_undo="k"))
    screen = chat.nvim.wait_screen("▸ History Summary · 42 messages")
    assert "the summary" not in screen


def test_the_next_compaction_also_folds_restored_turns(chat: ChatDriver) -> None:
    """R-545: restored turns are in the context again, so they are folded again."""
    old = old_turns(chat)
    chat.push(started(), compacted("## 1. Intent\nfirst", *old))
    chat.push(marks(undone=("k",), next_redo="k"))
    chat.push(events.CompactionStarted(compaction_id="k2", trigger="manual", summariser="m"))
    chat.push(compacted("## 1. Intent\nsecond", *old, key="k2"))
    screen = chat.nvim.wait_screen("second")
    assert "old answer" not in screen
    assert "first" not in screen
    assert screen.count("6 messages summarised") == 1


def test_clearing_leaves_no_old_marks(chat: ChatDriver) -> None:
    """After `/clear` or its undo, marks of tools, edits, cards and pins do not pile up on the input."""
    chat.accept("question", tokens=7)
    tool(chat, "c1")
    tool(chat, "c2")
    chat.push(edited("c1"), edited("c2", change_id="e2"))
    chat.push(marks(cleared=("m-c1",), undone=("e2",), next_undo="e1", next_redo="e2"))
    chat.push(started(), compacted("## 1. Intent\nthe summary"))
    chat.nvim.wait_screen("u undo")
    chat.push(events.Redrawn())
    clean = chat.nvim.wait_for(lambda: "Session" not in chat.nvim.screen() and chat.nvim.screen(), "the cleared chat")
    for left in ("✂", "✓", "cleared", "undo", "tokens", "compacted"):
        assert left not in clean, left
    chat.accept("new question")
    tool(chat, "c3")
    assert chat.nvim.wait_screen("✓").count("✓") == 1


def test_a_restored_chat_shows_undone_and_pinned_items(chat: ChatDriver) -> None:
    """R-545: the same before and after a restart."""
    entries = (
        events.Entry(kind="user", text="old question", message_id="m1", pinned=True),
        events.Entry(kind="reply", text="old answer", message_id="m2"),
        events.Entry(kind="compacted", text="the summary", messages=2, cycles=(1, 1), change_id="k", undone=True),
        events.Entry(kind="user", text="new question", message_id="m3"),
        events.Entry(kind="edited", messages=3, tokens_before=9, tokens_after=5, change_id="e", undone=True),
    )
    chat.push(marks(undone=("k", "e"), pinned=("m1",), next_redo="e"))
    chat.push(events.Restored(entries=entries, first=True, last=True))
    screen = chat.nvim.wait_screen("undone · <C-r> redo · ✂ 3 tool results cleared")
    assert "▸ undone · Summary · 2 messages" in screen
    assert "old answer" in screen
    assert re.search(r"## Me +⚑ pinned", screen)
    chat.push(marks(undone=("e",), next_undo="k", next_redo="e", gone=("m1", "m2")))
    screen = chat.nvim.wait_screen("▸ 2 messages summarised")
    assert "old answer" not in screen


SOON = "This just appeared"


def test_a_key_ignores_a_line_that_just_moved_under_the_cursor(chat: ChatDriver) -> None:
    """A stray `u` would undo an edit, and `r` and `gX` would change unread items; held keys are ignored too."""
    unread = "require('codecompanion.chat.buffer.unread')"
    chat.nvim.lua(f"{unread}.UNREAD_MS = 1e9")
    tool(chat, "c1")
    put_cursor(chat, "read_file c1.txt")
    chat.push(edited("c1"))
    chat.nvim.wait_screen("✂ 1 tool result cleared")
    for key in ("r", "r", "gX", "K"):
        chat.nvim.command("echo ''")
        chat.nvim.feed(key)
        chat.nvim.wait_screen(SOON)
    chat.nvim.lua("vim.api.nvim_win_set_cursor(0, { ..., 0 })", chat.text().split("\n").index("## Me"))
    chat.push(edited("c1", change_id="e2"))
    chat.nvim.command("echo ''")
    chat.nvim.feed("uu")
    chat.nvim.wait_screen(SOON)
    verbs = ("restore_message", "undo_change", "show_original", "revert_changes")
    assert [verb for verb in verbs if chat.sent(verb)] == []
    chat.nvim.lua(f"{unread}.UNREAD_MS = 0")
    chat.nvim.feed("u")
    chat.nvim.wait_for(lambda: chat.sent("undo_change"), "the undo")
    put_cursor(chat, "read_file c1.txt")
    chat.nvim.feed("r")
    chat.nvim.wait_for(lambda: chat.sent("restore_message"), "the restoring")


def test_a_key_acts_at_once_where_the_user_moved_the_cursor(chat: ChatDriver) -> None:
    chat.nvim.lua("require('codecompanion.chat.buffer.unread').UNREAD_MS = 1e9")
    tool(chat, "c1")
    chat.push(edited("c1"))
    put_cursor(chat, "read_file c1.txt")
    chat.nvim.feed("r")
    chat.nvim.wait_for(lambda: chat.sent("restore_message"), "the restoring")


@pytest.mark.parametrize("columns", [60, 80, 200])
def test_a_cleared_line_shows_its_keys_only_under_the_cursor(nvim_factory: Any, columns: int) -> None:
    """R-516: this works for folded and open lines, without moving any text."""
    chat = make_chat(nvim_factory, size=(columns, 30))
    tool(chat, "c1")
    tool(chat, "c2")
    chat.push(edited("c1"))
    chat.push(edited("c2", change_id="e2"))
    screen = chat.nvim.wait_screen("c2.txt · cleared")
    assert "K original" not in screen

    def rows(shown: str) -> list[str]:
        return [row.replace("K original · r restore", "").rstrip() for row in shown.split("\n")[:-2]]

    plain = rows(screen)
    for name, other in (("c1", "c2"), ("c2", "c1")):
        put_cursor(chat, f"read_file {name}.txt")
        screen = chat.nvim.wait_screen(f"{name}.txt · cleared +K original · r restore")
        assert screen.count("K original") == 1
        assert not re.search(f"{other}.txt.*K original", screen)
        assert rows(screen) == plain, "nothing moves"
    chat.nvim.feed("<Tab>")
    open_line = "▾ ✓ read_file c2.txt.* · cleared"
    chat.nvim.wait_screen(open_line + (" +K original · r restore" if columns > 60 else ""))  # there it has no room
    chat.nvim.feed("G")
    chat.nvim.wait_for(lambda: "K original" not in chat.nvim.screen(), "no keys")
    put_cursor(chat, "read_file c1.txt")
    chat.nvim.wait_screen("K original")
    chat.nvim.command("split | enew")
    chat.nvim.wait_for(lambda: "K original" not in chat.nvim.screen(), "no keys in a window that is left")


def test_a_cleared_line_shows_the_configured_keys(nvim_factory: Any) -> None:
    keymaps = {"show_original": {"modes": {"n": "gk"}}, "restore": False}
    options = {"interactions": {"chat": {"keymaps": keymaps}}}
    chat = make_chat(nvim_factory, options={**options, "display": {"chat": {"window": {"layout": "buffer"}}}})
    tool(chat, "c1")
    chat.push(edited("c1"))
    put_cursor(chat, "read_file c1.txt")
    assert "r restore" not in chat.nvim.wait_screen("c1.txt · cleared +gk original")


def test_a_cleared_result_is_shown_by_gf_and_restored_by_r(chat: ChatDriver) -> None:
    """R-516; elsewhere both keys keep their normal function."""
    tool(chat, "c1")
    chat.push(edited("c1"))
    chat.answer("show_original", {"title": "read_file", "text": "the original", "filetype": "text", "state": "cleared"})
    put_cursor(chat, "read_file c1.txt")
    chat.nvim.feed("gf")
    chat.nvim.wait_screen("the original")
    chat.nvim.feed("q")
    put_cursor(chat, "read_file c1.txt")
    chat.answer("restore_message", "Restored: read_file c1.txt, 20 tokens more.")
    chat.nvim.feed("r")
    chat.nvim.wait_screen("Restored: read_file c1.txt")
    assert chat.sent("restore_message")[0]["item"] == "m-c1"
    chat.push(marks())
    assert "K original" not in chat.nvim.screen()
