"""Unusual keys, texts and files: nothing is lost, nothing is inserted twice."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from ghost import Ghost, start
from harness import Nvim, find_nvim, other_nvims


@pytest.fixture(params=[find_nvim() or "nvim", *other_nvims()])
def ghost(request: pytest.FixtureRequest, nvim_factory: Callable[..., Nvim]) -> Ghost:
    """Return a Neovim with completion on, on each available version ($NVIM_BINS)."""
    made = start(nvim_factory, binary=request.param)
    made.nvim.command("imap <F2> <Plug>(CodeCompanionCompleteAccept)")
    made.open("a.txt")
    return made


def show(ghost: Ghost, text: str, keys: str) -> None:
    """Type `keys` and wait until `text` is suggested."""
    ghost.suggest(text)
    ghost.type(keys)
    ghost.nvim.wait_for(ghost.shown, "the suggestion")
    ghost.hold()


@pytest.mark.parametrize(
    ("keys", "wanted"),
    [
        ("<F2>:pass<CR>abc<Esc>", ["x in range(3):pass", "abc"]),
        ("<F2><F2><F2>z", ["x in range(3)z"]),
        ("<F2><Esc>u", ["x in "]),
        ("<F2><C-o>u!", ["x in !"]),
    ],
)
def test_keys_during_an_acceptance_are_applied_once(ghost: Ghost, keys: str, wanted: list[str]) -> None:
    """When all keys arrive at once, the suggestion is inserted first and then each key is applied once."""
    show(ghost, "range(3)", "ix in ")
    ghost.type(keys)
    assert ghost.nvim.lines() == wanted
    assert not ghost.nvim.blocked()


def test_an_abbreviation_before_the_suggestion_is_not_expanded(ghost: Ghost) -> None:
    """The word continues in the suggestion, so it is not the complete abbreviation."""
    ghost.nvim.command("iabbrev teh the")
    show(ghost, "nx(3)", "ix teh")
    ghost.type("<F2> ")
    assert ghost.nvim.lines() == ["x tehnx(3) "]


@pytest.mark.parametrize("text", ["x = '😀|' y", "e\u0301|x", "שלום|", "👨‍👩‍👧|z", "\t日|本"])
def test_columns_are_bytes_for_any_characters(ghost: Ghost, text: str) -> None:
    """This covers emoji, combining characters, right-to-left text, wide characters and tabs."""
    before, _, after = text.partition("|")
    column = len(before.encode())
    ghost.open("b.txt", before + after, (1, column))
    show(ghost, "GH\n日É", "i" if after else "a")
    asked = ghost.asked()[-1]
    assert (asked["before"], asked["after"], asked["column"]) == (before, after, column)
    ghost.type("<F2>!")
    assert ghost.nvim.lines() == [before + "GH", "日É!" + after]


def test_lines_of_a_megabyte_around_the_cursor_are_handled(ghost: Ghost) -> None:
    """Nothing is suggested in such a line; next to it everything works, and the usual amount of text is sent."""
    ghost.nvim.lua("vim.bo.undolevels = -1; vim.api.nvim_buf_set_lines(0, 0, -1, true, { ('é'):rep(400000), 'a' })")
    ghost.suggest("G")
    ghost.type("Ay")
    ghost.pause()
    assert (ghost.asked(), ghost.shown()) == ([], "")
    ghost.type("<Esc>")
    show(ghost, "G", "Gob")
    question = ghost.asked()[-1]
    assert (len(question["before"]), question["before"][-5:]) == (8_000, "éy\na\nb"[-5:])


def test_a_file_of_100_000_lines_works(ghost: Ghost) -> None:
    """Completion works in the middle of the file."""
    ghost.nvim.lua("vim.api.nvim_buf_set_lines(0, 0, -1, true, vim.fn['repeat']({ 'abcdefg' }, 100000))")
    show(ghost, "G", "50000GAb")
    ghost.type("<F2>")
    assert ghost.nvim.lua("return vim.fn.getline(50000)") == "abcdefgbG"


def test_a_suggestion_of_16_000_characters_in_one_line_works(ghost: Ghost) -> None:
    """This is the maximum length; typing along works as usual."""
    show(ghost, "y" * 16_000, "ix ")
    ghost.type("yyyy<F2>")
    assert (ghost.nvim.lines(), ghost.nvim.messages()) == (["x " + "y" * 16_000], "")


def test_a_substitution_preview_shows_no_suggestion(ghost: Ghost) -> None:
    """This applies to an 'inccommand' preview started from insert mode."""
    ghost.nvim.command("set inccommand=split")
    ghost.open("c.txt", "foo bar\nfoo")
    show(ghost, "G", "A ")
    ghost.type("<C-o>:%s/foo/baz")
    assert ghost.shown() == ""
    ghost.type("<CR>x<Esc>")
    assert [line.replace("x", "") for line in ghost.nvim.lines()] == ["baz bar ", "baz"]


def test_starting_a_macro_removes_the_suggestion(ghost: Ghost) -> None:
    """The accept key inserts nothing during recording or when the macro runs."""
    show(ghost, "G", "ix ")
    ghost.suggest("G")
    ghost.type("<C-o>qayy<F2><Esc>q")
    assert ghost.nvim.lines() == ["x yy"]
    ghost.type("o<Esc>@a")
    ghost.pause()
    assert (len(ghost.nvim.lines()), ghost.nvim.lines()[0], ghost.shown()) == (2, "x yy", "")


def test_a_closed_fold_below_is_not_opened(ghost: Ghost) -> None:
    """The lines are inserted before the fold."""
    ghost.nvim.command("set nowrap foldmethod=indent foldlevel=0")
    ghost.open("d.txt", "a\n  b\n  c\nd")
    show(ghost, "\n  new\n  two", "ggA:")
    ghost.type("<F2>")
    assert ghost.nvim.lines() == ["a:", "  new", "  two", "  b", "  c", "d"]
