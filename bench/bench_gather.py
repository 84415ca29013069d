"""How much of a commit's changed code each pipeline would send when the commit's subject is the question.

    python -m bench.bench_gather [--limit 60] [--pull-requests] [--only WAY]… [GIT_DIRECTORY…]

For each question (bench/commit_questions.py) the state before the commit is checked out and indexed, then each pipeline
gathers as in a chat, from classification to the text, in each budget:

    ranked            ours, the default
    document          the document's with our additions
    document strict   the document's
    bm25              chunks of the same index that have any word of the question, by SQLite's bm25(), while they fit;
                      all words of the question count

Printed for each: how often a changed file is among the first ten files found, and in the selection; the share of
changed functions with at least half of their lines in the selection, with the 95 % interval of the difference from
bm25; tokens of the text (bm25: of the code); milliseconds with a warm index, p50 and p95. The default GIT_DIRECTORY is
this repository's.
"""

from __future__ import annotations

import argparse
import asyncio
import math
import tempfile
import time
from collections import defaultdict
from collections.abc import Sequence
from pathlib import Path
from statistics import mean

import msgspec

from bench.changed_code import Function, changed_functions, plain_bm25, share_shown, within
from bench.commit_questions import CommitQuestion, GitDirectory, pull_requests_of, questions_of
from bench.moving_checkout import CheckedOut
from codecompanion.formats.code_words import index_words
from codecompanion.model.gathered import chars_to_tokens
from codecompanion.retrieval.gather_pipeline import DOCUMENT, STRICT, PipelineName
from codecompanion.session.code.search_code import search_code
from codecompanion.session.gather.ask import Ask

REPO = Path(__file__).resolve().parents[1]
PIPELINES: tuple[PipelineName, ...] = ("ranked", DOCUMENT, STRICT)
BM25 = "bm25"
WAYS = (*PIPELINES, BM25)
BUDGETS = (1_500, 4_000)
Key = tuple[str, int]


class Answer(msgspec.Struct, frozen=True):
    """The result of one way of searching for one question; `functions` is a share from 0 to 1."""

    in_ten: bool
    in_selection: bool
    functions: float
    tokens: int
    ms: float


class Asked:
    """One question about one state of a project."""

    def __init__(self, project: CheckedOut, question: CommitQuestion, functions: Sequence[Function]) -> None:
        self._project, self._question, self._functions = project, question, functions

    async def of(self, way: str, budget: int) -> Answer:
        """Answer in one way."""
        return self._bm25(budget) if way == BM25 else await self._pipeline(way, budget)  # type: ignore[arg-type]

    async def _pipeline(self, name: PipelineName, budget: int) -> Answer:
        root = self._project.root
        ask = Ask(question=self._question.text, root=root, pipeline=name, budget=budget, always=True)
        gathered = await self._project.gather(ask)
        chosen = gathered.selection.snippets
        candidates = sorted((*chosen, *(one.snippet for one in gathered.selection.dropped)), key=lambda one: -one.score)
        files = list(dict.fromkeys(one.path for one in candidates))
        tokens = chars_to_tokens(len(gathered.text))
        return self._answer(
            files, {one.path for one in chosen}, share_shown(chosen, self._functions), tokens, gathered.ms
        )

    def _bm25(self, budget: int) -> Answer:
        begun = time.perf_counter()
        words = index_words(self._question.text)
        found = plain_bm25(self._project.index.reader, self._project.read, words)
        chosen = within(found, budget)
        ms = (time.perf_counter() - begun) * 1000
        files, tokens = list(dict.fromkeys(one.path for one in found)), sum(-(-len(one.text) // 4) for one in chosen)
        return self._answer(files, {one.path for one in chosen}, share_shown(chosen, self._functions), tokens, ms)

    def _answer(self, files: list[str], chosen: set[str], functions: float, tokens: int, ms: float) -> Answer:
        right = self._question.changed.keys()
        return Answer(not right.isdisjoint(files[:10]), not right.isdisjoint(chosen), functions, tokens, ms)


async def measure(path: Path, limit: int, ways: Sequence[str], *, pull_requests: bool) -> dict[Key, list[Answer]]:
    """Return (way, budget) → the answer to each question of a repository."""
    git, answers = GitDirectory(path), defaultdict[Key, list[Answer]](list)
    with tempfile.TemporaryDirectory() as folder:
        project = CheckedOut(git, Path(folder))
        for question in (pull_requests_of if pull_requests else questions_of)(git, limit):
            await project.move_to(question.parent)
            functions = changed_functions(project.read, question)
            if not functions:
                continue
            asked = Asked(project, question, functions)
            await search_code(project.index, question.text)  # in a chat, the searcher's caches for a project are warm
            for budget in BUDGETS:
                for way in ways:
                    answers[way, budget].append(await asked.of(way, budget))
            await project.index.close()
    git.close()
    return answers


def row(answers: Sequence[Answer], plain: Sequence[Answer]) -> str:
    """Return the cells of a row of the table; `plain`: bm25's results for the same questions."""
    ms = sorted(one.ms for one in answers)
    differences = [one.functions - other.functions for one, other in zip(answers, plain, strict=False)]
    cells = [f"{mean(one.in_ten for one in answers):.2f}", f"{mean(one.in_selection for one in answers):.2f}"]
    cells += [f"{mean(one.functions for one in answers):.3f}", _interval(differences) if plain is not answers else ""]
    cells += [f"{mean(one.tokens for one in answers):,.0f}", f"{ms[len(ms) // 2]:.0f} / {ms[int(len(ms) * 0.95)]:.0f}"]
    return " | ".join(cells)


def _interval(differences: Sequence[float]) -> str:
    if not differences:
        return ""
    middle = mean(differences)
    spread = mean((one - middle) ** 2 for one in differences)
    return f"{middle:+.3f} ± {1.96 * math.sqrt(spread / len(differences)):.3f}"


def main() -> None:
    """Print a table in Markdown for each repository and budget."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--limit", type=int, default=60, help="questions of each repository, the last ones")
    parser.add_argument("--pull-requests", action="store_true", help="ask titles of merged pull requests instead")
    parser.add_argument("--only", action="append", choices=WAYS, help="this way alone, and others named so")
    parser.add_argument("repositories", nargs="*", type=Path, default=[REPO / ".git"], metavar="GIT_DIRECTORY")
    given = parser.parse_args()
    print("| repository | budget | | first ten | file | functions | − bm25 | tokens | ms p50 / p95 |")
    print("|---|---|---|---|---|---|---|---|---|")
    for path in given.repositories:
        ways = given.only or WAYS
        answers = asyncio.run(measure(path, given.limit, ways, pull_requests=given.pull_requests))
        for (way, budget), of in answers.items():
            name = f"{path.parent.name.replace('+', '/')} ({len(of)})"
            print(f"| {name} | {budget:,} | {way} | {row(of, answers.get((BM25, budget), ()))} |", flush=True)


if __name__ == "__main__":
    main()
