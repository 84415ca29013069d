"""`/symbols`: attaches the outline of a file: its definitions with their lines, found by tree-sitter."""

from __future__ import annotations

from codecompanion.errors import InputError
from codecompanion.formats.cutting import cut_line
from codecompanion.workspace.syntax.languages import language_of
from codecompanion.workspace.syntax.parse import parse

MAX_SYMBOLS = 2_000
_MAX_LINE = 160


def outline_of(path: str, text: str) -> str:
    """Return a line for each definition, indented below its parent. Blocks.

    Raises:
        InputError: the language is unknown, or the file has no definitions.
    """
    parsed = parse(text, language_of(path, text[:200].encode()))
    if not parsed.language:
        raise InputError(f"No outline of {path}: its language is not known. /file attaches it whole.")
    if not parsed.definitions:
        raise InputError(f"No outline of {path}: nothing is defined in it. /file attaches it whole.")
    shown = sorted(parsed.definitions, key=lambda one: (one.start, -one.end))
    lines = [
        f"{'  ' * (one.parent.count('.') + 1 if one.parent else 0)}"
        f"{cut_line(one.signature or one.name, _MAX_LINE)}  [{one.start}-{one.end}]"
        for one in shown[:MAX_SYMBOLS]
    ]
    if len(shown) > MAX_SYMBOLS:
        lines.append(f"… {len(shown) - MAX_SYMBOLS:,} more")
    return "\n".join(lines) + "\n"
