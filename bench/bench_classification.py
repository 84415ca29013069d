"""How often a question is rightly taken as being about the project (R-207).

    python -m bench.bench_classification GIT_DIRECTORY… --others FILE… [--titles FILE] [--limit 60] [--json FILE]

Questions about a repository are subjects of its commits that changed source (bench/commit_questions.py; maintenance
left out) and, with `--titles`, titles of its issues: lines of the directory's name, a tab and a title. `--others` are
files with questions about something else: each line of Markdown that ends in a question mark, each line of a text, each
`instruction` of JSON lines. All are asked of the index of the newest commit. Printed for each repository: the share of
its questions that are found and the share of the others that are taken, by the index, by the words where a project has
no index, and by the words of `strict`, and the CPU time that the index takes. Repositories that the weights were fitted
on are marked with a star.
"""

from __future__ import annotations

import argparse
import json
import re
import sys
import tempfile
import time
from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "python"))

from bench.commit_questions import GitDirectory, questions_of
from bench.indexed_history import IndexedHistory
from codecompanion.retrieval.gather_pipeline import Classify, load_pipeline
from codecompanion.session.code.evidence_search import find_evidence
from codecompanion.session.code.searcher import CodeSearcher
from codecompanion.session.gather.classify_question import classify_question

FITTED_ON = frozenset(
    ("encode+httpx", "junegunn+fzf", "BurntSushi+ripgrep", "stevearc+oil.nvim", "pallets+click", "koajs+koa")
)
_MAINTENANCE = re.compile(
    r"^(chore|ci|docs?|tests?|style|build|refactor|cleanup|breaking)\b[^a-z]|typo|lint|\bruff\b|flake8|mypy|docstring"
    r"|comment|dependenc|\bCI\b|upgrade|\bpython \d",
    re.IGNORECASE,
)
_MARK = re.compile(r"^[\s>#*-]*(?:Q\.|\d+[.)])?\s*")
MIN_CHARS = 12
WAYS: Mapping[str, Classify] = {
    "index": load_pipeline("ranked").stage(Classify),
    "words": load_pipeline("ranked").stage(Classify),
    "strict": load_pipeline("document").stage(Classify),
}
COLUMNS = tuple(f"{what} {way}" for what in ("found", "taken") for way in WAYS)


def others_in(file: Path) -> list[str]:
    """Return the questions of a file."""
    lines = file.read_text("utf-8").splitlines()
    if file.suffix == ".jsonl":
        return [json.loads(line)["instruction"] for line in lines if line.strip()]
    lines = [_MARK.sub("", line).strip() for line in lines]
    wanted = [line for line in lines if len(line) >= MIN_CHARS]
    return [line for line in wanted if line.endswith("?")] if file.suffix == ".md" else wanted


def titles_in(file: Path) -> dict[str, list[str]]:
    """Return name of the git directory → titles."""
    found = defaultdict[str, list[str]](list)
    for line in file.read_text("utf-8").splitlines():
        name, _, title = line.partition("\t")
        found[name].append(title)
    return found


def measure(git: GitDirectory, asked: Sequence[str], others: Sequence[str]) -> tuple[dict[str, float], list[float]]:
    """Return column → share, and the CPU milliseconds of each question with a warm index."""
    with tempfile.TemporaryDirectory() as folder:
        history = IndexedHistory(git, Path(folder), with_history=False)
        history.move_to("HEAD")
        searcher, ms = CodeSearcher(history), list[float]()
        find_evidence(searcher, "warm")

        def is_taken(question: str, way: str) -> bool:
            begun = time.process_time()
            evidence = find_evidence(searcher, question) if way == "index" else None
            said = classify_question(question, WAYS[way], evidence)
            if way == "index":
                ms.append((time.process_time() - begun) * 1000)
            return said.is_codebase_related

        row = {
            f"{what} {way}": _share(is_taken, questions, way)
            for what, questions in (("found", asked), ("taken", others))
            for way in WAYS
        }
        history.close()
    return row, ms


def _share(is_taken: Callable[[str, str], bool], questions: Sequence[str], way: str) -> float:
    return sum(is_taken(question, way) for question in questions) / max(len(questions), 1)


def _at(ordered: Sequence[float], share: float) -> float:
    return ordered[min(int(len(ordered) * share), len(ordered) - 1)]


def _unique(questions: Iterable[str]) -> list[str]:
    return list(dict.fromkeys(questions))


def main() -> None:
    """Print a row for each repository."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("folders", nargs="+", type=Path, metavar="GIT_DIRECTORY")
    parser.add_argument("--others", nargs="+", type=Path, required=True, metavar="FILE")
    parser.add_argument("--titles", type=Path, metavar="FILE")
    parser.add_argument("--limit", type=int, default=60, help="commits of each repository")
    parser.add_argument("--json", type=Path, metavar="FILE")
    given = parser.parse_args()
    others = _unique(one for file in given.others for one in others_in(file))
    titles = titles_in(given.titles) if given.titles else {}
    head = ("repository", "asked", "others", *COLUMNS, "p50 CPU ms", "p95 CPU ms")
    print(f"| {' | '.join(head)} |\n|---|{'---:|' * (len(head) - 1)}")
    rows = dict[str, dict[str, float]]()
    for folder in given.folders:
        git = GitDirectory(folder)
        name = folder.parent.name if folder.name == "repo" else folder.name.removesuffix(".git")
        subjects = [one.text for one in questions_of(git, given.limit) if not _MAINTENANCE.search(one.text)]
        asked = _unique((*subjects, *titles.get(name, ())))
        shares, ms = measure(git, asked, others)
        ms.sort()
        rows[name] = {"asked": len(asked), "others": len(others), **shares, "p50": _at(ms, 0.5), "p95": _at(ms, 0.95)}
        cells = (*(f"{shares[column]:.2f}" for column in COLUMNS), *(f"{_at(ms, at):.1f}" for at in (0.5, 0.95)))
        print(f"| {name}{'*' * (name in FITTED_ON)} | {len(asked)} | {len(others)} | {' | '.join(cells)} |", flush=True)
        git.close()
    if given.json:
        given.json.write_text(json.dumps(rows, indent=1) + "\n", "utf-8")


if __name__ == "__main__":
    main()
