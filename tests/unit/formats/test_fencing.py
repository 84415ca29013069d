"""Texts in fences: nothing in a text ends its own, and it is read back as it was."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from codecompanion.formats.fencing import fenced, fenced_in, label_of

TEXTS = st.text(alphabet="a`~ \nx", max_size=60)


@given(st.lists(st.tuples(TEXTS, st.sampled_from(["", "py", "c++", "vim help"])), max_size=4))
def test_what_is_fenced_is_read_back(texts: list[tuple[str, str]]) -> None:
    """A final newline ends the last line; there is nothing else that is lost."""
    content = "\n".join(f"`a.py`, all of it:\n{fenced(text, label)}" for text, label in texts)
    assert list(fenced_in(content)) == [
        (text.removesuffix("\n") if text.strip("\n") else text).split("\n") for text, _ in texts
    ]


def test_a_final_newline_makes_no_blank_line() -> None:
    assert fenced("a\nb\n", "py") == "```py\na\nb\n```"
    assert fenced("a\n\n", "py") == "```py\na\n\n```"


@pytest.mark.parametrize(
    ("path", "filetype", "label"),
    [("src/a.py", "python", "py"), ("Makefile", "make", "make"), ("", "lua", "lua"), ("a", "", "")],
)
def test_the_label_is_the_same_whoever_attaches_a_file(path: str, filetype: str, label: str) -> None:
    assert label_of(path, filetype) == label
