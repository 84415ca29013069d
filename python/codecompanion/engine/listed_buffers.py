"""Keeps the list of files open in the editor, which sends it only when it changes.

With hundreds of files, collecting and sending their names with every message would cause a noticeable delay.
"""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from codecompanion.wire.requests import Buffer, Request, Snapshot


class ListedBuffers:
    """The file buffers that the editor last listed. Used on one thread, in the order in which requests arrive."""

    def __init__(self) -> None:
        self._buffers: tuple[Buffer, ...] = ()

    def take(self, names: Sequence[str]) -> None:
        """Store the names of the listed buffers."""
        self._buffers = tuple(map(Buffer, names))

    def complete(self, request: Request) -> Request:
        """Return the request with every open file added to its snapshot, if it has one."""
        snapshot: Snapshot | None = getattr(request, "snapshot", None)
        if snapshot is None or not self._buffers:
            return request
        complete = msgspec.structs.replace(snapshot, buffers=self._with(snapshot))
        return msgspec.structs.replace(request, snapshot=complete)

    def _with(self, snapshot: Snapshot) -> tuple[Buffer, ...]:
        if not snapshot.buffers:
            return self._buffers
        changed = {buffer.name: buffer for buffer in snapshot.buffers}
        open_files = tuple(changed.pop(buffer.name, buffer) for buffer in self._buffers)
        return (*open_files, *changed.values())  # a file opened a moment ago may not be listed yet
