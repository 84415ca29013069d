"""The results of one reply: each has its own fold, whatever is asked, opened or shown elsewhere between them."""

from __future__ import annotations

import random

import msgspec
import pytest

from chat_driver import ChatDriver
from codecompanion.wire import events

LINES = """
  local lines = {}
  for line = 1, vim.fn.line('$') do
    lines[line] = { vim.fn.foldlevel(line), vim.fn.foldclosed(line), vim.fn.getline(line) }
  end
  return lines
"""
KEYS = (
    "]a", "gg", "G", "zR", "zM", "za", "zo", "zj", "Gi<Esc>", "zc", "ggza", "5Gza", ":split<CR>", ":vsplit<CR>",
    "<C-w>w", ":CodeCompanionChat Toggle<CR>:CodeCompanionChat Toggle<CR>", ":only<CR>", ":tab split<CR>",
    ":tabclose<CR>", ":set foldlevel=0<CR>",
)  # fmt: skip


def finished(call: str, lines: int) -> events.ToolFinished:
    """Return the result of a call."""
    return events.ToolFinished(
        call_id=call,
        name="tool",
        title=f"tool {call}",
        summary="ok",
        preview="\n".join(map(str, range(lines))),
        status="ok",
        tokens=1,
        duration_ms=1,
        message_id=f"m{call}",
        reply_id="r1",
    )


class Story:
    """Calls that start, ask and end in random order while the user does other things."""

    def __init__(self, chat: ChatDriver, seed: int) -> None:
        self.chat, self.random, self.told = chat, random.Random(seed), list[str]()
        self.running: list[str] = []
        self.waiting: list[events.Event] = []

    def do(self, what: str, event: events.Event) -> None:
        """Make the host send an event, alone or together with the next one."""
        self.told.append(what)
        self.waiting.append(event)
        if self.random.random() < 0.5:
            self.flush()

    def flush(self) -> None:
        """Send the queued events to the editor and check that each result has its own fold."""
        self.told.append("flush")
        batch, self.waiting = self.waiting, []
        types = self.random.random() < 0.5
        if types:
            self.told.append("types")
            self.chat.nvim.feed("Gi")
        if self.random.random() < 0.5:
            self.chat.push(*batch)
        else:
            self.chat.push_soon(*batch)
            self.chat.drain()
        if types:
            self.chat.nvim.feed("<Esc>")
        rows = self.chat.nvim.lua(LINES)
        for number, (level, closed, text) in enumerate(rows, 1):
            is_hidden = closed not in (-1, number) if text.startswith("▾ tool") else closed != -1
            if level > 1 or (text.startswith(("▾ tool", "▸", "?", "##")) and is_hidden):
                shown = "\n".join(f"{at} {row}" for at, row in enumerate(rows, 1))
                raise AssertionError("\n".join((*self.told, shown)))

    def call(self, call: str) -> None:
        """Make a call start, possibly ask for approval, and end now or later."""
        if self.random.random() < 0.8:
            self.do(f"start {call}", events.ToolStarted(call_id=call, name="tool", title=call, reply_id="r1"))
        if self.random.random() < 0.7:
            body = "\n".join("x" * self.random.randint(0, 12))
            self.do(f"ask {call}", events.ApprovalRequested(call_id=call, name="tool", title="what", body=body))
            self.flush()
            for _ in range(self.random.randint(0, 3)):
                self.told.append(self.random.choice(KEYS))
                self.chat.nvim.feed(self.told[-1])
            if self.running and self.random.random() < 0.5:
                self.end(self.running.pop())
            self.do(f"answered {call}", events.ApprovalClosed(call_id=call, decision="once"))
        if self.random.random() < 0.3:
            self.running.append(call)
        else:
            self.end(call)

    def end(self, call: str) -> None:
        """Make a call end with a result of random length."""
        lines = self.random.choice([0, 1, 2, 30])
        self.do(f"end {call}: {lines}", finished(call, lines))


@pytest.mark.parametrize("seed", range(10))
def test_each_result_has_its_own_fold(chat: ChatDriver, seed: int) -> None:
    story = Story(chat, seed)
    chat.accept("go")
    chat.push(events.ReplyStarted(adapter="a", model="m"))
    if seed % 2:
        chat.push(events.Text(text="Let me see.\n"))
    for number in range(story.random.randint(2, 5)):
        story.call(f"c{number}")
    for call in list(story.running):
        story.end(call)
    story.flush()


@pytest.mark.parametrize("status", ["ok", "error"])
@pytest.mark.parametrize("where", ["Gi", ":new<CR>i", "GR"])
def test_a_call_that_starts_in_insert_mode_is_below_the_fold_of_the_one_before(
    chat_everywhere: ChatDriver, where: str, status: str
) -> None:
    """Vim adds a line appended in Insert mode to the fold above it."""
    chat = chat_everywhere
    chat.accept("go")
    chat.nvim.feed(where)
    chat.push(events.ReplyStarted(adapter="a", model="m"))
    chat.push(events.ToolStarted(call_id="c1", name="tool", title="tool c1", reply_id="r1"))
    chat.push(msgspec.structs.replace(finished("c1", 30), status=status))
    chat.push(events.ReplyStarted(adapter="a", model="m"))
    chat.push(events.ToolStarted(call_id="c2", name="insert_edit", title="insert_edit a.lua", reply_id="r2"))
    chat.nvim.feed("<Esc>")
    chat.push(msgspec.structs.replace(finished("c2", 3), title="insert_edit a.lua"))
    assert [line for line in chat.nvim.screen().split("\n") if line.startswith("▸")] == [
        "▸ ✓ tool c1 · ok" if status == "ok" else "▸ ✗ tool c1 · failed: ok",
        "▸ ✓ insert_edit a.lua · ok",
    ], chat.nvim.screen()
