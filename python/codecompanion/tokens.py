"""Counting tokens: a fast local estimate, corrected by what the provider reported (R-505, lesson 42).

Three layers, each a value or a pure function:

* `estimate_text` guesses the tokens of a text from counts of byte-class n-grams (fitted by `bench/fit_estimator.py`
  against o200k_base; `bench/bench_tokens.py` prints its error per kind of text). An exact tokenizer
  (`store.vocabulary`) can stand in for it: both are a `TextCounter`.
* `MessageCounter` adds up everything of a message or a request that is sent.
* `Meter` is the last reported prompt size plus the calibrated estimate of what changed since.

No clock, no files, no network; nothing here is tied to one provider.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import Protocol

import msgspec

from codecompanion.messages import ImagePart, Message, ReasoningPart, TextPart, ToolSpec

# Byte classes: one letter per kind of byte, so that n-grams of kinds can be counted with `bytes.count`.
_CLASSES = bytearray(b"p" * 256)
for _first, _last, _letter in (
    (0x61, 0x7A, "a"),
    (0x41, 0x5A, "A"),
    (0x30, 0x39, "0"),
    (0x20, 0x20, " "),
    (0x09, 0x09, "t"),
    (0x0A, 0x0A, "n"),
    (0x0D, 0x0D, "n"),
    (0x80, 0xBF, "."),
    (0xC0, 0xC7, "L"),
    (0xC8, 0xDF, "K"),
    (0xE0, 0xE1, "I"),
    (0xE2, 0xE2, "B"),
    (0xE3, 0xE3, "J"),
    (0xE4, 0xE9, "H"),
    (0xEA, 0xED, "G"),
    (0xEE, 0xEE, "B"),
    (0xEF, 0xEF, "B"),
    (0xF0, 0xFF, "E"),
):
    for _byte in range(_first, _last + 1):
        _CLASSES[_byte] = ord(_letter)
_TABLE = bytes(_CLASSES)

# Tokens per non-overlapping occurrence; written by `bench/fit_estimator.py --write`.
WEIGHTS: dict[str, float] = {
    "p": 0.3428, ".": 0.3828, "a": -0.0219, "0": 2.0493, "A0": 1.6525, "n": 1.1047, "00": -2.9722, "A": 0.4645,
    "ppp": -0.9072, "L": 1.2603, "H": 0.0784, " 0": 0.5124, "I": -0.361, " a": 1.1146, "AAAA": -1.2965, "na": 2.3316,
    "nn": -2.002, "pa": 1.3121, "t": 1.0868, "K": -0.0991, "Aa": 0.8075, " p": 0.7411, "tt": -1.8618, "ta": 0.0095,
    "G": 0.0187, "J": -0.0951, "E": 0.016, "B": -0.0542, "aaaaaaaa": 0.6977,
}  # fmt: skip
_GRAMS = tuple((gram.encode(), weight) for gram, weight in WEIGHTS.items())


class TextCounter(Protocol):
    """Counts or estimates the tokens of a text."""

    def __call__(self, text: str, /) -> int:
        """Return the tokens of the text; 0 only for the empty text."""


def estimate_text(text: str) -> int:
    """Return the estimated tokens of any string (lone surrogates and NUL included): 0 for "", else 1 … bytes."""
    if not text:
        return 0
    kinds = text.encode("utf-8", "surrogatepass").translate(_TABLE)
    count = kinds.count
    total = 0.0
    for gram, weight in _GRAMS:
        total += weight * count(gram)
    return min(len(kinds), max(1, round(max(total, len(kinds) / 16))))


def chars4(text: str) -> int:
    """Return a quarter of the characters, rounded up: the exact, documented counter of `--count chars4`."""
    return (len(text) + 3) // 4


# Overheads of the chat formats: role and separators of a message, and the wrapping of one call or result.
MESSAGE_OVERHEAD = 4
CALL_OVERHEAD = 8
# An image whose size nobody knows counts as the dearest one a provider charges for after its own down-scaling.
UNKNOWN_IMAGE_TOKENS = 1600


def image_tokens(image: ImagePart) -> int:
    """Return what an image costs by its size class (R-505); never its base64 length.

    The larger of the two published rules: 85 + 170 per 512-pixel tile after fitting into 2048 x 2048 and 768 on the
    short side (OpenAI), pixels / 750 up to 1,600 (Anthropic). `detail="low"` is one flat 85.
    """
    if image.detail == "low":
        return 85
    width, height = image.width, image.height
    if width <= 0 or height <= 0:
        return UNKNOWN_IMAGE_TOKENS
    by_pixels = min(1600, math.ceil(width * height / 750))
    scale = min(1.0, 2048 / max(width, height))
    scale *= min(1.0, 768 / max(1.0, min(width, height) * scale))
    tiles = math.ceil(width * scale / 512) * math.ceil(height * scale / 512)
    return max(by_pixels, 85 + 170 * tiles)


class MessageCounter(msgspec.Struct, frozen=True):
    """Adds up everything that is sent of a message, a tool list or a whole request, uncalibrated."""

    text: TextCounter = estimate_text
    overheads: bool = True

    @classmethod
    def chars4(cls) -> MessageCounter:
        """Return the counter of `--count chars4`: text and calls only, each rounded up, nothing else."""
        return cls(chars4, overheads=False)

    def message(self, message: Message) -> int:
        """Return the tokens of one message: text, reasoning, images, calls with their arguments, overhead."""
        if not self.overheads:
            return self.text(message.text) + sum(self.text(call.name + call.arguments) for call in message.tool_calls)
        content = message.content
        total = MESSAGE_OVERHEAD + (self.text(content) if isinstance(content, str) else 0)
        if not isinstance(content, str):
            for part in content:
                if isinstance(part, TextPart | ReasoningPart):
                    total += self.text(part.text)
                else:
                    total += image_tokens(part)
        for call in message.tool_calls:
            total += CALL_OVERHEAD + self.text(call.name) + self.text(call.arguments)
        if message.tool_call_id is not None:
            total += CALL_OVERHEAD
        return total

    def count_messages(self, messages: Iterable[Message]) -> int:
        """Return the tokens of the messages; a cached `message.tokens` is used as it is."""
        return sum(message.tokens or self.message(message) for message in messages)

    def tools(self, specs: Iterable[ToolSpec]) -> int:
        """Return the tokens of the tool schemas that go with every request."""
        if not self.overheads:
            return 0
        return sum(CALL_OVERHEAD + self.text(msgspec.json.encode(spec).decode()) for spec in specs)


# Tokens reported / tokens estimated, by the first words of a model's name: measured for Claude, 1 for the rest.
_START_RATIOS: tuple[tuple[str, float], ...] = (("claude", 1.35),)
_KEEP, _LEARN = 0.7, 0.3
_LOWEST, _HIGHEST = 0.5, 2.5
# A difference smaller than this says more about overheads than about the tokenizer.
_SMALLEST_DELTA = 64


def start_ratio(model: str) -> float:
    """Return the ratio to begin with for a model name in any spelling (`anthropic/claude-…`)."""
    name = model.lower()
    return next((ratio for word, ratio in _START_RATIOS if word in name), 1.0)


class Calibration(msgspec.Struct, frozen=True):
    """What was learned about one adapter and model: provider tokens per estimated token, and from how many reports."""

    ratio: float = 1.0
    samples: int = 0

    @classmethod
    def for_model(cls, model: str) -> Calibration:
        """Return the calibration of a model nobody has reported on yet."""
        return cls(start_ratio(model))

    def learn(self, observed_delta: int, estimated_delta: int) -> Calibration:
        """Return the calibration after one report; differences that say nothing (small, negative) change nothing."""
        if estimated_delta < _SMALLEST_DELTA or observed_delta <= 0:
            return self
        seen = min(_HIGHEST, max(_LOWEST, observed_delta / estimated_delta))
        return Calibration(_KEEP * self.ratio + _LEARN * seen, self.samples + 1)

    @property
    def margin(self) -> float:
        """Return how far the truth may lie above the calibrated estimate, as a fraction of it."""
        return 0.10 if self.samples == 0 else 0.05


class Count(msgspec.Struct, frozen=True):
    """The size of the next request in tokens. `upper` is what triggers compare with; `exact`: just as reported."""

    tokens: int
    upper: int
    exact: bool


class Anchor(msgspec.Struct, frozen=True):
    """A point where truth and estimate are both known: tokens reported, and our estimate of the same."""

    reported: int
    estimated: int


class Meter(msgspec.Struct, frozen=True):
    """The counter of one chat with one model: last report + ratio x (estimate now - estimate at the report)."""

    calibration: Calibration = Calibration()
    anchor: Anchor | None = None

    def count(self, estimated_total_now: int) -> Count:
        """Return the size of a request whose messages and schemas are estimated at this many tokens."""
        ratio = self.calibration.ratio
        if self.anchor is None:
            guess = ratio * estimated_total_now
            return Count(round(guess), math.ceil(guess * (1 + self.calibration.margin)), exact=False)
        change = ratio * (estimated_total_now - self.anchor.estimated)
        tokens = max(0, round(self.anchor.reported + change))
        upper = math.ceil(tokens + abs(change) * self.calibration.margin)
        return Count(tokens, upper, exact=estimated_total_now == self.anchor.estimated)

    def report(self, prompt_tokens: int, estimated_prompt: int) -> Meter:
        """Return the meter after the provider counted a prompt that was estimated at `estimated_prompt`.

        A prompt of 0 (an endpoint without usage) changes nothing.
        """
        if prompt_tokens <= 0:
            return self
        before = self.anchor or Anchor(0, 0)
        learned = self.calibration.learn(prompt_tokens - before.reported, estimated_prompt - before.estimated)
        return Meter(learned, Anchor(prompt_tokens, estimated_prompt))

    def without_anchor(self) -> Meter:
        """Return the meter after the model was switched: what was reported no longer holds."""
        return Meter(self.calibration)
