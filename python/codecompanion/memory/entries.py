"""Parses the entries of the memory: the user's own, the model's notes, and compaction summaries (R-241, R-447).

A user's file has one entry for each heading `## [category] title`, or a single entry if it has no headings. Any other
file is one entry: its first line is the title if it is a heading, and a comment below the title names the chat of a
summary.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Literal

import msgspec

from codecompanion.formats.cutting import cut_line
from codecompanion.formats.regex import regex
from codecompanion.model.messages import Source

Origin = Literal["you", "model", "compaction"]
Scope = Literal["user", "project"]
MAX_FILE_CHARS = 200_000
MAX_TITLE_CHARS = 120
_HEADING = regex(r"^##[ \t]+(?:\[([^\]\n]{1,80})\][ \t]*)?(.*)$")
_COMMENT = regex(r"^<!-- (?:summary|flush) of chat (\S{1,200}),[^\n]*-->$")
_IS_HEADING = regex(r"^\s*(?:#|(?:\d+[.)]\s*)?\*\*[^*]+\*\*:?\s*$|[A-Z][\w ]{1,30}:\s*$)")
_STAMP = regex(r"^- \[flush \d\d:\d\d\] ", re.MULTILINE)


class Memory(msgspec.Struct, frozen=True):
    """An entry of a file that the user writes. `scope`: the user's or the project's file; `line` is 1-based."""

    category: str
    title: str
    content: str
    scope: Scope
    line: int = 1


class Entry(msgspec.Struct, frozen=True, kw_only=True):
    """An entry of any origin. `scope` "user": it applies to every project.

    `path` is the file, `line` where the entry begins (1-based), `time` when the file was written (seconds since the
    epoch). `name` is its path for the `memory` tool, or "" if the tool cannot view it. `chat` is the chat that a
    summary comes from. `is_private`: no model sees it (R-449). `is_ours`: the plugin writes the file. `sources`:
    sources of its text that restrict grants.
    """

    origin: Origin
    scope: Scope
    title: str
    text: str
    time: float
    path: str
    line: int = 1
    name: str = ""
    chat: str = ""
    is_private: bool = False
    is_ours: bool = False
    sources: tuple[Source, ...] = ()


def parse_memories(text: str, scope: Scope) -> tuple[Memory, ...]:
    """Return the entries of a user's file, without those that have neither text nor title."""
    found, category, title, lines = list[Memory](), "", "", list[str]()
    skipped = text[:-MAX_FILE_CHARS].count("\n")
    begins = skipped + 1

    def end_entry() -> None:
        content = "\n".join(lines).strip()
        if title or content:
            found.append(Memory(category, title, content, scope, begins))
        lines.clear()

    for number, line in enumerate(text[-MAX_FILE_CHARS:].split("\n"), skipped + 1):
        if heading := _HEADING.match(line):
            end_entry()
            category, title, begins = (heading[1] or "").strip(), heading[2].strip(), number
        elif not line.startswith("# "):
            lines.append(line)
    end_entry()
    return tuple(found)


def title_of(memory: Memory) -> str:
    """Return the title of a user's entry with its category, or its first line."""
    category = f"[{memory.category}] " if memory.category else ""
    return f"{category}{memory.title or first_line(memory.content)}"


def read_note(text: str, name: str) -> tuple[str, str, str]:
    """Return the title, text and chat of a file that is one entry; without a heading, the title is `name`."""
    lines = text[:MAX_FILE_CHARS].split("\n")
    title, chat, rest = name, "", lines
    if lines[0].startswith("# "):
        title, rest = lines[0][2:].strip() or name, lines[1:]
    for place, line in enumerate(rest[:3]):
        if comment := _COMMENT.match(line.strip()):
            chat, rest = comment[1], rest[:place] + rest[place + 1 :]
            break
    return cut_line(title, MAX_TITLE_CHARS), "\n".join(rest).strip(), chat


def hide_in_entry(entry: Entry, hide: Callable[[str], str]) -> Entry:
    """Return the entry with secrets hidden, even in a title that is its first line, possibly cut within a secret."""
    text = hide(entry.text)
    title = first_line(text) if entry.title == first_line(entry.text) else hide(entry.title)
    return msgspec.structs.replace(entry, title=title, text=text)


def first_line(text: str) -> str:
    """Return the first line that is not a heading, else the first heading, without its Markdown."""
    heading = ""
    for line in text.split("\n"):
        bare = without_stamps(line).strip().lstrip("#*->").strip().strip("*").strip()
        if bare and not _IS_HEADING.match(line):
            return cut_line(bare, MAX_TITLE_CHARS)
        heading = heading or bare
    return cut_line(heading, MAX_TITLE_CHARS)


def without_stamps(text: str) -> str:
    """Return the text of a daily log without the times of its bullets (R-448)."""
    return _STAMP.sub("- ", text)
