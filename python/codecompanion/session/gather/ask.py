"""A question, and what is known when code is gathered for it."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import msgspec

from codecompanion.model.chosen_code import ChosenPiece
from codecompanion.model.gathered import NamedLines
from codecompanion.model.messages import Message
from codecompanion.retrieval.gather_pipeline import DEFAULT, PipelineName


class Ask(msgspec.Struct, frozen=True, kw_only=True):
    """A question about the project at `root`.

    `files`: what the user named with `@`, as written (R-213), of those with `lines` only these are meant; `active`:
    the file they work in, "" = none (R-214). `cursor`: its line, 0 = not known. `pipeline`: what finds and chooses the
    code. `model` decides the budget unless `budget` (tokens, None = the model's)
    does; `window` and `max_tokens` bound it, 0 = no bound. `always`: nobody decides whether the question is about
    the project. `only_files`: `root` is no project, and nothing but the named files is read. `unsaved`: texts of
    changed buffers by absolute path. `left_out` and `pinned`: pieces that must not be in the result, or must.
    `seen`: messages of gathered code that the model still sees as they are.
    """

    question: str
    root: Path
    files: tuple[str, ...] = ()
    lines: tuple[NamedLines, ...] = ()
    active: str = ""
    cursor: int = 0
    pipeline: PipelineName = DEFAULT
    model: str = ""
    budget: int | None = None
    window: int = 0
    max_tokens: int = 0
    always: bool = False
    only_files: bool = False
    unsaved: Mapping[str, str] = {}
    left_out: tuple[ChosenPiece, ...] = ()
    pinned: tuple[ChosenPiece, ...] = ()
    seen: tuple[Message, ...] = ()
    with_memories: bool = True
    """Whether the user's memories go with the code (R-240); a chat that began with the memory has them."""
