"""Converts instructions in plain words to tool calls for the offline adapter. Pure; no model, no guessing.

A message is split into clauses at line endings, `;`, "then", and "and" before a verb. Text in quotes, backticks or a
fence is taken literally. Read-only clauses run together in one round; a clause that changes something, and everything
after a "then", gets its own round.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import msgspec

from codecompanion.formats.regex import regex

Arguments = dict[str, Any]


class Instruction(msgspec.Struct, frozen=True):
    """A tool call to make. `looks_only`: the call is read-only and may run in parallel with others."""

    tool: str
    arguments: Arguments
    looks_only: bool


class Plan(msgspec.Struct, frozen=True):
    """The plan for a message: rounds of calls in order, and the clauses that were not understood."""

    rounds: tuple[tuple[Instruction, ...], ...]
    not_understood: tuple[str, ...]


_LITERAL = regex(
    r"```[^\n`]*\n(?P<fence>.*?)\n?```|`(?P<tick>[^`\n]+)`|\"(?P<quote>[^\"\n]*)\"|(?<!\w)'(?P<single>[^'\n]+)'(?!\w)",
    re.DOTALL,
)
_MAX_CLAUSE_LENGTH = 1_000
"""Maximum characters in an instruction; the patterns below take quadratic time."""
_TOKEN = regex("\ue000(\\d+)\ue001")
_VERBS = r"read|open|show|look|search|grep|find|list|replace|change|create|write|run|execute|delete|in|get|check"
_GAP = r"(?:,|(?<!\s))\s+"
_BORDER = regex(rf"(?P<then>{_GAP}(?:and\s+)?then\s+)|\n+|;|{_GAP}and\s+(?=(?:{_VERBS})\b)", re.IGNORECASE)
_BLOCK_BELOW = regex("(:|\\bwith)[ \t]*\n+(?=\ue000)", re.IGNORECASE)
_POLITE = regex(r"^(?:[-*]\s+|\d+[.)]\s+)?(?:please|can you|could you|now|first|finally|also)[,\s]+", re.IGNORECASE)
_LIST_MARK = regex(r"^(?:[-*]|\d+[.)])\s+")


def plan(text: str) -> Plan:
    """Return the rounds of tool calls that a message requests, possibly none."""
    literals: list[str] = []

    def hide(match: re.Match[str]) -> str:
        literals.append(next(group for group in match.groups() if group is not None))
        return f"\ue000{len(literals) - 1}\ue001"

    # Text that already contains our own markers cannot be parsed safely.
    hidden = _LITERAL.sub(hide, text.replace("\ue000", " ").replace("\ue001", " "))
    hidden = _BLOCK_BELOW.sub(r"\1 ", hidden)
    rounds: list[list[Instruction]] = []
    not_understood: list[str] = []
    new_round = True
    for clause, after_then in _clauses(hidden):
        found = _understand(clause, literals)
        if not found:
            not_understood.append(_show(clause, literals))
            continue
        for instruction in found:
            alone = after_then or new_round or not instruction.looks_only or not rounds[-1][-1].looks_only
            if alone:
                rounds.append([])
            rounds[-1].append(instruction)
            new_round, after_then = False, False
    return Plan(tuple(tuple(instructions) for instructions in rounds), tuple(not_understood))


def _clauses(text: str) -> list[tuple[str, bool]]:
    """Return a (clause, whether "then" precedes it) pair for each clause."""
    clauses: list[tuple[str, bool]] = []
    start, after_then = 0, False
    for border in _BORDER.finditer(text):
        clauses.append((text[start : border.start()], after_then))
        after_then = border["then"] is not None
        start = border.end()
    clauses.append((text[start:], after_then))
    tidy = ((re.sub(r"^then\s+", "", clause.strip(), flags=re.IGNORECASE), then) for clause, then in clauses)
    return [(clause, then) for clause, then in tidy if clause]


def _understand(clause: str, literals: list[str]) -> list[Instruction]:
    if len(clause) > _MAX_CLAUSE_LENGTH:
        return []
    clause = _POLITE.sub("", _LIST_MARK.sub("", clause.strip())).strip()
    for pattern, make in _FORMS:
        match = pattern.fullmatch(clause)
        if match:
            words = {name: _show(value, literals) for name, value in match.groupdict().items() if value is not None}
            return make(words)
    return []


def _show(text: str, literals: list[str]) -> str:
    """Restore the literals in the text; strip sentence punctuation from bare words."""
    text = text.strip()
    whole = _TOKEN.fullmatch(text)
    if whole:
        return literals[int(whole[1])]
    shown = _TOKEN.sub(lambda match: literals[int(match[1])], text)
    return shown.rstrip(",!?").removesuffix(".") if len(shown) > 1 else shown


def _read(words: dict[str, str]) -> list[Instruction]:
    paths = [path for path in re.split(r",\s*(?:and\s+)?|(?<!\s)\s+and\s+", words["path"]) if path]
    instructions: list[Instruction] = []
    for path in paths:
        name, colon, lines = path.rpartition(":")
        span = re.fullmatch(r"(\d+)(?:-(\d+))?", lines) if colon else None
        first = words.get("first") or (span[1] if span else None)
        last = words.get("last") or (span[2] if span else None) or first
        arguments: Arguments = {"path": name if span else path}
        if first is not None and last is not None:
            arguments |= {"start_line": int(first), "end_line": int(last)}
        instructions.append(Instruction("read_file", arguments, True))
    return instructions


def _search(words: dict[str, str]) -> list[Instruction]:
    place = {"path": words["place"]} if words.get("place") else {}
    return [Instruction("grep_search", {"query": words["text"], **place}, True)]


def _diagnostics(words: dict[str, str]) -> list[Instruction]:
    return [Instruction("get_diagnostics", {"path": words["path"]} if words.get("path") else {}, True)]


def _edit(words: dict[str, str]) -> list[Instruction]:
    arguments = {"path": words["path"], "old_text": words["old"], "new_text": words["new"]}
    return [Instruction("insert_edit", arguments, False)]


def _create(words: dict[str, str]) -> list[Instruction]:
    content = words.get("content", "")
    return [Instruction("create_file", {"path": words["path"], "content": content.rstrip("\n") + "\n"}, False)]


def _run(words: dict[str, str]) -> list[Instruction]:
    return [Instruction("run_command", {"command": words["command"]}, False)]


def _delete(words: dict[str, str]) -> list[Instruction]:
    return [Instruction("delete_file", {"path": words["path"]}, False)]


def _find(words: dict[str, str]) -> list[Instruction]:
    return [Instruction("file_search", {"pattern": words["pattern"]}, True)]


def _form(pattern: str) -> re.Pattern[str]:
    return regex(pattern, re.IGNORECASE | re.DOTALL)


_PATH = "[^\\s]+"
_FORMS: tuple[tuple[re.Pattern[str], Callable[[dict[str, str]], list[Instruction]]], ...] = (
    (
        _form(rf"(?:show|list|get|check)(?: me)?(?: the)? diagnostics(?: (?:of|for|in) (?P<path>{_PATH}))?[.!?]?"),
        _diagnostics,
    ),
    (_form(rf"(?:find|list)(?: all)?(?: the)? files?(?: named| matching| like)? (?P<pattern>{_PATH})"), _find),
    (_form(rf"(?:search|grep|look) for (?P<text>.+?)(?: in (?P<place>{_PATH}))?"), _search),
    (_form(rf"replace (?P<old>.{{1,400}}?) (?:with|by) (?P<new>.{{0,400}}?) in (?P<path>{_PATH})"), _edit),
    (_form(rf"change (?P<old>.{{1,400}}?) to (?P<new>.{{0,400}}?) in (?P<path>{_PATH})"), _edit),
    (_form(rf"in (?P<path>{_PATH}?),? (?:change|replace) (?P<old>.+?) (?:to|with|by) (?P<new>.*)"), _edit),
    (
        _form(
            rf"(?:create|write)(?: the| a)?(?: new)?(?: file)? (?P<path>{_PATH})"
            r"(?: (?:with|containing)(?: the)?(?: content| text)?:? (?P<content>.*))?"
        ),
        _create,
    ),
    (_form(r"(?:run|execute)(?: the)?(?: shell)?(?: command)?:? (?P<command>.+)"), _run),
    (_form(rf"delete(?: the)?(?: file)? (?P<path>{_PATH})"), _delete),
    (
        _form(
            r"(?:read|open|look at|show(?: me)?)(?: the)?(?: files?)?"
            rf" (?P<path>{_PATH}(?:(?:, | and |, and ){_PATH})*?)"
            r"(?:,? lines? (?P<first>\d+)(?:\s*(?:-|–|to)\s*(?P<last>\d+))?)?[.!?]?"
        ),
        _read,
    ),
)
