"""Phrases that read like a translation are counted by kind of text, and the counts only fall."""

from __future__ import annotations

import re
import tomllib
from collections import Counter

import pytest

from tests.docs.english import KINDS, PHRASES, REPO, Found, find, texts

LEFT = REPO / "tests/docs/english_left.toml"


def test_no_more_phrases_than_were_left() -> None:
    """When some are rewritten, lower the number in `english_left.toml`."""
    found: dict[str, list[Found]] = {kind: [] for kind in KINDS}
    for text in texts():
        found[text.kind] += find(text)
    allowed = tomllib.loads(LEFT.read_text(encoding="utf-8"))
    more = [kind for kind in KINDS if len(found[kind]) > allowed.get(kind, 0)]
    places = Counter(f"{hit.text.path}:{hit.line}: {hit.phrase}" for kind in more for hit in found[kind])
    assert not more, f"more in {more}; `python -m tests.docs.english` shows all of:\n" + "\n".join(list(places)[:20])


def test_messages_name_the_python_process() -> None:
    """The manual, with the descriptions of options and autocommands, introduces the word "host"; a message cannot."""
    in_manual = re.compile(r"lua/codecompanion/(?:config/|chat/state/autocmds)")
    jargon = re.compile(r"\b(?:[Tt]he|Python|[Ii]ts) host\b")
    messages = [text for text in texts() if text.kind == "strings" and not in_manual.match(text.path)]
    assert not [f"{text.path}:{text.line}: {text.words}" for text in messages if jargon.search(text.words)]


@pytest.mark.parametrize(
    ("phrase", "text", "count"),
    [
        ("is no", "a block is no object; there is no file; it is no longer there", 1),
        ("what", "What was removed is listed. What is a queue? It says what to do.", 1),
        ("holds", "it holds for all; it holds a list", 1),
        ("so many", "so many tokens; so many that it fails", 1),
        ("is there", "if a file is there; there is a file", 1),
    ],
)
def test_only_the_odd_form_counts(phrase: str, text: str, count: int) -> None:
    assert len(re.findall(PHRASES[phrase][0], text, re.MULTILINE)) == count
