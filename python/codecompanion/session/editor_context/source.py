"""What reads an item of editor context by its argument, where the host does that and not the editor."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from pathlib import Path

import msgspec

from codecompanion.wire.requests import EditorText


class Taken(msgspec.Struct, frozen=True):
    """What a source gives: texts, or `nothing` (why there are none), or `error` (why the message cannot be sent)."""

    texts: tuple[EditorText, ...] = ()
    nothing: str = ""
    error: str = ""


Source = Callable[[str, Path], Awaitable[Taken]]
"""Gives what is meant by an argument, below the workspace."""
