"""`read_file`: returns a text file or a stored result, or a range of its lines, with line numbers.

Lines are formatted as `number<TAB>text`: models use these numbers to cite, page and match diagnostics; `insert_edit`
strips them if the model copies them by mistake.
"""

from __future__ import annotations

from typing import Any

from codecompanion.errors import CodeCompanionError, ToolError
from codecompanion.formats import text_files
from codecompanion.formats.plural import counted
from codecompanion.formats.regex import regex
from codecompanion.tools.builtin.wording import (
    HOLDS_KEYS,
    is_secret,
    missing_file,
    shown_path,
    why_secret_on_disk,
)
from codecompanion.tools.file_changes.file_change import current_text, is_there
from codecompanion.tools.files.disk import Check, in_thread
from codecompanion.tools.limit import STORED_PREFIX
from codecompanion.tools.tool import ApprovalQuestion, ToolContext, ToolOutput

_SHA256 = regex("[0-9a-f]{64}")


async def run(arguments: dict[str, Any], context: ToolContext) -> ToolOutput:
    """Run one call; raises `ToolError`."""
    return await in_thread(lambda check: _read(arguments, context, check))


def _read(arguments: dict[str, Any], context: ToolContext, check: Check) -> ToolOutput:
    path: str = arguments["path"]
    first, last = _range(arguments, "start_line", "end_line")
    left, right = _range(arguments, "start_column", "end_column")
    text = _stored(path, context) if path.startswith(STORED_PREFIX) else _file(path, context)
    check()
    lines = text_files.split_lines(text)
    if not lines:
        return ToolOutput(text=f"{path} is empty.", summary="0 lines")
    if first > len(lines):
        raise ToolError(f"{path} has {counted(len(lines), 'line')}; start_line {first} is beyond its end.")
    chosen = lines[first - 1 : last]
    numbered = "\n".join(f"{first + index}\t{line[left - 1 : right]}" for index, line in enumerate(chosen))
    rest = len(lines) - (first - 1 + len(chosen))
    opened = None if path.startswith(STORED_PREFIX) else context.opened.at(context.resolve(path))
    unsaved = "\n[unsaved: this is the text in the editor, not on disk]" if opened and opened.modified else ""
    note = f"\n[{counted(rest, 'more line')} up to line {len(lines)}]" if rest else ""
    return ToolOutput(text=numbered + note + unsaved, summary=counted(len(chosen), "line"))


def _range(arguments: dict[str, Any], start: str, end: str) -> tuple[int, int | None]:
    first, last = arguments.get(start, 1), arguments.get(end)
    if last is not None and last < first:
        raise ToolError(f"{end} {last} comes before {start} {first}.")
    return first, last


def _file(path: str, context: ToolContext) -> str:
    real = context.resolve(path)
    if not is_there(real, context):
        raise missing_file(real, context)
    if real.is_dir():
        raise ToolError(f"{shown_path(real, context)} is a folder; file_search lists the files in it.")
    text, opened = current_text(real, context).text, context.opened.at(real)
    if opened is not None and opened.modified and not why_secret_on_disk(real, context):
        # Text that exists only in the editor needs this check, because `why_asked` reads the disk.
        text, why = context.without_secrets(text, shown_path(real, context))
        if why:
            raise ToolError(f"{shown_path(real, context)} is not shown: its unsaved text contains a secret ({why}).")
    return text_files.printable(text)


def _stored(path: str, context: ToolContext) -> str:
    sha256 = path.removeprefix(STORED_PREFIX)
    try:
        if not _SHA256.fullmatch(sha256):
            raise KeyError(sha256)
        return context.read_stored(sha256)
    except (CodeCompanionError, KeyError, OSError) as error:
        raise ToolError(
            f"There is no stored result {path!r}; copy the path exactly from the earlier result."
        ) from error


def title_of(arguments: dict[str, Any]) -> str:
    """Return the title of a call."""
    first, last = arguments.get("start_line"), arguments.get("end_line")
    lines = f" {first or 1}-{last or ''}" if first or last else ""
    path = arguments["path"]
    return f"read_file {path[: len(STORED_PREFIX) + 12] if path.startswith(STORED_PREFIX) else path}{lines}"


def why_asked(arguments: dict[str, Any], context: ToolContext) -> str:
    """Return why reading this file asks (its name as written, its target's name or its content), "" if it does not."""
    path: str = arguments["path"]
    if path.startswith(STORED_PREFIX):
        return ""
    try:
        real = context.resolve(path)
    except (CodeCompanionError, OSError, ValueError):  # the tool itself reports this
        return ""
    if context.is_secret(path) or is_secret(real, context):
        return HOLDS_KEYS
    found = why_secret_on_disk(real, context)
    return f"it contains a secret: {found}" if found else ""


def question_about(arguments: dict[str, Any], context: ToolContext) -> ApprovalQuestion | None:
    """Return the question for the user, or None if the call may run without approval."""
    return None
