"""Creates titles and approval questions for calls of user-defined tools, with the arguments unchanged."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import msgspec

from codecompanion.tools.builtin.wording import fits_one_line, one_line
from codecompanion.tools.tool import ApprovalQuestion, ToolContext

_MAX_SHOWN_CHARS = 20_000


def title_of(name: str) -> Callable[[dict[str, Any]], str]:
    """Return a function that returns the title of a call: its first text argument, shortened."""

    def title(arguments: dict[str, Any]) -> str:
        first = next((value for value in arguments.values() if isinstance(value, (str, int, float))), "")
        return f"{name} {one_line(str(first), 60)}".rstrip()

    return title


def question_of(name: str) -> Callable[[dict[str, Any], ToolContext], ApprovalQuestion]:
    """Return a function that creates the approval question for a call; "always" covers the whole tool."""
    title = title_of(name)

    def question(arguments: dict[str, Any], context: ToolContext) -> ApprovalQuestion:
        del context
        indent = 0 if fits_one_line(arguments) else 2
        body = msgspec.json.format(msgspec.json.encode(arguments), indent=indent).decode() if arguments else ""
        if len(body) > _MAX_SHOWN_CHARS:
            body = f"{body[:_MAX_SHOWN_CHARS]}\n… {len(body) - _MAX_SHOWN_CHARS:,} more characters"
        return ApprovalQuestion(key=name, title=title(arguments), body=body, filetype="json")

    return question
