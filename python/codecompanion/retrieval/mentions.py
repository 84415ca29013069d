"""Finds mentions in the text of a message: `#{codebase}`, and files by `@path` (R-213).

The message is sent as typed. Fenced code and text between backticks contain no mentions: a pasted decorator is not a
file. Pure: the caller, which can read the disk, checks which names are files.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator
from typing import Literal

import msgspec

from codecompanion.formats.regex import regex
from codecompanion.model.gathered import NamedLines

CODEBASE = "#{codebase}"
MAX_FILES = 200
"""Maximum number of files that a message may name: more than anyone types, and a limit for a pasted list of `@` names.
"""
_MAX_CHARS = 400
_FENCE = regex(r" {0,3}(`{3,}|~{3,})([^\n]{0,200})")
_INLINE = regex(r"`[^`\n]+`")
_QUOTED = rf'"([^"\n]{{1,{_MAX_CHARS}}})"((?:[:#]L?\d[\dLC:-]{{0,40}})?)'
_FILE = regex(rf'(?<![\w@./\\-])@(?:{_QUOTED}|((?:\\ |[^\s"<>|(){{}}\[\],;@]){{1,{_MAX_CHARS}}}))')
_TICKED = regex(rf"(?<![\w@./\\`-])@`(?=[^`\n]{{0,{_MAX_CHARS}}}[./])([^`\"\n]{{1,{_MAX_CHARS}}})`")
"""Matches a path in backticks after `@`; a word without a dot or slash is a decorator or a person."""
_ITEM = r"(?<![\w\\#$/])#\{\s*[A-Za-z][\w-]{0,40}\s*(?::[^{}\n]{0,400})?\}"
_TOOLS = r"(?<![\w@`{])@\{[\w:.-]{1,80}\}"
_MENTION = regex(f"{_TICKED.pattern}|{_INLINE.pattern}|{_ITEM}|{_TOOLS}|{_FILE.pattern}")
"""Matches everything that may be a mention; text between backticks is matched too, so that it can be skipped."""
_MAX_LINE = 2_000
"""Maximum number of characters before a mention in which an opening quote is searched for."""
_TRAILING = ".,:;!?'’”*_"
_LINES = regex(r"(?::L?(\d{1,9})(?:-L?(\d{1,9})|:\d{1,9})?|#L(\d{1,9})(?:C\d{1,9})?(?:-L?(\d{1,9})(?:C\d{1,9})?)?)$")
"""Matches a line range after a file name: `:10`, `:10-20`, `:10:5` with a column, `#L10-L20` as written by code hosts.
"""


class Mentions(msgspec.Struct, frozen=True):
    """Mentions in a message: the whole project, and names that may be files, in order, each once.

    `lines`: the line ranges of the names that have any, in order; all other names stand for whole files. `beyond`: the
    number of names left out of `files` because there are more than `MAX_FILES`.
    """

    codebase: bool = False
    files: tuple[str, ...] = ()
    lines: tuple[NamedLines, ...] = ()
    beyond: int = 0

    def __bool__(self) -> bool:
        """Return whether anything is mentioned."""
        return self.codebase or bool(self.files)


NONE = Mentions()


def mentions_in(text: str) -> Mentions:
    """Return the mentions in a message; costs almost nothing if the text contains neither `@` nor `#{`."""
    if "@" not in text and "#{" not in text:
        return NONE
    said = prose_of(text)
    found = dict.fromkeys(_named(*parts) for parts in _FILE.findall(said))
    every = dict.fromkeys(one.name for one in found if one.name)
    names = tuple(every)[:MAX_FILES]
    in_parts = set(names) - {one.name for one in found if one.start < 0}
    lines = tuple(one for one in found if one.name in in_parts)
    return Mentions(CODEBASE in said.lower(), names, lines, len(every) - len(names))


def prose_of(text: str) -> str:
    """Return a message's prose, without fenced code and text between backticks."""
    return _INLINE.sub(" ", _TICKED.sub(r'@"\1"', _without_fenced(text)))


def asked_words(text: str, files: Collection[str]) -> str:
    """Return a message's text without its mentions: `#{buffer}`, `@{files}`, and `@path` of `files`.

    Mentions say where to look or which tool to use; they are not search terms. Code is unchanged, and so is a name
    after `@` that is not a file: it may be a decorator. Without mentions, the text is returned unchanged.
    """
    if "@" not in text and "#{" not in text:
        return text
    known = frozenset(files)
    lines = [line if is_code else _without_mentions(line, known) for line, is_code in _lines_of(text)]
    return "\n".join(lines).strip()


def _without_mentions(line: str, files: frozenset[str]) -> str:
    """Return a line of prose without its mentions, or the line itself if it has none."""

    def rest(found: re.Match[str]) -> str:
        ticked, quoted, after, bare = found.groups(default="")
        if ticked or quoted or bare:
            name = place_of(ticked) if ticked else _named(quoted, after, bare)
            return bare[len(bare.rstrip(_TRAILING)) :] if name.name in files else found[0]
        is_code = found[0].startswith("`") or is_in_string(line, found.start())
        return found[0] if is_code else ""

    left = _MENTION.sub(rest, line)
    return line if left == line else " ".join(left.split())


def is_in_string(text: str, at: int) -> bool:
    """Return whether the position is inside a double-quoted string on its line: `puts "Hello #{name}"`."""
    start = max(text.rfind("\n", 0, at) + 1, at - _MAX_LINE)
    return text.count('"', start, at) % 2 == 1


def _without_fenced(text: str) -> str:
    """Return the text without fenced code."""
    return "\n".join(line for line, is_code in _lines_of(text) if not is_code)


def _lines_of(text: str) -> Iterator[tuple[str, bool]]:
    """Yield the lines of a string, and whether each is fenced code; an unclosed fence runs to the end of the text."""
    fence = ""
    for line in text.split("\n"):
        found = _FENCE.match(line)
        yield line, bool(fence or found)
        if found and not fence:
            fence = found[1]
        elif found and found[1].startswith(fence) and not found[2].strip():
            fence = ""


def _named(quoted: str, after: str, bare: str) -> NamedLines:
    """Return a name without trailing punctuation, and its line range (-1 = none)."""
    name = quoted + after if quoted else bare.replace("\\ ", " ").rstrip(_TRAILING)
    place = _LINES.search(name)
    if place is None:
        return NamedLines(quoted or name, -1, -1)
    start, end = place[1] or place[3], place[2] or place[4]
    return NamedLines(name[: place.start()].rstrip("" if quoted else _TRAILING), int(start), int(end or start))


def written_files(text: str) -> Iterator[tuple[str, str]]:
    """Yield file mentions as written, including those in code, each with its file name: `@a.py:3`, `a.py`."""
    for pattern in (_FILE, _TICKED):
        for found in pattern.finditer(text):
            parts = found.groups(default="")
            name = _named(*parts) if len(parts) > 1 else place_of(parts[0])
            if name.name:
                yield found[0], name.name


def place_of(name: str) -> NamedLines:
    """Split `a.py:10-20` into a path and its lines (-1 = none)."""
    return _named(name, "", "")


def wants_code(enabled: bool | Literal["auto"], always: bool, mentions: Mentions, files: tuple[str, ...]) -> bool:
    """Return whether to gather code for a message with these mentions; `files` are the mentioned files that exist.

    `always`: the policy gathers for every message (R-201); otherwise a message must ask for code.
    """
    return enabled is True or (enabled == "auto" and (always or mentions.codebase or bool(files)))
