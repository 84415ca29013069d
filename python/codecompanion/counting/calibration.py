"""From an estimate to what a provider counts: tokens = extra + ratio x estimate, learned per adapter and model (R-505).

The estimate is of one tokenizer (`tokens.estimate_text`); others cut the same text into more or fewer pieces. `ratio`
follows what was reported about text added between two requests: nothing else differs between them, so it is about
the tokenizer alone. `extra` is what a whole request has besides: the provider's own words about tools; below 0 it is
what schemas cost less than their JSON, and never more than that. What one chat knows more exactly than this line is
`session.accounts.meter`'s, and whether a report is believed at all is decided in `session.accounts.usage_check`.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterable

import msgspec

# Tokens reported / tokens estimated to begin with: family, from which version on, ratio, marks; the newest first.
# Claude until 4.6: 1.19 and 1.24 in the recorded sessions of ../shared (3.5 and 4.5). Its tokenizer since 4.7 gives
# 1.45 to 1.63 on the same texts, by a reconstruction (ctok 1.3) that meets what was reported for the older ones to
# 0.2 %. GPT, Gemini, Llama, DeepSeek: within 5 % of 1 in the recorded exchanges long enough to tell.
START_RATIOS: tuple[tuple[str, tuple[int, int], float, float], ...] = (
    ("claude", (4, 7), 1.5, 0.22),
    ("claude", (0, 0), 1.22, 0.22),
)
# Claude's tokenizer cuts punctuation finer than the estimate does: fitted by least squares on one half of the recorded
# sessions, the errors of the other half fall by an eighth (95th percentile) and a quarter (99th). At this density of it
# for an estimated token, that of recorded coding chats, the ratio is the whole truth.
MARKS_DENSITY = 0.61
FIGURES = 1
"""What stored figures mean: raised when the estimator or the counting of marks changes, and they no longer do."""
_LOWEST, _HIGHEST = 0.5, 2.5
# A difference smaller than this says more about overheads than about the tokenizer; several are taken together.
_SMALLEST_DELTA = 64
# The ratio is the mean over all tokens it was learned from; a start ratio stands for `_FIRST_WEIGHT` of them, and more
# than `_MAX_WEIGHT` do not count, so that it can still change. Chosen on every second recorded file, checked on the
# others; 300 to 4,000 and 4,000 to 32,000 do nearly as well, and chats in small windows have little to learn from.
_FIRST_WEIGHT, _MAX_WEIGHT = 300, 16_000
# Until so many tokens were reported on, little is known of the tokenizer.
_COLD = 1000
# Once a ratio is based on so many tokens, a report moves it as if it were within this share of it, and had at most this
# share of what it is based on: an outlier is forgotten, a tokenizer that has really changed is followed in a few steps.
_SETTLED, _CLIP, _MAX_SHARE_OF_IT = 4000, 0.15, 0.25
# Recorded schemas cost from a third of their JSON on.
_MIN_SCHEMAS = 0.25
# How a side of the band follows the reports: 1.5 and 0.992 balance at one report in fifty beyond it. A side that is
# wider than usual forgets that share of what made it so with each report that would have lain within the usual one: an
# outlier is forgotten after some fifty reports. Chosen on every second recorded session: as many lie beyond as before.
_WIDENS, _MAX_WIDENING, _SHRINKS, _FORGETS = 1.5, 4.0, 0.992, 0.03
_NARROWEST, _WIDEST = 0.25, 6.0
# A first request's extra moves by at most itself and so many tokens at a time.
_EXTRA_STEP = 512
# More than the largest window and than anybody has sent: a stored figure beyond it is damaged.
_MAX_EXTRA, _MAX_STORED = 10_000_000, 10**15
# How far a whole request's estimate may be off: the estimator misses its own tokenizer by 3.7 % (95th percentile of
# recorded chats), a tokenizer nobody has reported on yet differs by up to another 12 % from its family's ratio. What
# other chats have taught holds for the next one to 7 %, for 95 % on either half of the recorded sessions.
_COLD_MARGIN, _LEARNED_MARGIN = 0.15, 0.07
# A count that is known to 1 % need not be asked for: that is the goal, and a threshold is not that sharp.
_GOOD_ENOUGH = 0.01


def start_marks(model: str) -> float:
    """Return how many tokens more than the estimate has a piece of punctuation is to begin with."""
    return _start(model)[1]


def _start(model: str) -> tuple[float, float]:
    name = model.lower()
    for family, since, ratio, marks in START_RATIOS:
        found = name.find(family)
        if found >= 0 and _version(name[found + len(family) :]) >= since:
            return ratio, marks
    return 1.0, 0.0


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


def wants_provider_count(count: Count, thresholds: Iterable[int], coming: int = 0) -> bool:
    """Return whether the provider should be asked: a threshold lies within the doubt, and the doubt is more than 1 %.

    Soon after a report the doubt is smaller than that: then nobody is asked. `coming`: up to so many tokens will be
    added before it matters.
    """
    doubt = max(count.upper - count.tokens, count.tokens - count.lower)
    return doubt > _GOOD_ENOUGH * count.tokens and any(count.lower <= at <= count.upper + coming for at in thresholds)


def _adapted(side: float, off: float, bound: int) -> float:
    """Return how wide a side is to be, after a report that lay `off` on it, of `bound` that were expected."""
    if side > 1 and off <= bound / side:
        return 1 + (side - 1) * (1 - _FORGETS)
    if off <= bound:
        return max(_NARROWEST, side * _SHRINKS)
    return min(_WIDEST, side * max(_WIDENS, min(_MAX_WIDENING, off / max(1, bound))))


class Calibration(msgspec.Struct, frozen=True):
    """What was learned about one endpoint and model: tokens = extra + ratio x estimate.

    `weight`: on how many estimated tokens of reports the ratio is based. `marks`: by how much a piece of punctuation
    beyond the usual density costs more than estimated, so that code and prose each have a ratio of their own.
    `above` and `below`: how far reports lie from the count, as multiples of what is usual. `small`: the tokens observed
    and estimated of added texts that were each too small to tell; in a small window all are (issue 24).
    """

    ratio: float = 1.0
    weight: int = 0
    extra: float = 0.0
    marks: float = 0.0
    above: float = 1.0
    below: float = 1.0
    small: tuple[float, int] = (0.0, 0)

    @property
    def is_sound(self) -> bool:
        """Return whether all of it lies where learning can have left it: stored figures may be damaged."""
        numbers = (self.ratio, self.extra, self.above, self.below)
        if not isinstance(self.weight, int) or not all(isinstance(number, int | float) for number in numbers):
            return False
        sides = all(_NARROWEST <= side <= _WIDEST for side in (self.above, self.below))
        learned = 0 <= self.weight <= _MAX_STORED and abs(self.extra) <= _MAX_EXTRA
        return sides and learned and _LOWEST <= self.ratio <= _HIGHEST

    @classmethod
    def for_model(cls, model: str) -> Calibration:
        """Return the calibration of a model nobody has reported on yet."""
        ratio, marks = _start(model)
        return cls(ratio, marks=marks)

    def size(self, estimated: int, marks: int) -> float:
        """Return the tokens of a text with so much punctuation; never less than half of what the ratio says."""
        usual = self.ratio * estimated
        return max(0.5 * usual, usual + self.marks * (marks - MARKS_DENSITY * estimated))

    def learn(self, observed: float, estimated: int, marks: int | None = None) -> Calibration:
        """Return the calibration after a report about added text; an absurd one is ignored.

        `marks` is its punctuation, where that is known.
        """
        if estimated <= 0 or not _LOWEST <= observed / estimated <= _HIGHEST:
            return self
        excess = 0.0 if marks is None else marks - MARKS_DENSITY * estimated
        observed = min(max(observed - self.marks * excess, _LOWEST * estimated), _HIGHEST * estimated)
        small = self.small
        if estimated < _SMALLEST_DELTA:
            observed, estimated = small[0] + observed, small[1] + estimated
            if estimated < _SMALLEST_DELTA:
                return msgspec.structs.replace(self, small=(observed, estimated))
            small = 0.0, 0
        whole = estimated
        before = _FIRST_WEIGHT + min(self.weight, _MAX_WEIGHT)
        if self.weight >= _SETTLED:
            estimated = min(estimated, int(_MAX_SHARE_OF_IT * before))
            share = min(max(observed / whole, (1 - _CLIP) * self.ratio), (1 + _CLIP) * self.ratio)
            observed = share * estimated
        ratio = (before * self.ratio + observed) / (before + estimated)
        return msgspec.structs.replace(self, ratio=ratio, weight=self.weight + whole, small=small)

    def around(self, tokens: float, doubt: float, hidden: float) -> Count:
        """Return a count with its bounds: `doubt` of what was estimated, `hidden` of what the provider may do unseen.

        How much the latter is, is learned of each endpoint.
        """
        lower = math.floor(tokens - doubt - self.below * hidden)
        upper = math.ceil(tokens + doubt + self.above * hidden)
        return Count(tokens=round(tokens), lower=max(0, lower), upper=upper)

    def learn_doubt(self, count: Count, observed: float) -> Calibration:
        """Return the calibration after a report that was counted so: a side that was too narrow widens at once.

        One that held shrinks a little, by so much that in the long run one report in fifty lies beyond it.
        """
        if count.exact:
            return self
        sides = (self.above, observed - count.tokens, count.upper - count.tokens), (
            self.below, count.tokens - observed, count.tokens - count.lower,
        )  # fmt: skip
        above, below = (_adapted(*side) for side in sides)
        return msgspec.structs.replace(self, above=above, below=below)

    def learn_extra(self, observed: float, schemas: int = 0, *, confirmed: bool = False) -> Calibration:
        """Return the calibration after a first request that was `observed` tokens larger than ratio x estimate.

        `schemas` is the estimate of its tool schemas: only they can cost less than it. What a second report has
        `confirmed` replaces what was known; else that moves by a step.
        """
        observed = max(observed, self._min_extra(schemas))
        if self.extra and not confirmed:
            step = abs(self.extra) + _EXTRA_STEP
            observed = (self.extra + min(max(observed, self.extra - step), self.extra + step)) / 2
        return msgspec.structs.replace(self, extra=observed)

    def extra_with(self, schemas: int) -> float:
        """Return what a request with such schemas has besides its estimate: never less than they can be cheaper."""
        return max(self.extra, self._min_extra(schemas))

    def _min_extra(self, schemas: int) -> float:
        return -(1 - _MIN_SCHEMAS) * self.ratio * schemas

    def count(self, estimated: int, schemas: int = 0) -> Count:
        """Return the size of a whole request estimated at so many tokens, nothing of it having been reported.

        So many of these are tool schemas.
        """
        guess = max(0.0, self.ratio * estimated + self.extra_with(schemas))
        doubt = guess * self.margin
        return Count(tokens=round(guess), lower=math.floor(guess - doubt), upper=math.ceil(guess + doubt))

    @property
    def margin(self) -> float:
        """Return how far the truth may lie from the estimate of a whole request, as a fraction of it."""
        return _COLD_MARGIN if self.is_cold else _LEARNED_MARGIN

    @property
    def is_cold(self) -> bool:
        """Return whether little is known of the tokenizer: then replies teach too, though they are unlike prompts."""
        return self.weight < _COLD
