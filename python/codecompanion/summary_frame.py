"""Adds the header and element around a summary in the view (R-129, R-131, R-432, R-433), and removes them.

Header and element are constant except for the number of messages. The content of the summary is not handled here.
"""

from __future__ import annotations

import re
from typing import Literal

import msgspec

from codecompanion.formats.regex import regex
from codecompanion.placeholders import SUMMARY_PREFIX, quote_request, quoted_request

SummaryHeader = Literal["", "summary_of_previous", "with_count", "earlier_with_count", "handoff"]

_GOES_ON = "This session goes on from a context that was compacted."
HANDOFF = (
    f"{_GOES_ON} A previous agent produced the structured summary below to hand off the work."
    " Use this to build on the work that has already been done and avoid duplicating effort.\n\n"
)
"""The handoff header: one sentence of our own, then the specification's text, word for word (R-432)."""
_OLD_HANDOFF = (
    f"{_GOES_ON} A previous agent wrote the structured summary below to hand off the work."
    " Build on what has been done already and avoid duplicating effort.\n\n"
)
"""The handoff header in chats of earlier versions."""
SUMMARY_HEADERS: dict[SummaryHeader, str] = {
    "": "",
    "summary_of_previous": SUMMARY_PREFIX,
    "with_count": "[Conversation Summary — {count} earlier messages compacted]\n\n",
    "earlier_with_count": "[Earlier conversation summary — {count} messages compacted]\n\n",
    "handoff": HANDOFF,
}
_HEADERS = tuple(
    regex(re.escape(text).replace(re.escape("{count}"), r"\d+"))
    for text in (*SUMMARY_HEADERS.values(), _OLD_HANDOFF)
    if text
)
_ELEMENT = regex(r"(<([A-Za-z][\w-]*)>\n)(.*?)(\n</\2>)", re.DOTALL)


class Framed(msgspec.Struct, frozen=True):
    """The three parts of a summary message; joined, they are its text. `after` contains the quoted request."""

    before: str
    summary: str
    after: str


def split_frame(text: str) -> Framed:
    """Split a summary message into element and header, summary, and the request quoted after it (R-551)."""
    request = quoted_request(text)
    quote = quote_request(request) if request else ""
    inner, before, after = text, "", ""
    element = _ELEMENT.fullmatch(text) or _ELEMENT.fullmatch(text.removesuffix(quote))
    if element:
        before, inner, after = element.group(1), element.group(3), element.group(4) + text[element.end() :]
    if quote and inner.endswith(quote):
        inner, after = inner.removesuffix(quote), quote + after
    for header in _HEADERS:
        found = header.match(inner)
        if found:
            return Framed(before + found.group(), inner[found.end() :], after)
    return Framed(before, inner, after)


def bare_summary(text: str) -> str:
    """Return a summary message's text without element and header, including the quoted request."""
    request = quoted_request(text)
    return split_frame(text).summary + (quote_request(request) if request else "")


def handed_off(text: str) -> str:
    """Return the result of `bare_summary`, preceded by the handoff header if the message has it."""
    return (HANDOFF if split_frame(text).before.endswith(HANDOFF) else "") + bare_summary(text)


def neutralise_element(text: str, name: str) -> str:
    """Return the text with the tags of the element `name` escaped, so that the text can neither open nor close it."""
    return re.sub(rf"<(\s*/?\s*)({re.escape(name)})\b", r"<\\\1\2", text, flags=re.IGNORECASE)
