"""Renders selected snippets for the model: grouped by file, with line numbers in headings, fenced (R-250)."""

from __future__ import annotations

from collections.abc import Sequence

from codecompanion.formats.fencing import fenced
from codecompanion.formats.plural import counted
from codecompanion.formats.regex import regex
from codecompanion.model.gathered import Selection, Snippet
from codecompanion.model.messages import GatheredPiece
from codecompanion.retrieval.filler_code import FILLER, NOT_WORTH_IT

NOTHING = "No relevant code context found."
_CONTROL = regex(r"[\x00-\x1f\x7f\u0085\u2028\u2029`]")


def render_selection(selection: Selection) -> str:
    """Return the selection as text, with a note if snippets were omitted or truncated."""
    parts = [render_snippets(selection.snippets) or NOTHING]
    if missing := sum(one.why not in (FILLER, NOT_WORTH_IT) for one in selection.dropped):
        left_out = counted(missing, "more snippet")
        parts.append(f"\n_Note: {left_out} omitted: the code budget is used up._")
    elif any(one.is_cut for one in selection.snippets):
        parts.append("\n_Note: a file is cut where marked: the code budget is used up._")
    return "\n".join(parts)


def render_snippets(snippets: Sequence[Snippet]) -> str:
    """Return the snippets as text, grouped by file: files in the order of first appearance, snippets in line order."""
    by_file = dict[str, list[Snippet]]()
    for snippet in snippets:
        by_file.setdefault(snippet.path, []).append(snippet)
    parts = list[str]()
    for path, group in by_file.items():
        parts.append(file_heading(path))
        for snippet in sorted(group, key=lambda one: one.start):
            parts += [snippet_heading(snippet), fenced(snippet.text)]
    return "\n".join(parts)


def frame_chars(snippet: Snippet) -> int:
    """Return the number of characters that rendering adds to a file's only snippet, including the last line break."""
    return len(render_snippets((snippet,))) + 1 - len(snippet.text)


def heading_chars(path: str) -> int:
    """Return the length, in characters, of the line above a file's snippets."""
    return len(file_heading(path)) + 1


def shown(name: str) -> str:
    """Return a path or name escaped for a heading: no line break can start a line, no backtick can end code."""
    return _CONTROL.sub(lambda found: f"\\x{ord(found.group()):02x}", name)


def file_heading(path: str) -> str:
    """Return the line above the snippets of a file."""
    return f"### File: {shown(path)}"


def snippet_heading(snippet: Snippet | GatheredPiece) -> str:
    """Return the heading above a snippet: its type, name and lines."""
    lines = f"lines {snippet.start}-{snippet.end}"
    return f"#### {snippet.kind} `{shown(snippet.name)}` ({lines})" if snippet.name else f"#### {lines}"
