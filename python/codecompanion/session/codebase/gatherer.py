"""What a chat asks for when it wants the code a question is about, and who answers (R-201).

A thin door: who gathers knows no chat, and the chat knows nothing of how it is done.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Literal, Protocol

import msgspec

from codecompanion.model.chosen_code import ChosenPiece
from codecompanion.model.gathered import Gathered, NamedLines
from codecompanion.model.messages import Message


class Question(msgspec.Struct, frozen=True, kw_only=True):
    """A question, and what is known when it is asked.

    `root`: the project. `files`: what the user named with `@`, as written (R-213), of those with `lines` only these
    are meant; `active`: the file they work in, "" = none (R-214), `cursor`: its line there. `max_tokens`: the most the
    code may take (R-245), whatever the budget of `model` is; named files may take all of it. `is_asked`: the user asked
    for code, so nobody decides whether the question is about any. `only_files`: `root` is no project, and nothing but
    the named files is read. `unsaved`: the texts of changed buffers, by absolute path. `left_out` and `pinned`: pieces
    that must not or must be in the result. `seen`: messages of gathered code that the model sees as they are: what
    stands there is not sent again. `pipeline`: what finds and chooses the code, "" = as configured.
    """

    text: str
    root: Path
    files: tuple[str, ...] = ()
    lines: tuple[NamedLines, ...] = ()
    active: str = ""
    cursor: int = 0
    adapter: str = ""
    model: str = ""
    max_tokens: int = 0
    is_asked: bool = False
    only_files: bool = False
    unsaved: Mapping[str, str] = {}
    left_out: tuple[ChosenPiece, ...] = ()
    pinned: tuple[ChosenPiece, ...] = ()
    seen: tuple[Message, ...] = ()
    with_memories: bool = True
    pipeline: Literal["", "ranked", "document", "document strict"] = ""


class Gatherer(Protocol):
    """Who gathers code."""

    async def gather(self, question: Question, tell: Callable[[str], None]) -> Gathered:
        """Return what was found; cancelled, it leaves nothing running. `tell` says in a few words what takes long.

        A failure of a part is told in the result (R-202, R-203).
        """
