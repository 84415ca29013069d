"""A question, and the facts available when code is gathered for it."""

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

    `files`: the names that the user wrote with `@` (R-213), restricted to `lines` if given; `active`: the file that the
    user is working in, "" = none (R-214). `cursor`: the line in that file, 0 = unknown. `pipeline`: the pipeline that
    finds and selects the code. `budget` is in tokens, None = the budget of `model`; `window` and `max_tokens` limit it,
    0 = no limit. `always`: treat the question as being about the project, however it is classified. `only_files`:
    `root` is not a project, and only the named files are read. `unsaved`: the contents of changed buffers, by absolute
    path. `left_out` and `pinned`: snippets to exclude from the result and to include in it. `seen`: messages with
    gathered code that the model still sees unchanged.
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
    """Whether the user's memories are included (R-240); a chat that began with the memory already contains them."""
