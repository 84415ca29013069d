"""How many of the names in a removed line are in the prompt: the file alone, and with knowledge of the project.

    python -m bench.bench_completion [--lines 1000] [--worst 5] REPOSITORY…

A repository is a folder with a git history (a bare one too); its newest commit is written to a temporary folder and
indexed. Lines that the grammar recognises as code are drawn with a fixed seed. Each line is removed, and its
identifiers (not those in strings and comments) are searched for in the prompt for its place: one with 8,000 characters
before and 2,000 after it, and ours of the same size. `names elsewhere` are lines that use a name which occurs in
another file, but not in the window. Times are CPU times of building one prompt, with index and files warm, as in an
editor.
"""

from __future__ import annotations

import argparse
import io
import keyword
import random
import re
import subprocess
import sys
import tarfile
import tempfile
import time
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from codecompanion.completion.families import family_named
from codecompanion.completion.prompt import build_prompt
from codecompanion.completion.prompt_budgets import budgets
from codecompanion.completion.window import cut_window
from codecompanion.session.code.indexing import build
from codecompanion.session.complete.project_prompt import make_project_prompt
from codecompanion.session.complete.project_view import ProjectReader
from codecompanion.store.code_index.reader import IndexReader
from codecompanion.workspace.project_files import Choice
from codecompanion.workspace.secret_files import is_secret
from codecompanion.workspace.syntax.languages import language_of
from codecompanion.workspace.syntax.parse import parse

_NAME = re.compile(r"[A-Za-z_]\w{2,}")
_NOT_CODE = re.compile(r"\s*(?:#|//|--|/?\*|[\"']{3}|(?:import|from|use|package|require)\b)")
_PROSE = re.compile(r"""\"(?:[^\"\\]|\\.)*\"?|'(?:[^'\\]|\\.)*'|(?:#|//|--) .*""")
_MAX_FILE_BYTES = 200_000
_WORDS = frozenset(
    "self cls function local end then elseif return nil not and for while const let var new this null undefined true"
    " false func type struct interface package import export default async await class def pub use impl mut match mod"
    " crate string int bool error err throw catch try finally void static switch case break continue extends typeof"
    " instanceof".split()
) | frozenset(keyword.kwlist)


@dataclass
class Case:
    """A line removed from a file: the names it used, and which of them occur elsewhere but not in the window."""

    path: str
    line: int
    before: str
    after: str
    wanted: frozenset[str]
    elsewhere: frozenset[str] = frozenset()


@dataclass
class Shares:
    """Sums over cases: the share of the names in the prompt."""

    alone: float = 0.0
    ours: float = 0.0
    cases: int = 0

    def add(self, alone: float, ours: float) -> None:
        """Count one case."""
        self.alone, self.ours, self.cases = self.alone + alone, self.ours + ours, self.cases + 1

    def __str__(self) -> str:
        count = max(1, self.cases)
        gain = 100 * (self.ours - self.alone) / count
        return f"{self.alone / count:.3f} → {self.ours / count:.3f} ({gain:+.1f}), {self.cases} lines"


@dataclass
class Result:
    """The result for one or more repositories."""

    every: Shares = field(default_factory=Shares)
    elsewhere: Shares = field(default_factory=Shares)
    found: int = 0
    missing: int = 0
    sizes: list[int] = field(default_factory=list)
    times_ms: list[float] = field(default_factory=list)

    def add(self, other: Result) -> None:
        """Add another result."""
        for mine, theirs in ((self.every, other.every), (self.elsewhere, other.elsewhere)):
            mine.alone, mine.ours = mine.alone + theirs.alone, mine.ours + theirs.ours
            mine.cases += theirs.cases
        self.found, self.missing = self.found + other.found, self.missing + other.missing
        self.sizes += other.sizes
        self.times_ms += other.times_ms

    def __str__(self) -> str:
        times = sorted(self.times_ms)
        return (
            f"all: {self.every} · names elsewhere: {self.elsewhere} · missing names found {self.found}/{self.missing}"
            f" · {sum(self.sizes) // max(1, len(self.sizes)):,} chars · p50 {times[len(times) // 2]:.1f} ms,"
            f" p95 {times[int(len(times) * 0.95)]:.1f} ms"
        )


def names_in(text: str) -> frozenset[str]:
    """Return the names in a string, without language keywords."""
    return frozenset(_NAME.findall(text)) - _WORDS


def identifiers(line: str) -> frozenset[str]:
    """Return the names in a line of code, without words in strings and comments."""
    return names_in(_PROSE.sub(" ", line))


def lay_out(repository: Path, folder: Path) -> dict[str, str]:
    """Write the newest commit's code into a folder; return path → text."""
    packed = subprocess.run(["git", "-C", repository, "archive", "HEAD"], capture_output=True, check=True).stdout
    texts: dict[str, str] = {}
    with tarfile.open(fileobj=io.BytesIO(packed)) as archive:
        for entry in archive:
            if not entry.isfile() or entry.size > _MAX_FILE_BYTES or language_of(entry.name) in ("", "markdown"):
                continue
            content = archive.extractfile(entry)
            assert content is not None
            texts[entry.name] = content.read().decode("utf-8", "replace").replace("\r\n", "\n")
            path = folder / entry.name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(texts[entry.name], encoding="utf-8", newline="")
    return texts


def index(root: Path, path: Path) -> IndexReader:
    """Return an index of a folder."""
    build(root, path, Choice(), now_ns=time.time_ns)
    return IndexReader(path)


def draw(texts: Mapping[str, str], count: int) -> Iterator[Case]:
    """Yield cases, the same ones each time."""
    places = []
    for path, text in sorted(texts.items()):
        parsed = parse(text, language_of(path))
        code = {one.line - 1 for one in (*parsed.references, *parsed.definitions)}
        places += [
            (path, number)
            for number, line in enumerate(text.split("\n"))
            if number in code and len(line) <= 200 and identifiers(line) and not _NOT_CODE.match(line)
        ]
    standing: dict[str, set[str]] = defaultdict(set)
    for path, text in texts.items():
        for name in names_in(text):
            standing[name].add(path)
    for path, number in sorted(random.Random(11).sample(places, min(count, len(places)))):
        lines = texts[path].split("\n")
        indentation = lines[number][: len(lines[number]) - len(lines[number].lstrip())]
        before = "".join(f"{line}\n" for line in lines[:number]) + indentation
        case = Case(path, number, before, "\n" + "\n".join(lines[number + 1 :]), identifiers(lines[number]))
        window = cut_window(case.before, case.after)
        shown = names_in(window.prefix) | names_in(window.suffix)
        case.elsewhere = frozenset(name for name in case.wanted - shown if standing[name] - {path})
        yield case


def measure(repository: Path, count: int, worst: int) -> Result:
    """Return the result of one repository."""
    family, result, losses = family_named("qwen"), Result(), []
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name) / (repository.parent.name if repository.name == "repo" else repository.name)
        texts = lay_out(repository, folder)
        reader = ProjectReader(folder, index(folder, Path(name) / "index.db"), is_secret)
        for case in draw(texts, count):
            window = cut_window(case.before, case.after)
            alone = names_in(build_prompt(family, "", window.prefix, window.suffix).prompt)
            make_project_prompt(reader, family, case.path, case.before, case.after, budgets().total)  # warm
            began = time.process_time()
            made = make_project_prompt(reader, family, case.path, case.before, case.after, budgets().total)
            result.times_ms.append((time.process_time() - began) * 1000)
            result.sizes.append(len(made.prompt))
            ours = names_in(made.prompt)
            shares = len(case.wanted & alone) / len(case.wanted), len(case.wanted & ours) / len(case.wanted)
            result.every.add(*shares)
            losses.append((shares[1] - shares[0], f"{case.path}:{case.line + 1} {sorted(case.wanted - ours)}"))
            if case.elsewhere:
                result.elsewhere.add(*shares)
                result.missing += len(case.elsewhere)
                result.found += len(case.elsewhere & ours)
    for loss, where in sorted(losses)[:worst]:
        if loss < 0:
            print(f"    {loss:+.2f} {where}")
    return result


def main(arguments: Sequence[str]) -> None:
    """Measure, and print a line for each repository and one for the total."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--lines", type=int, default=1_000, help="lines altogether")
    parser.add_argument("--worst", type=int, default=0, help="show so many lines that lost most")
    parser.add_argument("repositories", nargs="+", type=Path)
    given = parser.parse_args(arguments)
    total = Result()
    for repository in given.repositories:
        result = measure(repository, given.lines // len(given.repositories), given.worst)
        print(f"{repository.parent.name if repository.name == 'repo' else repository.name}: {result}", flush=True)
        total.add(result)
    print(f"together: {total}")


if __name__ == "__main__":
    main(sys.argv[1:])
