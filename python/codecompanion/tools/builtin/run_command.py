"""`run_command`: a shell command in the workspace, its output and exit code.

The command sees no secrets of the environment and no terminal. Of a huge output the first and last million bytes are
kept while it streams, so that memory stays bounded; processes it leaves behind are ended with it.
"""

from __future__ import annotations

import asyncio
from collections import deque
from pathlib import Path
from typing import Any

import codecompanion
from codecompanion.errors import ToolError
from codecompanion.formats.plural import counted
from codecompanion.formats.regex import regex
from codecompanion.formats.text_files import printable, split_lines
from codecompanion.model.messages import ToolSpec
from codecompanion.tools.base import ApprovalQuestion, Tool, ToolContext, ToolOutput
from codecompanion.tools.builtin.wording import one_line, parameters, shown_path
from codecompanion.tools.commands.command_environment import clean_environment
from codecompanion.tools.commands.process import Ended, run_program

KEPT_BYTES = 1_000_000
"""How much of an output's beginning, and as much of its end, is kept."""

TITLE_CHARS = 60
"""So much of a command heads its approval; the block shows all of it."""

_OWN_SOURCE = Path(codecompanion.__file__).resolve().parent.parent
_ESCAPES = regex(r"\x1b(?:\[[0-?]*[ -/]*[@-~]|\][^\x07\x1b]*(?:\x07|\x1b\\)|[ -/]*[0-~])")

_SPEC = ToolSpec(
    "run_command",
    "Run a shell command (sh -c) in the workspace and return its exit code and output (standard output and error"
    " together). There is no terminal and no input: commands must not ask questions, open editors or need a password."
    " Processes started in the background are ended when the command ends.",
    parameters(
        {
            "command": {"type": "string", "minLength": 1, "description": "The command line for the shell."},
            "cwd": {
                "type": "string",
                "description": "Folder to run it in, relative to the workspace. Default: its root.",
            },
            "timeout_s": {
                "type": "number",
                "exclusiveMinimum": 0,
                "description": "Stop the command after this many seconds. Not more than the user's limit.",
            },
        },
        "command",
    ),
)


class KeptOutput:
    """The beginning and the end of a stream of bytes, in bounded memory."""

    def __init__(self, kept_bytes: int = KEPT_BYTES) -> None:
        self._limit = kept_bytes
        self._head = bytearray()
        self._tail: deque[bytes] = deque()
        self._tail_bytes = 0
        self.total_bytes = 0

    def add(self, chunk: bytes) -> None:
        """Add what came next."""
        self.total_bytes += len(chunk)
        room = self._limit - len(self._head)
        if room > 0:
            self._head += chunk[:room]
            chunk = chunk[room:]
        if chunk:
            self._tail.append(chunk)
            self._tail_bytes += len(chunk)
            while self._tail_bytes - len(self._tail[0]) >= self._limit:
                self._tail_bytes -= len(self._tail.popleft())

    def text(self) -> str:
        """Return what was kept; a note stands for what was not."""
        tail = b"".join(self._tail)[-self._limit :]
        left_out = self.total_bytes - len(self._head) - len(tail)
        if not left_out:
            return _readable(bytes(self._head) + tail)
        # Whole lines where there are any: neither end should begin or stop within a character.
        head = self._head[: self._head.rfind(b"\n") + 1 or len(self._head)]
        tail = tail[tail.find(b"\n") + 1 :]
        left_out = self.total_bytes - len(head) - len(tail)
        note = f"[… {left_out:,} of {self.total_bytes:,} bytes of output were not kept …]"
        return f"{_readable(head)}\n{note}\n{_readable(tail)}"


def _readable(output: bytes | bytearray) -> str:
    """Return the output without colours and other terminal codes; of a line drawn several times, the last state."""
    text = _ESCAPES.sub("", output.decode("utf-8", "replace")).replace("\r\n", "\n")
    if "\r" in text:
        text = "\n".join(line.rstrip("\r").rpartition("\r")[2] for line in text.split("\n"))
    return printable(text)


async def _run(arguments: dict[str, Any], context: ToolContext) -> ToolOutput:
    cwd = _folder(arguments, context)
    limit_s = min(arguments.get("timeout_s", context.timeout_s), context.timeout_s)
    kept = KeptOutput()
    try:
        ended = await run_program(
            ["/bin/sh", "-c", arguments["command"]],
            cwd=cwd,
            env=clean_environment(context.environment, _OWN_SOURCE, context.hidden),
            on_output=kept.add,
            limit_s=limit_s,
        )
    finally:
        await context.editor.reload()  # whatever it changed, also when it was stopped
    return _output(ended, await asyncio.to_thread(kept.text), limit_s)


def _output(ended: Ended, text: str, limit_s: float) -> ToolOutput:
    if ended.code is None:
        status, summary = (
            f"stopped after the time limit of {counted(limit_s, 'second')}",
            f"stopped after {limit_s:g} s",
        )
    elif ended.code < 0:
        status = summary = f"ended by signal {-ended.code}"
    else:
        status, summary = f"exit code {ended.code}", f"exit {ended.code}"
    lines = len(split_lines(text))
    notes = "\n[processes left running in the background were ended]" if ended.left_running else ""
    body = text.rstrip("\n") if text.strip() else "[no output]"
    return ToolOutput(
        text=f"{status}\n{body}{notes}",
        summary=f"{summary} · {counted(lines, 'line')}",
        is_error=ended.code != 0,
    )


def _folder(arguments: dict[str, Any], context: ToolContext) -> Path:
    folder = context.resolve(arguments.get("cwd") or ".")
    if not folder.is_dir():
        raise ToolError(f"There is no folder {shown_path(folder, context)} to run the command in.")
    return folder


def _title(arguments: dict[str, Any]) -> str:
    return f"run_command {one_line(arguments['command'])}"


def _question(arguments: dict[str, Any], context: ToolContext) -> ApprovalQuestion | None:
    command = arguments["command"]
    folder = shown_path(_folder(arguments, context), context)
    folder = "" if folder == "." else folder
    head = one_line(command, TITLE_CHARS)
    return ApprovalQuestion(
        key=f"run_command:{folder}\0{command}",
        title=f"{head} (in {folder})" if folder else head,
        body=command,
        filetype="sh",
        command=command,
        folder=folder,
    )


RUN_COMMAND = Tool(spec=_SPEC, run=_run, title=_title, question=_question, effect="execute", keeps_time=True)
