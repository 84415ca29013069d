"""Random events and typing: the draft, anchors and folds stay correct in any order."""

from __future__ import annotations

import random
import re
from collections.abc import Callable

import pytest

from chat_driver import ChatDriver, make_chat
from codecompanion.session.history.card_sections import card_sections
from codecompanion.wire import events
from harness import Nvim

SUMMARY = "## 1. A\nx\n## 2. B\ny\n\n## 7. C\nz"
CHECK = """
local chat = require('codecompanion.chat').last_chat()
local buffer, folds = require('codecompanion.chat.buffer.anchors'), require('codecompanion.chat.buffer.folds')
local top, tail, header = buffer.position(chat, 'top'), buffer.position(chat, 'tail'), buffer.position(chat, 'header')
if top > tail or tail > header then
  return ('anchors %d %d %d'):format(top, tail, header)
end
for _, win in ipairs(vim.fn.win_findbuf(chat.bufnr)) do
  local problem = vim.api.nvim_win_call(win, function()
    local starts = {}
    for _, fold in pairs(chat.folds) do
      local first, last = folds.rows(chat, fold)
      if first then
        starts[first + 1] = true
        if vim.fn.foldlevel(first + 1) == 0 then
          return ('no fold at %d'):format(first)
        elseif vim.fn.foldclosed(first + 1) == first + 1 and vim.fn.foldclosedend(first + 1) ~= last + 1 then
          return ('fold %d..%d ends at %d'):format(first, last, vim.fn.foldclosedend(first + 1) - 1)
        end
      end
    end
    for line = 1, vim.fn.line('$') do
      if vim.fn.foldclosed(line) == line and not starts[line] then
        return ('a fold of nobody at %d'):format(line - 1)
      end
    end
  end)
  if problem then
    return problem
  end
end
"""


class Player:
    """Plays a random chat and knows the expected draft."""

    def __init__(self, chat: ChatDriver, seed: int) -> None:
        """Take a seed, so that a failure can be replayed."""
        self.chat, self.random = chat, random.Random(seed)
        self.draft, self.calls, self.made = "", list[str](), 0
        self.outgoing: list[tuple[int, str]] = []

    def text(self) -> None:
        pieces = ["word ", "line\n", "\n\n", "```lua\nx=1\n", "```\n", "## Me\n", "- a\n", "x" * 3000]
        self.chat.push(events.Text(text=self.random.choice(pieces)))

    def reasoning(self) -> None:
        self.chat.push(events.Reasoning(text=self.random.choice(["hm ", "so\n", "a\nb\n"])))

    def tool(self) -> None:
        self.made += 1
        self.calls.append(f"c{self.made}")
        self.chat.push(events.ToolStarted(call_id=f"c{self.made}", name="t", title=f"tool {self.made}"))

    def finish_tool(self) -> None:
        if self.calls:
            call_id = self.calls.pop(self.random.randrange(len(self.calls)))
            preview = self.random.choice(["", "a\nb\n```\n## Me", "z\n" * 50])
            self.chat.push(
                events.ToolFinished(
                    call_id=call_id,
                    message_id=call_id,
                    name="t",
                    title=f"tool {call_id}",
                    summary="s",
                    preview=preview,
                    status=self.random.choice(["ok", "error"]),
                )
            )

    def approval(self) -> None:
        self.chat.push(events.ApprovalRequested(call_id="a", name="t", title="t", body="cmd\n```", filetype="sh"))
        self.chat.push(events.ApprovalClosed(call_id="a", decision="once"))

    def type(self) -> None:
        self.chat.nvim.lua(
            """local chat = require('codecompanion.chat').last_chat()
               require('codecompanion.chat').show(chat)
               require('codecompanion.chat.buffer.scroll').cursor_to_input(chat)"""
        )
        keys = self.random.choice(["abc", "x y", "<CR>new", "## Me", "```"])
        self.chat.nvim.feed(f"<Esc>G$a{keys}<Esc>")
        self.chat.nvim.settle()
        self.draft += keys.replace("<CR>", "\n")

    def submit(self) -> None:
        if self.draft.strip():
            self.chat.nvim.lua(
                "require('codecompanion.chat.ui.submit').send(require('codecompanion.chat').last_chat())"
            )
            sent = self.chat.sent("submit")[-1]
            assert sent["text"] == self.draft
            self.outgoing.append((sent["submit_id"], self.draft))
            self.draft = ""

    def stored(self) -> None:
        if self.outgoing:
            submit_id, text = self.outgoing.pop(0)
            self.chat.push(events.MessageSent(submit_id=submit_id, message_id=f"m{submit_id}", text=text, cycle=1))

    def not_stored(self) -> None:
        if self.outgoing:
            submit_id, text = self.outgoing.pop()
            self.chat.push(events.SubmitFailed(submit_id=submit_id, text=text, error="no"))
            self.draft = text + ("\n\n" + self.draft if self.draft else "")

    def context(self) -> None:
        count = self.random.randrange(4)
        items = tuple(events.ContextItem(id=str(n), kind="file", label=f"f{n}") for n in range(count))
        self.chat.push(events.ContextItems(items=items))

    def edited(self) -> None:
        call_id = f"c{self.random.randrange(1, self.made + 2)}"
        self.chat.push(events.ContextEdited(cleared=1, tokens_before=9, tokens_after=4, call_ids=(call_id,)))

    def compaction(self) -> None:
        self.chat.push(
            events.Compacted(
                compaction_id="k",
                trigger="manual",
                summariser="s",
                summary=SUMMARY,
                sections=card_sections(SUMMARY),
                messages=3,
                cycles=(1, 2),
                tokens_before=9,
                tokens_after=4,
                duration_ms=4,
            )
        )

    def end_turn(self) -> None:
        self.chat.push(events.ReplyFinished(message_id="r", stop="stop"), events.TurnFinished(reason="done"))

    def toggle(self) -> None:
        layout = self.random.choice(["buffer", "float", "vertical", "tab"])
        self.chat.nvim.lua("require('codecompanion.chat').toggle(...)", {"layout": layout})

    def move(self) -> None:
        keys = self.random.choice(["gg", "G", "<C-u>", "<C-d>", "]]", "[[", "<Tab>", "zM", "zR"])
        self.chat.nvim.feed(f"<Esc>{keys}")
        self.chat.nvim.settle()

    def step(self) -> str:
        """Perform one random action; return its name."""
        often = [self.text] * 6 + [self.type] * 3
        once = [self.reasoning, self.tool, self.finish_tool, self.approval, self.submit, self.stored, self.not_stored]
        once += [self.context, self.edited, self.compaction, self.end_turn, self.toggle, self.move]
        action = self.random.choice(often + once)
        action()
        return action.__name__


ATTENTION = re.compile(r"^\s*$|Approval needed|The reply in .* is complete")
"""Messages about a chat that is not visible (it was toggled away)."""


@pytest.mark.parametrize("seed", [1, 5, 11])
def test_a_random_chat_loses_and_misplaces_nothing(nvim_factory: Callable[..., Nvim], seed: int) -> None:
    """R-547, lesson 16: this is checked for sequences that no one would write as a test."""
    quiet = {"display": {"chat": {"window": {"layout": "buffer"}, "notify_unseen": False}}}
    chat = make_chat(nvim_factory, options=quiet, size=(90, 28))
    player, done = Player(chat, seed), list[str]()
    for _ in range(70):
        done.append(player.step())
        chat.nvim.settle()
        assert chat.input() == player.draft, done
        assert chat.text().endswith("## Me\n" + player.draft), done
        assert not [line for line in chat.nvim.messages().splitlines() if not ATTENTION.search(line)], done
        assert not chat.nvim.lua(CHECK), done
