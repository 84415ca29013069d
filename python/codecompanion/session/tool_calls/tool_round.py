"""Runs one tool round: approves and runs a reply's calls, and logs the results in call order (lessons 28, 47).

Read-only calls run concurrently; a call that asks or changes something runs alone. Every call ends with exactly one
result in the log, even if the user rejects it or stops the turn, or the tool fails.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Awaitable, Callable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any, Literal

import msgspec

from codecompanion.errors import StoreError, ToolError
from codecompanion.formats.cutting import cut_for_preview, cut_line
from codecompanion.formats.plural import counted
from codecompanion.formats.text_files import reason
from codecompanion.model.history import ChangeShown, EventPayload, MessageAdded, ToolRan
from codecompanion.model.messages import Message, ToolCall
from codecompanion.model.provenance import PLUGIN, USER
from codecompanion.placeholders import CANCELLED_BY_USER, INTERRUPTED, NOT_ANSWERED
from codecompanion.session.history.chat_log import ChatLog
from codecompanion.session.history.recorded_title import title_of_call
from codecompanion.session.provenance.memory_sources import MemorySources
from codecompanion.session.provenance.narrowed_grants import Narrowing
from codecompanion.session.provenance.result_sources import reads_disk, sources_of_result
from codecompanion.session.services import Services
from codecompanion.session.tool_calls.approval_desk import ApprovalDesk, Verdict
from codecompanion.tools.builtin import MEMORY
from codecompanion.tools.limit import shorten
from codecompanion.tools.tool import ApprovalQuestion, FileChange, Tool, ToolContext, ToolOutput
from codecompanion.tools.tool_registry import ToolRegistry
from codecompanion.wire import events
from codecompanion.wire.events import Notice, Severity, ToolFinished, ToolStarted
from codecompanion.workspace.secret_text import hide_keys

Status = Literal["ok", "error", "cancelled", "rejected"]
Recorded = Callable[[int], Message | None]
"""A function that returns the recorded result of the call at a position in its reply, or None."""
LONG_CHARS = 50_000
"""Length in characters above which a result is searched for keys in a thread."""
UNANSWERED = "not answered"
"""The outcome of a call that waited for approval when the host exited."""
MAX_REASON_CHARS = 200
"""Maximum length in characters of the reason shown in a rejected call's line; the result contains the full reason."""
MAX_DIFF_CHARS = 16_000
"""Maximum length in characters of a diff shown and stored with a call; the full diff can be rebuilt from the log."""


class RoundParts(msgspec.Struct, frozen=True):
    """The parts of a chat that a round needs. `context` returns the tool context for a call of the named tool."""

    services: Services
    log: ChatLog
    tools: ToolRegistry
    desk: ApprovalDesk
    context: Callable[[str], ToolContext]
    counted: Callable[[Message], Message]
    recorded: Recorded | None
    on_running: Callable[[str], None]
    narrowing: Narrowing
    memories: MemorySources


class _Ran(msgspec.Struct, frozen=True):
    call: ToolCall
    output: ToolOutput
    status: Status
    title: str


class ToolRound:
    """Runs the calls of one reply."""

    def __init__(
        self, parts: RoundParts, calls: Sequence[ToolCall], cycle: int, turn_id: str, reply_id: str = ""
    ) -> None:
        """Initialise a round for the calls of the reply `reply_id`."""
        self._parts, self._services, self._calls = parts, parts.services, tuple(calls)
        self._cycle, self._turn_id, self._reply_id = cycle, turn_id, reply_id
        self._announced: dict[int, ToolStarted] = {}
        self._done, self._asking = set[int](), asyncio.Lock()

    async def run(self) -> None:
        """Run all calls; results are stored in the order of the calls.

        Raises:
            asyncio.CancelledError: the user stopped; call `complete_as_cancelled` then.
        """
        position = 0
        while position < len(self._calls):
            group = self._side_by_side(position)
            for index in group:
                self._announce(index)
            ran = await asyncio.gather(*(self._run_one(index) for index in group))
            await self._record(dict(zip(group, ran, strict=True)))
            position = group[-1] + 1

    async def complete_as_cancelled(self, *, host_ends: bool = False) -> None:
        """Log a result for every call that has none (lesson 28), saying that the user stopped or the host exits."""
        left = {index: call for index, call in enumerate(self._calls) if index not in self._done}
        if left:
            ran = {
                index: _Ran(call, self._stopped(call, host_ends=host_ends), "cancelled", self._title(call))
                for index, call in left.items()
            }
            self._parts.desk.unanswered.clear()  # a provider may use the id of a call again
            await self._record(ran)

    def _stopped(self, call: ToolCall, *, host_ends: bool) -> ToolOutput:
        if not host_ends:
            text, summary = CANCELLED_BY_USER, "cancelled"
        elif call.id in self._parts.desk.unanswered:
            text, summary = NOT_ANSWERED, UNANSWERED
        else:
            text, summary = INTERRUPTED, "interrupted"
        return ToolOutput(text=text, summary=summary, is_error=True, sources=(PLUGIN,))

    def _side_by_side(self, first: int) -> range:
        """Return the positions of calls that may run concurrently: consecutive read-only calls, or a single call."""
        end = first
        while end < len(self._calls) and self._only_reads(self._calls[end]):
            end += 1
        return range(first, max(end, first + 1))

    def _only_reads(self, call: ToolCall) -> bool:
        if self._parts.recorded is not None:
            return True
        try:
            tool = self._parts.tools.get(call.name)
        except ToolError:
            return True
        return tool.effect == "read" and not self._parts.desk.approvals.asks_before(tool)

    def _title(self, call: ToolCall) -> str:
        return title_of_call(self._parts.tools, call)

    def _announce(self, index: int) -> None:
        call = self._calls[index]
        title = self._title(call)
        self._parts.on_running(title)
        self._announced[index] = ToolStarted(
            chat=self._parts.log.chat_id, call_id=call.id, name=call.name, title=title, reply_id=self._reply_id
        )
        self._services.emit(self._announced[index])

    @property
    def running(self) -> tuple[ToolStarted, ...]:
        """Return the start events of the calls that have no result yet."""
        return tuple(started for index, started in self._announced.items() if index not in self._done)

    async def _run_one(self, index: int) -> _Ran:
        # not needed at startup
        from codecompanion.tools.runner import ResolveOnce, decided, failed, question_now, run_call

        parts, services, call = self._parts, self._services, self._calls[index]
        title = self._title(call)
        if parts.recorded is not None:
            output = _recorded_output(parts.recorded(index))
            return _Ran(call, output, "error" if output.is_error else "ok", title)
        try:
            tool = parts.tools.get(call.name)
            arguments = parts.tools.validate(call.name, call.arguments)
            from codecompanion.session.tool_calls.audited import AuditedCall  # not needed at startup

            audited = AuditedCall(services, parts.log.chat_id, self._turn_id, call.id)
            from codecompanion.session.files.file_log import FileLog  # not needed at startup

            recorder = FileLog(
                parts.log.write, services.store.put_blob, services.new_token, self._turn_id, call.id, audited.changed
            )
            context = parts.context(call.name)
            resolve = ResolveOnce(context.resolve)
            narrowed = parts.narrowing.narrowed(self._turn_id)
            context = msgspec.structs.replace(
                context,
                recorder=recorder,
                resolve=resolve,
                narrowed=narrowed,
                on_second_run=audited.record_rerun,
            )
            decision = await decided(tool, arguments, context, parts.desk.approvals)
            question = decision.question
            context = msgspec.structs.replace(context, decided=decision.about)
        except ToolError as error:
            return _Ran(call, failed(str(error)), "error", title)
        if question is not None:
            try:

                async def now() -> ApprovalQuestion | None:
                    resolve.forget()
                    return await question_now(tool, arguments, context, parts.desk.approvals)

                verdict = await self._ask(call, question, now)
            except ToolError as error:
                return _Ran(call, failed(str(error)), "error", title)
            if verdict.refusal is not None:
                reason = cut_line(verdict.reason, MAX_REASON_CHARS)
                summary = f"rejected: {reason}" if reason else "rejected"
                refused = ToolOutput(text=verdict.refusal, summary=summary, is_error=True, sources=(USER,))
                return _Ran(call, refused, "rejected", title)
            context = msgspec.structs.replace(context, accepted=verdict.accepted)
            parts.on_running(title)
        audited.record_start(tool, arguments, grant=decision.grant, sandbox=decision.where, narrowed=narrowed.because)
        try:
            if tool.effect == "execute":
                from codecompanion.session.untrusted.written_by_commands import (
                    instructions_watched,
                )  # not needed at startup

                async with instructions_watched(services, context.root):
                    output = await run_call(tool, arguments, context)
            elif problem := await self._unrecorded(tool, arguments):
                output = failed(problem)
            else:
                output = await run_call(tool, arguments, context)
        except BaseException:
            audited.record_end("stopped")
            raise
        audited.record_end("error" if output.is_error else "ok", output.summary)
        output = await self._with_sources(tool, arguments, output, context)
        shown = await self._without_keys(output, printed=tool.effect == "execute")
        return _Ran(call, shown, "error" if output.is_error else "ok", title)

    async def _unrecorded(self, tool: Tool, arguments: Mapping[str, Any]) -> str:
        """Record the sources of the note that a call will write; return an error, or "" on success."""
        if tool.spec.name != MEMORY.spec.name:
            return ""
        sources = self._parts.narrowing.kept(self._parts.narrowing.of_turn(self._turn_id))
        try:
            await asyncio.to_thread(self._parts.memories.before_call, arguments, sources)
        except OSError as error:
            return f"Nothing was saved: the sources of the note cannot be recorded ({reason(error)})."
        return ""

    async def _with_sources(
        self, tool: Tool, arguments: Mapping[str, Any], output: ToolOutput, context: ToolContext
    ) -> ToolOutput:
        """Return the result with its sources, and record the chat's sources for files that the call wrote."""
        parts, outside = self._parts, self._parts.narrowing.of_turn(self._turn_id)
        if outside and output.change is not None:
            parts.narrowing.has_changed_files = True
        if tool.spec.name == MEMORY.spec.name and not output.is_error:
            with contextlib.suppress(OSError):  # a leftover record only restricts grants further
                await asyncio.to_thread(parts.memories.after_call, arguments)
        find = partial(sources_of_result, tool, arguments, output, context.recall, parts.memories)
        sources = await asyncio.to_thread(find) if reads_disk(tool, arguments) else find()
        return msgspec.structs.replace(output, sources=parts.narrowing.to_log(tool.spec.name, sources))

    async def _without_keys(self, output: ToolOutput, *, printed: bool) -> ToolOutput:
        """Remove known keys from a result before it is stored, shown or sent.

        `printed`: the text is from a command or a server, so keys recognisable as a provider's are hidden too.
        """
        known, change = self._services.known_secrets.hide, output.change

        def hide(text: str) -> str:
            return known(hide_keys(text) if printed else text)

        text = await asyncio.to_thread(hide, output.text) if len(output.text) > LONG_CHARS else hide(output.text)
        if change is not None:
            change = msgspec.structs.replace(change, diff=hide(change.diff))
        return msgspec.structs.replace(output, text=text, summary=hide(output.summary), change=change)

    async def _ask(
        self, call: ToolCall, question: ApprovalQuestion, now: Callable[[], Awaitable[ApprovalQuestion | None]]
    ) -> Verdict:
        """Ask until the answer applies to the current file; if the file changes meanwhile, ask about the new change.

        Raises:
            ToolError: the change can no longer be made; the message is the call's result.
        """
        while True:
            async with self._asking:  # concurrent calls ask one after the other
                verdict = await self._parts.desk.ask(call, question)
            if verdict.refusal is not None or not question.path:
                return verdict
            current = await now()
            if current is not None:
                current = msgspec.structs.replace(current, narrowed=self._parts.narrowing.because())
            if current is None or current.same_change(question):
                return verdict
            lost = "" if verdict.accepted is None else " Your changes to the proposal were not written."
            text = f"{Path(question.path).name} changed while the approval was open; here is the updated change.{lost}"
            self._services.emit(Notice(chat=self._parts.log.chat_id, level=Severity.WARN, text=text))
            question = current

    async def _store(self, text: str) -> str:
        """Store a long result, of which the model receives start and end; return its SHA-256, or "" on failure."""
        try:
            return await asyncio.to_thread(self._services.store.put_blob, text.encode("utf-8", "surrogatepass"))
        except StoreError as error:
            told = f"Only the start and end of a long result are kept: {error}"
            self._services.emit(Notice(chat=self._parts.log.chat_id, level=Severity.WARN, text=told))
            return ""

    async def _record(self, ran: Mapping[int, _Ran]) -> None:
        """Log the results of concurrent calls together, then show them; the calls are then complete."""
        services = self._services
        recorded = [await self._result(one) for one in ran.values()]
        self._done.update(ran)
        try:
            await self._parts.log.write(*(payload for payloads, _ in recorded for payload in payloads))
        except StoreError:
            for _, finished in recorded:
                failure = "ran, but its result could not be stored"
                services.emit(msgspec.structs.replace(finished, status="error", summary=failure))
            raise
        for _, finished in recorded:
            services.emit(finished)

    async def _result(self, ran: _Ran) -> tuple[tuple[EventPayload, ...], ToolFinished]:
        """Return the log events of a result and the event for the editor."""
        services = self._services
        text, blob, limit = ran.output.text, "", services.settings.tools.max_result_chars
        if len(text) > limit:
            blob = await self._store(text)
            text = shorten(text, limit, blob)
        message = self._parts.counted(
            Message(
                id=services.new_token(),
                role="tool",
                content=text or "(no output)",
                tool_call_id=ran.call.id,
                is_error=ran.output.is_error,
                cycle=self._cycle,
                turn_id=self._turn_id,
                blob=blob,
                ts=services.clock(),
                sources=ran.output.sources,
            )
        )
        unsaid = "failed" if ran.output.is_error else line_count(ran.output.text)  # the editor appends the reason
        summary, change = ran.output.summary or unsaid, ran.output.change
        happened = ToolRan(
            call_id=ran.call.id,
            message_id=message.id,
            name=ran.call.name,
            title=ran.title,
            summary=summary,
            status=ran.status,
            duration_ms=ran.output.duration_ms,
            change=shown_change(change),
        )
        finished = ToolFinished(
            chat=self._parts.log.chat_id,
            call_id=ran.call.id,
            message_id=message.id,
            name=ran.call.name,
            title=ran.title,
            summary=summary,
            reply_id=self._reply_id,
            preview=cut_diff(change.diff) if change else cut_for_preview(ran.output.text),
            status=ran.status,
            tokens=message.tokens,
            duration_ms=ran.output.duration_ms,
            change=change_event(shown_change(change), unsaved=change is not None and change.unsaved),
        )
        return (MessageAdded(message=message), happened), finished


def shown_change(change: FileChange | None) -> ChangeShown | None:
    """Return the change as it is logged next to the result of its call, or None if no file changed."""
    if change is None:
        return None
    return ChangeShown(change.change_id, change.path, change.added, change.removed, cut_diff(change.diff))


def change_event(change: ChangeShown | None, *, unsaved: bool = False) -> events.FileChange | None:
    """Return the change as the editor receives it."""
    if change is None or not change.change_id:
        return None
    return events.FileChange(change.change_id, change.path, change.added, change.removed, unsaved=unsaved)


def cut_diff(diff: str) -> str:
    """Return the start of a diff for the fold, in whole lines, up to `MAX_DIFF_CHARS`."""
    if len(diff) <= MAX_DIFF_CHARS:
        return diff
    head = diff[: diff.rfind("\n", 0, MAX_DIFF_CHARS) + 1 or MAX_DIFF_CHARS]
    return f"{head}… {counted(diff.count(chr(10)) - head.count(chr(10)), 'more line')} · K shows all\n"


def _recorded_output(result: Message | None) -> ToolOutput:
    if result is None:
        from codecompanion.tools.runner import failed  # not needed at startup

        return failed("The recording has no result for this call.")
    return ToolOutput(text=result.text, is_error=result.is_error)


def line_count(text: str) -> str:
    """Return the number of lines of a result, for a tool without its own summary."""
    return counted(text.count("\n") + 1, "line")
