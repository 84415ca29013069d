"""Reads an attachment from disk, or from the editor if the file has unsaved changes."""

from __future__ import annotations

import asyncio
import os
from pathlib import Path

from codecompanion.errors import InputError
from codecompanion.formats import text_files
from codecompanion.model.live_files import LIVE_TAGS
from codecompanion.model.messages import AttachedFile, Message
from codecompanion.session.attachments.attached import (
    document_attachment,
    image_attachment,
    is_document_path,
    text_attachment,
)
from codecompanion.session.services import Services
from codecompanion.wire.requests import Attach
from codecompanion.workspace.secret_files import is_secret
from codecompanion.workspace.secret_text import why_secret


async def read_attachment(services: Services, request: Attach, root: Path) -> Message:
    """Return the attachment; files are read in a thread, and relative paths are resolved against `root`.

    A path below `root` is shown relative to it, as in the tools.

    Raises:
        CodeCompanionError: the file cannot be read; the message names it.
    """
    token, path = services.new_token(), _below(root, request.path)
    is_document = request.kind == "file" and is_document_path(request.path)
    if request.kind == "image" or is_document:
        data = await asyncio.to_thread(_read_bytes, root, request.path)
        attach = document_attachment if is_document else image_attachment
        message, digest = await asyncio.to_thread(attach, path, data, token)
        stored = await asyncio.to_thread(services.store.put_blob, data)
        if stored != digest:
            raise InputError(f"{request.path} changed while it was being read; attach it again")
        return message
    text, file = request.text, None
    if request.kind == "diff":
        from codecompanion.session.attachments.diff_text import diff_attachment  # rarely used, not needed at startup

        title, text = await diff_attachment(request.path, root)
        return text_attachment("diff", title, text, token)
    if request.kind in ("file", "symbols"):
        real = await asyncio.to_thread(_real_path, root, request.path)
        opened = (await services.editor.look([real])).at(real)
        unsaved = opened.text if opened is not None and opened.modified else None
        text = unsaved if unsaved is not None else await asyncio.to_thread(_read_text, real)
    if request.kind == "symbols":
        from codecompanion.session.attachments.outline import outline_of

        text = await asyncio.to_thread(outline_of, path, text)
    if request.kind in LIVE_TAGS:
        text = text_files.printable(text)
        sha256 = await asyncio.to_thread(services.store.put_blob, text.encode())
        outside = await asyncio.to_thread(outside_of, root, path)
        file = AttachedFile(sha256=sha256, live=_is_live(services, request, path, text), outside=outside)
    return text_attachment(request.kind, path, text, token, file)


def _is_live(services: Services, request: Attach, path: str, text: str) -> bool:
    """Return whether later changes to an attachment are sent to the model.

    Raises:
        InputError: live was requested for a file whose name marks it as secret.
    """
    if not is_secret(path) and why_secret(text, path):
        return False
    if is_secret(path):
        if request.live:
            raise InputError(f"{path} looks like a file of keys or passwords; it cannot be live.")
        return False
    return services.settings.chat.live_attachments if request.live is None else request.live


def outside_of(root: Path, path: str) -> str:
    """Return the real path of a file outside the workspace, or "" if inside, resolving symbolic links."""
    real = Path(os.path.realpath(root / Path(path).expanduser()))
    return "" if real.is_relative_to(os.path.realpath(root)) else str(real)


def _read_bytes(root: Path, path: str) -> bytes:
    return text_files.read_bytes(_real_path(root, path))


def _below(root: Path, path: str) -> str:
    whole = Path(path)
    return whole.relative_to(root).as_posix() if whole.is_relative_to(root) else path


def _real_path(root: Path, path: str) -> Path:
    return (root / Path(path).expanduser()).resolve()


def _read_text(path: Path) -> str:
    return text_files.printable(text_files.read_text(path).text)
