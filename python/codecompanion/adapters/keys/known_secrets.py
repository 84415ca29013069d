"""The keys this host knows, and removing them from the output of tools (lesson 44).

A tool may print a key: from a file, a shell's start file, another program's environment. Its output is cleaned before
it is stored, shown or sent. Hidden are the key itself, its base64, hexadecimal and percent forms, and pieces of these
from 23 letters of the key on (`base64` and `xxd -p` break lines). Other transformations are not detected. Values that
could be ordinary words do not count as keys: hiding `postgres` everywhere would not help.
"""

from __future__ import annotations

import base64
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from urllib.parse import quote, unquote, urlsplit

from codecompanion.adapters.keys.redact import HIDDEN
from codecompanion.formats.regex import regex

MIN_CHARS = 8
"""A shorter value is not a key, or it is a word that occurs everywhere."""
MIN_PLAIN_CHARS = 20
"""A value of letters only, such as `no-key-needed`, is a key from this length on."""
PIECE_CHARS = 12
"""Pieces are searched for in blocks of this length; any piece with a whole block is found."""

_SECRET_NAMES = regex(r"KEY|TOKEN|SECRET|PASS|PAT$|CREDENTIAL|_AUTH$|_PWD$", re.IGNORECASE)
_NAMES_OF_MANY = regex(r"COOKIE|CONN(?:ECTION)?_?STR|_DSN$|_HEADERS$|WEBHOOK|_SAS(?:_|$)", re.IGNORECASE)
"""Variables whose value contains a secret among other text: headers, cookies, connection strings."""
_PARTS = regex(r"[^\s=:;,/@?&\"'{}]+={0,2}(?=$|[\s=:;,/@?&\"'{}])")
_Block = tuple[str, str, int]
"""A form of a key, a block of it, and where the block begins in it."""
_LONG_WORD = regex(r"[A-Za-z0-9+/_-]{16}")
"""Without such a word in a text, nothing in it is encoded: most texts are ruled out this way at once."""
_ADDRESS = regex(r"[a-z][a-z0-9+.-]*://", re.IGNORECASE)


class KnownSecrets:
    """The keys known so far. Learning and hiding may happen in different threads."""

    def __init__(self) -> None:
        self._secrets: frozenset[str] = frozenset()
        self._forms: tuple[str, ...] = ()
        self._blocks: tuple[_Block, ...] = ()
        self._encoded_blocks: tuple[_Block, ...] = ()

    def __repr__(self) -> str:
        """Show only their number."""
        return f"KnownSecrets({len(self._secrets)})"

    def learn(self, values: Iterable[str]) -> None:
        """Hide these values from now on, unless they look like ordinary words."""
        fresh = {value.strip() for value in values if looks_like_a_key(value.strip())} - self._secrets
        if fresh:
            self._secrets |= fresh
            forms = {form for secret in self._secrets for form in _forms(secret)}
            self._forms = tuple(sorted(forms, key=len, reverse=True))
            ordered = sorted(self._secrets)
            self._blocks = tuple(block for secret in ordered for block in _blocks_of(secret, PIECE_CHARS))
            self._encoded_blocks = tuple(block for secret in ordered for block in _encoded_blocks(secret))

    def learn_environment(
        self,
        environment: Mapping[str, str],
        key_variables: Iterable[str] = (),
        is_plain_name: Callable[[str], bool] = lambda name: False,
    ) -> None:
        """Hide the values of variables whose names are those of keys, and passwords in addresses.

        `is_plain_name`: names that only look like those of keys.
        """
        of_adapters = frozenset(key_variables)
        for name, value in environment.items():
            if name in of_adapters:
                self.learn((value,))
            elif _NAMES_OF_MANY.search(name) and not is_plain_name(name):
                self.learn((*_PARTS.findall(value), *(_password(value) if _ADDRESS.match(value) else ())))
            elif _ADDRESS.match(value):
                self.learn(_password(value))
            elif _SECRET_NAMES.search(name) and not is_plain_name(name) and not value.startswith(("/", "~", ".")):
                self.learn((value,))

    def hide(self, text: str) -> str:
        """Return the text with every key, its other forms and long pieces of it replaced by `[hidden]`."""
        for form in self._forms:
            if form in text:
                text = text.replace(form, HIDDEN)
        blocks = self._blocks
        if self._encoded_blocks and _LONG_WORD.search(text):
            blocks += self._encoded_blocks
        for secret, block, at in blocks:
            if block in text:
                text = _without_piece(text, secret, block, at)
        return text


def looks_like_a_key(value: str) -> bool:
    """Return whether the value cannot be an ordinary word: long, or letters and digits, without spaces."""
    if len(value) < MIN_CHARS or any(letter.isspace() for letter in value):
        return False
    has_both = any(letter.isdigit() for letter in value) and any(letter.isalpha() for letter in value)
    return has_both or (len(value) >= MIN_PLAIN_CHARS and len(set(value)) > MIN_CHARS // 2)


def _forms(secret: str) -> Iterator[str]:
    data = _bytes(secret)
    yield secret
    yield data.decode("utf-8", "replace")
    yield quote(data, safe="")
    yield from _hexadecimal(data)
    yield from _base64(data)


def _hexadecimal(data: bytes) -> tuple[str, str]:
    return data.hex(), data.hex().upper()


def _base64(data: bytes) -> Iterator[str]:
    for shift in range(3):
        for encode in (base64.b64encode, base64.urlsafe_b64encode):
            # The surrounding text changes the first and the last letters; the middle ones depend only on the key.
            encoded = encode(b"\0" * shift + data).decode()
            start, end = (0, 2, 3)[shift], (len(data) + shift) * 8 // 6
            if end - start >= MIN_CHARS:
                yield encoded[start:end]


def _bytes(secret: str) -> bytes:
    """Return the key's bytes; bytes that are not text are surrogates in it, as in `os.environ`."""
    try:
        return secret.encode("utf-8", "surrogateescape")
    except UnicodeEncodeError:
        return secret.encode("utf-8", "surrogatepass")


def _encoded_blocks(secret: str) -> Iterator[_Block]:
    data = _bytes(secret)
    for form in dict.fromkeys(_hexadecimal(data)):
        yield from _blocks_of(form, 2 * PIECE_CHARS)
    for form in dict.fromkeys(_base64(data)):
        yield from _blocks_of(form, PIECE_CHARS * 4 // 3)


def _blocks_of(form: str, length: int) -> Iterator[_Block]:
    """Yield blocks of a form of the key without its beginning, which only identifies the provider (`sk-ant-…`)."""
    for at in range(length, len(form) - length + 1, length):
        yield form, form[at : at + length], at


def _without_piece(text: str, secret: str, block: str, at: int) -> str:
    """Return the text with each piece of the key around the block hidden, as far as it extends."""
    parts, position = [], 0
    while (found := text.find(block, position)) >= 0:
        start, end, before, after = found, found + len(block), at, at + len(block)
        while start > position and before > 0 and text[start - 1] == secret[before - 1]:
            start, before = start - 1, before - 1
        while end < len(text) and after < len(secret) and text[end] == secret[after]:
            end, after = end + 1, after + 1
        parts += [text[position:start], HIDDEN]
        position = end
    return "".join((*parts, text[position:]))


def _password(address: str) -> tuple[str, ...]:
    try:
        password = urlsplit(address).password or ""
    except ValueError:
        return ()
    return (password, unquote(password))
