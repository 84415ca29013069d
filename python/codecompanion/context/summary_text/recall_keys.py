"""Puts keys into the view with which `recall` can read the summarised messages verbatim (R-431, R-516).

One line gives the first and the last key of everything that left the view; a quote that is not whole has its own key.
The position of the line depends on the summary's form: in the section of the user's messages, as the last bullet of a
bulleted summary, or below a summary without sections. Without a log, there are no keys and no line.
"""

from __future__ import annotations

import re
from collections.abc import Callable

import msgspec

from codecompanion.context.summary_text.sections import guess_schema, parse_sections, replace_section
from codecompanion.context.work import Env, Work
from codecompanion.formats.regex import regex
from codecompanion.model.messages import SUMMARY_TAG, with_changes
from codecompanion.placeholders import split_notes
from codecompanion.summary_frame import split_frame

KeyOf = Callable[[str], str]
_LINE = "- Word for word in the log: recall {keys}"
_LINE_FORM = regex(r"^- Word for word in the log: recall r(\d+)(?: to r(\d+))?$", re.MULTILINE)
_WITH_SPACE = regex(rf"(?<!\n)\n*{_LINE_FORM.pattern}", re.MULTILINE)
_MARK_FORM = regex(r" ?\(recall r\d+\)|: recall r\d+(?: to r\d+)?(?=$)", re.MULTILINE)
_POINTS = "Compaction Summary:\n"


def no_key(message_id: str) -> str:
    """Return "", as the key function for chats without a log."""
    return ""


class Span(msgspec.Struct, frozen=True):
    """The first and the last log position of a range of messages."""

    first: int
    last: int

    def joined(self, other: Span | None) -> Span:
        """Return the span that covers this span and the other."""
        return self if other is None else Span(min(self.first, other.first), max(self.last, other.last))

    @property
    def keys(self) -> str:
        """Return the keys as shown to a reader."""
        return f"r{self.first}" + (f" to r{self.last}" if self.last > self.first else "")

    @property
    def line(self) -> str:
        """Return the line with these keys for a summary."""
        return _LINE.format(keys=self.keys)


def read_span(text: str) -> Span | None:
    """Return the span in a summary's text, or None if there is none."""
    span: Span | None = None
    for first, last in _LINE_FORM.findall(text):
        span = Span(int(first), int(last or first)).joined(span)
    return span


def span_of(keys: list[str]) -> Span | None:
    """Return the span of these keys, skipping empty ones."""
    places = [int(key.removeprefix("r")) for key in keys if key]
    return Span(min(places), max(places)) if places else None


def is_span_line(line: str) -> bool:
    """Return whether the line contains the keys of a summary."""
    return _LINE_FORM.fullmatch(line) is not None


def without_span(text: str) -> str:
    """Return a summary's text without the line that contains its keys."""
    return _WITH_SPACE.sub("", text) if _LINE_FORM.search(text) else text


def without_keys(text: str) -> str:
    """Return a summary's text without any keys, for readers with another log, or none."""
    return _MARK_FORM.sub("", without_span(text))


def put_span(summary: str, span: Span) -> str:
    """Return a summary's text with the line for this span, if its form has a place for it."""
    text = without_span(summary)
    schema = guess_schema(text)
    number = schema.number_of("user_messages") if schema is not None else 0
    if schema is not None and number:
        body = parse_sections(text, schema).body(number)
        return replace_section(text, schema, number, f"{body}\n\n{span.line}" if body else span.line)
    if text.startswith(_POINTS):
        return f"{text.rstrip()}\n{span.line}"
    text, notes = split_notes(text)
    return "\n\n".join(part for part in (text.rstrip(), span.line, notes) if part)


def note_keys(work: Work, env: Env) -> Work:
    """Return the work with a summary message that gives the keys of all messages that left the view."""
    place = next((i for i, message in enumerate(work.messages) if message.tag == SUMMARY_TAG), None)
    if place is None:
        return work
    here = {message.id for message in (*work.messages, *work.pending)}
    span = span_of([env.key_of(message.id) for message in work.before if message.id not in here])
    for message in work.before:
        if message.tag == SUMMARY_TAG:
            earlier = read_span(message.text)
            span = earlier.joined(span) if earlier is not None else span
    if span is None:
        return work
    return put_text(work, place, put_span(split_frame(work.messages[place].text).summary, span), env)


def update_keys(work: Work, env: Env) -> Work:
    """Return the work with its summary's keys, if any, updated to all messages that left the view."""
    told = any(message.tag == SUMMARY_TAG and read_span(message.text) is not None for message in work.messages)
    return note_keys(work, env) if told else work


def put_text(work: Work, place: int, text: str, env: Env) -> Work:
    """Return the work with new text in the frame of the summary at this index."""
    frame = split_frame(work.messages[place].text)
    changed = env.recounted(with_changes(work.messages[place], content=frame.before + text + frame.after))
    return msgspec.structs.replace(work, messages=(*work.messages[:place], changed, *work.messages[place + 1 :]))
