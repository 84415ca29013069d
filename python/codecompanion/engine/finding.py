"""Defines a line of the health check (`:checkhealth codecompanion`, `codecompanion doctor`)."""

from __future__ import annotations

import msgspec


class Finding(msgspec.Struct, frozen=True):
    """A check and its result. `advice`: the remedy if `ok` is false."""

    name: str
    ok: bool
    text: str
    advice: str = ""
