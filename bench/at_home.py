"""Measures what is open in the editor, edits in place and MCP servers, each beside a plain message of the same run."""

from __future__ import annotations

import json
import statistics
import sys
import time
from typing import TYPE_CHECKING, Any

from bench import in_editor as common
from tests.providers.chat.answers import Answer, Call, reply
from tests.providers.chat.thread import ChatServerThread

if TYPE_CHECKING:
    from harness import Nvim

MANY = """
local buffers, diagnostics = ...
local ns = vim.api.nvim_create_namespace("bench")
for number = 1, buffers do
  local bufnr = vim.fn.bufadd(("file%d.py"):format(number))
  vim.fn.bufload(bufnr)
  vim.bo[bufnr].buflisted = true
  local found = {}
  for at = 1, diagnostics do
    found[at] = { lnum = 0, col = 0, message = "something is wrong here", severity = 2 }
  end
  vim.diagnostic.set(ns, bufnr, found)
end
"""
PROPER = common.REPO / "tests" / "mcp" / "proper.py"


def times_plain(bench: common.Bench, name: str, samples: list[float], plain: list[float]) -> None:
    """Report samples, and how many times the plain ones they are."""
    bench.add(name, samples)
    bench.add("    times a plain message", [statistics.median(samples) / statistics.median(plain)], "×")


def what_is_open(bench: common.Bench) -> None:
    """Submit with many buffers, with mentions, with live files that changed or not."""
    buffers = 20 if bench.quick else 200
    with ChatServerThread(check=False, default=lambda r: reply(common.marker(r), chunk_chars=12)) as server:
        root = bench.fresh("open")
        with common.editor(root, server.url) as nvim:
            for number in range(3):
                (root / "work" / f"live{number}.txt").write_text("a line of a file that is attached\n" * 2_000)
            common.open_chat(nvim)
            common.submit(nvim, "warm up")
            blocked, plain = several(bench, nvim, "hello")
            bench.add("a plain message: submit blocks the editor", blocked)
            bench.add("a plain message → first token", plain)
            nvim.lua(MANY, buffers, 3)
            for name, text in (("", "hello"), (" and #{buffers}", "hello #{buffers}")):
                held, first = several(bench, nvim, text)
                times_plain(bench, f"{buffers} buffers with diagnostics{name}: submit blocks", held, blocked)
                times_plain(bench, f"{buffers} buffers with diagnostics{name} → first token", first, plain)
            for number in range(3):
                nvim.lua(common.SET_DRAFT, f"/file live{number}.txt")
                nvim.lua("require('codecompanion.chat.ui.submit').send(require('codecompanion.chat').current())")
                nvim.wait_lua(
                    "return table.concat(vim.api.nvim_buf_get_lines(0, 0, 9, false)):find(..., 1, true)",
                    f"live{number}.txt",
                )
            common.submit(nvim, "hello")
            _, first = several(bench, nvim, "hello")
            times_plain(bench, "three live files, unchanged → first token", first, plain)
            first = []
            for number in bench.times(9):
                with (root / "work" / "live1.txt").open("a") as file:
                    file.write(f"line {number}\n")
                first.append(common.submit(nvim, "hello")[1])
            times_plain(bench, "three live files, one line of one changed → first token", first, plain)


def several(bench: common.Bench, nvim: Nvim, text: str) -> tuple[list[float], list[float]]:
    """Send a text several times; return how long the editor was blocked, and when the first token came."""
    pairs = [common.submit(nvim, text) for _ in bench.times(9)]
    return [one for one, _ in pairs], [two for _, two in pairs]


def edits_in_place(bench: common.Bench) -> None:
    """From the command to the first proposed text on the screen."""

    def answer(received: Any) -> Answer:
        token = common.marker(received)
        return reply(f"placement: replace\n```python\n{token}\n```\n" if b"EDIT" in received.body else token)

    with ChatServerThread(check=False, default=answer) as server:
        root = bench.fresh("edits")
        with common.editor(root, server.url) as nvim:
            common.open_chat(nvim)
            common.submit(nvim, "warm up")
            _, plain = several(bench, nvim, "hello")
            nvim.command("edit code.py")
            nvim.lua("vim.api.nvim_buf_set_lines(0, 0, -1, false, { 'x = 1', 'y = 2' })")
            samples = []
            for number in [*bench.times(9), 0]:
                started = time.monotonic()
                name = f"e{number:02}{next(common.NUMBERS) % 1000:03}"
                nvim.notify_lua(f"vim.cmd('1CodeCompanion EDIT QUESTION-{name}')")
                nvim.wait_for(lambda name=name: f"TOKEN-{name}" in nvim.screen(), "the first proposed text")
                samples.append((nvim.grid.flushes[-1] - started) * 1000)
                nvim.wait_lua("return (vim.b.codecompanion_edit or {}).state == 'proposed'")
                nvim.feed("gr")
                nvim.wait_lua("return vim.b.codecompanion_edit == nil")
    times_plain(bench, "an edit in place: command → first proposed text", samples[1:], plain)


def mcp_calls(bench: common.Bench) -> None:
    """One step of a tool loop: a tool of a server on this machine beside a built-in one."""
    for name, tool, field in (
        ("a built-in tool", "get_diagnostics", "path"),
        ("a tool of an MCP server", "proper__add", "one"),
    ):
        steps: list[float] = []
        asked: list[float] = []

        def answer(
            received: Any, steps: list[float] = steps, asked: list[float] = asked, tool: str = tool, field: str = field
        ) -> Answer:
            if asked:
                steps.append((time.perf_counter() - asked.pop()) * 1000)
            if b"LOOP" in received.body and len(steps) < 9:
                asked.append(time.perf_counter())
                number = len(steps)
                arguments = {"path": f"f{number}"} if field == "path" else {"one": number, "other": 1}
                return reply(calls=[Call(tool, json.dumps(arguments), id=f"x{number}")])
            return reply(common.marker(received), chunk_chars=12)

        with ChatServerThread(check=False, default=answer) as server:
            root = bench.fresh("mcp")
            entry = {"enabled": True, "cmd": [sys.executable, str(PROPER)], "require_approval_before": False}
            with common.editor(root, server.url, servers={"proper": entry}) as nvim:
                common.open_chat(nvim)
                common.submit(nvim, "warm up")
                common.submit(nvim, "LOOP")
        if not steps:
            raise RuntimeError(f"{tool} was never called")
        if tool == "get_diagnostics":
            plain = steps[1:]
            bench.add(f"{name}: answer sent → next request", plain)
        else:
            bench.add(f"{name}: answer sent → next request", steps[1:])
            bench.add("    times a built-in tool", [statistics.median(steps[1:]) / statistics.median(plain)], "×")
