"""What a tool is: a spec for the model, a rule for approval, and a coroutine that runs.

Tools import vocabulary and `workspace`'s path rule only through what `ToolContext` carries.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any, Literal

import msgspec

from codecompanion.messages import ToolSpec
from codecompanion.requests import Snapshot


class ToolContext(msgspec.Struct, frozen=True, kw_only=True):
    """What a running tool may know. `resolve` maps a path to an absolute one inside the workspace.

    `resolve` raises `errors.OutsideWorkspace`. `memory_dir` is the real folder behind `/memories` (R-550).
    """

    root: Path
    resolve: Callable[[str], Path]
    memory_dir: Path
    snapshot: Snapshot
    read_stored: Callable[[str], str]
    timeout_s: float = 60.0


class ToolOutput(msgspec.Struct, frozen=True, kw_only=True):
    """What a call gave: `text` for the model, `summary` for the fold (`120 lines`), paths it changed on disk."""

    text: str
    summary: str = ""
    is_error: bool = False
    changed_paths: tuple[str, ...] = ()


class ApprovalQuestion(msgspec.Struct, frozen=True, kw_only=True):
    """What the user is asked. `key` is what `always` covers: the tool's name, or for a shell the exact command."""

    key: str
    title: str
    body: str
    filetype: str = "text"


class Tool(msgspec.Struct, frozen=True, kw_only=True):
    """A tool of the registry.

    `title(arguments)` is the fold's first half (`read_file lua/foo.lua 1-120`). `question(arguments, context)` returns
    what must be approved, or None when the call may run at once. `run` raises `errors.ToolError` for a failure the
    model should read.
    """

    spec: ToolSpec
    run: Callable[[dict[str, Any], ToolContext], Awaitable[ToolOutput]]
    title: Callable[[dict[str, Any]], str]
    question: Callable[[dict[str, Any], ToolContext], ApprovalQuestion | None]
    effect: Literal["read", "write", "execute"] = "read"
