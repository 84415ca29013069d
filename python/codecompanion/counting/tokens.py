"""Counts tokens: a fast local estimate, corrected by reported usage (R-505, lesson 42).

Three layers, each a value or a pure function:

* `estimate_text` estimates the tokens of a string from counts of byte-class n-grams (fitted by `bench/fit_estimator.py`
  against o200k_base; `bench/bench_tokens.py` prints its error per type of text). An exact tokenizer
  (`store.vocabulary`) can replace it: both are a `TextCounter`.
* `MessageCounter` adds up all tokens sent for a message or a request.
* `calibration.Calibration` converts such an estimate to a provider's count.

`session.accounts.meter` adds the reported usage of one chat; `bench/bench_counting.py` prints the total error.
No clock, no files, no network; nothing here is specific to a provider.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Protocol, assert_never

import msgspec

from codecompanion.counting.size_classes import compaction_tokens, document_tokens, encrypted_tokens, image_tokens
from codecompanion.model.messages import (
    CallMark,
    CompactionPart,
    DocumentPart,
    ImagePart,
    Message,
    Part,
    ReasoningPart,
    TextPart,
    ToolSpec,
)

# Byte classes: one letter per class, so that n-grams of classes can be counted with `bytes.count`. `p` is any other
# byte. The lead bytes of UTF-8 identify scripts: L accents, K R Cyrillic, 4–9 Chinese, G Korean …
_COARSE_CLASSES = (
    ("a", 0x61, 0x7A), ("A", 0x41, 0x5A), ("0", 0x30, 0x39), (" ", 0x20, 0x20), ("t", 0x09, 0x09), ("n", 0x0A, 0x0A),
    ("n", 0x0D, 0x0D), (".", 0x80, 0x9F), (":", 0xA0, 0xBF), ("L", 0xC0, 0xC2), ("l", 0xC3, 0xC3), ("M", 0xC4, 0xC7),
    ("k", 0xC8, 0xCF), ("K", 0xD0, 0xD0), ("R", 0xD1, 0xD1), ("h", 0xD2, 0xD6), ("w", 0xD7, 0xD7), ("u", 0xD8, 0xDF),
    ("I", 0xE0, 0xE0), ("V", 0xE1, 0xE1), ("B", 0xE2, 0xE2), ("J", 0xE3, 0xE3), ("4", 0xE4, 0xE4), ("5", 0xE5, 0xE5),
    ("6", 0xE6, 0xE6), ("7", 0xE7, 0xE7), ("8", 0xE8, 0xE8), ("9", 0xE9, 0xE9), ("G", 0xEA, 0xED), ("b", 0xEE, 0xEF),
    ("E", 0xF0, 0xFF),
)  # fmt: skip
# Letters by frequency (a word of rare letters is split into more tokens), punctuation by function.
_FINE_CLASSES = (
    ("e", b"aeiou"), ("c", b"tnsrld"), ("m", b"mpfghbyc"), ("q", b"jkqvwxz"), ("A", bytes(range(0x41, 0x5B))),
    ("0", b"0123456789"), (" ", b" "), ("t", b"\t"), ("n", b"\r\n"), ("_", b"_"), ('"', b"\"'`"), ("(", b"([{<"),
    (")", b")]}>"), ("/", b"/.-:"), (",", b",;"), ("\\", b"\\"), ("=", b"="), (".", bytes(range(0x80, 0x100))),
)  # fmt: skip


def _translation(classes: Iterable[tuple[str, bytes]]) -> bytes:
    table = bytearray(b"p" * 256)
    for letter, members in classes:
        for member in members:
            table[member] = ord(letter)
    return bytes(table)


_COARSE = _translation((letter, bytes(range(first, last + 1))) for letter, first, last in _COARSE_CLASSES)
_FINE = _translation(_FINE_CLASSES)

# Tokens per non-overlapping occurrence of an n-gram, by the string in which it is counted (`kinds_of`).
# <fitted>
WEIGHTS: dict[str, dict[str, float]] = {
    "coarse": {"A": 0.4447, "0": 0.9314, " ": 0.2437, "t": 0.6916, "p": 0.939, ".": 0.2096, "L": 0.9216, "l": 0.499,
        "R": -0.2039, "9": 1.1798, "E": 1.1318, "M.a": 1.84, "M:a": 1.0939, " I:": -0.4791, "aV:": -0.801,
        "7.": 1.1138, "k:k:": 0.3366, "aaaaaaaaaaaa": 1.1986, "    ": -0.7835, "      ": -0.6081,
        "pppppppppppp": -4.2951, "tttt": -1.8433, " aaaaaaaa": -0.4997},
    "short": {"a": 0.2714, "an": 1.3506, "AA": -0.525, "An": 2.2419, "00": -0.5286, "0n": 0.9554, " 0": 0.6842,
        "  ": 0.7214, "nA": 0.9687, "pp": -0.4927, "aAA": 1.244, "a0a": 1.6979, "a0A": 1.7117, "apa": -0.4859,
        "apA": -0.4621, "ap0": 0.9468, "Aaa": -0.2691, "AAa": 0.8529, "A0A": 2.4427, "AnA": -2.9761, "App": 0.7499,
        "000": -0.9463, " a ": 0.463, " ap": 0.5216, " pa": 0.4075, "pap": 0.2681, "pp ": -0.5679, "ppn": -0.4537,
        "ppp": -0.9494},
    "fine": {"m": 0.0959, "q": 0.3075, "\\": 0.2827, ".": 0.1088, "A_": -0.567, "\\p": 2.3491, "/.": 3.8795,
        "p/": 0.8625, ".)": 2.5018, ".n": 2.2332, "cmm": 0.4793, "qqm": 4.7771, "mecc": -0.1698, "\"em": -1.4211,
        "nce": 0.7753, "/qc": -1.4068},
    "raw": {"────": -2.6449, "                ": -0.9887, "tion": -0.6284, "і": 1.4055},
}  # fmt: skip
CONSTANT = 0.0
# </fitted>


def kinds_of(data: bytes) -> dict[str, bytes]:
    """Return the strings in which n-grams are counted: the bytes, their classes, and the shortened coarse classes.

    In `short`, words and indentation are cut to a third of their length, so that n-grams at word boundaries are cheaper
    to count.
    """
    coarse = data.translate(_COARSE)
    short = coarse.replace(b"aaa", b"a").replace(b"   ", b" ")
    return {"coarse": coarse, "short": short, "fine": data.translate(_FINE), "raw": data}


def _grams(ascii_only: bool) -> tuple[tuple[str, tuple[tuple[bytes, float], ...]], ...]:
    """Return the n-grams for each kind of string; `ascii_only` leaves out those that cannot occur in plain ASCII."""
    possible = {name: set(kinds.decode()) for name, kinds in kinds_of(bytes(range(128)) + b"   ").items()}
    return tuple(
        (name, tuple((g.encode(), weight) for g, weight in grams.items() if not ascii_only or set(g) <= possible[name]))
        for name, grams in WEIGHTS.items()
    )


_ALL_GRAMS, _ASCII_GRAMS = _grams(ascii_only=False), _grams(ascii_only=True)


class TextCounter(Protocol):
    """Counts or estimates the tokens of a string."""

    def __call__(self, text: str, /) -> int:
        """Return the token count of the text; 0 only for an empty text."""


def estimate_text(text: str) -> int:
    """Return the estimated token count of any string, even one with lone surrogates: 0 for "", else 1 … bytes."""
    if not text:
        return 0
    data = text.encode("utf-8", "surrogatepass")
    strings = kinds_of(data)
    total = CONSTANT
    for name, grams in _ASCII_GRAMS if text.isascii() else _ALL_GRAMS:
        count = strings[name].count
        for gram, weight in grams:
            total += weight * count(gram)
    return min(len(data), max(1, round(max(total, len(data) / 16))))


EXACT_VOCABULARY = "o200k_base"
"""The vocabulary for `tokenizer = "exact"`: that of OpenAI's models, to which the estimate is fitted."""


def chars4(text: str) -> int:
    """Return a quarter of the character count, rounded up: the documented counter of `--count chars4`."""
    return (len(text) + 3) // 4


# Overheads of the chat formats: role and separators of a message, and the wrapping of one call or result.
MESSAGE_OVERHEAD = 4
CALL_OVERHEAD = 8


_NO_MARKS = bytes(byte for byte in range(256) if byte > 126 or byte < 33 or chr(byte).isalnum())


def count_marks(text: str) -> int:
    """Return the number of punctuation marks in a string; code has many, and tokenizers differ most on them.

    An underscore counts as three, because tokenizers differ by one more token at each one in names_like_this. Fitted on
    one half of the recorded sessions; on the other half the 95th percentile of the error falls by a third.
    """
    return len(text.encode("utf-8", "surrogatepass").translate(None, _NO_MARKS)) + 2 * text.count("_")


class MessageCounter(msgspec.Struct, frozen=True):
    """Adds up all uncalibrated tokens of a message, a tool list or a whole request."""

    text: TextCounter = estimate_text
    overheads: bool = True

    @classmethod
    def chars4(cls) -> MessageCounter:
        """Return the counter of `--count chars4`: only text and calls, each rounded up."""
        return cls(chars4, overheads=False)

    def message(self, message: Message) -> int:
        """Return the token count of one message: text, reasoning, images, calls with their arguments, overhead."""
        if not self.overheads:
            return self.text(message.text) + sum(self.text(call.name + call.arguments) for call in message.tool_calls)
        content = message.content
        parts = (TextPart(content),) if isinstance(content, str) else content
        total = MESSAGE_OVERHEAD + sum(self._part(part) for part in parts)
        for call in message.tool_calls:
            total += CALL_OVERHEAD + self.text(call.name) + self.text(call.arguments)
        if message.tool_call_id is not None:
            total += CALL_OVERHEAD
        return total

    def marks(self, message: Message) -> int:
        """Return the number of punctuation marks in all text of the message."""
        texts = [part for call in message.tool_calls for part in (call.name, call.arguments)]
        return sum(map(count_marks, (message.text, *texts)))

    def non_text_tokens(self, message: Message) -> int:
        """Return the token count of the message's non-text parts: images, pages, reasoning."""
        if isinstance(message.content, str):
            return 0
        return sum(self._part(part) for part in message.content if not isinstance(part, TextPart))

    def _part(self, part: Part) -> int:
        match part:
            case TextPart():
                return self.text(part.text)
            case ReasoningPart():
                # The visible text may be a summary; the encrypted block sent back contains all of it.
                return max(self.text(part.text), encrypted_tokens(len(part.encrypted)))
            case CompactionPart():
                return part.tokens or self.text(part.text) or compaction_tokens(len(part.encrypted))
            case ImagePart():
                return image_tokens(part)
            case DocumentPart():
                return document_tokens(part)
            case CallMark():
                return 0
            case _:
                assert_never(part)

    def count_messages(self, messages: Iterable[Message]) -> int:
        """Return the token count of the messages, using `message.tokens` where it is cached."""
        return sum(message.tokens or self.message(message) for message in messages)

    def tools(self, specs: Iterable[ToolSpec]) -> int:
        """Return the token count of the tool schemas sent with every request."""
        if not self.overheads:
            return 0
        return sum(CALL_OVERHEAD + self.text(msgspec.json.encode(spec).decode()) for spec in specs)
