"""What the model still sees from earlier questions, so that the same bytes are not sent again (issue 11, part 2).

Read from the messages of gathered code that stand unchanged in the next request: who calls knows which those are. A
line counts as seen under its path and number, as the newest of them shows it; what is read of a message is checked
against how it is rendered, and nothing after a place that does not fit is taken.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from itertools import groupby

import msgspec

from codecompanion.formats.plural import counted
from codecompanion.model.gathered import WHOLE_FILES, Snippet
from codecompanion.model.messages import GatheredPiece, Message
from codecompanion.retrieval.assembly import CODE_TITLE, MAP_TITLE, section_of
from codecompanion.retrieval.line_runs import joined_runs, numbered_lines, part_of
from codecompanion.retrieval.rendering import file_heading, shown, snippet_heading

STILL_ABOVE = "Already above, unchanged: "
MAX_CHARS = 600
"""Of the sentence that names what is above; it must not take the room it saves."""
MIN_SAVED_CHARS = 80
"""A part that is sent alone has a heading and a fence: so much it must save."""
CHANGE_CONTEXT = 3
"""Lines that go again above and below a changed line of a file that stands above."""


class Above(msgspec.Struct, frozen=True):
    """What stands above: path → line number → line; the texts of the messages; path → lines of maps."""

    lines: Mapping[str, Mapping[int, str]] = {}
    texts: tuple[str, ...] = ()
    maps: Mapping[str, frozenset[str]] = {}

    def has_section(self, one: Snippet) -> bool:
        """Return whether a text that is no lines of a file (memories, the architecture) stands there unchanged."""
        section = section_of(one)
        return bool(section) and any(section in text for text in self.texts)


NOTHING_ABOVE = Above()


def seen_in(messages: Iterable[Message]) -> Above:
    """Return what these messages of gathered code show, oldest first."""
    lines, maps, texts = dict[str, dict[int, str]](), dict[str, set[str]](), list[str]()
    for message in messages:
        texts.append(f"{message.text}\n\n")
        for piece, shown_lines in _pieces_of(message):
            lines.setdefault(piece.path, {}).update(enumerate(shown_lines, piece.start))
        if any(piece.source == "map" for piece in message.gathered):
            for path, line in _map_lines(message.text):
                maps.setdefault(path, set()).add(line)
    return Above(lines, tuple(texts), {path: frozenset(found) for path, found in maps.items()})


def split_seen(one: Snippet, above: Above) -> tuple[list[Snippet], list[Snippet]]:
    """Return the parts of a snippet that are to be sent, and those that stand above unchanged.

    Of a whole file each run of lines that stands above stays away, and what changed goes with the lines around it. Any
    other snippet of which a line has changed since, or has moved, is sent whole; so is what would hardly save anything.
    """
    known = above.lines.get(one.path)
    numbered = numbered_lines(one) if known else []
    if not known or not numbered:
        return [one], []
    is_file = one.is_selected and one.source in WHOLE_FILES
    changed = [number for number, line in numbered if known.get(number, line) != line]
    if changed and not is_file:
        return [one], []
    around = {number + step for number in changed for step in range(-CHANGE_CONTEXT, CHANGE_CONTEXT + 1)}
    parts: dict[bool, list[Snippet]] = {True: [], False: []}
    for is_known, taken in _runs(numbered, {number for number, _ in numbered if number in known} - around, is_file):
        part = one if len(taken) == len(numbered) else part_of(one, taken)
        if part is not None:
            parts[is_known].append(part)
    new, seen = parts[False], parts[True]
    saved = sum(len(part.text) for part in seen)
    if new and not is_file and (saved < MIN_SAVED_CHARS * len(new) or (one.is_selected and len(new) > 1)):
        return [one], []
    return new, seen


def _runs(
    numbered: Sequence[tuple[int, str]], known: Collection[int], drops_short: bool
) -> Iterator[tuple[bool, list[tuple[int, str]]]]:
    """Yield runs of lines that are known, or not; a short known one counts as not known where that is asked for."""
    runs = [(is_known, list(run)) for is_known, run in groupby(numbered, lambda pair: pair[0] in known)]
    if drops_short:
        long = [(known and sum(len(line) + 1 for _, line in run) >= MIN_SAVED_CHARS, run) for known, run in runs]
        for is_known, group in groupby(long, lambda pair: pair[0]):
            yield is_known, [pair for _, run in group for pair in run]
        return
    yield from runs


def name_seen(snippets: Sequence[Snippet]) -> str:
    """Return the sentence that names what stands above, best first, lines of a file joined; "" = nothing does."""
    runs = dict[str, list[tuple[int, int]]]()
    for one in snippets:
        runs.setdefault(one.path or _NAMES.get(one.source, one.source), []).append((one.start, one.end))
    named, used, left = list[str](), len(STILL_ABOVE), 0
    for path, found in runs.items():
        spans = ", ".join(f"{start}-{end}" for start, end in joined_runs(found) if start)
        place = f"{shown(path)}:{spans}" if spans else shown(path)
        if used + len(place) > MAX_CHARS and named:
            left += 1
            continue
        named.append(place)
        used += len(place) + 2
    if not named:
        return ""
    if left:
        named.append(f"and parts of {counted(left, 'more file')}")
    return f"{STILL_ABOVE}{'; '.join(named)}."


_NAMES = {"memory": "memories", "team": "the team's text", "architecture": "the architecture"}


def _pieces_of(message: Message) -> Iterator[tuple[GatheredPiece, list[str]]]:
    """Yield the pieces of a message with their lines, in the order they stand in its text."""
    by_file = dict[str, list[GatheredPiece]]()
    for piece in message.gathered:
        if piece.path and piece.start and not piece.is_above:
            by_file.setdefault(piece.path, []).append(piece)
    lines = message.text.split("\n")
    title = f"## {CODE_TITLE}"
    at = lines.index(title) + 2 if title in lines else len(lines)
    for path, pieces in by_file.items():
        if lines[at : at + 1] != [file_heading(path)]:
            return
        at += 1
        for piece in sorted(pieces, key=lambda one: one.start):
            begun, end = at + 2, at + 2 + piece.end - piece.start + 1
            fence = "".join(lines[at + 1 : begun])
            if lines[at : at + 1] != [snippet_heading(piece)] or len(fence) < 3 or fence.strip("`"):
                return
            body, after = lines[begun:end], end
            if body[-1:] == [fence]:  # a blank line at its end is taken for the end of its last line
                body, after = [*body[:-1], ""], end - 1
            elif piece.is_cut and lines[end : end + 1] != [fence]:  # the mark where a file is cut
                after += 1
            if lines[after : after + 1] != [fence]:
                return
            yield piece, body
            at = after + 1


def _map_lines(text: str) -> Iterator[tuple[str, str]]:
    """Yield (path, line) of the map in a message, as they stand there."""
    path, rest = "", text.partition(f"\n\n## {MAP_TITLE}\n\n")[2].partition("\n\n")[0]
    for line in rest.split("\n") if rest else ():
        if line.startswith(" "):
            yield path, line
        else:
            path = line.removesuffix(":")
