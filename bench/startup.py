"""Measures start-up, and the first message sent right after the first chat is opened, with nothing running yet."""

from __future__ import annotations

import shutil
import subprocess
import sys
import time
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

from bench.figures import Figure, Measurement, Samples
from bench.plugins import NUMBERS, Ours, Side
from bench.served import served
from bench.working_area import Room
from harness import clean_env, find_nvim

BYTE_CODE = Path("data/nvim/codecompanion/modules")
KEPT_WITHIN_S = 120.0
SETUP = "require('codecompanion').setup({ interactions = { chat = { adapter = %s } } })\n"
OPEN_AND_ASK = """
local number = ...
bench.began = bench.now()
bench.open()
vim.cmd.redraw()
bench.opened = bench.now() - bench.began
bench.ask("hello", number)
"""


def start_up(side: Side, size: int, room: Room) -> Samples:
    """Measure the time added to Neovim's start by sourcing plugin/ and calling setup().

    The first `require` of any module makes Neovim build its list of module folders. This is done beforehand, because
    any other plugin has the same cost.
    """
    samples, setup = [], SETUP % ("'offline'" if side.has_host else "'openai'")
    for _ in room.times(15):
        file = room.fresh("startup") / "init.lua"
        file.write_text(
            "pcall(require, 'no_such_module')\nlocal t = vim.uv.hrtime()\n"
            f"{side.setup_lua}{setup}"
            "print(('ADDED %.3f'):format((vim.uv.hrtime() - t) / 1e6))\n",
            encoding="utf-8",
        )
        done = subprocess.run(
            [find_nvim() or "nvim", "--headless", "-u", str(file), "-i", "NONE", "+qa!"],
            capture_output=True, text=True, timeout=20, check=True, env=clean_env(file.parent, {}),
        )  # fmt: skip
        samples.append(float(done.stderr.split("ADDED ")[1].split()[0]))
    return {"added": samples}


def cold_start(side: Side, size: int, room: Room) -> Samples:
    """Open the first chat and send at once; measure until the first token is drawn: time, CPU and modules.

    The user has had a chat before, so our host finds its byte code (`engine/module_cache.py`).
    """
    taken: dict[str, list[float]] = {key: [] for key in ("first", "cpu", "paint", "stall")}
    with served() as server:
        for _ in room.times(5):
            with side.start(_fresh(side, room, server.url, "cold"), server.url) as driven:
                driven.longest_stall()
                before = driven.cpu_ms()
                driven.nvim.notify_lua(OPEN_AND_ASK, f"{next(NUMBERS):06}")
                drawn = driven.drawn()
                taken["cpu"].append(driven.cpu_ms() - before)
                began, opened = driven.nvim.lua("return { bench.began, bench.opened }")
                taken["first"].append(drawn - began)
                taken["paint"].append(opened)
                taken["stall"].append(driven.longest_stall())
        modules = _modules(side, room, server.url)
    return {**taken, **modules}


def _fresh(side: Side, room: Room, url: str, name: str) -> Path:
    """Return a new folder that has the byte code cache of an earlier chat."""
    root = room.fresh(name)
    if side.has_host:
        shutil.copytree(room.once("byte code", lambda: _kept_byte_code(side, room, url)), root / BYTE_CODE)
    return root


def _kept_byte_code(side: Side, room: Room, url: str) -> Path:
    """Run a chat until the host has been idle long enough to store the byte code of its imports; return the folder."""
    kept = room.fresh("byte-code") / BYTE_CODE
    with side.start(kept.parents[len(BYTE_CODE.parts) - 1], url) as driven:
        driven.nvim.notify_lua(OPEN_AND_ASK, f"{next(NUMBERS):06}")
        until = time.monotonic() + KEPT_WITHIN_S
        while not list(kept.glob("*.modules")):
            if time.monotonic() > until:
                raise TimeoutError(f"no byte code was kept within {KEPT_WITHIN_S} s")
            time.sleep(1)
    return kept


def _modules(side: Side, room: Room, url: str) -> Mapping[str, list[float]]:
    """Return the number of Python and Lua modules that a cold start has loaded when its first token is drawn."""
    root = _fresh(side, room, url, "modules")
    if isinstance(side, Ours):
        wrapper = root / "python"
        wrapper.write_text(f'#!/bin/sh\nexec {sys.executable} -X importtime "$@" 2>>"{root}/imports.$$"\n')
        wrapper.chmod(0o755)
        side = replace(side, host_prog=str(wrapper))
    with side.start(root, url) as driven:
        driven.nvim.notify_lua(OPEN_AND_ASK, f"{next(NUMBERS):06}")
        driven.drawn()
        lua = driven.nvim.lua("return bench.lua_modules().own")
        python = _imported(root / f"imports.{driven.host_pid()}") if side.has_host else []
    own = [name for name in python if name.partition(".")[0] == "codecompanion"]
    return {"lua": [lua]} | ({"python": [len(python)], "own": [len(own)]} if side.has_host else {})


def _imported(file: Path) -> list[str]:
    lines = file.read_text(encoding="utf-8", errors="replace").splitlines()
    return [line.rpartition("|")[2].strip() for line in lines if line.startswith("import time:")][1:]


MEASUREMENTS = (
    Measurement(
        "start_up",
        "Time added to Neovim's startup",
        (Figure("added", "plugin/ and setup()"),),
        start_up,
        peer_sizes=(0,),
    ),
    Measurement(
        "cold_start",
        "Cold start: opening the first chat and sending a message at once",
        (
            Figure("first", "command → first token"),
            Figure("cpu", "CPU time of all processes until the first token"),
            Figure("paint", "command → chat painted"),
            Figure("stall", "longest stall of the editor"),
            Figure("python", "Python modules loaded", ""),
            Figure("own", "… of which belong to this plugin", ""),
            Figure("lua", "Lua modules loaded (the plugin's and plenary.nvim's)", ""),
        ),
        cold_start,
        peer_sizes=(0,),
    ),
)
