"""Compares shares of the budget for the open file that is sent with a question (R-214).

Like `bench_gather`, but with an open file: one that the commit changes, the cursor on its first changed line (`own`),
or one that the previous commit changed (`previous`), where the user may still be. Prints, for each budget and share,
the share of the changed functions that is shown; 0 = without the open file.

    python -m bench.bench_active_file [--limit N] [--shares 0,0.25,0.4] GIT_DIRECTORY…
"""

from __future__ import annotations

import argparse
import asyncio
import tempfile
from collections import defaultdict
from collections.abc import Mapping, Sequence
from pathlib import Path

from bench.changed_code import changed_functions, share_shown
from bench.commit_questions import GitDirectory, questions_of
from bench.moving_checkout import CheckedOut
from codecompanion.retrieval import active_file
from codecompanion.session.gather.ask import Ask

BUDGETS = (4_000, 8_000, 20_000, 50_000)
Figures = dict[tuple[str, int, float], list[float]]


def open_file(project: CheckedOut, changed: Mapping[str, Sequence[tuple[int, int]]]) -> tuple[str, int] | None:
    """Return the first of these files that exists and its first changed line, or None."""
    for path in sorted(changed):
        if changed[path] and project.read(path):
            return path, changed[path][0][0]
    return None


async def measure(folder: Path, limit: int, shares: Sequence[float], figures: Figures) -> None:
    """Add the shares of shown functions in a repository by kind of open file, budget, and share of the budget."""
    git = GitDirectory(folder)
    with tempfile.TemporaryDirectory() as place:
        project = CheckedOut(git, Path(place))
        before: Mapping[str, Sequence[tuple[int, int]]] = {}
        for question in questions_of(git, limit):
            await project.move_to(question.parent)
            functions = changed_functions(project.read, question)
            for kind, changed in (("own", question.changed), ("previous", before)):
                opened = open_file(project, changed)
                if not functions or opened is None:
                    continue
                path, cursor = opened
                for budget in BUDGETS:
                    for share in shares:
                        active_file.SMALL_SHARE = active_file.SHARE_ABOVE = active_file.MAX_SHARE = share
                        active = path if share else ""
                        place_in = {"active": active, "cursor": cursor, "budget": budget, "always": True}
                        gathered = await project.gather(Ask(question=question.text, root=project.root, **place_in))
                        figures[kind, budget, share].append(share_shown(gathered.selection.snippets, functions))
            before = question.changed
            await project.index.close()
    git.close()


def main() -> None:
    """Print a line for each kind of open file and budget, over all repositories."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--limit", type=int, default=40, help="questions of each repository")
    parser.add_argument("--shares", default="0,0.25,0.4,0.5", help="shares of the budget, comma-separated")
    parser.add_argument("folders", nargs="+", type=Path, metavar="GIT_DIRECTORY")
    given = parser.parse_args()
    shares = [float(share) for share in given.shares.split(",")]
    figures: Figures = defaultdict(list)
    for folder in given.folders:
        asyncio.run(measure(folder, given.limit, shares, figures))
    for kind in ("own", "previous"):
        for budget in BUDGETS:
            row = [figures[kind, budget, share] for share in shares]
            text = "  ".join(f"{share:g}: {sum(of) / len(of):.3f}" for share, of in zip(shares, row, strict=True) if of)
            print(f"{kind:>8} {budget:>6,}: {len(row[0])} questions  {text}")


if __name__ == "__main__":
    main()
