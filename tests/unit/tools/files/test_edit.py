"""Search and replace: exact, unique, with a helpful error."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from codecompanion.errors import ToolError
from codecompanion.formats.text_files import TextFile, decode, encode
from codecompanion.tools.files.edit import replace_text

_raw = st.lists(st.sampled_from(["a", "b", " ", "é", "\n", "\r\n", "\udc80"]), max_size=40).map("".join)


@given(_raw, _raw, _raw, st.text(alphabet="xyz\n", max_size=10))
def test_everything_except_the_replaced_text_stays_byte_for_byte(before: str, inner: str, after: str, new: str) -> None:
    """Mixed line ends and undecodable bytes beside the edit are unchanged."""
    old = f"<{inner}>".replace("\r\n", "\n")
    edited = replace_text(TextFile(f"{before}<{inner}>{after}"), old, new).file.text
    assert edited.startswith(before)
    assert edited.endswith(after)
    assert edited[len(before) : len(edited) - len(after)].replace("\r\n", "\n") == new


@given(_raw, _raw, st.sampled_from(["\n", "\r\n"]))
def test_a_line_end_at_the_border_of_the_replaced_text_is_matched_completely(
    before: str, after: str, newline: str
) -> None:
    edited = replace_text(TextFile(f"{before}{newline}<>{newline}{after}"), "\n<>\n", "\n!\n").file.text
    assert edited == f"{before}{newline}!{newline}{after}"


@given(_raw.filter(lambda text: bool(text)), st.text(alphabet="xyz", min_size=1, max_size=5))
def test_an_edit_and_its_reverse_restore_the_file(raw: str, marker: str) -> None:
    content = raw.encode("utf-8", "surrogateescape")
    file = decode(content + b"MARK")
    there = replace_text(file, "MARK", marker + "!").file
    assert encode(replace_text(there, marker + "!", "MARK").file) == content + b"MARK"


@pytest.mark.parametrize(
    ("raw", "old", "new", "result"),
    [
        ("a\r\nb\r\nc", "a\nb", "x\ny\nz", "x\r\ny\r\nz\r\nc"),
        ("a\nb\nc\r\n", "c\n", "x\ny\n", "a\nb\nx\r\ny\r\n"),
        ("a\r\nb\r\n", "b", "x\ny", "a\r\nx\r\ny\r\n"),
        ("one", "one", "one\ntwo", "one\ntwo"),
        ("a\nb", "b", "", "a\n"),
        ("", "", "new\n", "new\n"),
        ("a\r\nb\r\n", "a\r\nb\r\n", "c\r\n", "c\r\n"),
        ("a\rb\r\nc\n", "c", "d", "a\rb\r\nd\n"),
    ],
)
def test_new_lines_end_like_the_replaced_ones_or_like_the_files(raw: str, old: str, new: str, result: str) -> None:
    assert replace_text(TextFile(raw), old, new).file.text == result


def test_the_lines_of_the_new_text_are_reported() -> None:
    file = TextFile("a\nb\nc\nb\n")
    assert replace_text(file, "c", "x\ny").places == ((3, 4),)
    assert replace_text(file, "b\n", "1\n2\n3\n", replace_all=True).places == ((2, 4), (6, 8))
    assert replace_text(file, "c\n", "").places == ((3, 3),)


def test_replace_all_replaces_every_occurrence() -> None:
    assert replace_text(TextFile("aXbXc"), "X", "--", replace_all=True).file.text == "a--b--c"


def test_text_that_occurs_more_than_once_is_refused_with_its_lines() -> None:
    with pytest.raises(ToolError, match=r"occurs 3 times, at lines 1, 2, 4; nothing was changed"):
        replace_text(TextFile("x\nx\ny\nx"), "x", "z")
    with pytest.raises(ToolError, match=r"occurs 30 times, at lines 1, .* 10 and 20 more"):
        replace_text(TextFile("x\n" * 30), "x", "z")


def test_text_that_differs_only_in_whitespace_is_pointed_out_with_its_lines() -> None:
    file = TextFile("def f():\n\tif x:\n\t\treturn 1\n")
    with pytest.raises(ToolError) as caught:
        replace_text(file, "    if x:\n        return 1", "pass")
    assert "Only whitespace differs" in str(caught.value)
    assert "lines 2 to 3" in str(caught.value)
    assert str(caught.value).endswith("2\t\tif x:\n3\t\t\treturn 1")


def test_the_most_similar_text_is_shown_if_none_is_equal() -> None:
    file = TextFile("import os\n\ndef load(path):\n    with open(path) as file:\n        return file.read()\n\nx = 1\n")
    with pytest.raises(ToolError) as caught:
        replace_text(file, "def load(path):\n    with open(path) as handle:\n        return handle.read()", "")
    assert "The most similar text is lines 3 to 5" in str(caught.value)
    with pytest.raises(ToolError, match=r"most similar text is line 3:\n3\tdef load\(path\):"):
        replace_text(file, "def loads(path):", "")


def test_nothing_similar_is_said_too() -> None:
    with pytest.raises(ToolError, match="contains nothing similar"):
        replace_text(TextFile("a\nb\n"), "completely different", "x")
    with pytest.raises(ToolError, match="contains nothing similar"):
        replace_text(TextFile(""), "text", "x")


def test_line_numbers_copied_from_a_read_are_removed() -> None:
    file = TextFile("a\n  b\nc\n")
    assert replace_text(file, "1\ta\n2\t  b\n", "1\ta\n2\t  B\n").file.text == "a\n  B\nc\n"
    assert replace_text(file, "2\t  b", "  B").file.text == "a\n  B\nc\n"
    numbered = TextFile("1\ta\n")
    assert replace_text(numbered, "1\ta", "2\tb").file.text == "2\tb\n"


@pytest.mark.parametrize(
    ("old", "new", "why"), [("a", "a", "are identical"), ("", "x", "is empty but"), ("  \n\t", "x", "only whitespace")]
)
def test_an_impossible_edit_is_refused(old: str, new: str, why: str) -> None:
    with pytest.raises(ToolError, match=why):
        replace_text(TextFile("a\n"), old, new)


def test_a_near_miss_in_a_large_file_is_found_without_comparing_everything() -> None:
    """40,000 equal lines must not make the failure quadratic; the time limit of the test run is the judge."""
    text = "    return None\n" * 40_000 + "def special():\n    return None\n"
    with pytest.raises(ToolError, match="most similar"):
        replace_text(TextFile(text), "def special():\n    return Nothing\n" * 3, "x")
