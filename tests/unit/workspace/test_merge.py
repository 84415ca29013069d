"""Three-way merges by git."""

from __future__ import annotations

import pytest

from codecompanion.workspace.merge import merge

LABELS = ("now", "base", "wanted")
BASE = "".join(f"{number}\n" for number in range(10))


def test_changes_without_overlap_are_both_kept() -> None:
    ours, theirs = BASE.replace("8\n", "eight\n"), BASE.replace("1\n", "one\n")
    merged = merge(BASE, ours, theirs, LABELS)
    assert (merged.text, merged.conflicts, merged.problem) == (ours.replace("1\n", "one\n"), 0, "")


def test_an_overlap_is_a_conflict_with_both_texts_and_their_names() -> None:
    merged = merge(BASE, BASE.replace("5\n", "five\n"), BASE.replace("5\n", "V\n"), LABELS)
    assert merged.conflicts == 1
    assert "<<<<<<< now\nfive\n=======\nV\n>>>>>>> wanted\n" in merged.text


@pytest.mark.parametrize("text", ["", "no end", "ä\n中", "a\udcff\n"])
def test_any_text_can_be_merged(text: str) -> None:
    assert merge(BASE, BASE, text, LABELS).text == text
    assert merge(BASE, text, BASE, LABELS).text == text


def test_without_git_the_missing_merge_is_reported(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", "/nonexistent")
    merged = merge(BASE, "ours", BASE, LABELS)
    assert merged.text == "ours"
    assert "git is needed" in merged.problem


def test_a_binary_file_is_not_merged() -> None:
    assert "git could not merge" in merge("a\0", "b\0", "c\0", LABELS).problem
