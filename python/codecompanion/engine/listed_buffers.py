"""The open files of the editor, which it sends when they change and not with every request.

With hundreds of them, reading and sending their names would be noticeable at every message.
"""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from codecompanion.wire.requests import Buffer, Request, Snapshot


class ListedBuffers:
    """The listed file buffers that the editor named last. Used on one thread, in the order requests arrive."""

    def __init__(self) -> None:
        self._buffers: tuple[Buffer, ...] = ()

    def take(self, names: Sequence[str]) -> None:
        """Remember the names."""
        self._buffers = tuple(map(Buffer, names))

    def complete(self, request: Request) -> Request:
        """Return the request with every open file in its snapshot, if it has one."""
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
