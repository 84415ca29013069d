"""Measures the plugin in a real Neovim with an attached UI, the real host and a loopback Chat Completions server.

    python -m bench.editor [--quick] [--only NAME …] [--json FILE] [--peer CHECKOUT]

Every figure is a median (p95 where it says so) of several runs in one process; the last column is what issue 2 asks
for. Figures of one run can be compared with each other, not with those of another machine. `--quick` uses small
histories and few repetitions, to see that the measurement itself works. `--peer` measures a checkout of
codecompanion.nvim in the same run (`bench.peer`).
"""

from __future__ import annotations

import argparse
import itertools
import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from bench import at_home
from bench.in_editor import (
    REPO,
    SET_DRAFT,
    TICKER,
    WINDOW,
    Bench,
    cpu_ms,
    editor,
    init,
    marker,
    messages,
    open_chat,
    rss_mb,
    store_chat,
    submit,
)
from bench.peer import checkout, compare
from codecompanion.model.messages import Message
from harness import Nvim, find_nvim
from tests.providers.chat.answers import Answer, Call, reply
from tests.providers.chat.thread import ChatServerThread
from tests.summaries import nine_sections


def startup(bench: Bench) -> None:
    """Time added to Neovim's start: sourcing plugin/ and calling setup().

    The first `require` of anything makes Neovim build its list of module folders; that is measured beside it, because
    any other plugin pays it just the same.
    """
    samples, first = [], []
    for _ in bench.times(25):
        root = bench.fresh("startup")
        file = root / "init.lua"
        file.write_text(
            f"vim.opt.runtimepath:prepend('{REPO}')\n"
            "local t = vim.uv.hrtime()\n"
            "pcall(require, 'no_such_module')\n"
            "print(('FIRST %.3f'):format((vim.uv.hrtime() - t) / 1e6))\n"
            "t = vim.uv.hrtime()\n"
            f"vim.cmd.source('{REPO}/plugin/codecompanion.lua')\n"
            "require('codecompanion').setup({ interactions = { chat = { adapter = 'offline' } } })\n"
            "print(('ADDED %.3f'):format((vim.uv.hrtime() - t) / 1e6))\n"
        )
        done = subprocess.run(
            [find_nvim() or "nvim", "--headless", "-u", str(file), "-i", "NONE", "+qa!"],
            capture_output=True, text=True, timeout=20, check=True,
        )  # fmt: skip
        samples.append(float(done.stderr.split("ADDED ")[1].split()[0]))
        first.append(float(done.stderr.split("FIRST ")[1].split()[0]))
    bench.add("start-up added (plugin/ + setup)", samples, target="≤ 0.3")
    bench.add("  beside it: the first require of anything, Neovim's own", first)


def opening(bench: Bench) -> None:
    """First paint of a new chat, and the time until the host answers."""
    paint, ready = [], []
    with ChatServerThread(check=False) as server:
        for _ in bench.times(7):
            with editor(bench.fresh("opening"), server.url) as nvim:
                paint.append(
                    nvim.lua(
                        "local t = vim.uv.hrtime(); require('codecompanion').chat(); vim.cmd.redraw()"
                        " return (vim.uv.hrtime() - t) / 1e6"
                    )
                )
                nvim.wait_lua("return require('codecompanion.host').status() == 'ready'", timeout=30)
                ready.append(nvim.lua("return require('codecompanion.host').inspect().ready_ms"))
    bench.add("first paint of a new chat (host not started)", paint)
    bench.add("host ready after its start", ready)


def cold(bench: Bench) -> None:
    """The first message right after the first chat was opened, nothing running yet; and what the host costs for it."""
    first, cpu, stalls = [], [], []
    with ChatServerThread(check=False, default=lambda r: reply(marker(r), chunk_chars=12)) as server:
        for number in bench.times(9):
            with editor(bench.fresh("cold"), server.url) as nvim:
                nvim.lua("return _G.bench_longest_stall()")
                started = time.monotonic()
                nvim.notify_lua(
                    "require('codecompanion').chat() vim.cmd.redraw()"
                    f" {SET_DRAFT}"
                    " require('codecompanion.chat.ui.submit').send(require('codecompanion.chat').current())",
                    f"QUESTION-c{number:05}",
                )
                nvim.wait_for(lambda number=number: f"TOKEN-c{number:05}" in nvim.screen(), "the first token")
                first.append((nvim.grid.flushes[-1] - started) * 1000)
                cpu.append(cpu_ms(nvim.lua("return require('codecompanion.host').inspect().pid")))
                stalls.append(nvim.lua("return _G.bench_longest_stall()"))
    bench.add("cold start: first chat opened and sent at once → first token", first, target="≤ 300")
    bench.add("cold start: CPU of the host until then", cpu)
    bench.add("cold start: longest stall of the editor", stalls)


def turns(bench: Bench) -> None:
    """Submit, first token and tool-loop step for growing histories."""
    for number in (0, 100) if bench.quick else (0, 100, 1000, 10_000):
        steps: list[float] = []
        asked_at = 0.0

        def answer(received: Any, steps: list[float] = steps) -> Answer:
            nonlocal asked_at
            now = time.perf_counter()
            if asked_at:
                steps.append((now - asked_at) * 1000)
                asked_at = 0.0
            if b"LOOP" in received.body and len(steps) < 8:
                asked_at = time.perf_counter()
                return reply(
                    calls=[Call("get_diagnostics", json.dumps({"path": f"f{len(steps)}"}), id=f"x{len(steps)}")]
                )
            return reply(f"{marker(received)} and the rest of the answer", chunk_chars=12)

        with ChatServerThread(check=False, default=answer) as server:
            root = bench.fresh(f"turns-{number}")
            chat = store_chat(root, messages(number)) if number else ""
            with editor(root, server.url, max_provider_requests_per_turn=-1) as nvim:
                open_chat(nvim, chat)
                submit(nvim, "warm up")
                blocked, first = [], []
                for _ in bench.times(9):
                    one, two = submit(nvim, "hello")
                    blocked.append(one)
                    first.append(two)
                submit(nvim, "LOOP")
        name = f"{number:>6} messages: "
        bench.add(name + "submit blocks the editor", blocked, target="≤ 0.5")
        bench.add(name + "submit → first token on the screen", first, target="≤ 12")
        if steps:
            bench.add(name + "tool loop: answer sent → next request received", steps, target="≤ 10")


def burst(bench: Bench) -> None:
    """5,000 chunks at once: as lines, and as one endless line."""
    for label, text in (("lines", "word and word\n" * 2500), ("one line", "word and word " * 2500)):
        stalls, visible = [], []
        chunks = len(text) // 5000
        with ChatServerThread(check=False, default=lambda r: reply("x", chunk_chars=9)) as server:
            whole = reply(text + "LASTTOKEN", chunk_chars=chunks)
            body = b"".join(part for part in whole.parts if isinstance(part, bytes))
            at = [0.0]

            def answer(received: Any, body: bytes = body, at: list[float] = at) -> Answer:
                at[0] = time.monotonic()
                return Answer(parts=(body,))

            server._default = answer
            for _ in bench.times(5):
                with editor(bench.fresh("burst"), server.url) as nvim:
                    open_chat(nvim)
                    nvim.lua(SET_DRAFT, "go")
                    nvim.lua("return _G.bench_longest_stall()")
                    nvim.notify_lua(
                        "require('codecompanion.chat.ui.submit').send(require('codecompanion.chat').current())"
                    )
                    nvim.wait_for(lambda: "LASTTOKEN" in nvim.screen(), "the last token", timeout=60)
                    visible.append((nvim.grid.flushes[-1] - at[0]) * 1000)
                    stalls.append(nvim.lua("return _G.bench_longest_stall()"))
        bench.add(f"5,000 chunks at once ({label}): longest stall", stalls, target="≤ 10")
        bench.add(f"5,000 chunks at once ({label}): all visible", visible, target="≤ 80")


def stream_into_long_chat(bench: Bench) -> None:
    """200 chunks/s into a 10,000-line chat: time without a screen update, keystroke latency."""
    seconds = 2 if bench.quick else 8
    parts: list[Any] = []
    for event in reply("a line of text that goes on\n" * 25 * seconds, chunk_chars=4).parts:
        parts += [event, 0.005] if isinstance(event, bytes) else [event]
    history = messages(200 if bench.quick else 4000, chars=600)
    for message_index in range(0, len(history), 4):
        old = history[message_index + 3]
        text = "\n".join(f"{message_index} line {i}" for i in range(12)) + "\n```lua\nlocal x = 1\n```"
        history[message_index + 3] = Message(**{**{f: getattr(old, f) for f in old.__struct_fields__}, "content": text})
    with ChatServerThread(check=False, default=lambda r: Answer(parts=tuple(parts))) as server:
        root = bench.fresh("stream")
        chat = store_chat(root, history)
        with editor(root, server.url) as nvim:
            open_chat(nvim, chat)
            lines = nvim.lua("return vim.api.nvim_buf_line_count(0)")
            nvim.lua(SET_DRAFT, "go")
            nvim.notify_lua("require('codecompanion.chat.ui.submit').send(require('codecompanion.chat').current())")
            nvim.wait_screen("a line of text")
            nvim.feed("GA")
            first, keys = len(nvim.grid.flushes), []
            for number in range(15 * seconds):
                marker = f"k{number:03}"
                before = time.monotonic()
                nvim.notify_lua("vim.api.nvim_input(...)", marker)
                nvim.wait_for(lambda marker=marker: marker in nvim.screen(), "the typed text")
                keys.append((nvim.grid.flushes[-1] - before) * 1000)
                time.sleep(0.03)
            flushes = nvim.grid.flushes[first:]
            gaps = [(b - a) * 1000 for a, b in itertools.pairwise(flushes)]
            nvim.feed("<Esc>")
            stall = nvim.lua("return _G.bench_longest_stall()")
    bench.add(
        f"stream into {lines:,} lines: time between screen updates (p95; longest {max(gaps):.0f})",
        gaps,
        target="longest ≤ 60",
    )
    bench.add("stream into a long chat: keystroke to screen", keys, target="p95 < 8")
    bench.add("stream into a long chat: longest stall", [stall])


def big_result(bench: Bench) -> None:
    """A 5 MB tool result."""
    samples = []
    with ChatServerThread(check=False, default=lambda r: reply(marker(r), chunk_chars=12)) as server:
        for _ in bench.times(5):
            root = bench.fresh("result")
            server.script = [reply(calls=[Call("read_file", json.dumps({"path": "big.txt"}), id="b1")])]
            with editor(root, server.url) as nvim:
                (root / "work" / "big.txt").write_text("a line of a big file\n" * 250_000)
                open_chat(nvim)
                nvim.lua("return _G.bench_longest_stall()")
                submit(nvim, "go")
                samples.append(nvim.lua("return _G.bench_longest_stall()"))
    bench.add("a 5 MB tool result: longest stall", samples, target="≤ 16")


def restoring(bench: Bench) -> None:
    """A chat of 5,000 messages restored: first paint, everything there, longest stall."""
    paint, whole, stalls = [], [], []
    number = 500 if bench.quick else 5000
    with ChatServerThread(check=False) as server:
        for _ in bench.times(5):
            root = bench.fresh("restore")
            history = messages(number)
            chat = store_chat(root, history)
            with editor(root, server.url) as nvim:
                nvim.lua("require('codecompanion.host').start()")
                nvim.wait_lua("return require('codecompanion.host').status() == 'ready'")
                nvim.lua("return _G.bench_longest_stall()")
                started = time.monotonic()
                nvim.notify_lua("require('codecompanion').resume(...)", chat)
                last = history[-1].text[:8]
                nvim.wait_for(lambda last=last: last in nvim.screen(), "the last message")
                paint.append((nvim.grid.flushes[-1] - started) * 1000)
                head = "^" + history[0].text[:20]  # a later message may hold the same words
                nvim.wait_lua("return vim.fn.search(..., 'nw') > 0", head, timeout=60)
                whole.append((time.monotonic() - started) * 1000)
                stalls.append(nvim.lua("return _G.bench_longest_stall()"))
    bench.add(f"{number:,} messages restored: first paint (host running)", paint, target="≤ 150")
    bench.add(f"{number:,} messages restored: all in the buffer", whole)
    bench.add(f"{number:,} messages restored: longest stall", stalls)


def managing(bench: Bench) -> None:
    """Editing and compaction of 1 MB and 10 MB histories: time in the host, longest stall of the editor."""
    for label, number, chars in (
        (("1 MB", 1000, 1000),) if bench.quick else (("1 MB", 1000, 1000), ("10 MB", 10_000, 1000))
    ):
        history = messages(number, chars)
        tokens = sum(message.tokens for message in history)
        for name, at in (("editing", 0.80), ("compaction", 1.0)):
            root = bench.fresh("managing")
            chat = store_chat(root, history)
            with ChatServerThread(
                check=False, default=lambda r: reply(nine_sections("FIRSTTOKEN the summary " * 20))
            ) as server:
                managed = {"editing": {"trigger": False}} if name == "compaction" else {}
                head = init(server.url, context_management=managed).replace(str(WINDOW), str(int(tokens / at)))
                with Nvim(root, init=head, size=(120, 40), env={"BENCH_KEY": "sk-test"}) as nvim:
                    nvim.lua(TICKER)
                    open_chat(nvim, chat)
                    nvim.lua(
                        "_G.seen = {} for _, n in ipairs({ 'Edited', 'Compacted' }) do"
                        " vim.api.nvim_create_autocmd('User', { pattern = 'CodeCompanionChat' .. n,"
                        " callback = function(a) _G.seen[n] = vim.uv.hrtime() end }) end"
                    )
                    nvim.lua(SET_DRAFT, "go")
                    nvim.lua("return _G.bench_longest_stall()")
                    nvim.lua(
                        "_G.sent = vim.uv.hrtime()"
                        " require('codecompanion.chat.ui.submit').send(require('codecompanion.chat').current())"
                    )
                    key = "Edited" if name == "editing" else "Compacted"
                    took = nvim.wait_lua("return _G.seen[...] and (_G.seen[...] - _G.sent) / 1e6", key, timeout=120)
                    stall = nvim.lua("return _G.bench_longest_stall()")
            bench.add(f"{name} of a {label} history: submit → done", [took])
            bench.add(f"{name} of a {label} history: longest stall of the editor", [stall], target="0 blocked")


def memory(bench: Bench) -> None:
    """Resident memory of host and editor with a chat of 1,000 messages."""
    with ChatServerThread(check=False, default=lambda r: reply(marker(r), chunk_chars=12)) as server:
        for number in (0, 1000) if not bench.quick else (0,):
            root = bench.fresh("memory")
            chat = store_chat(root, messages(number)) if number else ""
            with editor(root, server.url) as nvim:
                open_chat(nvim, chat)
                submit(nvim, "hello")
                host = nvim.lua("return require('codecompanion.host').inspect().pid")
                bench.add(f"memory of the host, {number} messages", [rss_mb(host)], "MB")
                bench.add(f"memory of Neovim, {number} messages", [rss_mb(nvim.pid)], "MB")


MEASUREMENTS: dict[str, Callable[[Bench], None]] = {
    "startup": startup,
    "opening": opening,
    "cold": cold,
    "turns": turns,
    "burst": burst,
    "stream": stream_into_long_chat,
    "result": big_result,
    "restore": restoring,
    "managing": managing,
    "memory": memory,
    "open": at_home.what_is_open,
    "edits": at_home.edits_in_place,
    "mcp": at_home.mcp_calls,
}


def main() -> int:
    """Run the measurements and print one line each."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("--quick", action="store_true", help="small histories, few repetitions")
    parser.add_argument("--only", action="append", choices=MEASUREMENTS, default=[], help="run only these")
    parser.add_argument("--json", type=Path, help="write the figures there too")
    parser.add_argument("--peer", type=checkout, help="a checkout of codecompanion.nvim, plenary.nvim beside it")
    arguments = parser.parse_args()
    print(f"Neovim {find_nvim()}; {os.cpu_count()} cores; Python {sys.version.split()[0]}")
    print(f"{'what':<66} {'median':>10} {'p95':>10}")
    with tempfile.TemporaryDirectory(prefix="codecompanion-bench-") as folder:
        bench = Bench(arguments.quick, Path(folder), arguments.peer)
        for name in arguments.only or MEASUREMENTS:
            MEASUREMENTS[name](bench)
        if bench.peer:
            compare(bench, TICKER, marker)
    if arguments.json:
        figures = [{"name": r.name, "median": r.median, "p95": r.p95, "unit": r.unit} for r in bench.results]
        arguments.json.write_text(json.dumps(figures, indent=1, ensure_ascii=False), encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
