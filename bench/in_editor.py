"""What measurements in a real Neovim share: editors, stored chats, a message sent and timed, the lines of a report."""

from __future__ import annotations

import itertools
import json
import os
import statistics
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

REPO = Path(__file__).resolve().parents[1]
sys.path[:0] = [str(REPO), str(REPO / "python"), str(REPO / "tests" / "nvim")]


from codecompanion.counting.tokens import MessageCounter  # noqa: E402
from codecompanion.model.history import ChatCreated, MessageAdded, TitleSet, TurnEnded, TurnStarted  # noqa: E402
from codecompanion.model.messages import Message, ToolCall  # noqa: E402
from codecompanion.store.opening import open_store  # noqa: E402
from harness import Nvim  # noqa: E402

NUMBERS = itertools.count(1)
WINDOW = 100_000_000
"""Large enough that no edit or compaction happens while something else is measured."""

SET_DRAFT = "require('codecompanion.chat.wire.draft').set(require('codecompanion.chat').current(), ...)"

TICKER = """
local gaps, last = {}, vim.uv.hrtime()
local timer = vim.uv.new_timer()
timer:start(0, 1, function()
  local now = vim.uv.hrtime()
  gaps[#gaps + 1] = (now - last) / 1e6
  last = now
end)
_G.bench_longest_stall = function()
  local longest = 0
  for _, gap in ipairs(gaps) do longest = math.max(longest, gap) end
  gaps = {}
  return longest
end
"""
"""A libuv timer of 1 ms: the longest gap between two ticks is how long the editor could not do anything."""


@dataclass
class Result:
    """One line of the report: median and p95 of the samples, in `unit`."""

    name: str
    samples: list[float]
    unit: str = "ms"
    target: str = ""

    @property
    def median(self) -> float:
        """Return the median."""
        return statistics.median(self.samples)

    @property
    def p95(self) -> float:
        """Return the 95th percentile."""
        return sorted(self.samples)[max(0, round(0.95 * len(self.samples)) - 1)]

    def line(self) -> str:
        """Return the line of the report."""
        figures = f"{self.median:>10.2f} {self.p95:>10.2f} {self.unit:<4} n={len(self.samples):<4}"
        return f"{self.name:<66} {figures} {self.target}"


@dataclass
class Bench:
    """What all measurements share."""

    quick: bool
    folder: Path
    peer: Path | None = None
    results: list[Result] = field(default_factory=list)

    def add(self, name: str, samples: list[float], unit: str = "ms", target: str = "") -> None:
        """Take a result and print it."""
        self.results.append(Result(name, samples, unit, target))
        print(self.results[-1].line(), flush=True)

    def times(self, number: int) -> range:
        """Return how often to repeat."""
        return range(2 if self.quick else number)

    def fresh(self, name: str) -> Path:
        """Return a new folder for one Neovim."""
        folder = self.folder / f"{name}-{len(list(self.folder.iterdir()))}"
        folder.mkdir()
        return folder


def init(url: str, servers: dict[str, Any] | None = None, **chat: Any) -> str:
    """Return an init file for the loopback server, with these MCP servers."""
    options = {
        "python": {"host_prog": sys.executable},
        "adapters": {
            "http": {
                "bench": {
                    "extends": "openai_compatible",
                    "env": {"url": url.removesuffix("/v1"), "api_key": "BENCH_KEY"},
                    "schema": {"model": {"default": "test-model"}},
                    "opts": {"context_window": WINDOW},
                }
            }
        },
        "interactions": {"chat": {"adapter": "bench", "opts": chat}},
        "rules": {"opts": {"chat": {"enabled": False}}},
        "mcp": {"servers": servers or {}},
        "display": {"chat": {"window": {"layout": "buffer"}}},
    }
    text = json.dumps(json.dumps(options))
    return f"vim.o.termguicolors = true\nrequire('codecompanion').setup(vim.json.decode({text}))\n"


def messages(number: int, chars: int = 600) -> list[Message]:
    """Return a history of `number` messages: turns of user, call, result, answer."""
    counter, made = MessageCounter(), list[Message]()
    for index in range(number):
        cycle, kind = index // 4 + 1, index % 4
        text = f"{index} " + "the quick brown fox edits lua/foo.lua:12 and runs make test; " * (chars // 60)
        fields: dict[str, Any] = {"id": f"m{index}", "cycle": cycle, "turn_id": f"t{cycle}"}
        if kind == 0:
            message = Message(role="user", content=text, **fields)
        elif kind == 1:
            call = ToolCall(f"c{index}", "read_file", json.dumps({"path": "lua/foo.lua"}))
            message = Message(role="assistant", content="", tool_calls=(call,), **fields)
        elif kind == 2:
            message = Message(role="tool", tool_call_id=f"c{index - 1}", content=text, **fields)
        else:
            message = Message(role="assistant", content=text, **fields)
        made.append(
            Message(
                **{**{f: getattr(message, f) for f in message.__struct_fields__}, "tokens": counter.message(message)}
            )
        )
    return made


def store_chat(root: Path, history: list[Message], chat: str = "be0c4000be0c4000be0c4000") -> str:
    """Write a chat into the data folder Neovim will use below `root`; return its id."""
    store = open_store(root / "data" / "nvim" / "codecompanion")
    payloads: list[Any] = [
        ChatCreated(adapter="bench", model="test-model", policy="codecompanion", cwd=""),
        TitleSet(title="bench"),
    ]
    for message in history:
        if message.role == "user":
            payloads.append(TurnStarted(turn_id=message.turn_id, cycle=message.cycle or 1))
        payloads.append(MessageAdded(message=message))
    if history:
        payloads.append(TurnEnded(turn_id=history[-1].turn_id, reason="done"))
    store.append(chat, payloads).result()
    store.close()
    return chat


@contextmanager
def editor(root: Path, url: str, **options: Any) -> Iterator[Nvim]:
    """Start a Neovim with the plugin and the ticker."""
    with Nvim(root, init=init(url, **options), size=(120, 40), env={"BENCH_KEY": "sk-test"}) as nvim:
        nvim.lua(TICKER)
        yield nvim


def open_chat(nvim: Nvim, chat: str = "") -> None:
    """Open a new chat, or resume a stored one, and wait until it is ready and the host has warmed up."""
    nvim.lua(
        "local id = ...; local c = require('codecompanion'); if id ~= '' then c.resume(id) else c.chat() end", chat
    )
    nvim.wait_lua("return vim.b.codecompanion_chat and vim.b.codecompanion_chat.meter ~= nil", timeout=60)
    nvim.wait_lua("return require('codecompanion.host').status() == 'ready'")
    time.sleep(1.5)  # the transport is imported after the chat has opened; not part of what is measured here


def marker(received: Any) -> str:
    """Return the first word of the answer to a request: the question's own number, never seen on the screen before."""
    return "TOKEN-" + received.body.rpartition(b"QUESTION-")[2][:6].decode()


def submit(nvim: Nvim, text: str) -> tuple[float, float]:
    """Type and send; return (ms the editor was blocked, ms until the first token is on the screen)."""
    number = f"{next(NUMBERS):06}"
    nvim.lua(
        SET_DRAFT,
        f"{text} QUESTION-{number}",
    )
    started = time.monotonic()
    nvim.notify_lua(
        "local t = vim.uv.hrtime()"
        " require('codecompanion.chat.ui.submit').send(require('codecompanion.chat').current())"
        " _G.bench_blocked = (vim.uv.hrtime() - t) / 1e6"
    )
    flushes = nvim.grid.flushes
    seen = nvim.wait_for(lambda: f"TOKEN-{number}" in nvim.screen() and flushes[-1], "the first token", timeout=60)
    blocked = nvim.lua("return _G.bench_blocked")
    idle(nvim)
    return float(blocked), (seen - started) * 1000


def idle(nvim: Nvim) -> None:
    """Wait until the turn is over."""
    nvim.wait_lua("local s = vim.b.codecompanion_chat; return s and s.state == 'idle'", timeout=120)


def cpu_ms(pid: int) -> float:
    """Return the CPU time of a process so far, in steps of 10 ms."""
    fields = Path(f"/proc/{pid}/stat").read_text(encoding="utf-8").rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) * 1000 / os.sysconf("SC_CLK_TCK")


def rss_mb(pid: int) -> float:
    """Return the resident memory of a process."""
    text = Path(f"/proc/{pid}/status").read_text(encoding="utf-8")
    return int(text.split("VmRSS:")[1].split()[0]) / 1024
