"""Edits in place when processes are killed and in unusual buffers: no partial edit is left behind."""

from __future__ import annotations

import asyncio
import os
import signal

import pytest

from real_chat import KEY
from test_edit_in_place import EDITED, NEW, OLD, TWO, code, desk
from tests.forked_python import process_of
from tests.providers.chat.answers import reply

__all__ = ["desk"]

PARTLY = ["def fact(number):", *OLD[4:7]]


@pytest.mark.parametrize("moment", ["streaming", "proposed", "partly accepted", "accepted"])
def test_a_killed_neovim_leaves_complete_texts_and_a_usable_chat(desk, nvim_factory, tmp_path, moment):
    """The disk has the written text and the swap file the buffer text; neither contains any part of a proposal."""
    gate = asyncio.Event()
    held = {"gate": gate, "gate_after": 24} if moment == "streaming" else {}
    here = desk(reply(code(TWO), **held))
    here.nvim.command("set swapfile updatecount=1 directory=" + str(tmp_path))
    here.edit("4,7CodeCompanion call it number")
    if moment == "streaming":
        here.nvim.wait_for(lambda: here.state().get("changes", 0) > 0, "code that arrives")
    else:
        here.wait_proposed(2)
    if moment == "partly accepted":
        here.nvim.feed("4GVg2")
        here.wait_proposed(1)
    elif moment == "accepted":
        here.nvim.feed("g2")
        here.wait_over()
    had = here.lines()
    wanted = {"partly accepted": [*OLD[:3], *PARTLY, *OLD[7:]], "accepted": [*OLD[:3], *TWO, *OLD[7:]]}
    assert had == wanted.get(moment, OLD)
    chat_id = here.nvim.lua("return require('codecompanion.edit_in_place').last_chat") or here.state()["chat"]
    here.nvim.command("preserve")
    here.nvim.kill9()
    here.server.release(gate)
    path = tmp_path / "work" / "fact.py"
    assert path.read_text() == "\n".join(OLD) + "\n"
    again = nvim_factory(init=(tmp_path / "init.lua").read_text(), env={"LOOP_KEY": KEY})
    again.command(f"cd {tmp_path}/work | set directory={tmp_path}")
    again.command("set shortmess+=A | silent! recover fact.py")
    assert again.lines() == had
    again.lua("require('codecompanion.chat').resume(...)", chat_id)
    again.wait_screen("call it number")
    again.wait_screen("replaces the lines" if moment != "streaming" else "Interrupted|Stopped")


@pytest.mark.parametrize("moment", ["streaming", "follow-up", "accepted"])
def test_a_killed_host_loses_no_decision(desk, moment):
    """The previous proposal is shown again, undo and redo cover the accepted changes, and the chat can be opened."""
    gate = asyncio.Event()
    held = reply(code(NEW), gate=gate, gate_after=24)
    first = held if moment == "streaming" else reply(code(TWO))
    here = desk(first, held)
    here.edit("4,7CodeCompanion call it number")
    if moment == "streaming":
        here.nvim.wait_for(lambda: here.state().get("changes", 0) > 0, "code that arrives")
    else:
        here.wait_proposed(2)
        here.nvim.feed("4GVg2")
        here.wait_proposed(1)
    if moment == "follow-up":
        here.nvim.feed("g.shorter<CR>")
        here.nvim.wait_for(lambda: here.state().get("state") == "asking" and len(here.server.requests) == 2, "it")
    had = here.lines()
    os.kill(process_of(here.chat.job_pid()), signal.SIGKILL)
    here.nvim.wait_screen("The Python process ended" if moment != "accepted" else "g2 accept")
    here.server.release(gate)
    assert here.lines() == had
    if moment == "streaming":
        return here.wait_over()
    here.wait_proposed(1)
    here.nvim.feed("u")
    here.wait_proposed(2)
    assert here.lines() == OLD
    here.nvim.feed("<C-r>")
    here.wait_proposed(1)
    assert here.lines() == [*OLD[:3], *PARTLY, *OLD[7:]]
    here.nvim.feed("g2")
    here.wait_over()
    assert here.lines() == [*OLD[:3], *TWO, *OLD[7:]]
    here.ask("CodeCompanion edits")
    here.nvim.wait_screen("call it number|shorter")
    return None


STRANGE_BUFFERS = {
    "no undo file": "setlocal noundofile",
    "read-only": "setlocal readonly",
    "two windows": "split | wincmd p",
    "no wrap": "setlocal nowrap",
    "folded": "setlocal foldmethod=manual | 4,7fold",
    "virtual lines": "lua for row = 3, 6 do vim.api.nvim_buf_set_extmark(0, vim.api.nvim_create_namespace('other'),"
    " row, 0, { virt_lines = { { { 'of another plugin', 'Comment' } } } }) end",
    "no undo": "setlocal undolevels=-1",
    "few undo": "setlocal undolevels=0",
    "dos": "setlocal fileformat=dos",
}


@pytest.mark.slow("every kind of buffer")
@pytest.mark.parametrize("size", [(80, 24), (40, 16)])
@pytest.mark.parametrize("how", STRANGE_BUFFERS)
def test_accept_undo_redo_and_retry_work_in_every_buffer(desk, how, size):
    here = desk(reply(code(TWO)), reply(code(NEW)), size=size)
    here.nvim.command("edit fact.py")
    here.nvim.command(STRANGE_BUFFERS[how])
    here.ask("4,7CodeCompanion call it number")
    here.wait_proposed(2)
    assert here.lines() == OLD
    here.nvim.wait_screen(r"def fact\(number\):")
    here.nvim.feed("4GVg2")
    here.wait_proposed(1)
    partly = [*OLD[:3], *PARTLY, *OLD[7:]]
    assert here.lines() == partly
    if "undo" not in how or how == "no undo file":
        for key, lines, left in (("u", OLD, 2), ("<C-r>", partly, 1), ("u", OLD, 2)):
            here.nvim.feed(key)
            here.nvim.wait_for(lambda lines=lines: here.lines() == lines, key)
            here.wait_proposed(left)
    before = here.lines()
    here.nvim.feed("g<CR><C-u>make it iterative<CR>")
    here.nvim.wait_for(lambda: len(here.server.requests) == 2, "the retry")
    here.nvim.wait_screen(r"result = 1")
    here.nvim.wait_for(lambda: here.state().get("state") == "proposed", "the new proposal")
    assert here.lines() == before
    here.nvim.feed("g2")
    here.wait_over()
    assert here.lines() == EDITED
    assert here.nvim.lua("return #vim.api.nvim_buf_get_extmarks(0, -1, 0, -1, { type = 'virt_lines' })") == (
        4 if how == "virtual lines" else 0
    )
    assert not here.nvim.blocked()
    if how == "read-only":
        here.nvim.wait_for(lambda: "read-only" in here.nvim.messages(), "a word about it")


def test_typing_far_from_an_edit_redraws_nothing(desk):
    """Otherwise every key would redraw a large file; near the edit and after an undo, the display stays correct."""
    here = desk(reply(code(TWO)))
    here.edit("4,7CodeCompanion call it number", lines=[*OLD, *["pass"] * 200])
    here.wait_proposed(2)
    here.nvim.lua("vim.wait(200)")  # pending work from the reply
    here.nvim.lua(
        """local draw = require("codecompanion.changes.draw_hunks")
           local really = draw.draw
           _G.drawn = 0
           draw.draw = function(...) _G.drawn = _G.drawn + 1 return really(...) end"""
    )
    here.nvim.feed("Goprint(1)<Esc>100GddggOimport os<Esc>")
    here.nvim.lua("vim.wait(100)")
    assert here.nvim.lua("return _G.drawn") == 0
    here.nvim.feed("6GA  # one<Esc>")
    here.nvim.wait_lua("return _G.drawn > 0")
    screen = here.nvim.wait_screen(r"def fact\(number\):  \+")
    assert screen.index("def fact(n):  −") < screen.index("def fact(number):  +") < screen.index("if n < 2:  # one")
    here.nvim.feed("g2")
    here.wait_over()
    assert here.lines()[4:8] == ["def fact(number):", "    if n < 2:  # one", "        return 1", TWO[3]]
