"""Where in a ranked file the answer stands: its chunks, best first; a definition that was named comes first."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence

import msgspec

from codecompanion.retrieval.ranking.evidence import ChunkHit, DefinitionHit
from codecompanion.retrieval.ranking.join import RankedFile, scaled
from codecompanion.retrieval.ranking.question import Question

_DEFINED = 0.5
_DEFINED_AND_CODE = 1.0
_COSINE = 0.5


class Place(msgspec.Struct, frozen=True):
    """Lines of a file and what they are worth, 0..1 within the file's own score."""

    path: str
    start: int
    end: int
    score: float
    symbol: str = ""
    kind: str = "block"


def best_places(
    question: Question,
    files: Sequence[RankedFile],
    chunks: Iterable[ChunkHit],
    definitions: Iterable[DefinitionHit],
    per_file: int,
) -> tuple[Place, ...]:
    """Return at most `per_file` places of each file, in the order of their scores; a file of no chunk has none.

    A place's score is the file's, less for places after the first in proportion to what their words are worth.
    """
    named = _named(question, definitions)
    of_file: dict[str, list[ChunkHit]] = defaultdict(list)
    wanted = {ranked.path for ranked in files}
    for hit in chunks:
        if hit.path in wanted:
            of_file[hit.path].append(hit)
    found = list[Place]()
    for ranked in files:
        hits = of_file.get(ranked.path, [])
        worth = _worth(hits, named.get(ranked.path, ()))
        order = sorted(hits, key=lambda hit: (-worth[hit.chunk], hit.start))[:per_file]
        highest = max((worth[hit.chunk] for hit in order), default=0.0) or 1.0
        found += [
            Place(hit.path, hit.start, hit.end, ranked.score * worth[hit.chunk] / highest, hit.symbol, hit.kind)
            for hit in order
        ]
    return tuple(sorted(found, key=lambda place: -place.score)) if per_file > 1 else tuple(found)


def _worth(hits: Sequence[ChunkHit], named: Iterable[tuple[int, int, float]]) -> dict[int, float]:
    words = scaled({str(hit.chunk): hit.bm25 for hit in hits})
    cosines = [hit.cosine for hit in hits if hit.cosine is not None]
    low, high = min(cosines, default=0.0), max(cosines, default=0.0)
    worth = {hit.chunk: words.get(str(hit.chunk), 0.0) for hit in hits}
    for hit in hits:
        if hit.cosine is not None:
            worth[hit.chunk] += _COSINE * ((hit.cosine - low) / (high - low) if high > low else 1.0)
        worth[hit.chunk] += sum(value for start, end, value in named if hit.start <= start <= hit.end)
    return worth


def _named(question: Question, definitions: Iterable[DefinitionHit]) -> dict[str, list[tuple[int, int, float]]]:
    found: dict[str, list[tuple[int, int, float]]] = defaultdict(list)
    for hit in definitions:
        value = _DEFINED_AND_CODE if hit.asked in question.code_names else _DEFINED
        found[hit.path].append((hit.start, hit.end, value / max(hit.files, 1) ** 0.5))
    return found
