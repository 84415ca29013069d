"""Ghost text: when it is requested, how it follows typing, how it is accepted (R-261, R-262)."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from ghost import Ghost, start
from harness import Nvim, find_nvim, other_nvims

VERSIONS = [find_nvim() or "nvim", *other_nvims()]


@pytest.fixture
def ghost(nvim_factory: Callable[..., Nvim]) -> Ghost:
    """Return a Neovim with completion on and an empty Python file."""
    made = start(nvim_factory)
    made.open("a.py")
    return made


@pytest.fixture(params=VERSIONS)
def ghost_everywhere(request: pytest.FixtureRequest, nvim_factory: Callable[..., Nvim]) -> Ghost:
    """Return a Neovim as from `ghost`, for each available Neovim ($NVIM_BINS)."""
    made = start(nvim_factory, binary=request.param)
    made.open("a.py")
    return made


def test_a_pause_sends_a_request_and_the_answer_is_at_the_cursor(ghost_everywhere: Ghost) -> None:
    """R-261, R-262: the request has the expected content, and the answer is displayed."""
    ghost = ghost_everywhere
    ghost.suggest("range(10):\n    print(i)")
    ghost.type("ifor i in ")
    ghost.wait_shown("range(10):\n    print(i)")
    screen = ghost.nvim.screen().split("\n")
    assert screen[:2] == ["for i in range(10):", "    print(i)"]
    assert ghost.nvim.lines() == ["for i in "]
    assert ghost.nvim.grid.cursor == (0, 9)
    (question,) = ghost.asked()
    assert question["before"] == "for i in "
    assert (question["after"], question["head"]) == ("", "")
    assert (question["line"], question["column"], question["filetype"]) == (0, 9, "python")
    assert question["path"].endswith("/a.py")
    assert (question["manual"], question["count"]) == (False, 1)


def test_typing_along_keeps_it_without_a_request(ghost_everywhere: Ghost) -> None:
    """Typed characters that match the suggestion shorten it."""
    ghost = ghost_everywhere
    ghost.suggest("return total")
    ghost.type("i    ")
    ghost.wait_shown("return total")
    ghost.hold()
    ghost.type("ret")
    assert ghost.shown() == "urn total"
    ghost.type("urn<Space>")
    assert ghost.shown() == "total"
    assert len(ghost.asked()) == 1


def test_typing_something_else_drops_it_and_sends_a_request(ghost: Ghost) -> None:
    ghost.suggest("return total")
    ghost.type("i    ")
    ghost.wait_shown("return total")
    ghost.hold()
    ghost.type("x")
    assert ghost.shown() == ""
    assert ghost.wait_asked(2)["before"] == "    x"


def test_accepting_is_one_undo_step_and_is_repeated(ghost_everywhere: Ghost) -> None:
    """Each acceptance is one undo step, and `.` repeats the inserted text."""
    ghost = ghost_everywhere
    ghost.nvim.command("imap <F2> <Plug>(CodeCompanionCompleteAccept)")
    ghost.suggest("range(3)")
    ghost.type("ifor i in ")
    ghost.wait_shown("range(3)")
    ghost.hold()
    ghost.type("<F2>:")
    assert ghost.nvim.lines() == ["for i in range(3):"]
    ghost.type("<Esc>")
    ghost.type("u")
    assert ghost.nvim.lines() == ["for i in range(3)"]
    ghost.type("u")
    assert ghost.nvim.lines() == ["for i in "]
    ghost.type("u")
    assert ghost.nvim.lines() == [""]
    ghost.type("3<C-r>")
    assert ghost.nvim.lines() == ["for i in range(3):"]


def test_a_dot_repeats_typed_and_accepted_text(ghost_everywhere: Ghost) -> None:
    """`.` repeats typed and accepted text; for several lines, 'autoindent' also applies on 0.10, as the help says."""
    ghost = ghost_everywhere
    ghost.open("a.txt", "one\ntwo\nthree\n")
    ghost.nvim.command("set autoindent | imap <F2> <Plug>(CodeCompanionCompleteAccept)")
    ghost.suggest("range(3)")
    ghost.type("A in ")
    ghost.wait_shown("range(3)")
    ghost.hold()
    ghost.type("<F2>:<Esc>j.")
    assert ghost.nvim.lines() == ["one in range(3):", "two in range(3):", "three", ""]
    ghost.suggest("f(\n  x)")
    ghost.type("jA = ")
    ghost.wait_shown("f(\n  x)")
    ghost.hold()
    ghost.type("<F2>;<Esc>G.")
    assert ghost.nvim.lines()[2:] == ["three = f(", "  x);", " = f(", *ghost.nvim.lines()[-1:]]
    assert ghost.nvim.lines()[-1].strip() == "x);"
    ghost.type("u")
    assert ghost.nvim.lines()[2:] == ["three = f(", "  x);", ""]


def test_a_suggestion_is_accepted_by_line_and_by_word(ghost: Ghost) -> None:
    """The whole suggestion, one line or one word can be accepted."""
    ghost.nvim.command("imap <F3> <Plug>(CodeCompanionCompleteAcceptWord)")
    ghost.nvim.command("imap <F4> <Plug>(CodeCompanionCompleteAcceptLine)")
    ghost.nvim.command("set tabstop=4")
    ghost.suggest("foo(bar)\n\tbaz = 1\nend")
    ghost.type("ix = ")
    ghost.wait_shown("foo(bar)\n    baz = 1\nend")
    ghost.hold()
    ghost.type("<F3>")
    assert ghost.nvim.lines() == ["x = foo"]
    ghost.type("<F3>")
    assert ghost.nvim.lines() == ["x = foo("]
    ghost.type("<F4>")
    assert ghost.nvim.lines() == ["x = foo(bar)"]
    ghost.type("<F4>")
    assert ghost.nvim.lines() == ["x = foo(bar)", "\tbaz = 1"]
    assert ghost.shown() == "\nend"
    ghost.type("<F3>")
    assert ghost.nvim.lines() == ["x = foo(bar)", "\tbaz = 1", "end"]
    assert len(ghost.asked()) == 2, "one question after all of it was taken"
