"""`get_diagnostics`: returns the editor's current diagnostics from linters and language servers."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from codecompanion.formats.plural import counted
from codecompanion.tools.builtin import SEVERITIES
from codecompanion.tools.builtin.wording import shown_path
from codecompanion.tools.files.disk import Check, in_thread
from codecompanion.tools.tool import ApprovalQuestion, ToolContext, ToolOutput
from codecompanion.wire.requests import Diagnostic

_OTHER_NAMES = {"err": "error", "warn": "warning", "info": "information"}


async def run(arguments: dict[str, Any], context: ToolContext) -> ToolOutput:
    """Run one call; raises `ToolError`."""
    reported = await context.editor.diagnostics()
    if reported is None:
        return ToolOutput(text="The editor did not answer in time.", is_error=True, summary="no answer")
    return await in_thread(lambda check: _list(arguments, context, reported, check))


def _list(arguments: dict[str, Any], context: ToolContext, reported: Sequence[Diagnostic], check: Check) -> ToolOutput:
    check()
    only = context.resolve(arguments["path"]) if "path" in arguments else None
    worst = SEVERITIES.index(arguments.get("severity", SEVERITIES[-1]))
    chosen = [
        (shown_path(path, context), found)
        for found in reported
        if _rank(found) <= worst and only in (None, path := _path(found, context))
    ]
    if not chosen:
        where = f" for {arguments['path']}" if only else ""
        return ToolOutput(text=f"The editor reports no problems{where}.", summary="no problems")
    lines = [
        f"{path}:{found.line}: {_severity(found)}: {' '.join(found.message.split())}"
        + (f" [{found.source}]" if found.source else "")
        for path, found in sorted(chosen, key=lambda pair: (pair[0], pair[1].line, _rank(pair[1])))
    ]
    return ToolOutput(text="\n".join(lines), summary=counted(len(lines), "problem"))


def _path(found: Diagnostic, context: ToolContext) -> Path:
    """Return the real path of a diagnostic's file; the editor may use another name for it."""
    return Path(context.snapshot.cwd or context.root, found.path).expanduser().resolve()


def _severity(found: Diagnostic) -> str:
    name = found.severity.casefold()
    return _OTHER_NAMES.get(name, name)


def _rank(found: Diagnostic) -> int:
    name = _severity(found)
    return SEVERITIES.index(name) if name in SEVERITIES else 0


def title_of(arguments: dict[str, Any]) -> str:
    """Return the title of a call."""
    return f"get_diagnostics {arguments.get('path', '')}".rstrip()


def question_about(arguments: dict[str, Any], context: ToolContext) -> ApprovalQuestion | None:
    """Return the question for the user, or None if the call may run without approval."""
    return None
