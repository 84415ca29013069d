"""Splits a command line into simple commands if the shell does nothing more than start them. Pure.

`grep -n x a.py | head -5` contains two. The result is None if the shell does more: substitutions, variables, globs,
braces, redirections to files, assignments, background jobs, comments. Quotes and backslashes are allowed around literal
text, and so are `2>&1` and discarded output (`2>/dev/null`).
"""

from __future__ import annotations

import unicodedata

import msgspec

from codecompanion.formats.regex import regex

_ASSIGNMENT = regex(r"[A-Za-z_][A-Za-z0-9_]*\+?=")
_OPERATOR = regex(r"\|\||&&|\||;|\n")
_DISCARD = regex(r"(?:2>&1|[12]?> ?/dev/null|< ?/dev/null)(?=[ \t\n;&|]|\Z)")
_SPECIAL = frozenset(";&|<>()$`{}*?[]\n\r")
_LITERAL_AFTER_BACKSLASH = frozenset("()[]{}*?!.;$|&<>'\"\\#~^+-/=:, @%")


class SimpleCommand(msgspec.Struct, frozen=True):
    """A program with its arguments; `before` is the operator to its left ("" for the first command)."""

    words: tuple[str, ...]
    before: str = ""


def simple_commands(command: str) -> tuple[SimpleCommand, ...] | None:
    """Return the simple commands of a line, or None if the shell would do more than start them."""
    found: list[SimpleCommand] = []
    rest, before = command.strip(" \t\n"), ""
    while True:
        taken = _one(rest)
        if taken is None:
            return None
        words, end = taken
        found.append(SimpleCommand(words, before))
        if end == len(rest):
            return tuple(found)
        operator = _OPERATOR.match(rest, end)
        if operator is None:
            return None
        before, rest = operator.group(), rest[operator.end() :].lstrip(" \t\n")


def words(command: str) -> tuple[str, ...] | None:
    """Return the words of a line that consists of a single simple command, otherwise None."""
    found = simple_commands(command)
    return found[0].words if found is not None and len(found) == 1 else None


def _one(text: str) -> tuple[tuple[str, ...], int] | None:
    """Return the words of the first simple command and its end position."""
    found: list[str] = []
    word: str | None = None
    at = 0
    while at < len(text):
        char = text[at]
        if char in "'\"":
            quoted = _quoted(text, at)
            if quoted is None:
                return None
            word, at = (word or "") + quoted[0], quoted[1]
            continue
        if char in " \t" or _OPERATOR.match(text, at):
            if word is not None:
                found.append(word)
            word = None
            if char not in " \t":
                break
        elif word is None and (discard := _DISCARD.match(text, at)):
            at = discard.end()
            continue
        elif char == "\\":
            if text[at + 1 : at + 2] not in _LITERAL_AFTER_BACKSLASH:
                return None
            at += 1
            word = (word or "") + text[at]
        elif char in _SPECIAL or is_odd(char) or (word is None and char in "~#") or (char == "!" and not found):
            return None
        else:
            word = (word or "") + char
        at += 1
    if word is not None:
        found.append(word)
    if not found or not found[0] or _ASSIGNMENT.match(found[0]):
        return None
    return tuple(found), at


def _quoted(text: str, at: int) -> tuple[str, int] | None:
    """Return the text inside the quotes at `at`, and the position after them."""
    quote, found = text[at], ""
    at += 1
    while at < len(text) and text[at] != quote:
        char, after = text[at], text[at + 1 : at + 2]
        if char in "\n\r" or is_odd(char) or (quote == '"' and (char == "`" or (char == "$" and after not in '" |'))):
            return None
        if quote == '"' and char == "\\" and after in ("\\", '"', "$", "`"):
            at, char = at + 1, after
        elif quote == '"' and char == "\\" and (not after or is_odd(after) or after == "\n"):
            return None
        found += char
        at += 1
    return (found, at + 1) if at < len(text) else None


def is_odd(char: str) -> bool:
    """Return whether a character is invisible or an unusual space."""
    return char not in (" ", "\t") and unicodedata.category(char) in ("Cc", "Cf", "Cs", "Co", "Zs", "Zl", "Zp")
