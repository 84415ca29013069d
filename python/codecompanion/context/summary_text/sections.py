"""Reads and rewrites summaries in sections, whose schemas are data (K17, R-430, R-454).

A model asked for `3. **Title**` also writes `3) Title`, `## Title`, `- **Title**` or `**3. Title:** text`, or the
headings of another schema: reading is lenient, writing is strict. Code fences and quotations never contain headings.
Text outside the sections (a preamble, a ledger, the quoted request) is never lost: the joined parts equal the text.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import cache, lru_cache
from typing import Literal

import msgspec

from codecompanion import prompts
from codecompanion.errors import ConfigError
from codecompanion.formats import typed
from codecompanion.formats.regex import regex
from codecompanion.placeholders import LEDGER_HEADING, NO_ROOM, QUOTES_HEADING, RAW_HEADING, REQUEST_HEADING

Role = Literal[
    "request", "names", "files", "errors", "solved", "decisions", "user_messages", "pending", "current", "next_step",
    "findings",
]  # fmt: skip
FEWEST_SECTIONS = 3
"""Minimum number of headings for a summary to be shown in sections (R-454)."""

_LINE = regex(r"[^\n]*\n|[^\n]+")
_FENCE = regex(r"\s{0,3}(`{3,}|~{3,})")
_HEADING = regex(
    r"\s{0,3}(?P<item>[-*+]\s+)?(?P<hash>\#{1,6}\s+)?(?P<bold>\*\*|__)?"
    r"(?:(?:section\s+)?(?P<number>\d{1,2})(?P<point>[.):]|\s+[-–—:])\s+)?(?P<late>\*\*|__)?(?P<words>\S.*)",
    re.IGNORECASE,
)
_AROUND = regex(r"\A[\W_]+|[\W_]+\Z")
_EDGES = " \t:.–—-*_#"
_LIKE_A_TITLE = 80


class Section(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """One heading of a schema, and the role of its section."""

    title: str
    role: Role


class Schema(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The headings of a type of summary, and the prompt that asks for them; without sections, the summary is free text.

    `names_task`: the prompt names the task.
    """

    name: str
    prompt: str
    section: tuple[Section, ...] = ()
    headings: Literal["numbered", "labels"] = "numbered"
    open: tuple[int, ...] = ()
    drop_first: tuple[int, ...] = ()
    names_task: bool = False

    def number_of(self, role: Role) -> int:
        """Return the number of the section with this role, or 0."""
        return next((number for number, section in enumerate(self.section, 1) if section.role == role), 0)

    def heading(self, number: int) -> str:
        """Return the heading as code writes it."""
        title = self.section[number - 1].title
        return f"{number}. **{title}**" if self.headings == "numbered" else f"{title}:"

    def is_called(self, number: int, title: str) -> bool:
        """Return whether a title written by a model belongs to this section, not to another with the same number."""
        said, known = _plain(title), _plain(self.section[number - 1].title)
        return bool(said) and (said.startswith(known) or known.startswith(said))


class Part(msgspec.Struct, frozen=True):
    """One section of a summary, with the text `head + body`.

    `number` is 0 for text without a heading: a preamble or tail.

    `open`: a card shows it unfolded.
    """

    number: int
    title: str
    head: str
    body: str
    open: bool = False

    @property
    def text(self) -> str:
        """Return the original text of the section."""
        return self.head + self.body


class Sectioned(msgspec.Struct, frozen=True):
    """A summary split into parts; joined, the parts equal the original text."""

    preamble: str
    parts: tuple[Part, ...]
    tail: str = ""

    @property
    def text(self) -> str:
        """Return the text of the whole summary."""
        return self.preamble + "".join(part.text for part in self.parts) + self.tail

    @property
    def is_sectioned(self) -> bool:
        """Return whether there are enough headings to show the summary in sections (R-454)."""
        return len(self.parts) >= FEWEST_SECTIONS

    def body(self, number: int) -> str:
        """Return the stripped body of a section; "" if it is empty, `None`, or a note that it has no room."""
        found = next((part.body.strip() for part in self.parts if part.number == number), "")
        return "" if found == NO_ROOM or found.rstrip(".").casefold() == "none" else found


def schema_names() -> tuple[str, ...]:
    """Return the names of the built-in schemas."""
    return tuple(sorted(prompts.load_table("schemas")))


@cache
def load_schema(name: str) -> Schema:
    """Return a built-in schema.

    Raises:
        ConfigError: the schema does not exist.
    """
    table = prompts.load_table("schemas").get(name)
    if table is None:
        raise ConfigError("schema", f"there is no summary schema {name!r}", ", ".join(schema_names()))
    return typed.convert({"name": name, **table}, Schema)


@lru_cache(maxsize=16)  # the form of a summary is needed a dozen times before it is in the view
def guess_schema(text: str) -> Schema | None:
    """Return the schema with the most titles among the text's headings, or None if there are fewer than three."""
    best, most = None, FEWEST_SECTIONS - 1
    for name in schema_names():
        schema = load_schema(name)
        matched = len(_clearest(list(_headings(text[: _tail_start(text)], schema))))
        if matched > most:
            best, most = schema, matched
    return best


def form_of(text: str, asked: Schema) -> Schema | None:
    """Return the schema a summary follows: the one with its titles, or `asked` if the text has its numbers.

    Returns None for a summary without sections.
    """
    known = guess_schema(text)
    if known is not None or not asked.section:
        return known
    return asked if parse_sections(text, asked).is_sectioned else None


def parse_sections(text: str, schema: Schema | None = None) -> Sectioned:
    """Split the text into sections; without a schema, use the best match or any ascending numbers.

    If the text has half of a schema's titles, only these count as headings: a numbered list inside a section does not.
    """
    schema = schema or guess_schema(text)
    end = _tail_start(text)
    chosen = _choose(list(_headings(text[:end], schema)), schema)
    starts = [heading.start for heading in chosen]
    parts = []
    for heading, stop in zip(chosen, [*starts[1:], end], strict=False):
        shown_open = schema is not None and heading.number in schema.open
        head, body = text[heading.start : heading.body], text[heading.body : stop]
        parts.append(Part(heading.number, heading.title, head, body, shown_open))
    return Sectioned(text[: starts[0] if starts else end], tuple(parts), text[end:])


def replace_section(text: str, schema: Schema, number: int, body: str) -> str:
    """Return the text with a section's body replaced; a missing section is inserted in order."""
    found = parse_sections(text, schema)
    block = f"{schema.heading(number)}\n{body}\n"
    parts = list(found.parts)
    place = next((i for i, part in enumerate(parts) if part.number == number), None)
    if place is not None:
        ending = "\n" if place + 1 < len(parts) or found.tail else ""
        parts[place] = Part(number, "", "", (block + ending) if ending else block.rstrip("\n"))
        return Sectioned(found.preamble, tuple(parts), found.tail).text
    place = next((i for i, part in enumerate(parts) if part.number > number), len(parts))
    before = (found.preamble + "".join(part.text for part in parts[:place])).rstrip("\n")
    after = "".join(part.text for part in parts[place:]) + found.tail
    joined = f"{before}\n\n{block}" if before else block
    return f"{joined}\n{after.lstrip(chr(10))}" if after.strip() else joined.rstrip("\n")


class _Heading(msgspec.Struct, frozen=True):
    """A line that may be a heading: its start, where its body starts, its number and title."""

    start: int
    body: int
    number: int
    title: str
    section: int
    clearness: int


def _tail_start(text: str) -> int:
    """Return the start of the text below the sections (quotes, ledger, raw text or request), or the length of the text.

    Raw text without anything before it does not count as a tail.
    """
    places = [f"\n{text}".rfind(f"\n{heading}") for heading in (QUOTES_HEADING, LEDGER_HEADING, REQUEST_HEADING)]
    places.append(text.find(f"\n{RAW_HEADING}") + 1 or -1)
    return min((place for place in places if place >= 0), default=len(text))


def _headings(text: str, schema: Schema | None) -> Iterator[_Heading]:
    """Yield the lines outside code fences that look like headings."""
    start = 0
    for line, fence in lines_and_fences(text):
        heading = None if fence else _read_heading(line, start, schema)
        if heading is not None:
            yield heading
        start += len(line)


def lines_and_fences(text: str) -> list[tuple[str, int]]:
    """Return the lines with their line breaks, and the number of the code fence each belongs to (0 for none).

    An unclosed fence does not count.
    """
    lines = _LINE.findall(text)
    return list(zip(lines, _fences(lines)[0], strict=True))


def close_fence(text: str) -> str:
    """Return the text with its unclosed code fence closed, so that prose may follow."""
    left_open = _fences(_LINE.findall(text))[1] if "```" in text or "~~~" in text else ""
    return f"{text.rstrip()}\n{left_open}" if left_open else text


def _fences(lines: list[str]) -> tuple[list[int], str]:
    """Return the fence number of each line, and the mark of the unclosed fence, or "" if there is none."""
    fences = [0] * len(lines)
    opened, fence, number = 0, "", 0
    for place, line in enumerate(lines):
        mark = _FENCE.match(line)
        if mark and not fence:
            opened, fence = place, mark.group(1)
        elif mark and mark.group(1).startswith(fence) and not line[mark.end() :].strip():
            number += 1
            fences[opened : place + 1] = [number] * (place + 1 - opened)
            fence = ""
    return fences, fence


def _read_heading(line: str, start: int, schema: Schema | None) -> _Heading | None:
    """Return the heading on a line, or None."""
    match = _HEADING.match(line)
    if match is None:
        return None
    bold = match["bold"] or match["late"] or ""
    number, words = int(match["number"] or 0), match["words"].rstrip()
    title, closed, _ = words.partition(bold) if bold else (words, "", "")
    marked = bool(match["hash"] or (bold and closed))
    section = _section_called(title, number, marked, schema) if schema else 0
    if section and schema and not closed:
        # In `6. All User Messages: "…"`, only the known title shows where the title ends.
        known = re.search(re.escape(schema.section[section - 1].title), words, re.IGNORECASE)
        title = words[: known.end()] if known else title
    numbered = number and marked and not match["item"] and match["point"] in (".", ")")
    if not section and not (numbered and len(title) <= _LIKE_A_TITLE):
        return None
    body = match.start("words") + len(title) + len(closed)
    while body < len(line) and line[body] in ":–—-* \t":
        body += 1
    clearness = int(marked and not match["item"]) + int(number == section)
    return _Heading(start, start + body, section or number, title.strip(_EDGES), section, clearness)


def _section_called(title: str, number: int, marked: bool, schema: Schema) -> int:
    """Return the section of the schema that a title names, or 0 if it names none."""
    said = _plain(title)
    for place, section in enumerate(schema.section, 1):
        known = _plain(section.title)
        if said == known and (marked or number == place or title.rstrip().endswith(":")):
            return place
        if number == place and len(said) >= 4 and (said.startswith(known) or (marked and known.startswith(said))):
            return place
        if schema.headings == "labels" and _label_form(section.title).match(title):
            return place
    return 0


@cache
def _label_form(title: str) -> re.Pattern[str]:
    return re.compile(rf"\W*{re.escape(title)}\W*:", re.IGNORECASE)


@lru_cache(maxsize=1024)  # each possible heading is compared with each title
def _plain(title: str) -> str:
    return " ".join(_AROUND.sub("", title).casefold().split())


def _choose(headings: list[_Heading], schema: Schema | None) -> list[_Heading]:
    """Return the headings that count: known titles, each once, or else marked lines with ascending numbers."""
    known = _clearest(headings)
    if schema and schema.section and 2 * len(known) >= len(schema.section):
        return known
    chosen: list[_Heading] = []
    for heading in headings:
        if heading in known or (not heading.section and heading.number > max((h.number for h in chosen), default=0)):
            chosen.append(heading)
    numbers = [heading.number for heading in chosen]
    return [heading for place, heading in enumerate(chosen) if numbers.index(heading.number) == place]


def _clearest(headings: list[_Heading]) -> list[_Heading]:
    """Return, for each known title, the line that is most clearly its heading (the first if several are), in order."""
    best: dict[int, _Heading] = {}
    for heading in headings:
        if heading.section and (heading.section not in best or heading.clearness > best[heading.section].clearness):
            best[heading.section] = heading
    return sorted(best.values(), key=lambda heading: heading.start)
