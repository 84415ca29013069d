"""Converts estimates to provider counts: tokens = extra + ratio x estimate, learned per adapter and model (R-505).

The estimate is made for one tokenizer (`tokens.estimate_text`); others split the same text into more or fewer tokens.
`ratio` is learned from reports on text added between two requests: as nothing else differs between them, the ratio
depends on the tokenizer alone. `framing` is the cost of each added message beyond its text: the marks that a chat
template puts around it. `extra` is the overhead of a whole request, such as the provider's own text about tools. It is
negative if schemas cost less than their JSON, by at most that difference. `session.accounts.meter` keeps the more exact
figures of one chat, and `session.accounts.usage_check` decides whether a report is plausible.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterable

import msgspec

# Initial ratios of tokens reported / estimated: family, minimum version, ratio, marks; the newest first. Claude until
# 4.6: 1.19 and 1.24 in the recorded sessions of ../shared (3.5 and 4.5). The tokenizer since 4.7: 1.45 to 1.63 on the
# same text, according to a reconstruction (ctok 1.3) that matches reports for older versions within 0.2 %. GPT,
# Gemini, Llama, DeepSeek: within 5 % of 1 in the recorded exchanges that are long enough.
START_RATIOS: tuple[tuple[str, tuple[int, int], float, float], ...] = (
    ("claude", (4, 7), 1.5, 0.22),
    ("claude", (0, 0), 1.22, 0.22),
)
# Claude's tokenizer splits punctuation more finely than the estimate: fitted by least squares on one half of the
# recorded sessions, it reduces the errors of the other half by an eighth (95th percentile) and a quarter (99th).
# `MARKS_DENSITY` is the number of marks per estimated token at which the ratio alone is exact, as in recorded coding
# chats.
MARKS_DENSITY = 0.61
FIGURES = 1
"""The version of stored figures: raised when the estimator or the counting of marks changes, which invalidates them."""
_LOWEST, _HIGHEST = 0.5, 2.5
# Minimum tokens of added text to learn from: a smaller one reflects overheads, so several are combined.
_SMALLEST_DELTA = 64
# The ratio is the mean over all tokens it was learned from; an initial ratio counts as `_FIRST_WEIGHT` of them, and at
# most `_MAX_WEIGHT` count, so that the ratio can still change. Chosen on every second recorded file, checked on the
# others; 300 to 4,000 and 4,000 to 32,000 do almost as well, and chats in small windows give few reports.
_FIRST_WEIGHT, _MAX_WEIGHT = 300, 16_000
# Framing is learned from additions with few tokens per message: at this many, a report counts half, because an error of
# the ratio then hides it. An initial 0 counts as `_FRAMING_FIRST` reports, and at most `_FRAMING_CAP` count.
_FRAMING_CLEAR, _FRAMING_FIRST, _FRAMING_CAP = 64, 0.25, 16.0
_FRAMING_RANGE = (-8.0, 24.0)
# Below this many reported tokens, the tokenizer counts as unknown.
_COLD = 1000
# Once a ratio is based on this many tokens, a report is clipped to this share around it, and its weight to this share
# of the ratio's: an outlier is forgotten, and a real change of the tokenizer is followed in a few steps.
_SETTLED, _CLIP, _MAX_SHARE_OF_IT = 4000, 0.15, 0.25
# Minimum cost of schemas as a share of their JSON; recorded schemas cost a third or more.
_MIN_SCHEMAS = 0.25
# How a side of the band follows the reports: with 1.5 and 0.992, one report in fifty is outside it. A side wider than
# usual loses this share of the excess (`_FORGETS`) with each report that the usual width would have contained: an
# outlier is forgotten after some fifty reports. Chosen on every second recorded session: the share outside does not
# change.
_WIDENS, _MAX_WIDENING, _SHRINKS, _FORGETS = 1.5, 4.0, 0.992, 0.03
_NARROWEST, _WIDEST = 0.25, 6.0
# A first request changes `extra` by at most its own size plus this many tokens.
_EXTRA_STEP = 512
# More than the largest window and all past requests: a stored figure above this is damaged.
_MAX_EXTRA, _MAX_STORED = 10_000_000, 10**15
# Maximum error of a whole request's estimate: the estimator misses its own tokenizer by 3.7 % (95th percentile of
# recorded chats), and a tokenizer without reports differs by up to another 12 % from its family's ratio. Figures
# learned in other chats predict the next one within 7 %, for 95 % of either half of the recorded sessions.
_COLD_MARGIN, _LEARNED_MARGIN = 0.15, 0.07
# The provider is not asked for a count known within 1 %: that is the goal, and thresholds are not more precise.
_GOOD_ENOUGH = 0.01


def start_marks(model: str) -> float:
    """Return the initial extra tokens that a punctuation mark costs beyond the estimate."""
    return _start(model)[1]


def _start(model: str) -> tuple[float, float]:
    name = model.lower()
    for family, since, ratio, marks in START_RATIOS:
        found = name.find(family)
        if found >= 0 and _version(name[found + len(family) :]) >= since:
            return ratio, marks
    return 1.0, 0.0


def _version(name: str) -> tuple[int, int]:
    """Return the version in the rest of a model's name; a name without one counts as the newest."""
    found = re.search(r"(?<!\d)(\d{1,2})(?:[.-](\d{1,2}))?(?!\d)", name)
    return (int(found[1]), int(found[2] or 0)) if found else (99, 0)


def is_plausible(observed: float, estimated: int) -> bool:
    """Return whether a report is close enough to its estimate; a larger difference comes from a truncated history."""
    return _LOWEST * estimated - 16 <= observed <= _HIGHEST * estimated + 16


class Count(msgspec.Struct, frozen=True, kw_only=True):
    """The size of the next request in tokens, and its certainty: the true size lies within `lower` … `upper`.

    `upper` is compared with triggers; `exact`: exactly as reported.
    """

    tokens: int
    lower: int
    upper: int
    exact: bool = False


def wants_provider_count(count: Count, thresholds: Iterable[int], coming: int = 0) -> bool:
    """Return whether to ask the provider: the uncertainty exceeds 1 % and a threshold lies within it.

    Soon after a report the uncertainty is smaller, so the provider is not asked. `coming`: the maximum number of tokens
    that will be added before the count matters.
    """
    doubt = max(count.upper - count.tokens, count.tokens - count.lower)
    return doubt > _GOOD_ENOUGH * count.tokens and any(count.lower <= at <= count.upper + coming for at in thresholds)


def _adapted(side: float, off: float, bound: int) -> float:
    """Return the new width of a side after a report that was off by `off`, when at most `bound` was expected."""
    if side > 1 and off <= bound / side:
        return 1 + (side - 1) * (1 - _FORGETS)
    if off <= bound:
        return max(_NARROWEST, side * _SHRINKS)
    return min(_WIDEST, side * max(_WIDENS, min(_MAX_WIDENING, off / max(1, bound))))


class Calibration(msgspec.Struct, frozen=True):
    """The learned calibration of one endpoint and model: tokens = extra + ratio x estimate.

    `weight`: the estimated tokens that the ratio is based on. `marks`: the additional cost of a punctuation mark beyond
    the usual density, so that code and prose effectively have different ratios. `above` and `below`: the spread of
    reports around the count, as multiples of the usual spread. `small`: observed and estimated tokens of additions that
    were too small to use separately; in a small window all additions are. `framing`: tokens per message beyond its
    estimate, learned from `framed` reports.
    """

    ratio: float = 1.0
    weight: int = 0
    extra: float = 0.0
    marks: float = 0.0
    above: float = 1.0
    below: float = 1.0
    small: tuple[float, int] = (0.0, 0)
    framing: float = 0.0
    framed: float = 0.0

    @property
    def is_sound(self) -> bool:
        """Return whether all figures are within the range that learning allows; stored figures may be damaged."""
        numbers = (self.ratio, self.extra, self.above, self.below, self.framing, self.framed)
        if not isinstance(self.weight, int) or not all(isinstance(number, int | float) for number in numbers):
            return False
        sides = all(_NARROWEST <= side <= _WIDEST for side in (self.above, self.below))
        learned = 0 <= self.weight <= _MAX_STORED and abs(self.extra) <= _MAX_EXTRA
        framed = 0 <= self.framed <= _FRAMING_CAP and _FRAMING_RANGE[0] <= self.framing <= _FRAMING_RANGE[1]
        return sides and learned and framed and _LOWEST <= self.ratio <= _HIGHEST

    @classmethod
    def for_model(cls, model: str) -> Calibration:
        """Return the initial calibration of a model, without reports."""
        ratio, marks = _start(model)
        return cls(ratio, marks=marks)

    def size(self, estimated: int, marks: int, messages: int = 0) -> float:
        """Return the calibrated token count of a string with this many marks, at least half of ratio x estimate.

        `messages`: the number of prompt messages in the string, each of which has its framing.
        """
        usual = self.ratio * estimated
        size = usual + self.marks * (marks - MARKS_DENSITY * estimated) + self.framing * messages
        return max(0.5 * usual, size)

    def learn(self, observed: float, estimated: int, marks: int | None = None, messages: int = 0) -> Calibration:
        """Return the calibration after a report on added text; an implausible report is ignored.

        `marks`: the number of punctuation marks in the text, if known; `messages`: the number of prompt messages in it.
        """
        if estimated <= 0 or not _LOWEST <= observed / estimated <= _HIGHEST:
            return self
        if messages:
            learned = self._learn_framing(observed - self.size(estimated, marks or 0), estimated, messages)
            return learned._learn_ratio(observed - learned.framing * messages, estimated, marks)
        return self._learn_ratio(observed, estimated, marks)

    def _learn_framing(self, surplus: float, estimated: int, messages: int) -> Calibration:
        """Return the calibration after added messages that were `surplus` tokens larger than their text."""
        clear = 1 / (1 + (estimated / messages / _FRAMING_CLEAR) ** 4)
        framing = min(max(surplus / messages, _FRAMING_RANGE[0]), _FRAMING_RANGE[1])
        before = _FRAMING_FIRST + self.framed
        framing = (before * self.framing + clear * framing) / (before + clear)
        return msgspec.structs.replace(self, framing=framing, framed=min(self.framed + clear, _FRAMING_CAP))

    def _learn_ratio(self, observed: float, estimated: int, marks: int | None) -> Calibration:
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
        """Return a count with its bounds: `doubt` from estimated text, `hidden` from unseen actions of the provider.

        The weight of `hidden` is learned per endpoint.
        """
        lower = math.floor(tokens - doubt - self.below * hidden)
        upper = math.ceil(tokens + doubt + self.above * hidden)
        return Count(tokens=round(tokens), lower=max(0, lower), upper=upper)

    def learn_doubt(self, count: Count, observed: float) -> Calibration:
        """Return the calibration after a report for this count: a side that was too narrow widens immediately.

        A side that was wide enough shrinks slightly, so that in the long run one report in fifty lies outside it.
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

        `schemas`: the estimate of its tool schemas; only they can cost less than estimated. A value that a second
        report has `confirmed` replaces the known value; otherwise the known value moves towards it by a step.
        """
        observed = max(observed, self._min_extra(schemas))
        if self.extra and not confirmed:
            step = abs(self.extra) + _EXTRA_STEP
            observed = (self.extra + min(max(observed, self.extra - step), self.extra + step)) / 2
        return msgspec.structs.replace(self, extra=observed)

    def extra_with(self, schemas: int) -> float:
        """Return the overhead of a request with these schemas, which limit how negative it can be."""
        return max(self.extra, self._min_extra(schemas))

    def _min_extra(self, schemas: int) -> float:
        return -(1 - _MIN_SCHEMAS) * self.ratio * schemas

    def count(self, estimated: int, schemas: int = 0, messages: int = 0) -> Count:
        """Return the size of a whole request from its estimate alone, without any report.

        `schemas`: the part of the estimate that is for tool schemas. `messages`: the number of messages.
        """
        guess = max(0.0, self.ratio * estimated + self.framing * messages + self.extra_with(schemas))
        doubt = guess * self.margin
        return Count(tokens=round(guess), lower=math.floor(guess - doubt), upper=math.ceil(guess + doubt))

    @property
    def margin(self) -> float:
        """Return the possible error of a whole request's estimate, as a fraction of it."""
        return _COLD_MARGIN if self.is_cold else _LEARNED_MARGIN

    @property
    def is_cold(self) -> bool:
        """Return whether too little is known about the tokenizer.

        Then replies are used too, although unlike prompts.
        """
        return self.weight < _COLD
