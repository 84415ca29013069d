"""Makes the preparations of one chat: the steps that `context.pipeline` would take with the current view."""

from __future__ import annotations

import msgspec

from codecompanion.context.pipeline import compact, last_tier, prepare, recover
from codecompanion.context.stage_report import Preparation, Prepared
from codecompanion.context.work import Env
from codecompanion.model.view import View
from codecompanion.session.accounts.local_models import runs_on_own_server
from codecompanion.session.compaction.automatic_outcomes import CompactionWatch
from codecompanion.session.window.chat_model import ChatModel
from codecompanion.session.window.native_side import NativeSide
from codecompanion.session.window.pause import Pause
from codecompanion.session.window.request_shaper import RequestShaper


class Plans:
    """Makes preparations; `ContextControl` runs them and commits the changes."""

    def __init__(
        self, chat: ChatModel, shaper: RequestShaper, watch: CompactionWatch, native: NativeSide, pause: Pause
    ) -> None:
        self._chat, self._shaper, self._watch, self._native, self._pause = chat, shaper, watch, native, pause

    def request(self, *, summaries: bool = True, view: View | None = None, anyway: bool = False) -> Preparation:
        """Return the preparation of the next request (R-518); without `summaries` no model is asked.

        If a `view` other than the chat's is given, this is a dry run, so the recall tools are counted before they are
        offered. `anyway`: make the request fit despite a pause, by every step that needs no model.
        """
        chat = self._chat
        view = view or chat.log.view
        rested = self._watch.compactions.allows(view.cycle, chat.meter.measure(view.messages).tokens)
        automatic = summaries and rested and not self._native.compact_at and not anyway
        env = self._without_paused_model(msgspec.structs.replace(self._shaper.env(), cycle=max(1, view.cycle)))
        if view is not chat.log.view:
            env = msgspec.structs.replace(env, reserve=env.reserve + chat.recall_tokens)
        return prepare(
            view,
            chat.policy,
            env,
            automatic_summaries=automatic,
            fitting=not self._native.compact_at and (anyway or not self._pause.is_on),
            paused=frozenset() if anyway else self._pause.paused,
        )

    def _without_paused_model(self, env: Env) -> Env:
        """Return the environment for automatic steps: a paused model is not asked (R-532)."""
        chat = self._chat
        asks = self._watch.allows_asking(chat.log.view.cycle, chat.measured().tokens)
        unusable = self._watch.unusable_writer
        if not unusable and chat.writer in chat.services.unusable_writers:
            unusable = self._writer_label
        return msgspec.structs.replace(env, asks_models=asks, unusable_writer=unusable)

    @property
    def _writer_label(self) -> str:
        adapter, model = self._chat.writer
        return model or adapter

    def see_writer(self, prepared: Prepared) -> None:
        """Record whether the model wrote a usable summary.

        For the user's own server this applies to all chats, because each attempt takes long there.
        """
        chat, watch = self._chat, self._watch
        watch.see_writer(prepared, lambda: self._writer_label)
        if not any(report.asked for report in prepared.reports):
            return
        if watch.unusable_writer and runs_on_own_server(chat.services.adapters, *chat.writer):
            chat.services.unusable_writers.add(chat.writer)
        elif watch.writer_is_proven:
            chat.services.unusable_writers.discard(chat.writer)

    def compaction(self, instructions: str = "") -> Preparation:
        """Return the preparation of a manual compaction, whatever the token count (R-533)."""
        return compact(self._chat.log.view, self._chat.policy, self._shaper.env(instructions, manual=True))

    def without_model(self) -> Preparation:
        """Return the preparation of a manual compaction that asks no model."""
        return last_tier(self._chat.log.view, self._chat.policy, self._shaper.env(manual=True))

    def recovery(self, target: int) -> Preparation:
        """Return the preparation that shrinks a refused request below `target` tokens (R-535)."""
        env = self._without_paused_model(self._shaper.env(manual=True))
        return recover(self._chat.log.view, self._chat.policy, env, target)
