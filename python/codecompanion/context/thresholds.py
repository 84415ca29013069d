"""S1 `measure` and triggers: decide when a stage runs (R-501, R-502, R-507, R-107…R-109, R-402…R-404, K2, K3).

Whatever a trigger measures, its threshold is converted to a size of the whole request before the comparison. The
request is compared by the best guess, which the meter shows, so editing starts when the header shows 65 %. Only
`work.Env.fits` decides whether a request fits the window.
"""

from __future__ import annotations

import math
from typing import Any, Literal, assert_never

import msgspec

from codecompanion.context.work import Env, Measure, Messages
from codecompanion.counting.token_sizes import is_short_form, parse_tokens
from codecompanion.errors import ConfigError
from codecompanion.formats.regex import regex
from codecompanion.model.messages import is_system_prompt

TRIGGER_FORMS = 'a fraction between 0 and 1, a number of tokens above 1, "16k", "85%", or false'
SHARE_FORMS = 'a share from 0 to 1, such as 0.85 or "85%"'
_LARGEST = float(2**53)
_PERCENT = regex(r"\s*(\d+(?:\.\d+)?)\s*%\s*")


MeasureName = Literal["request", "sent", "messages", "slack"]
Basis = Literal["window", "available", "input_limit", "budget", "window_less_reserve"]

SAFETY_MARGIN = 1.2
"""Safety margin of CodeBuddy's fit test, applied once, in the budget (R-107)."""
BUDGET_RESERVE = 4096
"""CodeBuddy's reply reserve (R-107)."""
AVAILABLE_RESERVE = 8000
"""CoWork's reply reserve (R-402)."""
SMALLEST_BUDGET = 256

_WITHOUT_FIXED = ("available", "budget")
"""Bases that exclude the system prompt and tools."""


class Size(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A size in a policy's table: `at`, a share (0..1) of the basis, or `tokens`; if neither is set, the size is off.

    `measure`: the compared size: the whole `request` before shaping, the request as `sent` after it, only its
    `messages`, or the rest of the basis (`slack` = basis − messages).
    """

    at: float | None = None
    tokens: int | None = None
    measure: MeasureName = "request"
    basis: Basis = "window"

    def __post_init__(self) -> None:
        """Refuse an invalid size.

        Raises:
            ValueError: a share outside 0..1, a token count below 1, or both sizes at once.
        """
        if self.at is not None and not 0 < self.at <= 1:
            raise ValueError(f"at = {self.at:g} is not a share; expected {SHARE_FORMS}{_instead(self.at)}")
        if self.tokens is not None and not 0 < self.tokens < _LARGEST:
            raise ValueError(f"tokens = {self.tokens} is not a token count; expected 1 or more")
        if self.at is not None and self.tokens is not None:
            raise ValueError("set either `at` or `tokens`, not both")

    @property
    def is_on(self) -> bool:
        """Return whether a size is set."""
        return self.at is not None or self.tokens is not None


class Trigger(Size, frozen=True, forbid_unknown_fields=True):
    """The condition for a stage to run: its size is reached (`>=`) or exceeded (`>`) or, with `slack`, less is left.

    `always`: the stage is checked before every request and decides by itself; there is no threshold.
    """

    always: bool = False
    op: Literal[">=", ">"] = ">="

    def __post_init__(self) -> None:
        """Refuse an invalid trigger; raises `ValueError`."""
        super().__post_init__()
        if self.always and (self.at is not None or self.tokens is not None):
            raise ValueError("set either `always` or a size, not both")

    @property
    def is_on(self) -> bool:
        """Return whether the stage can run automatically."""
        return self.always or super().is_on


def _instead(at: float) -> str:
    """Return a hint for a number of tokens written as a share."""
    if at <= 1:
        return ""
    always = " (to run before every request: always = true)" if at <= 2 else ""
    return f", or tokens = {at:.0f}{always}"


def parse_threshold(value: Any, key: str) -> dict[str, float | int]:
    """Return an option's value (R-502) as `at` or `tokens`: 0.85, "85%", 16000, "16k"; {} for false.

    Raises:
        ConfigError: the value has none of the allowed forms; `1` is refused both as one token and as 100 %.
    """
    if value is False:
        return {}
    if isinstance(value, str):
        if is_short_form(value):
            return {"tokens": _tokens(value, key)}
        return {"at": parse_share(value, key, TRIGGER_FORMS)}
    if value is True:
        raise ConfigError(key, "true is not a trigger; false turns the stage off", TRIGGER_FORMS)
    if not isinstance(value, int | float) or not -_LARGEST < value < _LARGEST:
        raise ConfigError(key, f"{value!r} is not a trigger", TRIGGER_FORMS)
    if value == 1:
        raise ConfigError(key, "1 would mean one token, and 100% of the window would be too late", TRIGGER_FORMS)
    if value <= 0:
        raise ConfigError(key, f"{value} is not positive; false turns the stage off", TRIGGER_FORMS)
    if value > 1 and value % 1:
        raise ConfigError(key, f"{value} is not a whole number of tokens", TRIGGER_FORMS)
    return {"at": float(value)} if value < 1 else {"tokens": int(value)}


def parse_share(text: str, key: str, forms: str, *, whole: bool = False) -> float:
    """Return a percentage as a share (0..1); `whole`: allow 100 %. Raises `ConfigError`."""
    percent = _PERCENT.fullmatch(text)
    if percent is None:
        raise ConfigError(key, f"{text!r} is not a trigger", forms)
    share = float(percent.group(1)) / 100
    if not 0 < share < 1 and not (whole and share == 1):
        raise ConfigError(key, f"{percent.group(0).strip()} is not between 0 % and 100 %", forms)
    return share


def _tokens(text: str, key: str) -> int:
    try:
        return parse_tokens(text)
    except ValueError as error:
        raise ConfigError(key, f"{text!r} is not a trigger", TRIGGER_FORMS) from error


class Room(msgspec.Struct, frozen=True, kw_only=True):
    """The bases of thresholds, in tokens. `fixed`: system prompt and tools, which no strategy can change."""

    window: int
    reserve: int = 0
    fixed: int = 0


def threshold_tokens(size: Size, room: Room) -> int | None:
    """Return the size converted to the **whole** request, None if it is off, or 1 if it is always reached.

    The result never exceeds the window minus the reply reserve (R-507).
    """
    if not size.is_on:
        return None
    if isinstance(size, Trigger) and size.always:
        return 1
    basis = basis_tokens(size.basis, room)
    wanted = size.tokens or math.floor(_exact_product(size.at or 0.0, basis))
    if size.measure == "slack":
        wanted = basis - wanted
    if size.measure == "messages" or (size.measure == "slack" and size.basis in _WITHOUT_FIXED):
        wanted += room.fixed
    return max(1, min(wanted, room.window - room.reserve))


def basis_tokens(basis: Basis, room: Room) -> int:
    """Return the size of a basis, to which the shares in thresholds refer."""
    match basis:
        case "window" | "input_limit":
            # The window is the longest prompt if the endpoint reports that.
            return room.window
        case "available":
            return max(1, room.window - AVAILABLE_RESERVE - room.fixed)
        case "budget":
            # A tiny window has no budget by that rule.
            budget = _budget_tokens(room)
            return budget if budget > 0 else max(SMALLEST_BUDGET, room.window // 2)
        case "window_less_reserve":
            # In small windows the reserve must not use up the room that the proactive trigger leaves.
            return room.window - min(AVAILABLE_RESERVE, room.window // 20)
        case _:
            assert_never(basis)


def _budget_tokens(room: Room) -> int:
    """Return the room for messages, with a margin (R-107); 0 or less in a tiny window."""
    return math.floor((room.window - room.fixed - BUDGET_RESERVE) / SAFETY_MARGIN)


def lacks_budget(room: Room, *sizes: Size) -> bool:
    """Return whether one of these sizes is a share of a budget for which the window has no room (R-109)."""
    return any(size.basis == "budget" for size in sizes) and _budget_tokens(room) <= 0


def _exact_product(fraction: float, basis: int) -> float:
    """Return fraction × basis without the float error that would turn 0.29 × 100 into 28.999…."""
    return round(fraction * basis, 6)


def room_of(env: Env, messages: Messages, *sizes: Size | None) -> Room:
    """Return the bases for these sizes; the fixed part is counted only if one of them needs it."""
    needs_fixed = any(
        size is not None and (size.measure in ("messages", "slack") or size.basis in _WITHOUT_FIXED) for size in sizes
    )
    prompt = tuple(message for message in messages if is_system_prompt(message)) if needs_fixed else ()
    fixed = env.measure(prompt).tokens if needs_fixed else 0
    return Room(window=env.window, reserve=env.reserve, fixed=fixed)


def is_crossed(trigger: Trigger, measured: Measure, room: Room) -> bool:
    """Return whether the count has reached the trigger (K2); `slack` is crossed when less than `at` is left."""
    threshold = threshold_tokens(trigger, room)
    if threshold is None:
        return False
    if trigger.op == ">" or trigger.measure == "slack":
        return measured.tokens > threshold
    return measured.tokens >= threshold


def is_within(target: Size, measured: Measure, room: Room) -> bool:
    """Return whether the request is within the target, by the best guess."""
    threshold = threshold_tokens(target, room)
    return threshold is None or measured.tokens <= threshold


def target_tokens(trigger: Trigger, target: Size | None, gap: float, room: Room) -> int:
    """Return the target of a stage, in tokens of the whole request, or 0 without a target (R-306).

    With a `gap` (0..1) the target stays below the trigger: if it is not smaller, it becomes the trigger minus the gap,
    or half of the trigger if that is not positive.
    """
    if target is None or not target.is_on:
        return 0
    if gap > 0 and trigger.at is not None and target.at is not None and trigger.at <= target.at:
        lower = trigger.at - gap
        target = msgspec.structs.replace(target, at=lower if lower > 0 else trigger.at / 2)
    wanted = threshold_tokens(target, room) or 0
    above = threshold_tokens(trigger, room)
    if gap > 0 and above is not None and wanted >= above:
        wanted = max(above - room.window // 20, 1)
    return wanted


WarningLevel = Literal["none", "warning", "critical"]


def warning_level(tokens: int, window: int) -> WarningLevel:
    """Return the fill level of the window: `critical` from 90 %, `warning` from 80 % (R-110)."""
    if tokens >= 0.9 * window:
        return "critical"
    return "warning" if tokens >= 0.8 * window else "none"
