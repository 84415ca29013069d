"""The look of ghost text: tabs, wide characters, wrapped lines, the middle of a line, other windows."""

from __future__ import annotations

import random
from collections.abc import Callable

import pytest

from ghost import Ghost, start
from harness import Nvim, find_nvim, other_nvims

VERSIONS = [find_nvim() or "nvim", *other_nvims()]


@pytest.fixture(params=VERSIONS)
def ghost(request: pytest.FixtureRequest, nvim_factory: Callable[..., Nvim]) -> Ghost:
    """Return a narrow Neovim with completion on, on each available version ($NVIM_BINS)."""
    return start(nvim_factory, binary=request.param, size=(40, 12))


def rows(ghost: Ghost, number: int) -> list[str]:
    """Return the first `number` lines of the screen."""
    return ghost.nvim.screen().split("\n")[:number]


def test_tabs_have_their_real_width(ghost: Ghost) -> None:
    """Otherwise a tab in virtual text would be shown as `^I`."""
    ghost.open("a.txt", "\tif x:")
    ghost.nvim.command("setlocal tabstop=4")
    ghost.suggest("\ty\tz\n\t\tend")
    ghost.type("A ")
    ghost.nvim.wait_for(ghost.shown, "the suggestion")
    assert rows(ghost, 3) == ["    if x:   y   z", "        end", "~"]
    ghost.nvim.command("imap <F2> <Plug>(CodeCompanionCompleteAccept)")
    ghost.hold()
    ghost.type("<F2><Esc>")
    assert ghost.nvim.lines() == ["\tif x: \ty\tz", "\t\tend"]
    assert rows(ghost, 3) == ["    if x:   y   z", "        end", "~"], "what was shown is what was inserted"


def test_wide_and_unusual_characters_are_shown(ghost: Ghost) -> None:
    """This covers emoji, CJK, combining characters, right-to-left text and control characters."""
    ghost.open("a.txt", "日本 = ")
    ghost.suggest("'😀 e\u0301 שלום\x01'\n中文")
    ghost.type("A")
    ghost.nvim.wait_for(ghost.shown, "the suggestion")
    assert rows(ghost, 2) == ["日本 = '😀 e\u0301 שלום^A'", "中文"]
    ghost.hold()
    ghost.type("'😀")
    assert rows(ghost, 2) == ["日本 = '😀 e\u0301 שלום^A'", "中文"]
    assert ghost.nvim.lines() == ["日本 = '😀"]


def test_in_the_middle_of_a_line_the_rest_is_shifted(ghost: Ghost) -> None:
    """A one-line suggestion is shown inline before the rest."""
    ghost.open("a.txt", "call()", (1, 5))
    ghost.suggest("one, two")
    ghost.type("i")
    ghost.wait_shown("one, two")
    assert rows(ghost, 2) == ["call(one, two)", "~"]
    assert ghost.nvim.grid.cursor == (0, 5)


def test_several_lines_in_the_middle_show_the_rest_at_its_final_place(ghost: Ghost) -> None:
    """The preview equals the accepted result."""
    ghost.open("a.txt", "call();", (1, 5))
    ghost.suggest("\n  one,\n  two,\n")
    ghost.type("i")
    ghost.nvim.wait_for(ghost.shown, "the suggestion")
    assert rows(ghost, 5) == ["call(", "  one,", "  two,", ");", "~"]
    ghost.nvim.command("imap <F2> <Plug>(CodeCompanionCompleteAccept)")
    ghost.hold()
    ghost.type("<F2>")
    assert ghost.nvim.lines() == ["call(", "  one,", "  two,", ");"]
    assert ghost.nvim.grid.cursor == (3, 0)


def test_a_long_suggestion_wraps(ghost: Ghost) -> None:
    """In 40 columns, the rest is on the next row and nothing is cut off."""
    ghost.open("a.txt", "x" * 30)
    ghost.suggest("y" * 25)
    ghost.type("A")
    ghost.nvim.wait_for(ghost.shown, "the suggestion")
    assert rows(ghost, 3) == ["x" * 30 + "y" * 10, "y" * 15, "~"]
    assert ghost.nvim.grid.cursor == (0, 30)


@pytest.mark.parametrize(
    ("above", "wanted"),
    [
        (6, ["x one", "two", "three", "four"]),
        (7, ["x one", "two", "… 2 more lines"]),
        (8, ["x one", "… 3 more lines"]),
        (9, ["x one … 3 more lines"]),
    ],
)
def test_lines_without_room_below_are_counted(ghost: Ghost, above: int, wanted: list[str]) -> None:
    """In a window of 10 rows, virtual lines below the last row would be lost without notice."""
    ghost.open("a.txt", "\n" * above + "x", (above + 1, 0))
    ghost.suggest(" one\ntwo\nthree\nfour")
    ghost.type("A")
    ghost.nvim.wait_for(ghost.shown, "the suggestion")
    assert rows(ghost, 10)[above:] == wanted
    ghost.nvim.command("imap <F2> <Plug>(CodeCompanionCompleteAccept)")
    ghost.hold()
    ghost.type("<F2>")
    assert ghost.nvim.lines()[above:] == ["x one", "two", "three", "four"]


PIECES = ("foo(", ") ", "x, y", "\t", "日本", "😀", "{", "\n", "\n    ", "\n\t", "if a:", "a" * 30, '"')
OPTIONS = ("nowrap", "tabstop=3", "signcolumn=yes", "virtualedit=all", "autoindent", "conceallevel=2", "scrolloff=5")


@pytest.mark.parametrize("seed", range(12))
def test_the_preview_equals_the_inserted_text(nvim_factory: Callable[..., Nvim], seed: int) -> None:
    """For any surrounding text, the screen with the suggestion is identical to the screen after accepting it."""
    chance = random.Random(seed)
    ghost = start(nvim_factory, size=(40, 16), options={"trigger": "manual"})
    ghost.nvim.command("imap <F2> <Plug>(CodeCompanionCompleteAccept)| imap <F8> <Plug>(CodeCompanionComplete)")
    ghost.nvim.command(f"set noshowmode noruler | set {chance.choice(OPTIONS)}")

    def text(most: int) -> str:
        return "".join(chance.choice(PIECES) for _ in range(chance.randint(1, most)))

    ghost.open("a.txt", text(5))
    ghost.suggest(text(5))
    ghost.type(chance.choice("iA") + "<F8>")
    ghost.nvim.wait_lua("return require('codecompanion.inline.flow').is_shown()")
    seen = ghost.nvim.screen().split("\n")[:14]
    ghost.hold()
    ghost.type("<F2>")
    ghost.nvim.lua("require('codecompanion.inline.flow').drop()")
    assert any("more line" in row for row in seen) or ghost.nvim.screen().split("\n")[:14] == seen


def test_conceal_and_right_to_left_are_respected(ghost: Ghost) -> None:
    """These window options move columns."""
    ghost.open("a.md", "**bold** ")
    ghost.nvim.command("setlocal conceallevel=2 concealcursor=nvic filetype=markdown")
    ghost.suggest("GHOST")
    ghost.type("A")
    ghost.nvim.wait_for(ghost.shown, "the suggestion")
    assert rows(ghost, 1)[0].endswith(" GHOST")
    ghost.type("<Esc>")
    ghost.nvim.command("setlocal rightleft conceallevel=0")
    ghost.type("A")
    ghost.nvim.wait_for(ghost.shown, "the suggestion")
    assert rows(ghost, 1)[0].strip().startswith("TSOHG ")


def test_only_the_current_window_shows_it(ghost: Ghost) -> None:
    """With two windows of one buffer, only the current one shows it, except on 0.10, where both do."""
    ghost.open("a.txt", "one")
    ghost.nvim.command("split")
    ghost.suggest("GHOST")
    ghost.type("A ")
    ghost.nvim.wait_for(ghost.shown, "the suggestion")
    wanted = 1 if ghost.nvim.lua("return vim.fn.has('nvim-0.11')") else 2
    assert ghost.nvim.screen().count("one GHOST") == wanted
    ghost.nvim.command("only")
    ghost.type("<Esc>A")
    ghost.nvim.wait_for(ghost.shown, "the suggestion")
    assert ghost.nvim.screen().count("one GHOST") == 1


def test_ghost_text_has_the_colour_of_its_group(ghost: Ghost) -> None:
    """Colour is not the only sign, because ghost text is after the cursor and only in insert mode."""
    ghost.nvim.lua("vim.api.nvim_set_hl(0, 'CodeCompanionGhost', { fg = '#123456' })")
    ghost.open("a.txt", "one ")
    ghost.suggest("GHOST")
    ghost.type("A")
    ghost.nvim.wait_for(ghost.shown, "the suggestion")
    ghost.nvim.screen()
    assert ghost.nvim.highlight_at(0, 4)["foreground"] == 0x123456
    assert ghost.nvim.highlight_at(0, 0).get("foreground") != 0x123456
