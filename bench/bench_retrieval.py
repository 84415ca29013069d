"""How often a search for a commit's subject finds the files that the commit changed.

    python -m bench.bench_retrieval REPOSITORY.git… [--limit 300] [--pull-requests] [--no-history] [--only ours …]
        [--json FILE]

A repository is a git directory with its history (bench/commit_questions.py defines the questions). Each question is
asked of the state before its commit, with an index updated file by file. It compares

    ours      the joined ranking, the pipeline `ranked`
    document  the document's tiers as the pipeline `document` runs them, common files left out
    bm25      chunks of the same index that have any word of the question, by SQLite's bm25(), best chunk of a file;
              words common to all questions are left out
    fts       the document's keyword tier, which requires every word, and its fallbacks
    ripgrep   files by how many different words of the question they contain, then by how often

Printed for each: file in the top 10 and in the top 5 (one of the changed files is among them) with the 95 % interval,
mean reciprocal rank, share of the changed files in the top 10, and the share of the changed functions within the first
4,000 and 20,000 tokens (characters / 4, whole places, those that do not fit are skipped). Repositories that the weights
were fitted on are marked with a star. bench/bench_vectors.py measures the effect of vectors.
"""

from __future__ import annotations

import argparse
import json
import math
import sys
import tempfile
import time
from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "python"))

import msgspec

from bench.changed_code import changed_functions, plain_bm25, share_shown, within
from bench.commit_questions import GitDirectory, pull_requests_of, questions_of
from bench.indexed_history import IndexedHistory
from codecompanion import settings
from codecompanion.model.found_code import FoundCode
from codecompanion.retrieval.gather_pipeline import load_pipeline
from codecompanion.retrieval.ranking.question import read_question
from codecompanion.retrieval.search.term_counting import counted_terms
from codecompanion.session.code import searcher
from codecompanion.session.code.search_options import SearchOptions, search_options

FITTED_ON = frozenset(
    {"encode+httpx", "stevearc+oil.nvim", "folke+lazy.nvim", "gin-gonic+gin", "pytest-dev+pytest", "cli+cli"}
)
BUDGETS = (4_000, 20_000)
RATIOS = ("top10", "top5", "mrr", "files", "functions_4000", "functions_20000")
PER_FILE = 20
"""Maximum places of one file within the first tokens."""

Found = Sequence[FoundCode]
Search = Callable[[str], Found]


@dataclass(slots=True)
class Figures:
    """Sums over the questions of one repository."""

    questions: int = 0
    ten: int = 0
    five: int = 0
    rank: float = 0.0
    share: float = 0.0
    functions: dict[int, float] = field(default_factory=lambda: defaultdict(float))
    ms: list[float] = field(default_factory=list)

    def add(
        self, paths: Sequence[str], right: frozenset[str], functions: Mapping[int, float], elapsed_ms: float
    ) -> None:
        """Count one question."""
        places = [place for place, path in enumerate(paths) if path in right]
        self.questions += 1
        self.ms.append(elapsed_ms)
        for budget, share in functions.items():
            self.functions[budget] += share
        if places:
            self.ten += places[0] < 10
            self.five += places[0] < 5
            self.rank += 1 / (places[0] + 1)
            self.share += sum(place < 10 for place in places) / len(right)

    def row(self) -> dict[str, float]:
        """Return the means."""
        n = max(self.questions, 1)
        ten = self.ten / n
        ordered = sorted(self.ms) or [0.0]
        return {
            "questions": self.questions,
            "top10": ten,
            "plus_minus": 1.96 * math.sqrt(ten * (1 - ten) / n),
            "top5": self.five / n,
            "mrr": self.rank / n,
            "files": self.share / n,
            **{f"functions_{budget}": self.functions[budget] / n for budget in BUDGETS},
            "p50_ms": ordered[len(ordered) // 2],
            "p95_ms": ordered[int(len(ordered) * 0.95)],
        }


class Searches:
    """The ways of searching one repository."""

    def __init__(self, history: IndexedHistory) -> None:
        self.history = history
        self._ours = searcher.CodeSearcher(history)
        self._lowered: dict[str, str] = {}

    def ways(self) -> dict[str, tuple[Search, Search]]:
        """Return name → (search for one place per file, search for the places that fill a budget)."""
        hybrid = settings.load({}).context.hybrid
        document = msgspec.structs.replace(search_options(load_pipeline("document"), hybrid), with_common=False)
        many = SearchOptions(top_k=50, per_file=PER_FILE, with_common=False)
        return {
            "ours": (lambda text: self._search(text, SearchOptions()), lambda text: self._search(text, many)),
            "document": (lambda text: self._search(text, document), lambda text: self._search(text, document)),
            "bm25": (lambda text: one_of_each(self._bm25(text)), self._bm25),
            "fts": (lambda text: self._search(text, SearchOptions(tier="fts")),) * 2,
            "ripgrep": (self._ripgrep, lambda text: ()),
        }

    def _search(self, text: str, options: SearchOptions) -> Found:
        return self._ours.search(text, options).results

    def _bm25(self, text: str) -> Found:
        return plain_bm25(self.history.reader, self.history.read, read_question(text).words)

    def _ripgrep(self, text: str) -> Found:
        terms = counted_terms(text)
        counts = {path: [self._text(path).count(term) for term in terms] for path in self.history.paths()}
        order = sorted(counts, key=lambda path: (-sum(map(bool, counts[path])), -sum(counts[path]), path))
        return [FoundCode(path, 1, 1, 0, "terms") for path in order if any(counts[path])]

    def _text(self, path: str) -> str:
        blob = self.history.blob_of(path)
        if blob not in self._lowered:
            self._lowered[blob] = (self.history.read(path) or "").lower()
        return self._lowered[blob]


def one_of_each(found: Found) -> Found:
    """Return the first place of each file."""
    first: dict[str, FoundCode] = {}
    for place in found:
        first.setdefault(place.path, place)
    return list(first.values())


def measure(
    path: Path, limit: int, *, pull_requests: bool, with_history: bool, only: Sequence[str]
) -> dict[str, dict[str, float]]:
    """Return way → figures of one repository."""
    git = GitDirectory(path)
    figures: dict[str, Figures] = defaultdict(Figures)
    with tempfile.TemporaryDirectory() as folder:
        history = IndexedHistory(git, Path(folder), with_history=with_history)
        searches = Searches(history)
        for question in (pull_requests_of if pull_requests else questions_of)(git, limit):
            history.move_to(question.parent)
            right = frozenset(question.changed) & frozenset(history.paths())
            if not right:
                continue
            functions = changed_functions(history.read, question)
            for name, (files, places) in searches.ways().items():
                if only and name not in only:
                    continue
                started = time.perf_counter()
                paths = [place.path for place in files(question.text)][:10]
                elapsed_ms = (time.perf_counter() - started) * 1000
                filling = places(question.text)
                shares = {budget: share_shown(within(filling, budget), functions) for budget in BUDGETS}
                figures[name].add(paths, right, shares, elapsed_ms)
        history.close()
    return {name: one.row() for name, one in figures.items()}


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("repositories", nargs="+", type=Path)
    parser.add_argument("--limit", type=int, default=300, help="questions of each repository, the last ones")
    parser.add_argument("--pull-requests", action="store_true", help="ask titles of merged pull requests instead")
    parser.add_argument("--no-history", action="store_true", help="as in a folder without git")
    parser.add_argument("--only", nargs="*", default=(), help="these ways alone")
    parser.add_argument("--json", type=Path, help="write the figures there, too")
    arguments = parser.parse_args()
    searcher.HISTORY_CHECKED_EVERY_S = -1.0  # the state changes with each question
    every = {}
    for path in arguments.repositories:
        name = path.parent.name if path.name == "repo" else path.name
        every[name] = measure(
            path,
            arguments.limit,
            pull_requests=arguments.pull_requests,
            with_history=not arguments.no_history,
            only=arguments.only,
        )
        star = "*" if name in FITTED_ON else ""
        for way, row in every[name].items():
            print(
                f"{name + star:28} {way:9} n {row['questions']:3.0f}  top10 {row['top10']:.3f} ±{row['plus_minus']:.3f}"
                f"  top5 {row['top5']:.3f}  mrr {row['mrr']:.3f}  files {row['files']:.3f}"
                f"  functions 4k {row['functions_4000']:.3f} 20k {row['functions_20000']:.3f}"
                f"  ms {row['p50_ms']:.0f}/{row['p95_ms']:.0f}",
                flush=True,
            )
        if {"ours", "document"} <= every[name].keys():
            ours, document = every[name]["ours"], every[name]["document"]
            ratios = (f"{key} {ours[key] / document[key]:.2f}" for key in RATIOS if document[key])
            print(f"{name + star:28} ours : document  {'  '.join(ratios)}", flush=True)
    if arguments.json:
        arguments.json.write_text(json.dumps(every, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
