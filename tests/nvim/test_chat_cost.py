"""The cost of sending and of following the end, measured by counting calls because times differ between machines."""

from __future__ import annotations

import pytest

from chat_driver import ChatDriver
from codecompanion.wire import events

COUNT = """
_G.counted = {}
local places = { nvim_win_text_height = vim.api, follow = require('codecompanion.chat.buffer.scroll') }
for name, holder in pairs(places) do
  local real = holder[name]
  holder[name] = function(...)
    _G.counted[name] = (_G.counted[name] or 0) + 1
    return real(...)
  end
end
"""
BY_LINES = """
local win = vim.api.nvim_get_current_win()
local rows = vim.api.nvim_win_get_height(win) - (vim.wo[win].winbar ~= '' and 1 or 0)
local line, used, before = vim.api.nvim_buf_line_count(0) + 1, 0, 0
while line > 1 do
  local above = vim.fn.foldclosed(line - 1)
  above = above == -1 and line - 1 or above
  before = used
  used = used + vim.api.nvim_win_text_height(win, { start_row = above - 1, end_row = line - 2 }).all
  if used > rows then
    line = before < rows and above or line -- the end of a line that does not fit is shown ('smoothscroll')
    break
  end
  line = above
end
return { math.min(line, vim.api.nvim_buf_line_count(0)), vim.fn.line('w0'), vim.fn.line('w$') }
"""


def test_an_immediate_send_makes_one_request(chat: ChatDriver) -> None:
    """A draft unknown to the host is not stored first only to be removed again."""
    chat.submit("first")
    chat.submit("second")
    assert [len(chat.sent(verb)) for verb in ("submit", "save_draft")] == [2, 0]


def test_a_stored_draft_is_updated_to_the_sent_text(chat: ChatDriver) -> None:
    """Storing the message removes exactly this text from the drafts, so they must match."""
    chat.nvim.lua("require('codecompanion.chat.wire.draft').set(require('codecompanion.chat').current(), 'half')")
    chat.nvim.wait_for(lambda: chat.sent("save_draft"), "the draft")
    chat.submit("half a sentence")
    assert [draft["text"] for draft in chat.sent("save_draft")] == ["half", "half a sentence"]


@pytest.mark.parametrize(
    "text",
    [
        "\n".join(f"line {number}" for number in range(200)),
        "\n\n".join(f"paragraph {number} " + "word and word " * (7 * number % 40) for number in range(80)),
        "a short one\n" * 70 + "one endless line " * 3000,
    ],
)
def test_following_the_end_takes_few_measurements(chat: ChatDriver, text: str) -> None:
    """Many lines are measured at once, with the same result as line by line."""
    chat.accept("question")
    chat.reply(text[: len(text) // 2], end=False)
    chat.nvim.lua(COUNT)
    chat.push(events.Text(text=text[len(text) // 2 :]))
    chat.drain()
    calls = chat.nvim.lua("return _G.counted.nvim_win_text_height / _G.counted.follow")
    wanted, top, bottom = chat.nvim.lua(BY_LINES)
    assert (top, bottom) == (wanted, chat.nvim.lua("return vim.api.nvim_buf_line_count(0)"))
    assert calls <= 12


def test_the_end_is_followed_below_closed_folds(chat: ChatDriver) -> None:
    """A closed fold takes one row, however many lines it has."""
    chat.accept("question")
    chat.reply("\n".join(f"line {number}" for number in range(300)), end=False)
    chat.nvim.lua("vim.cmd('20,200fold | 210,212fold | 220,290fold')")
    chat.push(events.Text(text="\nthe last line\nand one more"))
    wanted, top, bottom = chat.nvim.lua(BY_LINES)
    assert (top, bottom) == (wanted, chat.nvim.lua("return vim.api.nvim_buf_line_count(0)"))


def test_an_endless_line_is_measured_and_painted_in_parts(chat: ChatDriver) -> None:
    """For 35,000 bytes without a line break, no single frame measures or paints them all."""
    chat.nvim.lua(
        """_G.measured, _G.parsed = 0, 0
           local real, parser = vim.api.nvim_win_text_height, vim.treesitter.get_string_parser
           vim.api.nvim_win_text_height = function(win, opts)
             local at = vim.api.nvim_buf_get_offset
             local from, to = at(0, opts.start_row), at(0, opts.end_row + 1)
             _G.measured = math.max(_G.measured, to - from)
             return real(win, opts)
           end
           vim.treesitter.get_string_parser = function(text, ...)
             _G.parsed = math.max(_G.parsed, #text)
             return parser(text, ...)
           end"""
    )
    chat.accept("question")
    chat.reply("**word** and word " * 2000)
    chat.nvim.wait_lua("local c = require('codecompanion.chat').last_chat() return c.unpainted == 0 or _G.parsed > 0")
    chat.drain()
    assert 0 < chat.nvim.lua("return _G.measured") < 10_000
    assert 0 < chat.nvim.lua("return _G.parsed") < 10_000
