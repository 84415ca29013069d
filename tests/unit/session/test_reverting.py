"""Taking one change out of a file as it is now (issue 8, section 3)."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from codecompanion.session.reverting import Clash, taken_back

BEFORE = "".join(f"line {number}\n" for number in range(12))
AFTER = BEFORE.replace("line 4\n", "four\nand more\n").replace("line 9\n", "")
EDITS = st.lists(
    st.tuples(st.sampled_from(["replace", "insert", "delete"]), st.integers(0, 11)), min_size=1, max_size=4
)


def test_what_is_unchanged_goes_back_exactly() -> None:
    assert taken_back(AFTER, BEFORE, AFTER) == BEFORE
    assert taken_back(BEFORE, BEFORE, AFTER) == BEFORE
    assert taken_back("new\n", None, "new\n") is None
    assert taken_back(None, BEFORE, None) == BEFORE


@pytest.mark.parametrize(
    ("now", "before", "after", "reason"),
    [
        ("changed\n", None, "new\n", "changed since then"),
        ("other\n", BEFORE, None, "exists again"),
        (None, BEFORE, AFTER, "deleted since then"),
        (AFTER.replace("four", "mine"), BEFORE, AFTER, "later changes overlap"),
    ],
)
def test_what_would_lose_later_changes_is_refused(now, before, after, reason) -> None:
    with pytest.raises(Clash, match=reason):
        taken_back(now, before, after)


@given(EDITS)
@settings(max_examples=60, deadline=None)
def test_later_edits_are_never_lost(edits: list[tuple[str, int]]) -> None:
    """Each later line is in the text without the change, or in the one with the conflict markers."""
    lines = AFTER.splitlines(keepends=True)
    typed = []
    for number, (kind, at) in enumerate(edits):
        row = min(at, len(lines) - 1)
        line = f"typed {number}\n"
        if kind == "delete":
            typed = [one for one in typed if one != lines[row]]
            del lines[row]
        else:
            lines[row : row + (kind == "replace")] = [line]
            typed.append(line)
    typed = [line for line in typed if line in lines]
    marked, text = _outcome("".join(lines))
    assert all(line in (marked or text) for line in typed)
    assert marked or "and more" not in text


def _outcome(now: str) -> tuple[str, str]:
    """Return the text with conflict markers, or the text without the change."""
    try:
        return "", taken_back(now, BEFORE, AFTER) or ""
    except Clash as clash:
        return clash.marked or now, ""
