"""Reads the arguments of a tool call, whatever the tool's name: its command, its path, its todos (lesson 21)."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from typing import Any

from codecompanion.context.message_facts.earlier_files import Action
from codecompanion.formats.cutting import cut_line_middle
from codecompanion.formats.outside_text import NOT_READABLE
from codecompanion.formats.regex import regex
from codecompanion.model.messages import ToolCall

_ACTIONS: tuple[tuple[Action, tuple[str, ...]], ...] = (
    ("deleted", ("delete", "remove", "rm", "unlink")),
    ("created", ("create", "write", "new", "touch", "mkdir")),
    ("edited", ("edit", "replace", "insert", "patch", "apply", "modify", "update", "sed", "append", "str")),
    ("searched", ("search", "grep", "find", "glob", "rg", "list", "ls", "ag")),
    ("read", ("read", "view", "open", "cat", "show", "head", "tail", "less", "get", "fetch", "goto", "code")),
    ("ran", ("run", "bash", "shell", "exec", "execute", "terminal", "command", "test")),
)
PATH_KEYS = regex(r"path|file|folder|dir|target|uri|document|module", re.IGNORECASE)
COMMAND_KEYS = frozenset("command cmd script code input bash shell commands".split())
_TODO_KEYS = frozenset("todos todo items tasks plan steps".split())
_CHANGE_FOLDER = regex(r"^\s*cd\s+(?:\"[^\"]*\"|'[^']*'|\S+)\s*(?:&&|;)\s*")


def read_arguments(arguments: str) -> Any:
    """Return the decoded arguments of a call; arguments that are not JSON count as one string."""
    try:
        return json.loads(arguments)
    except NOT_READABLE:
        return {"input": arguments}


def describe_call(call: ToolCall) -> str:
    """Describe a call in a few words: its command, its path, or its first short argument."""
    command = command_of(call)
    if command:
        return cut_line_middle(command, 100)
    texts = list(strings_in(read_arguments(call.arguments)))
    path = next((value for key, value in texts if PATH_KEYS.search(key) and value), "")
    chosen = path or next((value for _, value in texts if value and len(value) <= 80), "")
    return cut_line_middle(f"{call.name} {chosen}".strip(), 100)


def command_of(call: ToolCall) -> str:
    """Return the shell command of a call without a leading `cd … &&`, or "" if it has none."""
    for key, value in strings_in(read_arguments(call.arguments)):
        if key in COMMAND_KEYS and not is_word(value):
            return _CHANGE_FOLDER.sub("", value)
    return ""


def is_word(value: str) -> bool:
    """Return whether a command argument only names an action, such as `str_replace` or `view`."""
    return (value.isidentifier() and "_" in value) or value in {"view", "create", "insert", "edit", "delete", "rename"}


def strings_in(value: Any, key: str = "", depth: int = 0) -> Iterator[tuple[str, str]]:
    """Yield every string of decoded JSON with the name of its field."""
    if isinstance(value, str):
        yield key, value
    elif depth < 8 and isinstance(value, dict):
        for name, item in value.items():
            yield from strings_in(item, str(name).lower(), depth + 1)
    elif depth < 8 and isinstance(value, list):
        for item in value:
            yield from strings_in(item, key, depth + 1)


def verb_of(name: str) -> Action | None:
    """Return the file action that the name of a tool or program implies, or None."""
    words = re.findall(r"[a-z]+", re.sub(r"([a-z])([A-Z])", r"\1 \2", name).lower())
    for action, verbs in _ACTIONS:
        if any(word in verbs for word in words):
            return action
    return None


def looks_like_path(value: str) -> bool:
    """Return whether the value of a path argument looks like a path."""
    return 0 < len(value) <= 240 and "\n" not in value and not any(char in value for char in "*?{}<>|\"'")


def todos_of(arguments: Any) -> list[tuple[str, bool]]:
    """Return the list of a todo tool as (text, whether it is done).

    Its entries are objects with a text and a status.
    """
    if not isinstance(arguments, dict):
        return []
    for key, value in arguments.items():
        if str(key).lower() in _TODO_KEYS and isinstance(value, list) and all(isinstance(item, dict) for item in value):
            found = []
            for item in value:
                text = next((item[name] for name in ("content", "text", "title", "task", "step", "description")
                             if isinstance(item.get(name), str)), "")  # fmt: skip
                status = str(item.get("status", item.get("done", ""))).lower()
                if text:
                    found.append((text, status in {"completed", "done", "true", "complete"}))
            return found
    return []
