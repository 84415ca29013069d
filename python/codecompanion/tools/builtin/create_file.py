"""`create_file`: a new file with its folders; an existing one only when the model says so."""

from __future__ import annotations

import contextlib
import os
from pathlib import Path
from typing import Any

from codecompanion import text_files
from codecompanion.errors import ToolError
from codecompanion.messages import ToolSpec
from codecompanion.tools.base import ApprovalQuestion, Tool, ToolContext, ToolOutput
from codecompanion.tools.builtin.wording import PATH, count, parameters, shown_path
from codecompanion.tools.disk import Check, in_thread, write_atomic
from codecompanion.tools.proposal import Proposal, as_accepted, question

_SPEC = ToolSpec(
    "create_file",
    "Create a text file with the given content; missing folders are made. Fails when the file exists, unless overwrite"
    " is true. To change part of a file use insert_edit.",
    parameters(
        {
            "path": PATH,
            "content": {"type": "string", "description": "The whole content of the file."},
            "overwrite": {"type": "boolean", "description": "Replace the file if it exists. Default: false."},
        },
        "path",
        "content",
    ),
)


def _target(arguments: dict[str, Any], context: ToolContext) -> Path:
    path = context.resolve(arguments["path"])
    name = shown_path(path, context)
    if path.is_dir() or arguments["path"].endswith("/"):
        raise ToolError(f"{name} is a folder; give the path of a file.")
    if os.path.lexists(path) and not arguments.get("overwrite", False):
        raise ToolError(f"{name} exists already; nothing was changed. Use insert_edit, or set overwrite.")
    for parent in path.parents:
        if parent.exists():
            if not parent.is_dir():
                raise ToolError(f"{shown_path(parent, context)} is a file, not a folder; nothing was changed.")
            break
    return path


async def _run(arguments: dict[str, Any], context: ToolContext) -> ToolOutput:
    return await in_thread(lambda check: _write(arguments, context, check))


def _write(arguments: dict[str, Any], context: ToolContext, check: Check) -> ToolOutput:
    path = _target(arguments, context)
    existed = path.exists()
    proposal, note = as_accepted(_proposal(path, arguments, context), context.accepted)
    if proposal.after is None or (note and proposal.after == proposal.before):
        return ToolOutput(text=note, summary="left out by you")
    write_atomic(path, text_files.encode(proposal.after), check)
    lines = count(len(text_files.split_lines(proposal.after.text)), "line")
    text = f"{'Replaced' if existed else 'Created'} {proposal.name}: {lines}."
    return ToolOutput(text=f"{text} {note}".rstrip(), summary=lines, changed_paths=(str(path),))


def _proposal(path: Path, arguments: dict[str, Any], context: ToolContext) -> Proposal:
    """Return what is there and what is to be; a file that is no text counts as none."""
    before = None
    if path.exists():
        with contextlib.suppress(text_files.UnreadableFile):
            before = text_files.read_text(path)
    after = text_files.TextFile(arguments["content"])
    return Proposal(path=path, name=shown_path(path, context), before=before, after=after)


def _title(arguments: dict[str, Any]) -> str:
    return f"create_file {arguments['path']}"


def _question(arguments: dict[str, Any], context: ToolContext) -> ApprovalQuestion | None:
    path = _target(arguments, context)
    proposal = _proposal(path, arguments, context)
    title = f"{'Replace' if path.exists() else 'Create'} {proposal.name}"
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


CREATE_FILE = Tool(spec=_SPEC, run=_run, title=_title, question=_question, effect="write")
