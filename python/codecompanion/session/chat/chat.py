"""One chat: its state and its parts. `Session`, which extends this class, decides when each action happens.

Only one task at a time changes the history: a turn, a compaction, or a change of the view. Attachments added in the
meantime wait for a request boundary, because nothing may come between a tool call and its result.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Coroutine
from concurrent.futures import Future
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec

from codecompanion import prompts
from codecompanion.errors import Busy, CodeCompanionError
from codecompanion.model.history import MessageAdded
from codecompanion.model.messages import GO_ON_TAG, Message, ToolCall
from codecompanion.session.accounts.accounting import RequestParts
from codecompanion.session.accounts.meter import ContextMeter
from codecompanion.session.accounts.request_contents import RequestContents
from codecompanion.session.attachments.chosen_tools import Choice, chosen_by
from codecompanion.session.attachments.context_block import ContextBlock
from codecompanion.session.chat.buffer_entries import ASKED_TO_GO_ON
from codecompanion.session.chat.outbound import OutboundQueue
from codecompanion.session.chat.streamed_reply import ReplySoFar
from codecompanion.session.history.chat_log import ChatLog
from codecompanion.session.message_context.before_message import BeforeMessage
from codecompanion.session.message_context.gathering import CodeGathering
from codecompanion.session.message_context.live_updates import LiveUpdates
from codecompanion.session.message_context.resolve_mentions import MentionedContext
from codecompanion.session.provenance.memory_sources import MemorySources
from codecompanion.session.provenance.narrowed_grants import Narrowing
from codecompanion.session.services import DEFAULT_TOOL_TIMEOUT_S, Services
from codecompanion.session.state import State, step
from codecompanion.session.tool_calls.approval_desk import ApprovalDesk
from codecompanion.session.tool_calls.grants import Grants
from codecompanion.session.tool_calls.tool_round import Recorded, RoundParts, ToolRound
from codecompanion.session.window.context_control import ContextControl
from codecompanion.tools.approval import Approvals
from codecompanion.tools.tool import ANY_HOST, ToolContext
from codecompanion.tools.tool_registry import ToolRegistry
from codecompanion.wire.events import Event, Notice, PackagesMissing, Severity, TurnFinished
from codecompanion.wire.events import State as StateEvent
from codecompanion.wire.requests import Snapshot

if TYPE_CHECKING:
    from codecompanion.session.chat.removed_messages import Removed
    from codecompanion.settings import Settings

BUSY = "Wait until the reply is complete, or stop it with q, then change the context."


class Chat:
    """The state of one chat. `on_finished` is called when the task that changed the history has ended."""

    def __init__(self, services: Services, log: ChatLog, snapshot: Snapshot, on_finished: Callable[[], None]) -> None:
        self.services, self.chat_id, self.log = services, log.chat_id, log
        self.snapshot, self._on_finished = snapshot, on_finished
        self._root: tuple[Snapshot, Settings, Path] | None = None
        self.state = self._compacting_in = State.IDLE
        self.control = ContextControl(services, log, self._on_compacting)
        self.control.shaper.snapshot = lambda: self.snapshot
        self.context = ContextBlock(services, log, self.control, self.must_be_idle)
        tools = services.settings.tools
        self.control.tools.root = self.root
        self.control.tools.sends_code = lambda: self.snapshot.send_code
        approvals = Approvals(
            self.control.tools.offered().settings,
            yolo=tools.yolo,
            guarded_files=tools.guarded_files,
            hosts=frozenset((ANY_HOST,)) if services.settings.sandbox.network else frozenset(),
        )
        self.desk = ApprovalDesk(
            self.chat_id, approvals, services.emit, self._on_waiting, self.cancel, lambda given: self.grants.keep(given)
        )
        self.narrowing = Narrowing(log, self.root, lambda folder: services.trust.is_trusted(Path(folder).expanduser()))
        """Tracks which sources in the view narrow grants."""
        self.grants = Grants(services, self.chat_id, self.desk, self.root)
        self.parts = RequestParts(self.control.meter.counter)
        self.contents = RequestContents(services.store.put_blob)
        self.gathering = CodeGathering(services, self.control, self._on_gathering)
        self.mentioned = MentionedContext(services, self.control, self._on_gathering)
        updates = LiveUpdates(services, self.control)
        before = BeforeMessage(services, self.control, updates, self.mentioned, self.gathering)
        self.queue = OutboundQueue(services, log, self.control.meter, self.control.fitting.refuse, before)
        self.queue.know_tools, self.queue.choice_in = self._know_tools, self._choice_in
        self.servers_known: asyncio.Task[None] | None = None
        """Looks up the chat's MCP servers; a message may be sent before this is done."""
        self.trust_applied, self.trust_told = -1, ""
        """The version of the trust decisions applied (`Trust.version`), and the last line about waiting files."""
        self.effects = self.control.effects
        self.effects.root, self.effects.queued = self.root, lambda: self.queue.texts
        self.effects.outside = self.narrowing.of_messages
        self.task: asyncio.Task[None] | None = None
        """The task that is currently changing the history."""
        self.compaction_request: str | None = None
        """The instructions of a `/compact` requested while the chat was busy."""
        self.host_ends = False
        """Whether the running task ends because the host exits, not because the user stopped it."""
        self.older: asyncio.Task[None] | None = None
        """Sends the older blocks of a stored chat that was just opened."""
        self._one_change = asyncio.Lock()
        self._partial: Future[None] | None = None
        self.arrived: tuple[ReplySoFar, str] | None = None
        """The reply being received, and the id under which it is logged, or "" before it is logged."""
        self.round: ToolRound | None = None
        """The running tool round, or the last one."""

    # ---- the model of the chat

    @cached_property
    def removed(self) -> Removed:
        """Return access to the messages removed from the view, for the user and the model."""
        from codecompanion.session.chat.removed_messages import Removed  # not needed at startup

        return Removed(self.services.store, self.log, self.root)

    @property
    def meter(self) -> ContextMeter:
        """Return the chat's context meter."""
        return self.control.meter

    @property
    def adapter_name(self) -> str:
        """Return the name of the current adapter."""
        return self.control.adapter_name

    @property
    def model(self) -> str:
        """Return the name of the current model."""
        return self.control.model

    def keep_calibration(self) -> None:
        """Store the calibration learned for this model's token counts, for later chats."""
        self.services.keep_calibration(self.adapter_name, self.model, self.meter.calibration)

    # ---- display

    def emit(self, event: Event) -> None:
        """Send an event to the editor."""
        self.services.emit(event)

    def send_older(self, tell: Callable[[], Coroutine[Any, Any, None]]) -> None:
        """Send the older blocks of the chat in the background."""

        async def guarded() -> None:
            try:
                await tell()
            except CodeCompanionError as error:
                self.notice(Severity.ERROR, str(error))
            except Exception as error:
                self.notice(Severity.ERROR, self.services.report_bug(error))

        self.older = asyncio.get_running_loop().create_task(guarded())

    def stop_sending_older(self) -> None:
        """Stop sending older blocks, because the whole chat is sent again or no longer shown."""
        if self.older is not None and self.older is not asyncio.current_task():
            self.older.cancel()

    def notice(self, level: Severity, text: str) -> None:
        """Show a one-sentence notice to the user."""
        self.emit(Notice(chat=self.chat_id, level=level, text=text))

    def enter(self, state: State, label: str = "") -> None:
        """Enter another state and notify the editor."""
        self.state = step(self.state, state)
        self.emit(StateEvent(chat=self.chat_id, state=state.value, label=label))

    def show_meter(self) -> None:
        """Show the size of the next request, and the context block if the view has changed."""
        self.emit(self.control.meter_event())
        self.context.show_changes()

    def save_partial(self, text: str) -> None:
        """Save the reply received so far, unless the last write is still running."""
        if self._partial is None or self._partial.done():
            self._partial = self.services.store.save_partial(self.chat_id, text)

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

    def _on_gathering(self, label: str) -> None:
        if self.task is not None and self.state is not State.CANCELLING:
            self.enter(State.PREPARING, label)

    def _on_waiting(self, waiting: bool, title: str) -> None:
        if waiting:
            self.enter(State.AWAITING_APPROVAL, f"waiting for your approval: {title}")
        elif self.state is State.AWAITING_APPROVAL:
            self.enter(State.RUNNING_TOOLS)

    # ---- one task at a time changes the history

    def begin(self, work: Callable[[], Coroutine[Any, Any, None]]) -> None:
        """Start a task that changes the history; the chat is busy from here on, even before the task's first step."""
        self.enter(State.PREPARING)
        self.task = asyncio.get_running_loop().create_task(self._guarded(work), name=f"chat {self.chat_id}")
        # Not a `finally` in the task, because a task cancelled before its first step never reaches it.
        self.task.add_done_callback(self._ended)

    async def _guarded(self, work: Callable[[], Coroutine[Any, Any, None]]) -> None:
        try:
            await self.log.write_late()
            await work()
        except asyncio.CancelledError:
            # Wait until writes in progress have reached the view, before the chat becomes idle.
            await self.log.settled()
        except CodeCompanionError as error:
            self.notice(Severity.ERROR, str(error))
        except Exception as error:
            self.notice(Severity.ERROR, self.services.report_bug(error))

    def _ended(self, task: asyncio.Task[None]) -> None:
        """Become idle again, and notify the owner, which decides what comes next."""
        self.task = None
        if self.state is not State.IDLE:
            self.enter(State.IDLE)
        if task.cancelled():
            self.emit(TurnFinished(chat=self.chat_id, reason="stopped"))
        self._on_finished()

    async def occupy(self, change: Callable[[], Awaitable[str]]) -> str:
        """Run a change of the view as the only task that changes the history; return its result.

        Raises:
            InputError: another task is running, or the change was stopped before it began.
        """
        async with self._one_change:
            self.must_be_idle(BUSY)
            from codecompanion.session.chat.answer import Answer  # not needed at startup

            answer = Answer(change)
            self.begin(answer.run)
            return await answer.after(self.task)

    def must_be_idle(self, why: str) -> None:
        """Raise an error with the message `why` while a task is changing the history.

        Raises:
            Busy: a task is running.
        """
        if self.task is not None:
            raise Busy(why)

    def cancel(self) -> None:
        """Stop the running task, if any, and return queued messages as drafts, immediately (lesson 41)."""
        self.compaction_request = None
        # If the state is idle although a task runs, the turn is over and about to report it.
        running = None if self.state in (State.CANCELLING, State.IDLE) else self.task
        if running is not None:
            self.enter(State.CANCELLING, "stopping")
        self.queue.give_back("Not sent. Your message is back in the input.")  # after the state change: not an error
        if running is not None:
            running.cancel()

    # ---- work that waits for a request boundary

    def take_compaction_request(self) -> str | None:
        """Return, only once, the instructions of a `/compact` requested while the chat was busy."""
        wanted, self.compaction_request = self.compaction_request, None
        return wanted

    async def deliver_queued(self, turn_id: str, cycle: int) -> str:
        """Log and show the messages waiting for this boundary (lesson 36); return why one was refused, or ""."""
        await self.context.join(turn_id, cycle)
        refused = await self.queue.deliver(turn_id, cycle)
        self.show_meter()
        return refused

    async def coming(self, turn_id: str, cycle: int) -> tuple[Message, ...]:
        """Return the messages waiting for the boundary, as they will be sent; waiting attachments join the view."""
        await self.context.join(turn_id, cycle)
        return await self.queue.coming(cycle)

    async def attach(self, *messages: Message) -> None:
        """Attach messages (file, buffer, image, rules) to the next request.

        Each replaces an older one of the same kind and path.
        """
        if not messages:
            return
        self.context.add(*messages)
        if self.task is None:
            # An attachment to an idle chat belongs to the cycle that its next message starts.
            await self.context.join("", self.log.view.cycle + 1)
        self.context.show()
        self.show_meter()
        from codecompanion.session.window.too_large import too_large_alone  # not needed at startup

        for message in messages:
            if why := too_large_alone(self.control, message, self.control.fitting.room):
                self.notice(Severity.WARN, why)

    async def reread_rules(self) -> None:
        """Read changed rule files again (R-549), and remove those whose trust was revoked."""
        for problem in await self.context.reread_rules(self.root()):
            self.notice(Severity.WARN, problem)

    async def know_servers(self) -> None:
        """Wait until the MCP servers of this chat's folder are known."""
        if self.servers_known is not None:
            await asyncio.wait([self.servers_known])
            self.servers_known = None

    async def _know_tools(self, text: str) -> None:
        """Find the servers whose tools a message may name, because the user may have just approved them."""
        if "@{" in text:
            await self.know_servers()
            if self.services.mcp is not None:
                await self.services.mcp.look(self)

    def _choice_in(self, text: str) -> Choice:
        """Return the tools that a message chooses."""
        if "@{" not in text or not self.services.settings.tools.enabled:
            return Choice()
        choice = chosen_by(text, self.control, self.services.new_token())
        if choice.lacks:
            self.services.emit(PackagesMissing(extra=choice.lacks))
        return choice

    # ---- additions to the history

    async def ask_to_continue(self, turn_id: str, cycle: int, prompt: str = "go_on") -> str:
        """Log a message that asks the model to continue its reply; return its id. It does not start a cycle."""
        message = Message(
            id=self.services.new_token(),
            role="user",
            content=prompts.load(prompt),
            tag=GO_ON_TAG,
            cycle=cycle,
            turn_id=turn_id,
            ts=self.services.clock(),
        )
        await self.log.write(MessageAdded(message=self.meter.counted(message)))
        self.notice(Severity.INFO, ASKED_TO_GO_ON)
        return message.id

    def tool_round(
        self, calls: tuple[ToolCall, ...], cycle: int, turn_id: str, tools: ToolRegistry | None
    ) -> ToolRound:
        """Return the round that runs these calls with the tools of the request they answer.

        The tools offered now may differ: a server may report its window or template with the reply.
        """
        offered, memory = self.control.tools.offered(), self.services.memory_of(self.root())
        self.desk.approvals = msgspec.structs.replace(self.desk.approvals, settings=offered.settings)
        parts = RoundParts(
            services=self.services,
            log=self.log,
            tools=offered if tools is None else tools,
            desk=self.desk,
            context=self._tool_context,
            counted=self.meter.counted,
            recorded=self._recorded(),
            on_running=lambda title: self.enter(State.RUNNING_TOOLS, f"running {title}"),
            narrowing=self.narrowing,
            memories=MemorySources(self.services.memory_dir, memory.mark if memory is not None else ""),
        )
        caller = next((m.id for m in reversed(self.log.view.messages) if m.tool_calls), "")
        self.round = ToolRound(parts, calls, cycle, turn_id, caller)
        return self.round

    def _recorded(self) -> Recorded | None:
        """Return a lookup for recorded tool results if a recording plays the model, or None for a real model."""
        adapter = self.control.adapter()
        from codecompanion.adapters.offline.adapter import OfflineAdapter  # not needed at startup

        if not isinstance(adapter, OfflineAdapter) or adapter.playback is None:
            return None
        playback, reply = adapter.playback, adapter.played(self.chat_id) - 1
        return lambda call: playback.result_of(reply, call)

    def root(self) -> Path:
        """Return the folder that tools work in, resolved once per snapshot."""
        snapshot, settings = self.snapshot, self.services.settings
        if self._root is None or self._root[0] is not snapshot or self._root[1] is not settings:
            self._root = snapshot, settings, self.services.root(snapshot)
        return self._root[2]

    def _tool_context(self, name: str) -> ToolContext:
        timeout_s = self.control.tools.offered().timeout_s(name, DEFAULT_TOOL_TIMEOUT_S)
        context = self.services.tool_context(self.snapshot, timeout_s, self.root())
        from codecompanion.session.tool_calls.calling_chat import ToolChatAccess  # not needed at startup

        calling = ToolChatAccess(self.services, self.chat_id, lambda: self.state, self.attach, self.desk)
        return msgspec.structs.replace(context, recall=self.removed, chat_id=self.chat_id, chat=calling)
