"""The two plugins to compare, with one interface: start an editor, store a chat, open it, ask, wait.

A measurement is written once, for `Side` and `Driven`, and taken for both plugins. The differences are here: each
plugin's configuration, its few Lua driver functions and the location of its chats. codecompanion.nvim does not store
chats; a file with the messages replaces the history extension that its users install.

It keeps no history on disk and counts no tokens with a vocabulary: the comparison covers only effects that users
notice. This project contains no part of it.
"""

from __future__ import annotations

import itertools
import json
import os
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Protocol

from bench import REPO
from bench.histories import store_chat
from codecompanion.model.messages import Message
from harness import Nvim

NUMBERS = itertools.count(1)
PROBE = (Path(__file__).parent / "probe.lua").read_text(encoding="utf-8")
WINDOW = 100_000_000
"""Large enough that no edit or compaction happens during another measurement."""
WARM_S = 1.5
"""Time in which our host imports its transport after a chat has opened; only the cold start is measured before that."""
LONG_S = 180.0


@dataclass(frozen=True, slots=True)
class Sent:
    """The timing of a question: how long the call blocked the editor, and when its first token was drawn."""

    blocked_ms: float
    first_token_ms: float


@dataclass
class Driven:
    """A running Neovim with one of the two plugins."""

    nvim: Nvim
    side: Side

    def open(self, chat: str = "") -> int:
        """Open a new or stored chat and wait until it is ready and warm; return its buffer."""
        self.nvim.lua("local id = ... if id == '' then bench.open() else bench.resume(id) end", chat)
        self.nvim.wait_lua("return bench.ready()", timeout=LONG_S)
        time.sleep(WARM_S if self.side.has_host else 0.2)
        return int(self.nvim.lua("return vim.api.nvim_get_current_buf()"))

    def ask(self, text: str, *, wait: bool = True) -> Sent:
        """Send a question and wait for its first token and, with `wait`, until the turn is over."""
        self.nvim.notify_lua("bench.ask(...)", text, f"{next(NUMBERS):06}")
        drawn = self.drawn()
        sent, blocked = self.nvim.lua("return { bench.sent_at, bench.blocked }")
        if wait:
            self.idle()
        return Sent(blocked, drawn - sent)

    def drawn(self, timeout: float = LONG_S) -> float:
        """Wait until the watched text is drawn; return the time it was drawn, in ms of the editor's clock."""
        return float(self.nvim.wait_lua("return bench.drawn_at", timeout=timeout))

    def idle(self) -> None:
        """Wait until the turn is over."""
        self.nvim.wait_lua("return bench.idle()", timeout=LONG_S)

    def longest_stall(self) -> float:
        """Return the longest time the editor was blocked since the last call."""
        return float(self.nvim.lua("return bench.longest_stall()"))

    def host_pid(self) -> int:
        """Return the process id of our Python host, or 0 if there is none."""
        return int(self.nvim.lua("return bench.host and bench.host() or 0"))

    def cpu_ms(self) -> float:
        """Return the CPU time used so far by Neovim and its descendants that are still running."""
        return sum(_cpu_ms(pid) for pid in _family(self.nvim.pid))

    def memory_mb(self) -> float:
        """Return the resident memory of Neovim and its host."""
        return sum(_rss_mb(pid) for pid in (self.nvim.pid, self.host_pid()) if pid)


class Side(Protocol):
    """One of the two plugins."""

    name: str
    has_host: bool

    @property
    def setup_lua(self) -> str:
        """Return Lua that puts the plugin on the runtimepath, loads its plugin/ files, and defines `options`."""

    def start(self, root: Path, url: str, options: Mapping[str, Any] | None = None) -> Any:
        """Start an editor; `options` are those of `interactions.chat.opts`."""

    def store(self, root: Path, history: Sequence[Message]) -> str:
        """Write a chat to the place where `Driven.open` looks for it; return the argument that opens it."""

    def call_arguments(self, path: str) -> str:
        """Return the arguments of get_diagnostics for a file."""

    def always_compact(self, tokens: int) -> dict[str, Any]:
        """Return options under which a chat of `tokens` tokens is compacted at once."""


OURS_LUA = """
function bench.open() require('codecompanion').chat() end
function bench.resume(id) require('codecompanion').resume(id) end
function bench.type(text)
  require('codecompanion.chat.wire.draft').set(require('codecompanion.chat').current(), text)
end
function bench.submit() require('codecompanion.chat.ui.submit').send(require('codecompanion.chat').current()) end
function bench.host() return require('codecompanion.host').inspect().pid end
function bench.ready()
  local state = vim.b.codecompanion_chat
  return state and state.meter ~= nil and require('codecompanion.host').status() == 'ready'
end
function bench.idle()
  local state = vim.b.codecompanion_chat
  return state and state.state == 'idle'
end
"""


@dataclass(frozen=True)
class Ours:
    """This plugin."""

    name: str = "codecompanion"
    has_host: bool = True
    host_prog: str = field(default=sys.executable)
    servers: Mapping[str, Any] = field(default_factory=dict)
    window: int = WINDOW

    def options(self, url: str, chat: Mapping[str, Any]) -> dict[str, Any]:
        """Return the options of setup()."""
        adapter = {
            "extends": "openai_compatible",
            "env": {"url": url.removesuffix("/v1"), "api_key": "BENCH_KEY"},
            "schema": {"model": {"default": "test-model"}},
            "opts": {"context_window": chat.get("window", self.window)},
        }
        return {
            "python": {"host_prog": self.host_prog},
            "adapters": {"http": {"bench": adapter}},
            "interactions": {
                "chat": {"adapter": "bench", "opts": {k: v for k, v in chat.items() if k != "window"}},
            },
            "rules": {"opts": {"chat": {"enabled": False}}},
            "mcp": {"servers": dict(self.servers)},
            "display": {"chat": {"window": {"layout": "buffer"}}},
        }

    @property
    def setup_lua(self) -> str:
        """Return Lua that loads the plugin as a user's init file does."""
        return f"vim.opt.runtimepath:prepend('{REPO}')\nvim.cmd.source('{REPO}/plugin/codecompanion.lua')\n"

    @contextmanager
    def start(self, root: Path, url: str, options: Mapping[str, Any] | None = None) -> Iterator[Driven]:
        """Start an editor."""
        chosen = json.dumps(json.dumps(self.options(url, {"max_provider_requests_per_turn": -1, **(options or {})})))
        init = f"vim.o.termguicolors = true\n{PROBE}\n{OURS_LUA}\n"
        init += f"require('codecompanion').setup(vim.json.decode({chosen}))\n"
        with Nvim(root, init=init, size=(120, 40), env={"BENCH_KEY": "sk-test"}) as nvim:
            yield Driven(nvim, self)

    def store(self, root: Path, history: Sequence[Message]) -> str:
        """Write a chat into the database."""
        return store_chat(root, list(history))

    def call_arguments(self, path: str) -> str:
        """Return the arguments of get_diagnostics for a file."""
        return json.dumps({"path": path})

    def always_compact(self, tokens: int) -> dict[str, Any]:
        """Return options with a context window that the chat exceeds."""
        return {"window": tokens, "context_management": {"editing": {"trigger": False}}}


PEER_LUA = """
local chats = 'codecompanion.interactions.chat'
function bench.open() require('codecompanion').chat() end
function bench.resume(file)
  local text = table.concat(vim.fn.readfile(file), '\\n')
  require('codecompanion').chat({ messages = vim.json.decode(text), auto_submit = false })
end
function bench.type(text)
  vim.api.nvim_buf_set_lines(require('codecompanion').last_chat().bufnr, -2, -1, false, { text })
end
function bench.submit() require('codecompanion').last_chat():submit() end
function bench.ready() return require('codecompanion').last_chat() ~= nil end
function bench.idle()
  local chat = require('codecompanion').last_chat()
  return chat and not chat.current_request and not chat._compacting
end
"""


@dataclass(frozen=True)
class Peer:
    """codecompanion.nvim from a checkout, with plenary.nvim beside it."""

    folder: Path
    name: str = "codecompanion.nvim"
    has_host: bool = False

    @property
    def setup_lua(self) -> str:
        """Return Lua that loads the plugin as a user's init file does."""
        files = sorted((self.folder / "plugin").glob("*.lua"))
        paths = [self.folder.parent / "plenary.nvim", self.folder]
        return "".join(f"vim.opt.runtimepath:prepend('{path}')\n" for path in paths) + "".join(
            f"vim.cmd.source('{file}')\n" for file in files
        )

    @contextmanager
    def start(self, root: Path, url: str, options: Mapping[str, Any] | None = None) -> Iterator[Driven]:
        """Start an editor."""
        chosen = {
            "interactions": {
                "chat": {
                    "adapter": "bench",
                    "opts": {"context_management": {"enabled": False}, **(options or {})},
                    "tools": {"opts": {"default_tools": ["get_diagnostics"]}},
                }
            },
            "rules": {"opts": {"chat": {"enabled": False}}},
            "display": {"chat": {"window": {"layout": "buffer"}}},
        }
        init = (
            f"{self.setup_lua}vim.o.termguicolors = true\n{PROBE}\n{PEER_LUA}\n"
            f"local options = vim.json.decode({json.dumps(json.dumps(chosen))})\n"
            "options.adapters = { http = { bench = function()\n"
            "  return require('codecompanion.adapters').extend('openai_compatible', {\n"
            f"    env = {{ url = '{url.removesuffix('/v1')}', api_key = 'BENCH_KEY',"
            " chat_url = '/v1/chat/completions' },\n"
            "    schema = { model = { default = 'test-model' } },\n"
            "  })\nend } }\n"
            "require('codecompanion').setup(options)\n"
        )
        with Nvim(root, init=init, size=(120, 40), env={"BENCH_KEY": "sk-test"}, runtimepath=False) as nvim:
            yield Driven(nvim, self)

    def store(self, root: Path, history: Sequence[Message]) -> str:
        """Write the messages into a file."""
        file = root / "chat.json"
        entries = [_peer_message(message) for message in history]
        # It treats the last message as the user's unsent one.
        entries.append({"role": "user", "content": "", "opts": {"visible": True}, "_meta": {"cycle": 1}})
        file.write_text(json.dumps(entries), encoding="utf-8")
        return str(file)

    def call_arguments(self, path: str) -> str:
        """Return the arguments of get_diagnostics for a file."""
        return json.dumps({"filepath": path})

    def always_compact(self, tokens: int) -> dict[str, Any]:
        """Return options with a compaction trigger below the chat's size."""
        compaction = {"trigger": max(1000, tokens // 4), "min_token_savings": 1}
        return {"context_management": {"enabled": True, "editing": {"trigger": 1e12}, "compaction": compaction}}


def _peer_message(message: Message) -> dict[str, Any]:
    entry: dict[str, Any] = {
        "role": "llm" if message.role == "assistant" else message.role,
        "content": message.text,
        "opts": {"visible": not message.tool_calls},
        "_meta": {"cycle": message.cycle},
    }
    if message.tool_calls:
        calls = [
            {"id": call.id, "type": "function", "function": {"name": call.name, "arguments": call.arguments}}
            for call in message.tool_calls
        ]
        entry["tools"] = {"calls": calls}
    if message.role == "tool":
        entry["tools"] = {"call_id": message.tool_call_id}
        entry["_meta"]["tag"] = "tool_output"
    return entry


def _family(pid: int) -> list[int]:
    """Return a process and all its descendants."""
    parents: dict[int, list[int]] = {}
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            try:
                fields = (entry / "stat").read_text(encoding="utf-8").rpartition(")")[2].split()
            except (FileNotFoundError, ProcessLookupError):
                continue
            parents.setdefault(int(fields[1]), []).append(int(entry.name))
    found, waiting = [], [pid]
    while waiting:
        found.append(waiting.pop())
        waiting += parents.get(found[-1], [])
    return found


def _cpu_ms(pid: int) -> float:
    """Return the CPU time of a process and of its children that have ended, in steps of a clock tick (10 ms)."""
    try:
        fields = Path(f"/proc/{pid}/stat").read_text(encoding="utf-8").rpartition(")")[2].split()
    except (FileNotFoundError, ProcessLookupError):
        return 0.0
    return sum(int(field) for field in fields[11:15]) * 1000 / os.sysconf("SC_CLK_TCK")


def _rss_mb(pid: int) -> float:
    text = Path(f"/proc/{pid}/status").read_text(encoding="utf-8")
    return int(text.split("VmRSS:")[1].split()[0]) / 1024
