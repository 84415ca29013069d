"""Runs one user turn, the agent loop (architecture.md; R-518, R-336).

    log the user message → prepare → request → log the reply → run its tools → prepare → … → done

Every exit leaves a valid history: open calls get results, and a partial reply is kept and marked.
"""

from __future__ import annotations

import asyncio
from functools import partial
from typing import Literal, assert_never

from codecompanion.adapters.base import Finished
from codecompanion.errors import (
    AdapterError,
    CodeCompanionError,
    ContextOverflow,
    EncryptedRefused,
    RequestRejected,
)
from codecompanion.model.history import (
    TurnEnded,
    TurnStarted,
)
from codecompanion.model.messages import ToolCall, is_typed_by_user
from codecompanion.model.view import open_tool_calls
from codecompanion.session.chat.chat import Chat
from codecompanion.session.state import State, Stop
from codecompanion.session.turn.before_request import prepare_request
from codecompanion.session.turn.guards import fills_window, over_request_limit, repeated_call
from codecompanion.session.turn.paused_and_full import Answer, PausedAndFull
from codecompanion.session.turn.request_and_reply import Exchange
from codecompanion.session.window.too_large import IS_BACK, NOT_SENT, can_be_compacted, largest_part
from codecompanion.waiting import to_the_end
from codecompanion.wire.events import Severity, TurnFinished

Reason = Literal["done", "stopped", "failed", "limit"]
MAX_PAUSES = 16
"""Maximum number of continuations per turn for a provider that keeps pausing its reply."""
WINDOW_FULL = "the reply filled the context window"


class Turn:
    """Runs one turn of a chat, once."""

    def __init__(self, chat: Chat, turn_id: str, cycle: int) -> None:
        self._chat, self.turn_id, self.cycle = chat, turn_id, cycle
        self._began = TurnStarted(turn_id=turn_id, cycle=cycle)
        self._requests = self._pauses = self._continuations = 0
        self._is_paused = False
        """Whether the provider wants its reply returned unchanged, so that nothing may be added or summarised."""
        self._compactions = chat.log.compactions
        self._exchange = Exchange(chat, turn_id, cycle)
        self._calls: list[ToolCall] = []
        self._started_at = chat.services.clock()
        self._answers_message = bool(chat.queue)
        self.was_stopped = False
        """Whether the user stopped the turn."""
        self.asking = PausedAndFull(chat, partial(chat.coming, turn_id, cycle))
        """Asks the user about requests that do not fit while compaction is paused."""

    async def run(self) -> Reason:
        """Run until control returns to the user; return how the turn ended. Raises only for our own bugs."""
        chat = self._chat
        reason: Reason = "done"
        error = ""
        try:
            chat.log.write_later(self._began)  # one commit with the user's message
            error = (await self._loop()).why
            reason = "limit" if error else "done"
        except asyncio.CancelledError:
            # The user cancelled; this task cleans up and ends as stopped.
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
        """Make the history valid and report how the turn ended; a later stop no longer changes the result."""
        await self._settle()
        await self._end(reason, error)

    async def _loop(self) -> Stop:
        """Run the loop; return why it ended, with `why` = "" if the model is done."""
        chat = self._chat
        while True:
            if not self._is_paused:
                if declined := await self.asking.before_message():
                    return declined
                refused = await chat.deliver_queued(self.turn_id, self.cycle)
                await chat.log.write_rest()  # in case there was no message to write them with
                if refused and not self._has_question():
                    return Stop(refused)  # too large with its attachments
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
        """Return whether the turn has a user message to answer."""
        return any(m.cycle == self.cycle and is_typed_by_user(m) for m in self._chat.log.view.messages)

    async def _prepare(self) -> Stop | None:
        """Prepare the next request; return a `Stop` if the turn ends here, or None if it continues.

        After a compaction the turn may have to wait for the user (R-528), as for the questions of `prepare_request`.
        """
        chat = self._chat
        chat.enter(State.PREPARING)
        self._exchange.prepared_for = chat.control.named
        declined = await prepare_request(chat, self.asking, is_continued=self._is_paused)
        chat.show_meter()
        return declined or self._waits()

    def _waits(self) -> Stop | None:
        """Return a `Stop` if the turn ends after a compaction (R-528), or None if the user just requested one."""
        chat = self._chat
        compacted = chat.log.compactions > self._compactions
        self._compactions = chat.log.compactions
        setting = chat.services.settings.chat.on_compact
        if not compacted or self.asking.allowed or setting in ("auto", "submit") or chat.queue:
            return None
        return Stop(f'Waiting for you (on_compact = "{setting}"). /continue lets the model answer.')

    async def _ended(self, finished: Finished) -> Stop | None:
        """Return how the turn ends after a reply without tool calls.

        None means that the turn continues, because the provider paused the reply or a limit truncated it.
        """
        match finished.stop:
            case "paused" | "compacted":
                self._pauses += 1
                self._is_paused = finished.stop == "paused" and not self._exchange.is_switched
                if finished.stop == "paused" and self._exchange.is_switched:
                    # Another model does not continue this reply.
                    await self._chat.ask_to_continue(self.turn_id, self.cycle)
                return Stop() if self._pauses > MAX_PAUSES else self._waits()
            case "length" | "window":
                return await self._continue(finished.stop == "window" or self._filled_window(finished))
            case "filtered":
                self._notice("The provider stopped this reply (content filter).")
                return Stop()
            case "stop" | "tool_calls":
                return Stop()
            case _:
                assert_never(finished.stop)

    def _filled_window(self, finished: Finished) -> bool:
        """Return whether the reply ended at the context window's limit, as far as the window size is known."""
        window = self._chat.control.window
        return not window.is_a_guess and fills_window(finished.usage, self._chat.control.limits.context_window)

    async def _continue(self, is_full: bool) -> Stop | None:
        """Continue a reply that a limit truncated, up to the configured number of times; then return a `Stop`."""
        chat = self._chat
        if self._continuations >= chat.services.settings.chat.max_output_continuations:
            limit = "because the context window is full" if is_full else "at the model's output limit"
            self._notice(f"The reply ended {limit}; /continue continues it.")
            return Stop()
        self._continuations += 1
        asked = await chat.ask_to_continue(self.turn_id, self.cycle)
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
        """Send the request and return the reply; if refused, fix its encrypted parts (once) or size, and retry.

        R-451, R-535. A refusal of unknown cause is treated as "too long" once, if that is likely.

        Returns a `Stop` if the turn ends here because the user must decide before a retry (R-528).
        """
        chat = self._chat
        recovered, distrusted, suspected = 0, False, False
        while True:
            if not chat.model:
                from codecompanion.session.chat.use_model import find_model  # not needed at startup

                await find_model(chat)
            # Lesson 4: the request was prepared for another window and lacks this provider's own state.
            if self._exchange.is_switched and (waits := await self._prepare()):
                return waits
            self._requests += 1
            try:
                return await self._exchange.send()
            except ContextOverflow as error:
                answer = Answer.SEND if self._exchange.is_switched else await self.asking.after_refusal(error)
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
            self._exchange.forget()
            chat.show_meter()
            if isinstance(answer, Stop):
                return answer
            if answer is Answer.NOT_ASKED and (waits := self._waits()):
                return waits

    def _told(self, failure: CodeCompanionError) -> str:
        """Return the error text for the user, with a note if part of a reply was kept (lesson 39)."""
        told = str(failure)
        if isinstance(failure, AdapterError) and self._exchange.has_words:
            told = told.rstrip(".") + ". The partial reply is kept; /continue continues it."
        return told

    async def _run_tools(self, finished: Finished) -> None:
        chat = self._chat
        chat.enter(State.RUNNING_TOOLS)
        await chat.tool_round(finished.tool_calls, self.cycle, self.turn_id, self._exchange.tools).run()
        chat.show_meter()

    async def _settle(self) -> None:
        """Make the history valid after an early end: keep the partial reply, add missing tool results (lesson 28)."""
        chat = self._chat
        try:
            await chat.log.settled()
            await self._exchange.keep_what_arrived()
            calls = open_tool_calls(chat.log.view)
            if calls:
                tool_round = chat.tool_round(calls, self.cycle, self.turn_id, self._exchange.tools)
                await tool_round.complete_as_cancelled(host_ends=chat.host_ends)
        except CodeCompanionError as failure:
            self._notice(f"The partial reply is not stored yet: {failure}")
        self._exchange.forget()

    async def _end(self, reason: Reason, error: str) -> None:
        chat = self._chat
        # Stopped before its message was logged, so there was no turn.
        nothing_said = reason == "stopped" and chat.log.withdraw(self._began)
        try:
            if not nothing_said:
                logged = "interrupted" if reason == "stopped" and chat.host_ends else reason
                await chat.log.write(TurnEnded(turn_id=self.turn_id, reason=logged, error=error))
        except CodeCompanionError as failure:
            chat.log.withdraw(self._began)  # otherwise the log would contain a turn without an end
            error = error or str(failure)
        if error and chat.queue and not error.endswith(IS_BACK):
            # The same sentence for both, because an identical second notice is not shown.
            error = f"{error.rstrip('.')}. {IS_BACK}"
        duration_ms = round((chat.services.clock() - self._started_at) * 1000)
        chat.enter(State.IDLE)
        chat.show_meter()
        unsent = (nothing_said and self._answers_message) or error.startswith(NOT_SENT)
        chat.emit(TurnFinished(chat=chat.chat_id, reason=reason, error=error, unsent=unsent, duration_ms=duration_ms))
        if reason != "done":
            # Without awaiting: a message that arrives after the end is reported belongs to the next turn.
            chat.queue.give_back(error or "Not sent: the turn ended early. Your message is back in the input.")

    def _notice(self, text: str) -> None:
        self._chat.notice(Severity.INFO, text)


def _unsendable(error: ContextOverflow, chat: Chat) -> ContextOverflow:
    """Return the error for a request from which nothing more can be removed; it lists the user's options."""
    what, advice = largest_part(chat.control, chat.log.view.messages)
    more = what[:1].upper() + what[1:] if can_be_compacted(advice) else f"Nothing more can be removed: {what}"
    return ContextOverflow(f"{error} {more}. {advice}")
