"""One line of the check-up (`:checkhealth codecompanion`, `codecompanion doctor`)."""

from __future__ import annotations

import msgspec


class Finding(msgspec.Struct, frozen=True):
    """A check and its result. `advice` is the remedy when `ok` is false."""

    name: str
    ok: bool
    text: str
    advice: str = ""
