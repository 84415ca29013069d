"""`create_file`: creates a file and its folders; overwrites an existing file only if the call allows it."""

from __future__ import annotations

import asyncio
import contextlib
from functools import partial
from pathlib import Path
from typing import Any

from codecompanion.errors import ToolError
from codecompanion.formats import text_files
from codecompanion.formats.plural import counted
from codecompanion.tools.builtin.wording import shown_path
from codecompanion.tools.file_changes.file_change import Plan, change_file, current_text, is_there
from codecompanion.tools.file_changes.proposal import Proposal, question
from codecompanion.tools.tool import ApprovalQuestion, ToolContext, ToolOutput


def _target(arguments: dict[str, Any], context: ToolContext) -> Path:
    path = context.resolve(arguments["path"])
    name = shown_path(path, context)
    if path.is_dir() or arguments["path"].endswith("/"):
        raise ToolError(f"{name} is a folder; give the path of a file.")
    if is_there(path, context) and not arguments.get("overwrite", False):
        raise ToolError(f"{name} already exists; nothing was changed. Use insert_edit, or set overwrite.")
    for parent in path.parents:
        if parent.exists():
            if not parent.is_dir():
                raise ToolError(f"{shown_path(parent, context)} is a file, not a folder; nothing was changed.")
            break
    return path


async def run(arguments: dict[str, Any], context: ToolContext) -> ToolOutput:
    """Run one call; raises `ToolError`."""
    path = await asyncio.to_thread(context.resolve, arguments["path"])
    return await change_file(partial(_plan, arguments), context, path)


def _plan(arguments: dict[str, Any], context: ToolContext) -> Plan:
    path = _target(arguments, context)
    proposal = _proposal(path, arguments, context)
    lines = counted(len(text_files.split_lines(arguments["content"])), "line")
    verb = "Replaced" if is_there(path, context) else "Created"
    return Plan(proposal, f"{verb} {proposal.name}: {lines}.", f"{verb} {proposal.name}.")


def _proposal(path: Path, arguments: dict[str, Any], context: ToolContext) -> Proposal:
    """Return the proposed change; a file that is not text counts as missing."""
    before = None
    if is_there(path, context):
        with contextlib.suppress(text_files.UnreadableFile):
            before = current_text(path, context)
    after = text_files.TextFile(arguments["content"])
    return Proposal(path=path, name=shown_path(path, context), before=before, after=after)


def title_of(arguments: dict[str, Any]) -> str:
    """Return the title of a call."""
    return f"create_file {arguments['path']}"


def question_about(arguments: dict[str, Any], context: ToolContext) -> ApprovalQuestion | None:
    """Return the question for the user, or None if the call may run without approval."""
    path = _target(arguments, context)
    proposal = _proposal(path, arguments, context)
    title = f"{'Replace' if is_there(path, context) else 'Create'} {proposal.name}"
    body = ""
    if path.exists() and proposal.before is None:
        body = f"{_unreadable(path)} It would be replaced by:\n{arguments['content']}"
    return question(proposal, key="create_file", title=title, body=body)


def _unreadable(path: Path) -> str:
    try:
        text_files.read_text(path)
    except text_files.UnreadableFile as error:
        return str(error)
    return ""
