"""Decides when to retry a failed request: backoff with jitter, the delay the provider requests, a limit (lesson 38).

Pure: the clock and the random number are arguments. Retries are announced and can be cancelled while waiting.
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from datetime import UTC
from time import time

from codecompanion.errors import AdapterError
from codecompanion.formats.regex import regex

FIRST_WAIT_S = 0.5
MAX_WAIT_S = 30.0
MAX_SENSIBLE_S = 31 * 86_400.0
"""Maximum plausible delay in seconds; a longer request is a server fault and is ignored."""
_SECONDS = regex(r"\s*(\d{1,12}(?:\.\d{0,12})?|\.\d{1,12})\s*(?:s|sec|seconds|ms)?\s*", re.ASCII | re.IGNORECASE)
MAX_RETRY_AFTER_S = 60.0
"""Maximum delay in seconds before an automatic retry; if the provider requests more, the user decides."""


def wait_before_retry(
    error: AdapterError, attempt: int, *, max_retries: int, random: float, is_free: bool = False
) -> float | None:
    """Return how many seconds to wait before attempt `attempt + 1`, or None for no retry.

    A request that the provider may have processed is not repeated, unless it `is_free`; the user decides. `attempt`
    counts from 1; `random` (0..1) varies the delay by ±25 %, unless the provider requested one.
    """
    if not error.retryable or attempt > max_retries or (error.perhaps_processed and not is_free):
        return None
    wished = getattr(error, "retry_after_s", None)
    if wished is not None:
        return max(0.0, wished) if wished <= MAX_RETRY_AFTER_S else None
    wait = min(MAX_WAIT_S, FIRST_WAIT_S * 2.0 ** min(attempt - 1, 20))
    return wait * (0.75 + 0.5 * random)


def parse_retry_after(headers: Mapping[str, str], now: float | None = None) -> float | None:
    """Return `retry-after-ms` or `retry-after` (seconds or an HTTP date) in seconds, or None if neither is usable."""
    for name, unit in (("retry-after-ms", 1000.0), ("retry-after", 1.0)):
        found = _SECONDS.fullmatch(headers.get(name, ""))
        seconds = float(found[1]) / unit if found else math.inf
        if seconds <= MAX_SENSIBLE_S:
            return seconds
    from email.utils import parsedate_to_datetime  # only dates need it

    try:
        moment = parsedate_to_datetime(headers.get("retry-after", ""))
        seconds = moment.replace(tzinfo=moment.tzinfo or UTC).timestamp() - (time() if now is None else now)
    except (TypeError, ValueError, IndexError, OverflowError, OSError):
        return None
    return max(0.0, seconds) if seconds <= MAX_SENSIBLE_S else None
