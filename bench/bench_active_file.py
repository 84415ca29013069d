"""How much of the open file should go along with a question: shares of the budget compared (issue 11, R-214).

As `bench_gather`, with an open file: one that the commit changes, the cursor on its first changed line (`own`), or one
that the commit before changed (`previous`), which is where somebody may still stand. Prints, for each budget and share,
the share of the changed functions that is shown; 0 = without the open file.

    python -m bench.bench_active_file [--limit N] [--shares 0,0.25,0.4] GIT_DIRECTORY…
"""

from __future__ import annotations

import argparse
import tempfile
from collections import defaultdict
from collections.abc import Mapping, Sequence
from pathlib import Path

import msgspec

from bench.bench_gather import WEIGHT, CommitCode, changed_functions, share_shown
from bench.commit_questions import GitDirectory, questions_of
from bench.indexed_history import IndexedHistory
from codecompanion.model.gathered import QuestionTypes
from codecompanion.retrieval import active_file
from codecompanion.retrieval.compose import compose, joined
from codecompanion.retrieval.gather_pipeline import SearchRanked, load_pipeline
from codecompanion.retrieval.search_terms import simple_terms
from codecompanion.retrieval.smart_snippets import whole_file
from codecompanion.retrieval.worth_showing import demote_repeats
from codecompanion.session.code.search_options import SearchOptions
from codecompanion.session.code.searcher import CodeSearcher
from codecompanion.session.gather.gatherers import beside_search, found_snippet, search_definitions

RANKED = load_pipeline("ranked").stage(SearchRanked)
BUDGETS = (4_000, 8_000, 20_000, 50_000)
Figures = dict[tuple[str, int, float], list[float]]


def open_file(code: CommitCode, changed: Mapping[str, Sequence[tuple[int, int]]]) -> tuple[str, int] | None:
    """Return the first of these files and its first changed line, None = none of them is there."""
    for path in sorted(changed):
        if changed[path] and code.read(path):
            return path, changed[path][0][0]
    return None


def measure(folder: Path, limit: int, shares: Sequence[float], figures: Figures) -> None:
    """Add a repository's share of shown functions by (which file is open, budget, share of it)."""
    git = GitDirectory(folder)
    with tempfile.TemporaryDirectory() as place:
        history = IndexedHistory(git, Path(place))
        searcher = CodeSearcher(history)
        questions = list(questions_of(git, limit))
        for number, question in enumerate(questions):
            history.move_to(question.parent)
            code = CommitCode(history)
            functions = changed_functions(code, question)
            before = questions[number + 1].changed if number + 1 < len(questions) else {}
            for kind, changed in (("own", question.changed), ("previous", before)):
                opened = open_file(code, changed)
                if not functions or opened is None:
                    continue
                path, cursor = opened
                options = SearchOptions(
                    top_k=RANKED.max_files, per_file=RANKED.per_file, with_common=False, in_play=(path,)
                )
                results = [found_snippet(one) for one in searcher.search(question.text, options).results]
                paths, terms = tuple(dict.fromkeys(one.path for one in results)), simple_terms(question.text)
                elements = search_definitions(code, terms, paths, lambda: None)  # type: ignore[arg-type]
                found = demote_repeats(joined(results, beside_search(elements, WEIGHT)))
                active = msgspec.structs.replace(whole_file(path, code.read(path) or ""), source="active")
                for budget in BUDGETS:
                    for share in shares:
                        active_file.SMALL_SHARE = active_file.SHARE_ABOVE = active_file.MAX_SHARE = share
                        chosen = compose(
                            QuestionTypes(),
                            [active, *found] if share else found,
                            (),
                            lambda name, own=path, of=code: of.parse(name).definitions if name == own else (),
                            budget,
                            terms=terms,
                            cursor=cursor,
                        ).selection
                        figures[kind, budget, share].append(share_shown(chosen.snippets, functions))
        history.close()


def main() -> None:
    """Print a line for each kind of open file and budget, over all repositories."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--limit", type=int, default=40, help="questions of each repository")
    parser.add_argument("--shares", default="0,0.25,0.4,0.5", help="shares of the budget, comma-separated")
    parser.add_argument("folders", nargs="+", type=Path, metavar="GIT_DIRECTORY")
    given = parser.parse_args()
    shares, figures = (
        [float(share) for share in given.shares.split(",")],
        defaultdict[tuple[str, int, float], list[float]](list),
    )
    for folder in given.folders:
        measure(folder, given.limit, shares, figures)
    for kind in ("own", "previous"):
        for budget in BUDGETS:
            row = [figures[kind, budget, share] for share in shares]
            text = "  ".join(f"{share:g}: {sum(of) / len(of):.3f}" for share, of in zip(shares, row, strict=True) if of)
            print(f"{kind:>8} {budget:>6,}: {len(row[0])} questions  {text}")


if __name__ == "__main__":
    main()
