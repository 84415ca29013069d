"""Measures a transcript, and fits it into a number of characters (R-439).

The token count of a long transcript is the sum of the counts that its messages had when they were logged, because
counting 10 MB again takes a third of a second. An entry is off by at most a few tokens, where the text meets its
surroundings; the sum over 1,900 entries of recorded sessions differed by 18 of 1,144,151. Short transcripts are
counted.
"""

from __future__ import annotations

import bisect
import itertools
from collections.abc import Callable, Sequence
from functools import cache

from codecompanion.context.work import Env
from codecompanion.model.messages import Message, Role

_MARKER = "[messages left out: {count}]"
# A marker with a number of six digits and its newline.
_MARKER_CHARS = len(_MARKER.format(count=999_999)) + 1

_XML_END = "</message>"
_SAMPLES, _SAMPLE_CHARS = 64, 2048
_LONG_CHARS = 4 * _SAMPLES * _SAMPLE_CHARS


def roughly(entries: Sequence[str], count: Callable[[str], int]) -> int:
    """Return an estimated token count of a long transcript from evenly spread samples, or 0 for a short transcript.

    The error may be 10 %.
    """
    ends = list(itertools.accumulate(map(len, entries)))
    if not ends or ends[-1] < _LONG_CHARS:
        return 0
    counted = read = 0
    for start in range(0, ends[-1], ends[-1] // _SAMPLES):
        place = bisect.bisect_right(ends, start)
        at = start - (ends[place - 1] if place else 0)
        # The text is never joined as a whole: copying 10 MB would delay other chats.
        sample = ""
        while len(sample) < _SAMPLE_CHARS and place < len(entries):
            sample += entries[place][at : at + _SAMPLE_CHARS - len(sample)]
            place, at = place + 1, 0
        counted, read = counted + count(sample), read + len(sample)
    return round(counted * ends[-1] / read)


def entry_sizes(entries: Sequence[str], messages: Sequence[Message], env: Env) -> tuple[int, ...]:
    """Return the token count of each entry that has its message's whole text; 0 for the others.

    The result is empty for a short transcript.
    """
    if sum(map(len, entries)) < _LONG_CHARS:
        return ()
    count_around, count_bare = cache(env.count_text), cache(lambda role, call: env.count(_bare(role, call)))
    sizes: list[int] = []
    for entry, message in zip(entries, messages, strict=True):
        text, size = message.content, 0
        if message.tokens and text and isinstance(text, str) and not message.tool_calls:
            end = len(entry) - (len(_XML_END) if entry.endswith(_XML_END) else 0)
            start = end - len(text)
            if start >= 0 and entry.startswith(text, start):
                around = count_around(entry[:start] + entry[end:])
                size = max(0, message.tokens - count_bare(message.role, message.tool_call_id is not None)) + around
        sizes.append(size)
    return tuple(sizes)


def _bare(role: Role, is_result: bool) -> Message:
    return Message(id="", role=role, tool_call_id="" if is_result else None)


def fit_entries(entries: tuple[str, ...], spoken: Sequence[bool], limit: int) -> tuple[str, ...]:
    """Return entries that take at most `limit` characters, including the newlines between them.

    `spoken` marks the user's entries. If no more entries can be left out, the first and the newest are cut at their
    ends.
    """
    size = sum(len(entry) + 1 for entry in entries)
    if size <= limit:
        return entries
    left_out = [False] * len(entries)
    middle = range(1, len(entries) - 1)
    order = [i for i in middle if not spoken[i]] + [i for i in middle if spoken[i]]
    for index in order:
        if size <= limit:
            break
        beside = left_out[index - 1] + left_out[index + 1]
        left_out[index] = True
        size += _MARKER_CHARS * (1 - beside) - len(entries[index]) - 1
    fitted = _with_markers(entries, left_out)
    return fitted if size <= limit else _cut(fitted, limit)


def _with_markers(entries: tuple[str, ...], left_out: list[bool]) -> tuple[str, ...]:
    told: list[str] = []
    missing = 0
    for entry, out in zip(entries, left_out, strict=True):
        if out:
            missing += 1
            continue
        if missing:
            told.append(_MARKER.format(count=missing))
            missing = 0
        told.append(entry)
    return tuple(told)


def _cut(entries: tuple[str, ...], limit: int) -> tuple[str, ...]:
    """Return the entries, each cut to its share of the limit; short entries leave more for the others."""
    room, left = limit - len(entries), len(entries)
    cut: dict[int, str] = {}
    for index in sorted(range(len(entries)), key=lambda i: len(entries[i])):
        share = max(0, room // left)
        cut[index] = entries[index][:share]
        room, left = room - len(cut[index]), left - 1
    return tuple(cut[index] for index in range(len(entries)))
