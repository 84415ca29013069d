"""`insert_edit`: replaces an exact, unique string in one file, which is written atomically."""

from __future__ import annotations

import asyncio
from functools import partial
from typing import Any

from codecompanion.errors import ToolError
from codecompanion.formats import text_files
from codecompanion.formats.plural import counted
from codecompanion.tools.builtin.wording import HOLDS_KEYS, is_secret, missing_file, shown_path
from codecompanion.tools.file_changes.file_change import Plan, change_file, current_text, is_there
from codecompanion.tools.file_changes.proposal import Proposal, question
from codecompanion.tools.files.edit import Edited, replace_text
from codecompanion.tools.tool import ApprovalQuestion, ToolContext, ToolOutput


def _edit(arguments: dict[str, Any], context: ToolContext) -> tuple[Proposal, Edited]:
    """Compute the edit, without writing anything."""
    path = context.resolve(arguments["path"])
    if not is_there(path, context):
        error = missing_file(path, context)
        raise ToolError(f"{error} create_file creates new files.")
    before = current_text(path, context)
    try:
        edited = replace_text(before, arguments["old_text"], arguments["new_text"], arguments.get("replace_all", False))
    except ToolError as error:
        why, _, quoted = str(error).partition("\n")
        held = HOLDS_KEYS if is_secret(path, context) else context.why_secret(before.text, shown_path(path, context))
        if quoted and held:
            why = f"{why.partition('. ')[0]}. Its text is not shown: {held}."
        elif quoted:
            why = str(error)
        raise ToolError(f"{shown_path(path, context)}: {why}") from error
    text_files.encode(edited.file)
    proposal = Proposal(path=path, name=shown_path(path, context), before=before, after=edited.file)
    return proposal, edited


async def run(arguments: dict[str, Any], context: ToolContext) -> ToolOutput:
    """Run one call; raises `ToolError`."""
    path = await asyncio.to_thread(context.resolve, arguments["path"])
    return await change_file(partial(_plan, arguments), context, path)


def _plan(arguments: dict[str, Any], context: ToolContext) -> Plan:
    proposal, edited = _edit(arguments, context)
    places = [f"line {first}" if first == last else f"lines {first} to {last}" for first, last in edited.places[:20]]
    more = f" and {len(edited.places) - 20} more" if len(edited.places) > 20 else ""
    done = f"Edited {proposal.name}: {counted(len(edited.places), 'replacement')}, now at {', '.join(places)}{more}."
    return Plan(proposal, done, f"Edited {proposal.name}.")


def title_of(arguments: dict[str, Any]) -> str:
    """Return the title of a call."""
    return f"insert_edit {arguments['path']}"


def question_about(arguments: dict[str, Any], context: ToolContext) -> ApprovalQuestion | None:
    """Return the question for the user, or None if the call may run without approval."""
    proposal, _ = _edit(arguments, context)
    opened = context.opened.at(proposal.path)
    unsaved = ", which has unsaved changes" if opened is not None and opened.modified else ""
    return question(proposal, key="insert_edit", title=f"Edit {proposal.name}{unsaved}")
