"""Texts in fences: no text ends its own fence, and it is read back unchanged."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from codecompanion.formats.fencing import fenced, fenced_in, label_of

TEXTS = st.text(alphabet="a`~ \nx", max_size=60)


@given(st.lists(st.tuples(TEXTS, st.sampled_from(["", "py", "c++", "vim help"])), max_size=4))
def test_fenced_text_is_read_back(texts: list[tuple[str, str]]) -> None:
    """A final newline ends the last line; nothing else is lost."""
    content = "\n".join(f"`a.py`, all of it:\n{fenced(text, label)}" for text, label in texts)
    assert list(fenced_in(content)) == [
        (text.removesuffix("\n") if text.strip("\n") else text).split("\n") for text, _ in texts
    ]


def test_a_final_newline_adds_no_blank_line() -> None:
    assert fenced("a\nb\n", "py") == "```py\na\nb\n```"
    assert fenced("a\n\n", "py") == "```py\na\n\n```"


@pytest.mark.parametrize(
    ("path", "filetype", "label"),
    [("src/a.py", "python", "py"), ("Makefile", "make", "make"), ("", "lua", "lua"), ("a", "", "")],
)
def test_the_label_is_the_same_for_every_way_of_attaching(path: str, filetype: str, label: str) -> None:
    assert label_of(path, filetype) == label
