"""Finds the file lines that the model still sees, so that they are not sent again.

The module reads those messages that are unchanged in the next request, oldest first: attached files and their updates,
attachments of mentions, gathered code. The caller determines which messages those are. A line counts as seen under its
path and number, with the text that the newest message shows; each message is checked against its rendering, and reading
stops at the first mismatch.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence

import msgspec

from codecompanion.formats.fencing import fenced_in
from codecompanion.formats.regex import regex
from codecompanion.model.gathered import Snippet
from codecompanion.model.live_files import LIVE_TAGS
from codecompanion.model.messages import GATHERED_TAG, UPDATE_TAG, GatheredPiece, Message
from codecompanion.retrieval.assembly import CODE_TITLE, MAP_TITLE, section_of
from codecompanion.retrieval.rendering import file_heading, snippet_heading

_HUNK = regex(r"@@ -(\d{1,15})(?:,(\d{1,15}))? \+\d{1,15}(?:,\d{1,15})? @@.{0,400}")

Lines = Mapping[int, str]


class Above(msgspec.Struct, frozen=True):
    """The lines shown earlier: path → line number → text (`lines`) or id of the message that shows it (`by`).

    `ends`: the number of lines of files that were shown whole, see `has_all`; `texts`: the messages of gathered code,
    by id; `maps`: path → lines of maps.
    """

    lines: Mapping[str, Lines] = {}
    by: Mapping[str, Mapping[int, str]] = {}
    ends: Mapping[str, int] = {}
    texts: Mapping[str, str] = {}
    maps: Mapping[str, frozenset[str]] = {}

    def has_section(self, one: Snippet) -> bool:
        """Return whether a section without file lines (memories, the architecture) is above and unchanged."""
        return bool(self._with_section(one))

    def has_all(self, path: str, lines: Sequence[str]) -> bool:
        """Return whether a whole file with exactly these lines is above; blank lines at the end do not count."""
        known, last = self.lines.get(path, {}), _length(lines)
        return self.ends.get(path) == last and all(known.get(n) == line for n, line in enumerate(lines[:last], 1))

    def has(self, path: str, first: int, lines: Sequence[str], *, parts: bool = False) -> bool:
        """Return whether these lines are above; with `parts`, each may be only a part of a line above."""
        known = self.lines.get(path)
        if not known or not lines:
            return False
        shown = ((known.get(number), line) for number, line in enumerate(lines, first))
        return all(there is not None and (line in there if parts else line == there) for there, line in shown)

    def ids_of(self, path: str, first: int, last: int) -> frozenset[str]:
        """Return the ids of the messages that show these lines."""
        by = self.by.get(path, {})
        return frozenset(by[number] for number in range(first, last + 1) if number in by)

    def ids_behind(self, snippets: Iterable[Snippet]) -> frozenset[str]:
        """Return the ids of the messages that show these snippets, which are above."""
        found = set[str]()
        for one in snippets:
            found |= self.ids_of(one.path, one.start, one.end) if one.path else set(self._with_section(one)[-1:])
        return frozenset(found)

    def _with_section(self, one: Snippet) -> list[str]:
        section = section_of(one)
        return [name for name, text in self.texts.items() if section in text] if section else []


NOTHING_ABOVE = Above()


def shows_lines(message: Message) -> bool:
    """Return whether `seen_in` reads messages of this type."""
    if message.tag in LIVE_TAGS or message.tag == UPDATE_TAG:
        return message.file is not None
    return message.tag == GATHERED_TAG or (message.mentioned is not None and bool(message.mentioned.shows))


def paths_shown(message: Message) -> Collection[str]:
    """Return the paths of the files whose lines a message may show."""
    if message.mentioned is not None:
        return {one.path for one in message.mentioned.shows}
    if message.tag == GATHERED_TAG:
        return {piece.path for piece in message.gathered}
    return {message.path or ""}


def seen_in(messages: Iterable[Message]) -> Above:
    """Return the lines shown by these messages, which are given oldest first."""
    seen = _Seen()
    for message in messages:
        if message.tag == GATHERED_TAG:
            seen.take_gathered(message)
        elif message.mentioned is not None:
            seen.take_mentioned(message)
        elif message.tag == UPDATE_TAG:
            seen.take_update(message)
        elif message.tag in LIVE_TAGS and message.file is not None:
            seen.take_whole(message)
    maps = {path: frozenset(found) for path, found in seen.maps.items()}
    return Above(seen.lines, seen.by, seen.ends, seen.texts, maps)


class _Seen:
    """Collects the lines shown by the messages read so far."""

    def __init__(self) -> None:
        self.lines, self.by = dict[str, dict[int, str]](), dict[str, dict[int, str]]()
        self.ends, self.texts, self.maps = dict[str, int](), dict[str, str](), dict[str, set[str]]()

    def take_gathered(self, message: Message) -> None:
        self.texts[message.id] = f"{message.text}\n\n"
        for piece, shown in _pieces_of(message):
            self._show(message.id, piece.path, piece.start, shown, whole=piece.is_file)
        if any(piece.source == "map" for piece in message.gathered):
            for path, line in _map_lines(message.text):
                self.maps.setdefault(path, set()).add(line)

    def take_mentioned(self, message: Message) -> None:
        assert message.mentioned is not None  # noqa: S101  asked before
        for one, shown in zip(message.mentioned.shows, fenced_in(message.text), strict=False):
            if one.path:
                self._show(message.id, one.path, one.first, shown, whole=one.whole)

    def take_whole(self, message: Message) -> None:
        for shown in fenced_in(message.text):
            self._show(message.id, message.path or "", 1, shown, whole=True)

    def take_update(self, message: Message) -> None:
        """Record an update of a file; a diff is applied to the known lines if they are complete."""
        path, file = message.path or "", message.file
        blocks = list(fenced_in(message.text))
        if file is not None and blocks and not file.is_diff:
            return self._show(message.id, path, 1, blocks[0], whole=True)
        known, end = self.lines.get(path, {}), self.ends.get(path, 0)
        before = [known.get(number, "") for number in range(1, end + 1)]
        if file is None or not blocks or not before or not self._patch(message.id, path, before, blocks[0]):
            for of_path in (self.lines, self.by, self.ends):
                of_path.pop(path, None)
        return None

    def _show(self, message_id: str, path: str, first: int, shown: Sequence[str], *, whole: bool) -> None:
        if whole:
            self.lines[path], self.by[path], self.ends[path] = {}, {}, _length(shown)
        numbers = range(first, first + len(shown))
        self.lines.setdefault(path, {}).update(zip(numbers, shown, strict=True))
        self.by.setdefault(path, {}).update(dict.fromkeys(numbers, message_id))

    def _patch(self, message_id: str, path: str, before: Sequence[str], diff: Sequence[str]) -> bool:
        """Apply a diff to the known lines of a file; return whether the diff fits them."""
        by, after, names, at = self.by[path], list[str](), list[str](), 0
        for row in diff[2:]:
            if hunk := _HUNK.fullmatch(row):
                start = int(hunk[1]) - (hunk[2] != "0")
                after += before[at:start]
                names += [by.get(number, message_id) for number in range(at + 1, start + 1)]
                at = start
            elif row.startswith("+"):
                after.append(row[1:])
                names.append(message_id)
            elif before[at : at + 1] == [row[1:]]:
                at += 1
                if row.startswith(" "):
                    after.append(row[1:])
                    names.append(message_id)
            else:
                return False
        after += before[at:]
        names += [by.get(number, message_id) for number in range(at + 1, len(before) + 1)]
        self.lines[path], self.by[path] = dict(enumerate(after, 1)), dict(enumerate(names, 1))
        self.ends[path] = _length(after)
        return True


def _length(lines: Sequence[str]) -> int:
    """Return the number of lines, not counting blank lines at the end."""
    last = len(lines)
    while last and not lines[last - 1]:
        last -= 1
    return last


def _pieces_of(message: Message) -> Iterator[tuple[GatheredPiece, list[str]]]:
    """Yield the code snippets of a message with their lines, in the order of its text."""
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
            if body[-1:] == [fence]:  # a blank line at its end counts as the end of its last line
                body, after = [*body[:-1], ""], end - 1
            elif piece.is_cut and lines[end : end + 1] != [fence]:  # the truncation marker of a file
                after += 1
            if lines[after : after + 1] != [fence]:
                return
            yield piece, body
            at = after + 1


def _map_lines(text: str) -> Iterator[tuple[str, str]]:
    """Yield (path, line) of the map in a message, as written there."""
    path, rest = "", text.partition(f"\n\n## {MAP_TITLE}\n\n")[2].partition("\n\n")[0]
    for line in rest.split("\n") if rest else ():
        if line.startswith(" "):
            yield path, line
        else:
            path = line.removesuffix(":")
