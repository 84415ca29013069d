"""Keep keys out of every text (lesson 44): error sentences, log lines, what a provider echoes back."""

from __future__ import annotations

from collections.abc import Iterable
from urllib.parse import parse_qsl, urlsplit, urlunsplit

from codecompanion.formats.regex import regex

HIDDEN = "[hidden]"
# Shapes of keys that providers echo although we never had them as a secret (a mistyped one, one of a proxy).
_KEY_SHAPES = regex(
    r"\b(?:sk|pk|rk|gsk|xai|hf|ghp|gho|ghu|github_pat|nvapi|pplx|csk|fw|r8)[-_][\w*.…-]{6,}"
    r"|\bAIza[\w-]{20,}|\beyJ[\w-]{10,}\.[\w-]{5,}\.[\w-]*"
    r"|(?i:\bbearer\s+)[\w*.+/=…-]{8,}"
    r"|(?i:\b(?:api[-_ ]?key|authorization)[\"']?\s*[:=]\s*[\"']?)[\w*.+/=…-]{8,}"
)
_MIN_SECRET_LENGTH = 4


def redact(text: str, secrets: Iterable[str] = ()) -> str:
    """Return the text with the secrets, and everything that looks like a key, replaced by `[hidden]`."""
    for secret in sorted({secret for secret in secrets if len(secret) >= _MIN_SECRET_LENGTH}, key=len, reverse=True):
        text = text.replace(secret, HIDDEN)
    return _KEY_SHAPES.sub(HIDDEN, text)


def secrets_in_url(url: str) -> list[str]:
    """Return what an address holds besides the address: password and values of the query."""
    try:
        parts = urlsplit(url)
        return [value for value in (parts.password, *(value for _, value in parse_qsl(parts.query))) if value]
    except ValueError:
        return []


def plain_url(url: str) -> str:
    """Return the address without user info, query and fragment: what may stand in a sentence."""
    try:
        parts = urlsplit(url)
    except ValueError:
        return HIDDEN
    host = parts.netloc.rpartition("@")[2]
    return urlunsplit((parts.scheme, host, parts.path, "", ""))
