"""Which words, numbers and paths occur in a list of messages: what a summary is checked against (lesson 11).

Words are runs of ASCII letters, digits, `_` and `$`, the same on both sides, so that what was copied is found whatever
stands around it. A path is found as the end, the beginning or the middle of a longer one, at its slashes.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence

import msgspec

from codecompanion.context.grounding.planned_files import without_planned
from codecompanion.context.ledger.calls import read_arguments, strings_in
from codecompanion.context.ledger.facts import COLOUR
from codecompanion.formats.regex import regex
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


class Known(msgspec.Struct, frozen=True):
    """What occurs. `runs`: every path and word once, between slashes, one a line."""

    words: frozenset[str]
    numbers: frozenset[str]
    runs: str

    def has_word(self, word: str) -> bool:
        """Return whether the word occurs as a word (emphasis around it does not count), or begins a known hash."""
        if word in self.words or word.strip("_") in self.words:
            return True
        return is_hash(word) and f"\n/{word}" in self.runs

    def has_number(self, number: str) -> bool:
        """Return whether the number occurs, with or without separators of thousands."""
        return number in self.numbers or _plain_number(number) in self.numbers

    def has_path(self, path: str) -> bool:
        """Return whether the path or address occurs, whole or as a part of a longer one.

        An absolute path counts too when its folder and the rest after it both occur: that is a working directory
        joined with a relative path.
        """
        path = re.split(r"[?#]", path.rpartition("://")[2])[0]
        bare = "/".join(map(_without_dots, _RUN.findall(path)))
        if not bare or f"/{bare}/" in self.runs:
            return True
        parts = bare.split("/")
        return path.startswith(("/", "~")) and any(
            f"/{'/'.join(parts[:cut])}/" in self.runs and f"\n/{'/'.join(parts[cut:])}/" in self.runs
            for cut in range(1, len(parts))
        )


def is_hash(word: str) -> bool:
    """Return whether the word is the hexadecimal name of a commit or the like."""
    return _HASH.fullmatch(word) is not None


def known_in(messages: Sequence[Message]) -> Known:
    """Return what occurs in the messages, arguments of calls included.

    What a summary among them marked, or said was to be written, does not count.
    """
    return read_known(text for message in messages for text in _texts_of(message))


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
    """Return an earlier summary without the names that were marked in it, wherever they stand."""
    marked: set[str] = set()
    for mark in _MARK.finditer(summary):
        listed = mark[1]
        name = "" if listed else _name_before(summary[max(0, mark.start() - _MAX_NAME_LENGTH) : mark.start()])
        marked.update(item.strip() for item in listed.split(",")) if listed else marked.add(name.strip("`*()[]\"',;:"))
    for name in sorted(marked - {""}, key=lambda name: (-len(name), name)):
        summary = re.sub(rf"(?<![A-Za-z0-9_$]){re.escape(name)}(?![A-Za-z0-9_$])", " ", summary)
    return summary


def _name_before(text: str) -> str:
    """Return what stands in front of a mark: a word, or what is between backticks."""
    line = text.removesuffix(" ").rpartition("\n")[2]
    if line.endswith("`") and "`" in line[:-1]:
        return line[line.rindex("`", 0, -1) :]
    return line.split()[-1] if line and not line[-1].isspace() else ""


def read_known(texts: Iterable[str]) -> Known:
    """Return what occurs in the texts."""
    words: set[str] = set()
    numbers: set[str] = set()
    runs: set[str] = set()
    for given in texts:
        # A line end inside of JSON is written `\n`: the name after it must not be read as part of it.
        for text in dict.fromkeys((given, _ESCAPE.sub(" ", given))):
            words.update(WORD.findall(text))
            runs.update(_RUN.findall(text))
            numbers.update(NUMBER.findall(text))
    for number in tuple(numbers):
        numbers.add(_plain_number(number))
        numbers.update(re.split(r"[.,_]", number))
        numbers.update(number[: place.start()] for place in re.finditer(r"[.,_]", number))
    words.update([word.strip("_") for word in words])
    lines = sorted({_without_dots(run) for run in runs} | {word for word in words if is_hash(word)})
    return Known(frozenset(words), frozenset(numbers), "\n/" + "/\n/".join(lines) + "/\n")


def _without_dots(run: str) -> str:
    """Return a path without the dots in front of its components, which sentences and ellipses have, too."""
    return run.replace("/.", "/")


def _plain_number(number: str) -> str:
    """Return `12,000` and `12_000` as `12000`."""
    return re.sub(r"[,_](?=\d{3}(?!\d))", "", number)
