"""The context block, the meter and the inspector: the next request and context usage."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path

import pytest

from chat_driver import ChatDriver, make_chat
from codecompanion.wire import events
from harness import Nvim

ITEMS = (
    events.ContextItem(id="i1", kind="rules", label="AGENTS.md", tokens=1200),
    events.ContextItem(id="i2", kind="file", label="lua/foo.lua", tokens=333),
    events.ContextItem(id="i3", kind="image", label="a.png"),
)


def meter(tokens: int, *, exact: bool = True) -> events.Meter:
    """Return a meter event for a window of 128,000 tokens."""
    return events.Meter(
        tokens=tokens, window=128000, ratio=tokens / 128000, exact=exact, edit_at=83200, compact_at=108800
    )


def test_attachments_are_listed_at_the_top(chat_everywhere: ChatDriver) -> None:
    """One line per item, with its size."""
    chat = chat_everywhere
    chat.push(events.ContextItems(items=ITEMS))
    rows = chat.nvim.screen().split("\n")
    assert rows[0] == "> Context:"
    assert rows[1].startswith("> - <rules>AGENTS.md</rules>")
    assert rows[1].endswith("1.2k tokens")
    assert rows[3] == "> - <image>a.png</image>"
    chat.push(events.ContextItems(items=()))
    assert chat.text() == "## Me\n"


def test_a_size_is_not_broken_inside_a_word_after_a_long_line(chat: ChatDriver) -> None:
    """The size is next to the name, in the last row of the name or in the next one."""
    chat.nvim.lua("vim.o.columns = 42")
    for label in ("src/stack.lua", "src/a.lua", "src/" + "x" * 40 + ".lua", "src/" + "x" * 22 + ".lua"):
        chat.push(events.ContextItems(items=(events.ContextItem(id="i", kind="file", label=label, tokens=532),)))
        chat.nvim.wait_for(lambda label=label: label[-9:] in chat.nvim.screen().replace("\n", ""), label)
        assert "532 tokens" in chat.nvim.screen(), label


def test_deleting_a_line_of_the_block_detaches_the_item(chat_everywhere: ChatDriver) -> None:
    """This works with `dd` and for several lines at once; other edits detach nothing."""
    chat = chat_everywhere
    chat.push(events.ContextItems(items=ITEMS))
    chat.nvim.feed("Gitext<Esc>")
    chat.nvim.settle()
    assert chat.sent("detach") == []
    chat.nvim.feed("ggjdd")
    chat.nvim.wait_for(lambda: chat.sent("detach"), "detach")
    assert chat.sent("detach")[0]["items"] == ["i1"]
    chat.push(events.ContextItems(items=ITEMS[1:]))
    chat.nvim.feed("ggjdj")
    chat.nvim.wait_for(lambda: len(chat.sent("detach")) == 2, "detach")
    assert chat.sent("detach")[1]["items"] == ["i2", "i3"]
    chat.push(events.ContextItems(items=()))
    assert chat.text() == "## Me\ntext"


def test_the_block_lists_the_attachments_after_any_edit(chat: ChatDriver) -> None:
    """Typing on the block goes to the input.

    Partial edits of the block are reverted, and only whole attachment lines can be deleted.
    """
    chat.push(events.ContextItems(items=ITEMS))
    chat.accept("a question")
    block = chat.text().split("\n")[:5]
    chat.nvim.feed("gg3GA words<Esc>")
    chat.nvim.wait_for(lambda: chat.input() == " words", "the words in the input")
    chat.nvim.feed("gg3Go line<Esc>2Gcc more<Esc>")
    chat.nvim.wait_for(lambda: chat.input() == " words line more", "the other words in the input")
    for keys in (
        "gg3Gx",
        "gg3GD",
        "gg3Gdw",
        ":3m1<CR>",
        ":2s/AGENTS/X/<CR>",
        ":2t2<CR>",
        "ggdd",
        "gg5Gdd",
        "gg2G~",
        "ggJ",
    ):
        chat.nvim.feed(keys)
        chat.nvim.wait_for(lambda: chat.text().split("\n")[:5] == block, f"the block after {keys}")
        chat.nvim.settle()
        assert chat.text().split("\n")[:5] == block, keys
    assert chat.sent("detach") == []
    assert chat.input() == " words line more"
    assert "a question" in chat.text()
    chat.nvim.feed("gg3GVjd")
    chat.nvim.wait_for(lambda: chat.sent("detach"), "detach")
    assert chat.sent("detach")[0]["items"] == ["i2", "i3"]
    assert chat.text().split("\n")[:4] == [*block[:2], "", "## Me"]


def test_a_detaching_that_is_refused_puts_the_line_back(chat: ChatDriver) -> None:
    """During a turn, the attachment has already been sent."""
    chat.push(events.ContextItems(items=ITEMS))
    before = chat.text()
    chat.nvim.feed("gg3Gdd")
    chat.nvim.wait_for(lambda: chat.sent("detach"), "detach")
    chat.nvim.lua(
        """for _, request in ipairs(require('codecompanion.host').requests) do
             if request.verb == 'detach' then request.callback('Wait until the reply is complete.') end
           end"""
    )
    chat.nvim.wait_for(lambda: "! Wait until the reply is complete." in chat.text(), "the reason")
    assert chat.text().startswith(before.removesuffix("## Me\n"))


@pytest.mark.parametrize("early", [True, False])
def test_undo_right_after_deleting_the_only_line_restores_it(chat: ChatDriver, early: bool) -> None:
    """Although the block is gone and the cursor is in the input, `u` undoes the deletion first.

    After that, it undoes edits of the draft.
    """
    chat.nvim.feed("Gione<Esc>A two<Esc>")
    chat.push(events.ContextItems(items=ITEMS[:1]))
    chat.nvim.feed("gg2Gdd")
    chat.nvim.wait_for(lambda: chat.sent("detach"), "detach")
    marks = events.ViewMarks(undone=(), cleared=(), pinned=(), next_undo="d1", undo_kind="detached")
    if early:
        chat.nvim.feed("u")
    chat.push(events.ContextItems(items=()), marks)
    if not early:
        chat.nvim.feed("u")
    chat.nvim.wait_for(lambda: chat.sent("undo_change"), "undo_change")
    assert chat.sent("undo_change")[0]["change_id"] == "d1"
    assert chat.input() == "one two"
    chat.push(events.ContextItems(items=ITEMS[:1]), events.ViewMarks(undone=(), cleared=(), pinned=()))
    chat.nvim.feed("Gu")
    chat.nvim.wait_for(lambda: chat.input() == "one", "the draft before")
    assert len(chat.sent("undo_change")) == 1


def test_gf_opens_the_file_beside_the_chat(chat: ChatDriver) -> None:
    """The file does not replace the chat in its window."""
    work = Path(chat.nvim.lua("return vim.fn.getcwd()"))
    (work / "lua").mkdir()
    (work / "lua" / "foo.lua").write_text("return 'found it'\n")
    chat.push(events.ContextItems(items=ITEMS))
    chat.nvim.feed("ggjjgf")
    screen = chat.nvim.wait_screen("found it")
    assert "> Context:" in screen


@pytest.mark.slow("28 Neovims")
@pytest.mark.parametrize("key", ["gf", "gF"])
@pytest.mark.parametrize(
    ("text", "at", "place"),
    [
        ("See lua/foo.lua:412 for that.", "lua", (412, 0)),
        ("See lua/foo.lua:412:7.", "foo", (412, 6)),
        ("(lua/foo.lua:412-420)", "foo", (412, 0)),
        ("It is `lua/foo.lua#L10`, I think", "foo", (10, 0)),
        ("**lua/foo.lua#L10-L12**", "foo", (10, 0)),
        ("error in lua/foo.lua(412): no", "foo", (412, 0)),
        ("lua/foo.lua:12:  local x = 1", "foo", (12, 0)),
        ('File "lua/my file.lua:3", oops', "file", (3, 0)),
        ("It is at lua/foo.lua:5 as said", "It", (5, 0)),
        ("lua/foo.lua:99999", "foo", (500, 0)),
        ("lua/foo.lua:0", "foo", (1, 0)),
        ("größe: a/lua/foo.lua:7", "foo", (7, 0)),
        ("no/such.lua:3 but lua/foo.lua:4", "no", (4, 0)),
        ("lua/foo.lua.", "foo", (1, 0)),
    ],
)
def test_gf_opens_the_named_line_in_the_window_beside_the_chat(
    chat: ChatDriver, text: str, at: str, place: tuple[int, int], key: str
) -> None:
    work = Path(chat.nvim.lua("return vim.fn.getcwd()"))
    (work / "lua").mkdir()
    for name in ("foo.lua", "my file.lua"):
        (work / "lua" / name).write_text("".join(f"local line_{n} = {n}\n" for n in range(1, 501)))
    chat.nvim.command("set hidden | belowright vnew | setlocal buftype=")
    other = chat.nvim.lua("return vim.api.nvim_get_current_win()")
    chat.nvim.command("wincmd p")
    mine = chat.nvim.lua("return vim.api.nvim_get_current_win()")
    chat.reply(text)
    chat.nvim.lua("local text, at = ...; vim.fn.search(text); vim.fn.search(at, 'c', vim.fn.line('.'))",
                  "\\V" + text.replace("\\", "\\\\"), "\\V" + at)  # fmt: skip
    chat.nvim.feed(key)
    chat.nvim.wait_lua("return vim.fn.expand('%:e') == 'lua'")
    assert chat.nvim.lua("return vim.api.nvim_get_current_win()") == other
    assert tuple(chat.nvim.lua("return vim.api.nvim_win_get_cursor(0)")) == place
    assert chat.nvim.lua("return vim.bo[vim.api.nvim_win_get_buf(...)].filetype", mine) == "codecompanion"


def test_gf_names_a_missing_file(chat: ChatDriver) -> None:
    chat.reply("no/such.lua:3")
    chat.nvim.lua("vim.fn.search('such')")
    chat.nvim.feed("gF")
    chat.nvim.wait_screen("No file no/such.lua")


def test_the_meter_shows_tokens_window_and_share(chat: ChatDriver) -> None:
    """`~` marks an estimate; thresholds are shown from 50 % on."""
    chat.push(meter(35800, exact=False))
    chat.nvim.wait_screen(r"\n gpt-4o · ~27 % +All")
    assert (
        chat.nvim.lua("return require('codecompanion.chat.state.chat_status').component()") == "ctx~ 35.8k/128.0k 27%%"
    )
    chat.push(meter(36000), events.State(state="streaming", label="streaming"))
    assert chat.nvim.lua("return require('codecompanion').statusline()") == "streaming · ctx 36.0k/128.0k 28%%"
    shown = chat.nvim.lua("return vim.b.codecompanion_chat")
    assert shown["meter"]["tokens"] == 36000
    assert shown["state"] == "streaming"
    assert shown["id"] == chat.id


def test_k_in_the_input_explains_the_signs_of_the_meter(chat: ChatDriver) -> None:
    """Only the signs currently shown are explained."""
    chat.push(events.Meter(tokens=2000, window=32000, ratio=0.0625, exact=False, assumed=True))
    chat.nvim.wait_screen(r"6 % of ~32k")
    chat.nvim.feed("GK")
    chat.nvim.wait_screen(r"~ is an estimate, ~32k is an assumed window \(:help codecompanion-windows\)")
    chat.push(meter(2000))
    chat.nvim.feed("K")
    chat.nvim.wait_screen("Nothing more to show here")


def test_the_meter_is_highlighted_from_80_and_95_percent_on(chat: ChatDriver) -> None:
    """Colour supplements the number and never replaces it."""
    chat.nvim.command("set statusline=mine")
    chat.nvim.command("set laststatus=0")
    chat.setup({"display": {"chat": {"winbar": "never", "window": {"layout": "buffer"}}}})
    chat.open()
    groups = []
    for tokens in (64000, 102400, 121600):
        chat.push(meter(tokens))
        chat.nvim.wait_screen(f"{tokens * 100 // 128000}%")
        row = chat.nvim.row("ctx ")
        groups.append(chat.nvim.highlight_at(row, chat.nvim.screen().split("\n")[row].index("ctx")).get("foreground"))
    assert len(set(groups)) == 3


def test_numbers_take_at_most_five_characters(chat: ChatDriver) -> None:
    """Examples: 999, 1.2k, 35.8k, 1.0M."""
    numbers = [0, 999, 1000, 1234, 35849, 999949, 999950, 1_000_000, 12_345_678]
    shown = chat.nvim.lua("return vim.tbl_map(require('codecompanion.text.numbers').short, ...)", numbers)
    assert shown == ["0", "999", "1.0k", "1.2k", "35.8k", "999.9k", "1.0M", "1.0M", "12.3M"]
    tokens = [128000, 200000, 1000000, 131072]
    windows = chat.nvim.lua("return vim.tbl_map(require('codecompanion.text.numbers').short_window, ...)", tokens)
    assert windows == ["128k", "200k", "1M", "131.1k"]


def test_the_inspector_lists_the_next_request(chat: ChatDriver) -> None:
    """One line per message, the sum equals the meter, <CR> opens a message."""
    rows = [
        {"id": "s", "role": "system", "tag": "", "name": "", "tokens": 1200, "cycle": 0, "age": 0, "state": "live"},
        {"id": "t", "role": "tool", "tag": "", "name": "grep", "tokens": 30, "cycle": 1, "age": 5, "state": "cleared"},
    ]
    for row in rows:
        row["preview"] = f"preview of {row['id']}\nsecond line"
    chat.answer("inspect", {"rows": rows, "total": 1230, "window": 128000})
    chat.answer("show_original", {"title": "grep", "text": "everything", "filetype": "text", "state": "cleared"})
    chat.push(meter(1230))
    chat.nvim.feed("gd")
    screen = chat.nvim.wait_screen(r"# 1\.2k of 128k tokens \(0 %\), 2 messages")
    assert "grep: preview of t second line" in screen
    assert "1.2k  sum" in screen
    chat.nvim.feed("j<CR>")
    chat.nvim.wait_screen("everything")
    assert chat.sent("show_original")[0]["item"] == "t"


@pytest.mark.parametrize(("columns", "role"), [(80, "user/open file"), (40, "open file")])
def test_the_inspector_names_the_plugins_messages_in_words(
    nvim_factory: Callable[..., Nvim], columns: int, role: str
) -> None:
    """A word that the state already shows is not repeated."""
    chat = make_chat(nvim_factory, size=(columns, 24))
    common = {"role": "user", "tokens": 30, "cycle": 1, "age": 0, "preview": "text"}
    rows = [
        common | {"id": "a", "tag": "looking_at", "state": "live"},
        common | {"id": "b", "tag": "compact_summary", "state": "summary"},
    ]
    chat.answer("inspect", {"rows": rows, "total": 60, "window": 128_000})
    chat.push(meter(60))
    chat.nvim.feed("gd")
    screen = chat.nvim.wait_screen(rf"live +{role} +text")
    assert re.search(r"summary user +text", screen)


def test_the_inspector_shows_cache_and_cost_and_compares_with_the_last_request(chat: ChatDriver) -> None:
    """R-546: `hit` or `miss` and US dollars if known; `=` shows the new messages."""
    system = {"id": "s", "role": "system", "tokens": 1200, "state": "live", "cache": "hit", "cost": 0.00012}
    user = {"id": "u", "role": "user", "tokens": 30, "state": "live", "preview": "hi", "cache": "miss", "cost": 0.0003}
    chat.answer("inspect", {"rows": [system, user], "total": 1230, "window": 128000, "cost": 0.00042})
    chat.answer("preview", {"title": "Next", "text": "# Since\n+ user", "filetype": "diff", "state": ""})
    chat.nvim.feed("gd")
    screen = chat.nvim.wait_screen(r"1\.2k +98 %   hit  \$0\.0001")
    assert " miss  $0.0003" in screen
    assert "1.2k  sum, ~$0.0004" in screen
    chat.nvim.feed("=")
    chat.nvim.wait_screen("# Since")
    assert chat.sent("preview")[0]["against"] == "last_request"


def test_the_views_work_in_80_columns_and_in_a_float(chat: ChatDriver) -> None:
    """The important parts are not cut off."""
    chat.nvim.request("nvim_ui_try_resize", 80, 24)
    chat.push(events.ContextItems(items=ITEMS), meter(35800))
    screen = chat.nvim.wait_screen(r"\n gpt-4o · 27 % +All")
    assert "ctx" not in next(line for line in screen.split("\n") if line.startswith("## Me"))
    chat.nvim.lua("require('codecompanion.chat').toggle(); require('codecompanion.chat').toggle({ layout = 'float' })")
    screen = chat.nvim.wait_screen(r"│ gpt-4o · 27 % +│\n│> Context")
    assert "CodeCompanion" in screen
