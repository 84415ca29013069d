"""Fits the weights of `retrieval/ranking/weights.toml` on the histories of public repositories.

    python -m bench.fit_ranking REPOSITORY.git… [--limit 300] [--keep FILE] [--columns]

For each question (bench/commit_questions.py) the signals of every file are recorded once; then the weights are changed
one at a time while the mean over the repositories of

    file in the top 10 + 1/2 file in the top 5 + 1/2 reciprocal rank + 1/2 share of the files in the top 10

improves, with a small penalty on every weight. Printed: the weights, and their results on each repository, both when it
was used for fitting and when it was left out (leave one out), which shows how well the weights generalise. `--keep`
stores the signals, so that another fit needs no index. Never use a repository of the tests.
"""

from __future__ import annotations

import argparse
import pickle
import sys
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "python"))

import msgspec

from bench.commit_questions import GitDirectory, questions_of
from bench.indexed_history import IndexedHistory
from codecompanion.retrieval.ranking.join import file_signals
from codecompanion.retrieval.ranking.question import read_question
from codecompanion.retrieval.ranking.tables import Weights, ranking
from codecompanion.session.code import searcher
from codecompanion.session.code.search_options import SearchOptions

FITTED = (
    "path",
    "prefix",
    "mention",
    "named",
    "symbol",
    "used_by",
    "uses",
    "subject",
    "commits",
    "recency",
    "document",
    "example",
    "test",
    "asked_test",
)
MAY_BE_NEGATIVE = frozenset({"document", "example", "test", "asked_test"})
STEPS = (0.4, -0.4, 0.2, -0.2, 0.1, -0.1, 0.05, -0.05)
PRICE = 0.004
TEN, FIVE = 10, 5
ROUNDS = 4

Signals = Mapping[str, Mapping[str, float]]


@dataclass(frozen=True, slots=True)
class Answered:
    """The signals of one question, and the files that were changed."""

    signals: Signals
    right: frozenset[str]


def signals_of(path: Path, limit: int) -> list[Answered]:
    """Return the signals of the last questions of a repository."""
    git, found = GitDirectory(path), list[Answered]()
    with tempfile.TemporaryDirectory() as folder:
        history = IndexedHistory(git, Path(folder))
        search = searcher.CodeSearcher(history)
        for question in questions_of(git, limit):
            history.move_to(question.parent)
            right = frozenset(question.changed) & frozenset(history.paths())
            if right:
                found.append(Answered(_signals(history, search, question.text), right))
        history.close()
    return found


def _signals(history: IndexedHistory, search: searcher.CodeSearcher, text: str) -> Signals:
    question = read_question(text)
    with history.reader.reading() as connection:
        search.words.follow_index(connection)
        evidence = search.evidence(connection, question, SearchOptions(), None)
        return file_signals(question, evidence, search.ranking)


def score(answered: Sequence[Answered], weights: Mapping[str, float]) -> tuple[float, float, float, float]:
    """Return file in the top 10, in the top 5, mean reciprocal rank, share of the files in the top 10."""
    totals = [0.0] * 4
    for one in answered:
        joined: dict[str, float] = {}
        for name, values in one.signals.items():
            weight = weights[name]
            if weight:
                for path, value in values.items():
                    joined[path] = joined.get(path, 0.0) + weight * value
        order = sorted(joined, key=lambda path: (-joined[path], path))
        places = [place for place, path in enumerate(order) if path in one.right]
        if places:
            totals[0] += places[0] < TEN
            totals[1] += places[0] < FIVE
            totals[2] += 1 / (places[0] + 1)
            totals[3] += sum(place < TEN for place in places) / len(one.right)
    ten, five, rank, share = (total / max(len(answered), 1) for total in totals)
    return ten, five, rank, share


def _worth(repositories: Sequence[Sequence[Answered]], weights: Mapping[str, float]) -> float:
    scores = [score(answered, weights) for answered in repositories]
    mean = sum(ten + (five + rank + share) / 2 for ten, five, rank, share in scores) / len(scores)
    return mean - PRICE * sum(abs(weights[name]) for name in FITTED)


def fit(repositories: Sequence[Sequence[Answered]], start: Mapping[str, float]) -> dict[str, float]:
    """Return the weights with the best mean over the repositories, `chunk` fixed at 1."""
    weights = dict(start)
    best = _worth(repositories, weights)
    for _ in range(ROUNDS):
        before = best
        for name in FITTED:
            for step in STEPS:
                value = round(weights[name] + step, 3)
                if value < 0 and name not in MAY_BE_NEGATIVE:
                    value = 0.0
                moved = weights | {name: value}
                if (worth := _worth(repositories, moved)) > best + 1e-5:
                    best, weights = worth, moved
        if best == before:
            break
    return weights


def main() -> None:
    """Fit the weights and print the results."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("repositories", nargs="+", type=Path)
    parser.add_argument("--limit", type=int, default=300, help="questions of each repository, the last ones")
    parser.add_argument("--keep", type=Path, help="read the signals from this file, or write them there")
    arguments = parser.parse_args()
    if arguments.keep and arguments.keep.exists():
        taken = pickle.loads(arguments.keep.read_bytes())  # noqa: S301 - written by ourselves below
    else:
        taken = {str(path): signals_of(path, arguments.limit) for path in arguments.repositories}
        if arguments.keep:
            arguments.keep.write_bytes(pickle.dumps(taken))
    start = msgspec.structs.asdict(ranking().weights)
    for title, weights in (("as they are", start), ("fitted", fit(list(taken.values()), start))):
        print(f"{title}: " + " ".join(f"{name} {weights[name]:g}" for name in Weights.__struct_fields__))
        for name, answered in taken.items():
            print(f"  {name} ({len(answered)}): " + " ".join(f"{value:.3f}" for value in score(answered, weights)))
    print("left out:")
    for name, answered in taken.items():
        others = [questions for other, questions in taken.items() if other != name]
        if others:
            print(f"  {name}: " + " ".join(f"{value:.3f}" for value in score(answered, fit(others, start))))


if __name__ == "__main__":
    main()
