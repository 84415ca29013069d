"""One user turn: the agent loop (architecture.md; R-518, R-336).

    log the user message → prepare → request → log the reply → run its tools → prepare → … → done

Every exit leaves a valid history: unanswered calls are completed, what arrived of a reply is kept and marked.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from functools import partial
from typing import Literal, assert_never

import msgspec

from codecompanion.adapters.base import Finished
from codecompanion.errors import (
    AdapterError,
    CodeCompanionError,
    ContextOverflow,
    EncryptedRefused,
    RequestRejected,
    StoreError,
    StoreUnavailable,
)
from codecompanion.model.history import (
    EventPayload,
    MessageAdded,
    RequestSent,
    ServerEdited,
    TurnEnded,
    TurnStarted,
    UsageReported,
)
from codecompanion.model.messages import Message, ToolCall, is_typed_by_user
from codecompanion.model.view import open_tool_calls
from codecompanion.session.accounts.accounting import RequestRecord
from codecompanion.session.before_request import prepare_request
from codecompanion.session.chat import Chat
from codecompanion.session.state import State, Stop
from codecompanion.session.turn.guards import over_request_limit, repeated_call
from codecompanion.session.turn.reply import ReplySoFar, stream_reply
from codecompanion.session.window.paused_and_full import Answer, PausedAndFull
from codecompanion.session.window.too_large import NOT_SENT, largest_part
from codecompanion.waiting import to_the_end
from codecompanion.wire.events import ReplyFinished, ReplyStarted, Severity, TurnFinished

Reason = Literal["done", "stopped", "failed", "limit"]
MAX_PAUSES = 16
"""A provider that pauses its reply again and again is not asked for more parts than this in one turn."""
WINDOW_FULL = "the reply filled the context window"


class Turn:
    """A turn of one chat; run once."""

    def __init__(self, chat: Chat, turn_id: str, cycle: int) -> None:
        self._chat, self.turn_id, self.cycle = chat, turn_id, cycle
        self._began = TurnStarted(turn_id=turn_id, cycle=cycle)
        self._requests = self._pauses = self._continuations = 0
        self._is_paused = False
        """Whether the provider wants its reply back just as it is: nothing may join it, nothing be summarised."""
        self._compactions = chat.log.compactions
        self._prepared_for = ("", "")
        """Adapter and model of the request that was prepared last; the user may choose others at any time."""
        self._calls: list[ToolCall] = []
        self._started_at = chat.services.clock()
        self._reply: ReplySoFar | None = None
        self.was_stopped = False
        """Whether the user stopped it."""
        self.asking = PausedAndFull(chat, partial(chat.coming, turn_id, cycle))
        """What is asked where a request does not fit while compaction is paused."""

    async def run(self) -> Reason:
        """Run until control goes back to the user; tell the user how it ended. Never raises but for our own bugs."""
        chat = self._chat
        reason: Reason = "done"
        error = ""
        try:
            chat.log.write_later(self._began)  # one commit with the user's message
            error = (await self._loop()).why
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
            reason, error = "failed", chat.services.report_bug(failure)
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

    async def _loop(self) -> Stop:
        """Return why the turn had to stop early; it says nothing when the model is done."""
        chat = self._chat
        while True:
            if not self._is_paused:
                if declined := await self.asking.before_message():
                    return declined
                refused = await chat.deliver_queued(self.turn_id, self.cycle)
                await chat.log.write_rest()  # where there was no message to be written with
                if refused and not self._has_question():
                    return Stop(refused)  # with what is attached it is too large
            stopped = over_request_limit(self._requests, chat.services.settings.chat.max_provider_requests_per_turn)
            if stopped:
                return Stop(stopped)
            if waits := await self._prepare():
                return waits
            finished = await self._answer()
            if isinstance(finished, Stop):
                return finished
            self._is_paused = self.asking.allowed = False
            if finished.tool_calls:
                self._calls.extend(finished.tool_calls)
                await self._run_tools(finished)
                stopped = repeated_call(self._calls)
                if stopped:
                    return Stop(stopped)
            elif ended := await self._ended(finished):
                return ended

    def _has_question(self) -> bool:
        """Return whether the turn has anything of the user's to answer."""
        return any(m.cycle == self.cycle and is_typed_by_user(m) for m in self._chat.log.view.messages)

    async def _prepare(self) -> Stop | None:
        """Do what comes before every request; return why the turn ends here, None when it goes on.

        A compaction waits for the user if they want it so (R-528), and so does what `prepare_request` asks about.
        """
        chat = self._chat
        chat.enter(State.PREPARING)
        self._prepared_for = chat.control.named
        declined = await prepare_request(chat, self.asking, is_continued=self._is_paused)
        chat.show_meter()
        return declined or self._waits()

    def _waits(self) -> Stop | None:
        """Return why the turn ends here: compacted (R-528), unless the user has just asked for that; else None."""
        chat = self._chat
        compacted = chat.log.compactions > self._compactions
        self._compactions = chat.log.compactions
        wish = chat.services.settings.chat.on_compact
        if not compacted or self.asking.allowed or wish in ("auto", "submit") or chat.queue:
            return None
        return Stop(f'Compacted (on_compact = "{wish}"). Send a message to continue.')

    async def _ended(self, finished: Finished) -> Stop | None:
        """Return how the turn ends with a reply without calls.

        None: that was not the end yet, it was paused by the provider or cut by a limit.
        """
        match finished.stop:
            case "paused" | "compacted":
                self._pauses += 1
                self._is_paused = finished.stop == "paused" and not self._is_switched
                if finished.stop == "paused" and self._is_switched:
                    # Nobody else goes on from another one's words.
                    await self._chat.ask_to_go_on(self.turn_id, self.cycle)
                return Stop() if self._pauses > MAX_PAUSES else self._waits()
            case "length" | "window":
                return await self._continue(finished.stop == "window")
            case "filtered":
                self._notice("The provider stopped this reply (content filter).")
                return Stop()
            case "stop" | "tool_calls":
                return Stop()
            case _:
                assert_never(finished.stop)

    async def _continue(self, is_full: bool) -> Stop | None:
        """Ask for the rest of a reply that a limit has cut, as often as the user wants, or return why not."""
        chat = self._chat
        if self._continuations >= chat.services.settings.chat.max_output_continuations:
            limit = "in a full context window" if is_full else "at the model's output limit"
            self._notice(f"The reply ended {limit}; /continue continues it.")
            return Stop()
        self._continuations += 1
        asked = await chat.ask_to_go_on(self.turn_id, self.cycle)
        if not is_full:
            return self._waits()
        full = ContextOverflow(WINDOW_FULL)
        answer = await self.asking.after_refusal(full)
        if isinstance(answer, Stop):
            return answer
        if answer is Answer.NOT_ASKED and not await chat.control.recover(full):
            await chat.context.remove("repaired", (asked,))
            self._notice("The reply filled the context window, and nothing more can be removed from it.")
            return Stop()
        return self._waits()

    async def _answer(self) -> Finished | Stop:
        """Send the request; one the provider refuses is mended: once for encrypted parts, for its size by the policy.

        R-451, R-535. A refusal in words nobody knows counts as one for its size where that is likely, once.

        Returns why the turn ends here when the user is to be asked before it is sent again (R-528).
        """
        chat = self._chat
        recovered, distrusted, suspected = 0, False, False
        while True:
            # Lesson 4: what was prepared, was so for another window and without what is this provider's own.
            if self._is_switched and (waits := await self._prepare()):
                return waits
            try:
                return await self._request()
            except ContextOverflow as error:
                answer = Answer.SEND if self._is_switched else await self.asking.after_refusal(error)
                if answer is Answer.NOT_ASKED:
                    attempts = chat.control.policy.recovery.attempts
                    if recovered >= attempts or not await chat.control.recover(error, recovered + 1):
                        await chat.control.shaper.give_up(str(error))
                        raise _unsendable(error, chat) from None
                    recovered += 1
            except EncryptedRefused as error:
                if distrusted or not await chat.control.native.distrust_encrypted():
                    raise
                distrusted = True
                self._notice(f"{error} It is no longer sent; the readable history is sent instead.")
                answer = await self._prepare() or Answer.SEND
            except RequestRejected as error:
                answer = await self.asking.after_refusal(error)
                if answer is Answer.NOT_ASKED:
                    suspected = not suspected and await chat.control.recover_suspected(error)
                    if not suspected:
                        raise
            self._reply = self._chat.arrived = None
            chat.show_meter()
            if isinstance(answer, Stop):
                return answer
            if answer is Answer.NOT_ASKED and (waits := self._waits()):
                return waits

    @property
    def _is_switched(self) -> bool:
        """Return whether the user has chosen another model since the request was prepared."""
        return self._prepared_for != self._chat.control.named

    async def _request(self) -> Finished:
        chat = self._chat
        chat.enter(State.PREPARING)
        adapter = chat.services.adapters.get(chat.adapter_name)
        self._requests += 1
        request = chat.control.request()
        with chat.control.shaper.as_sent() as sent_view:
            estimated = chat.meter.estimated_prompt(sent_view)
        record = RequestRecord(chat.services.new_token(), chat.log, chat.services.clock)
        sent = RequestSent(
            turn_id=self.turn_id,
            adapter=chat.adapter_name,
            model=chat.model,
            messages=len(request.messages),
            estimated_tokens=chat.control.shaper.current().measure.tokens,
            request_id=record.id,
            shaping=chat.control.shaper.savings(),
        )
        chat.log.write_unawaited(chat.parts.described(request, sent))
        chat.enter(State.STREAMING, "waiting for the model")
        chat.emit(ReplyStarted(chat=chat.chat_id, adapter=chat.adapter_name, model=chat.model))
        self._reply = reply = ReplySoFar()
        self._chat.arrived = reply, ""
        native = chat.control.native.compaction()
        try:
            finished = await stream_reply(
                adapter,
                request,
                reply,
                emit=chat.emit,
                on_label=lambda label: chat.enter(State.STREAMING, label),
                save_partial=chat.save_partial,
                on_compaction=native.take,
                on_retry=record.take_retry,
            )
        except BaseException as error:
            await native.end(error)
            await record.fail(error)
            raise
        await native.end()
        if finished.stop == "compacted" and not native.done:
            chat.control.native.expect(missed=True)
        await self._log_reply(record, reply, finished, estimated, compacted=native.done)
        return finished

    async def _log_reply(
        self, record: RequestRecord, reply: ReplySoFar, finished: Finished, estimated: int, *, compacted: bool
    ) -> None:
        chat, usage = self._chat, finished.usage
        self._reply = None
        message = self._message(reply, finished)
        self._chat.arrived = reply, message.id
        # A reply may be nothing but the provider's compaction, which is in the view already.
        empty = finished.stop == "compacted" and not message.content
        payloads: list[EventPayload] = [] if empty else [MessageAdded(message=message)]
        reported = self._reported(message.id, finished, estimated, empty=empty)
        payloads += [msgspec.structs.replace(usage, request_id=record.id) for usage in reported]
        keep = partial(self._keep_for_later, message, reply, payloads[len(payloads) - len(reported) :])
        try:
            await chat.log.write(*payloads, record.ended(finished.stop), on_failure=keep)
        except StoreError as failure:
            lost = "No tool was run, because the calls could not be stored" if finished.tool_calls else ""
            raise StoreUnavailable(f"{lost or 'The reply is not stored yet'}: {failure}") from failure
        if usage is not None and not empty and not self._is_switched:
            cleared = sum(edit.cleared_tokens for edit in finished.server_edits)
            chat.control.learn(usage, estimated, compacted=compacted, cleared=cleared)
            chat.keep_calibration()
        chat.emit(
            ReplyFinished(
                chat=chat.chat_id,
                message_id=message.id,
                stop=finished.stop,
                prompt_tokens=usage.prompt_tokens if usage else 0,
                output_tokens=usage.output_tokens if usage else 0,
            )
        )
        if finished.stop == "stop" and not finished.tool_calls and not message.text.strip():
            self._notice("The model sent an empty reply. Send another message, or regenerate.")
        chat.control.window.take_in()
        chat.control.window.tell_no_room()
        for edit in finished.server_edits:
            self._notice(
                f"{self._prepared_for[0]} cleared {edit.cleared_items} old tool results on its side"
                f" ({edit.cleared_tokens:,} tokens; {edit.kind})."
            )
        chat.show_meter()

    def _keep_for_later(self, message: Message, reply: ReplySoFar, reported: Sequence[EventPayload]) -> None:
        """Let a reply that was shown be stored with what comes next; its calls do not count, they were not run."""
        if message.tool_calls:
            reply.finished = None
            message = msgspec.structs.replace(self._message(reply, None), id=message.id)
        kept: tuple[EventPayload, ...] = (MessageAdded(message=message),) if message.text.strip() else ()
        self._chat.log.write_later(*kept, *reported)

    def _told(self, failure: CodeCompanionError) -> str:
        """Return what the user is told of a failure: also what is kept of a reply that was arriving (lesson 39)."""
        told = str(failure)
        if isinstance(failure, AdapterError) and self._reply is not None and not self._reply.is_empty:
            told = told.rstrip(".") + ". The part that arrived is kept; /continue continues it."
        return told

    def _reported(self, message_id: str, finished: Finished, estimated: int, *, empty: bool) -> list[UsageReported]:
        """Return what is logged of the figures of a reply, nothing when the provider gave none."""
        chat, usage, others = self._chat, finished.usage, finished.other_passes
        (adapter, model), services = self._prepared_for, chat.services
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
        chat = self._chat
        return chat.meter.counted(
            Message(
                id=chat.services.new_token(),
                role="assistant",
                content=reply.content(),
                tool_calls=finished.tool_calls if finished else (),
                cycle=self.cycle,
                turn_id=self.turn_id,
                cut=finished is None,
                ts=chat.services.clock(),
                usage=finished.usage if finished else None,
            )
        )

    async def _run_tools(self, finished: Finished) -> None:
        chat = self._chat
        chat.enter(State.RUNNING_TOOLS)
        await chat.tool_round(finished.tool_calls, self.cycle, self.turn_id).run()
        chat.show_meter()

    async def _settle(self) -> None:
        """Make the history valid after an early end: keep what arrived, answer every open call (lesson 28)."""
        chat = self._chat
        try:
            await chat.log.settled()
            if self._reply is not None and self._reply.is_empty:
                chat.services.store.clear_partial(chat.chat_id)
            elif self._reply is not None:
                message = self._message(self._reply, None)
                self._chat.arrived = self._reply, message.id
                chat.log.write_later(MessageAdded(message=message))
                await chat.log.write()
                chat.emit(ReplyFinished(chat=chat.chat_id, message_id=message.id, stop="cut"))
            calls = open_tool_calls(chat.log.view)
            if calls:
                await chat.tool_round(calls, self.cycle, self.turn_id).complete_as_cancelled()
        except CodeCompanionError as failure:
            self._notice(f"The part that arrived is not stored yet: {failure}")
        self._reply = self._chat.arrived = None

    async def _end(self, reason: Reason, error: str) -> None:
        chat = self._chat
        try:
            await chat.log.write(TurnEnded(turn_id=self.turn_id, reason=reason, error=error))
        except CodeCompanionError as failure:
            chat.log.withdraw(self._began)  # else the log would hold a turn without an end
            error = error or str(failure)
        if error and chat.queue:
            # One sentence for both: the same twice is shown once.
            error = f"{error.rstrip('.')}. Your message is back in the input."
        duration_ms = round((chat.services.clock() - self._started_at) * 1000)
        chat.enter(State.IDLE)
        chat.show_meter()
        unsent = error.startswith(NOT_SENT)
        chat.emit(TurnFinished(chat=chat.chat_id, reason=reason, error=error, unsent=unsent, duration_ms=duration_ms))
        if reason != "done":
            # In the same step: what comes once the end has been told is the next turn's.
            chat.queue.give_back(error or "Not sent, because the turn ended early; your message is back in the input.")

    def _notice(self, text: str) -> None:
        self._chat.notice(Severity.INFO, text)


def _unsendable(error: ContextOverflow, chat: Chat) -> ContextOverflow:
    """Return the error with what the user can do when nothing more can be taken out."""
    what, advice = largest_part(chat.control, chat.log.view.messages)
    return ContextOverflow(f"{error} Nothing more can be removed: {what}. {advice}")
