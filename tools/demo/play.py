"""Plays a recorded session through the plugin in a real headless Neovim (the command: `cli.commands.demo`).

The recording is played through the installed plugin: its user messages go through the input region, the offline adapter
plays the model, tool results come from the recording, and its attached files and images are written into an empty
workspace. The report is read from the session's own event log.
"""

from __future__ import annotations

import argparse
import base64
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from contextlib import closing
from pathlib import Path
from typing import Any, TextIO

from codecompanion.cli import progress
from codecompanion.context.policy.policy_catalog import load_policy
from codecompanion.counting.tokens import MessageCounter
from codecompanion.errors import CodeCompanionError, InputError
from codecompanion.model.history import LogEvent
from codecompanion.model.messages import BUFFER_TAGS, FILE_TAGS, IMAGE_TAG, RULES_TAG, Message
from codecompanion.model.transcript_format import read_bytes
from codecompanion.store.opening import open_store
from tools.demo.report import report

REPOSITORY = Path(__file__).resolve().parents[2]
SESSION = Path(__file__).with_name("demo_session.jsonl")
WINDOW = 128_000
SMALLEST_WINDOW = 4_000
TIMEOUT_S = 900
COLUMNS, LINES = 110, 44
"""Screen size of the headless run. A terminal's own size is never changed: Neovim would draw past its edges."""
OLDEST_NVIM = (0, 10)


def run(arguments: argparse.Namespace, out: TextIO) -> int:
    """Play the session and print the report; return the exit status.

    Raises:
        InputError: the transcript cannot be read, or has no message to send.
        CodeCompanionError: Neovim was not found or failed.
    """
    path = Path(arguments.file) if arguments.file else SESSION
    try:
        messages = read_bytes(path.read_bytes().split(b"\n"), str(path)).messages
    except OSError as error:
        raise InputError(f"{path}: {error.strerror}; expected a transcript in JSON Lines") from error
    nvim = find_nvim(arguments.nvim)
    total = MessageCounter().count_messages(messages)
    window = arguments.window or fitting_window(total)
    home = Path(arguments.keep or tempfile.mkdtemp(prefix="codecompanion-demo-")).resolve()
    home.mkdir(parents=True, exist_ok=True)
    try:
        print(f"{path.name}: {len(messages)} messages, about {total:,} tokens; window {window:,} tokens", file=out)
        out.flush()
        told = play(messages, path, home, nvim, window, _known(arguments.policy))
        report(_log(home), told, window, out)
        return open_chat(home, nvim, window) if arguments.chat else 0
    finally:
        if not arguments.keep:
            shutil.rmtree(home, ignore_errors=True)


def _known(policy: str) -> str:
    """Return the name of the policy; raise `ConfigError` if it does not exist."""
    return load_policy(policy).name if policy else ""


def fitting_window(total: int) -> int:
    """Return the default window, or for a shorter session one that it outgrows even after old results are cleared."""
    return min(WINDOW, max(SMALLEST_WINDOW, total * 36 // 100))


def find_nvim(wanted: str) -> str:
    """Return the path of a Neovim ≥ 0.10.

    Raises:
        CodeCompanionError: none was found.
    """
    beside = Path(sys.executable).parent / "nvim"
    candidates = [wanted] if wanted else [os.environ.get("NVIM_BIN", ""), str(beside), "nvim"]
    for candidate in candidates:
        found = shutil.which(candidate) if candidate else None
        if found and nvim_version(found) >= OLDEST_NVIM:
            return found
    raise CodeCompanionError(f"no Neovim ≥ 0.10 found ({', '.join(filter(None, candidates))}); run `make setup`")


def nvim_version(binary: str) -> tuple[int, int]:
    """Return the version (major, minor) of a Neovim binary, or (0, 0) if it is unknown."""
    try:
        text = subprocess.run([binary, "--version"], capture_output=True, text=True, timeout=10, check=True).stdout
    except (OSError, subprocess.SubprocessError):
        return (0, 0)
    found = re.search(r"NVIM v(\d+)\.(\d+)", text)
    return (int(found[1]), int(found[2])) if found else (0, 0)


def play(
    messages: Sequence[Message], recording: Path, home: Path, nvim: str, window: int, policy: str = ""
) -> list[dict[str, Any]]:
    """Play the session in a fresh Neovim below `home`; return the demo's reports, in order.

    Raises:
        InputError: the transcript contains no user message.
        CodeCompanionError: the demo failed.
    """
    workspace = home / "workspace"
    workspace.mkdir(exist_ok=True)
    steps, rules = write_workspace(messages, workspace)
    if not any("say" in step for step in steps):
        raise InputError(f"{recording}: no message of a user in it; expected at least one")
    told = home / "told.jsonl"
    plan = home / "plan.json"
    plan.write_text(json.dumps({"steps": steps, "out": str(told)}), encoding="utf-8")
    init = home / "init.lua"
    run_plan = f'lua dofile("{REPOSITORY}/tools/demo/player.lua").run("{plan}")'
    init.write_text(init_file(recording.resolve(), window, rules, [run_plan], policy, trusted=workspace))
    size = f"set columns={COLUMNS} lines={LINES}"
    result = subprocess.run(
        [nvim, "--headless", "--cmd", size, "-u", str(init), "-i", "NONE", "-n"],
        cwd=workspace, env=_environment(home), capture_output=True, text=True, timeout=TIMEOUT_S, check=False,
    )  # fmt: skip
    lines = [json.loads(line) for line in told.read_text(encoding="utf-8").splitlines()] if told.exists() else []
    failures = [line["data"]["error"] for line in lines if line["kind"] == "failed"]
    if failures or not lines:
        raise CodeCompanionError(f"the demo failed: {(failures or [result.stderr.strip()[-2000:]])[0]}")
    return lines


def open_chat(home: Path, nvim: str, window: int) -> int:
    """Open the played chat in Neovim on the offline adapter, without the recording; return Neovim's exit status."""
    chat = _newest_chat(home)
    init = home / "chat.lua"
    resume = f'lua require("codecompanion").resume("{chat}")'
    init.write_text(init_file(None, window, [], [resume], trusted=home / "workspace"), encoding="utf-8")
    argv = [nvim, "-u", str(init), "-i", "NONE", "-n"]
    progress.stop()
    return subprocess.run(argv, cwd=home / "workspace", env=_environment(home), check=False).returncode


def _environment(home: Path) -> dict[str, str]:
    """Return an environment in which Neovim keeps everything below `home`."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith(("XDG_", "NVIM", "VIM"))}
    return kept | {f"XDG_{name}_HOME": str(home / name.lower()) for name in ("CONFIG", "DATA", "STATE", "CACHE")}


def write_workspace(messages: Sequence[Message], workspace: Path) -> tuple[list[dict[str, str]], list[str]]:
    """Write the session's attachments into the workspace; return the user's steps and the rule files."""
    steps: list[dict[str, str]] = []
    rules: list[str] = []
    for number, message in enumerate(messages):
        if message.role != "user":
            continue
        path = _inside(message.path or f"attachment-{number}")
        if message.tag == RULES_TAG:
            _write(workspace / path, message.text.encode())
            rules.append(path)
        elif message.tag in FILE_TAGS | BUFFER_TAGS:
            _write(workspace / path, message.text.encode())
            steps.append({"attach": "file", "path": path})
        elif message.tag == IMAGE_TAG and message.images:
            header, _, data = message.images[0].url.partition(",")
            _write(workspace / path, base64.b64decode(data) if "base64" in header else data.encode())
            steps.append({"attach": "image", "path": path})
        elif message.tag is None and message.text.strip():
            steps.append({"say": message.text})
    return steps, rules


def init_file(
    recording: Path | None, window: int, rules: Sequence[str], after: Sequence[str], policy: str = "", *, trusted: Path
) -> str:
    """Return an init.lua that sets up the plugin for a recording (None: the offline adapter unchanged).

    The demo's folder is passed as `trusted`, because we created it.
    """
    offline: dict[str, Any] = {"context_window": window}
    if recording is not None:
        offline["playback"] = str(recording)
    min_savings = {"compaction.min_token_savings": min(10_000, window // 10)}
    options: dict[str, Any] = {
        "python": {"host_prog": sys.executable},
        "adapters": {"http": {"offline": {"opts": offline}}},
        "interactions": {
            "chat": {
                "adapter": "offline",
                "opts": {
                    "max_provider_requests_per_turn": -1,
                    "policy": policy or "codecompanion",
                    "policies": {"codecompanion": min_savings, "adaptive": min_savings},
                },
            }
        },
        "display": {"chat": {"window": {"layout": "buffer"}}},
        "trust": {"folders": [str(trusted)]},
    }
    if rules:
        options["rules"] = {"default": {"description": "Rules of the recording", "files": list(rules)}}
    return "\n".join(
        [
            f'vim.opt.runtimepath:prepend("{REPOSITORY}")',
            "vim.o.swapfile = false",
            f"require('codecompanion').setup(vim.json.decode({json.dumps(json.dumps(options))}))",
            *(f"vim.schedule(function() vim.cmd({json.dumps(command)}) end)" for command in after),
            "",
        ]
    )


def _inside(path: str) -> str:
    """Return the path, changed if necessary so that it stays below the workspace."""
    return "/".join(part for part in Path(path).parts if part not in ("/", "..", "~")) or "attachment"


def _write(path: Path, content: bytes) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(content)


def _newest_chat(home: Path) -> str:
    with closing(open_store(home / "data" / "nvim" / "codecompanion")) as store:
        return store.list_sessions(limit=1)[0].id


def _log(home: Path) -> list[LogEvent]:
    chat = _newest_chat(home)
    with closing(open_store(home / "data" / "nvim" / "codecompanion")) as store:
        return store.load_events(chat)
