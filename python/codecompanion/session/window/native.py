"""Handles a provider's own compaction: during a reply, on demand, and when it is discarded (R-534, R-539…R-542).

The compaction is shown and logged like our own: one start, one end, one change of the view that can be undone.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence

import msgspec

from codecompanion.adapters.base import CompactionBegun, CompactionDone
from codecompanion.context.change import difference
from codecompanion.context.server_side import changes_that_inserted, live_blocks, replace_by_block
from codecompanion.context.work import Measure, Messages, Trigger
from codecompanion.errors import CodeCompanionError, CompactionFailed
from codecompanion.model.history import UsageReported, ViewChanged
from codecompanion.model.messages import CompactionPart, Message, Usage
from codecompanion.session.compaction.compaction_record import CompactionRecord
from codecompanion.session.history.chat_log import ChatLog
from codecompanion.waiting import to_the_end

ON_THE_SERVER = "on the provider's side"
IN_VAIN = "the provider could not compact the chat"
UNREADABLE = "The provider wrote and encrypted this summary; only the provider can read it."


class NativeCompaction:
    """Handles one compaction by the provider, from its first event to the resulting change of the view."""

    def __init__(
        self,
        record: CompactionRecord,
        log: ChatLog,
        model: str,
        report: Callable[[str, Sequence[Usage]], UsageReported],
        count: Callable[[Message], int],
        measure: Callable[[Messages], Measure],
        keep: Callable[[ViewChanged, str], Awaitable[None]],
    ) -> None:
        self._record, self._log, self._model, self._report = record, log, model, report
        self._count, self._measure, self._keep = count, measure, keep
        self.done = False
        """Whether the provider's block has replaced the history."""
        self.error: CodeCompanionError | None = None
        """The error because of which a compaction on demand changed nothing, or None."""

    async def take(self, event: CompactionBegun | CompactionDone) -> None:
        """Handle a compaction event in the reply's stream; a block is logged before the rest of the reply."""
        match event:
            case CompactionBegun():
                await to_the_end(self._begin())
            case CompactionDone(part=None):
                await to_the_end(self._fail())
            case CompactionDone(part=CompactionPart() as part):
                await to_the_end(self._commit(part))

    async def run(self, trigger: Trigger, compact: Callable[[], Awaitable[CompactionDone]]) -> bool:
        """Compact on demand; return whether the view changed. A failure is reported and changes nothing."""
        try:
            await to_the_end(self._begin(trigger))
            done = await compact()
            if done.usage is not None:
                await self._log.write(self._report(self._record.id, [done.usage]))
            if done.part is None:
                raise CompactionFailed(IN_VAIN)
            await to_the_end(self._commit(msgspec.structs.replace(done.part, on_demand=True)))
        except CodeCompanionError as error:
            self.error = error
            await self.end(error)
        except BaseException as error:
            await self.end(error)
            raise
        return self.done

    async def end(self, error: BaseException | None = None) -> None:
        """End a compaction that began but did not finish; `error`: the cause, or None if unknown."""
        reason = "the reply ended before the provider compacted the chat"
        cancelled = isinstance(error, asyncio.CancelledError)
        if cancelled:
            reason = "it was stopped"
        elif error is not None:
            reason = str(error)
        await to_the_end(self._record.fail(reason, cancelled=cancelled))
        self._record.close()

    @property
    def _label(self) -> str:
        return f"{self._model} ({ON_THE_SERVER})"

    async def _begin(self, trigger: Trigger = "proactive") -> None:
        """Announce the start of the compaction, unless already done."""
        await self._record.begin(trigger, self._label, self._measure(self._log.view.messages).tokens)

    async def _fail(self) -> None:
        await self._begin()
        await self._record.fail(IN_VAIN)
        self._record.close()

    async def _commit(self, part: CompactionPart) -> None:
        """Log the change that replaces messages with the provider's block, then show it."""
        record, view = self._record, self._log.view
        await self._begin()
        block = Message(
            id=record.services.new_token(), role="assistant", cycle=max(1, view.cycle), ts=record.services.clock()
        )
        work = replace_by_block(view.messages, part, self._count, block)
        removed, replaced, inserted = difference(view.messages, work.messages)
        report = record.report(work.removed, work.summary or UNREADABLE)
        change = ViewChanged(
            change_id=record.id,
            kind="compacted",
            removed=removed,
            replaced=replaced,
            inserted=inserted,
            tokens_before=self._measure(view.messages).tokens,
            tokens_after=self._measure(work.messages).tokens,
            report=msgspec.structs.replace(report, stage="server", trigger=record.trigger, origin=part.origin),
        )
        change = record.placed(change, view.messages)
        await self._keep(change, part.text)
        await self._log.write(change)
        self.done = True
        record.show(change)
        record.close()


async def forget_foreign_blocks(log: ChatLog, origin: str) -> bool:
    """Rebuild the view from the full history without compactions by providers other than `origin`.

    Return whether there were any.

    If `origin` is "", the compactions of all providers are discarded.
    """
    changed = False
    while True:
        foreign = frozenset(
            message.id
            for message in live_blocks(log.view.messages)
            if not origin or (message.compaction is not None and message.compaction.origin != origin)
        )
        if not foreign:
            return changed
        undone = changes_that_inserted(await log.events(), foreign)
        await log.undo(undone)
        changed = True
