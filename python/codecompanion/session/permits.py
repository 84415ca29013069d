"""What the user answered about files that are used only once they agree: rules from outside (R-549), prompts, servers.

An answer holds for a path and its content: once the file says something else, or the link leads elsewhere, it is asked
again. Only what the user asked for is allowed; what was only said to be there is not said twice.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Literal

import msgspec

from codecompanion.formats.outside_text import NOT_READABLE

KEPT = 200
"""So many answers are kept for a project; the oldest go first."""

Answered = Literal["allowed", "refused", "unasked"]


class _Answer(msgspec.Struct, frozen=True):
    path: str
    sha256: str
    allowed: bool


class Permits(msgspec.Struct, frozen=True):
    """The answers for one project, oldest first. A file is `(path, sha256)` of what it says."""

    answers: tuple[_Answer, ...] = ()

    def state_of(self, path: str, sha256: str) -> Answered:
        """Return what the user said of this file with this content."""
        for answer in self.answers:
            if (answer.path, answer.sha256) == (path, sha256):
                return "allowed" if answer.allowed else "refused"
        return "unasked"

    def with_answer(self, files: Iterable[tuple[str, str]], *, allowed: bool) -> Permits:
        """Return the permits with the answer about these files; earlier ones about the same paths are replaced."""
        fresh = tuple(_Answer(path, sha256, allowed) for path, sha256 in files)
        return Permits((*self.without(answer.path for answer in fresh).answers, *fresh)[-KEPT:])

    def without(self, paths: Iterable[str]) -> Permits:
        """Return the permits without what was answered about these paths: it is asked again."""
        gone = frozenset(paths)
        return Permits(tuple(one for one in self.answers if one.path not in gone))

    def as_text(self) -> str:
        """Return what is stored."""
        return msgspec.json.encode(self).decode()


def read_permits(text: str) -> Permits:
    """Return the stored permits; none when they cannot be read: to ask again is safe."""
    try:
        return msgspec.json.decode(text, type=Permits) if text else Permits()
    except NOT_READABLE:
        return Permits()
