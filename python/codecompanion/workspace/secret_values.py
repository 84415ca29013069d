"""Decides whether a name indicates a secret, and whether a value looks like one.

The words are data (`secret_text.toml`). A placeholder such as `your-key` or `${TOKEN}` is not a secret.
"""

from __future__ import annotations

import re
from functools import cache
from itertools import pairwise
from math import log2

import msgspec

from codecompanion.formats.package_table import package_table
from codecompanion.formats.regex import regex

_MIN_RANDOM_BITS = 3.0
_MIN_CHANGES = 0.15
"""Minimum number of changes between lower case, upper case and digits per character; words have few, random text many.
"""
_LONG = 28
"""Minimum length at which a value's characters count more than words that it may contain by chance."""
_SOME_DIGITS = 3
_MIN_KEY = 20
_MIN_PLACEHOLDER = 6
_MIN_PASSWORD, _MAX_PASSWORD, _MIN_DISTINCT = 6, 600, 5


class _Words(msgspec.Struct, frozen=True):
    passwords: frozenset[str]
    tokens: frozenset[str]
    perhaps: frozenset[str]
    keys: frozenset[str]
    before_key: frozenset[str]
    after: frozenset[str]
    never: frozenset[str]


@cache
def _words() -> _Words:
    table = package_table("workspace/secret_text.toml")["assignments"]
    return _Words(**{name: frozenset(text.split()) for name, text in table.items()})


@cache
def _placeholders() -> re.Pattern[str]:
    words = package_table("workspace/secret_text.toml")["placeholders"]["inside"].split()
    return re.compile("|".join(map(re.escape, words)))


def names_secret(name: str) -> bool:
    """Return whether a name indicates a secret: `api_token`, "Database password"."""
    return strength_of(name) not in ("", "key")


_PARTS = regex(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+|\d+")


def strength_of(name: str) -> str:
    """Return the type of value a name suggests: "password", "token", "key" (maybe a provider's key), or ""."""
    words, parts = _words(), [part.lower() for part in _PARTS.findall(name)]
    while parts and (parts[-1] in words.after or parts[-1].isdigit()) and not _of_parts(parts):
        parts.pop()
    return _of_parts(parts)


def _of_parts(parts: list[str]) -> str:
    words = _words()
    if not parts or "public" in parts:
        return ""
    last, before = parts[-1], parts[-2] if len(parts) > 1 else ""
    if last in words.passwords or last.endswith(("password", "passwd", "passphrase")):
        return "password"
    if last in words.tokens or last.endswith(("token", "secret", "apikey", "secretkey", "accesskey", "privatekey")):
        return "token"
    if last in words.keys and before in words.before_key:
        return "token"
    return "key" if last in words.perhaps or (last in words.keys and before) else ""


def is_password(value: str) -> bool:
    """Return whether a value may be a password: it has no words or placeholder, and has both letters and digits."""
    if (
        not _MIN_PASSWORD <= len(value) <= _MAX_PASSWORD
        or any(letter.isspace() for letter in value)
        or is_placeholder(value)
    ):
        return False
    return is_mixed(value) and len(set(value)) >= 5


def is_mixed(value: str) -> bool:
    """Return whether a value has both letters and digits."""
    return any(letter.isdigit() for letter in value) and any(letter.isalpha() for letter in value)


def is_mixed_case(value: str, min_bits: float = _MIN_RANDOM_BITS) -> bool:
    """Return whether a value looks like random upper case, lower case and digits, or is a long hash."""
    if _HEX.fullmatch(value):
        return len(value) >= _LONG and is_random(value)
    kinds = (str.isdigit, str.isupper, str.islower)
    return (
        len(value) >= _MIN_KEY
        and all(any(map(of_kind, value)) for of_kind in kinds)
        and sum(map(str.isdigit, value)) >= 2
        and is_random(value, min_bits)
    )


_RANDOM_LETTERS = regex(r"[\w+/=.~:@!#%^&*$?,-]{16,}|[!-~]{40,}")
_LONG_WORDS = regex(r"[a-z]{4,}")
_HEX = regex(r"[0-9a-fA-F]{16,}")
_WORDS_AND_DIGITS = regex(r"(?:[A-Za-z]{3,}|\d+)(?:[-_./:][A-Za-z]{2,}|[-_./:]\d{1,4}|[-_./:]v\d+)+$")


def is_random(value: str, min_bits: float = _MIN_RANDOM_BITS) -> bool:
    """Return whether a value looks random: long, with many different characters, and frequent changes of their type."""
    value = value.removeprefix("base64:")
    if not _RANDOM_LETTERS.fullmatch(value) or is_placeholder(value) or _WORDS_AND_DIGITS.match(value):
        return False
    if bits_of(value) < min_bits:
        return False
    if _HEX.fullmatch(value):
        return is_mixed(value)
    if not any(letter.isdigit() for letter in value) and len(value) < _LONG:
        return False
    has_few_digits = sum(letter.isdigit() for letter in value) < _SOME_DIGITS
    if (
        has_few_digits
        and any(letter.isupper() for letter in value)
        and sum(map(len, _LONG_WORDS.findall(value))) > len(value) / 2
    ):
        return False  # camel-case words
    kinds = ["0" if c.isdigit() else "A" if c.isupper() else "a" if c.islower() else "" for c in value]
    letters = [kind for kind in kinds if kind]
    changes = sum(1 for one, two in pairwise(letters) if one != two)
    return bool(letters) and changes >= _MIN_CHANGES * len(letters)


def bits_of(value: str) -> float:
    """Return the entropy of a value in bits per character."""
    counts = [value.count(letter) for letter in set(value)]
    return -sum(count / len(value) * log2(count / len(value)) for count in counts)


def is_placeholder(value: str) -> bool:
    """Return whether a value is a placeholder: `your-key`, `${TOKEN}`, `xxxx`."""
    lowered = value.lower()
    if lowered[0] in "$%<{[":
        return True
    found = _placeholders().search(lowered)
    return found is not None and (len(value) < _LONG or len(found[0]) >= _MIN_PLACEHOLDER or len(set(found[0])) == 1)
