"""How much of what a commit changed stands in the code gathered for its subject (issue 11, section 2).

For each question (`bench/commit_questions.py`) the state before the commit is indexed, and what the search finds is
composed as for a chat: alone, and joined with the elements the AST search finds in the same files. A function counts
when half of its lines and more are shown. Prints, for each repository and both budgets, the share of the changed
functions, and the CPU time of parsing and composing.

    python -m bench.bench_gather [--limit N] GIT_DIRECTORY…
"""

from __future__ import annotations

import argparse
import tempfile
import time
from collections import defaultdict
from collections.abc import Sequence
from pathlib import Path

from bench.commit_questions import CommitQuestion, GitDirectory, questions_of
from bench.indexed_history import IndexedHistory
from codecompanion.model.code import ParsedFile
from codecompanion.model.gathered import QuestionTypes, Snippet
from codecompanion.retrieval.compose import compose, joined
from codecompanion.retrieval.gather_pipeline import SearchDefinitions, SearchRanked, load_pipeline
from codecompanion.retrieval.search_terms import simple_terms
from codecompanion.retrieval.worth_showing import demote_repeats
from codecompanion.session.code.search_options import SearchOptions
from codecompanion.session.code.searcher import CodeSearcher
from codecompanion.session.gather.gatherers import beside_search, found_snippet, search_definitions
from codecompanion.workspace.syntax.languages import language_of
from codecompanion.workspace.syntax.parse import parse

RANKED = load_pipeline("ranked").stage(SearchRanked)
WEIGHT = load_pipeline("ranked").stage(SearchDefinitions).weight
BUDGETS = (4_000, 20_000)
Function = tuple[str, int, int]


class CommitCode:
    """The files of a commit as the AST search reads them."""

    def __init__(self, history: IndexedHistory) -> None:
        self._history = history
        self._parsed = dict[str, ParsedFile]()

    def read(self, path: str) -> str | None:
        """Return the text of a file."""
        return self._history.read(path)

    def parse(self, path: str) -> ParsedFile:
        """Return what is defined in a file."""
        if path not in self._parsed:
            text = self.read(path) or ""
            self._parsed[path] = parse(text, language_of(path, text[:8192].encode("utf-8", "replace")))
        return self._parsed[path]


def changed_functions(code: CommitCode, question: CommitQuestion) -> list[Function]:
    """Return path and lines of the definitions that were changed; of the changed lines where there is none around."""
    found = dict[Function, None]()
    for path, ranges in question.changed.items():
        for start, end in ranges if code.read(path) is not None else ():
            around = [
                one for one in code.parse(path).definitions if one.start <= start <= one.end and one.kind != "variable"
            ]
            best = min(around, key=lambda one: one.end - one.start, default=None)
            found[(path, best.start, best.end) if best else (path, start, end)] = None
    return list(found)


def share_shown(snippets: Sequence[Snippet], functions: Sequence[Function]) -> float:
    """Return the share of the functions of which half and more is shown."""
    lines = defaultdict[str, set[int]](set)
    for one in snippets:
        lines[one.path].update(range(one.start, one.end + 1))
    there = (len(lines[path] & set(range(start, end + 1))) * 2 >= end - start + 1 for path, start, end in functions)
    return sum(there) / len(functions)


def measure(path: Path, limit: int) -> dict[tuple[str, int], list[float]]:
    """Return (way, budget) → share for each question, and ("cpu ms", budget) → CPU time."""
    figures = defaultdict[tuple[str, int], list[float]](list)
    git = GitDirectory(path)
    with tempfile.TemporaryDirectory() as folder:
        history = IndexedHistory(git, Path(folder))
        searcher = CodeSearcher(history)
        options = SearchOptions(top_k=RANKED.max_files, per_file=RANKED.per_file, with_common=False)
        for question in questions_of(git, limit):
            history.move_to(question.parent)
            functions = changed_functions(CommitCode(history), question)
            if not functions:
                continue
            results = [found_snippet(one) for one in searcher.search(question.text, options).results]
            begun, code = time.process_time(), CommitCode(history)
            paths = tuple(dict.fromkeys(one.path for one in results))
            terms = simple_terms(question.text)
            elements = search_definitions(code, terms, paths, lambda: None)  # type: ignore[arg-type]
            ways = {
                "search": results,
                "gather": demote_repeats(joined(results, beside_search(elements, WEIGHT))),
            }
            for budget in BUDGETS:
                for name, found in ways.items():
                    chosen = compose(QuestionTypes(), found, (), lambda path: (), budget, terms=terms).selection
                    figures[name, budget].append(share_shown(chosen.snippets, functions))
            figures["cpu ms", 0].append((time.process_time() - begun) * 1000 / len(BUDGETS) / len(ways))
        history.close()
    return figures


def main() -> None:
    """Print a line for each repository."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--limit", type=int, default=60, help="questions of each repository")
    parser.add_argument("folders", nargs="+", type=Path, metavar="GIT_DIRECTORY")
    given = parser.parse_args()
    for folder in given.folders:
        figures = measure(folder, given.limit)
        shown = (f"{name} {budget:,} {sum(of) / len(of):.3f}" for (name, budget), of in sorted(figures.items()) if of)
        print(f"{folder.parent.name}: {len(figures['search', BUDGETS[0]])} questions  {'  '.join(shown)}", flush=True)


if __name__ == "__main__":
    main()
