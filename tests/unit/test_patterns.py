"""No pattern takes quadratic time on any outside text (lesson 34).

A result or a message of 100 KB without a break is ordinary input. Every pattern of the package is found in its source,
with the methods it is called by, and given such texts made of its own characters. A pattern that is suspicious with a
small text gets a large one under a limit of CPU time: linear work takes at most a twentieth of it, and quadratic work
at least twenty times as much, so a busy machine does not change the result.
"""

from __future__ import annotations

import ast
import importlib
import itertools
import re
import re._parser as regex_parser
import signal
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from codecompanion.formats.regex import LazyPattern

PACKAGE = Path(__file__).resolve().parents[2] / "python" / "codecompanion"
SMALL, LARGE = 4_000, 100_000
SUSPICIOUS_S, LIMIT_S, LIMIT_OF_CHECK_S = 0.003, 3.0, 0.3
ANCHORED = {"match", "fullmatch"}
METHODS = {"search", "match", "fullmatch", "findall", "finditer", "sub", "subn", "split"}
COMMON = " aA1\n.-/`([*#>\"':,_=\\"
SHORT = {
    "store/files/checkpoints.py:_NAME": "names of files",
}
"""Patterns whose text is our own, or already limited in length, with the reason."""


class Used:
    """A pattern, its place, and the methods called on it (none found: all are assumed)."""

    def __init__(self, place: str, pattern: re.Pattern[str], methods: set[str]) -> None:
        self.place, self.pattern, self.methods = place, pattern, methods

    def run(self, text: str) -> None:
        """Process a text as the package does."""
        if not self.methods or self.methods - ANCHORED:
            for _ in self.pattern.finditer(text):
                pass
        if "match" in self.methods:
            self.pattern.match(text)
        if "fullmatch" in self.methods:
            self.pattern.fullmatch(text)


def compiled() -> Iterator[Used]:
    """Yield every pattern that a module assigns to a name, directly or in a tuple or table."""
    sources = {path: path.read_text("utf-8") for path in PACKAGE.rglob("*.py") if path.stem != "__main__"}
    called = [calls_of(source) for source in sources.values()]
    everywhere = {name: set[str]().union(*(one.get(name, set()) for one in called)) for one in called for name in one}
    seen: set[int] = set()
    for path in sorted(sources):
        place = path.relative_to(PACKAGE).as_posix()
        if not re.search(r"\bre\.|regex\(", sources[path]) or place == "engine/bridge.py":
            continue
        here = calls_of(sources[path])
        module = importlib.import_module("codecompanion." + place.removesuffix(".py").replace("/", "."))
        for name, value in vars(module).items():
            for pattern in held(value):
                if id(pattern) not in seen and isinstance(pattern.pattern, str):
                    seen.add(id(pattern))
                    uses = here if name.startswith("_") else everywhere  # otherwise a pattern of another module
                    yield Used(f"{place}:{name}", pattern, uses.get(name, set()))
        yield from inline(place, sources[path])


def calls_of(source: str) -> dict[str, set[str]]:
    """Return the methods called on names, including entries of tables (`_KINDS[kind].fullmatch`)."""
    called: dict[str, set[str]] = {}
    for name, method in re.findall(rf"\b(\w+)(?:\[[^\]\n]*\])?\.({'|'.join(METHODS)})\b", source):
        called.setdefault(name, set()).add(method)
    return called


def held(value: object) -> Iterator[re.Pattern[str]]:
    """Yield the patterns inside a value."""
    if isinstance(value, re.Pattern):
        yield value
    elif isinstance(value, LazyPattern):
        yield value.compiled()
    elif isinstance(value, tuple | list | frozenset | set):
        yield from itertools.chain.from_iterable(map(held, value))
    elif isinstance(value, dict):
        yield from itertools.chain.from_iterable(map(held, value.values()))


def inline(place: str, source: str) -> Iterator[Used]:
    """Yield the patterns written inline."""
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Call) and ast.unparse(node.func) in {f"re.{method}" for method in METHODS}:
            first = node.args[0]
            if isinstance(first, ast.Constant) and isinstance(first.value, str):
                flags = [ast.unparse(arg) for arg in [*node.args, *(k.value for k in node.keywords)]]
                on = sum(getattr(re, name) for flag in flags for name in re.findall(r"\bre\.([A-Z]+)\b", flag))
                method = ast.unparse(node.func).removeprefix("re.")
                yield Used(f"{place}:{node.lineno}", re.compile(first.value, on), {method})


def characters(tokens: object) -> Iterator[str]:
    """Yield a character for everything that a parsed pattern may match."""
    classes = {"CATEGORY_SPACE": " ", "CATEGORY_WORD": "w", "CATEGORY_DIGIT": "7"}
    for operation, value in tokens:  # type: ignore[attr-defined]
        match str(operation):
            case "LITERAL" | "NOT_LITERAL":
                yield chr(value)
            case "RANGE":
                yield chr(value[0])
            case "CATEGORY":
                yield classes.get(str(value), "é")
            case "IN":
                yield from characters(value)
            case "MAX_REPEAT" | "MIN_REPEAT" | "POSSESSIVE_REPEAT":
                yield from characters(value[2])
            case "SUBPATTERN":
                yield from characters(value[3])
            case "ASSERT" | "ASSERT_NOT":
                yield from characters(value[1])
            case "BRANCH":
                yield from itertools.chain.from_iterable(map(characters, value[1]))
            case "ATOMIC_GROUP":
                yield from characters(value)


def atoms(pattern: re.Pattern[str]) -> list[str]:
    """Return the building blocks of texts: characters of the pattern, pairs of them, and its words."""
    own = list(dict.fromkeys(characters(regex_parser.parse(pattern.pattern, pattern.flags))))[:10]
    words = re.findall(r"[A-Za-z<][A-Za-z<_ -]{2,}", re.sub(r"\\.|\[[^\]]*\]|\(\?[^)]*", "|", pattern.pattern))[:4]
    pairs = ["".join(pair) for pair in itertools.permutations(dict.fromkeys([*own[:3], " "]), 2)]
    return list(dict.fromkeys([*own, *COMMON, *pairs, *(f"{word}{end}" for word in words for end in (" ", "\n"))]))


def texts(pattern: re.Pattern[str], size: int) -> Iterator[str]:
    """Yield texts of a size, each followed by an ending that matches nothing."""
    for atom in atoms(pattern):
        yield (atom * (size // len(atom) + 1))[:size] + "!\x00"


class TooSlow(Exception):
    """Raised when a pattern takes more CPU time than linear work would."""


@pytest.fixture
def limited():
    """Return a function that runs a pattern under the limit of CPU time, and reports whether it completed."""
    runs = False

    def stop(*_: object) -> None:
        if runs:  # else it came with the last step of the run, which has its result
            raise TooSlow

    def ends(used: Used, text: str) -> bool:
        nonlocal runs
        signal.setitimer(signal.ITIMER_VIRTUAL, LIMIT_S if used.place != "here" else LIMIT_OF_CHECK_S)
        try:
            runs = True
            used.run(text)
            runs = False
        except TooSlow:
            return False
        finally:
            runs = False
            signal.setitimer(signal.ITIMER_VIRTUAL, 0)
        return True

    before = signal.signal(signal.SIGVTALRM, stop)
    yield ends
    signal.signal(signal.SIGVTALRM, before)


def slow_text(used: Used, ends) -> str:
    """Return the atom of a text on which the pattern takes more than linear time, "" if there is none."""
    for atom, small in zip(atoms(used.pattern), texts(used.pattern, SMALL), strict=True):
        began = time.perf_counter()
        if not ends(used, small):
            return atom
        if time.perf_counter() - began > SUSPICIOUS_S and not ends(used, (atom * LARGE)[:LARGE] + "!\x00"):
            return atom
    return ""


@pytest.mark.slow("every pattern of the package with texts of 100 KB")
@pytest.mark.sweep
def test_no_pattern_takes_quadratic_time(limited):
    """`artifact_runtime._RATIONALE` and `known_names._MARKED` used to, on 100 KB without a break."""
    found = [used for used in compiled() if not used.place.startswith(tuple(SHORT))]
    assert len(found) > 150
    slow = {used.place: atom for used in found if (atom := slow_text(used, limited))}
    assert slow == {}, "make it linear, or say in SHORT why no long text gets there"


@pytest.mark.sweep
@pytest.mark.parametrize(
    ("pattern", "methods"),
    [
        (r"\s+(?:because|since)\s+", {"split"}),
        (r"(`[^`\n]*`|\S+?)? ?\(unverified\)", {"findall"}),
        (r"(a|a)*b", {"match"}),
        (r"\w*\d\w*x", {"fullmatch"}),
    ],
)
def test_the_check_finds_slow_patterns(pattern, methods, limited):
    """A check that cannot fail is worthless."""
    assert slow_text(Used("here", re.compile(pattern), methods), limited)
    assert not slow_text(Used("here", re.compile(r"[a-z]+\d"), {"match"}), limited)
