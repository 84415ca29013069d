"""Every text that stands in for removed content, exactly as the documents print it (R-513, R-523).

Placeholders are constant strings for a given path: nothing that changes (counters, dates) may enter them, or the
prompt cache of the provider is lost on every request (lesson 22).
"""

from __future__ import annotations

TOOL_RESULT_CLEARED = (
    "<important>Tool result cleared to save context. Re-run the tool if you need this output</important>"
)
FILE_CLEARED = (
    "<important>File content for `{path}` cleared during compaction. Re-read the file if you need it.</important>"
)
BUFFER_CLEARED = (
    "<important>Buffer content for `{path}` cleared during compaction."
    " Request the buffer from the user if you need it.</important>"
)
IMAGE_CLEARED = (
    "<important>Image content cleared during compaction. Request the image from the user if you need it.</important>"
)
IMAGE_WITH_PATH_CLEARED = (
    "<important>Image content for `{path}` cleared during compaction."
    " Request the image from the user if you need it.</important>"
)
TEMPLATES = {
    "tool_result_cleared": TOOL_RESULT_CLEARED,
    "file_cleared": FILE_CLEARED,
    "buffer_cleared": BUFFER_CLEARED,
    "image_cleared": IMAGE_CLEARED,
}

SUMMARY_PREFIX = "Below is a summary of a previous conversation:\n\n"
REQUEST_HEADING = "The request that was being worked on, in the user's own words:"
_OPEN_REQUEST = f"\n\n{REQUEST_HEADING}\n\n"
LEDGER_HEADING = "**Ledger** (read from the log, not written by a model)"
CANCELLED_BY_USER = "Cancelled by the user before it finished."
INTERRUPTED = "Interrupted before it finished: there is no result. Call the tool again if it is still needed."


def quote_request(text: str) -> str:
    """Return the end of a summary that quotes what an interrupted loop works on (R-551)."""
    return _OPEN_REQUEST + text


def quoted_request(summary: str) -> str:
    """Return the user's words quoted at the end of a summary, "" when there are none."""
    return summary.rpartition(_OPEN_REQUEST)[2] if _OPEN_REQUEST in summary else ""


def image_cleared(path: str | None) -> str:
    """Return the placeholder of a cleared image, naming its path when it has one (R-523)."""
    return IMAGE_WITH_PATH_CLEARED.format(path=path) if path else IMAGE_CLEARED
