"""Data types for the evidence about a question from the index, the history and the editor: the input of the ranking."""

from __future__ import annotations

from collections.abc import Mapping

import msgspec

from codecompanion.retrieval.ranking.edited_lines import EditedRun
from codecompanion.retrieval.ranking.question import Question


class ChunkHit(msgspec.Struct, frozen=True):
    """A chunk found by full-text or vector search. `bm25`: higher is better, 0 = contains no word of the question.

    `cosine`: None if the chunk has no vector or none was requested.
    """

    chunk: int
    path: str
    start: int
    end: int
    symbol: str = ""
    kind: str = "block"
    bm25: float = 0.0
    cosine: float | None = None


class DefinitionHit(msgspec.Struct, frozen=True):
    """A definition whose name appears in the question.

    `asked`: the name as in the question; `name`: the name as in the code. `files`: how many files define this name.
    """

    path: str
    name: str
    start: int
    end: int
    asked: str
    files: int = 1


def is_named(question: Question, hit: DefinitionHit) -> bool:
    """Return whether the question names the definition explicitly: written as code, or capitalised as in the code."""
    if hit.asked in question.code_names:
        return True
    return hit.asked == hit.name and hit.asked[:1].isupper() and not question.text.lstrip().startswith(hit.asked + " ")


class Evidence(msgspec.Struct, frozen=True, kw_only=True):
    """All evidence about one question; missing entries do not count.

    `paths`: path → BM25 of the words in the path; `prefixes`: path → score of abbreviated words; `subjects`: path →
    BM25 of the subjects of commits that changed the file; `commits`: path → score from the commits most similar to the
    question; `recency`: path → 0..1, 1 = changed last; `edits`: path → lines that recent commits changed; `edges`: path
    → path of a file whose names it uses → strength; `in_play`: files that are open, mentioned or just edited; `seeds`:
    the result of `find_seeds`, None = compute when needed.
    """

    chunks: tuple[ChunkHit, ...] = ()
    definitions: tuple[DefinitionHit, ...] = ()
    paths: Mapping[str, float] = msgspec.field(default_factory=dict)
    prefixes: Mapping[str, float] = msgspec.field(default_factory=dict)
    subjects: Mapping[str, float] = msgspec.field(default_factory=dict)
    commits: Mapping[str, float] = msgspec.field(default_factory=dict)
    recency: Mapping[str, float] = msgspec.field(default_factory=dict)
    edits: Mapping[str, tuple[EditedRun, ...]] = msgspec.field(default_factory=dict)
    edges: Mapping[str, Mapping[str, float]] = msgspec.field(default_factory=dict)
    in_play: tuple[str, ...] = ()
    seeds: Mapping[str, float] | None = None

    @property
    def is_about_it(self) -> bool:
        """Return whether anything matches the question; a recent change by itself does not count."""
        return bool(self.chunks or self.definitions or self.paths or self.subjects or self.in_play)
