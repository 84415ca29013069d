"""File names that a shell would run are taken literally by every function with a name argument."""

from __future__ import annotations

from pathlib import Path

import pytest

from chat_driver import ChatDriver

NAMES = ["`touch {}`", "x`touch {}`", "$(touch {})", "`=system('touch {}')`", "=system('touch {}')", "|!touch {}"]
NAMES += [
    "%|!touch {}",
    "#`touch {}`",
    "~user`touch {}`",
    "**/`touch {}`",
    "*`touch {}`",
    "[`touch {}`]",
    "{{a,`touch {}`}}",
]
# Each takes a name from the list; its result or error does not matter, but no program may run.
DOORS = {
    "completion of a name": "require('codecompanion.project_files').fitting(text, 50)",
    "completion of /file": "require('codecompanion.chat.slash.attach_paths').complete(text)",
    "completion of an argument": "require('codecompanion.system.literal_paths').beginning_with(text, vim.fn.getcwd())",
    "the words of /file": "require('codecompanion.chat.slash.attach_paths').attach_to_current(vim.split(text, ' '))",
    "a pattern of /file": "require('codecompanion.system.literal_paths').matching(text)",
    "a pasted path": "require('codecompanion.chat.sources.dropped_files').files_in(text, true)",
    "a place in a file": "require('codecompanion.screen.named_location').read(text, { vim.fn.getcwd() })",
    "a file that is opened": "require('codecompanion.screen.open_file').file(text)",
    "its absolute path": "require('codecompanion.system.literal_paths').absolute(text)",
    "a help tag": "require('codecompanion.chat.sources.help_tags').complete(text)",
}


def test_no_name_runs_a_shell(chat: ChatDriver, tmp_path: Path) -> None:
    """Each name is used in each function, as text and as a file name; a control shows that Vim would run it."""
    folder = tmp_path / "project"
    folder.mkdir()
    canary = tmp_path / "canary"
    nvim = chat.nvim
    nvim.lua("vim.cmd.cd(...)", str(folder))
    nvim.lua("pcall(vim.fn.glob, ...)", f"`touch {canary}`")
    assert canary.exists(), "the control did not run: this test could not fail"
    canary.unlink()
    for name in NAMES:
        text = name.format(canary)
        for door, code in DOORS.items():
            nvim.lua(f"local text = ... pcall(function() return {code} end)", text)
            assert not canary.exists(), f"{door}: {text}"


def test_file_patterns_match_like_glob(chat: ChatDriver, tmp_path: Path) -> None:
    """It matches as `glob()` does, but without a shell."""
    names = ["a.py", "b.txt", ".hidden.py", "src/c.py", "src/deep/d.py", "src/[x].py", "ä.py"]
    for name in names:
        (tmp_path / "project" / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / "project" / name).write_text("x")
    chat.nvim.lua("vim.cmd.cd(...)", str(tmp_path / "project"))
    for pattern in (
        "*.py",
        "src/*",
        "**/*.py",
        "?.py",
        "[ab].*",
        ".h*",
        "src/**/d.py",
        "none*",
        f"{tmp_path}/pro*/a.py",
    ):
        expected = sorted(chat.nvim.lua("return vim.fn.glob(..., false, true)", pattern))
        assert (
            chat.nvim.lua("return require('codecompanion.system.literal_paths').matching(...)", pattern) == expected
        ), pattern


HAS_TERMINAL = "return vim.iter(vim.api.nvim_list_bufs()):any(function(b) return vim.bo[b].buftype == 'terminal' end)"
OPENING = [
    "gf",
    "gF",
    "]f",
    "[f",
    "<C-w>f",
    "<C-w><C-f>",
    "<C-w>F",
    "<C-w>gf",
    "<C-w>gF",
    "vg_gf",
    "vg_<C-w>f",
    "vg_gF",
]


@pytest.mark.parametrize("where", ["the chat", "a float"])
def test_a_key_that_opens_a_name_starts_no_terminal(chat: ChatDriver, tmp_path: Path, where: str) -> None:
    """Neovim's own keys would run `term://./x` under the cursor as a program.

    Here a file opens, at the line given by `:3`.
    """
    folder, canary, nvim = tmp_path / "project", tmp_path / "canary", chat.nvim
    folder.mkdir()
    (folder / "x.sh").write_text(f"#!/bin/sh\ntouch {canary}\n# three\n")
    (folder / "x.sh").chmod(0o755)
    nvim.lua("vim.cmd.cd(...) vim.o.hidden = true", str(folder))
    bufnr = nvim.lua("return vim.api.nvim_get_current_buf()")
    lines = ["term://./x.sh", "term://.//1:./x.sh", "x.sh:3"]
    if where == "a float":
        float_ = "require('codecompanion.screen.scratch_buffer').new(...)"
        bufnr = nvim.lua(f"local b = {float_} vim.bo[b].bufhidden = 'hide' return b", lines)
    control = nvim.lua("local b = vim.api.nvim_create_buf(true, true) return b")
    for at, shown in ((control, 1), (bufnr, 3)):
        if at == control or where == "the chat":
            nvim.lua("vim.bo[...].modifiable = true", at)
            nvim.lua("local b, l = ... vim.api.nvim_buf_set_lines(b, -1 - #l, -1, false, l)", at, lines)
        for key in OPENING[4:5] if at == control else OPENING:
            for line in lines[:shown]:
                nvim.lua("vim.cmd('silent! tabonly! | silent! only!') vim.wo.winfixbuf = false")
                nvim.lua("vim.api.nvim_win_set_buf(0, ...)", at)
                nvim.lua("vim.fn.search('^\\\\V' .. ...)", line)
                nvim.feed(key)
                nvim.settle()
                if at == control:
                    nvim.wait_for(canary.exists, "the control to run")
                    canary.unlink()
                    nvim.lua("vim.cmd('bwipeout!')")
                    continue
                name = nvim.lua("return vim.api.nvim_buf_get_name(0)")
                assert not nvim.lua(HAS_TERMINAL), (key, line)
                assert not canary.exists(), (key, line)
                if line == "x.sh:3":
                    assert name == str(folder / "x.sh"), key
                    assert nvim.lua("return vim.fn.line('.')") == 3, key
                nvim.feed("<Esc>")
