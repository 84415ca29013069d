"""Reads front matter: the YAML between two lines `---` at the top of a Markdown file.

PyYAML was chosen by comparison: it imports in a third of the time of ruamel.yaml, gives the line of every key, and its
safe loader creates only plain values. Anchors and aliases are refused: a few lines of them can expand to gigabytes.
"""

from __future__ import annotations

from typing import Any

import msgspec

from codecompanion.errors import InputError

MARK = "---"
MAX_CHARS = 32_768
"""Maximum characters of front matter; anything longer is ordinary text with a line `---` further down."""


class FrontMatter(msgspec.Struct, frozen=True):
    """The values of the front matter, and the text below it, which begins on line `body_line` (1-based).

    `lines` maps the keys to their lines; nested keys are written as in `opts.alias`.
    """

    values: dict[str, Any]
    lines: dict[str, int]
    body: str
    body_line: int


def read_front_matter(text: str, label: str) -> FrontMatter:
    """Return the front matter and body of a string with Unix line endings; `label` names the file.

    Raises:
        InputError: there is no front matter, or it is not a YAML mapping; the message names the file and line.
    """
    lines = text.split("\n")
    if lines[0].rstrip() != MARK:
        raise InputError(f"{label}:1: expected front matter that begins with {MARK}.")
    end = next((number for number, line in enumerate(lines[1:], 1) if line.rstrip() == MARK), None)
    if end is None:
        raise InputError(f"{label}:1: the front matter is not closed; expected a second {MARK} line.")
    head = "\n".join(lines[1:end])
    if len(head) > MAX_CHARS:
        raise InputError(f"{label}:1: the front matter has {len(head):,} characters; at most {MAX_CHARS:,} are read.")
    values, found = _parse(head, label)
    return FrontMatter(values, found, "\n".join(lines[end + 1 :]), end + 2)


def _parse(head: str, label: str) -> tuple[dict[str, Any], dict[str, int]]:
    import yaml  # imported only for users who have their own prompts

    class Loader(yaml.SafeLoader):  # type: ignore[misc] # the library has no types
        def compose_node(self, parent: Any, index: Any) -> Any:
            if self.check_event(yaml.AliasEvent):
                event = self.peek_event()
                raise yaml.composer.ComposerError(None, None, "aliases (`*name`) are not supported", event.start_mark)
            return super().compose_node(parent, index)

    loader = None
    try:
        loader = Loader(head)
        node = loader.get_single_node()
        lines = _key_lines(node, label)
        values = loader.construct_document(node) if node is not None else {}
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        line = 2 + mark.line if mark else 1
        raise InputError(
            f"{label}:{line}: the front matter is not valid YAML: {error.problem or error.context}."
        ) from error
    except (yaml.YAMLError, ValueError) as error:
        raise InputError(f"{label}:2: the front matter is not valid YAML: {_first_line(error)}.") from error
    except RecursionError:
        raise InputError(f"{label}:2: the front matter is nested too deeply.") from None
    finally:
        if loader is not None:
            loader.dispose()
    return values, lines


def _key_lines(node: Any, label: str) -> dict[str, int]:
    """Return the line of each key, down to the second level.

    Raises:
        InputError: the front matter is not a mapping, or has a duplicate key.
    """
    import yaml

    if node is None:
        return {}
    if not isinstance(node, yaml.MappingNode):
        raise InputError(f"{label}:{2 + node.start_mark.line}: expected `key: value` lines in the front matter.")
    lines = dict[str, int]()
    pending = [("", node)]
    while pending:
        prefix, mapping = pending.pop()
        for key, value in mapping.value:
            name, line = f"{prefix}{key.value}", 2 + key.start_mark.line
            if name in lines:
                raise InputError(f"{label}:{line}: the key {name} is already set on line {lines[name]}.")
            lines[name] = line
            if isinstance(value, yaml.MappingNode) and not prefix:
                pending.append((f"{name}.", value))
    return lines


def _first_line(error: Exception) -> str:
    return (str(error).strip().splitlines() or ["unreadable"])[0].rstrip(".")
