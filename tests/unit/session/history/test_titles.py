"""Titles of chats."""

from __future__ import annotations

import pytest

from codecompanion.session.history.titles import title_of


@pytest.mark.parametrize(
    ("text", "title"),
    [
        ("src/a.py:6-7\n```python\nclass A:\n    pass\n```\nwhy no check?", "why no check?"),
        ("a b.md:1-1\n````markdown\n```\n````\nc.py:2-2\n```\nx\n```\n\nand both?", "and both?"),
        ("src/a.py:6-7\n```python\nclass A:\n```\n", "src/a.py:6-7 class A:"),
        ("src/a.py:6-7\n```python\nclass A:", "src/a.py:6-7 class A:"),
        ("```python\nclass A:\n    pass\n```\nwhy no check?", "why no check?"),
        ("Look:\n```\nx\n```\nand say why", "Look: and say why"),
        ("```python\nclass A:\n    pass\n```", "class A: pass"),
        ("`pop` and ``` in a line", "`pop` and ``` in a line"),
        ("at 10:20-30\nit fails", "at 10:20-30 it fails"),
    ],
)
def test_a_title_shows_the_question_about_code(text: str, title: str) -> None:
    """Selected or pasted code is left out of the title, unless the message has no words; fences never appear."""
    assert title_of(text) == title
