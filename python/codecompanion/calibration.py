"""From an estimate to what a provider counts: tokens = extra + ratio x estimate, learned per adapter and model (R-505).

The estimate is of one tokenizer (`tokens.estimate_text`); others cut the same text into more or fewer pieces. `ratio`
follows what was reported about text added between two requests: nothing else differs between them, so it is about
the tokenizer alone. `extra` is what a whole request has besides: the provider's own words about tools, schemas that
cost less than their JSON. What one chat knows more exactly than this line is `session.meter`'s.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterable

import msgspec

# Tokens reported / tokens estimated to begin with: family, from which version on, ratio; the newest first.
# Claude until 4.6: 1.19 and 1.24 in the recorded sessions of ../shared (3.5 and 4.5). Its tokenizer since 4.7 gives
# 1.45 to 1.63 on the same texts, by a reconstruction (ctok 1.3) that meets what was reported for the older ones to
# 0.2 %. GPT, Gemini, Llama, DeepSeek: within 5 % of 1 in the recorded exchanges long enough to tell.
START_RATIOS: tuple[tuple[str, tuple[int, int], float], ...] = (("claude", (4, 7), 1.5), ("claude", (0, 0), 1.22))
_LOWEST, _HIGHEST = 0.5, 2.5
# A difference smaller than this says more about overheads than about the tokenizer.
_SMALLEST_DELTA = 64
# The ratio is the mean over all tokens it was learned from; a start ratio stands for `_FIRST_WEIGHT` of them, and more
# than `_MOST_WEIGHT` do not count, so that it can still change. Chosen on every second recorded file, checked on the
# others; 300 to 4,000 and 4,000 to 32,000 do nearly as well.
_FIRST_WEIGHT, _MOST_WEIGHT = 1000, 16_000
# How far a whole request's estimate may be off: the estimator misses its own tokenizer by 3.7 % (95th percentile of
# recorded chats), a tokenizer nobody has reported on yet differs by up to another 12 % from its family's ratio.
_COLD_MARGIN, _LEARNED_MARGIN = 0.15, 0.05
# A count that is known to 1 % need not be asked for: that is the goal, and a threshold is not that sharp.
_GOOD_ENOUGH = 0.01


def start_ratio(model: str) -> float:
    """Return the ratio to begin with for a model name in any spelling (`anthropic/claude-opus-4.1`)."""
    name = model.lower()
    for family, since, ratio in START_RATIOS:
        found = name.find(family)
        if found >= 0 and _version(name[found + len(family) :]) >= since:
            return ratio
    return 1.0


def _version(name: str) -> tuple[int, int]:
    """Return the version in the rest of a model's name; a name without one is taken for the newest."""
    found = re.search(r"(?<!\d)(\d{1,2})(?:[.-](\d{1,2}))?(?!\d)", name)
    return (int(found[1]), int(found[2] or 0)) if found else (99, 0)


def is_plausible(observed: float, estimated: int) -> bool:
    """Return whether so many tokens can be what was estimated: no tokenizer differs more, a cut history does."""
    return _LOWEST * estimated - 16 <= observed <= _HIGHEST * estimated + 16


class Count(msgspec.Struct, frozen=True, kw_only=True):
    """The size of the next request in tokens, and how sure that is: the truth lies within `lower` … `upper`.

    `upper` is what triggers compare with; `exact`: just as reported.
    """

    tokens: int
    lower: int
    upper: int
    exact: bool = False


def wants_provider_count(count: Count, thresholds: Iterable[int]) -> bool:
    """Return whether the provider should be asked: a threshold lies within the doubt, and the doubt is more than 1 %.

    Soon after a report the doubt is smaller than that: then nobody is asked.
    """
    doubt = max(count.upper - count.tokens, count.tokens - count.lower)
    return doubt > _GOOD_ENOUGH * count.tokens and any(count.lower <= at <= count.upper for at in thresholds)


class Calibration(msgspec.Struct, frozen=True):
    """What was learned about one adapter and model: tokens = extra + ratio x estimate.

    `weight`: how many estimated tokens of reports stand behind the ratio.
    """

    ratio: float = 1.0
    weight: int = 0
    extra: float = 0.0

    @classmethod
    def for_model(cls, model: str) -> Calibration:
        """Return the calibration of a model nobody has reported on yet."""
        return cls(start_ratio(model))

    def learn(self, observed: float, estimated: int) -> Calibration:
        """Return the calibration after a report about added text; one that says nothing (small, absurd) is ignored."""
        if estimated < _SMALLEST_DELTA or not _LOWEST <= observed / estimated <= _HIGHEST:
            return self
        before = _FIRST_WEIGHT + min(self.weight, _MOST_WEIGHT)
        ratio = (before * self.ratio + observed) / (before + estimated)
        return msgspec.structs.replace(self, ratio=ratio, weight=self.weight + estimated)

    def learn_extra(self, observed: float) -> Calibration:
        """Return the calibration after a first request that was `observed` tokens larger than ratio x estimate."""
        return msgspec.structs.replace(self, extra=(self.extra + observed) / 2 if self.extra else observed)

    def count(self, estimated: int) -> Count:
        """Return the size of a whole request estimated at so many tokens, nothing of it having been reported."""
        guess = max(0.0, self.ratio * estimated + self.extra)
        doubt = guess * self.margin
        return Count(tokens=round(guess), lower=math.floor(guess - doubt), upper=math.ceil(guess + doubt))

    @property
    def margin(self) -> float:
        """Return how far the truth may lie from the estimate of a whole request, as a fraction of it."""
        return _COLD_MARGIN if self.weight < _FIRST_WEIGHT else _LEARNED_MARGIN
