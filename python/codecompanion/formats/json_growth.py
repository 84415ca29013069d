"""Detects when a JSON object that arrives in chunks is complete, at linear total cost for any number of checks.

Each character is read once: brackets outside strings are counted, and the text is parsed once, when the first bracket
closes. Standard library only.
"""

from __future__ import annotations

from collections.abc import Callable
from io import StringIO

from codecompanion.formats.outside_text import DEEPEST_JSON
from codecompanion.formats.regex import regex

_IN_STRING = regex(r'["\\]')
_OUTSIDE = regex(r'["{}\[\]]')
_MAX_CHARS = 1_000_000
"""Maximum length of text that counts as complete; longer arguments are cut (`session/history/limit_tool_calls.py`)."""


class GrowingObject:
    """A JSON document that arrives in chunks. `is_object` checks a text that begins and ends with a bracket."""

    __slots__ = ("_depth", "_in_string", "_is_object", "_length", "_pieces", "_skip", "_state", "_unread")

    def __init__(self, is_object: Callable[[str], bool]) -> None:
        self._is_object = is_object
        self._pieces = StringIO()
        self._unread: list[str] = []
        self._state = "blank"
        self._depth = self._length = 0
        self._in_string = self._skip = False

    def __bool__(self) -> bool:
        return self._length > 0

    def append(self, piece: str) -> None:
        """Append the next chunk."""
        self._pieces.write(piece)
        self._length += len(piece)
        if self._state in ("blank", "open", "whole") and piece:
            self._unread.append(piece)

    @property
    def text(self) -> str:
        """Return the text so far."""
        return self._pieces.getvalue()

    @property
    def is_blank(self) -> bool:
        """Return whether only white space has arrived."""
        self._read()
        return self._state == "blank"

    @property
    def is_whole(self) -> bool:
        """Return whether the text is one complete JSON object."""
        self._read()
        return self._state == "whole"

    def _read(self) -> None:
        unread, self._unread = self._unread, []
        for piece in unread:
            if self._length > _MAX_CHARS:
                self._state = "never"
            match self._state:
                case "blank":
                    start = piece.lstrip()
                    if start:
                        self._state = "open" if start.startswith("{") else "never"
                        self._scan(start)
                case "open":
                    self._scan(piece)
                case "whole" if piece.strip():
                    self._state = "never"

    def _scan(self, piece: str) -> None:
        place, end = 0, len(piece)
        while place < end and self._state == "open":
            if self._skip:
                self._skip, place = False, place + 1
                continue
            found = (_IN_STRING if self._in_string else _OUTSIDE).search(piece, place)
            if found is None:
                return
            place = found.end()
            match found[0]:
                case '"':
                    self._in_string = not self._in_string
                case "\\":
                    self._skip = True
                case "{" | "[":
                    self._depth += 1
                    if self._depth > DEEPEST_JSON:
                        self._state = "never"
                case _:
                    self._depth -= 1
                    if not self._depth:
                        is_end = not piece[place:].strip() and self._is_object(self.text)
                        self._state = "whole" if is_end else "never"
