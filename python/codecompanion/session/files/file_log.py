"""Logs file changes: the contents before and after a change are stored before it is made (architecture.md)."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable

from codecompanion.model.history import FileChangeEnded, FileChangeStarted
from codecompanion.tools.tool import ChangeResult, PendingChange


class FileLog:
    """Records the file changes of one tool call or revert (`tools.tool.Recorder`)."""

    def __init__(
        self,
        write: Callable[..., Awaitable[object]],
        put_blob: Callable[[bytes], str],
        new_id: Callable[[], str],
        turn_id: str = "",
        call_id: str = "",
        on_change: Callable[[FileChangeStarted, FileChangeEnded], None] = lambda began, ended: None,
    ) -> None:
        """Create the log. `write` appends to the chat's log; `put_blob` stores bytes and returns their sha256.

        `on_change` is called after each change, whether it succeeded or failed.
        """
        self._write, self._put_blob, self._new_id = write, put_blob, new_id
        self._turn_id, self._call_id, self._on_change = turn_id, call_id, on_change
        self._began: dict[str, FileChangeStarted] = {}

    async def begin(self, change: PendingChange) -> str:
        """Log that a file is about to be changed; return the change's id."""
        change_id = self._new_id()
        began = FileChangeStarted(
            change_id=change_id,
            turn_id=self._turn_id,
            call_id=self._call_id,
            path=str(change.path),
            name=change.name,
            before=await self._stored(change.before),
            after=await self._stored(change.after),
            mode=change.mode,
            link=change.link,
            reverts=change.reverts.changes,
            gone=change.reverts.gone,
        )
        await self._write(began)
        self._began[change_id] = began
        return change_id

    async def end(self, change_id: str, how: ChangeResult) -> None:
        """Log how the change ended."""
        ended = FileChangeEnded(
            change_id=change_id,
            state=how.state,
            after=await self._stored(how.after),
            added=how.added,
            removed=how.removed,
            reason=how.reason,
        )
        if change_id in self._began:
            self._on_change(self._began.pop(change_id), ended)
        await self._write(ended)

    async def _stored(self, content: bytes | None) -> str:
        return "" if content is None else await asyncio.to_thread(self._put_blob, content)
