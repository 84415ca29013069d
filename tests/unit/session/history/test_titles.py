"""Titles of chats."""

from __future__ import annotations

import pytest

from codecompanion.session.history.titles import title_of


@pytest.mark.parametrize(
    ("text", "title"),
    [
        ("src/a.py:6-7\n```python\nclass A:\n    pass\n```\nwhy no check?", "why no check?"),
        ("a b.md:1-1\n````markdown\n```\n````\nc.py:2-2\n```\nx\n```\n\nand both?", "and both?"),
        ("src/a.py:6-7\n```python\nclass A:\n```\n", "src/a.py:6-7 ```python class A: ```"),
        ("src/a.py:6-7\n```python\nclass A:", "src/a.py:6-7 ```python class A:"),
        ("at 10:20-30\nit fails", "at 10:20-30 it fails"),
    ],
)
def test_a_title_shows_the_question_about_selected_lines(text: str, title: str) -> None:
    """`:'<,'>CodeCompanionChat` puts the lines first; lines alone make a title, too."""
    assert title_of(text) == title
