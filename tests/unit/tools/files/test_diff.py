"""The diff an approval shows."""

from __future__ import annotations

import shutil
import subprocess
import tempfile
from pathlib import Path

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from codecompanion.formats.text_files import split_lines
from codecompanion.tools.files.diff import file_diff, hunks_of, without_hunk


def test_a_change_is_shown_with_context_and_real_line_numbers() -> None:
    before = "".join(f"{number}\n" for number in range(1, 101))
    assert file_diff("x.txt", before, before.replace("50\n", "fifty\n")) == (
        "--- a/x.txt\n+++ b/x.txt\n@@ -47,7 +47,7 @@\n 47\n 48\n 49\n-50\n+fifty\n 51\n 52\n 53\n"
    )


def test_a_new_file_is_all_additions() -> None:
    assert file_diff("x", None, "a\nb\n") == "--- /dev/null\n+++ b/x\n@@ -0,0 +1,2 @@\n+a\n+b\n"


@pytest.mark.skipif(shutil.which("patch") is None, reason="the program patch is not installed")
@settings(max_examples=25, deadline=None)
@given(st.lists(st.sampled_from("abc"), max_size=30), st.lists(st.sampled_from("abc"), max_size=30))
@example(list("aaabcacacbab"), list("aaaccacbab"))  # the change is found at the edge of the compared part
def test_the_diff_is_one_that_patch_can_apply(old: list[str], new: list[str]) -> None:
    before, after = ("".join(line + "\n" for line in lines) for lines in (old, new))
    if before == after or not before:
        return
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "x"
        file.write_text(before)
        command = ["patch", "-s", str(file)]
        subprocess.run(command, input=file_diff("x", before, after), text=True, check=True)
        assert (file.read_text() if file.exists() else "") == after


def test_a_rewrite_of_a_huge_file_is_not_compared_line_by_line() -> None:
    """A comparison of all lines would take minutes; the time limit of the test run is the judge."""
    before = "".join(f"{number % 7} {number}\n" for number in range(60_000))
    after = "".join(f"{number % 5} {number}\n" for number in range(60_000))
    diff = file_diff("x", before, after)
    assert diff.count("\n-") > 30_000
    assert diff.count("\n+") > 30_000


def test_a_hunk_header_shows_place_size_and_subject():
    """Added lines are more informative than removed ones; a blank line is not."""
    old = [f"line {number}" for number in range(40)]
    new = ["", "import os", *old[:10], "  row 10", *old[11:30], *old[32:]]
    places = hunks_of(file_diff("f", "\n".join(old), "\n".join(new)))
    assert [(one.line, one.added, one.removed, one.text) for one in places] == [
        (1, 2, 0, "import os"),
        (13, 1, 1, "row 10"),
        (33, 0, 2, "− line 30"),
    ]


@given(st.lists(st.sampled_from(["a", "b", "c", "d", ""]), max_size=40), st.data())
def test_a_text_with_all_hunks_of_its_diff_removed_is_the_original(before, data):
    """The hunks are removed one by one, from the last; a missing hunk is ignored."""
    after = list(before)
    for _ in range(data.draw(st.integers(0, 4))):
        at = data.draw(st.integers(0, len(after)))
        after[at : at + data.draw(st.integers(0, 3))] = data.draw(st.lists(st.sampled_from("xyz"), max_size=3))
    old, now = ("\n".join([*lines, ""]) if lines else "" for lines in (before, after))
    count = len(hunks_of(file_diff("f", old, now)))
    assert without_hunk(old, now, count) is None
    for hunk in range(count - 1, -1, -1):
        now = without_hunk(old, now, hunk)
    assert split_lines(now) == split_lines(old)
