"""`get_diagnostics`: what linters and language servers say in the editor now."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from codecompanion.formats.plural import counted
from codecompanion.model.messages import ToolSpec
from codecompanion.tools.builtin.wording import parameters, shown_path
from codecompanion.tools.files.disk import Check, in_thread
from codecompanion.tools.tool import ApprovalQuestion, Tool, ToolContext, ToolOutput
from codecompanion.wire.requests import Diagnostic

SEVERITIES = ("error", "warning", "information", "hint")
_OTHER_NAMES = {"err": "error", "warn": "warning", "info": "information"}

_SPEC = ToolSpec(
    "get_diagnostics",
    "List the problems that linters and language servers report in the editor for files that are open there, as they"
    " are now: after a change they may need a moment.",
    parameters(
        {
            "path": {"type": "string", "minLength": 1, "description": "Only this file. Default: all open files."},
            "severity": {
                "type": "string",
                "enum": list(SEVERITIES),
                "description": "Only this severity and worse. Default: all.",
            },
        }
    ),
)


async def _run(arguments: dict[str, Any], context: ToolContext) -> ToolOutput:
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
    """Return the real path of a diagnostic's file; the editor may know it by another name."""
    return Path(context.snapshot.cwd or context.root, found.path).expanduser().resolve()


def _severity(found: Diagnostic) -> str:
    name = found.severity.casefold()
    return _OTHER_NAMES.get(name, name)


def _rank(found: Diagnostic) -> int:
    name = _severity(found)
    return SEVERITIES.index(name) if name in SEVERITIES else 0


def _title(arguments: dict[str, Any]) -> str:
    return f"get_diagnostics {arguments.get('path', '')}".rstrip()


def _question(arguments: dict[str, Any], context: ToolContext) -> ApprovalQuestion | None:
    return None


GET_DIAGNOSTICS = Tool(spec=_SPEC, run=_run, title=_title, question=_question)
