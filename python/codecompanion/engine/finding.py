"""One line of the check-up (`:checkhealth codecompanion`, `codecompanion doctor`)."""

from __future__ import annotations

import msgspec


class Finding(msgspec.Struct, frozen=True):
    """What was looked at, and what was found. `advice` is what to do when `ok` is false."""

    name: str
    ok: bool
    text: str
    advice: str = ""
