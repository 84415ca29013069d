"""The pause before a question follows the server and the rhythm of typing (issue 11, R-261)."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from harness import Nvim

CLOCK = """
_G.now = 0
local uv = vim.uv or vim.loop
uv.hrtime = function() return _G.now * 1e6 end
uv.now = function() return _G.now end
_G.pace = require("codecompanion.inline.request_pace")
_G.keys = function(gap, count)
  for _ = 1, count do
    _G.now = _G.now + gap
    _G.pace.key()
  end
end
"""
WAIT = "return _G.pace.pause_ms({ debounce = 300, adaptive = true })"


@pytest.fixture
def nvim(nvim_factory: Callable[..., Nvim]) -> Nvim:
    """Return a Neovim whose clock stands still."""
    made = nvim_factory()
    made.lua(CLOCK)
    return made


def test_nothing_is_known_at_first(nvim: Nvim) -> None:
    """The pause is what is configured."""
    assert nvim.lua(WAIT) == 300


@pytest.mark.parametrize(
    ("answer_ms", "gap_ms", "wanted"),
    [
        (10, 0, 150),  # a fast server, no typing: half of it
        (10, 60, 150),
        (10, 160, 240),  # a slow typist: longer than a gap
        (400, 60, 400),  # a slow server: as long as it takes
        (5_000, 60, 600),  # never more than twice of it
        (10, 900, 600),
        (200, 5_000, 200),  # that was no gap between two keys
    ],
)
def test_it_follows_the_server_and_the_keys(nvim: Nvim, answer_ms: int, gap_ms: int, wanted: int) -> None:
    """Between half and twice of `debounce`; the longer of both."""
    nvim.lua("local answer, gap = ... for _ = 1, 40 do _G.pace.answered(answer) end", answer_ms)
    if gap_ms:
        nvim.lua("_G.now = 10000; _G.keys(...)", gap_ms, 40)
    assert nvim.lua(WAIT) == pytest.approx(wanted, abs=2)


def test_one_slow_answer_is_not_all_there_is(nvim: Nvim) -> None:
    """The newest value counts 0.3."""
    nvim.lua("for _ = 1, 40 do _G.pace.answered(200) end _G.pace.answered(1200)")
    assert nvim.lua(WAIT) == 500
    nvim.lua("for _ = 1, 20 do _G.pace.answered(200) end")
    assert nvim.lua(WAIT) == pytest.approx(200, abs=2)


def test_it_is_never_shorter_than_50_ms_nor_adapted_against_the_user(nvim: Nvim) -> None:
    """R-261: the least debounce; `adaptive = false` waits exactly so long."""
    nvim.lua("for _ = 1, 40 do _G.pace.answered(5) end")
    assert nvim.lua("return _G.pace.pause_ms({ debounce = 60, adaptive = true })") == 50
    assert nvim.lua("return _G.pace.pause_ms({ debounce = 60, adaptive = false })") == 60


def test_a_server_that_fails_is_left_alone_longer_and_longer(nvim: Nvim) -> None:
    """1, 2, 4 … seconds, at most a minute, until it answers."""
    pauses = nvim.lua(
        "local found = {} for i = 1, 8 do _G.pace.failed(); found[i] = _G.pace.rest_ms() end return found"
    )
    assert pauses == [1000, 2000, 4000, 8000, 16000, 32000, 60000, 60000]
    nvim.lua("_G.now = _G.now + 59000")
    assert nvim.lua("return _G.pace.rest_ms()") == 1000
    nvim.lua("_G.pace.answered(10)")
    assert nvim.lua("return _G.pace.rest_ms()") == 0
