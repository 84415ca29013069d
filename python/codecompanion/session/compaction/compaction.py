"""Runs a preparation: asks the summariser, commits each stage as one event, and informs the user (R-529…R-533, R-543).

`context.pipeline` decides; this module carries out its decisions: model calls with a deadline, the log, the events.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from functools import partial
from typing import TypeVar

import msgspec

from codecompanion.adapters.base import Adapter, ChatRequest, RetryScheduled
from codecompanion.context.change import cuts_of, repair_change, view_change, why_edited
from codecompanion.context.policy.policy import Policy
from codecompanion.context.stage_report import Ask, Preparation, Prepared, StageReport
from codecompanion.context.work import SummaryReply, SummaryRequest, Work
from codecompanion.counting.tokens import estimate_text
from codecompanion.errors import CodeCompanionError
from codecompanion.model.history import EventPayload, ViewChanged
from codecompanion.model.messages import SUMMARY_TAG, Message
from codecompanion.session.accounts.accounting import RequestRecord
from codecompanion.session.compaction.announcer import Announcer
from codecompanion.session.compaction.background_work import BackgroundWork
from codecompanion.session.compaction.compaction_record import CompactionRecord
from codecompanion.session.compaction.effects import EffectRunner
from codecompanion.session.compaction.silence_budget import SilenceBudget
from codecompanion.session.history.chat_log import ChatLog
from codecompanion.session.services import Services
from codecompanion.summary_frame import handed_off
from codecompanion.waiting import to_the_end
from codecompanion.wire.events import ContextEdited, Notice, Retrying, Severity

T = TypeVar("T")
AT_ONCE = 4
"""Maximum number of parts of a long history that are summarised at the same time (R-120); more would exceed rate
limits.

A local server gets at most one part per slot, because any others would only wait.
"""
BESIDE_LOOP_TOKENS = 20_000
"""View size in tokens from which a preparation runs in a thread, so that it does not block other chats' streams for
about 10 ms.
"""
MAX_SILENCES = 10
"""Limit on the total silence of a run's calls, as a multiple of the limit for one call (lesson 18)."""


class Summariser(msgspec.Struct, frozen=True):
    """The model that writes a summary, and its adapter."""

    adapter: Adapter
    model: str

    @property
    def label(self) -> str:
        """Return the model's name, or the adapter's name if the model has none."""
        return self.model or self.adapter.name


class Compactor(msgspec.Struct):
    """Runs the preparations of one chat. `new_record` returns the record for a compaction.

    `announcer` knows the event names of the policy's documents. `as_sent` returns the chat as it would be sent now,
    without messages that still wait for an answer.
    """

    services: Services
    log: ChatLog
    summariser: Callable[[bool], Summariser]
    new_record: Callable[[], CompactionRecord]
    announcer: Announcer
    effects: EffectRunner
    as_sent: Callable[[], ChatRequest]
    refusal: str = ""
    """Why a provider rejected a summary request, or "" if none did."""
    has_told: bool = False
    """Whether the user has seen why the compaction failed."""

    @property
    def silence_s(self) -> float:
        """Return the maximum silence of a call, in seconds."""
        return self.services.settings.chat.compaction_timeout_s

    async def run(self, preparation: Preparation, policy: Policy) -> Prepared:
        """Run a preparation to its end and commit its changes; afterwards, the view is the next request.

        Raises:
            asyncio.CancelledError: the user stopped; nothing was changed, and the compaction is logged as cancelled.
            StoreError: the change could not be stored; the view is unchanged.
        """
        run = _Run(self, policy)
        try:
            return await run.drive(preparation)
        finally:
            preparation.close()
            run.close()
            self.has_told = run.record.has_told


def parts_at_once(*, is_local: bool, slots: int) -> int:
    """Return how many parts to request at the same time; `slots`: those of a local server, or 0 if not reported."""
    return min(AT_ONCE, slots or 1) if is_local else AT_ONCE


def _sent_summary(work: Work) -> str:
    """Return the summary as sent to the model, with recall keys and the quoted request; "" if none was written.

    A handoff's introduction is shown to the user (R-432); other headers only repeat the card's title.
    """
    sent = (message for message in work.messages if message.tag == SUMMARY_TAG) if work.summary else ()
    return next((handed_off(message.text) for message in sent), work.summary)


def _asked_for(ask: Ask, request: SummaryRequest) -> str:
    """Return the name shown for a request in the inspector."""
    what = "memory entry" if ask.stage.event == "memory_flushed" else "summary"
    if request.in_place:
        return f"{what}, in the chat"
    return f"{what}, part {request.part} of {request.parts}" if request.parts > 1 else what


def _next_of(preparation: Preparation, reply: SummaryReply | None) -> Ask | Prepared:
    """Return the next summary request of the preparation, or its result."""
    try:
        return next(preparation) if reply is None else preparation.send(reply)
    except StopIteration as stop:
        prepared: Prepared = stop.value
        return prepared


class _Run:
    """A preparation that is running."""

    def __init__(self, owner: Compactor, policy: Policy) -> None:
        self._owner, self._policy = owner, policy
        self.record = owner.new_record()
        self._asked: Ask | None = None
        self._writers: list[str] = []
        self._flushes: list[StageReport] = []
        self._silence = SilenceBudget(MAX_SILENCES * owner.silence_s)

    async def drive(self, preparation: Preparation) -> Prepared:
        try:
            done = await self._step(preparation, None)
            while isinstance(done, Ask):
                if done.stage.event == "context_compacted":
                    await to_the_end(self._begin(done))
                done = await self._step(preparation, await self._answer_and_read_ahead(done))
        except BaseException as error:
            await self._abandon(error)
            raise
        try:
            await to_the_end(self._commit(done))
        except CodeCompanionError as error:
            await self._abandon(error)
            raise
        return done

    def close(self) -> None:
        """Leave the state `compacting`, and drop evidence that no checkpoint has used."""
        self.record.close()
        if self._asked is not None:
            self._owner.effects.forget_prepared()

    async def _step(self, preparation: Preparation, reply: SummaryReply | None) -> Ask | Prepared:
        """Advance the preparation, in a thread if the view is large, so that other chats do not wait."""
        return await self._beside_loop(partial(_next_of, preparation, reply))

    async def _beside_loop(self, work: Callable[[], T]) -> T:
        """Return the result of `work`, run in a thread if the view is large."""
        if self._owner.log.view.tokens < BESIDE_LOOP_TOKENS:
            return work()
        return await to_the_end(asyncio.to_thread(work))

    async def _begin(self, ask: Ask) -> None:
        """Announce a compaction that needs a summary, unless it has already been announced."""
        self._asked = ask
        if not self.record.is_open:
            self._owner.effects.prepare_soon(ask.stage.effects.before, ask.request.subject)
        self._writers.append(self._name_summariser(ask.use_chat_adapter))
        announcer, label = self._owner.announcer, self._name_summariser(ask.use_chat_adapter)
        named = await self.record.begin(
            ask.trigger,
            label,
            ask.before.tokens,
            failed_event=ask.stage.emits.failed,
            card=ask.stage.card,
            also=lambda compaction_id: announcer.started(ask, compaction_id),
        )
        announcer.tell(named)

    def _name_summariser(self, use_chat_adapter: bool) -> str:
        try:
            return self._owner.summariser(use_chat_adapter).label
        except CodeCompanionError:
            return self._policy.summary_adapter.name

    async def _answer_and_read_ahead(self, ask: Ask) -> SummaryReply:
        """Ask the summariser.

        If the view is large, read ahead for the next steps while the summary is being written.
        """
        if self._owner.log.view.tokens < BESIDE_LOOP_TOKENS:
            return await self._answer(ask)
        reading = BackgroundWork(ask.meanwhile)
        try:
            reply = await self._answer(ask)
        except BaseException:
            await reading.stop()
            raise
        await reading.finish()
        return reply

    async def _answer(self, ask: Ask) -> SummaryReply:
        """Ask the summariser; if there are several parts, request them at the same time (R-120)."""
        requests = (ask.request, *ask.request.beside)[: self._at_once(ask)]
        self._silence.begin_batch()
        calls = [asyncio.ensure_future(self._ask(ask, request)) for request in requests]
        try:
            first, *others = await asyncio.gather(*calls)
        except BaseException:
            for call in calls:
                call.cancel()
            await asyncio.gather(*calls, return_exceptions=True)
            raise
        return msgspec.structs.replace(first, beside=tuple(others))

    def _at_once(self, ask: Ask) -> int:
        """Return how many parts to request at the same time."""
        try:
            summariser = self._owner.summariser(ask.use_chat_adapter)
        except CodeCompanionError:  # the request itself reports it
            return 1
        adapter = summariser.adapter
        is_local = self._owner.services.adapters.settings(adapter.name).local_server
        return parts_at_once(is_local=is_local, slots=adapter.facts(summariser.model).slots)

    async def _ask(self, ask: Ask, request: SummaryRequest) -> SummaryReply:
        """Send one summary request; an adapter or model that cannot be resolved is a failure like any other (R-504)."""
        too_long = f"the summariser wrote nothing for {self._silence.total_s:g} s in total"
        if self._silence.left_s <= 0:
            return SummaryReply(error=too_long)
        try:
            summariser = self._owner.summariser(ask.use_chat_adapter)
        except CodeCompanionError as error:
            return SummaryReply(error=str(error))
        owner, name, model = self._owner, summariser.adapter.name, summariser.model
        services, thinking = owner.services, owner.services.summary_thinking
        call = RequestRecord(services.new_token(), owner.log, services.clock)
        tokens = request.prompt_tokens or await asyncio.to_thread(estimate_text, request.prompt)
        from codecompanion.session.compaction.summarise import ask_summary, summary_request  # not needed at startup

        now = asyncio.get_running_loop().time
        since, waited, away = now(), list[float](), list[float]()
        chat = owner.as_sent() if request.in_place else None
        sent = summary_request(model, request, thinking.get(summariser.label, 0), chat=chat)
        await call.begin_summary(name, sent, _asked_for(ask, request), tokens, services.store.put_blob)
        try:
            reply = await ask_summary(
                summariser.adapter,
                sent,
                silence_s=min(self._silence.left_s, owner.silence_s),
                on_retry=lambda event: away.append(self._tell_retry(call, event)),
                on_begin=lambda: waited.append(now() - since),
            )
        except BaseException as error:
            await call.fail(error)
            raise
        self._silence.take((waited[0] if waited else now() - since) - sum(away))
        if reply.error and self._silence.left_s <= 0:
            reply = msgspec.structs.replace(reply, error=too_long)
        thinking[summariser.label] = max(thinking.get(summariser.label, 0), reply.thinking_tokens)
        owner.refusal = owner.refusal or (reply.error if reply.refused else "")
        ended: list[EventPayload] = [call.ended("failed" if reply.error else reply.stop, reply.error)]
        if reply.usage is not None:
            reported = services.passes_reported(name, model, self.record.id, [reply.usage])
            ended.insert(0, msgspec.structs.replace(reported, request_id=call.id))
        await owner.log.write(*ended)
        return reply

    def _tell_retry(self, call: RequestRecord, event: RetryScheduled) -> float:
        """Show a retry; return the seconds of waiting for a local server, which do not count as silence."""
        call.take_retry(event)
        owner, retry = self._owner, msgspec.structs.asdict(event)
        owner.services.emit(Retrying(chat=owner.log.chat_id, **retry))
        return event.wait_ms / 1000 if event.waiting else 0.0

    async def _abandon(self, error: BaseException) -> None:
        """End an announced compaction that cannot continue, without a change."""
        cancelled = isinstance(error, asyncio.CancelledError)
        await self._fail("it was stopped" if cancelled else str(error), cancelled=cancelled)

    async def _fail(self, reason: str, *, cancelled: bool = False) -> None:
        """End the compaction without a change, and log the policy's own failure event."""
        announcer, ask = self._owner.announcer, self._asked
        named = announcer.failed(ask.stage.id, ask.before.tokens, reason, self.record.id) if ask is not None else ()
        if self.record.is_open:
            await self.record.fail(reason, cancelled=cancelled, also=named)
            announcer.tell(named)

    async def _commit(self, prepared: Prepared) -> None:
        """Log the changes, then show them; a repair is logged first because the stages build on it."""
        owner = self._owner
        before = owner.log.view.messages
        if prepared.repair.changed:
            await owner.log.write(repair_change(before, prepared.repair, owner.services.new_token()))
        current = prepared.repair.messages if prepared.repair.changed else before
        for report in prepared.reports:
            if report.work is None:
                if report.event == "memory_flushed" and report.asked:
                    owner.effects.flush_failed(report)
                continue
            match report.event:
                case "context_edited":
                    await self._commit_edit(report, report.work, current)
                case "context_compacted" if not report.removed_messages and not self.record.is_open:
                    # The tier only shortened messages, so there is no summary to show.
                    await self._commit_edit(report, report.work, current)
                case "context_compacted":
                    await self._commit_compaction(report, report.work, current)
                case "memory_flushed":
                    self._flushes.append(report)
                    continue
            current = report.work.messages
        await self._flush()
        if self.record.is_open:
            failed = [report for report in prepared.reports if report.event == "context_compacted"]
            await self._fail(failed[-1].detail)
        status = owner.announcer.status(prepared)
        if status:
            await owner.log.write(*status)
            owner.announcer.tell(status)

    async def _flush(self) -> None:
        """Write flushes to the memory, after the checkpoint and before messages are removed (R-408, R-446)."""
        flushes, self._flushes = self._flushes, []
        for report in flushes:
            await self._owner.effects.after(report.stage.effects.after, report)

    async def _commit_edit(self, report: StageReport, work: Work, before: tuple[Message, ...]) -> None:
        """Log an edit under its own id, so that the user can undo it separately from a compaction of the same run."""
        owner = self._owner
        change = view_change(report, work, before, owner.services.new_token())
        named = owner.announcer.changed(report, change.change_id, "", 0)
        await owner.effects.before(report.stage.effects.before, report, change)
        if change.removed:
            await self._flush()
        await owner.log.write(change, *named)
        self._show_edit(change)
        owner.announcer.tell(named)
        owner.effects.after_soon(report.stage.effects.after, report)

    async def _commit_compaction(self, report: StageReport, work: Work, before: tuple[Message, ...]) -> None:
        """Log a compaction; if it asked no model, also log its start here."""
        record, announcer = self.record, self._owner.announcer
        from codecompanion.context.compaction_notes import NO_MODEL, author_of, notes_on  # not needed at startup

        if not report.asked:
            # This is a no-op if it replaces a compaction that asked a model and got no answer.
            also, failed = partial(announcer.began, report), report.stage.emits.failed
            begin = partial(record.begin, also=also, failed_event=failed)
            began = await begin(report.trigger, NO_MODEL, report.before.tokens, card=report.stage.card)
            announcer.tell(began)
        record.label = author_of(report, self._writers)
        said = record.report(work.removed, _sent_summary(work))
        change = await self._beside_loop(
            lambda: record.placed(view_change(report, work, before, record.id, said), before)
        )
        named = announcer.changed(report, record.id, record.label, record.duration_ms)
        await self._owner.effects.before(report.stage.effects.before, report, change)
        await self._flush()
        await self._owner.log.write(change, *named)
        record.show(change)
        notes = notes_on(report)
        if notes:
            self._owner.services.emit(
                Notice(chat=self._owner.log.chat_id, level=Severity.WARN, text=notes, until_compacted=True)
            )
        announcer.tell(named)
        self._owner.effects.after_soon(report.stage.effects.after, report)

    def _show_edit(self, change: ViewChanged) -> None:
        self._owner.services.emit(
            ContextEdited(
                chat=self._owner.log.chat_id,
                cleared=change.report.cleared or 0,
                code=change.report.code,
                tokens_before=change.tokens_before,
                tokens_after=change.tokens_after,
                call_ids=change.report.call_ids,
                change_id=change.change_id,
                changed=tuple(message.id for message in change.replaced),
                removed=change.removed,
                cut=cuts_of(change.replaced),
                why=why_edited(change),
            )
        )
