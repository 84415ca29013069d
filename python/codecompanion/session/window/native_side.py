"""Controls the provider's own compaction: during a request, on demand, and when it is discarded (R-534…R-542)."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from functools import partial

from codecompanion.adapters.base import ChatRequest, CompactionDone
from codecompanion.context.server_side import live_blocks, split_for_compaction, threshold
from codecompanion.context.thresholds import threshold_tokens
from codecompanion.context.work import Messages, Trigger
from codecompanion.errors import CompactionFailed
from codecompanion.model.history import ViewChanged
from codecompanion.model.messages import SUMMARY_TAG, Message, Usage, has_encrypted, is_protected, without_encrypted
from codecompanion.session.compaction.automatic_outcomes import CompactionWatch
from codecompanion.session.compaction.compaction_record import CompactionRecord
from codecompanion.session.compaction.effects import EffectRunner
from codecompanion.session.window.chat_model import ChatModel
from codecompanion.session.window.native import NativeCompaction, forget_foreign_blocks
from codecompanion.session.window.pause import Pause
from codecompanion.wire.events import Severity

MISSED_COMPACTIONS = 2
"""Number of consecutive uncompacted replies above the threshold after which the provider is no longer expected to
compact.
"""


class NativeSide:
    """Manages the provider's part in one chat's context management."""

    def __init__(
        self,
        chat: ChatModel,
        watch: CompactionWatch,
        pause: Pause,
        effects: EffectRunner,
        new_record: Callable[[], CompactionRecord],
    ) -> None:
        self._chat, self._watch, self._pause, self._effects = chat, watch, pause, effects
        self._new_record = new_record
        self._missed = 0
        self._silent: set[tuple[str, str]] = set()
        self._asked = 0
        self._seen: tuple[int, int, list[Message]] = (-1, 0, [])

    @property
    def compact_at(self) -> int:
        """Return the size in tokens at which the provider compacts automatically, or 0 if we compact (R-534)."""
        chat = self._chat
        silent = chat.named in self._silent
        if silent or not chat.policy.enabled or not chat.adapter().compacts_natively(chat.model):
            return 0
        stage = next((stage for stage in chat.policy.stages if stage.summarises), None)
        if stage is None:
            return 0
        room = chat.room
        return threshold(threshold_tokens(stage.trigger, room), room.window, room.reserve)

    def ask(self) -> int:
        """Return the size in tokens from which the provider is asked to compact this request, or 0 to never ask.

        The provider is not asked while there is nothing to summarise; if the last compaction did not help, it is asked
        only at a larger size (R-532, lesson 5).
        """
        chat, self._asked = self._chat, self.compact_at
        is_paused = not self._watch.compactions.allows(chat.log.view.cycle, chat.measured().tokens)
        if self._asked and is_paused:
            later = self._watch.compactions.paused_until_tokens
            self._asked = later if self._asked < later <= chat.limits.prompt_tokens else 0
        if self._pause.is_on:
            self._asked = 0
        if self._asked and "context_compacted" in self._pause.paused:
            # The user has just restored compacted messages, so the next compaction waits until nothing else helps.
            self._asked = max(self._asked, chat.limits.prompt_tokens)
        if self._asked and not self.has_something_to_compact:
            self._asked = 0
        return self._asked

    def plain_request(self, messages: Messages) -> ChatRequest:
        """Return an unshaped request with these messages, for compacting or counting."""
        chat = self._chat
        return chat.request_of(messages, chat.system_message, chat.specs, chat.measured().upper, self.ask())

    @property
    def compacts_on_demand(self) -> bool:
        """Return whether the provider carries out `/compact` (R-540)."""
        return self.compact_at > 0 and self._chat.adapter().compacts_on_demand(self._chat.model)

    def compaction(self) -> NativeCompaction:
        """Return a handler for a compaction that the provider makes."""
        chat = self._chat
        adapter_name, model = chat.named
        return NativeCompaction(
            self._new_record(),
            chat.log,
            model,
            lambda about, passes: chat.services.passes_reported(adapter_name, model, about, passes),
            chat.meter.counter.message,
            chat.meter.measure,
            self._keep,
        )

    async def _keep(self, change: ViewChanged, summary: str) -> None:
        """Run the policy's effects before messages are removed, even if the provider removes them (R-472)."""
        chat = self._chat
        stage = next((stage for stage in chat.policy.stages if stage.summarises), None)
        names = stage.effects.before if stage is not None else ()
        await self._effects.before_removal(names, change, summary, "context_compacted")

    @property
    def has_something_to_compact(self) -> bool:
        """Return whether the view has any messages that a compaction would summarise."""
        head, _ = split_for_compaction(self._chat.log.view.messages)
        return any(not is_protected(message) and message.tag != SUMMARY_TAG for message in head)

    async def compact(self, trigger: Trigger, instructions: str) -> NativeCompaction:
        """Ask the provider to compact now; return the result. A failure is reported to the user."""
        chat = self._chat
        head, _ = split_for_compaction(chat.log.view.messages)
        adapter, request = chat.adapter(), self.plain_request(head)
        limit = chat.services.settings.chat.compaction_timeout_s

        async def ask() -> CompactionDone:
            try:
                async with asyncio.timeout(limit) as silence:
                    return await adapter.compact(request, instructions, partial(chat.tell_wait, silence, limit))
            except TimeoutError:
                raise CompactionFailed(f"{chat.model} did not answer within {limit:g} s") from None

        compaction = self.compaction()
        await compaction.run(trigger, ask)
        return compaction

    async def compact_again(self) -> None:
        """Request the next compaction if the last was on demand: the provider then stops compacting automatically."""
        chat = self._chat
        measured, compact_at = chat.measured(), self.compact_at
        if not self._has_demanded_block or not self.compacts_on_demand or measured.tokens < compact_at:
            return
        if (
            not self._watch.compactions.allows(chat.log.view.cycle, measured.tokens)
            or not self.has_something_to_compact
        ):
            return
        if "context_compacted" in self._pause.paused:
            return
        compaction, after = await self.compact("proactive", ""), chat.measured()
        error, judge = str(compaction.error or ""), chat.compaction_judge()
        problem = error or (judge.no_gain_message(after) if after.tokens >= compact_at else "")
        self._watch.keep(problem, after, judge, was_told=bool(error))

    @property
    def _has_demanded_block(self) -> bool:
        return any(block.compaction is not None and block.compaction.on_demand for block in self._blocks())

    def _blocks(self) -> list[Message]:
        """Return the provider's live compaction blocks.

        Check only new messages if the view has only grown since the last call.
        """
        log = self._chat.log
        changes, looked_at, blocks = self._seen
        if changes != log.changes:
            looked_at, blocks = 0, []
        messages = log.view.messages
        blocks = [*blocks, *live_blocks(messages[looked_at:])]
        self._seen = log.changes, len(messages), blocks
        return blocks

    def watch(self, usage: Usage, *, compacted: bool) -> None:
        """Record whether this reply was compacted when it should have been, and whether that helped."""
        chat, at = self._chat, self.compact_at
        self.expect(missed=not compacted and usage.prompt_tokens > self._asked > 0 and not self._has_demanded_block)
        if compacted:
            after = chat.measured()
            judge = chat.compaction_judge()
            self._watch.keep(
                judge.no_gain_message(after) if after.tokens >= at > 0 else "", after, judge, was_told=False
            )

    def expect(self, *, missed: bool) -> None:
        """Count missed compactions; after several in a row, stop relying on the endpoint and let the plugin compact."""
        self._missed = self._missed + 1 if missed else 0
        if self._missed < MISSED_COMPACTIONS:
            return
        chat, self._missed = self._chat, 0
        self._silent.add(chat.named)
        chat.notice(
            Severity.WARN,
            f"{chat.adapter_name} was asked to compact but did not; from now on this plugin compacts."
            f" Set adapters.http.{chat.adapter_name}.opts.compaction = false to stop asking it.",
        )

    async def drop_foreign_blocks(self) -> None:
        """Discard compactions by a provider that the chat no longer uses, or that no longer compacts (R-542)."""
        chat = self._chat
        if not self._blocks():
            return
        origin = chat.adapter().origin if self.compact_at else ""
        if await forget_foreign_blocks(chat.log, origin):
            chat.notice(
                Severity.INFO, "The provider's own summary is no longer sent; the full history is sent instead."
            )

    async def distrust_encrypted(self) -> bool:
        """Remove signed or encrypted state that the provider now refuses; return whether there was any.

        The provider's compactions are discarded; its reasoning stays as readable text.
        """
        log = self._chat.log
        changed = await forget_foreign_blocks(log, "")
        bare = tuple(without_encrypted(message) for message in log.view.messages if has_encrypted(message))
        if bare:
            change_id = self._chat.services.new_token()
            await log.write(ViewChanged(change_id=change_id, kind="repaired", replaced=bare))
        return changed or bool(bare)
