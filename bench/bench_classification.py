"""How often a question is correctly classified as being about the project (R-207), on repositories not used to fit it.

    python -m bench.bench_classification FOLDER [--part held_out] [--only OWNER/NAME…] [--lost FILE] [--json FILE]

`FOLDER` has the repositories that `bench/evidence_corpus.toml` names. Each is queried in the state before its newest
titles: titles, plain questions and SWE-QA's questions about it, and general questions. Printed for each repository: the
share of its questions that are recognised, by kind, and the share of general ones that are mistaken for them, by the
index; both by the words where a project has no index, and by the words of `strict`; and the wall time of the index and
its CPU time, each question asked once. Then the same by kind and by source of general questions. `--lost` stores the
questions that the index gets wrong.
"""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
import time
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "python"))

import msgspec

from bench.evidence_corpus import Asked, Corpus, asked_of, corpus, titles_of
from bench.indexed_history import IndexedHistory
from codecompanion.retrieval.gather_pipeline import Classify, load_pipeline
from codecompanion.session.code.evidence_search import find_evidence
from codecompanion.session.code.searcher import CodeSearcher
from codecompanion.session.gather.classify_question import classify_question

TITLES = 80
WAYS: Mapping[str, Classify] = {
    "index": load_pipeline("ranked").stage(Classify),
    "words": load_pipeline("ranked").stage(Classify),
    "strict": load_pipeline("document").stage(Classify),
}
KINDS = ("title", "plain", "swe_qa")


class Answer(msgspec.Struct, frozen=True):
    """How each classifier judged a question, and how long the index took."""

    repository: str
    asked: Asked
    taken: Mapping[str, bool]
    ms: float
    cpu_ms: float


def measure(given: Corpus, part: str, repository: str) -> tuple[list[Answer], int]:
    """Return the answers to a repository's questions, and the number of its files."""
    git = given.git(repository)
    titles, before = titles_of(git, TITLES)
    with tempfile.TemporaryDirectory() as folder:
        history = IndexedHistory(git, Path(folder), with_history=False)
        history.move_to(before)
        searcher, answers = CodeSearcher(history), list[Answer]()
        find_evidence(searcher, "warm")
        for asked in asked_of(given, part, repository, titles):
            begun, worked = time.perf_counter(), time.process_time()
            evidence = find_evidence(searcher, asked.text)
            said = {"index": classify_question(asked.text, WAYS["index"], evidence).is_codebase_related}
            ms, cpu_ms = (time.perf_counter() - begun) * 1000, (time.process_time() - worked) * 1000
            for way in ("words", "strict"):
                said[way] = classify_question(asked.text, WAYS[way], None).is_codebase_related
            answers.append(Answer(repository, asked, said, ms, cpu_ms))
        files = len(history.paths())
        history.close()
    return answers, files


def share(answers: Iterable[Answer], way: str) -> float:
    """Return the share of the questions classified as being about the project; NaN for none."""
    taken = [answer.taken[way] for answer in answers]
    return sum(taken) / len(taken) if taken else float("nan")


def of_kind(answers: Iterable[Answer], *kinds: str) -> list[Answer]:
    """Return the answers to questions of these kinds; without kinds, to general ones."""
    return [one for one in answers if (one.asked.kind in kinds if kinds else not one.asked.is_about)]


def _cells(answers: Sequence[Answer]) -> list[str]:
    found = [share(of_kind(answers, kind), "index") for kind in KINDS]
    rest = [share(of_kind(answers), "index")]
    for way in ("words", "strict"):
        rest += [share(of_kind(answers, "title", "plain"), way), share(of_kind(answers), way)]
    ms, cpu_ms = sorted(answer.ms for answer in answers), sorted(answer.cpu_ms for answer in answers)
    return [
        *("" if one != one else f"{one:.2f}" for one in (*found, *rest)),
        f"{_at(ms, 0.5):.1f}",
        f"{_at(ms, 0.95):.1f}",
        f"{_at(cpu_ms, 0.95):.1f}",
    ]


def _at(ordered: Sequence[float], share: float) -> float:
    return ordered[min(int(len(ordered) * share), len(ordered) - 1)]


def main() -> None:
    """Print a row for each repository, and the totals."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("folder", type=Path, metavar="FOLDER")
    parser.add_argument("--part", choices=("held_out", "training"), default="held_out")
    parser.add_argument("--only", nargs="+", metavar="OWNER/NAME")
    parser.add_argument("--lost", type=Path, metavar="FILE")
    parser.add_argument("--json", type=Path, metavar="FILE")
    given = parser.parse_args()
    read, every = corpus(given.folder), list[Answer]()
    head = ("repository", "files", *KINDS, "taken", "words", "taken", "strict", "taken", "p50 ms", "p95 ms", "p95 CPU")
    print(f"| {' | '.join(head)} |\n|---|{'---:|' * (len(head) - 1)}")
    for repository in given.only or read.repositories(given.part):
        answers, files = measure(read, given.part, repository)
        every += answers
        print(f"| {repository} | {files} | {' | '.join(_cells(answers))} |", flush=True)
    print(f"| all |  | {' | '.join(_cells(every))} |")
    by_kind = defaultdict[str, list[Answer]](list)
    for answer in every:
        by_kind[answer.asked.kind].append(answer)
    shares = {kind: share(answers, "index") for kind, answers in by_kind.items()}
    print("".join(f"\n{kind}: {share:.3f} of {len(by_kind[kind])}" for kind, share in shares.items()))
    if given.lost:
        lost = (one for one in every if one.taken["index"] != one.asked.is_about)
        lines = (f"{one.repository}\t{one.asked.kind}\t{one.asked.text[:200]!r}\n" for one in lost)
        given.lost.write_text("".join(lines), "utf-8")
    if given.json:
        given.json.write_text(json.dumps(shares, indent=1) + "\n", "utf-8")


if __name__ == "__main__":
    main()
