"""The changelog lists each change once; keeping both sides of a merge conflict repeats entries."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

CHANGELOG = Path(__file__).parents[2] / "CHANGELOG.md"
SAME_START = 45
"""Entries that share this many characters at the beginning count as one change."""


def test_the_newest_section_lists_each_change_once() -> None:
    """Merge a repeated entry into the longer one."""
    newest = CHANGELOG.read_text(encoding="utf-8").split("\n## ")[1]
    starts = Counter(line[:SAME_START] for line in newest.splitlines() if line.startswith("- "))
    assert [start for start, count in starts.items() if count > 1] == []
