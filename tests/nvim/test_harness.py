"""The test harness itself, on which every other Neovim test depends."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from harness import REPO, Nvim, NvimError


def test_the_screen_shows_typed_text_and_the_cursor(nvim: Nvim) -> None:
    """Keys arrive as typed; text is read from the grid."""
    nvim.feed("ihello<Space>wörld<CR>second 😀<Esc>")
    screen = nvim.wait_screen("second 😀")
    assert screen.split("\n")[0] == "hello wörld"
    assert nvim.lines() == ["hello wörld", "second 😀"]
    assert nvim.row("second") == 1


def test_the_home_is_clean_and_the_repository_is_on_the_runtimepath(nvim: Nvim) -> None:
    """The developer's own configuration must not leak into a test."""
    for kind in ("config", "data", "state", "cache"):
        assert nvim.lua("return vim.fn.stdpath(...)", kind).startswith(str(nvim.root))
    assert nvim.lua("return vim.uv.os_homedir()") == str(nvim.root / "home")
    assert nvim.lua("return vim.opt.runtimepath:get()")[0] == str(REPO)


def test_a_failing_wait_prints_the_screen_and_the_messages(nvim: Nvim) -> None:
    """A predicate that never becomes true is explained by the error."""
    nvim.command("echomsg 'a trace'")
    nvim.feed("ivisible<Esc>")
    nvim.wait_screen("visible")
    with pytest.raises(NvimError) as caught:
        nvim.wait_for(lambda: False, "the impossible", timeout=0.1)
    assert "the impossible" in str(caught.value)
    assert "visible" in str(caught.value)
    assert "a trace" in str(caught.value)


def test_a_lua_error_includes_its_text(nvim: Nvim) -> None:
    """Errors inside Neovim are raised as exceptions in the test."""
    with pytest.raises(NvimError, match="boom"):
        nvim.lua("error('boom')")


def test_a_blocking_prompt_is_detected(nvim: Nvim) -> None:
    """`blocked` lets tests prove that no hit-enter prompt appeared."""
    assert not nvim.blocked()
    nvim.feed(':echo "a\\nb\\nc"<CR>')
    nvim.wait_for(nvim.blocked, "a hit-enter prompt")
    nvim.feed("<CR>")
    nvim.wait_for(lambda: not nvim.blocked(), "the prompt to close")


def test_killing_keeps_the_data_for_the_next_child(nvim_factory: Callable[..., Nvim]) -> None:
    """Neovim can be killed with `kill -9` and started again on the same folders."""
    first = nvim_factory()
    first.lua("vim.fn.mkdir(vim.fn.stdpath('data'), 'p'); vim.fn.writefile({'kept'}, vim.fn.stdpath('data')..'/x')")
    first.kill9()
    with pytest.raises(NvimError):
        first.lua("return 1")
    second = nvim_factory()
    assert second.lua("return vim.fn.readfile(vim.fn.stdpath('data')..'/x')") == ["kept"]


def test_notifications_from_neovim_are_collected(nvim: Nvim) -> None:
    """`rpcnotify` to the test's own channel reaches the test, for example to record autocmds."""
    nvim.lua("vim.rpcnotify(..., 'seen', 1, 'two')", nvim.channel)
    nvim.wait_for(lambda: nvim.notifications, "a notification")
    assert nvim.notifications == [("seen", [1, "two"])]
