"""Reads ISO 8601 times in transcripts and imports (`:help codecompanion-cli`)."""

from __future__ import annotations

import datetime


def read_time(text: str) -> float | None:
    """Return an ISO 8601 time as seconds since the epoch (UTC if it has no zone), or None if it is invalid."""
    try:
        moment = datetime.datetime.fromisoformat(text)
        return moment.replace(tzinfo=moment.tzinfo or datetime.UTC).timestamp()
    except (ValueError, OverflowError):
        return None
