"""Collects the words, numbers and paths of a list of messages, to check a summary against them (lesson 11).

In both the messages and the summary, words are runs of ASCII letters, digits, `_` and `$`, so copied text is found
whatever surrounds it. A path is also found as the end, beginning or middle of a longer path, split at slashes.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator
from functools import cached_property
from itertools import islice

from codecompanion.context.grounding.planned_files import without_planned
from codecompanion.context.ledger.facts import COLOUR
from codecompanion.context.message_facts.calls import read_arguments, strings_in
from codecompanion.context.work import Messages
from codecompanion.formats.regex import regex
from codecompanion.model.fold import grown_from
from codecompanion.model.messages import SUMMARY_TAG, ImagePart, Message
from codecompanion.placeholders import UNVERIFIED

WORD = regex(r"[A-Za-z0-9_$]+")
NUMBER = regex(r"\d+(?:[.,_]\d+)*")
_PIECE = r"[A-Za-z0-9_$](?:[A-Za-z0-9_$.@+~-]*[A-Za-z0-9_$])?"
_RUN = regex(rf"{_PIECE}(?:/\.?{_PIECE})*")
_ESCAPE = regex(rf"\\[nrtbf\"'/\\]|{COLOUR.pattern}")
_HASH = regex(r"(?=[a-f]*\d)(?=\d*[a-f])[0-9a-f]{7,64}")
_MARK = regex(rf"{re.escape(UNVERIFIED[:-1])}(?:: ([^()\n]*(?:\(\)[^()\n]*)*+))?\)")
_MAX_NAME_LENGTH = 400
# Table that keeps every character a pattern can match and turns the others into spaces. Some non-ASCII characters are
# digits.
_TO_SPACES = bytes(byte if byte > 127 or chr(byte).isalnum() or chr(byte) in "_$.,@+~/-" else 32 for byte in range(256))
_SLICE_BYTES = 65_536
_PIECES_AT_ONCE = 8_000
Pause = Callable[[], None]


class Known:
    """The words, numbers and paths in strings, as distinct pieces (`_add_pieces`); each set is built on first use.

    `_runs`: every distinct path and every hash on its own line, enclosed in slashes.
    """

    def __init__(self, pieces: Iterable[bytes]) -> None:
        self._pieces = _joined(pieces)

    def read(self, pause: Pause) -> None:
        """Build all sets in advance; `pause` is called after each set."""
        for read in (lambda: self._words, lambda: self._numbers, lambda: self._runs):
            read()
            pause()

    def _found(self, form: re.Pattern[str]) -> set[str]:
        found = set[str]()
        for part in self._pieces:
            found.update(form.findall(part))
        return found

    @cached_property
    def _words(self) -> frozenset[str]:
        words = self._found(WORD)
        return frozenset(words.union([word.strip("_") for word in words]))

    @cached_property
    def _numbers(self) -> frozenset[str]:
        written = frozenset(self._found(NUMBER))
        numbers = {_plain_number(number) for number in written}
        for number in written:
            numbers.update(re.split(r"[.,_]", number))
            numbers.update(number[: place.start()] for place in re.finditer(r"[.,_]", number))
        return written | numbers

    @cached_property
    def _runs(self) -> str:
        runs = {_without_dots(run) for run in self._found(_RUN)} | set(filter(is_hash, self._words))
        return "\n/" + "/\n/".join(runs) + "/\n"

    def has_word(self, word: str) -> bool:
        """Return whether the word occurs as a word (ignoring emphasis around it), or is the prefix of a known hash."""
        if word in self._words or word.strip("_") in self._words:
            return True
        return is_hash(word) and f"\n/{word}" in self._runs

    def has_number(self, number: str) -> bool:
        """Return whether the number occurs, with or without thousands separators."""
        return number in self._numbers or _plain_number(number) in self._numbers

    def has_path(self, path: str) -> bool:
        """Return whether the path or URL occurs, whole or as part of a longer one.

        An absolute path also counts if its folder and the remaining part both occur, because it may be a working
        directory joined with a relative path.
        """
        path = re.split(r"[?#]", path.rpartition("://")[2])[0]
        bare = "/".join(map(_without_dots, _RUN.findall(path)))
        if not bare:
            return True
        if not self._words.issuperset(WORD.findall(bare)):
            return False
        if f"/{bare}/" in self._runs:
            return True
        parts = bare.split("/")
        return path.startswith(("/", "~")) and any(
            f"/{'/'.join(parts[:cut])}/" in self._runs and f"\n/{'/'.join(parts[cut:])}/" in self._runs
            for cut in range(1, len(parts))
        )


def is_hash(word: str) -> bool:
    """Return whether the word looks like a hexadecimal hash, for example of a commit."""
    return _HASH.fullmatch(word) is not None


class KnownNames:
    """The names in the messages of one chat, including call arguments; kept while a summary is written (`Folds`).

    Names that an earlier summary marked as unverified or planned do not count. The messages are read once, before the
    summary is written if there is time; if the list has only grown, only new messages are read.
    """

    def __init__(self) -> None:
        self._messages: Messages = ()
        self._pieces = set[bytes]()
        self._known: Known | None = None

    def of(self, messages: Messages, pause: Pause = lambda: None) -> Known:
        """Return the known names of these messages; `pause` is called between messages."""
        if self._known is not None and self._messages == messages:
            return self._known
        grown = grown_from(self._messages, messages)
        pieces = self._pieces if grown else set[bytes]()
        # If `pause` interrupts the reading, the next call starts over.
        self._messages, self._pieces, self._known = (), set(), None
        for message in messages[grown:]:
            _add_pieces(pieces, _texts_of(message))
            pause()
        known = Known(pieces)
        self._messages, self._pieces, self._known = messages, pieces, known
        return known


def _texts_of(message: Message) -> Iterator[str]:
    yield without_planned(_without_marked(message.text)) if message.tag == SUMMARY_TAG else message.text
    if message.path:
        yield message.path
    for call in message.tool_calls:
        yield f"{call.name} {call.id} {call.arguments}"
        if "\\/" in call.arguments:
            yield from (value for _, value in strings_in(read_arguments(call.arguments)))
    if not isinstance(message.content, str):
        yield from (part.path for part in message.content if isinstance(part, ImagePart) and part.path)


def _without_marked(summary: str) -> str:
    """Return an earlier summary without the names that it marks as unverified, wherever they occur in it."""
    marked: set[str] = set()
    for mark in _MARK.finditer(summary):
        listed = mark[1]
        name = "" if listed else _name_before(summary[max(0, mark.start() - _MAX_NAME_LENGTH) : mark.start()])
        marked.update(item.strip() for item in listed.split(",")) if listed else marked.add(name.strip("`*()[]\"',;:"))
    for name in sorted(marked - {""}, key=lambda name: (-len(name), name)):
        summary = re.sub(rf"(?<![A-Za-z0-9_$]){re.escape(name)}(?![A-Za-z0-9_$])", " ", summary)
    return summary


def _name_before(text: str) -> str:
    """Return the name at the end of the text before a mark: a word, or a span in backticks."""
    line = text.removesuffix(" ").rpartition("\n")[2]
    if line.endswith("`") and "`" in line[:-1]:
        return line[line.rindex("`", 0, -1) :]
    return line.split()[-1] if line and not line[-1].isspace() else ""


def _add_pieces(pieces: set[bytes], texts: Iterable[str]) -> None:
    """Add the runs of characters that can belong to a name or a number.

    Every pattern finds the same matches in these pieces as in the messages, and the pieces are far smaller than a long
    history.
    """
    for given in texts:
        # A line break inside JSON is written `\n`, and must not be read as part of the name after it.
        plain = _ESCAPE.sub(" ", given) if "\\" in given or "[" in given else given
        for text in (given,) if plain == given else (given, plain):
            for part in _slices(text.encode("utf-8", "surrogatepass").translate(_TO_SPACES)):
                pieces.update(part.split())


def _joined(pieces: Iterable[bytes]) -> tuple[str, ...]:
    """Join the pieces into strings of several thousand pieces each.

    Other threads wait while a pattern reads a string.
    """
    waiting = iter(pieces)
    parts = iter(lambda: tuple(islice(waiting, _PIECES_AT_ONCE)), ())
    return tuple(b" ".join(part).decode("utf-8", "surrogatepass") for part in parts)


def _slices(data: bytes) -> Iterator[bytes]:
    """Yield the data in slices that end at a space; other threads wait while a slice is processed."""
    start = 0
    while start < len(data):
        end = data.find(b" ", start + _SLICE_BYTES)
        yield data[start : end if end >= 0 else len(data)]
        start = end if end >= 0 else len(data)


def _without_dots(run: str) -> str:
    """Return a path without dots before its components, which may belong to a sentence or an ellipsis."""
    return run.replace("/.", "/")


def _plain_number(number: str) -> str:
    """Return `12,000` and `12_000` as `12000`."""
    return re.sub(r"[,_](?=\d{3}(?!\d))", "", number)
