"""Writes JSON for the command line, always on one line, whichever characters the reader treats as line breaks."""

from __future__ import annotations

import json
from typing import Any

_LINE_ENDS = {code: f"\\u{code:04x}" for code in (0x85, 0x2028, 0x2029)}


def json_line(value: Any) -> str:
    """Return a value as JSON without line breaks.

    Characters that end a line for some readers (`str.splitlines`, JavaScript) but not for JSON are escaped.
    """
    return json.dumps(value, ensure_ascii=False).translate(_LINE_ENDS)
