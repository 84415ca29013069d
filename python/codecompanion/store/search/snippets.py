"""Makes snippets: the part of a message around the matched words, which are marked with « »."""

from __future__ import annotations

import contextlib
import re
import sqlite3
from collections.abc import Sequence

from codecompanion.formats.regex import regex
from codecompanion.model.messages import Message
from codecompanion.store.log.encoding import storable
from codecompanion.store.log.migrations import TOKENIZER
from codecompanion.store.search.parsed_question import Question

_TOKENS = 16
_CHARS = 160
_NEEDLE = regex(r'"([^"]+)"')


def make_snippets(messages: Sequence[Message], question: Question) -> list[str]:
    """Return a snippet of each message around the matched words, or its beginning if only a neighbour matches."""
    texts = [storable(message.text) for message in messages]
    expression = " OR ".join(f"({term.in_text})" for term in question.terms if term.in_text) or question.any_word
    marked: dict[int, str] = {}
    if expression:
        last = f' OR "{question.last_word}"*' if question.last_word else ""
        with contextlib.closing(sqlite3.connect(":memory:")) as scrap:
            scrap.execute(f"CREATE VIRTUAL TABLE hits USING fts5(text, tokenize='{TOKENIZER}')")
            scrap.executemany("INSERT INTO hits(rowid, text) VALUES (?, ?)", enumerate(texts))
            marked = dict(
                scrap.execute(
                    "SELECT rowid, snippet(hits, 0, '«', '»', '…', ?) FROM hits WHERE hits MATCH ?",
                    (_TOKENS, expression + last),
                )
            )
    needles = {needle for term in question.terms for needle in _NEEDLE.findall(term.in_names)}
    return [
        marked.get(number) or _around_names(texts[number] or _calls_of(message), needles)
        for number, message in enumerate(messages)
    ]


def _calls_of(message: Message) -> str:
    """Return the tool calls of a reply without text, in readable form."""
    return storable("\n".join(f"{call.name}({call.arguments})" for call in message.tool_calls))


def _around_names(text: str, needles: set[str]) -> str:
    """Return the excerpt around the first name that contains one of the words, or the beginning of the text."""
    wanted = sorted(needles, key=len, reverse=True)
    found = re.search("|".join(map(re.escape, wanted)), text, re.IGNORECASE) if wanted else None
    start = max(0, found.start() - _CHARS // 3) if found else 0
    piece = text[start : start + _CHARS]
    if wanted:
        piece = re.sub(f"(?:{'|'.join(map(re.escape, wanted))})+", lambda match: f"«{match[0]}»", piece, flags=re.I)
    return f"{'…' if start else ''}{piece}{'…' if start + _CHARS < len(text) else ''}"
