"""Redacts keys in all output (lesson 44): error messages, log lines, text echoed by a provider."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from urllib.parse import parse_qsl, urlsplit, urlunsplit

from codecompanion.formats.regex import regex

HIDDEN = "[hidden]"
# Patterns of keys that providers may echo but that we do not know (a mistyped key, a proxy's key).
_PREFIXES = "sk pk rk gsk xai hf ghp gho ghu github_pat nvapi pplx csk fw r8".split()
_KEY_SHAPES = regex(
    rf"\b(?:{'|'.join(_PREFIXES)})[-_][\w*.…-]{{6,}}"
    r"|\bAIza[\w-]{20,}|\beyJ[\w-]{10,}\.[\w-]{5,}\.[\w-]*"
    r"|(?i:\bbearer\s+)[\w*.+/=…-]{8,}"
    r"|(?i:\b(?:api[-_ ]?key|authorization)[\"']?\s*[:=]\s*[\"']?)[\w*.+/=…-]{8,}"
)
# The start of a match, and its lower-case form: searching for these takes a thirtieth of the time. Starts are searched
# for only if the text contains their shared part: most prefixes end in a k, and the others are not words.
_MARKED_STARTS = (
    *((f"k{mark}", tuple(word + mark for word in _PREFIXES if word.endswith("k"))) for mark in "-_"),
    *((word, (f"{word}-", f"{word}_")) for word in _PREFIXES if not word.endswith("k")),
)
_STARTS = ("AIza", "eyJ")
_LOWER_STARTS = ("bearer", "api", "authorization")
_ALSO_I_S_OR_K = "İıſ\u212a"
"""Letters that match an i, an s or a k in a case-insensitive pattern."""
_MIN_SECRET_LENGTH = 4


def redact(text: str, secrets: Iterable[str] = ()) -> str:
    """Replace the secrets, and everything that looks like a key, with `[hidden]`."""
    for secret in sorted({secret for secret in secrets if len(secret) >= _MIN_SECRET_LENGTH}, key=len, reverse=True):
        text = text.replace(secret, HIDDEN)
    return _hide_shapes(text)


def _hide_shapes(text: str) -> str:
    """Redact matches of `_KEY_SHAPES` in the text, which are tried only where they can match."""
    if not text.isascii() and any(letter in text for letter in _ALSO_I_S_OR_K):
        return _KEY_SHAPES.sub(HIDDEN, text)
    parts, end = list[str](), 0
    starts = list(_STARTS)
    if "-" in text or "_" in text:
        starts += [start for shared, some in _MARKED_STARTS if shared in text for start in some]
    for place in sorted((*_places(text, starts), *_places(text.lower(), _LOWER_STARTS))):
        match = _KEY_SHAPES.match(text, place) if place >= end else None
        if match:
            parts += (text[end:place], HIDDEN)
            end = match.end()
    return "".join((*parts, text[end:])) if parts else text


def _places(text: str, words: Iterable[str]) -> Iterator[int]:
    """Yield the position of each occurrence of the words in the text."""
    for word in words:
        place = text.find(word)
        while place >= 0:
            yield place
            place = text.find(word, place + 1)


def secrets_in_url(url: str) -> list[str]:
    """Return the secret parts of a URL: the password and the query values."""
    try:
        parts = urlsplit(url)
        return [value for value in (parts.password, *(value for _, value in parse_qsl(parts.query))) if value]
    except ValueError:
        return []


def plain_url(url: str) -> str:
    """Return the URL without user info, query and fragment, safe to show."""
    try:
        parts = urlsplit(url)
    except ValueError:
        return HIDDEN
    host = parts.netloc.rpartition("@")[2]
    return urlunsplit((parts.scheme, host, parts.path, "", ""))
