"""One user turn: the agent loop (design.md, The way of one message; R-518, R-336).

    log the user message → prepare → request → log the reply → run its tools → prepare → … → done

Every exit leaves a valid history: unanswered calls are completed, what arrived of a reply is kept and marked.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from functools import partial
from typing import TYPE_CHECKING, Literal, assert_never

import msgspec

from codecompanion.adapters.base import Finished
from codecompanion.errors import (
    AdapterError,
    CodeCompanionError,
    ContextOverflow,
    OpaqueRefused,
    RequestRejected,
    StoreError,
    StoreUnavailable,
)
from codecompanion.model.history import (
    EventPayload,
    MessageAdded,
    RequestSent,
    ServerEdited,
    TurnBegan,
    TurnEnded,
    UsageReported,
    open_tool_calls,
)
from codecompanion.model.messages import Message, ToolCall, is_typed_by_user
from codecompanion.session.accounts.accounting import RequestRecord
from codecompanion.session.state import State
from codecompanion.session.turn.guards import over_request_limit, repeated_call
from codecompanion.session.turn.reply import ReplySoFar, stream_reply
from codecompanion.session.window.paused_and_full import PausedAndFull
from codecompanion.session.window.too_large import NOT_SENT, largest_part
from codecompanion.waiting import to_the_end
from codecompanion.wire.events import Notice, ReplyFinished, ReplyStarted, Severity, TurnFinished

if TYPE_CHECKING:
    from codecompanion.session.session import Session

Reason = Literal["done", "stopped", "failed", "limit"]
MAX_PAUSES = 16
"""A provider that pauses its reply again and again is not asked for more parts than this in one turn."""
WINDOW_FULL = "the reply filled the context window"


class Turn:
    """A turn of one chat; run once."""

    def __init__(self, session: Session, turn_id: str, cycle: int) -> None:
        self._session, self.turn_id, self.cycle = session, turn_id, cycle
        self._requests = self._pauses = self._continuations = 0
        self._is_paused = False
        """Whether the provider wants its reply back just as it is: nothing may join it, nothing be summarised."""
        self._compactions = session.log.compactions
        self._prepared_for = ("", "")
        """Adapter and model of the request that was prepared last; the user may choose others at any time."""
        self._calls: list[ToolCall] = []
        self._started_at = session.services.clock()
        self._reply: ReplySoFar | None = None
        self.arrived: tuple[ReplySoFar, str] | None = None
        """The reply that is shown as it arrives, and the id it is logged under, "" before."""
        self.was_stopped = False
        """Whether the user stopped it."""
        self.asking = PausedAndFull(session, partial(session.coming, turn_id, cycle))
        """What is asked where a request does not fit while compaction is paused."""

    async def run(self) -> Reason:
        """Run until control goes back to the user; tell the user how it ended. Never raises but for our own bugs."""
        session = self._session
        reason: Reason = "done"
        error = ""
        try:
            await session.log.write(TurnBegan(turn_id=self.turn_id, cycle=self.cycle))
            error = await self._loop()
            reason = "limit" if error else "done"
        except asyncio.CancelledError:
            # Cancelling is asked for by the user; this task cleans up and ends as stopped.
            task = asyncio.current_task()
            if task is not None:
                task.uncancel()
            reason, self.was_stopped = "stopped", True
        except CodeCompanionError as failure:
            reason, error = "failed", self._told(failure)
        except Exception as failure:
            reason, error = "failed", session.services.report_bug(failure)
        try:
            await to_the_end(self._finish(reason, error))
        except asyncio.CancelledError:
            task = asyncio.current_task()
            if task is not None:
                task.uncancel()
        return reason

    async def _finish(self, reason: Reason, error: str) -> None:
        """Make the history valid and say how the turn ended; a stop that comes now is too late to change it."""
        await self._settle()
        await self._end(reason, error)

    async def _loop(self) -> str:
        """Return why the turn had to stop early, "" when the model is done."""
        session = self._session
        while True:
            if not self._is_paused:
                if declined := await self.asking.before_message():
                    return declined
                refused = await session.deliver_queued(self.turn_id, self.cycle)
                if refused and not self._has_question():
                    return refused  # with what is attached it is too large
            stopped = over_request_limit(self._requests, session.services.settings.chat.max_provider_requests_per_turn)
            if stopped:
                return stopped
            waits = await self._prepare()
            if waits:
                return waits
            finished = await self._answer()
            if isinstance(finished, str):
                return finished
            self._is_paused = self.asking.allowed = False
            if finished.tool_calls:
                self._calls.extend(finished.tool_calls)
                await self._run_tools(finished)
                stopped = repeated_call(self._calls)
                if stopped:
                    return stopped
            else:
                ended = await self._why_ended(finished)
                if ended is not None:
                    return ended

    def _has_question(self) -> bool:
        """Return whether the turn has anything of the user's to answer."""
        return any(m.cycle == self.cycle and is_typed_by_user(m) for m in self._session.log.view.messages)

    async def _prepare(self) -> str:
        """Run the policy before every request (R-518), after the compaction the user asked for meanwhile.

        Returns why the turn ends here, "" when it goes on: a compaction waits for the user if they want it so (R-528),
        and so does a request that does not fit while compaction is paused (R-545).
        """
        session = self._session
        session.enter(State.PREPARING)
        self._prepared_for = session.adapter_name, session.model
        await session.reread_rules()
        session.effects.boundary()
        wanted = None if self._is_paused else session.take_compaction_request()
        if wanted is not None:
            await session.control.compact(wanted)
        summaries, asking = wanted is None and not self._is_paused, self.asking
        declined, anyway = "", asking.allowed
        await session.control.prepare(summaries=summaries, anyway=anyway)
        if not anyway and not self._is_paused:
            declined = await asking.before_request()
        if asking.allowed and not anyway:
            await session.control.prepare(summaries=summaries, anyway=True)
        session.show_meter()
        return declined or self._waits()

    def _waits(self) -> str:
        """Return why the turn ends here: compacted (R-528), unless the user has just asked for that; else ""."""
        session = self._session
        compacted = session.log.compactions > self._compactions
        self._compactions = session.log.compactions
        wish = session.services.settings.chat.on_compact
        if not compacted or self.asking.allowed or wish in ("auto", "submit") or session.has_queued:
            return ""
        return f'Compacted (on_compact = "{wish}"). Send a message to continue.'

    async def _why_ended(self, finished: Finished) -> str | None:
        """Return why the turn ends with a reply without calls, "" as it should.

        None: that was not the end yet, it was paused by the provider or cut by a limit.
        """
        match finished.stop:
            case "paused" | "compacted":
                self._pauses += 1
                self._is_paused = finished.stop == "paused" and not self._is_switched
                if finished.stop == "paused" and self._is_switched:
                    # Nobody else goes on from another one's words.
                    await self._session.ask_to_go_on(self.turn_id, self.cycle)
                return "" if self._pauses > MAX_PAUSES else self._waits() or None
            case "length" | "window":
                return await self._continue(finished.stop == "window")
            case "filtered":
                self._notice("The provider stopped this reply (content filter).")
                return ""
            case "stop" | "tool_calls":
                return ""
            case _:
                assert_never(finished.stop)

    async def _continue(self, is_full: bool) -> str | None:
        """Ask for the rest of a reply that a limit has cut, as often as the user wants, or return why not."""
        session = self._session
        if self._continuations >= session.services.settings.chat.max_output_continuations:
            limit = "in a full context window" if is_full else "at the model's output limit"
            self._notice(f"The reply ended {limit}; /continue continues it.")
            return ""
        self._continuations += 1
        asked = await session.ask_to_go_on(self.turn_id, self.cycle)
        if not is_full:
            return self._waits() or None
        full = ContextOverflow(WINDOW_FULL)
        declined = await self.asking.behind_refusal(full)
        if declined:
            return declined
        if declined is None and not await session.control.recover(full):
            await session.context.remove("repaired", (asked,))
            self._notice("The reply filled the context window, and nothing more can be removed from it.")
            return ""
        return self._waits() or None

    async def _answer(self) -> Finished | str:
        """Send the request; one the provider refuses is mended: once for encrypted parts, for its size by the policy.

        R-451, R-535. A refusal in words nobody knows counts as one for its size where that is likely, once.

        Returns why the turn ends here when the user is to be asked before it is sent again (R-528).
        """
        session = self._session
        recovered, distrusted, suspected = 0, False, False
        while True:
            # Lesson 4: what was prepared, was so for another window and without what is this provider's own.
            waits: str | None = await self._prepare() if self._is_switched else ""
            if waits:
                return waits
            try:
                return await self._request()
            except ContextOverflow as error:
                waits = "" if self._is_switched else await self.asking.behind_refusal(error)
                if waits is None:
                    attempts = session.control.policy.recovery.attempts
                    if recovered >= attempts or not await session.control.recover(error, recovered + 1):
                        await session.control.shaper.give_up(str(error))
                        raise _unsendable(error, session) from None
                    recovered, waits = recovered + 1, self._waits()
            except OpaqueRefused as error:
                if distrusted or not await session.control.native.distrust_opaque():
                    raise
                distrusted = True
                self._notice(f"{error} It is no longer sent; the readable history is sent instead.")
                waits = await self._prepare()
            except RequestRejected as error:
                waits = await self.asking.behind_refusal(error)
                if waits is None:
                    suspected = not suspected and await session.control.recover_suspected(error)
                    if not suspected:
                        raise
                    waits = self._waits()
            self._reply = self.arrived = None
            session.show_meter()
            if waits:
                return waits

    @property
    def _is_switched(self) -> bool:
        """Return whether the user has chosen another model since the request was prepared."""
        return self._prepared_for != (self._session.adapter_name, self._session.model)

    async def _request(self) -> Finished:
        session = self._session
        session.enter(State.PREPARING)
        adapter = session.services.adapters.get(session.adapter_name)
        self._requests += 1
        request = session.control.request()
        with session.control.shaper.as_sent() as sent_view:
            estimated = session.meter.estimated_prompt(sent_view)
        record = RequestRecord(session.services.new_token(), session.log, session.services.clock)
        sent = RequestSent(
            turn_id=self.turn_id,
            adapter=session.adapter_name,
            model=session.model,
            messages=len(request.messages),
            estimated_tokens=session.control.shaper.current().measure.tokens,
            request_id=record.id,
            shaping=session.control.shaper.savings(),
        )
        await session.log.write(session.parts.described(request, sent))
        session.enter(State.STREAMING, "waiting for the model")
        session.emit(ReplyStarted(chat=session.chat_id, adapter=session.adapter_name, model=session.model))
        self._reply = reply = ReplySoFar()
        self.arrived = reply, ""
        native = session.control.native.compaction()
        try:
            finished = await stream_reply(
                adapter,
                request,
                reply,
                emit=session.emit,
                on_label=lambda label: session.enter(State.STREAMING, label),
                save_partial=session.save_partial,
                on_compaction=native.take,
                on_retry=record.take_retry,
            )
        except BaseException as error:
            await native.end(error)
            await record.fail(error)
            raise
        await native.end()
        if finished.stop == "compacted" and not native.done:
            session.control.native.expect(missed=True)
        await self._log_reply(record, reply, finished, estimated, compacted=native.done)
        return finished

    async def _log_reply(
        self, record: RequestRecord, reply: ReplySoFar, finished: Finished, estimated: int, *, compacted: bool
    ) -> None:
        session, usage = self._session, finished.usage
        self._reply = None
        message = self._message(reply, finished)
        self.arrived = reply, message.id
        # A reply may be nothing but the provider's compaction, which is in the view already.
        empty = finished.stop == "compacted" and not message.content
        payloads: list[EventPayload] = [] if empty else [MessageAdded(message=message)]
        reported = self._reported(message.id, finished, estimated, empty=empty)
        payloads += [msgspec.structs.replace(usage, request_id=record.id) for usage in reported]
        keep = partial(self._keep_for_later, message, reply, payloads[len(payloads) - len(reported) :])
        try:
            await session.log.write(*payloads, record.ended(finished.stop), on_failure=keep)
        except StoreError as failure:
            lost = "No tool was run, because the calls could not be stored" if finished.tool_calls else ""
            raise StoreUnavailable(f"{lost or 'The reply is not stored yet'}: {failure}") from failure
        if usage is not None and not empty and not self._is_switched:
            cleared = sum(edit.cleared_tokens for edit in finished.server_edits)
            session.control.learn(usage, estimated, compacted=compacted, cleared=cleared)
            session.keep_calibration()
        session.emit(
            ReplyFinished(
                chat=session.chat_id,
                message_id=message.id,
                stop=finished.stop,
                prompt_tokens=usage.prompt_tokens if usage else 0,
                output_tokens=usage.output_tokens if usage else 0,
            )
        )
        if finished.stop == "stop" and not finished.tool_calls and not message.text.strip():
            self._notice("The model sent an empty reply. Send another message, or regenerate.")
        session.control.window.take_in()
        session.control.window.tell_no_room()
        for edit in finished.server_edits:
            self._notice(
                f"{self._prepared_for[0]} cleared {edit.cleared_items} old tool results on its side"
                f" ({edit.cleared_tokens:,} tokens; {edit.kind})."
            )
        session.show_meter()

    def _keep_for_later(self, message: Message, reply: ReplySoFar, reported: Sequence[EventPayload]) -> None:
        """Let a reply that was shown be stored with what comes next; its calls do not count, they were not run."""
        if message.tool_calls:
            reply.finished = None
            message = msgspec.structs.replace(self._message(reply, None), id=message.id)
        kept: tuple[EventPayload, ...] = (MessageAdded(message=message),) if message.text.strip() else ()
        self._session.log.write_later(*kept, *reported)

    def _told(self, failure: CodeCompanionError) -> str:
        """Return what the user is told of a failure: also what is kept of a reply that was arriving (lesson 39)."""
        told = str(failure)
        if isinstance(failure, AdapterError) and self._reply is not None and not self._reply.is_empty:
            told = told.rstrip(".") + ". The part that arrived is kept; /continue continues it."
        return told

    def _reported(self, message_id: str, finished: Finished, estimated: int, *, empty: bool) -> list[UsageReported]:
        """Return what is logged of the figures of a reply, nothing when the provider gave none."""
        session, usage, others = self._session, finished.usage, finished.other_passes
        (adapter, model), services = self._prepared_for, session.services
        if usage is None or empty:
            passes = (*([usage] if usage else []), *others)
            return [services.passes_reported(adapter, model, message_id, passes)] if passes else []
        edits = tuple(
            ServerEdited(edit.kind, edit.cleared_tokens, edit.cleared_items) for edit in finished.server_edits
        )
        reported = UsageReported(
            message_id=message_id,
            adapter=adapter,
            model=model,
            usage=usage,
            estimated_prompt_tokens=estimated,
            other_passes=others,
            server_edits=edits,
        )
        return [services.priced(reported)]

    def _message(self, reply: ReplySoFar, finished: Finished | None) -> Message:
        """Return the reply as a message; without an end marker it is marked as cut and its calls do not count."""
        session = self._session
        return session.meter.counted(
            Message(
                id=session.services.new_token(),
                role="assistant",
                content=reply.content(),
                tool_calls=finished.tool_calls if finished else (),
                cycle=self.cycle,
                turn_id=self.turn_id,
                cut=finished is None,
                ts=session.services.clock(),
                usage=finished.usage if finished else None,
            )
        )

    async def _run_tools(self, finished: Finished) -> None:
        session = self._session
        session.enter(State.RUNNING_TOOLS)
        await session.tool_round(finished.tool_calls, self.cycle, self.turn_id).run()
        session.show_meter()

    async def _settle(self) -> None:
        """Make the history valid after an early end: keep what arrived, answer every open call (lesson 28)."""
        session = self._session
        try:
            await session.log.settled()
            if self._reply is not None and self._reply.is_empty:
                session.services.store.clear_partial(session.chat_id)
            elif self._reply is not None:
                message = self._message(self._reply, None)
                self.arrived = self._reply, message.id
                session.log.write_later(MessageAdded(message=message))
                await session.log.write()
                session.emit(ReplyFinished(chat=session.chat_id, message_id=message.id, stop="cut"))
            calls = open_tool_calls(session.log.view)
            if calls:
                await session.tool_round(calls, self.cycle, self.turn_id).complete_as_cancelled()
        except CodeCompanionError as failure:
            self._notice(f"The part that arrived is not stored yet: {failure}")
        self._reply = self.arrived = None

    async def _end(self, reason: Reason, error: str) -> None:
        session = self._session
        try:
            await session.log.write(TurnEnded(turn_id=self.turn_id, reason=reason, error=error))
        except CodeCompanionError as failure:
            error = error or str(failure)
        if error and session.has_queued:
            # One sentence for both: the same twice is shown once.
            error = f"{error.rstrip('.')}. Your message is back in the input."
        duration_ms = round((session.services.clock() - self._started_at) * 1000)
        session.enter(State.IDLE)
        session.show_meter()
        unsent = error.startswith(NOT_SENT)
        session.emit(
            TurnFinished(chat=session.chat_id, reason=reason, error=error, unsent=unsent, duration_ms=duration_ms)
        )
        if reason != "done":
            # In the same step: what comes once the end has been told is the next turn's.
            session.give_back_queued(error)

    def _notice(self, text: str) -> None:
        self._session.emit(Notice(chat=self._session.chat_id, level=Severity.INFO, text=text))


def _unsendable(error: ContextOverflow, session: Session) -> ContextOverflow:
    """Return the error with what the user can do when nothing more can be taken out."""
    what, advice = largest_part(session.control, session.log.view.messages)
    return ContextOverflow(f"{error} Nothing more can be removed: {what}. {advice}")
