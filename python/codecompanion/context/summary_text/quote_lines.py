"""Renders the user's messages as lines of a summary, and parses those lines (R-431).

Quoted lines start with `>`, so a user's text can never pass for a heading.
"""

from __future__ import annotations

from collections.abc import Iterable

import msgspec

from codecompanion.context.summary_text.recall_keys import Span, is_span_line, span_of
from codecompanion.formats.regex import regex
from codecompanion.placeholders import NO_ROOM

_LEFT_OUT = "- […] {count} older messages are not listed"
_LEFT_OUT_FORM = regex(r"- \[…\] (\d+) older messages are not listed(?:: recall r(\d+)(?: to r(\d+))?)?")
_KEY = " (recall {key})"
_KEY_FORM = regex(r"(.*) \(recall (r\d+)\)")
_KEY_LINE = regex(r"\(recall (r\d+)\)")
_NOTHING = frozenset({"none", "none.", NO_ROOM})
_LONG = 100


class Quote(msgspec.Struct, frozen=True):
    """One user message: its full text, or a single line if `whole` is False.

    With `key`, `recall` returns the full text.
    """

    text: str
    whole: bool = True
    key: str = ""


class Quotes(msgspec.Struct, frozen=True):
    """The user's messages in a summary, oldest first; `left_out`: how many were omitted, `left_keys`: their keys."""

    quotes: tuple[Quote, ...] = ()
    left_out: int = 0
    left_keys: Span | None = None

    @property
    def total(self) -> int:
        """Return the total number of messages."""
        return len(self.quotes) + self.left_out


def render_quotes(said: Quotes) -> list[str]:
    """Return the lines of the section: the count, excerpts as `- `, quotations as `> `, separated by empty lines.

    A quotation that a later summary may have to shorten is followed by a line with its key.
    """
    lines = [left_out_line(said)] if said.left_out else []
    for quote in said.quotes:
        key = _KEY.format(key=quote.key) if quote.key else ""
        if not quote.whole:
            lines.append(f"- {quote.text}{key}")
            continue
        if lines:
            lines.append("")
        lines += [f"> {line}" if line else ">" for line in quote.text.split("\n")]
        if key and (len(quote.text) > _LONG or "\n" in quote.text):
            lines.append(key.strip())
    return lines


def left_out_line(said: Quotes) -> str:
    """Return the line that counts the omitted messages."""
    keys = f": recall {said.left_keys.keys}" if said.left_keys is not None else ""
    return _LEFT_OUT.format(count=said.left_out) + keys


def parse_quotes(lines: Iterable[str]) -> Quotes:
    """Return the quotes written by `render_quotes` as these lines; any other line counts as an excerpt."""
    quotes: list[Quote] = []
    left_out, open_quote = 0, False
    left_keys: Span | None = None
    for line in lines:
        counted, key = _LEFT_OUT_FORM.fullmatch(line), _KEY_LINE.fullmatch(line)
        if line.startswith(">"):
            words = line[2:] if line.startswith("> ") else line[1:]
            if open_quote:
                quotes[-1] = Quote(f"{quotes[-1].text}\n{words}")
            else:
                quotes.append(Quote(words))
        elif counted:
            left_out += int(counted.group(1))
            first, last = counted.group(2), counted.group(3)
            left_keys = joined(left_keys, span_of([first or "", last or ""]))
        elif key and open_quote:
            quotes[-1] = msgspec.structs.replace(quotes[-1], key=key.group(1))
        elif line.strip() and not is_span_line(line) and line.strip().casefold() not in _NOTHING:
            quotes.append(_read_excerpt(line.strip().removeprefix("- ")))
        open_quote = line.startswith(">")
    return Quotes(tuple(quotes), left_out, left_keys)


def _read_excerpt(line: str) -> Quote:
    found = _KEY_FORM.fullmatch(line)
    return Quote(found.group(1), whole=False, key=found.group(2)) if found else Quote(line, whole=False)


def joined(one: Span | None, other: Span | None) -> Span | None:
    """Return the span that covers both spans, or None if neither exists."""
    return one.joined(other) if one is not None else other
