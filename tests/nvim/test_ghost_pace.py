"""The pause before a request adapts to the server and the typing rhythm (R-261)."""

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
    """Return a Neovim with a stopped clock."""
    made = nvim_factory()
    made.lua(CLOCK)
    return made


def test_at_first_the_configured_pause_applies(nvim: Nvim) -> None:
    """Nothing has been measured yet."""
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
        (200, 5_000, 200),  # that was not a gap between two keys
    ],
)
def test_the_pause_follows_the_server_and_the_keys(nvim: Nvim, answer_ms: int, gap_ms: int, wanted: int) -> None:
    """The pause is the longer of the two, limited to between half and twice `debounce`."""
    nvim.lua("local answer, gap = ... for _ = 1, 40 do _G.pace.answered(answer) end", answer_ms)
    if gap_ms:
        nvim.lua("_G.now = 10000; _G.keys(...)", gap_ms, 40)
    assert nvim.lua(WAIT) == pytest.approx(wanted, abs=2)


def test_one_slow_answer_has_a_limited_effect(nvim: Nvim) -> None:
    """The newest value has weight 0.3."""
    nvim.lua("for _ = 1, 40 do _G.pace.answered(200) end _G.pace.answered(1200)")
    assert nvim.lua(WAIT) == 500
    nvim.lua("for _ = 1, 20 do _G.pace.answered(200) end")
    assert nvim.lua(WAIT) == pytest.approx(200, abs=2)


def test_the_pause_is_at_least_50_ms_and_fixed_if_configured(nvim: Nvim) -> None:
    """R-261: 50 ms is the minimum debounce; with `adaptive = false`, the pause is exactly the configured one."""
    nvim.lua("for _ = 1, 40 do _G.pace.answered(5) end")
    assert nvim.lua("return _G.pace.pause_ms({ debounce = 60, adaptive = true })") == 50
    assert nvim.lua("return _G.pace.pause_ms({ debounce = 60, adaptive = false })") == 60


def test_a_failing_server_gets_a_growing_backoff(nvim: Nvim) -> None:
    """The backoff is 1, 2, 4 … seconds, up to one minute, until the server answers."""
    pauses = nvim.lua(
        "local found = {} for i = 1, 8 do _G.pace.failed(); found[i] = _G.pace.rest_ms() end return found"
    )
    assert pauses == [1000, 2000, 4000, 8000, 16000, 32000, 60000, 60000]
    nvim.lua("_G.now = _G.now + 59000")
    assert nvim.lua("return _G.pace.rest_ms()") == 1000
    nvim.lua("_G.pace.answered(10)")
    assert nvim.lua("return _G.pace.rest_ms()") == 0
