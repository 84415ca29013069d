"""Redacts the keys known to this host in tool output (lesson 44).

A tool may print a key from a file, a shell's startup file, or another program's environment. Tool output is therefore
redacted before it is stored, shown or sent. Redaction covers the key itself, its base64, hexadecimal and
percent-encoded forms, and fragments of these that cover at least 23 letters of the key (`base64` and `xxd -p` break
lines). Other transformations are not detected. Values that could be ordinary words do not count as keys: redacting
`postgres` everywhere would not help.
"""

from __future__ import annotations

import base64
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from urllib.parse import quote, unquote, urlsplit

from codecompanion.adapters.keys.redact import HIDDEN
from codecompanion.formats.regex import regex

MIN_CHARS = 8
"""Minimum length of a key; a shorter value may be an ordinary word."""
MIN_PLAIN_CHARS = 20
"""Minimum length of a key that consists of letters only, so that `no-key-needed` does not count as a key."""
PIECE_CHARS = 12
"""Length of the key blocks that are searched for; any fragment that contains a whole block is found."""

_SECRET_NAMES = regex(r"KEY|TOKEN|SECRET|PASS|PAT$|CREDENTIAL|_AUTH$|_PWD$", re.IGNORECASE)
_NAMES_OF_MANY = regex(r"COOKIE|CONN(?:ECTION)?_?STR|_DSN$|_HEADERS$|WEBHOOK|_SAS(?:_|$)", re.IGNORECASE)
"""Names of variables whose value contains a secret among other text: headers, cookies, connection strings."""
_PARTS = regex(r"[^\s=:;,/@?&\"'{}]+={0,2}(?=$|[\s=:;,/@?&\"'{}])")
_Block = tuple[str, str, int]
"""An encoded form of a key, a block of it, and the block's position."""
_LONG_WORD = regex(r"[A-Za-z0-9+/_-]{16}")
"""Matches a word long enough to contain an encoded key; most strings have none and are skipped."""
_ADDRESS = regex(r"[a-z][a-z0-9+.-]*://", re.IGNORECASE)


class KnownSecrets:
    """The keys known so far. Learning and redaction may run in different threads."""

    def __init__(self) -> None:
        self._secrets: frozenset[str] = frozenset()
        self._forms: tuple[str, ...] = ()
        self._blocks: tuple[_Block, ...] = ()
        self._encoded_blocks: tuple[_Block, ...] = ()

    def __repr__(self) -> str:
        """Show only the number of keys."""
        return f"KnownSecrets({len(self._secrets)})"

    def learn(self, values: Iterable[str]) -> None:
        """Add values to redact, unless they look like ordinary words."""
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
        """Learn the values of variables named like keys, and passwords in URLs.

        `is_plain_name` returns whether a name looks like the name of a key but is not one.
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
        """Replace every key, its encoded forms and long fragments of either in the text with `[hidden]`."""
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
            # The first and last letters depend on the surrounding text; the middle ones only on the key.
            encoded = encode(b"\0" * shift + data).decode()
            start, end = (0, 2, 3)[shift], (len(data) + shift) * 8 // 6
            if end - start >= MIN_CHARS:
                yield encoded[start:end]


def _bytes(secret: str) -> bytes:
    """Return the key's bytes; surrogates from undecodable bytes, as in `os.environ`, become those bytes again."""
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
    """Yield blocks of a form of the key, except its beginning, which only identifies the provider (`sk-ant-…`)."""
    for at in range(length, len(form) - length + 1, length):
        yield form, form[at : at + length], at


def _without_piece(text: str, secret: str, block: str, at: int) -> str:
    """Redact each fragment of the key around the block, to its full length."""
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
