"""S1 `measure` and the triggers: when does a stage run (R-501, R-502, R-507, K2, K3).

A threshold is an absolute number of tokens by the time it is compared; the upper bound of the count is what it is
compared with.
"""

from __future__ import annotations

import math
import re
from typing import Any, Literal

import msgspec

from codecompanion.context.work import Env, Measure
from codecompanion.errors import ConfigError

TRIGGER_FORMS = 'a fraction between 0 and 1, a number of tokens above 1, "85%", or false'
_PERCENT = re.compile(r"\s*(\d+(?:\.\d+)?)\s*%\s*")


class Trigger(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """When a stage runs. `at`: 0 < at < 1 a fraction of the basis, above 1 tokens, None = the stage is off."""

    at: float | None
    measure: Literal["chat"] = "chat"
    basis: Literal["window"] = "window"
    op: Literal[">=", ">"] = ">="


def parse_at(value: Any, key: str) -> float | None:
    """Return a trigger value as written in a configuration (R-502).

    Raises:
        ConfigError: the value is none of the allowed forms; `1` is refused because it is neither 100 % nor sensible.
    """
    if value is False:
        return None
    if isinstance(value, str):
        percent = _PERCENT.fullmatch(value)
        if percent is None:
            raise ConfigError(key, f"{value!r} is not a trigger", TRIGGER_FORMS)
        fraction = float(percent.group(1)) / 100
        if not 0 < fraction < 1:
            raise ConfigError(key, f"{percent.group(0).strip()} is not between 0 % and 100 %", TRIGGER_FORMS)
        return fraction
    if isinstance(value, bool) or not isinstance(value, int | float) or not math.isfinite(value):
        raise ConfigError(key, f"{value!r} is not a trigger", TRIGGER_FORMS)
    if value == 1:
        raise ConfigError(key, "1 would mean one token, and 100 % of the window is too late", TRIGGER_FORMS)
    if value <= 0:
        raise ConfigError(key, f"{value} is not positive", TRIGGER_FORMS)
    return float(value)


def threshold_tokens(trigger: Trigger, window: int, reserve: int = 0) -> int | None:
    """Return the threshold in tokens, None when the trigger is off.

    It never exceeds what is left of the window once the reply's reserve is taken off (R-507).
    """
    if trigger.at is None:
        return None
    wanted = math.floor(_exact_product(trigger.at, window)) if trigger.at < 1 else int(trigger.at)
    return max(1, min(wanted, window - reserve))


def _exact_product(fraction: float, window: int) -> float:
    """Return fraction × window without the float error that would turn 0.29 × 100 into 28.999…."""
    return round(fraction * window, 6)


def is_crossed(trigger: Trigger, measured: Measure, env: Env) -> bool:
    """Return whether the count has reached the trigger."""
    threshold = threshold_tokens(trigger, env.window, env.reserve)
    if threshold is None:
        return False
    return measured.upper > threshold if trigger.op == ">" else measured.upper >= threshold


def fits(measured: Measure, window: int, reserve: int) -> bool:
    """Return whether a request fits: prompt + output reserve ≤ window (R-507, lesson 2)."""
    return measured.upper + reserve <= window


WarningLevel = Literal["none", "warning", "critical"]


def warning_level(tokens: int, window: int) -> WarningLevel:
    """Return how full the window is: `critical` from 90 %, `warning` from 80 % (R-110)."""
    if tokens >= 0.9 * window:
        return "critical"
    return "warning" if tokens >= 0.8 * window else "none"
