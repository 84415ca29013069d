"""Layout of the chat window in small terminals: nothing important is cut off."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from chat_driver import INIT, ChatDriver, make_chat
from codecompanion.wire import events
from harness import Nvim, find_nvim, other_nvims

METER = events.Meter(tokens=35_800, window=128_000, ratio=0.28, exact=True, edit_at=83_200, compact_at=108_800)
OUTCOME = "exit 3 · 302 lines"
COMMAND = "run_command for i in $(seq 1 300); do echo test line $i of a long test run; done; exit 3"


OTHER_WIDTHS = """local chat = require('codecompanion.chat').last_chat()
   local widths = {}
   for _, win in ipairs(vim.api.nvim_tabpage_list_wins(0)) do
     if vim.api.nvim_win_get_buf(win) ~= chat.bufnr then table.insert(widths, vim.api.nvim_win_get_width(win)) end
   end
   return widths"""


def opened(nvim_factory: Callable[..., Nvim], size: tuple[int, int], **options: object) -> ChatDriver:
    """Open a chat with the plugin's default layout next to a file."""
    before = str(options.pop("before", ""))
    chat = ChatDriver(nvim_factory(init=INIT + before, size=size))
    chat.setup(options)
    chat.nvim.command("file code.py")
    chat.open()
    chat.nvim.wait_screen("## Me")
    return chat


def windows(chat: ChatDriver) -> list[tuple[bool, int]]:
    """Return (is a float, width) for each window of the chat."""
    found = chat.nvim.lua(
        """local chat = require('codecompanion.chat').last_chat()
           return vim.tbl_map(function(win)
             return { vim.api.nvim_win_get_config(win).relative ~= '', vim.api.nvim_win_get_width(win) }
           end, vim.fn.win_findbuf(chat.bufnr))"""
    )
    return [(bool(entry[0]), int(entry[1])) for entry in found]


@pytest.mark.parametrize(
    ("columns", "expected"),
    [
        (40, (False, 40)),
        (80, (False, 80)),
        (99, (False, 99)),
        (100, (False, 60)),
        (110, (False, 60)),
        (200, (False, 100)),
    ],
)
def test_a_new_chat_has_a_readable_width(
    nvim_factory: Callable[..., Nvim], columns: int, expected: tuple[bool, int]
) -> None:
    """Half of a small screen is too narrow, so the split gets a minimum width or the chat uses the whole window."""
    assert windows(opened(nvim_factory, (columns, 24))) == [expected]


@pytest.mark.parametrize(
    ("window", "expected"),
    [
        ({"width": 30}, (False, 30)),
        ({"min_width": 0}, (False, 40)),
        ({"narrow_layout": "float"}, (True, 78)),
    ],
)
def test_a_width_set_by_the_user_is_kept(
    nvim_factory: Callable[..., Nvim], window: dict[str, object], expected: tuple[bool, int]
) -> None:
    """`width` is in columns, `min_width = 0` disables the minimum, and `narrow_layout` selects the alternative."""
    assert windows(opened(nvim_factory, (80, 24), display={"chat": {"window": window}})) == [expected]


@pytest.mark.parametrize("binary", [find_nvim() or "nvim", *other_nvims()])
def test_files_side_by_side_leave_the_chat_its_width(nvim_factory: Callable[..., Nvim], binary: str) -> None:
    """'equalalways' is on by default.

    The chat keeps half of the editor and at least 60 columns, even when windows open and close.
    """
    for columns, files, width in ((100, 2, 60), (130, 3, 65), (180, 2, 90)):
        chat = ChatDriver(nvim_factory(init=INIT, size=(columns, 30), binary=binary))
        chat.setup({})
        chat.nvim.command("edit a.py" + " | vsplit" * (files - 1))
        chat.open()
        assert windows(chat) == [(False, width)]
        others = chat.nvim.lua(OTHER_WIDTHS)
        assert len(others) == files
        assert max(others) - min(others) <= 1, others
        chat.nvim.command("wincmd p | vsplit | vsplit | close")
        assert windows(chat) == [(False, width)]


def test_floats_follow_the_size_of_the_editor(nvim_factory: Callable[..., Nvim]) -> None:
    """They grow and shrink; a split that became too narrow gets its minimum width back if there is room."""
    chat = opened(nvim_factory, (80, 24), display={"chat": {"window": {"layout": "float"}}})
    chat.nvim.request("nvim_ui_try_resize", 200, 60)
    chat.nvim.wait_for(lambda: windows(chat) == [(True, 100)], "the wider float")
    chat.nvim.request("nvim_ui_try_resize", 50, 20)
    chat.nvim.wait_for(lambda: windows(chat) == [(True, 48)], "the narrower float")
    assert "## Me" in chat.nvim.screen()


def test_a_shrunken_terminal_leaves_the_file_its_half(nvim_factory: Callable[..., Nvim]) -> None:
    """The chat used to keep its 60 columns and leave one to the file.

    When there is room again, the chat gets its minimum width.
    """
    chat = opened(nvim_factory, (110, 24))
    for columns, width in ((80, 40), (40, 20), (60, 30), (110, 60), (108, 60)):
        chat.nvim.request("nvim_ui_try_resize", columns, 24)
        wanted = [(False, width)]
        chat.nvim.wait_for(lambda wanted=wanted: windows(chat) == wanted, f"{width} of {columns} columns")
        assert chat.nvim.lua(OTHER_WIDTHS) == [columns - width - 1]


def test_a_manual_resize_is_kept(nvim_factory: Callable[..., Nvim]) -> None:
    """A wider window is the user's choice, provided that Neovim has enough columns."""
    chat = opened(nvim_factory, (110, 24))
    chat.nvim.command("vertical resize 90")
    chat.nvim.request("nvim_ui_try_resize", 108, 24)
    chat.nvim.wait_for(lambda: chat.nvim.lua("return vim.o.columns") == 108, "the size")
    assert windows(chat) == [(False, 90)]


@pytest.mark.parametrize("columns", [40, 80, 110, 200])
@pytest.mark.parametrize("asks", [False, True])
def test_the_bar_keeps_its_useful_parts_in_yolo_mode(
    nvim_factory: Callable[..., Nvim], columns: int, asks: bool
) -> None:
    """The model and the figures used to be missing, and the start was cut off while an approval was pending."""
    chat = opened(nvim_factory, (columns, 24))
    chat.push(METER)
    chat.nvim.feed("gty")
    if asks:
        chat.push(events.State(state="running_tools"))
        chat.push(
            events.ApprovalRequested(call_id="c1", name="run_command", title="run_command ls", body="ls", filetype="sh")
        )
    chat.nvim.settle()
    bar = next(line for line in chat.nvim.screen().split("\n")[::-1] if "28 %" in line)
    assert "<" not in bar
    assert ("waiting for your approval" in bar) == asks
    if columns >= 80:
        assert "YOLO" in bar
        assert "· 28 %" in bar
    if not asks:
        assert "YOLO" in bar
    if columns in (80, 200):
        assert "· gpt-4o ·" in bar
    assert ("guarded files" in bar) == (columns == 200 or (columns == 80 and not asks))


@pytest.mark.parametrize(("columns", "count"), [(120, 2), (200, 3)])
def test_a_second_chat_shares_the_split_if_two_would_be_narrow(
    nvim_factory: Callable[..., Nvim], columns: int, count: int
) -> None:
    """120 columns are enough for a file and one chat, 200 for a file and two."""
    chat = opened(nvim_factory, (columns, 30))
    first = chat.nvim.lua("return vim.api.nvim_get_current_buf()")
    chat.open()
    widths = chat.nvim.lua("return vim.tbl_map(vim.api.nvim_win_get_width, vim.api.nvim_list_wins())")
    assert len(widths) == count
    assert min(widths) >= 40
    assert windows(chat)
    assert chat.nvim.lua("return vim.api.nvim_get_current_buf()") != first


@pytest.mark.parametrize("layout", ["vsplit", "split"])
@pytest.mark.parametrize("columns", [80, 90])
def test_of_two_files_the_current_one_stays_visible(
    nvim_factory: Callable[..., Nvim], columns: int, layout: str
) -> None:
    """The chat takes the other window, and the cursor returns to the file when the chat is hidden or closed."""
    before = f"vim.cmd.edit('test.py')\nvim.cmd.{layout}('code.py')\n"
    chat = opened(nvim_factory, (columns, 24), before=before)
    files = "vim.tbl_map(function(win) return vim.fn.expand('#' .. vim.api.nvim_win_get_buf(win) .. ':t') end,"
    shown = f"return {files} vim.api.nvim_tabpage_list_wins(0))"
    assert [is_float for is_float, _ in windows(chat)] == [False]
    assert "code.py" in chat.nvim.lua(shown)
    assert "test.py" not in chat.nvim.lua(shown)
    for leave in ("CodeCompanionChat Toggle", "quit"):
        chat.nvim.command(leave)
        chat.nvim.wait_for(lambda: chat.nvim.lua("return vim.fn.expand('%')") == "code.py", "the file")
        assert sorted(chat.nvim.lua(shown)) == ["code.py", "test.py"]
        chat.nvim.command("CodeCompanionChat Toggle")
        assert len(windows(chat)) == 1
    chat.nvim.command("CodeCompanionChat")
    assert "code.py" in chat.nvim.lua(shown), "a second chat takes the place of the first one"


def test_a_chat_floats_only_where_no_window_has_room(nvim_factory: Callable[..., Nvim]) -> None:
    """With two files in 60 columns. The float names the keys that hide it."""
    chat = opened(nvim_factory, (60, 24), before="vim.cmd.vsplit()\n")
    assert windows(chat) == [(True, 58)]
    chat.nvim.wait_screen("<C-w>w hides ╯")
    chat.nvim.feed("<C-w>w")
    chat.nvim.wait_for(lambda: windows(chat) == [], "the chat is hidden")


@pytest.mark.parametrize("binary", [find_nvim() or "nvim", *other_nvims()])
@pytest.mark.parametrize("laststatus", [0, 1, 2, 3])
def test_the_state_is_shown_once(nvim_factory: Callable[..., Nvim], binary: str, laststatus: int) -> None:
    """It was shown twice in a float of Neovim 0.12, and the winbar stayed when the chat was moved to a split."""
    chat = ChatDriver(nvim_factory(init=INIT, size=(60, 24), binary=binary))
    chat.setup({"display": {"chat": {"window": {"layout": "float"}}}})
    chat.nvim.command(f"set laststatus={laststatus} | edit code.py")
    chat.open()
    chat.push(METER)
    for move in ("", "wincmd J", "only", "set laststatus=2", "set laststatus=3", "CodeCompanionChat Toggle"):
        chat.nvim.command(move)
        chat.nvim.settle()
        count = chat.nvim.screen().count("28 %")
        assert count == (0 if "Toggle" in move else 1), (move, chat.nvim.screen())


def test_quitting_a_chat_in_the_only_window_restores_the_file(nvim_factory: Callable[..., Nvim]) -> None:
    """`:q` closes the chat as in a split and does not exit Neovim; without another window, a second `:q` does."""
    chat = opened(nvim_factory, (80, 24))
    chat.nvim.command("quit")
    assert chat.nvim.lua("return { vim.fn.expand('%'), vim.fn.winnr('$') }") == ["code.py", 1]
    chat.nvim.command("CodeCompanionChat Toggle")
    assert windows(chat) == [(False, 80)]
    chat.nvim.command("CodeCompanionChat Toggle")
    assert chat.nvim.lua("return vim.fn.expand('%')") == "code.py"


@pytest.mark.parametrize("size", [(80, 24), (120, 40)])
def test_a_float_closes_for_the_window_it_covers(nvim_factory: Callable[..., Nvim], size: tuple[int, int]) -> None:
    """Otherwise a window opened below the float, and text typed there, would be invisible.

    Toggling shows the chat again.
    """
    chat = opened(nvim_factory, size, display={"chat": {"window": {"layout": "float"}}})
    chat.nvim.command("help")
    chat.nvim.wait_for(lambda: windows(chat) == [], "the chat is hidden")
    chat.nvim.wait_screen(r"help\.txt")
    chat.nvim.command("quit")
    chat.nvim.command("CodeCompanionChat Toggle")
    chat.nvim.wait_for(lambda: len(windows(chat)) == 1, "the chat is back")
    chat.nvim.wait_screen("## Me")


def test_a_float_stays_if_it_hardly_covers_the_window(nvim_factory: Callable[..., Nvim]) -> None:
    """A user's small float on a large screen stays open, because both are visible."""
    window = {"layout": "float", "width": 30, "height": 10}
    chat = opened(nvim_factory, (160, 50), display={"chat": {"window": window}})
    chat.nvim.feed("<C-w>w")
    chat.nvim.settle()
    assert windows(chat) == [(True, 30)]


def test_a_split_gets_its_minimum_width_back(nvim_factory: Callable[..., Nvim]) -> None:
    chat = opened(nvim_factory, (200, 40))
    assert windows(chat) == [(False, 100)]
    chat.nvim.request("nvim_ui_try_resize", 110, 40)
    chat.nvim.wait_for(lambda: windows(chat)[0][1] >= 60, "the least width")


@pytest.mark.parametrize("width", [40, 60, 100])
def test_the_result_of_a_call_is_kept_and_the_command_shortened(nvim_factory: Callable[..., Nvim], width: int) -> None:
    """This also applies after the window is resized."""
    chat = make_chat(nvim_factory, size=(80, 24))
    chat.accept("run tests")
    chat.push(
        events.ReplyStarted(adapter="openai", model="gpt-4o"),
        events.ToolFinished(
            call_id="c",
            message_id="m",
            name="run_command",
            title=COMMAND,
            summary=OUTCOME,
            preview="a\nb",
            status="error",
        ),
        events.TurnFinished(reason="done"),
    )
    chat.nvim.wait_screen(rf"▸ ✗ run_command for .*….* · {OUTCOME}$")
    chat.nvim.request("nvim_ui_try_resize", width, 24)
    if width < 60:
        chat.nvim.wait_screen(r"^▸ ✗ run_command for i in .*… · exit 3$")
    elif width < 100:
        chat.nvim.wait_screen(rf"^▸ ✗ run.*….* · {OUTCOME}$")
    else:
        chat.nvim.wait_screen(rf"^▸ ✗ {COMMAND[:20]}.* · {OUTCOME}$".replace("$(", r"\$\("))


@pytest.mark.parametrize("size", [(40, 24), (80, 24)])
def test_notes_beside_long_lines_are_visible(nvim_factory: Callable[..., Nvim], size: tuple[int, int]) -> None:
    """Token counts of long paths, truncation marks and pins are on the right if there is room, else in the line."""
    chat = make_chat(nvim_factory, size=size)
    path = "src/" + "a_very_long_folder_name/" * 3 + "file.py"
    items = (
        events.ContextItem(id="1", kind="file", label=path, tokens=1234),
        events.ContextItem(id="2", kind="file", label="b.py", tokens=5678),
    )
    reply = "x" * (size[0] - 2)
    entries = (
        events.Entry(kind="user", text="question", message_id="u"),
        events.Entry(kind="reply", text=reply, message_id="r", cut=True, pinned=True, adapter="a", model="m"),
    )
    chat.push(events.Restored(entries=entries, first=True, last=True), events.ContextItems(items=items))
    chat.nvim.feed("gg")
    screen = " ".join(chat.nvim.wait_screen("cut off").split())
    for text in ("1.2k tokens", "5.7k tokens", "✗ cut off", "⚑ pinned"):
        assert text in screen
    chat.nvim.request("nvim_ui_try_resize", 140, 24)
    chat.nvim.wait_screen(r"file\.py</file> +1\.2k tokens$")


@pytest.mark.parametrize("columns", [24, 30, 40, 60, 80, 140])
def test_the_meter_and_the_hint_never_cover_text(nvim_factory: Callable[..., Nvim], columns: int) -> None:
    """The longest form that fits next to the header is shown, or nothing if not even the percentage fits."""
    long_name = {"interactions": {"chat": {"roles": {"user": "A rather long name"}}}}
    chat = make_chat(
        nvim_factory,
        size=(columns, 24),
        options={"display": {"chat": {"winbar": "never", "window": {"layout": "buffer"}}}, **long_name},
        init="vim.o.statusline = 'mine'\n",
    )
    chat.push(METER)
    screen = chat.nvim.wait_screen("## A rather long")
    header = next(line for line in screen.split("\n") if line.startswith("## A rather"))
    assert header.startswith("## A rather long name"[:columns])
    if columns >= 30:
        assert "28%" in header.replace("27%", "28%")
        assert "g? help" in screen
    if columns >= 60:
        assert "ctx 35.8k/128.0k" in header
    assert "compact" not in header, "below 50 %"


def test_the_state_is_shortened_before_its_stop_key(nvim_factory: Callable[..., Nvim]) -> None:
    """A long retry reason is cut in 40 columns."""
    chat = make_chat(nvim_factory, size=(40, 24))
    chat.accept("go")
    chat.push(events.State(state="streaming", label="waiting for the very slow model of a far away provider"))
    chat.nvim.wait_screen("⋯ waiting · q to stop")


@pytest.mark.parametrize("columns", [44, 60, 80])
def test_the_status_line_never_shows_half_a_name(nvim_factory: Callable[..., Nvim], columns: int) -> None:
    """It used to show `<fline  waiting for your approval`.

    The model is dropped before the state and the meter are shortened.
    """
    chat = make_chat(nvim_factory, size=(columns, 24))
    chat.accept("go")
    chat.push(METER, events.Retrying(reason="too many requests", attempt=1, wait_ms=60_000))
    words = "too many requests · " if columns >= 60 else ""
    chat.nvim.wait_screen(rf"⋯ {words}trying again in \d+ s · q to stop")
    line = next(row for row in chat.nvim.screen().split("\n") if "28 %" in row and "⋯" not in row)
    assert line.strip().startswith("trying again in")
    assert "gpt-4o" in line, "there is room for it"


def test_at_40_columns_nothing_causes_a_prompt_or_half_a_word(nvim_factory: Callable[..., Nvim]) -> None:
    """Sentences are cut to fit the command line, with 10 cells next to the ruler, and the model name to fit its bar."""
    chat = make_chat(nvim_factory, size=(40, 24))
    chat.push(METER)
    chat.nvim.wait_screen(r"\n gpt-4o · 28 % +All")
    chat.answer("list_checkpoints", [])
    chat.nvim.feed("i/restore<Esc><CR>")
    chat.nvim.wait_screen(r"\nNo checkpoints yet")
    assert not chat.nvim.blocked()
    chat.nvim.lua("require('codecompanion.say').line('Restored: ' .. ('many words '):rep(30))")
    chat.nvim.wait_screen(r"\nRestored.*…")
    assert not chat.nvim.blocked()
    title = "A summary with a title that is longer than the window"
    chat.push(
        events.Compacted(
            compaction_id="k", trigger="manual", summariser="x", summary="1. **A**\nb\nc", messages=3, cycles=(1, 1),
            tokens_before=900, tokens_after=90, duration_ms=5, title=title, folded=True,
        )
    )  # fmt: skip
    chat.nvim.wait_screen(r"▸ A summary with a title .*…\n")


def test_the_answers_of_a_question_stay_together(nvim_factory: Callable[..., Nvim]) -> None:
    """If the answers did not fit next to the question, `[n]o` used to be alone on the second line."""
    chat = make_chat(nvim_factory, size=(72, 24))
    chat.answer("forecast_compaction", {"before": 11_400, "after": 3_400, "pins": 0, "rules": 1, "why": ""})
    chat.push(METER)
    chat.nvim.command("CodeCompanionCompact")
    screen = chat.nvim.wait_screen(r"about 3\.4k · keeps 1 rule *│")
    assert "│[y]es  yes, then [c]ontinue  [n]o" in screen


def test_a_wide_status_line_names_the_chat_and_a_narrow_one_keeps_the_bar(nvim_factory: Callable[..., Nvim]) -> None:
    """The title is cut first; the plugin's tab line shows it too."""
    chat = make_chat(nvim_factory, size=(120, 24))
    chat.push(METER, events.TitleChanged(title="Fix 100% of the stack"))
    chat.nvim.wait_screen(r"\n Fix 100% of the stack · gpt-4o · 28 % +All")
    chat.nvim.command("tabnew other.py")
    chat.nvim.wait_screen(r"^ Fix 100% of the stack  other\.py")
    chat.nvim.command("tabclose")
    chat.nvim.request("nvim_ui_try_resize", 40, 24)
    chat.nvim.wait_screen(r"\n Fix 100% of the … · gpt-4o · 28 %  All")


def test_the_tab_line_shows_a_chats_title(nvim_factory: Callable[..., Nvim]) -> None:
    """It used to show `c//` and an id; many tabs share the columns, and a tab line set by the user is kept."""
    chat = make_chat(nvim_factory, size=(80, 24))
    chat.nvim.command("tabnew other.py")
    screen = chat.nvim.wait_screen(r"^ New chat  other\.py +X$")
    assert "c//" not in screen
    chat.push(events.TitleChanged(title="Why is the sky blue at noon?"))
    chat.nvim.wait_screen(r"^ Why is the sky blue at noon\?  other\.py +X$")
    for number in range(7):
        chat.nvim.command(f"tabnew a_long_name_{number}.py")
    chat.nvim.wait_screen(r"^ Why i…  her\.py  .*  e_5\.py  e_6\.py +X$")


def test_a_users_own_tab_line_stays(nvim_factory: Callable[..., Nvim]) -> None:
    mine = make_chat(nvim_factory, init="vim.o.tabline = '%#TabLine#mine'")
    assert mine.nvim.lua("return vim.o.tabline") == "%#TabLine#mine"


def test_the_tab_line_can_be_left_alone(nvim_factory: Callable[..., Nvim]) -> None:
    chat = make_chat(nvim_factory, options={"display": {"chat": {"tabline": False}}})
    assert chat.nvim.lua("return vim.o.tabline") == ""


def contrast(attributes: dict[str, int]) -> float:
    """Return the contrast ratio of a cell's colours as defined by WCAG 2, from 1 (identical) to 21."""

    def luminance(colour: int) -> float:
        parts = [(colour >> shift & 255) / 255 for shift in (16, 8, 0)]
        red, green, blue = (part / 12.92 if part <= 0.03928 else ((part + 0.055) / 1.055) ** 2.4 for part in parts)
        return 0.2126 * red + 0.7152 * green + 0.0722 * blue

    light, dark = sorted((luminance(attributes["foreground"]), luminance(attributes["background"])), reverse=True)
    return (light + 0.05) / (dark + 0.05)


def test_the_meter_and_the_hints_are_readable_in_every_colour_scheme(nvim_factory: Callable[..., Nvim]) -> None:
    """A status line is light in dark themes and dark in light ones, so the meter has its own background from 80 %."""
    chat = make_chat(nvim_factory, size=(100, 24))
    for ratio in (0.1, 0.86, 0.97):
        chat.push(events.Meter(tokens=int(ratio * 100_000), window=100_000, ratio=ratio, exact=True))
        for colours in ("set background=light", "set background=dark", "colorscheme habamax", "colorscheme default"):
            chat.nvim.command(colours)
            chat.nvim.settle()
            screen = chat.nvim.screen().split("\n")
            row = next(row for row in range(len(screen) - 1, 0, -1) if " % " in screen[row])
            group = chat.nvim.highlight_at(row, screen[row].index(" % "))
            assert ("bold" in group) is (ratio >= 0.8), (colours, ratio)
            if "foreground" in group and "background" in group:
                assert contrast(group) >= 4, (colours, ratio, group)
            hint = next(row for row, text in enumerate(screen) if "g? help" in text)
            shown = chat.nvim.highlight_at(hint, screen[hint].index("g? help"))
            normal = chat.nvim.lua("return vim.api.nvim_get_hl(0, { name = 'Normal' })")
            assert contrast({"foreground": shown["foreground"], "background": normal["bg"]}) >= 3.5, (colours, shown)


USERS_LINE = "vim.o.statusline = 'my line'\n"


@pytest.mark.parametrize(
    ("before", "winbar", "in_bar", "in_line"),
    [
        ("", "auto", False, True),
        (USERS_LINE, "auto", True, False),
        ("vim.o.laststatus = 3\n", "auto", True, True),
        ("vim.o.laststatus = 0\n", "auto", True, False),
        (USERS_LINE + "vim.o.winbar = 'my bar'\n", "auto", False, False),
        (USERS_LINE, "never", False, False),
        ("", "always", True, True),
    ],
)
def test_the_state_is_in_a_bar_that_does_not_replace_the_users(
    nvim_factory: Callable[..., Nvim], before: str, winbar: str, in_bar: bool, in_line: bool
) -> None:
    """A bar or status line set by the user stays; the meter is in the buffer only if no bar shows it."""
    chat = opened(nvim_factory, (120, 30), before=before, display={"chat": {"winbar": winbar}})
    chat.push(METER)
    chat.nvim.wait_screen(r"gpt-4o · 28 %|35\.8k/128\.0k")
    rows = chat.nvim.screen().split("\n")
    assert ("gpt-4o · 28 %" in rows[0]) is in_bar
    header = next(row for row in rows if "## Me" in row)
    assert ("35.8k" in header) is not (in_bar or in_line)
    assert any("my bar" in row for row in rows) is ("my bar" in before)
    assert any("my line" in row for row in rows) is ("my line" in before)
    chat.nvim.command("wincmd p")
    chat.nvim.settle()
    assert chat.nvim.lua("return vim.wo.winbar") == ("my bar" if "my bar" in before else "")


def test_a_bar_set_later_by_another_plugin_is_left_alone(nvim_factory: Callable[..., Nvim]) -> None:
    """lualine and dropbar may write 'winbar' at any time; hiding and showing the chat does not override it."""
    chat = opened(nvim_factory, (120, 30), before=USERS_LINE)
    chat.push(METER)
    chat.nvim.wait_screen(r"gpt-4o · 28 %")
    chat.nvim.command("setlocal winbar=theirs")
    chat.nvim.wait_screen(r"## Me .*35\.8k/128\.0k")
    assert chat.nvim.lua("return vim.wo.winbar") == "theirs"


@pytest.mark.parametrize("size", [(40, 24), (80, 24), (200, 60)])
def test_the_inspector_uses_the_available_room(nvim_factory: Callable[..., Nvim], size: tuple[int, int]) -> None:
    """The columns are aligned with their titles, the hints are complete, and the figures match the meter."""
    chat = make_chat(nvim_factory, size=size)
    rows = [
        {"id": f"m{n}", "role": "user", "tag": "compact_summary_of", "tokens": 3_580, "state": "live", "age": n}
        | {"preview": "word " * 60}
        for n in range(10)
    ]
    chat.answer("inspect", {"rows": rows, "total": 35_800, "window": 128_000})
    chat.push(METER)
    chat.nvim.feed("gd")
    chat.nvim.wait_screen(r"# .*35\.8k of 128k .*\(27 %\), 10 messages")
    screen = chat.nvim.wait_screen(r"q close ╯" if size[0] < 60 else r"\[ sent requests · .*q close ╯")
    assert "more below" not in screen
    width = chat.nvim.lua("return vim.api.nvim_win_get_width(0)")
    assert width == min(size[0] - 2, 180)
    lines = chat.nvim.lines()
    assert lines[2].index("what") == lines[3].index("word")
    assert max(len(line) for line in lines) <= width
    assert len(lines[3]) > width - 6
    priced = [row | {"cache": "hit", "cost": 0.0123, "state": "summarised"} for row in rows]
    chat.answer("inspect", {"rows": priced, "total": 35_800, "window": 128_000, "cost": 0.123})
    chat.nvim.feed("qgd")
    chat.nvim.wait_for(lambda: "summari" in "".join(chat.nvim.lines()), "the priced rows")
    lines = chat.nvim.lines()
    assert lines[3].index("word") + 9 <= width, lines[3]
    assert ("$0.0123" in lines[3]) == (size[0] > 40)
    tools = {"id": "tools", "role": "tools", "name": "9 tool schemas", "tokens": 100, "state": "live"}
    chat.answer("inspect", {"rows": [*rows, tools], "total": 35_900, "window": 128_000})
    chat.nvim.feed("qgd")
    chat.nvim.wait_screen("9 tool schem")
    head = chat.nvim.lines()[0]
    assert head.endswith("(28 %), 10 messages + tools" if size[0] > 40 else "(28 %)")
    chat.nvim.request("nvim_ui_try_resize", 120, 40)
    chat.nvim.wait_for(lambda: max(len(line) for line in chat.nvim.lines()) in range(110, 119), "the new width")


def test_reports_and_floats_open_in_normal_mode(nvim_factory: Callable[..., Nvim]) -> None:
    """This also applies to commands sent from insert mode with `start_in_insert_mode`."""
    chat = make_chat(
        nvim_factory,
        options={"display": {"chat": {"start_in_insert_mode": True, "window": {"layout": "buffer"}}}},
    )
    chat.answer("inspect", {"rows": [], "total": 0, "window": 128_000})
    chat.answer("show_cost", {"text": "# Cost of this chat"})
    chat.answer("list_sessions", [])
    for typed, there in (("/help<C-s>", ":CodeCompanion +Palette"), ("/cost<C-s>", "# Cost of this chat")):
        chat.nvim.wait_for(lambda: chat.nvim.request("nvim_get_mode")["mode"] == "i", "insert mode")
        chat.nvim.feed(typed)
        chat.nvim.wait_screen(there)
        chat.nvim.wait_for(lambda: chat.nvim.request("nvim_get_mode")["mode"] == "n", "normal mode")
        chat.nvim.feed("qG")
        chat.nvim.wait_for(lambda: chat.nvim.lua("return vim.bo.filetype") == "codecompanion", "the chat")
        chat.nvim.feed("i")


def test_the_line_of_an_edit_wraps(nvim_factory: Callable[..., Nvim]) -> None:
    """Virtual lines do not wrap on their own; the undo hint is at the end."""
    chat = make_chat(nvim_factory, size=(80, 24))
    chat.accept("look")
    chat.reply("Looked.", end=False)
    chat.push(
        events.ContextEdited(cleared=12, tokens_before=48_200, tokens_after=21_700, call_ids=(), change_id="e1"),
        events.TurnFinished(reason="done"),
    )
    chat.nvim.wait_screen(r"^✂ 12 tool results cleared · 48\.2k → 21\.7k tokens · u undo$")
    chat.nvim.request("nvim_ui_try_resize", 40, 24)
    chat.nvim.wait_screen(r"^✂ 12 tool results cleared · 48\.2k → *\n21\.7k tokens · u undo$")


@pytest.mark.parametrize(
    ("columns", "header"),
    [
        (80, "## CodeCompanion (Anthropic · claude-sonnet-4-5-20250929)"),
        (50, "## CodeCompanion (claude-sonnet-4-5-20250929)"),
        (40, "## CodeCompanion (claude-sonnet-4-5-20…)"),
    ],
)
def test_the_header_of_a_reply_takes_one_row(nvim_factory: Callable[..., Nvim], columns: int, header: str) -> None:
    """The adapter is omitted first; the bar cuts the title between words."""
    adapters = {"http": {"anthropic": {"formatted_name": "Anthropic"}}}
    chat = make_chat(nvim_factory, size=(columns, 24), options={"adapters": adapters})
    chat.accept("question")
    chat.push(events.ReplyStarted(adapter="anthropic", model="claude-sonnet-4-5-20250929"))
    chat.reply("answer")
    chat.push(events.TitleChanged(title="Why does addition return"), METER)
    screen = chat.nvim.wait_screen(r"Why does (addition )?(return)? ?…? ?·")
    assert f"\n{header}\nanswer\n" in screen


def test_a_narrow_line_of_a_reverted_change_keeps_the_end_of_the_file_name(
    nvim_factory: Callable[..., Nvim],
) -> None:
    chat = make_chat(nvim_factory, size=(40, 24))
    chat.accept("go")
    change = events.FileChange(change_id="e1", path="/w/src/multiplication_table.py", added=1, removed=1, reverted=True)
    entry = events.Entry(
        kind="tool", name="insert_edit", title="insert_edit src/multiplication_table.py", summary="+1 −1", status="ok",
        text="@@ -1,1 +1,1 @@\n-a\n+b\n", message_id="m", call_id="c", change=change, opens=True,
    )  # fmt: skip
    chat.push(events.Restored(entries=(entry,), first=True, last=True))
    chat.nvim.wait_screen("▸ ✓ insert_edit …ion_table.py · reverted")


def test_a_closed_float_leaves_no_ruler_on_the_command_line(nvim_factory: Callable[..., Nvim]) -> None:
    """Neovim draws a float's ruler there, and does not remove it; a message of the action that closed it stays."""
    chat = opened(nvim_factory, (100, 30))
    chat.nvim.feed("g?")
    chat.nvim.wait_screen(r"1,1 +(All|Top)\s*$")
    chat.nvim.feed("q")
    chat.nvim.wait_for(lambda: chat.nvim.screen().split("\n")[-1].strip() == "", "an empty command line")
