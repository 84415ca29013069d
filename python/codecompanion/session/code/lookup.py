"""Looks up definitions, uses and lines of text in a project, for the `code_search` tool."""

from __future__ import annotations

import re
import sqlite3
from collections.abc import Callable, Iterator, Sequence
from typing import Literal

from codecompanion.formats.regex import regex
from codecompanion.model.found_code import FoundCode, SearchOutcome
from codecompanion.session.code.search_options import SearchOptions
from codecompanion.session.code.searcher import CodeSearcher, is_below
from codecompanion.store.code_index import search

Kind = Literal["any", "definition", "reference", "text"]

MAX_LINES_OF_A_FILE = 20
MAX_FILES_READ = 400
_NAME = regex(r"\w+")
_EXACT, _LINE = 1.0, 0.5


def look_up(searcher: CodeSearcher, query: str, kind: Kind, below: str, limit: int) -> SearchOutcome:
    """Return at most `limit` locations below the path `below` for a question, a name or a string. Blocks.

    If a name has no definition, it is searched for as a question, so that a slightly misspelled name still yields
    results.
    """
    options = SearchOptions(top_k=limit, below=below, with_common=kind == "any", beside_hits=False)
    if kind == "any":
        return searcher.search(query, options)
    not_used = list[str]()
    with searcher.opened(not_used) as connection:
        if kind == "definition":
            results = _definitions(searcher, connection, query, below, limit)
        elif kind == "reference":
            results = _references(searcher, connection, query, below, limit)
        else:
            results = _lines(searcher, connection, query, _holds_text(query), below, limit)
    if kind == "definition" and not results:
        return searcher.search(query, options)
    return SearchOutcome(results, "fts" if kind == "definition" else "terms", not_used=tuple(not_used))


def _definitions(
    searcher: CodeSearcher, connection: sqlite3.Connection | None, query: str, below: str, limit: int
) -> tuple[FoundCode, ...]:
    names = _names(query)
    rows = search.find_definitions(connection, names) if connection and names else []
    found = list[FoundCode]()
    for row in sorted(rows, key=lambda row: names.index(row.name)):
        path = searcher.words.paths.get(row.file)
        lines = _lines_of(searcher, path)
        if path is not None and lines is not None and is_below(path, below) and row.start <= len(lines):
            end = min(row.end, len(lines))
            symbol = f"{row.parent}.{row.name}" if row.parent else row.name
            text = "\n".join(lines[row.start - 1 : end])
            found.append(FoundCode(path, row.start, end, _EXACT, "fts", symbol, text, row.kind))
    return tuple(found[:limit])


def _references(
    searcher: CodeSearcher, connection: sqlite3.Connection | None, query: str, below: str, limit: int
) -> tuple[FoundCode, ...]:
    names = _names(query)
    if not names:
        return ()
    name = names[-1]
    uses = re.compile(rf"(?<!\w){re.escape(name)}(?!\w)")
    defined = {
        (searcher.words.paths.get(row.file), row.line)
        for row in (search.find_definitions(connection, [name]) if connection else ())
    }
    found = _lines(searcher, connection, name, lambda line: uses.search(line) is not None, below, limit + len(defined))
    return tuple(one for one in found if (one.path, one.start) not in defined)[:limit]


def _lines(
    searcher: CodeSearcher,
    connection: sqlite3.Connection | None,
    words: str,
    matches: Callable[[str], bool],
    below: str,
    limit: int,
) -> tuple[FoundCode, ...]:
    """Return the matching lines of files that contain `words`, at most twenty per file."""
    every = sorted(path for path in searcher.words.all_paths() if is_below(path, below))
    paths = searcher.project.files_with([words.strip().lower()], every)[:MAX_FILES_READ]
    found = list[FoundCode]()
    for path in paths:
        for number in _matching(_lines_of(searcher, path) or (), matches):
            line = (_lines_of(searcher, path) or [])[number - 1]
            symbol = _symbol_at(searcher, connection, path, number)
            found.append(FoundCode(path, number, number, _LINE, "terms", symbol, line, "line"))
            if len(found) >= limit:
                return tuple(found)
    return tuple(found)


def _matching(lines: Sequence[str], matches: Callable[[str], bool]) -> Iterator[int]:
    numbers = (number for number, line in enumerate(lines, 1) if matches(line))
    for count, number in enumerate(numbers):
        if count == MAX_LINES_OF_A_FILE:
            return
        yield number


def _symbol_at(searcher: CodeSearcher, connection: sqlite3.Connection | None, path: str, line: int) -> str:
    file = searcher.words.ids.get(path)
    row = search.chunk_at(connection, file, line) if connection and file is not None else None
    return row.symbol if row else ""


def _lines_of(searcher: CodeSearcher, path: str | None) -> list[str] | None:
    text = None if path is None else searcher.project.read(path)
    return None if text is None else text.split("\n")


def _holds_text(query: str) -> Callable[[str], bool]:
    lowered = query.strip().lower()
    return lambda line: lowered in line.lower()


def _names(query: str) -> list[str]:
    """Return the names in `Class.method` or `a_function`, last name first, because it is the one asked for."""
    return list(dict.fromkeys(reversed(_NAME.findall(query))))
