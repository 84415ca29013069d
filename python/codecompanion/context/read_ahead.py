"""Reads the messages needed for checking a summary in advance, while a model takes seconds to write it.

The results are kept in the chat's `Folds` until the stage ends; without them, the checks give the same results.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable

from codecompanion.context.grounding.known_names import KnownNames
from codecompanion.context.policy.policy import Step
from codecompanion.context.strategy_parameters import QuoteUserMessages, VerifySummary
from codecompanion.context.summary_text.fit_quotes import QuoteFacts
from codecompanion.context.summary_text.quote_user_messages import quote_limit
from codecompanion.context.work import Env, Folds, Messages


def read_ahead(steps: Iterable[Step], before: Messages, removed: Messages, env: Env, pause: Callable[[], None]) -> None:
    """Read the data that these steps of a stage need; `removed`: the messages to summarise.

    `pause` is called repeatedly.
    """
    for step in steps:
        match step.params:
            case VerifySummary():
                env.folds.get(KnownNames).of(before, pause).read(pause)
            case QuoteUserMessages() as params:
                facts, most = env.folds.get(QuoteFacts), quote_limit(params, env)
                said = facts.quotes(removed, params.max_chars, env.key_of)
                facts.read(said, most, params.excerpt_chars, env.count_text, pause)
            case _:
                continue


def forget(folds: Folds) -> None:
    """Drop the data after the stage, because the messages have changed, or the next summary is far away."""
    folds.forget(KnownNames)
    folds.forget(QuoteFacts)
