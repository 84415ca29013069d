"""The title of a call whose tool no longer exists."""

from __future__ import annotations

import pytest

from codecompanion.model.messages import ToolCall
from codecompanion.session.history.recorded_title import recorded_title


@pytest.mark.parametrize(
    ("arguments", "title"),
    [
        ('{"text": "hello", "times": 3, "deep": {"a": 1}}', "odd__echo hello 3"),
        ('{"text": "two\\nlines"}', "odd__echo two lines"),
        ("", "odd__echo "),
        ("{}", "odd__echo "),
        ("[1]", "odd__echo [1]"),
        ('{"text": "cut', 'odd__echo {"text": "cut'),
        ('{"text": "' + "x" * 99 + '"}', "odd__echo " + "x" * 60 + "…"),
    ],
)
def test_a_call_is_titled_by_its_argument_values(arguments: str, title: str) -> None:
    """Raw JSON is shown only if there is nothing else to show."""
    assert recorded_title(ToolCall(id="c1", name="odd__echo", arguments=arguments)) == title
