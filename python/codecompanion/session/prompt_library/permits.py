"""What the user answered about the files of a project: by path and content. Whoever changed the file asks again."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Literal

import msgspec

from codecompanion.formats.outside_text import NOT_READABLE

KEPT = 200
"""So many answers are kept for a project; the oldest go first."""


class _Answer(msgspec.Struct, frozen=True):
    path: str
    sha256: str
    allowed: bool


class Permits(msgspec.Struct, frozen=True):
    """The answers for one project, oldest first."""

    answers: tuple[_Answer, ...] = ()

    def state_of(self, path: str, sha256: str) -> Literal["allowed", "refused", "unasked"]:
        """Return what the user said of this file with this content."""
        for answer in self.answers:
            if (answer.path, answer.sha256) == (path, sha256):
                return "allowed" if answer.allowed else "refused"
        return "unasked"

    def with_answer(self, files: Iterable[tuple[str, str]], *, allowed: bool) -> Permits:
        """Return the permits with the answer about these (path, sha256); earlier ones about the paths are replaced."""
        fresh = tuple(_Answer(path, sha256, allowed) for path, sha256 in files)
        paths = {answer.path for answer in fresh}
        return Permits((*(one for one in self.answers if one.path not in paths), *fresh)[-KEPT:])

    def as_text(self) -> str:
        """Return what is stored."""
        return msgspec.json.encode(self).decode()


def read_permits(text: str) -> Permits:
    """Return the stored permits; none when they cannot be read: to ask again is safe."""
    try:
        return msgspec.json.decode(text, type=Permits) if text else Permits()
    except NOT_READABLE:
        return Permits()
