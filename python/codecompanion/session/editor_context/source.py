"""The interface of host-side sources, each of which reads one kind of editor-context item, given its argument."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from pathlib import Path

import msgspec

from codecompanion.wire.requests import EditorText


class SourceResult(msgspec.Struct, frozen=True):
    """The result of a source: `texts`, `nothing` (why there are none), or `error` (why the message cannot be sent)."""

    texts: tuple[EditorText, ...] = ()
    nothing: str = ""
    error: str = ""


Source = Callable[[str, Path], Awaitable[SourceResult]]
"""`(argument, workspace)` → the content of the item."""
