"""Places without ghost text, and the output of `:CodeCompanion complete status` about them (R-262, R-266)."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack

import pytest

from ghost import Ghost, start
from harness import Nvim, find_nvim

ONCE_OFF = [
    ("Replace mode", "", "Rabc", "<Esc>"),
    ("virtual replace", "", "gRabc", "<Esc>"),
    ("a macro", "", "qaiabc", "<Esc>q"),
    ("beyond the end", "set virtualedit=all", "20li", "<Esc>:set virtualedit=<CR>"),
    ("a block", "", "0<C-v>jIabc", "<Esc>"),
    ("a block at its end", "", "0<C-v>jAabc", "<Esc>"),
    ("a changed block", "", "0<C-v>jcabc", "<Esc>"),
    ("'paste'", "set paste", "iabc", "<Esc>:set nopaste<CR>"),
    ("a long line", "call setline('.', repeat('x', 20000))", "Ax", "<Esc>:call setline('.', 'one')<CR>"),
    ("the command-line window", "", "q:iabc", "<Esc>:q<CR>"),
    ("a menu of words", "", "othird sec<Esc>othi<C-n><C-n>", "<Esc>"),
    ("i_CTRL-O", "", "ix<C-o>", "<Esc><Esc>"),
]

NEVER = [
    ("setlocal readonly", "the file is read-only"),
    ("setlocal nomodifiable", "'modifiable' is off"),
    ("setlocal buftype=nofile", "the buffer is not a file ('buftype' is nofile)"),
    ("setlocal buftype=prompt", "the buffer is a prompt"),
    ("file codecompanion://x", "this is a chat; suggestions are for files"),
    ("file scp://host/file.py", "not a file on this machine"),
    ("setlocal filetype=gitcommit", "completion.filetypes is false for gitcommit"),
    ("let b:codecompanion_complete = v:false", "switched off by b:codecompanion_complete"),
    ("call setline(1, repeat([repeat('x', 99)], 11000))", "the file is larger than completion.max_file_size_mb = 1"),
]


@pytest.fixture(scope="module")
def one_nvim(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Ghost]:
    """Return one Neovim for all tests of this file."""
    if find_nvim() is None:
        pytest.skip("no Neovim found: set NVIM_BIN, or run `make setup`")
    with ExitStack() as stack:
        yield start(lambda **more: stack.enter_context(Nvim(tmp_path_factory.mktemp("places"), **more)))


@pytest.fixture
def ghost(one_nvim: Ghost) -> Ghost:
    """Return the shared Neovim with a new file of two lines; each test restores the options."""
    one_nvim.nvim.lua("require('codecompanion.host').requests = {}; require('codecompanion.inline.source').reset()")
    one_nvim.type(r"<C-\><C-n>")
    one_nvim.nvim.command("silent! %bwipeout!")
    one_nvim.open("a.txt", "second one\nsecond two")
    one_nvim.suggest("GHOST")
    return one_nvim


@pytest.mark.parametrize(("set_up", "keys", "leave"), [case[1:] for case in ONCE_OFF], ids=[c[0] for c in ONCE_OFF])
def test_there_is_no_suggestion_at_such_a_moment(ghost: Ghost, set_up: str, keys: str, leave: str) -> None:
    """R-262: a moment later, suggestions appear in the same buffer."""
    ghost.nvim.command(set_up)
    ghost.type(keys)
    ghost.pause()
    assert (ghost.asked(), ghost.shown()) == ([], "")
    ghost.type(leave)
    ghost.type("Go")
    ghost.wait_shown("GHOST")
    ghost.type("<Esc>")
    assert ghost.shown() == ""


def test_there_is_none_if_the_first_insert_is_a_block_insert(nvim_factory: Callable[..., Nvim]) -> None:
    """Completion starts when insert mode is first entered and must know the preceding mode."""
    ghost = start(nvim_factory)
    ghost.open("a.txt", "second one\nsecond two")
    ghost.suggest("GHOST")
    ghost.type("0<C-v>jcabc")
    ghost.pause()
    assert (ghost.asked(), ghost.shown()) == ([], "")
    ghost.type("<Esc>A, once")
    ghost.wait_shown("GHOST")


@pytest.mark.parametrize(("set_up", "why"), NEVER, ids=[case[0] for case in NEVER])
def test_there_is_never_a_suggestion_in_such_a_buffer(ghost: Ghost, set_up: str, why: str) -> None:
    """R-262: the status shows the reason."""
    ghost.nvim.command(set_up)
    ghost.nvim.command("silent! normal! G")
    ghost.type("ix")
    ghost.pause()
    ghost.type("<Esc>")
    assert ghost.asked() == []
    assert ghost.status().endswith("off here: " + why)


def test_a_secret_file_is_checked_once(ghost: Ghost) -> None:
    """R-266: the host knows which files are secret; the editor caches its answer until the buffer is renamed."""
    ghost.suggest(off=True, why="secrets.env looks like a secret file")
    ghost.type("ix")
    ghost.wait_asked(1)
    ghost.pause()
    ghost.type("xyz")
    ghost.pause()
    assert len(ghost.asked()) == 1
    ghost.type("<Esc>")
    assert ghost.status().endswith("off here: secrets.env looks like a secret file")
    ghost.nvim.command("file b.txt")
    ghost.suggest("GHOST")
    ghost.type("ax")
    ghost.wait_shown("GHOST")
    ghost.type("<Esc>")


def test_text_that_is_not_utf8_is_not_sent(ghost: Ghost) -> None:
    """Invalid bytes cannot be part of a request."""
    ghost.nvim.lua("vim.api.nvim_buf_set_lines(0, 0, 1, true, { 'caf\\233' })")
    ghost.type("ox")
    ghost.pause()
    ghost.type("<Esc>")
    assert ghost.asked() == []
    assert ghost.status().endswith("the text is not UTF-8")


def test_filetypes_can_be_an_allowlist(nvim_factory: Callable[..., Nvim]) -> None:
    """The test uses `filetypes = { ["*"] = false, lua = true }`."""
    ghost = start(nvim_factory, options={"filetypes": {"*": False, "lua": True}})
    ghost.suggest("GHOST")
    ghost.open("a.py")
    ghost.type("ix")
    ghost.pause()
    assert ghost.asked() == []
    ghost.type("<Esc>")
    assert ghost.status().endswith("completion.filetypes is false for python")
    ghost.open("a.lua")
    ghost.type("ix")
    ghost.wait_shown("GHOST")
