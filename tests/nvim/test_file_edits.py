"""Changing a loaded buffer: any text can become any other in one undo step, and the bytes of other lines are kept."""

from __future__ import annotations

import base64
import random

import pytest

CHANGE = """
local path, encoded = ...
local buffers, edit = require('codecompanion.files.loaded_files'), require('codecompanion.files.edit_buffer')
local file = require('codecompanion.files.reload_buffers').look({ path })[1]
local raw = vim.api.nvim_buf_get_lines(file.buffer, 0, -1, false)
local result = edit.change({
  path = path, buffer = file.buffer, tick = file.tick, text = vim.base64.decode(encoded), save = false,
})
local text = buffers.text(file.buffer)
vim.cmd('silent undo')
local back = vim.deep_equal(raw, vim.api.nvim_buf_get_lines(file.buffer, 0, -1, false))
vim.cmd('silent edit!')
return { result.state, vim.base64.encode(text), back, vim.base64.encode(file.text) }
"""
WORDS = ["", "a", "b", "\tc", "ä 中", "x" * 30, "same", "same"]


def encoded(text: str) -> str:
    return base64.b64encode(text.encode()).decode()


def decoded(text: str) -> str:
    return base64.b64decode(text).decode()


@pytest.mark.parametrize("seed", range(4))
def test_any_text_becomes_any_other_and_one_undo_reverts_it(nvim, tmp_path, seed):
    rng = random.Random(seed)
    path = tmp_path / "a.txt"
    for _ in range(40):
        before = "".join(rng.choice(WORDS) + "\n" for _ in range(rng.randrange(9)))
        after = "".join(rng.choice(WORDS) + "\n" for _ in range(rng.randrange(9)))
        if rng.random() < 0.5:
            lines = before.splitlines(keepends=True)
            lines[rng.randrange(len(lines) + 1) :] = rng.choices(["new\n", "same\n"], k=rng.randrange(3))
            after = "".join(lines)
        path.write_text(before)
        nvim.command(f"silent edit! {path}")
        state, text, is_back, seen = nvim.lua(CHANGE, str(path), encoded(after))
        what = (before, after)
        assert state == "unsaved", what
        # A buffer of one empty line is an empty file to Neovim.
        assert decoded(seen) == ("" if before == "\n" else before), what
        assert decoded(text) == ("" if after == "\n" else after), what
        assert is_back or decoded(seen) == decoded(text), what


def test_invalid_bytes_stay_in_unchanged_lines(nvim, tmp_path):
    path = tmp_path / "a.bin"
    path.write_bytes(b"one \xff\xfe\ntwo \xed\xa0\x80\nfour\x01 \x00 nul\nlast\n")
    nvim.command("set fileencodings=utf-8")
    nvim.command(f"edit ++enc=utf-8 ++bad=keep {path}")
    nvim.lua("vim.bo.readonly = false")
    found = nvim.lua("return vim.base64.encode(require('codecompanion.files.loaded_files').text(0))")
    shown = decoded(found)
    assert shown == "one \ufffd\ufffd\ntwo \ufffd\ufffd\ufffd\nfour\x01 \x00 nul\nlast\n"
    nvim.lua(
        """local path, text = ...
           local file = require('codecompanion.files.reload_buffers').look({ path })[1]
           require('codecompanion.files.edit_buffer').change({
             path = path, buffer = file.buffer, tick = file.tick, text = vim.base64.decode(text),
           })""",
        str(path),
        encoded(shown.replace("last", "the end")),
    )
    assert path.read_bytes() == b"one \xff\xfe\ntwo \xed\xa0\x80\nfour\x01 \x00 nul\nthe end\n"


def test_a_buffer_that_has_another_file_now_is_not_written(nvim, tmp_path):
    """A rename, or a folder replaced by a link, changes the file that `:write` writes, but not the changedtick."""
    (tmp_path / "in").mkdir()
    (tmp_path / "out").mkdir()
    for folder in ("in", "out"):
        (tmp_path / folder / "a.txt").write_text("old\n")

    def change_after(setup):
        return nvim.lua(
            """local path, setup = ...
               local file = require('codecompanion.files.reload_buffers').look({ path })[1]
               loadstring(setup)()
               return require('codecompanion.files.edit_buffer').change({
                 path = path, buffer = file.buffer, tick = file.tick, text = 'new\\n',
               }).state""",
            str(tmp_path / "in" / "a.txt"),
            setup,
        )

    nvim.command(f"edit {tmp_path}/in/a.txt")
    assert change_after(f"vim.api.nvim_buf_set_name(0, '{tmp_path}/out/a.txt')") == "stale"
    nvim.command(f"bwipeout! | edit {tmp_path}/in/a.txt")
    swap = f"vim.uv.fs_rename('{tmp_path}/in', '{tmp_path}/was') vim.uv.fs_symlink('{tmp_path}/out', '{tmp_path}/in')"
    assert change_after(swap) == "stale"
    nvim.command(f"bwipeout! | edit {tmp_path}/new")
    nvim.lua("vim.api.nvim_buf_set_lines(0, 0, -1, false, { 'typed' })")
    (tmp_path / "new").symlink_to(tmp_path / "made")
    found = nvim.lua("return require('codecompanion.files.loaded_files').path_of(0)")
    assert found == str(tmp_path / "made")
    assert [(tmp_path / name / "a.txt").read_text() for name in ("was", "out")] == ["old\n", "old\n"]
