"""Find out ahead of a summary what its checks will ask of the messages: a model writes it for seconds, code has time.

What was found out is kept in the chat's `Folds` until the stage ends; the steps that ask find the same there as they
would without it.
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
    """Read what these steps of a stage will need; `removed` may be summarised. `pause` is called in between."""
    for step in steps:
        match step.params:
            case VerifySummary():
                env.folds.get(KnownNames).of(before, pause).read(pause)
            case QuoteUserMessages() as params:
                facts, most = env.folds.get(QuoteFacts), quote_limit(params, env)
                said = facts.said(removed, params.max_chars, env.key_of)
                facts.read(said, most, params.excerpt_chars, env.count_text, pause)
            case _:
                continue


def forget(folds: Folds) -> None:
    """Keep nothing of it any more: after the stage the chat is another one, or the same for a long time."""
    folds.forget(KnownNames)
    folds.forget(QuoteFacts)
