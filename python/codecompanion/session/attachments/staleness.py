"""Checks whether the file text in a message still matches the file (lesson 24).

Contents are compared if known (numbered lines of `read_file`, attached text, the hash of an image), otherwise
modification times. A message that does not come from a file is never out of date.
"""

from __future__ import annotations

import hashlib
import re
from pathlib import Path
from typing import Any

import msgspec

from codecompanion.errors import CodeCompanionError
from codecompanion.formats import text_files
from codecompanion.formats.outside_text import NOT_READABLE
from codecompanion.formats.regex import regex
from codecompanion.model.messages import Message, ToolCall
from codecompanion.session.attachments.attached import text_attachment
from codecompanion.tools.limit import STORED_PREFIX
from codecompanion.workspace.paths import Workspace

CHANGED = "its file has changed on disk since then"
GONE = "its file is gone"
_NUMBERED = regex(r"(\d{1,15})\t(.*)", re.DOTALL)
_MAX_BYTES = 40_000_000


def changed_since(message: Message, call: ToolCall | None, text: str, root: Path) -> str:
    """Return how the source file of `text`, the message's whole text, has changed.

    "" if it has not or if this is unknown.
    """
    try:
        if message.role == "tool":
            return _read_result(message, _arguments(call), text, root) if call and call.name == "read_file" else ""
        if message.role == "user" and message.path and message.tag in ("file", "image", "document"):
            return _attachment(message, Path(root, message.path))
    except (OSError, CodeCompanionError):
        # The file is unreachable or no longer text: whether it has changed is unknown.
        return ""
    return ""


def _arguments(call: ToolCall) -> dict[str, Any]:
    try:
        arguments = msgspec.json.decode(call.arguments or "{}")
    except NOT_READABLE:
        return {}
    return arguments if isinstance(arguments, dict) else {}


def _read_result(message: Message, arguments: dict[str, Any], text: str, root: Path) -> str:
    path = arguments.get("path")
    if not isinstance(path, str) or path.startswith(STORED_PREFIX) or message.is_error:
        return ""
    real = Workspace(root).resolve(path)
    if not real.exists():
        return GONE
    if "start_column" in arguments or "end_column" in arguments:
        return _by_time(message, real)
    shown = [found for line in text.split("\n") if (found := _NUMBERED.fullmatch(line))]
    if not shown:
        return _by_time(message, real)
    now = text_files.split_lines(text_files.printable(text_files.read_text(real).text))
    whole = not arguments.get("end_line")
    same = all(int(line[1]) <= len(now) and now[int(line[1]) - 1] == line[2] for line in shown)
    return "" if same and not (whole and len(now) > int(shown[-1][1])) else CHANGED


def _attachment(message: Message, path: Path) -> str:
    if not path.exists():
        return GONE
    if message.tag == "file" and isinstance(message.content, str):
        text = text_files.printable(text_files.read_text(path).text)
        if message.file is not None:
            return "" if hashlib.sha256(text.encode()).hexdigest() == message.file.sha256 else CHANGED
        now = text_attachment("file", message.path or "", text, message.id)
        return "" if now.content == message.content else CHANGED
    known = {image.sha256 for image in message.images} | {document.sha256 for document in message.documents}
    if path.stat().st_size > _MAX_BYTES:
        return _by_time(message, path)
    return "" if hashlib.sha256(path.read_bytes()).hexdigest() in known else CHANGED


def _by_time(message: Message, path: Path) -> str:
    return CHANGED if message.ts and path.stat().st_mtime > message.ts else ""
