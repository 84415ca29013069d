"""Extracts additional search terms from a message: words inside names, letter pairs, calls and paths.

`parseTable` is also found by "parse table". Chinese, Japanese and Korean are written without spaces between words, or
with endings joined to them, so they are found by every pair of adjacent letters. The content of a tool call (the file
that was read, the command that was run) is not in the text of any message.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from codecompanion.formats.regex import regex
from codecompanion.model.messages import Message, ToolCall

MAX_CALL_CHARS = 2_000
"""Maximum number of characters of a call's arguments to index: enough to find a written file by its path and beginning.
"""

_LETTERS = "\u1100-\u11ff\u3040-\u30ff\u3105-\u312f\u3130-\u318f\u31f0-\u31ff\u3400-\u4dbf\u4e00-\u9fff\uac00-\ud7af"
_LETTERS += "\uf900-\ufaff\uff66-\uff9d\U00020000-\U0003134f"
_UNSPACED = regex(f"[{_LETTERS}]+")
_NAME = regex(r"[^\W_]+")
_CASE_CHANGE = regex(r"[a-z0-9][A-Z]|[A-Z][A-Z][a-z]")
_PIECE = regex(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+|[0-9]+")


def inner_words(message: Message, answered: ToolCall | None = None) -> str:
    """Return the additional search terms of a message, each once; "" for most prose.

    `answered` is the call that this message answers, if any; its terms are included too.
    """
    text = message.text
    words = dict.fromkeys(find_inner(text))
    for source in (message.path or "", *_call_texts([*message.tool_calls, *([answered] if answered else [])])):
        words |= dict.fromkeys(word.lower() for word in _NAME.findall(source))
        words |= dict.fromkeys(find_inner(source))
    return " ".join(words)


def find_inner(text: str) -> Iterator[str]:
    """Yield the words inside mixed-case names, and the letter pairs of text written without spaces."""
    if _CASE_CHANGE.search(text):
        for name in dict.fromkeys(_NAME.findall(text)):
            if name.isascii() and _CASE_CHANGE.search(name):
                yield from pieces_of(name)
    if not text.isascii():
        for run in _UNSPACED.findall(text):
            yield from pairs_of(run)


def pieces_of(name: str) -> list[str]:
    """Return the words of a mixed-case name in lower case: `parseHTTPTable2` → parse, http, table, 2."""
    pieces = [piece.lower() for piece in _PIECE.findall(name)]
    return pieces if len(pieces) > 1 else []


def unspaced_runs(text: str) -> list[str]:
    """Return the runs of letters of scripts without spaces between words."""
    return [] if text.isascii() else _UNSPACED.findall(text)


def pairs_of(run: str) -> list[str]:
    """Return every pair of adjacent letters; a single letter is returned as it is."""
    return [run[at : at + 2] for at in range(max(1, len(run) - 1))]


def _call_texts(calls: Iterable[ToolCall]) -> Iterator[str]:
    for call in calls:
        yield call.name
        yield call.arguments[:MAX_CALL_CHARS]
