"""Tells the model, before the user's next message, about changes to attached files since it last saw them.

Unchanged files cost one `stat`. Updates are logged right before the message, so the prompt cache of everything above
stays valid. On failure the message is sent as typed.
"""

from __future__ import annotations

import asyncio
import hashlib
import os
from collections.abc import Mapping, Sequence
from pathlib import Path

import msgspec

from codecompanion.errors import CodeCompanionError
from codecompanion.formats import text_files
from codecompanion.model.history import MessageAdded
from codecompanion.model.live_files import GONE, UNREADABLE, Edit, LiveFile
from codecompanion.model.messages import Message, with_changes
from codecompanion.session.attachments.update_text import (
    Now,
    absence,
    body_of_update,
    difference,
    title_of_update,
    too_large,
    whole_text,
)
from codecompanion.session.message_context.found_context import NOTHING, Found
from codecompanion.session.services import Services
from codecompanion.session.window.context_control import ContextControl
from codecompanion.tools.files.open_files import Opened
from codecompanion.wire.events import FileUpdated, Notice, Severity
from codecompanion.wire.requests import Snapshot
from codecompanion.workspace.secret_text import why_secret

TIME_LIMIT_S = 5.0
"""Time limit in seconds, so that an unresponsive file system does not keep a message from being sent."""
LOOK_LIMIT_S = 1.0
WHOLE_AGAIN_TOKENS = 4_000
"""Maximum size in tokens of a file that is resent whole if it is no longer in the context; a larger file is sent as a
diff if the model has `read_file`.
"""
MAX_BESIDE = 2_000
"""Maximum number of files in a folder that are searched for a renamed file."""


Signature = tuple[object, ...]


class LiveUpdates:
    """Watches the live attachments of one chat. Its only state is a cache that avoids rereading unchanged files."""

    def __init__(self, services: Services, control: ContextControl) -> None:
        self._services, self._control = services, control
        self._seen: dict[str, tuple[LiveFile, Signature]] = {}
        """Each file as the model last saw it, with its signature at that time, by path."""

    async def before(self, text: str, snapshot: Snapshot, turn_id: str, cycle: int) -> Found:
        """Return the context sent before a message: changes of live attachments since the model saw them.

        Raises:
            asyncio.CancelledError: stopped; nothing was logged.
        """
        live = [one for one in self._control.log.files.values() if one.live]
        if not live:
            return NOTHING
        try:
            async with asyncio.timeout(TIME_LIMIT_S):
                return await self._changes(live, text, snapshot, turn_id, cycle)
        except TimeoutError:
            return self._with_warning("The attached files could not be checked in time; the model may have old text.")
        except Exception as error:
            why = self._services.report_bug(error)
            return self._with_warning(f"The attached files could not be checked: {why}")

    async def _changes(
        self, live: Sequence[LiveFile], text: str, snapshot: Snapshot, turn_id: str, cycle: int
    ) -> Found:
        root = self._services.root(snapshot)
        signatures = await asyncio.to_thread(_signatures, live, root, snapshot)
        moved = [one for one in live if self._seen.get(one.path) != (one, signatures[one.path])]
        if not moved:
            return NOTHING
        opened = await self._opened(moved, root, snapshot)
        room = self._control.fitting.room_for_code(text)
        messages = list[Message]()
        notices = list[Notice]()
        for one in moved:
            now = await asyncio.to_thread(_now, one, root, opened)
            message = None if now is None else await self._message(one, now, root, room)
            if message is None:
                self._seen[one.path] = (one, signatures[one.path])
                continue
            if message.file is None:
                self._seen[one.path] = (one, signatures[one.path])
                why = f"{one.path} has changed too much to be sent again; the model was asked to read it."
                notices.append(Notice(chat=self._control.chat_id, level=Severity.WARN, text=why))
            fresh = with_changes(message, cycle=cycle, turn_id=turn_id, ts=self._services.clock())
            messages.append(self._control.meter.counted(fresh))
            room -= messages[-1].tokens
        told = tuple(map(self._sent_event, messages))
        return Found(tuple(MessageAdded(message=message) for message in messages), (*told, *notices))

    def _sent_event(self, message: Message) -> FileUpdated:
        return FileUpdated(
            chat=self._control.chat_id,
            message_id=message.id,
            title=title_of_update(message),
            body=body_of_update(message),
            tokens=self._control.meter.scaled(message.tokens),
        )

    async def _opened(self, files: Sequence[LiveFile], root: Path, snapshot: Snapshot) -> Opened:
        """Return the contents of files that are unsaved or exist only in the editor; others are not requested."""
        names = {buffer.name for buffer in snapshot.buffers}
        paths = [_real(one, root) for one in files if str(root / one.path) in names or str(_real(one, root)) in names]
        if not paths:
            return Opened()
        try:
            async with asyncio.timeout(LOOK_LIMIT_S):
                return await self._services.editor.look(paths)
        except TimeoutError:
            return Opened(silent=True)

    async def _message(self, one: LiveFile, now: Now, root: Path, room: int) -> Message | None:
        """Return the message about a file's changes, or None if the model knows its current state."""
        token = self._services.new_token()
        if now.sha256 == one.shown and not one.edits:
            return None
        if now.text is None:
            return None if now.sha256 == one.shown else absence(one.path, await self._renamed(one, now, root), token)
        base = await asyncio.to_thread(self._base, one)
        if base == now.text:
            return None
        await asyncio.to_thread(self._services.store.put_blob, now.text.encode())
        whole = self._counted(whole_text(one.path, now, token, again=one.shown == GONE))
        if base is None:
            return whole if whole.tokens <= room else too_large(one.path, token)
        is_above = self._is_above(one)
        diff = self._counted(await asyncio.to_thread(difference, one.path, base, now, token, is_above=is_above))
        can_read = any(spec.name == "read_file" for spec in self._control.specs)
        wants_whole = not is_above and (whole.tokens <= WHOLE_AGAIN_TOKENS or not can_read)
        choices = [whole, diff] if wants_whole or whole.tokens <= diff.tokens else [diff, whole]
        return next((choice for choice in choices if choice.tokens <= room), None) or too_large(one.path, token)

    def _counted(self, message: Message) -> Message:
        return self._control.meter.counted(message)

    def _is_above(self, one: LiveFile) -> bool:
        """Return whether all messages that make up the known text are still in the request, unchanged."""
        whole = {m.id for m in self._control.log.view.messages if not (m.edited or m.compacted)}
        return whole.issuperset(one.parts)

    def _base(self, one: LiveFile) -> str | None:
        """Return the text as the model knows it: the text it was shown, with its own edits applied; None = unknown."""
        base = self._stored(one.shown)
        calls = {call.id for message in self._control.log.view.messages for call in message.tool_calls}
        for edit in one.edits if base is not None else ():
            if edit.is_done and (not edit.call_id or edit.call_id in calls):
                base = self._edited(base or "", edit)
        return base

    def _edited(self, base: str, edit: Edit) -> str:
        """Return the text after a tool's edit, as far as the model can know the result."""
        before, after = self._file_text(edit.before), self._file_text(edit.after)
        if before is None or after is None or before == base:
            return base if after is None or before is None else after
        if not edit.call_id:
            return base  # a revert of changes that the model does not know about
        from codecompanion.workspace.merge import merge  # not needed at startup

        merged = merge(before, base, after, ("known", "before", "after"))
        return base if merged.conflicts or merged.problem else merged.text

    def _stored(self, sha256: str) -> str | None:
        if not sha256 or sha256 in (GONE, UNREADABLE):
            return None
        try:
            return self._services.store.read_blob(sha256).decode()
        except (CodeCompanionError, OSError, UnicodeDecodeError, KeyError):
            return None  # lost with its database; the whole file is sent

    def _file_text(self, sha256: str) -> str | None:
        """Return a file's stored text before or after a change, "" if the file did not exist, or None if it is lost."""
        if not sha256:
            return ""
        try:
            return text_files.printable(text_files.decode(self._services.store.read_blob(sha256)).text)
        except (CodeCompanionError, OSError, KeyError):
            return None

    async def _renamed(self, one: LiveFile, now: Now, root: Path) -> Now:
        """Return the file's state, with the new name if a file with the old text exists in the same folder."""
        base = self._stored(one.shown)
        if not base or now.sha256 != GONE:
            return now
        name = await asyncio.to_thread(_same_text_beside, root / one.path, base)
        return msgspec.structs.replace(now, renamed=(Path(one.path).parent / name).as_posix()) if name else now

    def _with_warning(self, text: str) -> Found:
        return Found(told=(Notice(chat=self._control.chat_id, level=Severity.WARN, text=text),))


def sha256_of(text: str) -> str:
    """Return the SHA-256 under which the content is stored."""
    return hashlib.sha256(text.encode()).hexdigest()


def _real(one: LiveFile, root: Path) -> Path:
    return Path(os.path.realpath(root / one.path))


def _signatures(files: Sequence[LiveFile], root: Path, snapshot: Snapshot) -> Mapping[str, Signature]:
    """Return a signature per path that differs if the file may have changed on disk or has unsaved changes."""
    modified = {buffer.name: buffer.tick for buffer in snapshot.buffers if buffer.modified}
    found = dict[str, Signature]()
    for one in files:
        path = root / one.path
        try:
            status = path.stat()
            disk: Signature = (status.st_mtime_ns, status.st_size, status.st_ino)
        except OSError:
            disk = ()
        tick = modified.get(str(path)) if modified else None
        if tick is None and modified:
            tick = modified.get(str(_real(one, root)))
        found[one.path] = (*disk, tick)
    return found


def _now(one: LiveFile, root: Path, opened: Opened) -> Now | None:
    """Return a file's current state, in the editor or on disk, or None if it is in neither."""
    path = _real(one, root)
    from codecompanion.session.attachments.read_attachment import outside_of  # not needed at startup

    outside = outside_of(root, one.path)
    if outside and outside != one.outside:
        return Now(UNREADABLE, why="it now links to a file that the user did not attach")
    file = opened.at(path)
    exists = path.exists()
    if file is not None and file.text is not None and (file.modified or not exists):
        return _shown(one, text_files.printable(file.text))
    if not exists:
        return None if opened.silent else Now(GONE)
    try:
        text = _printable(path)
    except CodeCompanionError as error:
        return Now(UNREADABLE, why=str(error))
    return _shown(one, text)


def _shown(one: LiveFile, text: str) -> Now:
    """Return the state of a file with this text; a file that now contains a secret counts as unreadable."""
    if found := why_secret(text, one.path):
        return Now(UNREADABLE, why=f"it now contains a secret ({found}); the user can attach it again")
    return Now(sha256_of(text), text)


def _printable(path: Path) -> str:
    return text_files.printable(text_files.read_text(path).text)


def _same_text_beside(path: Path, text: str) -> str:
    """Return the name of another file with this content in the same folder, or ""."""
    size = len(text.encode())
    try:
        with os.scandir(path.parent) as entries:
            beside = [entry.path for _, entry in zip(range(MAX_BESIDE), entries, strict=False) if entry.is_file()]
        for other in sorted(beside):
            # Windows line endings make the file longer than the text.
            if 0 <= Path(other).stat().st_size - size <= text.count("\n") and _printable(Path(other)) == text:
                return Path(other).name
    except (OSError, CodeCompanionError):
        return ""
    return ""
