"""Finds mentioned text that the model already has verbatim, so that a reference can be sent instead.

The same rule applies to all sources: lines that the next request already contains unchanged are not sent a second time,
whether they were attached, gathered, or mentioned in an earlier message or in the same one. Pure: earlier messages are
passed in.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING

import msgspec

from codecompanion.formats.text_files import printable
from codecompanion.model.messages import Message
from codecompanion.wire.requests import EditorItem, EditorText

if TYPE_CHECKING:
    from codecompanion.retrieval.shown_lines import Above

MIN_NAMED_CHARS = 240
"""Minimum size of a part of a file for which a reference is sent; for a shorter part, the reference would be as long as
the text.
"""

Place = tuple[int, int]
"""The index of an item, and the index of one of its `texts`."""


class Occurrence(msgspec.Struct, frozen=True):
    """The location of text that is already in the request: the messages that contain it, and how to refer to them.

    `short`: the reference shown in the chat. `beside`: the text is in the message being sent, not above it.
    """

    ids: tuple[str, ...]
    where: str
    short: str
    beside: bool = False


class _Sent(msgspec.Struct, frozen=True):
    """Lines of a file that are part of the message being sent."""

    item: int
    first: int
    lines: tuple[str, ...]
    whole: bool


def has_lines(text: EditorText) -> bool:
    """Return whether text consists of lines of a file, so that another message could contain it."""
    return bool(text.path) and text.first > 0


def fingerprint(item: EditorItem) -> str:
    """Return a hash that is equal for two items with the same content, or "" for an empty item."""
    if not item.texts:
        return ""
    # json, not msgspec: it accepts lone surrogates, which represent bytes that are not UTF-8.
    return hashlib.sha256(json.dumps(msgspec.to_builtins(item.texts)).encode()).hexdigest()


def refer_to(messages: Sequence[Message]) -> tuple[str, str]:
    """Return two references to the messages that show the text: one for the model and one for the chat."""
    mentioned = [m.mentioned.written for m in messages if m.mentioned is not None]
    files = [message for message in messages if message.file is not None]
    if files:
        changed = ", with its later changes" if any(one.file and one.file.is_diff for one in files) else ""
        return f"as attached{changed}", "as attached"
    if mentioned:
        return f"as `{mentioned[-1]}`", f"as {mentioned[-1]}"
    return "in the code gathered for an earlier message", "with the code"


def find_duplicates(
    items: Sequence[EditorItem],
    ids: Sequence[str],
    above: Above,
    by_id: Mapping[str, Message],
    name_of: Callable[[EditorText], str],
    *,
    beside: bool = True,
) -> dict[Place, Occurrence]:
    """Return the texts that are already in the request, with their locations.

    Whole files are compared first, then parts, the longest first. `ids`: the ids of the messages that the items become;
    `by_id`: the earlier messages. Without `beside`, other items of the same message are ignored.
    """
    found, sent = dict[Place, Occurrence](), dict[str, list[_Sent]]()
    for place, text, lines in sorted(_texts(items), key=lambda one: (not one[1].whole, -len(one[2]), one[0])):
        name = name_of(text)
        occurrence = _above(name, text, lines, above, by_id)
        if occurrence is None and beside:
            occurrence = _beside(text, lines, sent.get(name, ()), items, ids)
        if occurrence is not None and (text.whole or sum(map(len, lines)) >= MIN_NAMED_CHARS):
            found[place] = occurrence
        elif not text.partial:
            sent.setdefault(name, []).append(_Sent(place[0], text.first, lines, text.whole))
    return found


def _texts(items: Sequence[EditorItem]) -> Iterator[tuple[Place, EditorText, tuple[str, ...]]]:
    for at, item in enumerate(items):
        for number, text in enumerate(item.texts):
            if has_lines(text):
                yield (at, number), text, tuple(printable(text.text).rstrip("\n").split("\n"))


def _above(
    name: str, text: EditorText, lines: Sequence[str], above: Above, by_id: Mapping[str, Message]
) -> Occurrence | None:
    is_there = above.has_all(name, lines) if text.whole else above.has(name, text.first, lines, parts=text.partial)
    if not is_there:
        return None
    named = above.ids_of(name, text.first, text.first + len(lines) - 1)
    ids = tuple(message_id for message_id in by_id if message_id in named)
    where, short = refer_to([by_id[message_id] for message_id in ids])
    return Occurrence(ids, where, short) if ids else None


def _beside(
    text: EditorText, lines: Sequence[str], sent: Sequence[_Sent], items: Sequence[EditorItem], ids: Sequence[str]
) -> Occurrence | None:
    for one in sent:
        start = text.first - one.first
        there = one.lines[start : start + len(lines)] if start >= 0 else ()
        if len(there) != len(lines) or (text.whole and not one.whole):
            continue
        if all(line in other if text.partial else line == other for line, other in zip(lines, there, strict=True)):
            written = items[one.item].written
            word = "the same as" if text.whole else "part of"
            return Occurrence((ids[one.item],), f"as `{written}`", f"{word} {written}", beside=True)
    return None
