"""The interface between a chat that needs code for a question and its gatherer (R-201).

The gatherer does not depend on chats, and a chat does not depend on gathering.
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
    """A question, and the facts available when it is asked.

    `root`: the project. `files`: the names that the user wrote with `@` (R-213), restricted to `lines` if given;
    `active`: the file that the user is working in, "" = none (R-214); `cursor`: the line in that file. `max_tokens`:
    the maximum size of the code (R-245), whatever the budget of `model` is; named files may use all of it. `is_asked`:
    the user asked for code, so the question is not classified. `only_files`: `root` is not a project, and only the
    named files are read. `unsaved`: the contents of changed buffers, by absolute path. `left_out` and `pinned`:
    snippets to exclude from the result and to include in it. `seen`: messages with gathered code that the model sees
    unchanged; code in them is not sent again. `pipeline`: the pipeline that finds and selects the code, "" = as
    configured.
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
    """Gathers code for chats."""

    async def gather(self, question: Question, tell: Callable[[str], None]) -> Gathered:
        """Return the gathered code; on cancellation, all work stops. `tell` receives short descriptions of slow steps.

        The result lists the parts that failed (R-202, R-203).
        """
