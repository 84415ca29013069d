"""Random edits of files: the intended lines, and the same lines as a model's reply."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from random import Random

from codecompanion.wire.requests import EditPlace

SAMPLES = Path(__file__).parent / "samples"
FILETYPES = {
    "c": "c", "c_mixed": "c", "css": "css", "go": "go", "html": "html", "java": "java", "lua": "lua",
    "makefile": "make", "python": "python", "ruby": "ruby", "rust": "rust", "shell": "sh",
    "typescript": "typescript", "yaml": "yaml",
}  # fmt: skip


def lead_of(line: str) -> str:
    return line[: len(line) - len(line.lstrip(" \t"))]


def depth(line: str) -> int:
    return len(lead_of(line).expandtabs(8))


@dataclass(frozen=True)
class File:
    """The lines of a file and its unit of indentation.

    "mixed" means four columns per level, with a tab for every eight.
    """

    name: str
    lines: tuple[str, ...]
    unit: str
    filetype: str

    def deeper(self, lead: str) -> str:
        if self.unit != "mixed":
            return lead + self.unit
        size = len(lead.expandtabs(8)) + 4
        return "\t" * (size // 8) + " " * (size % 8)

    def shallower(self, lead: str) -> str | None:
        if self.unit != "mixed":
            return lead[: len(lead) - len(self.unit)] if lead.endswith(self.unit) else None
        size = len(lead.expandtabs(8)) - 4
        return None if size < 0 else "\t" * (size // 8) + " " * (size % 8)


def opens(line: str) -> bool:
    return line.rstrip()[-1:] in ":{>" or line.split()[0] in OPENERS


def file_of(name: str, text: str, filetype: str = "", unit: str = "") -> File:
    lines = tuple(text.split("\n"))
    if not unit:
        steps: dict[str, int] = {}
        said = [line for line in lines if line.strip()]
        for above, below in pairwise(said):
            high, low = lead_of(above), lead_of(below)
            if low.startswith(high) and low != high and opens(above):
                steps[low[len(high) :]] = steps.get(low[len(high) :], 0) + 1
        unit = max(steps, key=lambda step: steps[step], default="")
    return File(name, lines, unit, filetype)


def is_uniform(file: File) -> bool:
    """Return whether a file is indented either by tabs or by two or more spaces, but not both."""
    leads = {"\t" in lead for lead in map(lead_of, file.lines) if lead[:2] in ("  ", "\t")}
    return file.unit not in ("", " ") and len(leads) == 1


OPENERS = frozenset("def class if for while function local module begin case until".split())


def sample(language: str) -> File:
    text = (SAMPLES / f"{language}.txt").read_text().removesuffix("\n")
    return file_of(language, text, FILETYPES[language], "mixed" if language == "c_mixed" else "")


# ---- edits


def changed(file: File, lines: list[str], random: Random) -> list[str] | None:
    places = [at for at, line in enumerate(lines) if line.strip()]
    for at in random.sample(places, min(len(places), random.randint(1, 3))):
        lead = lead_of(lines[at])
        lines[at] = lead + re.sub(r"\w+", lambda word: word[0] + "_new", lines[at][len(lead) :], count=1)
        if not re.search(r"\w", lines[at]):
            lines[at] += " // new"
    return lines


def added(file: File, lines: list[str], random: Random) -> list[str] | None:
    places = [
        at for at, line in enumerate(lines)
        if line.strip() and (at + 1 == len(lines) or depth(lines[at + 1]) <= depth(line) or not lines[at + 1].strip())
    ]  # fmt: skip
    if not places:
        return None
    at = random.choice(places)
    return [*lines[: at + 1], lead_of(lines[at]) + "added_line(1);", *lines[at + 1 :]]


def removed(file: File, lines: list[str], random: Random) -> list[str] | None:
    at = random.randrange(len(lines))
    return [*lines[:at], *lines[at + random.randint(1, 2) :]]


def block_at(lines: list[str], random: Random) -> tuple[int, int] | None:
    """Return the range of a block of lines of which the first has the smallest indentation."""
    places = [at for at, line in enumerate(lines) if line.strip()]
    if not places:
        return None
    first = random.choice(places)
    last = first + 1
    while last < len(lines) and (not lines[last].strip() or lead_of(lines[last]).startswith(lead_of(lines[first]))):
        last += 1
    last = random.randint(first + 1, last)
    while last < len(lines) and (not lines[last].strip() or depth(lines[last]) > depth(lines[first])):
        last += 1
    while not lines[last - 1].strip():
        last -= 1
    return first, last


def wrapped(file: File, lines: list[str], random: Random) -> list[str] | None:
    found = block_at(lines, random)
    if found is None:
        return None
    first, last = found
    lead = lead_of(lines[first])
    inside = [
        file.deeper(lead_of(line)) + line[len(lead_of(line)) :] if line.strip() else line for line in lines[first:last]
    ]
    closed = [lead + "}"] if random.random() < 0.5 else []
    opened = lead + ("if (is_wrapped) {" if closed else "if is_wrapped:")
    return [*lines[:first], opened, *inside, *closed, *lines[last:]]


def unwrapped(file: File, lines: list[str], random: Random) -> list[str] | None:
    places = [
        at for at, line in enumerate(lines)
        if line.strip() and at + 1 < len(lines) and lead_of(lines[at + 1]) == file.deeper(lead_of(line))
        and lines[at + 1].strip() and opens(line)
    ]  # fmt: skip
    if not places:
        return None
    first = random.choice(places)
    last = first + 1
    while last < len(lines) and (not lines[last].strip() or depth(lines[last]) > depth(lines[first])):
        last += 1
    body = []
    for line in lines[first + 1 : last]:
        lead = file.shallower(lead_of(line)) if line.strip() else ""
        if lead is None:
            return None
        body.append(lead + line[len(lead_of(line)) :] if line.strip() else line)
    if last < len(lines) and lines[last].strip():
        last += 1  # the closing line
    return [*lines[:first], *body, *lines[last:]]


def nested(file: File, lines: list[str], random: Random) -> list[str] | None:
    at = random.randint(0, len(lines))
    near = [line for line in (*lines[at:], *reversed(lines[:at])) if line.strip()]
    if not near:
        return None
    lead = lead_of(near[0])
    block = [lead + "if (fresh) {", file.deeper(lead) + "call_it(2);", lead + "}"]
    return [*lines[:at], *block, *lines[at:]]


EDITS: dict[str, Callable[[File, list[str], Random], list[str] | None]] = {
    "changed": changed, "added": added, "removed": removed, "wrapped": wrapped, "unwrapped": unwrapped,
    "nested": nested,
}  # fmt: skip


# ---- how a model spells them


def each_lead(lines: Sequence[str], change: Callable[[str], str]) -> list[str]:
    return [change(lead_of(line)) + line.lstrip(" \t") if line.strip() else "" for line in lines]


def dedented(lines: Sequence[str]) -> list[str]:
    leads = [lead_of(line) for line in lines if line.strip()]
    shared = leads[0] if leads else ""
    for lead in leads:
        while not lead.startswith(shared):
            shared = shared[:-1]
    return each_lead(lines, lambda lead: lead.removeprefix(shared))


def with_spaces(lines: Sequence[str], width: int) -> list[str]:
    return each_lead(lines, lambda lead: lead.expandtabs(width))


def with_tabs(lines: Sequence[str], width: int) -> list[str]:
    return each_lead(
        lines, lambda lead: "\t" * (len(lead.expandtabs(width)) // width) + " " * (len(lead.expandtabs(width)) % width)
    )


def with_width(lines: Sequence[str], old: int, new: int) -> list[str]:
    return each_lead(lines, lambda lead: " " * (len(lead) // old * new + len(lead) % old) if "\t" not in lead else lead)


def first_lost(lines: Sequence[str]) -> list[str]:
    at = next((at for at, line in enumerate(lines) if line.strip()), None)
    return [line.lstrip(" \t") if number == at else line for number, line in enumerate(lines)]


def numbered(lines: Sequence[str], random: Random) -> list[str]:
    first, sign = random.randint(1, 300), random.choice([" | ", "| ", "→", " │ "])
    return [f"{first + at:4}{sign}{line}" for at, line in enumerate(lines)]


@dataclass(frozen=True)
class Case:
    file: File
    place: EditPlace
    edit: str
    spelling: tuple[str, ...]
    intended: tuple[str, ...]
    reply: tuple[str, ...]


def spellings(file: File) -> list[tuple[str, ...]]:
    char = ["spaces"] if file.unit in ("\t", "mixed") else ["tabs", "width"]
    one = [("as it is",), ("dedented",), ("first lost",), ("numbered",), ("surroundings",), *((name,) for name in char)]
    return [
        *one,
        *(("dedented", name) for name in char),
        *((name, "numbered") for name in char),
        ("dedented", "numbered"),
    ]


def spelled(file: File, place: EditPlace, lines: Sequence[str], how: tuple[str, ...], random: Random) -> list[str]:
    reply = [line.rstrip() for line in lines]
    for one in how:
        match one:
            case "dedented":
                reply = dedented(reply)
            case "first lost":
                reply = first_lost(reply)
            case "spaces":
                reply = with_spaces(reply, 8 if file.unit == "mixed" else random.choice((2, 4, 8)))
            case "tabs":
                reply = with_tabs(reply, len(file.unit))
            case "width":
                reply = with_width(reply, len(file.unit), random.choice([n for n in (2, 4, 8) if n != len(file.unit)]))
            case "numbered":
                reply = numbered(reply, random)
            case "surroundings":
                above, below = ([line.rstrip() for line in some] for some in (place.before[-2:], place.after[:2]))
                reply = [*above, *reply, *below]
    return reply


def random_case(file: File, random: Random, how: tuple[str, ...] | None = None) -> Case | None:
    """Return a random edit of random lines, with options that differ from the file's, or None if there is none."""
    count = len(file.lines)
    first = random.randrange(count)
    last = min(count, first + random.randint(1, 30))
    lines = list(file.lines)
    for at in random.sample(range(count), count // 10):
        lines[at] += random.choice(["", " ", "  ", "\t"]) if lines[at].strip() else random.choice(["", "  "])
    region = lines[first:last]
    if not region[0].strip() or not region[-1].strip():
        return None
    place = EditPlace(
        region=tuple(region), before=tuple(lines[:first]), after=tuple(lines[last:]), filetype=file.filetype,
        tabs=random.random() < 0.5, width=random.choice((2, 3, 4, 8)),
    )  # fmt: skip
    edit = random.choice(list(EDITS)[: 3 if file.filetype == "make" else None])  # blocks of a Makefile are not deeper
    intended = EDITS[edit](file, list(region), random)
    if not intended or intended == region or not intended[0].strip() or not intended[-1].strip():
        return None
    how = how or random.choice(spellings(file))
    reply = spelled(file, place, intended, how, random)
    return Case(file, place, edit, how, tuple(intended), tuple(reply))


def early_return_case(file: File, random: Random) -> Case | None:
    """Return an edit that adds a block to the end of the region; the block contains the line below the region."""
    case = random_case(file, random, ("as it is",))
    if case is None or not case.place.after or not case.place.after[0].strip():
        return None
    lead, is_closed = lead_of(case.place.region[-1]), random.random() < 0.5
    opened = lead + ("if (is_early) {" if is_closed else "if is_early:")
    block = (opened, file.deeper(lead) + case.place.after[0].strip(), *((lead + "}",) if is_closed else ()))
    intended = (*case.place.region, *block)
    how = random.choice([one for one in spellings(file) if "surroundings" not in one])
    return Case(file, case.place, "early", how, intended, tuple(spelled(file, case.place, intended, how, random)))


def is_intended(case: Case, got: Sequence[str]) -> bool:
    """Return whether the lines are as intended: existing lines byte for byte, others except for trailing whitespace."""
    there = [line.rstrip() for line in case.place.region]
    return [line.rstrip() for line in got] == [line.rstrip() for line in case.intended] and all(
        mine == theirs
        for mine, theirs in zip(got, case.intended, strict=True)
        if theirs in case.place.region and there.count(theirs.rstrip()) == 1
    )


# ---- what a reply still tells


def is_determined(case: Case) -> bool:
    """Return whether the reply determines the intended lines; for some replies, there is more than one reading."""
    file = case.file
    region, intended, how = case.place.region, case.intended, case.spelling
    old, new = [line for line in region if line.strip()], [line for line in intended if line.strip()]
    texts = [line.strip() for line in old]
    kept = [line for line in new if line in old and lead_of(line) and texts.count(line.strip()) == 1]
    repeated = {text for text in texts if texts.count(text) > 1}
    if any([line.strip() for line in new].count(text) < texts.count(text) for text in repeated) and how != (
        "as it is",
    ):
        return False  # which of several equal lines is gone
    if "numbered" in how and len(intended) < 2:
        return False  # a line that begins with a number
    if "surroundings" in how:
        return _is_seen_to_be_repeated(case)
    if {"spaces", "tabs", "width"} & {*how}:
        known = {lead_of(line) for line in old}
        whole = {lead for lead in map(lead_of, new) if lead in known or _is_of_levels(file, lead)}
        tab = 8 if "spaces" in how else len(file.unit)
        if len({lead.expandtabs(tab) for lead in known | whole}) < len(known | whole) or (
            file.unit == "mixed" and any(" " * 8 in lead for lead in known)
        ):
            return False  # a tab, and spaces that look like it
        if file.unit == "\t" and file.filetype != "make" and any(lead.startswith("  ") for lead in known):
            return False  # text in a string has the spaces, too
        kept = [line for line in kept if _is_of_levels(file, lead_of(line)) and _enclosing(old, line) is not None]
        if not any(_enclosing(old, line) == _enclosing(new, line) for line in kept) or any(
            lead_of(line) not in whole for line in new
        ):
            return False  # one level's new width is unknown, or a line was aligned
    if {"dedented", "spaces", "tabs", "width"} & {*how} and min(map(depth, new)) != min(map(depth, old)):
        return False  # the distance of the move is unknown
    if "dedented" in how:
        return len(kept) > 0 and (len(new) < 2 or new[1] in old)
    if "first lost" in how:
        return lead_of(new[0]) == lead_of(old[0]) and new[0] in old and len(new) > 1 and new[1] in old
    return True


def _enclosing(lines: list[str], line: str) -> str | None:
    at = lines.index(line)
    return next((above for above in reversed(lines[:at]) if depth(above) < depth(line)), None)


def _is_of_levels(file: File, lead: str) -> bool:
    if file.unit == "mixed":
        return len(lead.expandtabs(8)) % 4 == 0
    return lead == file.unit * (len(lead) // len(file.unit))


def _is_seen_to_be_repeated(case: Case) -> bool:
    """Return whether the repetition on both sides is too long to be an accident and does not occur in the region."""
    above, below = (
        [line.strip() for line in some if line.strip()] for some in (case.place.before[-2:], case.place.after[:2])
    )
    inside = {line.strip() for line in (*case.place.region[:2], *case.place.region[-2:], *case.intended)}
    return len(above) + len(below) > 2 and not inside & {*above, *below}
