"""The interface of a source that reads an item of editor context by its argument, in the host."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from pathlib import Path

import msgspec

from codecompanion.wire.requests import EditorText


class Taken(msgspec.Struct, frozen=True):
    """The result of a source: texts, or `nothing` (why there are none), or `error` (why the message cannot be sent)."""

    texts: tuple[EditorText, ...] = ()
    nothing: str = ""
    error: str = ""


Source = Callable[[str, Path], Awaitable[Taken]]
"""Returns the content for an argument, in the workspace."""
