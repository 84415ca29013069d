"""Checks the order of a tier's steps: each step's input must be produced before it."""

from __future__ import annotations

from codecompanion.context.policy.policy import CHAT_ADAPTER, Step, Tier
from codecompanion.context.strategies import STRATEGIES
from codecompanion.errors import ConfigError

_MEANING = {
    "selection": "the messages to remove",
    "transcript": "their text",
    "summary": "a summary that has not been inserted yet",
    "change": "a changed message",
}


def check_order(tier: Tier, before: frozenset[str], key: str) -> frozenset[str]:
    """Return the products of a tier's steps; `before`: the products of the tier that it continues.

    Raises:
        ConfigError: a step whose input no earlier step produces; a summary that is overwritten or never inserted; the
            error names the step.
    """
    made = set(before)
    for number, step in enumerate(tier.steps, 1):
        where, strategy = f"{key}.step[{number}]", STRATEGIES[step.use]
        _check_need(step.use, tier.steps, number, made, where)
        if strategy.asks_model:
            for other in tier.on_fail:
                if other != CHAT_ADAPTER:
                    _check_need(other, tier.steps, number, made, f"{key}.on_fail")
        if strategy.makes == "summary" and "summary" in made:
            raise ConfigError(where, f"{step.use!r} would replace the summary of an earlier step", "only one of them")
        made |= {strategy.makes, "change"} if _makes(step.use, "change") else {strategy.makes}
        if strategy.makes == "inserted":
            made.discard("summary")
    if "summary" in made:
        raise ConfigError(key, "its summary is never inserted", "a step 'insert_summary' after it")
    if tier.on_fail and not any(STRATEGIES[step.use].asks_model for step in tier.steps):
        raise ConfigError(f"{key}.on_fail", "no step here calls a model, so none can fail", "no on_fail")
    return frozenset(made)


def _check_need(use: str, steps: tuple[Step, ...], number: int, made: set[str], where: str) -> None:
    """Refuse a step that cannot run at its position."""
    need = STRATEGIES[use].needs
    if not need or need in made:
        return
    later = [step.use for step in steps[number:] if _makes(step.use, need)]
    if need == "inserted":  # an earlier compaction may have left a summary
        if later:
            raise ConfigError(where, f"{use!r} would only see an earlier summary", f"it after {later[0]!r}")
        return
    if later:
        raise ConfigError(where, f"{use!r} can never run before {later[0]!r}, which produces its input", "it to follow")
    makers = [name for name in STRATEGIES if _makes(name, need)]
    problem = f"{use!r} can never run: it needs {_MEANING[need]}, which no earlier step produces"
    raise ConfigError(where, problem, f"one of these before it: {', '.join(makers)}")


def _makes(use: str, product: str) -> bool:
    """Return whether a step leaves that product for later steps; selecting messages also counts as a change."""
    makes = STRATEGIES[use].makes
    return makes == product or (makes == "selection" and product == "change")
