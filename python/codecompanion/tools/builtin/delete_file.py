"""`delete_file`: deletes one file, never a folder. An `always` covers only this exact path."""

from __future__ import annotations

import asyncio
import contextlib
import os
from functools import partial
from pathlib import Path
from typing import Any

from codecompanion.errors import ToolError
from codecompanion.formats import text_files
from codecompanion.formats.plural import counted
from codecompanion.tools.builtin.wording import missing_file, shown_path
from codecompanion.tools.file_changes.file_change import Plan, change_file
from codecompanion.tools.file_changes.proposal import Proposal, question
from codecompanion.tools.tool import ApprovalQuestion, ToolContext, ToolOutput

_SHOWN_LINES = 40


def _target(arguments: dict[str, Any], context: ToolContext) -> Path:
    """Return the file to delete: for a symbolic link the link itself, wherever it points."""
    given = arguments["path"].rstrip("/")
    parent, name = os.path.split(given)
    folder = context.resolve(parent or ("/" if given.startswith("/") else "."))
    path = folder / name if name not in ("", ".", "..", "~") else context.resolve(given)
    if not os.path.lexists(path):
        path = context.resolve(given)
    if not os.path.lexists(path):
        raise missing_file(path, context)
    if path.is_dir() and not path.is_symlink():
        raise ToolError(f"{shown_path(path, context)} is a folder; only files can be deleted.")
    return path


async def run(arguments: dict[str, Any], context: ToolContext) -> ToolOutput:
    """Run one call; raises `ToolError`."""
    path = await asyncio.to_thread(_target, arguments, context)
    return await change_file(partial(_plan, arguments), context, path)


def _plan(arguments: dict[str, Any], context: ToolContext) -> Plan:
    path = _target(arguments, context)
    name = shown_path(path, context)
    return Plan(_proposal(path, name), f"Deleted {name}.", f"{name} was not deleted.")


def title_of(arguments: dict[str, Any]) -> str:
    """Return the title of a call."""
    return f"delete_file {arguments['path']}"


def question_about(arguments: dict[str, Any], context: ToolContext) -> ApprovalQuestion | None:
    """Return the question for the user, or None if the call may run without approval."""
    path = _target(arguments, context)
    name = shown_path(path, context)
    return question(_proposal(path, name), key=f"delete_file:{path}", title=f"Delete {name}", body=_content(path, name))


def _proposal(path: Path, name: str) -> Proposal:
    """Return the proposed deletion, without content if the path is a link or the file is not text."""
    before = None
    if not path.is_symlink():
        with contextlib.suppress(text_files.UnreadableFile):
            before = text_files.read_text(path)
    return Proposal(path=path, name=name, before=before, after=None)


def _content(path: Path, name: str) -> str:
    """Describe the content that would be lost: its size and its beginning."""
    if path.is_symlink():
        return f"{name} is a symbolic link to {path.readlink()}; only the link is deleted.\n"
    try:
        lines = text_files.split_lines(text_files.printable(text_files.read_text(path).text))
    except text_files.UnreadableFile as error:
        return f"{error}\n"
    more = [f"… {counted(len(lines) - _SHOWN_LINES, 'more line')}"] if len(lines) > _SHOWN_LINES else []
    return "\n".join([f"{name}: {counted(len(lines), 'line')}", "", *lines[:_SHOWN_LINES], *more]) + "\n"
