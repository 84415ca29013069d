"""Reads ISO 8601 times in transcripts and imports (`:help codecompanion-cli`)."""

from __future__ import annotations

import datetime


def read_time(text: str) -> float | None:
    """Return the seconds since the epoch of an ISO 8601 time (without a zone: UTC), or None when it is invalid."""
    try:
        moment = datetime.datetime.fromisoformat(text)
        return moment.replace(tzinfo=moment.tzinfo or datetime.UTC).timestamp()
    except (ValueError, OverflowError):
        return None
