"""Formats names, titles, errors and schemas that several tools share."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from codecompanion.errors import CodeCompanionError, ToolError
from codecompanion.formats import text_files
from codecompanion.tools.tool import ToolContext

PATH = {"type": "string", "minLength": 1, "description": "Path of the file, relative to the workspace."}


def parameters(properties: dict[str, Any], *required: str) -> dict[str, Any]:
    """Return the JSON schema of a tool's arguments."""
    return {"type": "object", "properties": properties, "required": list(required), "additionalProperties": False}


def shown_path(path: Path, context: ToolContext) -> str:
    """Return the path as the model and the user see it: relative to the workspace if it is inside."""
    for root in (context.root, context.root.resolve()):
        if path.is_relative_to(root):
            return path.relative_to(root).as_posix()
    return path.as_posix()


HOLDS_KEYS = "its name suggests keys or passwords"


def is_secret(path: Path, context: ToolContext) -> bool:
    """Return whether the name of a file suggests that it contains keys or passwords."""
    return context.is_secret(shown_path(path, context))


def why_secret_on_disk(path: Path, context: ToolContext) -> str:
    """Return why a file's content is secret, or "" if it is not secret or cannot be read."""
    try:
        text = text_files.read_text(path).text
    except (CodeCompanionError, OSError, ValueError):
        return ""
    return context.why_secret(text, shown_path(path, context))


def path_below(folder: Path, path: Path) -> str:
    """Return the path relative to the folder that contains it, ten times as fast as `relative_to`."""
    return str(path)[len(str(folder).rstrip("/")) + 1 :]


def one_line(text: str, limit: int = 80) -> str:
    """Return the text's first line for a title, shortened."""
    first, _, rest = text.strip().partition("\n")
    first = first.strip()
    return f"{first[:limit]}…" if rest or len(first) > limit else first


def fits_one_line(arguments: dict[str, Any]) -> bool:
    """Return whether an approval shows the arguments in one line of JSON: one simple value."""
    return len(arguments) == 1 and not any(isinstance(value, (dict, list)) for value in arguments.values())


def missing_file(path: Path, context: ToolContext) -> ToolError:
    """Return the error for a file that does not exist, naming files of the same name elsewhere."""
    name = path.name.casefold()
    found = []
    for number, candidate in enumerate(context.walk(context.root)):
        if candidate.name.casefold() == name:
            found.append(shown_path(candidate, context))
        if len(found) == 5 or number == 20_000:
            break
    hint = f" Did you mean {' or '.join(found)}?" if found else " file_search finds files by name."
    return ToolError(f"There is no file {shown_path(path, context)}.{hint}")
