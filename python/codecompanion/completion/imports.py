"""Finds import statements outside the prompt window (R-257): verbatim, in file order, up to 1,000 characters.

The imports found by a parser can be passed as an argument. Without them, Python imports are found with `ast` if that
part of the file parses, and otherwise by pattern, as in other languages (`import_forms.toml`): a file rarely parses
while the user is typing.
"""

from __future__ import annotations

import ast
import re
import warnings
from collections.abc import Iterator, Sequence
from functools import cache, lru_cache
from pathlib import PurePosixPath

import msgspec

from codecompanion.completion.window import Window
from codecompanion.formats import typed
from codecompanion.formats.package_table import package_table
from codecompanion.formats.regex import regex
from codecompanion.model.code import ImportStatement

MAX_CHARS = 1_000
_MAX_LINES = 100
"""Maximum number of lines in a statement found by pattern."""

Lines = tuple[int, int]
"""The first and last line of a statement, 1-based."""

_WORD = regex(r"[^\W\d]\w*")
_PYTHON_FILES = (".py", ".pyi", ".pyw")
_PYTHON_IMPORT = regex(r"[ \t]*(?:from[ \t]+[\w.]+[ \t]+import\b|import[ \t]+\w)")
_PYTHON_BLOCK = regex(r"(?:if|elif|else|try|except|finally|with)\b")


class _Form(msgspec.Struct, frozen=True):
    """The patterns of import statements in some file types (`import_forms.toml`)."""

    files: tuple[str, ...]
    start: str
    end: str = ""


def imports_outside(
    path: str, window: Window, parsed: Sequence[ImportStatement] | None = None, *, max_chars: int = MAX_CHARS
) -> str:
    """Return the imports of the file that are not entirely in the window, each on its own line, or "" for none.

    Line endings match the file.

    `parsed`: the imports that a parser found in the whole file, or None if no parser was used. If they do not all fit,
    imports whose names are used in the window take precedence, and any that is too long is left out.
    """
    if not window.above and not window.below:
        return ""
    newline = _newline_of(window)
    found = (statement.replace("\r", "").replace("\n", newline) for statement in _outside(path, window, parsed))
    statements = [f"{statement}{newline}" for statement in dict.fromkeys(filter(None, found))]
    chosen = _chosen(statements, window, max_chars)
    return "".join(statement for statement in statements if statement in chosen)


def _newline_of(window: Window) -> str:
    """Return the line ending of the file's first line."""
    for text in (window.above, window.prefix, window.suffix):
        end = text.find("\n")
        if end >= 0:
            return "\r\n" if text[max(0, end - 1) : end] == "\r" else "\n"
    return "\n"


def _chosen(statements: list[str], window: Window, max_chars: int) -> set[str]:
    """Return the statements that fit, preferring those whose names are used in the window."""
    by_use = statements
    if sum(len(statement) for statement in statements) > max_chars:
        used = {*_WORD.findall(window.prefix), *_WORD.findall(window.suffix)}
        by_use = sorted(statements, key=lambda statement: used.isdisjoint(_WORD.findall(statement)))
    chosen, left = set(), max_chars
    for statement in by_use:
        if len(statement) <= left:
            chosen.add(statement)
            left -= len(statement)
    return chosen


def _outside(path: str, window: Window, parsed: Sequence[ImportStatement] | None) -> Iterator[str]:
    """Yield the imports that begin before the first whole line of the window or end after its last whole line."""
    shown = window.above + window.prefix + window.suffix
    first = window.above.count("\n") + (1 if window.above[-1:] in ("", "\n") else 2)
    last = shown.count("\n") + (1 if window.below[:1] in ("", "\n") else 0)
    if parsed is None:
        start = len(window.above) if window.above[-1:] in ("", "\n") else shown.find("\n", len(window.above)) + 1
        end = len(shown) if window.below[:1] in ("", "\n") else shown.rfind("\n")
        found = _find(path, shown + window.below, (start or len(shown), end))
    else:
        found = (((one.start, one.end), one.text.strip()) for one in parsed)
    yield from (text for (start, end), text in found if start < first or end > last)


def _find(path: str, text: str, shown: tuple[int, int]) -> Iterator[tuple[Lines, str]]:
    """Yield import statements and their lines, including at least all that begin outside `shown` (text offsets)."""
    ending = PurePosixPath(path).suffix.lower()
    if ending in _PYTHON_FILES:
        yield from _find_python(text, shown)
    elif form := _forms().get(ending):
        yield from _find_by_form(text, re.compile(rf"^(?:{form.start})", re.M), re.compile(form.end, re.M))


def _find_python(text: str, shown: tuple[int, int]) -> Iterator[tuple[Lines, str]]:
    """Yield module-level imports, including those in blocks such as `if TYPE_CHECKING:`."""
    lines = (*_lines_with(text, "import", 0, shown[0]), *_lines_with(text, "import", shown[1], len(text)))
    wanted = [
        start
        for start in dict.fromkeys(lines)
        if _PYTHON_IMPORT.match(text, start) and (not text[start].isspace() or _is_in_block(text, start))
    ]
    if not wanted:
        return
    # The text after the last import, including the line being typed, may not parse.
    region = text[: _python_end(text, wanted[-1])]
    found = _parsed_imports(region)
    if found is not None:
        yield from found
        return
    for position in wanted:
        statement = text[position : _python_end(text, position)].strip()
        if _parse(statement) is not None and not _is_quoted(text, position):
            start = text.count("\n", 0, position) + 1
            yield (start, start + statement.count("\n")), statement


def _lines_with(text: str, word: str, start: int, end: int) -> Iterator[int]:
    """Yield the start offset of each line that contains the word, ten times faster than with a whole-line pattern."""
    found = text.find(word, start, end)
    while found >= 0:
        yield text.rfind("\n", 0, found) + 1
        found = text.find(word, found + len(word), end)


@lru_cache(maxsize=8)
def _parsed_imports(region: str) -> tuple[tuple[Lines, str], ...] | None:
    """Return the imports in `region`, or None if it does not parse; cached, because a file's imports rarely change."""
    tree = _parse(region)
    return None if tree is None else tuple(_from_tree(tree.body, region.split("\n")))


def _python_end(text: str, start: int) -> int:
    """Return the end of the statement: the end of the line with its closing bracket, or of its last continued line."""
    end = _line_end(text, start)
    if "(" in text[start:end] and ")" not in text[start:end]:
        closing = text.find(")", end)
        return end if closing < 0 else _line_end(text, closing)
    while text[start:end].endswith("\\") and end < len(text):
        end = _line_end(text, end + 1)
    return end


def _line_end(text: str, position: int) -> int:
    end = text.find("\n", position)
    return len(text) if end < 0 else end


def _parse(text: str) -> ast.Module | None:
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return ast.parse(text)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return None


def _from_tree(body: Sequence[ast.stmt], lines: list[str]) -> Iterator[tuple[Lines, str]]:
    for node in body:
        match node:
            case ast.Import() | ast.ImportFrom():
                end = node.end_lineno or node.lineno
                text = "\n".join(lines[node.lineno - 1 : end])
                yield (node.lineno, end), text.strip()
            case ast.If(body=inner, orelse=other):
                yield from _from_tree((*inner, *other), lines)
            case ast.Try(body=inner, handlers=handlers, orelse=other, finalbody=final):
                handled = (statement for handler in handlers for statement in handler.body)
                yield from _from_tree((*inner, *handled, *other, *final), lines)
            case ast.With(body=inner):
                yield from _from_tree(inner, lines)


def _is_in_block(text: str, position: int) -> bool:
    """Return whether the last unindented line above `position` begins a block that runs on import."""
    while position > 0:
        position = text.rfind("\n", 0, position - 1) + 1
        if text[position : position + 1].strip():
            return _PYTHON_BLOCK.match(text, position) is not None
    return False


def _is_quoted(text: str, position: int) -> bool:
    return any(text.count(quotes, 0, position) % 2 for quotes in ('"""', "'''"))


def _find_by_form(text: str, begin: re.Pattern[str], end: re.Pattern[str]) -> Iterator[tuple[Lines, str]]:
    done = 0
    for match in begin.finditer(text):
        if match.start() < done:
            continue
        start = text.count("\n", 0, match.start()) + 1
        line_end = _line_end(text, match.start())
        lines = [text[match.start() : line_end].rstrip("\r")]
        while end.pattern and not end.search(lines[-1]) and line_end < len(text) and len(lines) < _MAX_LINES:
            next_end = _line_end(text, line_end + 1)
            lines.append(text[line_end + 1 : next_end].rstrip("\r"))
            line_end = next_end
        done = line_end
        if not end.pattern or end.search(lines[-1]):
            yield (start, start + len(lines) - 1), "\n".join(lines).strip()


@cache
def _forms() -> dict[str, _Form]:
    forms = typed.convert(package_table("completion/import_forms.toml")["form"], list[_Form])
    return {ending: form for form in forms for ending in form.files}
