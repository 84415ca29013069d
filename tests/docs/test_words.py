"""Tests for one word per idea (`doc/dev/glossary.md`): invented words are banned, and the remaining ones get fewer.

`words_left.toml` lists the remaining uses by word and part of the code. Using a word more often fails and names the
alternative. Anyone who removes some uses lowers the number.
"""

from __future__ import annotations

import re
import tomllib
from functools import cache
from pathlib import Path

import pytest

REPO = Path(__file__).parents[2]
LEFT = REPO / "tests/docs/words_left.toml"
GLOSSARY = REPO / "doc/dev/glossary.md"
PARTS = {
    "python": ("python", "rplugin"),
    "lua": ("lua", "plugin", "ftplugin", "build.lua", "lazy.lua"),
    "tests": ("tests", "bench", "tools"),
    "documents": ("README.md", "doc/dev"),
}
SUFFIXES = frozenset({".py", ".lua", ".toml", ".md", ".txt"})
# The list itself, and texts in which a word is somebody else's.
NOT_OURS = re.compile(
    r"tests/docs/test_words\.py|tests/docs/\w*english|tests/docs/words_left\.toml|doc/dev/glossary\.md|doc/dev/lessons\.md|/types\.lua$"
    r"|bench/demo_\w+\.py|tests/external/"
)
BANNED: dict[str, tuple[str, str]] = {
    "behind": (
        r"(?<!left )(?<!leave )(?<!leaves )(?<!leave it )\bbehind\b"
        r"(?! (?:a |the |its |some )?(?:local )?(?:prox|gateway|server|bind mount|\w+'s back|an adapter))",
        "after",
    ),
    "opaque": (
        r"(?<!reasoning_)opaque(?! chat id)|\bunsealed\b|\bseal(?:s|ed)?\b|(?<=Reasoning)Sealed",
        "encrypted, provider state",
    ),
    "aim": (r"(?<![a-zA-Z])aim(?:s|ed)?(?![a-z])", "target"),
    "resting": (r"(?<![a-z])resting(?![a-z])|\brests\b", "paused"),
    "most_": (r"(?<!at_)(?<!_at_)(?<![a-z])(?:most|least)_(?!important|similar|recent)[a-z]", "max_, min_"),
    "MOST_": (r"(?:MOST|LEAST|LONGEST)_[A-Z]|(?<!AT)_(?:MOST|LEAST|LONGEST)\b", "MAX_, MIN_"),
    "anew": (r"(?<![a-z])anew(?![a-z])", "again, from scratch"),
    "in vain": (r"\bin vain\b", "without effect"),
    "dear": (r"\bdear(?:er|est)?\b", "expensive"),
    "our house": (r"\bour house\b", "here"),
    "spoiled": (r"\bspoil", "damaged"),
}


@cache
def texts(part: str) -> tuple[tuple[str, str], ...]:
    """Return path and text of our files in a part of the code."""
    roots = [REPO / name for name in PARTS[part]]
    files = [path for root in roots for path in ([root] if root.is_file() else sorted(root.rglob("*")))]
    named = [(path, path.relative_to(REPO).as_posix()) for path in files if path.suffix in SUFFIXES]
    return tuple((name, path.read_text(encoding="utf-8")) for path, name in named if not NOT_OURS.search(name))


def found(word: str, part: str) -> list[str]:
    """Return the places where a banned word is used in a part of the code."""
    pattern = re.compile(BANNED[word][0])
    return [
        f"{name}:{number}: {line.strip()[:120]}"
        for name, text in texts(part)
        for number, line in enumerate(text.splitlines(), 1)
        for _ in pattern.finditer(line)
    ]


def left() -> dict[str, dict[str, int]]:
    """Return the number of allowed uses of each word in each part of the code."""
    return tomllib.loads(LEFT.read_text(encoding="utf-8"))


@pytest.mark.parametrize("part", PARTS)
@pytest.mark.parametrize("word", BANNED)
def test_no_banned_word_occurs_more_often_than_listed(word: str, part: str) -> None:
    places, allowed = found(word, part), left().get(word, {}).get(part, 0)
    assert len(places) <= allowed, f"say {BANNED[word][1]} ({GLOSSARY.name}):\n" + "\n".join(places)


def test_the_list_names_only_banned_words() -> None:
    assert set(left()) <= set(BANNED)
    assert {part for allowed in left().values() for part in allowed} <= set(PARTS)


def test_every_banned_word_is_in_the_glossary() -> None:
    said = GLOSSARY.read_text(encoding="utf-8").partition("## Terms to avoid")[2]
    assert [word for word in BANNED if word.lower() not in said.lower()] == []


@pytest.mark.parametrize(
    ("word", "text", "count"),
    [
        ("behind", "it stands behind the call", 1),
        ("behind", "a server behind a proxy; behind the user's back; files left behind", 0),
        ("opaque", "with_opaque, sealed blocks", 2),
        ("aim", "aim_tokens, the aims; claims; aimless", 2),
        ("resting", "interesting; resting_until; it rests", 2),
        ("most_", "most_without, at_most_one, least_share, clear_at_least", 2),
    ],
)
def test_banned_words_are_recognised(word: str, text: str, count: int) -> None:
    assert len(re.findall(BANNED[word][0], text)) == count
