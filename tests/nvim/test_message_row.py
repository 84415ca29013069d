"""The message row: a message fits at any width, the important half first; no hit-enter prompt (lesson 38)."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from harness import NO_PROVIDER, Nvim

PAGE = "~/projects/customers/stack-machine/why-does-pop-fail-on-an-empty-stack.html"
SHORT_PAGE = "…/why-does-pop-fail-on-an-empty-stack.html"
KEYS = "Keys are hidden; read it before you share it."
EXPORTED = [f"Exported to {PAGE} (12 kB). {KEYS}", f"Exported to {PAGE} (12 kB)"]
GUESS = ["The window of qwen3:14b is unknown: 32,000 tokens are assumed. Set it in setup(): models = { … }"]
NO_PROMPT = ["A prompt is left out: /home/someone/.config/nvim/codecompanion/prompts/review.md, line 3: no `name`"]
WIDE = ["漢字" * 80]
LINK = ["Could not open the page; its address is https://example.com/device", "https://example.com/device"]


@pytest.fixture
def nvim(nvim_factory: Callable[..., Nvim]) -> Nvim:
    """Return a Neovim whose home is `/home/someone`."""
    return nvim_factory(init=NO_PROVIDER)


@pytest.mark.parametrize(
    ("texts", "room", "said"),
    [
        (EXPORTED, 160, f"codecompanion: {EXPORTED[0]}"),
        (EXPORTED, 110, f"Exported to {SHORT_PAGE} (12 kB). {KEYS}"),
        (EXPORTED, 98, f"Exported to {PAGE} (12 kB)"),
        (EXPORTED, 68, f"Exported to {SHORT_PAGE} (12 kB)"),
        (GUESS, 68, "The window of qwen3:14b is unknown: 32,000 tokens are assumed. …"),
        (GUESS, 90, "The window of qwen3:14b is unknown: 32,000 tokens are assumed. … (:CodeCompanion log)"),
        (NO_PROMPT, 98, "A prompt is left out: ~/.config/nvim/codecompanion/prompts/review.md, line 3: no `name`"),
        (NO_PROMPT, 68, "A prompt is left out: …/prompts/review.md, line 3: no `name`"),
        (LINK, 50, "codecompanion: https://example.com/device"),
        (WIDE, 28, "漢字" * 6 + "漢…"),
        (["x"], 1, "x"),
        (["xy"], 1, "…"),
    ],
)  # fmt: skip
def test_the_important_half_is_shown_in_the_available_room(nvim: Nvim, texts: list[str], room: int, said: str) -> None:
    """The prefix is dropped first, then the folders of a path, then words, then whole sentences at the end."""
    code = (
        "local texts, room = ...\nvim.env.HOME = '/home/someone'\n"
        "local line = require('codecompanion.say').fitting(texts, room)\n"
        "return { line, vim.api.nvim_strwidth(line) }"
    )
    line, width = nvim.lua(code, texts, room)
    assert line == said
    assert width <= room


FUZZ = """
local say, room, left = require("codecompanion.say"), 0, {}
local parts = { "/", "~", "a/b", "/home/someone", "https://x.y/z", ". ", "; ", "…", "漢", "(", "%d", "`", " ", "word" }
vim.list_extend(parts, { "\\n", "." })
vim.env.HOME = "/home/someone"
math.randomseed(...)
for _ = 1, 4000 do
  local text = {}
  for index = 1, math.random(0, 40) do
    text[index] = parts[math.random(#parts)]
  end
  room = math.random(1, 120)
  local texts = { table.concat(text), table.concat(text, "", math.floor(#text / 2) + 1) }
  local line = say.fitting(texts, room)
  if vim.api.nvim_strwidth(line) > room or line:find("\\n") then
    left[#left + 1] = { room, texts, line }
  end
end
return left
"""


@pytest.mark.parametrize("seed", [1, 2, 3])
def test_any_text_fits(nvim: Nvim, seed: int) -> None:
    """This includes paths within paths, pattern characters, double-width characters and empty text."""
    assert nvim.lua(FUZZ, seed) in ([], {})


@pytest.mark.parametrize("columns", [40, 80, 110, 200])
@pytest.mark.parametrize("said", ["line", "hint"])
def test_no_message_causes_a_prompt(nvim_factory: Callable[..., Nvim], columns: int, said: str) -> None:
    """Double-width characters, tabs and line breaks are measured correctly; the whole text is in the log."""
    nvim = nvim_factory(init=NO_PROVIDER, size=(columns, 24))
    for text, begin in (("漢字" * 120, "漢字"), ("a\tb\nc " * 60, "a b c"), ("/a/long/path" * 30, "…/")):
        nvim.lua(f"require('codecompanion.say').{said}(...)", text)
        nvim.wait_screen(rf"\n{begin}[^\n]*$")
        assert not nvim.blocked()
    if said == "line":
        log = nvim.lua("return table.concat(vim.fn.readfile(require('codecompanion.system.log').path()), '\\n')")
        assert "漢字" * 120 in log
