"""Carries out the user's requests to a chat at the right time. Runs on the engine's loop and never blocks it.

A message submitted while the chat is busy is queued and delivered exactly once, at the next request boundary (lesson
16).
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine, Mapping, Sequence
from functools import cached_property, partial
from typing import TYPE_CHECKING, Any

from codecompanion.errors import InputError
from codecompanion.model.change_report import ChangeReport
from codecompanion.model.messages import GO_ON_TAG, STARTING_TAGS, SUMMARY_TAG, Message, is_typed_by_user
from codecompanion.model.view import is_of_answer
from codecompanion.session.actions.fetches import Fetches
from codecompanion.session.actions.spending import Spending
from codecompanion.session.chat.chat import Chat
from codecompanion.session.history.chat_log import ChatLog
from codecompanion.session.services import Services
from codecompanion.session.state import State
from codecompanion.session.turn.turn import Turn
from codecompanion.wire.events import Event, Queued, Severity, TurnFinished
from codecompanion.wire.requests import Snapshot, Submit

if TYPE_CHECKING:
    from codecompanion.session.actions.reverting import Reverter
    from codecompanion.session.actions.view_edits import ViewEdits
    from codecompanion.session.turn.edit_turn import EditTurn

IDLE_S = 1.0
"""Seconds that a chat of unknown size must be idle before its tokens are counted."""


class Session(Chat):
    """One chat of this host, with its user's requests."""

    def __init__(self, services: Services, log: ChatLog, snapshot: Snapshot) -> None:
        super().__init__(services, log, snapshot, self._finished)
        self.spending = Spending(services, self.chat_id)
        self.fetches = Fetches()
        self._resumes = False
        """Whether the model continues after a `/compact`."""
        self.turn: Turn | None = None
        """The running turn, or the last one."""
        self._edit: EditTurn | None = None
        """The edit in place whose reply is awaited."""
        self._counting: asyncio.Task[None] | None = None
        """Counts the next request while the chat is idle."""

    @cached_property
    def edits(self) -> ViewEdits:
        """The user's changes to the view: undo, pins, removed messages."""
        from codecompanion.session.actions.view_edits import ViewEdits  # not needed at startup

        return ViewEdits(self)

    @cached_property
    def changes(self) -> Reverter:
        """Lists and reverts the file changes made by this chat's tools."""
        from codecompanion.session.actions.reverting import Reverter  # not needed at startup

        return Reverter(self)

    # ---- requests of the user

    def submit(self, request: Submit) -> None:
        """Accept a message: send it if the chat is idle, else queue and show it (lesson 16). Returns immediately.

        Raises:
            InputError: the text is empty, or the chat is busy and this is an edit in place.
        """
        if not request.text.strip():
            raise InputError("Nothing to send: the input is empty.")
        self.snapshot = request.snapshot
        if request.edit is not None and not request.snapshot.send_code:
            raise InputError("Nothing was sent: an edit in place sends code, and opts.send_code is false.")
        if request.edit is not None:
            self.must_be_idle("The chat of this edit is working; wait until its reply is complete.")
            from codecompanion.session.turn.edit_turn import EditTurn  # most chats have no edit in place

            self._edit = EditTurn(self.chat_id, request.edit, request.text)
        self.queue.add(request)
        if self.task is not None:
            self.emit(Queued(chat=self.chat_id, submit_id=request.submit_id))
            return
        self.begin(self._turns)

    def compact(self, instructions: str, *, go_on: bool = False) -> None:
        """Carry out `/compact` now if the chat is idle, else at the next request boundary (R-533)."""
        self._resumes = go_on
        if self.turn is not None and self.turn.asking.take(instructions):
            return
        if self.task is not None:
            self.compaction_request = instructions
            self.notice(Severity.INFO, "/compact is queued: it runs before the next request, or when the reply ends.")
            return
        self.begin(partial(self._compact_now, instructions))

    async def detach(self, items: tuple[str, ...]) -> None:
        """Remove attachments from the next request; the log keeps them (R-003).

        Raises:
            InputError: a turn is running, which has already sent them.
        """
        try:
            await self.context.detach(items)
        finally:
            # Show the block again even after a refusal, because the attachments whose lines the user deleted are still
            # sent.
            self.context.show()
            self.show_meter()

    async def use_model(self, adapter_name: str, model: str) -> None:
        """Use another adapter and model from the next request on (lesson 4).

        Raises:
            ConfigError: the adapter does not exist, or it cannot be used; nothing is changed.
        """
        from codecompanion.session.chat.use_model import use_model  # not needed at startup

        await use_model(self, adapter_name, model)

    async def use_reported_model(self) -> None:
        """Use the model that the server has reported, in a new chat whose adapter entry names none."""
        runs = self.control.window.model_that_runs
        if runs and not self.model and not self.log.view.cycle:
            await self.use_model(self.adapter_name, runs)

    def refresh_limits(self) -> None:
        """Apply the limits that the endpoint has reported for its models since the chat was opened."""
        if self.control.window.refresh():
            self.show_meter()

    def use_overrides(self, overrides: Mapping[str, Any], wrong: Sequence[str] = ()) -> None:
        """Apply the triggers computed by configured functions (R-502); `wrong`: triggers whose functions failed."""
        try:
            self.control.use_overrides(overrides, wrong)
        finally:
            self.show_meter()

    async def clear(self) -> None:
        """Stop any task and empty the view except rules and memory (`/clear`); the log keeps everything."""
        await self.stop()
        await self.log.write_late()
        gone = tuple(message.id for message in self.log.view.messages if message.tag not in STARTING_TAGS)
        if gone:
            await self.context.remove("cleared", gone)
        self.control.watch.reset()
        from codecompanion.session.chat.redraw import redraw  # not needed at startup

        await redraw(self)
        self.context.show()
        self.show_meter()

    async def regenerate(self, snapshot: Snapshot) -> None:
        """Answer the user's last message again; the old answer leaves the view, never the log, and can be restored.

        After a compaction, the summary is answered; later attachments stay.

        Raises:
            InputError: a turn is running, or there is no user message.
        """
        self.must_be_idle("Wait until the reply is complete, or stop it with q.")
        await self.log.write_late()
        messages = self.log.view.messages
        last = next((i for i in range(len(messages) - 1, -1, -1) if _asks(messages[i])), None)
        if last is None:
            raise InputError("Nothing to regenerate yet: send a message first.")
        refusal = await self.spending.refusal(self.adapter_name, self.control.policy.summary_adapter.name)
        if refusal:
            raise InputError(refusal)
        self.must_be_idle("Wait until the reply is complete, or stop it with q.")
        self.snapshot = snapshot
        old = tuple(m.id for m in messages[last + 1 :] if is_of_answer(m))
        turn_id = self.services.new_token()
        if old:
            await self.context.remove("regenerated", old, ChangeReport(turn=turn_id))
            self.context.show_marks()
        self.begin(partial(self._turns, answer_again=turn_id))

    def continue_reply(self, snapshot: Snapshot) -> None:
        """Let the model continue a reply that was cut or reached the output limit, or answer an unanswered message.

        Raises:
            InputError: a turn is running, or there is nothing to continue.
        """
        self.must_be_idle("Wait until the reply is complete, or stop it with q.")
        if _newest(self.log.view.messages) is None:
            raise InputError("Nothing to continue yet: send a message first.")
        self.snapshot = snapshot
        self.begin(self._continue_reply)

    async def _continue_reply(self, *, compacted: bool = False) -> None:
        if not await self._may_spend():
            return
        cycle = max(1, self.log.view.cycle)
        await self._ask_behind_reply(cycle, compacted=compacted)
        await self._run_turn(cycle)

    async def _ask_behind_reply(self, cycle: int, turn_id: str = "", *, compacted: bool = False) -> None:
        """Ask the model to continue if the chat ends with its own reply.

        Otherwise the last message is answered as it is.

        After a compaction of a complete reply, the request mentions the compaction, because nothing was cut (R-528).
        """
        newest = _newest(self.log.view.messages)
        if newest is not None and newest.role == "assistant":
            await self.ask_to_continue(turn_id, cycle, "go_on_compacted" if compacted and not newest.cut else "go_on")

    async def stop(self) -> None:
        """Cancel the running task and wait until the history is valid again."""
        task = self.task
        self.cancel()
        if task is not None and task is not asyncio.current_task():
            await asyncio.wait({task})

    async def close(self, *, host_ends: bool = False) -> None:
        """Stop, and save the chat's state (R-466); `host_ends`: the task ends because the host exits."""
        self.host_ends = host_ends
        self.fetches.stop()
        self.stop_sending_older()
        await self.stop()
        self._stop_counting()
        if self._counting is not None:
            await asyncio.wait([self._counting])
        await self.log.write_late()
        await self.effects.close()

    def emit(self, event: Event) -> None:
        """Send an event to the editor, followed by the edit event it results in for an edit in place, if any."""
        super().emit(event)
        told = self._edit.take(event) if self._edit is not None else None
        if told is not None:
            super().emit(told)

    def show_meter(self) -> None:
        """Show the size of the next request; if it is only an estimate, count the request while the chat is idle."""
        super().show_meter()
        self._count_idle()

    def begin(self, work: Callable[[], Coroutine[Any, Any, None]]) -> None:
        """Start a task that changes the history, and stop counting the next request."""
        self._stop_counting()
        super().begin(work)

    # ---- inside

    def _count_idle(self) -> None:
        """Schedule a count of the next request, which is cancelled if a task begins first."""
        self._stop_counting()
        if self.task is None and self.control.fitting.wants_idle_count:
            self._counting = asyncio.get_running_loop().create_task(self._count())

    def _stop_counting(self) -> None:
        if self._counting is not None and self._counting is not asyncio.current_task():
            self._counting.cancel()

    async def _count(self) -> None:
        try:
            await asyncio.sleep(IDLE_S)
            if await self.control.fitting.count_idle():
                self.keep_calibration()
                self.show_meter()
        except Exception as error:
            self.services.report_bug(error)  # only logged, because the user did not request the count

    def _finished(self) -> None:
        """Process the requests that arrived while the task was running."""
        if self._edit is not None:
            edit, self._edit = self._edit, None
            super().emit(edit.end())
        if self.queue:
            self.begin(self._turns)
        elif self.compaction_request is not None:
            self.compact(self.take_compaction_request() or "", go_on=self._resumes)
        else:
            self._count_idle()

    async def _turns(self, *, answer_again: str = "") -> None:
        """Run turns until the queue is empty; `answer_again`: the id of a first turn that regenerates an answer."""
        try:
            await self._run_turns(answer_again)
        except Exception:
            # A message left in the queue would be retried and fail again in an endless loop.
            self.queue.give_back("Not sent. Your message is back in the input.")
            raise

    async def _run_turns(self, answer_again: str) -> None:
        while (self.queue or answer_again) and await self._may_spend():
            await self._know_server()
            refused = await self.queue.refused()
            try:
                if self.queue.are_all(refused) and not answer_again:
                    # Must precede returning the message, so that two equal sentences in a row are shown once.
                    refusal = [*refused.values()][-1]
                    await self.control.shaper.give_up(refusal.why, refusal.tokens)
            finally:
                self.queue.give_back_refused(refused)
            if refused and not self.queue and not answer_again:
                self.enter(State.IDLE)
                self.emit(TurnFinished(chat=self.chat_id, reason="limit", error=[*refused.values()][-1].why))
                return
            turn_id, answer_again = answer_again, ""
            cycle = max(1, self.log.view.cycle) if turn_id else self.log.view.cycle + 1
            self.enter(State.PREPARING)
            if turn_id:
                await self._ask_behind_reply(cycle, turn_id)
            if not await self._run_turn(cycle, turn_id):
                return

    async def _know_server(self) -> None:
        """Update the state of the model's server; if no model is configured, use the model that the server runs."""
        await self.control.window.know_server()
        if runs := self.control.window.model_that_runs:
            await self.use_model(self.adapter_name, runs)

    async def _run_turn(self, cycle: int, turn_id: str = "") -> bool:
        """Run one turn; return whether it ended normally."""
        self.control.edits_in_place = self.queue.edits_in_place
        self.turn = Turn(self, turn_id or self.services.new_token(), cycle)
        reason = await self.turn.run()
        self.effects.turn_ended()
        for warning in await self.spending.warnings():
            self.notice(Severity.WARN, warning)
        return reason == "done"

    async def _may_spend(self) -> bool:
        """Return whether the budgets allow another turn (R-358).

        If not, tell the user and return the message to the input.
        """
        refusal = await self.spending.refusal(self.adapter_name, self.control.policy.summary_adapter.name)
        if refusal:
            self.enter(State.IDLE)
            # Two equal sentences in a row are shown once.
            self.queue.give_back(refusal)
            self.emit(TurnFinished(chat=self.chat_id, reason="limit", error=refusal))
        return not refusal

    async def _compact_now(self, instructions: str) -> None:
        """Compact the idle chat; the model continues only if configured or requested (R-528)."""
        await self.context.join("", max(1, self.log.view.cycle))
        waits = self._waits_for_compaction
        changed = await self.control.compact(instructions)
        self.show_meter()
        self.context.show()
        if not changed or self.queue:
            return
        if not self._resumes and self.control.policy.resume == "continue" and _is_answered(self.log.view.messages):
            # K6: only a pending request continues; if there is none, nothing is sent in its place.
            return
        setting = self.services.settings.chat.on_compact
        if self._resumes or setting == "submit" or (setting == "auto" and waits):
            # A provider's own summary is not a message that can be answered.
            await self._continue_reply(compacted=True)
        elif setting == "ask":
            self.notice(Severity.INFO, 'Send a message to continue (on_compact = "ask").')

    @property
    def _waits_for_compaction(self) -> bool:
        """Return whether a turn waits for a compaction, or the last question is unanswered."""
        if self.turn is not None and (self.turn.asking.waits or self.turn.was_stopped):
            return self.turn.asking.waits
        newest = _newest(self.log.view.messages)
        return newest is not None and is_typed_by_user(newest)


def _is_answered(messages: Sequence[Message]) -> bool:
    """Return whether the model has finished its answer."""
    last = messages[-1] if messages else None
    return last is None or (last.role == "assistant" and not last.tool_calls and not last.cut)


def _asks(message: Message) -> bool:
    """Return whether a reply would answer this message, because the user typed it or it is a summary."""
    return message.tag == SUMMARY_TAG or is_typed_by_user(message)


def _newest(messages: Sequence[Message]) -> Message | None:
    """Return the newest message that is not an attachment, or None if there is none."""
    return next((m for m in reversed(messages) if m.role != "user" or m.tag == GO_ON_TAG or _asks(m)), None)
