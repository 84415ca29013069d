"""Finds faults: edits that need text that was cleared (lesson 24).

**Needs.** An edit tool call that names the text it replaces (`old_str`, `oldText`, `old_string`, `old_text` …, `search`
beside `replace`, the context and removed lines of a patch), or a SEARCH/REPLACE block in a reply, needs every line of
that text that is not blank, ignoring surrounding spaces.

**Fault.** A recorded message before the call contains all these lines, and no message of the request that the call
answers does: neither an unchanged one, nor a placeholder, a shortened result, or a summary. If the lines were never
together in one message, every line that did occur must still occur somewhere. Lines that were never in the history (the
model knew them from elsewhere) are not a fault. An edit is at most one fault.

A recording shows the model's actions with everything in view. After a fault a real model would read the file again:
`replay` adds the cost of that. A recorded read between the clearing and the edit restores the text, so there is no
fault. Text needed only for thinking is not detected.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from codecompanion.context.message_facts.calls import read_arguments, strings_in
from codecompanion.formats.regex import regex
from codecompanion.model.messages import Message

_OLD_KEYS = frozenset({"oldstr", "oldtext", "oldstring", "old", "oldcontent", "oldcode"})
_SEARCH_KEYS = frozenset({"search", "find", "searchtext", "original"})
_REPLACE_KEYS = frozenset({"replace", "replacement", "replacetext", "updated", "new"})
_BLOCK = regex(r"^<{5,9} ?SEARCH[^\n]*\n(.*?)^={5,9}\s*$", re.MULTILINE | re.DOTALL)
_PATCH = regex(r"^\*\*\* Begin Patch$(.*?)^\*\*\* End Patch", re.MULTILINE | re.DOTALL)
_NUMBERED = regex(r"^\s*\d+\s*(?:[|:→]|\t)\s?")


def needed_texts(message: Message) -> tuple[tuple[str, ...], ...]:
    """Return the lines that each edit of a reply needs, as a tuple per edit; none for a reply without edits."""
    found = [old for old in map(_lines, _BLOCK.findall(message.text)) if old]
    for call in message.tool_calls:
        arguments = read_arguments(call.arguments)
        texts = [*_old_texts(arguments), *_patch_texts(arguments)]
        if lines := tuple(line for text in texts for line in _lines(text)):
            found.append(lines)
    return tuple(found)


def _old_texts(value: Any, depth: int = 0) -> Iterator[str]:
    """Yield the strings that a call's arguments ask to replace, including those in a list of edits."""
    if depth > 6:
        return
    if isinstance(value, list):
        for item in value:
            yield from _old_texts(item, depth + 1)
    if not isinstance(value, dict):
        return
    names = {re.sub(r"[^a-z]", "", str(name).lower()): item for name, item in value.items()}
    replaces = bool(_REPLACE_KEYS & names.keys())
    for name, item in names.items():
        if isinstance(item, str) and (name in _OLD_KEYS or (replaces and name in _SEARCH_KEYS)):
            yield item
        elif not isinstance(item, str):
            yield from _old_texts(item, depth + 1)


def _patch_texts(arguments: Any) -> Iterator[str]:
    """Yield the removed and context lines of the patches in the arguments."""
    for _, text in strings_in(arguments):
        for patch in _PATCH.findall(text):
            yield "\n".join(line[1:] for line in patch.split("\n") if line[:1] in ("-", " "))


def _lines(text: str) -> tuple[str, ...]:
    return tuple(dict.fromkeys(line.strip() for line in text.split("\n") if line.strip()))


def readable_texts(message: Message) -> Iterator[str]:
    """Yield all strings of a message from which a model could copy a line."""
    yield message.text
    for call in message.tool_calls:
        yield from (text for _, text in strings_in(read_arguments(call.arguments)))


class LineIndex:
    """The positions of each line in a recorded session: built once, queried for every policy."""

    def __init__(self, messages: Sequence[Message]) -> None:
        self._messages = messages
        self._texts: dict[str, tuple[Message, str]] = {}
        self._places: dict[str, list[int]] = {}
        for place, message in enumerate(messages):
            lines = {
                line for text in readable_texts(message) for raw in text.split("\n") for line in _spellings(raw) if line
            }
            for line in lines:
                self._places.setdefault(line, []).append(place)

    def is_fault(self, lines: Sequence[str], before: int, shown: Mapping[str, Message]) -> bool:
        """Return whether an edit at index `before` needs text that is missing from the messages `shown` (by id)."""
        places = [frozenset(place for place in self._places.get(line, ()) if place < before) for line in lines]
        together = frozenset.intersection(*places)
        if any(self._is_whole(place, shown) for place in together):
            return False
        if together and not any(all(line in self._text(message) for line in lines) for message in shown.values()):
            return True
        return any(self._is_missing(line, at, before, shown) for line, at in zip(lines, places, strict=True))

    def newest_source(self, lines: Sequence[str], before: int) -> Message:
        """Return the newest recorded message before index `before` with all these lines, or else with most of them."""
        held: dict[int, int] = {}
        for line in lines:
            for place in self._places.get(line, ()):
                if place < before:
                    held[place] = held.get(place, 0) + 1
        return self._messages[max(held, key=lambda place: (held[place], place))] if held else self._messages[before]

    def _is_missing(self, line: str, places: frozenset[int], before: int, shown: Mapping[str, Message]) -> bool:
        """Return whether a line occurred before and is nowhere in the request."""
        if any(self._is_whole(place, shown) for place in places):
            return False
        if any(line in self._text(message) for message in shown.values()):
            return False
        return bool(places) or any(line in self._text(message) for message in self._messages[:before])

    def _text(self, message: Message) -> str:
        """Return all readable text of a message; cached for each state of the message."""
        known = self._texts.get(message.id)
        if known is None or known[0] is not message:
            known = self._texts[message.id] = (message, "\n".join(readable_texts(message)))
        return known[1]

    def _is_whole(self, place: int, shown: Mapping[str, Message]) -> bool:
        """Return whether the request still contains the message as recorded."""
        recorded = self._messages[place]
        now = shown.get(recorded.id)
        return now is not None and (now.content, now.tool_calls) == (recorded.content, recorded.tool_calls)


def _spellings(raw: str) -> tuple[str, str]:
    """Return a line without surrounding spaces, and the same without a line number added by a tool."""
    return raw.strip(), _NUMBERED.sub("", raw).strip()
