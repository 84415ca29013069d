"""Computes the joined ranking: the weighted sum of each file's signals (each 0..1), with fitted weights.

A signal without a value for any file is left out, so an index without vectors, a folder without git or a file without a
grammar only loses the contribution of that signal.
"""

from __future__ import annotations

import heapq
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence

import msgspec

from codecompanion.retrieval.ranking.evidence import ChunkHit, DefinitionHit, Evidence, is_named
from codecompanion.retrieval.ranking.file_kinds import kind_of
from codecompanion.retrieval.ranking.page_rank import reversed_edges, spread
from codecompanion.retrieval.ranking.question import Question
from codecompanion.retrieval.ranking.tables import ChunkOptions, Ranking

MAX_SEEDS = 15
_OTHER_SPELLING = 0.7
_DOCUMENTS_ASKED_FOR = 0.5
_JUST_CHANGED = 0.7
"""Minimum recency at which files become candidates even without matching words: work tends to continue in the same
place.
"""


class RankedFile(msgspec.Struct, frozen=True):
    """A file, its joined score 0..1, and the contribution of each signal."""

    path: str
    score: float
    signals: tuple[tuple[str, float], ...] = ()


def find_seeds(question: Question, evidence: Evidence, ranking: Ranking) -> dict[str, float]:
    """Return path → weight for the files that best match a question, as seeds for PageRank."""
    text = _weighed(_word_signals(question, evidence, ranking), ranking)
    for path in evidence.in_play:
        text[path] = text.get(path, 0.0) + ranking.weights.in_play
    best = heapq.nsmallest(MAX_SEEDS, text, key=lambda path: (-text[path], path))
    return {path: text[path] ** 2 for path in best if text[path] > 0}


def rank_files(
    question: Question, evidence: Evidence, ranking: Ranking, most: int | None = None
) -> tuple[RankedFile, ...]:
    """Return the `most` best files with any signal, best first; None = all of them."""
    weights = msgspec.structs.asdict(ranking.weights)
    signals = {name: values for name, values in file_signals(question, evidence, ranking).items() if values}
    scores: dict[str, float] = {}
    for name, values in signals.items():
        if weight := weights[name]:
            for path, value in values.items():
                if value:
                    scores[path] = scores.get(path, 0.0) + value * weight
    best_possible = sum(weights[name] for name in signals if weights[name] > 0) or 1.0
    best = heapq.nsmallest(len(scores) if most is None else most, scores, key=lambda path: (-scores[path], path))
    return tuple(
        RankedFile(path, min(max(scores[path] / best_possible, 0.0), 1.0), _added(path, signals, weights))
        for path in best
    )


def _added(
    path: str, signals: Mapping[str, Mapping[str, float]], weights: Mapping[str, float]
) -> tuple[tuple[str, float], ...]:
    """Return the contribution of each signal to a file, by name."""
    added = ((name, values.get(path, 0.0) * weights[name]) for name, values in signals.items())
    return tuple(sorted((name, value) for name, value in added if value))


def file_signals(question: Question, evidence: Evidence, ranking: Ranking) -> dict[str, dict[str, float]]:
    """Return signal → path → 0..1 for every file with any signal; also the input of the fit."""
    signals = _word_signals(question, evidence, ranking)
    seeds = find_seeds(question, evidence, ranking) if evidence.seeds is None else evidence.seeds
    signals["prefix"] = scaled(evidence.prefixes)
    signals["uses"] = scaled(spread(seeds, reversed_edges(evidence.edges)))
    signals["used_by"] = scaled(spread(seeds, evidence.edges))
    signals["subject"] = scaled(evidence.subjects)
    signals["commits"] = scaled(evidence.commits)
    signals["vector"] = _vector_signal(evidence.chunks)
    signals["in_play"] = dict.fromkeys(evidence.in_play, 1.0)
    candidates = {path for values in signals.values() for path, value in values.items() if value > 0}
    candidates.update(path for path, recency in evidence.recency.items() if recency >= _JUST_CHANGED)
    signals["recency"] = {path: evidence.recency[path] for path in candidates if path in evidence.recency}
    share = _DOCUMENTS_ASKED_FOR if question.is_about_documents else 1.0
    kinds = {path: kind_of(path) for path in candidates}
    signals["document"] = {path: share for path, kind in kinds.items() if kind.is_document}
    signals["example"] = {path: 1.0 for path, kind in kinds.items() if kind.is_example}
    name = "asked_test" if question.is_about_tests else "test"
    signals[name] = {path: 1.0 for path, kind in kinds.items() if kind.is_test}
    return signals


def scaled(values: Mapping[str, float]) -> dict[str, float]:
    """Return the positive values, scaled so that the largest is 1."""
    highest = max(values.values(), default=0.0)
    return {key: value / highest for key, value in values.items() if value > 0} if highest > 0 else {}


def _word_signals(question: Question, evidence: Evidence, ranking: Ranking) -> dict[str, dict[str, float]]:
    return {
        "chunk": scaled(_best_chunks(evidence.chunks, ranking.chunk)),
        "path": scaled(evidence.paths),
        "mention": _mentions(question, evidence),
        "named": _symbols(hit for hit in evidence.definitions if is_named(question, hit)),
        "symbol": _symbols(hit for hit in evidence.definitions if not is_named(question, hit)),
    }


def _weighed(signals: Mapping[str, Mapping[str, float]], ranking: Ranking) -> dict[str, float]:
    weights = msgspec.structs.asdict(ranking.weights)
    total = defaultdict[str, float](float)
    for name, values in signals.items():
        for path, value in values.items():
            total[path] += weights[name] * value
    for path in total:
        if kind_of(path).is_document:
            total[path] += weights["document"]
    return dict(total)


def _best_chunks(chunks: Sequence[ChunkHit], options: ChunkOptions) -> dict[str, float]:
    """Return, for each file, the sum of the scores of its best chunks, weighted towards the best.

    A chunk found by both words and vectors counts more than two chunks of a file that were each found by only one of
    them.
    """
    most = max((hit.bm25 for hit in chunks), default=0.0) or 1.0
    nearness = nearness_of(chunks)
    by_file: dict[str, list[float]] = defaultdict(list)
    for hit in chunks:
        score = max(hit.bm25, 0.0) / most + options.cosine * nearness.get(hit.chunk, 0.0)
        if score > 0:
            by_file[hit.path].append(score)
    return {
        path: sum(share * score for share, score in zip(options.shares, sorted(scores, reverse=True), strict=False))
        for path, scores in by_file.items()
    }


def nearness_of(chunks: Iterable[ChunkHit]) -> dict[int, float]:
    """Return chunk → its cosine, scaled from the lowest found (0) to the highest (1).

    Chunks without a cosine are omitted.
    """
    cosines = {hit.chunk: hit.cosine for hit in chunks if hit.cosine is not None}
    low, high = min(cosines.values(), default=0.0), max(cosines.values(), default=0.0)
    return {chunk: (value - low) / (high - low) if high > low else 1.0 for chunk, value in cosines.items()}


def _mentions(question: Question, evidence: Evidence) -> dict[str, float]:
    """Return path → score of the files that the question names: with extension or folder, or by the bare name."""
    names = {name.lower() for name in question.names if len(name) > 3}
    ends = tuple(f"/{part}" for part in question.paths)
    found: dict[str, float] = {}
    for path in evidence.paths:
        lowered = f"/{path.lower()}"
        stem = lowered[lowered.rindex("/") + 1 :].partition(".")[0]
        if lowered.endswith(ends):
            found[path] = 1.0
        elif stem in names or stem.strip("_") in names:
            found[path] = 0.8
    return found


def _symbols(hits: Iterable[DefinitionHit]) -> dict[str, float]:
    """Return for each file the score of the names it defines; a name that many files define scores less."""
    best: dict[tuple[str, str], float] = {}
    for hit in hits:
        value = (1.0 if hit.name == hit.asked else _OTHER_SPELLING) / max(hit.files, 1) ** 0.5
        best[hit.path, hit.asked] = max(best.get((hit.path, hit.asked), 0.0), value)
    total = defaultdict[str, float](float)
    for (path, _), value in best.items():
        total[path] += value
    return {path: min(value, 1.0) for path, value in total.items()}


def _vector_signal(chunks: Sequence[ChunkHit]) -> dict[str, float]:
    """Return the similarity of each file's nearest chunk, 0..1."""
    best: dict[str, float] = {}
    nearness = nearness_of(chunks)
    for hit in chunks:
        if hit.chunk in nearness:
            best[hit.path] = max(best.get(hit.path, 0.0), nearness[hit.chunk])
    return best
