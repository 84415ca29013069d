"""Which files outside of a repository its rules may bring into a chat (R-549), as the user was asked. Pure.

An answer holds for a path and its content: once the file says something else, or the link leads elsewhere, it is asked
again. Only what the user asked for is allowed; what was only said to be there is not said twice.
"""

from __future__ import annotations

from collections.abc import Iterable

import msgspec

from codecompanion.formats.outside_text import NOT_READABLE
from codecompanion.rules.groups import RulesItem

KEPT = 200
"""So many answers are kept for a repository; the oldest go first."""


class _Answer(msgspec.Struct, frozen=True):
    path: str
    sha256: str
    allowed: bool


class Permits(msgspec.Struct, frozen=True):
    """The answers for one repository, oldest first."""

    answers: tuple[_Answer, ...] = ()

    def allows(self, item: RulesItem) -> bool:
        """Return whether the user asked for this file with this content."""
        return _Answer(item.real, item.sha256, True) in self.answers

    def was_asked(self, item: RulesItem) -> bool:
        """Return whether the user was told of this file with this content."""
        return any((one.path, one.sha256) == (item.real, item.sha256) for one in self.answers)

    def with_answer(self, items: Iterable[RulesItem], *, allowed: bool) -> Permits:
        """Return the permits with the answer about these files; earlier ones about the same paths are replaced."""
        fresh = tuple(_Answer(item.real, item.sha256, allowed) for item in items)
        paths = {one.path for one in fresh}
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
