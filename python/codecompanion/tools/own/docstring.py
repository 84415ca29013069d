"""Reads the descriptions of a function and its arguments from a docstring in Google, NumPy or reST style."""

from __future__ import annotations

import inspect
import re
from collections.abc import Iterator, Sequence

import msgspec

_SECTION = re.compile(
    r"(Args|Arguments|Parameters|Params|Returns?|Yields?|Raises|Examples?|Notes?|Attributes|See Also|Warnings?):?\s*"
)
_ARGUMENTS = ("Args", "Arguments", "Parameters", "Params")
_GOOGLE = re.compile(r"\*{0,2}\b(\w++)\s*+(?:\([^)]*\))?\s*+:\s*(.*)")
_NUMPY = re.compile(r"\*{0,2}(\w+)\s*(?::.*)?")
_REST = re.compile(r":(param|parameter|arg|argument)\s+(?:[^:]*\s)?(\w+):\s*(.*)")
_REST_FIELD = re.compile(r":\w[\w ]*:")


class Described(msgspec.Struct, frozen=True):
    """The description in a docstring: the text before the sections, and the descriptions of arguments."""

    text: str
    arguments: dict[str, str]


def read_docstring(docstring: str | None) -> Described:
    """Parse a docstring; return empty descriptions if there is none."""
    lines = inspect.cleandoc(docstring or "").splitlines()
    text, found = list[str](), dict[str, str]()
    section, body = "", list[str]()
    for number, line in enumerate(lines):
        name = _section_at(lines, number)
        if name:
            found |= dict(_arguments(section, body))
            section, body = name, []
        elif section or _REST_FIELD.match(line):
            section = section or "rest"
            body.append(line)
        else:
            text.append(line)
    found |= dict(_arguments(section, body))
    return Described("\n".join(text).strip(), found)


def _section_at(lines: Sequence[str], number: int) -> str:
    """Return the name of the section that starts at a line: `Args:`, or `Parameters` above a line of dashes."""
    match = _SECTION.fullmatch(lines[number])
    if match is None:
        return ""
    following = lines[number + 1] if number + 1 < len(lines) else ""
    is_ruled = set(following.strip()) == {"-"}
    return match[1] if lines[number].rstrip().endswith(":") or is_ruled else ""


def _arguments(section: str, body: Sequence[str]) -> Iterator[tuple[str, str]]:
    if section == "rest":
        yield from _in_rest(body)
    elif section in _ARGUMENTS:
        lines = [line for line in body if line.strip()]
        is_ruled = bool(lines) and set(lines[0].strip()) == {"-"}
        yield from _indented(lines[1:], _NUMPY) if is_ruled else _indented(lines, _GOOGLE)


def _indented(lines: Sequence[str], entry: re.Pattern[str]) -> Iterator[tuple[str, str]]:
    """Yield entries at the indentation of the first line; deeper lines continue the previous entry."""
    depth = len(lines[0]) - len(lines[0].lstrip()) if lines else 0
    name, words = "", list[str]()
    for line in lines:
        match = entry.fullmatch(line.strip()) if len(line) - len(line.lstrip()) <= depth else None
        if match is None:
            words.append(line.strip())
            continue
        if name and words:
            yield name, " ".join(words)
        name, words = match[1], [match[2]] if match.re is _GOOGLE and match[2] else []
    if name and words:
        yield name, " ".join(words)


def _in_rest(body: Sequence[str]) -> Iterator[tuple[str, str]]:
    name, words = "", list[str]()
    for line in body:
        match = _REST.match(line)
        if match is None and not _REST_FIELD.match(line):
            words.append(line.strip())
            continue
        if name:
            yield name, " ".join(filter(None, words))
        name, words = (match[2], [match[3]]) if match else ("", [])
    if name:
        yield name, " ".join(filter(None, words))
