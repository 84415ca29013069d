"""Builds the environment that strategies read: facts about the next request beyond its messages (pipeline.md 5.4)."""

from __future__ import annotations

import math
from collections.abc import Callable

from codecompanion.context.summary_text.recall_keys import no_key
from codecompanion.context.work import CacheState, Continuation, Env, Folds, Measure, Messages
from codecompanion.model.references import with_true_references
from codecompanion.session.accounts.local_models import speed_of
from codecompanion.session.compaction.automatic_outcomes import CompactionWatch
from codecompanion.session.compaction.effects import EffectRunner
from codecompanion.session.compaction.summary_sources import SummarySources
from codecompanion.session.window.chat_model import ChatModel


class ChatEnv:
    """Reads the current environment of one chat."""

    def __init__(self, chat: ChatModel, sources: SummarySources, effects: EffectRunner, watch: CompactionWatch) -> None:
        self._chat, self._sources, self._effects, self._watch = chat, sources, effects, watch
        self._folds = Folds()

    def read(self, instructions: str = "", *, manual: bool = False) -> Env:
        """Return the environment; `instructions` and `manual` come from the user's `/compact`."""
        chat, view, services = self._chat, self._chat.log.view, self._chat.services
        window, ratio = self._summariser_size()
        cache = chat.cache_state()
        return Env(
            window=chat.limits.context_window,
            reserve=chat.limits.reply_reserve,
            measure=_measure_of(chat),
            count=chat.meter.counter.message,
            count_text=chat.meter.counter.text,
            cycle=max(1, view.cycle),
            manual=manual,
            instructions=instructions,
            summariser_window=window,
            summariser_ratio=ratio,
            new_id=lambda purpose: services.new_token(),
            now=services.clock(),
            artifact=self._sources.artifact,
            history=self._sources.history,
            has_utility=bool(chat.policy.summary_adapter.name),
            prompt_text=chat.system_message.text,
            title=chat.log.title,
            key_of=(lambda message_id: chat.log.keys.get(message_id, "")) if chat.offers_recall else no_key,
            last_flush=self._effects.last_flush,
            writer_is_proven=self._watch.writer_is_proven,
            continuation=self._continuation(cache),
            writer_seconds=self._writer_seconds(),
            cache=cache,
            folds=self._folds,
            original=self._sources.original,
            resends=lambda part: chat.meter.resends(part, chat.adapter().origin),
        )

    def _continuation(self, cache: CacheState) -> Callable[[], Continuation] | None:
        """Return a function that sizes a summary request to the chat's model, or None if another model writes it."""
        chat = self._chat
        # A newly chosen model has none of the chat in its cache.
        is_cached = chat.meter.has_reports and self._watch.writes_in_place
        if chat.policy.summary_adapter.name or not is_cached:
            return None

        def read() -> Continuation:
            view = chat.log.view
            new = chat.meter.calibration.ratio * max(0, view.tokens - cache.warm_tokens)
            return Continuation(chat.meter.measure(view.messages).upper, math.ceil(new))

        return read

    def _writer_seconds(self) -> Callable[[int, int], float] | None:
        """Return a function estimating how long a summary takes to write, or None if the model's speed is unknown."""
        speed = speed_of(self._chat.services.adapters, *self._chat.writer)
        return speed.seconds_to_reply if speed.reads and speed.writes else None

    def _summariser_size(self) -> tuple[int, float]:
        """Return the summariser's context window and its upper ratio of actual to estimated tokens (lesson 3)."""
        chat = self._chat
        if chat.writer == chat.named:
            calibration = chat.meter.calibration
            return chat.limits.context_window, calibration.ratio * (1 + calibration.margin)
        limits = chat.services.limits(*chat.writer, chat.policy.default_window)
        calibration = chat.services.calibration(*chat.writer)
        return limits.context_window, calibration.ratio * (1 + calibration.margin)


def _measure_of(chat: ChatModel) -> Callable[[Messages], Measure]:
    """Return the function that measures a request; a reference counts as its full text if that text must be sent."""
    if not chat.log.files:
        return chat.meter.measure
    return lambda messages: chat.meter.measure(with_true_references(messages))
