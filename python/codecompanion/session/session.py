"""One chat: its state, its queue, and what the user may ask of it. Runs on the engine's loop, never blocks it.

A submit while busy waits in the queue and is delivered exactly once, at the next request boundary (lesson 16). One task
at a time works on the history: a turn, or a manual compaction. What the user attaches meanwhile waits for a boundary
too, because between a call and its result nothing may stand.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Coroutine, Mapping, Sequence
from concurrent.futures import Future
from functools import partial
from pathlib import Path
from typing import Any

import msgspec

from codecompanion import prompts
from codecompanion.adapters.offline import OfflineAdapter
from codecompanion.counting.model_windows import ResolvedLimits
from codecompanion.errors import CodeCompanionError, InputError
from codecompanion.model.history import MessageAdded, ModelSet, is_of_answer
from codecompanion.model.messages import (
    GO_ON_TAG,
    RULES_TAG,
    SUMMARY_TAG,
    Message,
    ToolCall,
    ToolSpec,
    is_typed_by_user,
)
from codecompanion.session.accounts.accounting import RequestParts
from codecompanion.session.accounts.meter import ContextMeter
from codecompanion.session.accounts.spending import Spending
from codecompanion.session.attachments.context_block import ContextBlock
from codecompanion.session.files.file_log import FileLog
from codecompanion.session.files.reverting import Reverter
from codecompanion.session.history.chat_log import ChatLog
from codecompanion.session.history.entries import ASKED_TO_GO_ON
from codecompanion.session.history.redraw import redraw
from codecompanion.session.history.view_edits import ViewEdits
from codecompanion.session.services import Services
from codecompanion.session.state import State, step
from codecompanion.session.turn.answer import Answer
from codecompanion.session.turn.approval_desk import ApprovalDesk
from codecompanion.session.turn.grants import Grants
from codecompanion.session.turn.outbound import OutboundQueue
from codecompanion.session.turn.tool_round import Recorded, RoundServices, ToolRound
from codecompanion.session.turn.turn import Turn
from codecompanion.session.window.context_control import ContextControl
from codecompanion.tools.approval import Approvals
from codecompanion.tools.base import ToolContext
from codecompanion.wire.events import Event, ModelChanged, Notice, Queued, Severity, TurnFinished
from codecompanion.wire.events import State as StateEvent
from codecompanion.wire.requests import Snapshot, Submit

BUSY = "Wait until the reply is complete, or stop it with q, then change the context."


class Session:
    """One chat of this host."""

    def __init__(self, services: Services, chat_id: str, log: ChatLog, snapshot: Snapshot) -> None:
        self.services, self.chat_id, self.log = services, chat_id, log
        self.snapshot = snapshot
        self.state = self._compacting_in = State.IDLE
        self.control = ContextControl(services, chat_id, log, self._on_compacting)
        self.control.shaper.snapshot = lambda: self.snapshot
        self.context = ContextBlock(services, log, self.control, self._must_be_idle)
        tools = services.settings.tools
        approvals = Approvals(services.tools.settings, yolo=tools.yolo, guarded_files=tools.guarded_files)
        self.grants = Grants(self)
        self.desk = ApprovalDesk(
            chat_id, approvals, services.emit, self._on_waiting, self.cancel, on_granted=self.grants.keep
        )
        self.edits = ViewEdits(self)
        self.changes = Reverter(self)
        self.parts = RequestParts(self.control.meter.counter)
        self.spending = Spending(services, chat_id)
        self._one_change = asyncio.Lock()
        self._queue = OutboundQueue(services, log, self.control.meter, self.control.fitting.refuse)
        self.effects = self.control.effects
        self.effects.root, self.effects.queued = self._root, lambda: self._queue.texts
        self._task: asyncio.Task[None] | None = None
        self._compaction_request: str | None = None
        self._goes_on = False
        self._partial: Future[None] | None = None
        self.turn: Turn | None = None
        """The turn that runs, or ran last."""
        self.round: ToolRound | None = None
        """The tool round that runs, or ran last."""

    # ---- what the parts of a turn use

    @property
    def meter(self) -> ContextMeter:
        """Return the chat's counter."""
        return self.control.meter

    @property
    def limits(self) -> ResolvedLimits:
        """Return the window and reserve of the model in use."""
        return self.control.limits

    @property
    def specs(self) -> tuple[ToolSpec, ...]:
        """Return the tools offered to the model."""
        return self.control.specs

    def emit(self, event: Event) -> None:
        """Hand an event to the editor."""
        self.services.emit(event)

    def enter(self, state: State, label: str = "") -> None:
        """Go to another state and tell the editor."""
        self.state = step(self.state, state)
        self.emit(StateEvent(chat=self.chat_id, state=state.value, label=label))

    def show_meter(self) -> None:
        """Show how large the next request is."""
        self.emit(self.control.meter_event())
        self.context.show_changes()

    @property
    def has_queued(self) -> bool:
        """Return whether a message waits for the next request boundary."""
        return bool(self._queue)

    def take_compaction_request(self) -> str | None:
        """Return what `/compact` asked for while the chat was busy, once."""
        wanted, self._compaction_request = self._compaction_request, None
        return wanted

    def keep_calibration(self) -> None:
        """Let what was learned about this model's counts outlive the chat."""
        self.services.keep_calibration(self.adapter_name, self.model, self.meter.calibration)

    def save_partial(self, text: str) -> None:
        """Keep what has arrived of the reply, unless the last write is still on its way."""
        if self._partial is None or self._partial.done():
            self._partial = self.services.store.save_partial(self.chat_id, text)

    async def deliver_queued(self, turn_id: str, cycle: int) -> str:
        """Log what waits for a request boundary, then show it as sent (lesson 36); return why something was not."""
        await self.context.join(turn_id, cycle)
        refused = await self._queue.deliver(turn_id, cycle)
        self.show_meter()
        return refused

    async def coming(self, turn_id: str, cycle: int) -> tuple[Message, ...]:
        """Return the messages that wait for the next request boundary, as they will be; attachments join the view."""
        await self.context.join(turn_id, cycle)
        return await self._queue.coming(cycle)

    def show_queued(self) -> None:
        """Show the messages that wait as waiting."""
        self._queue.tell()

    def give_back_queued(self, why: str) -> None:
        """Return what waits or could not be stored as drafts: the turn that would have taken it ended early."""
        self._queue.give_back(why or "Not sent, because the turn ended early; your message is back in the input.")

    def tool_round(self, calls: tuple[ToolCall, ...], cycle: int, turn_id: str) -> ToolRound:
        """Return the round that runs these calls."""
        services = self.services
        round_services = RoundServices(
            chat_id=self.chat_id,
            tools=services.tools.only({spec.name for spec in self.control.specs}),
            desk=self.desk,
            context=self._tool_context,
            emit=self.emit,
            write=self.log.write,
            store_text=self._store_text,
            counted=self._counted,
            clock=services.clock,
            new_id=services.new_token,
            limit_chars=services.settings.tools.max_result_chars,
            recorded=self._recorded(),
            on_running=lambda title: self.enter(State.RUNNING_TOOLS, f"running {title}"),
            recorder=self._recorder,
            hide=services.known_secrets.hide,
        )
        caller = next((m.id for m in reversed(self.log.view.messages) if m.tool_calls), "")
        self.round = ToolRound(round_services, calls, cycle, turn_id, caller)
        return self.round

    # ---- what the user may ask

    def submit(self, request: Submit) -> None:
        """Take a message: sent at once when idle, else queued and shown (lesson 16). Returns at once.

        Raises:
            InputError: the text is empty.
        """
        if not request.text.strip():
            raise InputError("Nothing to send: the input is empty.")
        self.snapshot = request.snapshot
        self._queue.add(request)
        if self._task is not None:
            self.emit(Queued(chat=self.chat_id, submit_id=request.submit_id))
            return
        self._start(self._turns)

    def cancel(self) -> None:
        """Stop whatever runs; queued messages go back as drafts. Immediate and final (lesson 41)."""
        self._compaction_request = None
        # Idle with a task: the turn is over and about to say so.
        running = None if self.state in (State.CANCELLING, State.IDLE) else self._task
        if running is not None:
            self.enter(State.CANCELLING, "stopping")
        self._queue.give_back("Not sent; your message is back in the input.")  # after the state: it is no error
        if running is not None:
            running.cancel()

    def compact(self, instructions: str, *, go_on: bool = False) -> None:
        """`/compact`: now when idle, at the next request boundary when busy (R-533)."""
        self._goes_on = go_on
        if self.turn is not None and self.turn.asking.take(instructions):
            return
        if self._task is not None:
            self._compaction_request = instructions
            self._notice(Severity.INFO, "/compact is queued: it runs before the next request, or when the reply ends.")
            return
        self._start(partial(self._compact_now, instructions))

    async def attach(self, message: Message) -> None:
        """Attach a message (file, buffer, image, rules) to the next request; once per kind and path."""
        self.context.add(message)
        if self._task is None:
            # What is attached to an idle chat belongs to the cycle that its next message opens.
            await self.context.join("", self.log.view.cycle + 1)
        self.context.show()
        self.show_meter()

    async def detach(self, items: tuple[str, ...]) -> None:
        """Take attachments out of the next request; the log keeps them (R-003).

        Raises:
            InputError: a turn is running, which has already sent them.
        """
        try:
            await self.context.detach(items)
        finally:
            # Also when it was refused: the lines the user deleted stand for what is still sent.
            self.context.show()
            self.show_meter()

    async def use_model(self, adapter_name: str, model: str) -> None:
        """Talk to another adapter and model from the next request on (lesson 4).

        Raises:
            ConfigError: there is no such adapter; nothing is changed.
        """
        self.control.use_model(adapter_name, model)
        self.control.reset_guard()
        await self.log.write(ModelSet(adapter=self.adapter_name, model=self.model))
        if self._task is None:
            # While a turn runs, its next preparation does this.
            await self.control.native.drop_foreign_blocks()
            await self._resume_meter()
        self.emit(
            ModelChanged(
                chat=self.chat_id,
                adapter=self.adapter_name,
                model=self.model,
                window=self.limits.context_window,
            )
        )
        self.show_meter()

    async def _resume_meter(self) -> None:
        """Count with what this model has reported in this chat before, if it has."""
        model, events = (self.adapter_name, self.model), await self.log.events()
        if self._task is None and model == (self.adapter_name, self.model):
            self.meter.resume(events, *model)

    def refresh_limits(self) -> None:
        """Take in what the endpoint has told about its models since the chat was opened."""
        if self.control.window.refresh():
            self.show_meter()

    def use_overrides(self, overrides: Mapping[str, Any]) -> None:
        """Take the triggers that are functions in the configuration (R-502)."""
        self.control.use_overrides(overrides)
        self.show_meter()

    async def clear(self) -> None:
        """Empty the view but for rules (`/clear`); the log keeps everything. What runs is stopped first."""
        await self.stop()
        await self.log.write_late()
        gone = tuple(message.id for message in self.log.view.messages if message.tag != RULES_TAG)
        if gone:
            await self.context.remove("cleared", gone)
        self.control.reset_guard()
        await redraw(self)
        self.context.show()
        self.show_meter()

    async def regenerate(self, snapshot: Snapshot) -> None:
        """Answer the user's last message again; the old answer leaves the view, never the log, and can be had back.

        After a compaction its summary is what is answered; what was attached since stays.

        Raises:
            InputError: a turn is running, or there is no user message.
        """
        self._must_be_idle("Wait until the reply is complete, or stop it with q.")
        await self.log.write_late()
        messages = self.log.view.messages
        last = next((i for i in range(len(messages) - 1, -1, -1) if _asks(messages[i])), None)
        if last is None:
            raise InputError("Nothing to regenerate yet: send a message first.")
        refusal = await self.spending.refusal()
        if refusal:
            raise InputError(refusal)
        self._must_be_idle("Wait until the reply is complete, or stop it with q.")
        self.snapshot = snapshot
        old = tuple(m.id for m in messages[last + 1 :] if is_of_answer(m))
        turn_id = self.services.new_token()
        if old:
            await self.context.remove("regenerated", old, turn=turn_id)
            self.context.show_marks()
        self._start(partial(self._turns, answer_again=turn_id))

    def go_on(self, snapshot: Snapshot) -> None:
        """Let the model go on: with a reply that was cut or ended at the output limit, or where it never answered.

        Raises:
            InputError: a turn is running, or there is nothing to go on with.
        """
        self._must_be_idle("Wait until the reply is complete, or stop it with q.")
        if _newest(self.log.view.messages) is None:
            raise InputError("Nothing to continue yet: send a message first.")
        self.snapshot = snapshot
        self._start(self._go_on)

    async def _go_on(self, *, compacted: bool = False) -> None:
        if not await self._may_spend():
            return
        cycle = max(1, self.log.view.cycle)
        await self._ask_behind_reply(cycle, compacted=compacted)
        await self._run_turn(cycle)

    async def _ask_behind_reply(self, cycle: int, turn_id: str = "", *, compacted: bool = False) -> None:
        """Ask the model to go on when the chat ends in words of its own; else it has something to answer.

        After a compaction of a complete reply it is told of the compaction: nothing was cut (R-528).
        """
        newest = _newest(self.log.view.messages)
        if newest is not None and newest.role == "assistant":
            await self.ask_to_go_on(turn_id, cycle, "go_on_compacted" if compacted and not newest.cut else "go_on")

    async def ask_to_go_on(self, turn_id: str, cycle: int, prompt: str = "go_on") -> str:
        """Log the message of ours that lets a model go on where its reply ended; return its id. It opens no cycle."""
        message = Message(
            id=self.services.new_token(),
            role="user",
            content=prompts.load(prompt),
            tag=GO_ON_TAG,
            cycle=cycle,
            turn_id=turn_id,
            ts=self.services.clock(),
        )
        await self.log.write(MessageAdded(message=self._counted(message)))
        self._notice(Severity.INFO, ASKED_TO_GO_ON)
        return message.id

    async def stop(self) -> None:
        """Cancel what runs and wait until the history is valid again."""
        task = self._task
        self.cancel()
        if task is not None and task is not asyncio.current_task():
            await asyncio.wait({task})

    async def close(self) -> None:
        """Stop, and keep what the chat has come to (R-466)."""
        await self.stop()
        await self.log.write_late()
        await self.effects.close()

    # ---- inside

    @property
    def adapter_name(self) -> str:
        """Return the adapter in use."""
        return self.control.adapter_name

    @property
    def model(self) -> str:
        """Return the model in use."""
        return self.control.model

    def _start(self, work: Callable[[], Coroutine[Any, Any, None]]) -> None:
        """Begin to work on the history; from here on the chat is busy, also before the task has had its first step."""
        self.enter(State.PREPARING)
        self._task = asyncio.get_running_loop().create_task(self._guarded(work), name=f"chat {self.chat_id}")
        # Not a `finally` inside: a task that is cancelled before its first step never gets there.
        self._task.add_done_callback(self._finished)

    async def occupy(self, change: Callable[[], Awaitable[str]]) -> str:
        """Carry out a change of the view while nothing else works on the history; return what it returns.

        Raises:
            InputError: something does, or the change was stopped before it began.
        """
        async with self._one_change:
            self._must_be_idle(BUSY)
            answer = Answer(change)
            self._start(answer.run)
            return await answer.behind(self._task)

    def _finished(self, task: asyncio.Task[None]) -> None:
        """Be idle again, or go on with what came meanwhile."""
        self._task = None
        if self.state is not State.IDLE:
            self.enter(State.IDLE)
        if task.cancelled():
            self.emit(TurnFinished(chat=self.chat_id, reason="stopped"))
        if self._queue:
            self._start(self._turns)
        elif self._compaction_request is not None:
            self.compact(self.take_compaction_request() or "", go_on=self._goes_on)

    async def _guarded(self, work: Callable[[], Coroutine[Any, Any, None]]) -> None:
        try:
            await self.log.write_late()
            await work()
        except asyncio.CancelledError:
            # What was on its way to the store is in the view before the chat is idle.
            await self.log.settled()
        except CodeCompanionError as error:
            self._notice(Severity.ERROR, str(error))
        except Exception as error:
            self._notice(Severity.ERROR, self.services.report_bug(error))

    async def _turns(self, *, answer_again: str = "") -> None:
        """Run turns until nothing is queued; first one of this id that answers what was answered before."""
        try:
            await self._run_turns(answer_again)
        except Exception:
            # What stays in the queue would be tried again at once, and fail again, without end.
            self._queue.give_back("Not sent; your message is back in the input.")
            raise

    async def _run_turns(self, answer_again: str) -> None:
        while (self._queue or answer_again) and await self._may_spend():
            refused = await self._queue.refused()
            try:
                if self._queue.are_all(refused) and not answer_again:
                    # Before it is given back: then the same sentence comes twice in a row, and is shown once.
                    await self.control.tell_refused([*refused.values()][-1])
            finally:
                self._queue.give_back_refused(refused)
            if refused and not self._queue and not answer_again:
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

    async def _run_turn(self, cycle: int, turn_id: str = "") -> bool:
        """Run one turn; return whether it ended well."""
        self.turn = Turn(self, turn_id or self.services.new_token(), cycle)
        reason = await self.turn.run()
        self.effects.turn_ended()
        for warning in await self.spending.warnings():
            self._notice(Severity.WARN, warning)
        return reason == "done"

    async def _may_spend(self) -> bool:
        """Return whether the budgets allow another turn (R-358); if not, the user is told and gets the message back."""
        refusal = await self.spending.refusal()
        if refusal:
            self.enter(State.IDLE)
            # The same sentence twice is shown once.
            self._queue.give_back(refusal)
            self.emit(TurnFinished(chat=self.chat_id, reason="limit", error=refusal))
        return not refusal

    async def _compact_now(self, instructions: str) -> None:
        """Compact the idle chat; the model goes on only where the user wants that (R-528)."""
        await self.context.join("", max(1, self.log.view.cycle))
        waits = self._waits_for_compaction
        changed = await self.control.compact(instructions)
        self.show_meter()
        self.context.show()
        if not changed or self._queue:
            return
        if not self._goes_on and self.control.policy.resume == "continue" and _is_answered(self.log.view.messages):
            # K6: a pending request goes on; where there is none, nothing is asked in its place.
            return
        wish = self.services.settings.chat.on_compact
        if self._goes_on or wish == "submit" or (wish == "auto" and waits):
            # A provider's own summary is not a message that can be answered.
            await self._go_on(compacted=True)
        elif wish == "ask":
            self._notice(Severity.INFO, "Compacted. Send a message to continue.")

    @property
    def _waits_for_compaction(self) -> bool:
        """Return whether a compaction is what a turn of this chat waits for, or a question has had no answer yet."""
        if self.turn is not None and (self.turn.asking.waits or self.turn.was_stopped):
            return self.turn.asking.waits
        newest = _newest(self.log.view.messages)
        return newest is not None and is_typed_by_user(newest)

    async def reread_rules(self) -> None:
        """Take in rule files that changed since they were read (R-549)."""
        for problem in await self.context.reread_rules():
            self._notice(Severity.WARN, problem)

    def _recorded(self) -> Recorded | None:
        """Return the tool results of the recording that plays the model, None for a real model."""
        adapter = self.control.adapter()
        if not isinstance(adapter, OfflineAdapter) or adapter.playback is None:
            return None
        playback, reply = adapter.playback, adapter.played(self.chat_id) - 1
        return lambda call: playback.result_of(reply, call)

    def _root(self) -> Path:
        return self.services.root(self.snapshot)

    def _tool_context(self, name: str) -> ToolContext:
        return msgspec.structs.replace(self.services.tool_context(self.snapshot, name), recall=self.edits.removed)

    def _recorder(self, turn_id: str, call_id: str) -> FileLog:
        services = self.services
        return FileLog(self.log.write, services.store.put_blob, services.new_token, turn_id, call_id)

    async def _store_text(self, text: str) -> str:
        return await asyncio.to_thread(self.services.store.put_blob, text.encode("utf-8", "surrogatepass"))

    def _counted(self, message: Message) -> Message:
        return self.meter.counted(message)

    def _on_compacting(self, running: bool) -> None:
        if self.state is State.CANCELLING:
            return
        if running:
            self._compacting_in = self.state
            self.enter(State.COMPACTING, "compacting the chat")
        elif self.state is State.COMPACTING and self._compacting_in is State.STREAMING:
            self.enter(State.STREAMING, "streaming")
        elif self.state is State.COMPACTING:
            self.enter(State.PREPARING)

    def _on_waiting(self, waiting: bool, title: str) -> None:
        if waiting:
            self.enter(State.AWAITING_APPROVAL, f"waiting for your approval: {title}")
        else:
            self.enter(State.RUNNING_TOOLS)

    def _must_be_idle(self, why: str) -> None:
        if self._task is not None:
            raise InputError(why)

    def _notice(self, level: Severity, text: str) -> None:
        self.emit(Notice(chat=self.chat_id, level=level, text=text))


def _is_answered(messages: Sequence[Message]) -> bool:
    """Return whether the model has said all it wanted."""
    last = messages[-1] if messages else None
    return last is None or (last.role == "assistant" and not last.tool_calls and not last.cut)


def _asks(message: Message) -> bool:
    """Return whether the message is what a reply answers: typed by the user, or the summary of what was."""
    return message.tag == SUMMARY_TAG or is_typed_by_user(message)


def _newest(messages: Sequence[Message]) -> Message | None:
    """Return the newest message that is no attachment, None when there is none."""
    return next((m for m in reversed(messages) if m.role != "user" or m.tag == GO_ON_TAG or _asks(m)), None)
