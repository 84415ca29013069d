"""Measures codecompanion.nvim as `bench.editor` measures this plugin: same server, same screen, same run.

    python -m bench.editor --peer PATH      PATH is a checkout of it; plenary.nvim stands beside it

It keeps no history on disk, counts no tokens and edits no context while a message is sent: what is compared is what a
user feels, not what is done. Nothing of it is part of the project.
"""

from __future__ import annotations

import time
from argparse import ArgumentTypeError
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from harness import Nvim
from tests.providers.chat.answers import Answer, reply
from tests.providers.chat.thread import ChatServerThread

if TYPE_CHECKING:
    from bench.in_editor import Bench

SETUP = """
vim.opt.runtimepath:prepend('{plenary}')
vim.opt.runtimepath:prepend('{peer}')
vim.o.termguicolors = true
{ticker}
local began = vim.uv.hrtime()
require('codecompanion').setup({{
  adapters = {{ http = {{ bench = function()
    return require('codecompanion.adapters').extend('openai_compatible', {{
      env = {{ url = '{url}', api_key = 'BENCH_KEY', chat_url = '/v1/chat/completions' }},
      schema = {{ model = {{ default = 'test-model' }} }},
    }})
  end }} }},
  interactions = {{ chat = {{ adapter = 'bench' }} }},
  rules = {{ opts = {{ chat = {{ enabled = false }} }} }},
  display = {{ chat = {{ window = {{ layout = 'buffer' }} }} }},
}})
_G.bench_setup = (vim.uv.hrtime() - began) / 1e6
vim.api.nvim_create_autocmd('User', {{ pattern = 'CodeCompanionChatDone', callback = function()
  _G.bench_done = vim.uv.hrtime() / 1e9
end }})
_G.bench_send = function(text)
  local chat = require('codecompanion').last_chat()
  vim.api.nvim_buf_set_lines(chat.bufnr, -2, -1, false, {{ text }})
  local at = vim.uv.hrtime()
  chat:submit()
  _G.bench_blocked = (vim.uv.hrtime() - at) / 1e6
end
"""
IDLE = "local c = require('codecompanion').last_chat() return c and not c.current_request"


@contextmanager
def peer(bench: Bench, name: str, url: str, ticker: str) -> Iterator[Nvim]:
    """Start a Neovim with codecompanion.nvim and nothing of ours."""
    assert bench.peer is not None
    folders = {"peer": bench.peer, "plenary": bench.peer.parent / "plenary.nvim"}
    init = SETUP.format(url=url.removesuffix("/v1"), ticker=ticker, **folders)
    env = {"BENCH_KEY": "sk-test"}
    with Nvim(bench.fresh(f"peer-{name}"), init=init, size=(120, 40), env=env, runtimepath=False) as nvim:
        yield nvim


def compare(bench: Bench, ticker: str, marker: Callable[[Any], str]) -> None:
    """Start, first paint, first token of a cold and of a warm chat, bursts."""
    first, paint, setup, stalls = [], [], [], []
    with ChatServerThread(check=False, default=lambda r: reply(marker(r), chunk_chars=12)) as server:
        for number in bench.times(9):
            with peer(bench, "cold", server.url, ticker) as nvim:
                setup.append(nvim.lua("return _G.bench_setup"))
                nvim.lua("return _G.bench_longest_stall()")
                first.append(_send(nvim, f"c{number:05}", "require('codecompanion').chat() vim.cmd.redraw()"))
                stalls.append(nvim.lua("return _G.bench_longest_stall()"))
            with peer(bench, "paint", server.url, ticker) as nvim:
                paint.append(
                    nvim.lua(
                        "local t = vim.uv.hrtime(); require('codecompanion').chat(); vim.cmd.redraw()"
                        " return (vim.uv.hrtime() - t) / 1e6"
                    )
                )
        with peer(bench, "turns", server.url, ticker) as nvim:
            nvim.lua("require('codecompanion').chat()")
            warm, blocked = [], []
            for number in bench.times(10):
                warm.append(_send(nvim, f"w{number:05}"))
                blocked.append(nvim.lua("return _G.bench_blocked"))
                nvim.wait_lua(IDLE, timeout=30)
    bench.add("codecompanion.nvim: setup()", setup)
    bench.add("codecompanion.nvim: first paint of a new chat", paint)
    bench.add("codecompanion.nvim: cold start → first token", first)
    bench.add("codecompanion.nvim: cold start: longest stall of the editor", stalls)
    bench.add("codecompanion.nvim: 0 messages: submit blocks the editor", blocked[1:])
    bench.add("codecompanion.nvim: 0 messages: submit → first token on the screen", warm[1:])
    for label, text in (("lines", "word and word\n" * 2500), ("one line", "word and word " * 2500)):
        _burst(bench, ticker, label, text)


def _send(nvim: Nvim, number: str, before: str = "") -> float:
    """Send a question; return the ms until the first token is on the screen."""
    started = time.monotonic()
    nvim.notify_lua(f"{before} _G.bench_send(...)", f"QUESTION-{number}")
    nvim.wait_for(lambda: f"TOKEN-{number}" in nvim.screen(), "the first token", timeout=60)
    return (nvim.grid.flushes[-1] - started) * 1000


def _burst(bench: Bench, ticker: str, label: str, text: str) -> None:
    stalls, visible, at = [], [], [0.0]
    whole = reply(text + "LASTTOKEN", chunk_chars=len(text) // 5000)
    body = b"".join(part for part in whole.parts if isinstance(part, bytes))

    def answer(received: Any) -> Answer:
        at[0] = time.monotonic()
        return Answer(parts=(body,))

    with ChatServerThread(check=False, default=answer) as server:
        for _ in bench.times(3):
            with peer(bench, "burst", server.url, ticker) as nvim:
                nvim.lua("require('codecompanion').chat()")
                nvim.lua("return _G.bench_longest_stall()")
                nvim.notify_lua("_G.bench_send('go')")
                ended = nvim.wait_lua("return _G.bench_done", timeout=120)
                if label == "lines":
                    ended = nvim.wait_for(
                        lambda nvim=nvim: "LASTTOKEN" in nvim.screen() and nvim.grid.flushes[-1], "it"
                    )
                visible.append((ended - at[0]) * 1000)
                stalls.append(nvim.lua("return _G.bench_longest_stall()"))
    bench.add(f"codecompanion.nvim: 5,000 chunks at once ({label}): longest stall", stalls)
    seen = "all visible" if label == "lines" else "done (its end is not shown)"
    bench.add(f"codecompanion.nvim: 5,000 chunks at once ({label}): {seen}", visible)


def checkout(name: str) -> Path:
    """Return the checkout; raises `ArgumentTypeError` when it is none, or plenary.nvim is not beside it."""
    path = Path(name).expanduser().resolve()
    if not (path / "lua" / "codecompanion" / "init.lua").is_file():
        raise ArgumentTypeError(f"{path} is no checkout of codecompanion.nvim")
    if not (path.parent / "plenary.nvim" / "lua").is_dir():
        raise ArgumentTypeError(f"plenary.nvim, which it needs, is not beside it ({path.parent}/plenary.nvim)")
    return path
