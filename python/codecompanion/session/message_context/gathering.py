"""Gathers code for a message before it is logged; can be cancelled and never blocks the message (R-201).

The message waits in the queue meanwhile, so stopping returns it to the input. On failure it is sent as typed (R-202).
Gathered code is logged right before the message and does not change, so the prompt cache survives.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Collection, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec

from codecompanion.context.policy.strict import is_strict
from codecompanion.model.history import EventPayload, MessageAdded, UsageReported
from codecompanion.model.messages import Message, with_changes
from codecompanion.session.codebase.code_request import GATHERING_OFF, CodeRequest, code_request_of
from codecompanion.session.message_context.found_context import NOTHING, NOTHING_PRECEDING, Found, Preceding
from codecompanion.session.services import Services
from codecompanion.session.window.context_control import ContextControl
from codecompanion.wire.requests import Snapshot
from codecompanion.workspace.paths import is_project

if TYPE_CHECKING:
    from codecompanion.model.gathered import Gathered, UtilityCalls
    from codecompanion.retrieval.mentions import Mentions
    from codecompanion.session.codebase.gatherer import Question

_log = logging.getLogger(__name__)
TIME_LIMIT_S = 30.0
"""Time limit of a gatherer, in seconds, in case its own deadlines (R-203) fail."""
UNSAVED_LIMIT_S = 1.0
"""Timeout for reading unsaved buffers: the editor answers in milliseconds, unless it is blocked by a prompt."""
CHARS4_PER_TOKEN = 0.6
"""Ratio of characters / 4 (R-245) to the actual token count of code (lessons, counting)."""
MIN_TOKENS = 100
"""Minimum room for code, in tokens; less would not fit even one function."""
LABEL = "gathering code"
NO_PROJECT = (
    "{root} is a home directory or larger, not a project: only files named with @ are read."
    " :cd into a project, or set workspace.root."
)
NO_CODE = (
    "Code is not sent (opts.send_code is false): files, selections, gathered code and tools are left out."
    " The text you type is sent."
)
NO_ROOM = "No code was gathered: the context window has no room for it. /compact makes room."
INCOMPLETE = "The code index was incomplete; ask again for better code."
ALONE = " The message was sent without it."
_MAX_NOTES = 3


class CodeGathering:
    """Gathers code for the messages of one chat. `show` displays progress, "" = done."""

    def __init__(self, services: Services, control: ContextControl, show: Callable[[str], None]) -> None:
        self._services, self._control, self._show = services, control, show
        self._said: set[str] = set()

    async def code_request(self, text: str, snapshot: Snapshot, written: Collection[str] = ()) -> CodeRequest | None:
        """Return the code request of a message, or None; `written` are mentions the editor handles."""
        if self._services.gatherer is None or self._control.purpose or not snapshot.send_code:
            return None
        enabled = self._services.settings.context.enabled
        root, always = self._services.root(snapshot), self._control.policy.gathers
        return await code_request_of(text, snapshot, root, enabled, always, written)

    async def before(
        self,
        text: str,
        snapshot: Snapshot,
        turn_id: str,
        cycle: int,
        begin: Callable[[], None],
        preceding: Preceding = NOTHING_PRECEDING,
    ) -> Found:
        """Return the context sent before a message and the notes below it: gathered code, or why there is none.

        `begin` is called if code is requested, before the slow part. `preceding`: the context found before the code.

        Raises:
            asyncio.CancelledError: stopped; nothing was logged.
        """
        if not snapshot.send_code and not self._control.purpose:
            return NOTHING.with_notices(self._control.chat_id, self._once(NO_CODE))
        try:
            request = await self.code_request(text, snapshot, preceding.written)
        except Exception as error:
            why = self._services.report_bug(error)
            return NOTHING.with_notices(self._control.chat_id, self._once(f"No code was gathered: {why}{ALONE}"))
        if request is None:
            return NOTHING
        if not request.is_wanted:
            told = tuple(one for one in request.told if one != GATHERING_OFF)
            return NOTHING.with_notices(
                self._control.chat_id, told if told == request.told else (*told, *self._once(GATHERING_OFF))
            )
        begin()
        try:
            async with asyncio.timeout(TIME_LIMIT_S):
                gathered, told = await self.gather(text, snapshot, request.mentions, preceding)
        except TimeoutError:
            why = f"it took longer than {TIME_LIMIT_S:.0f} s."
            gathered, told = None, self._once(f"No code was gathered: {why}{ALONE}")
        except Exception as error:
            why = self._services.report_bug(error)
            gathered, told = None, self._once(f"No code was gathered: {why}{ALONE}")
        if gathered is None:
            return NOTHING.with_notices(self._control.chat_id, (*request.told, *told))
        asked_in = self._services.root(snapshot) if request.mentions and not told else None
        found, missing = self._found(text, gathered, turn_id, cycle, asked_in)
        return found.with_notices(self._control.chat_id, (*request.told, *told, *missing))

    async def gather(
        self, text: str, snapshot: Snapshot, mentions: Mentions, preceding: Preceding = NOTHING_PRECEDING
    ) -> tuple[Gathered | None, tuple[str, ...]]:
        """Return the code found for a question (None = no room for code) and notes for the user."""
        gatherer = self._services.gatherer
        room = self._control.fitting.room_for_code(text, preceding.tokens)
        if gatherer is None or room < MIN_TOKENS:
            return None, self._once(NO_ROOM) if mentions else ()
        try:
            self._show(LABEL)
            question = await self._question(text, snapshot, mentions, room, preceding.messages)
            gathered = await self._gathered(
                question, lambda words: self._show(f"{LABEL} · {words}"), preceding.messages
            )
        finally:
            self._show("")
        return gathered, self._once(NO_PROJECT.format(root=question.root)) if question.only_files else ()

    async def preview(
        self, text: str, snapshot: Snapshot, request: CodeRequest | None
    ) -> tuple[Gathered | None, tuple[str, ...]]:
        """Return the code that would be gathered for a message (None = no room for code) and notes for the user.

        The chat is not changed, except that the utility model's usage is logged; only the caller receives the result.
        """
        gatherer, room = self._services.gatherer, self._control.fitting.room_for_code(text)
        if gatherer is None or room < MIN_TOKENS:
            return None, ()
        from codecompanion.retrieval.mentions import NONE

        question = await self._question(text, snapshot, NONE if request is None else request.mentions, room)
        async with asyncio.timeout(TIME_LIMIT_S):
            gathered = await self._gathered(msgspec.structs.replace(question, is_asked=True), lambda words: None)
        if paid := self._paid(gathered):
            await self._control.log.write(*paid)
        return gathered, () if not question.only_files else (NO_PROJECT.format(root=question.root),)

    async def _question(
        self, text: str, snapshot: Snapshot, mentions: Mentions, room: int, preceding: Sequence[Message] = ()
    ) -> Question:
        from codecompanion.retrieval.gather_pipeline import STRICT as STRICT_PIPELINE
        from codecompanion.session.codebase.gatherer import Question

        control, root = self._control, self._services.root(snapshot)
        return Question(
            text=text,
            root=root,
            pipeline=STRICT_PIPELINE if control.policy.gathers and is_strict(control.policy) else "",
            files=mentions.files,
            lines=mentions.lines,
            active=snapshot.current,
            cursor=snapshot.cursor[0],
            adapter=control.adapter_name,
            model=control.model,
            max_tokens=int(room * CHARS4_PER_TOKEN),
            is_asked=mentions.codebase,
            only_files=not is_project(root),
            unsaved=await self._unsaved(snapshot),
            left_out=self._control.log.chosen.left_out,
            pinned=self._control.log.chosen.pinned,
            seen=self._seen(text, 0, preceding),
            with_memories=not control.log.had_memory,  # otherwise they were already sent, or the user removed them
        )

    async def _gathered(
        self, question: Question, tell: Callable[[str], None], preceding: Sequence[Message] = ()
    ) -> Gathered:
        """Return the gathered code, making sure that text it refers to as "above" is in the same request.

        If adding the code would push that text out of the request, code is gathered again, and only messages that are
        sure to stay count as seen.
        """
        gatherer = self._services.gatherer
        assert gatherer is not None  # noqa: S101  asked before
        gathered = await gatherer.gather(question, tell)
        if gathered.selection.above and not self._stays(question, gathered, preceding):
            tokens = max(1, int(question.max_tokens / CHARS4_PER_TOKEN))
            seen = self._seen(question.text, tokens, preceding)
            first, gathered = gathered, await gatherer.gather(msgspec.structs.replace(question, seen=seen), tell)
            gathered = msgspec.structs.replace(gathered, utility=_both(first.utility, gathered.utility))
        return gathered

    def _stays(self, question: Question, gathered: Gathered, preceding: Sequence[Message]) -> bool:
        """Return whether everything that the code refers to as "above" stays in the next request."""
        from codecompanion.session.codebase.gathered_message import gathered_message

        message = gathered_message(gathered, "new")
        if message is None:
            return True
        tokens = self._control.meter.counted(message).tokens
        seen = {one.id for one in self._seen(question.text, tokens, preceding)}
        return seen.issuperset(gathered.selection.above_ids)

    def _seen(self, text: str, code_tokens: int, preceding: Sequence[Message]) -> tuple[Message, ...]:
        """Return the messages that show file lines to the model when this question is sent, oldest first.

        These are the earlier messages that stay when `code_tokens` are added, and those `preceding` the question.
        """
        from codecompanion.retrieval.shown_lines import shows_lines

        control = self._control
        ids = {message.id for message in control.log.view.messages if shows_lines(message)}
        tokens = code_tokens + sum(message.tokens for message in preceding)
        return (*control.fitting.still_sent(ids, text, tokens), *filter(shows_lines, preceding))

    async def _unsaved(self, snapshot: Snapshot) -> dict[str, str]:
        """Return {path: text} of modified buffers; the editor is asked only if the snapshot has any."""
        if not any(buffer.modified for buffer in snapshot.buffers):
            return {}
        try:
            async with asyncio.timeout(UNSAVED_LIMIT_S):
                opened = await self._services.editor.look(None)
        except TimeoutError:
            return {}
        return {path: file.text for path, file in opened.files.items() if file.modified and file.text is not None}

    def _found(
        self, text: str, gathered: Gathered, turn_id: str, cycle: int, asked_in: Path | None
    ) -> tuple[Found, tuple[str, ...]]:
        """Return the events for the gathered code, and sentences about missing parts.

        `asked_in`: the folder in which the user explicitly requested code, so that a lack of results is explained.
        """
        from codecompanion.session.codebase.code_notes import why_no_code, with_secrets
        from codecompanion.session.codebase.gathered_message import gathered_event, gathered_message, gathered_record

        why = gathered.notes[:_MAX_NOTES]
        message = gathered_message(gathered, self._services.new_token())
        room = self._control.fitting.room_for_code(gathered.question)
        if message is not None:
            message = with_changes(message, cycle=cycle, turn_id=turn_id, ts=self._services.clock())
            message = self._control.meter.counted(message)
            if message.tokens > room:
                why += self._once(f"The code found takes {message.tokens:,} tokens; only {room:,} fit:{ALONE.lower()}")
                message = None
        else:
            why += why_no_code(text, gathered, asked_in, is_project=asked_in is None or is_project(asked_in))
        if message is not None:
            why += self._once(INCOMPLETE) if gathered.is_index_partial else ()
            why += with_secrets(message)
        logged: tuple[EventPayload, ...] = (
            gathered_record(gathered, message.id if message else "", turn_id),
            *self._paid(gathered),
        )
        if message is None:
            return Found(logged), why
        tokens = self._control.meter.scaled(message.tokens)
        shown = gathered_event(self._control.chat_id, message, tokens, gathered.ms)
        return Found((MessageAdded(message=message), *logged), (shown,)), why

    def _paid(self, gathered: Gathered) -> tuple[UsageReported, ...]:
        """Return the usage events of the calls to the utility model."""
        calls, reported = gathered.utility, self._services.passes_reported
        if calls is None:
            return ()
        events = (reported(calls.adapter, calls.model, "", [one]) for one in calls.passes)
        return tuple(msgspec.structs.replace(event, purpose="gathering") for event in events)

    def _once(self, text: str) -> tuple[str, ...]:
        """Return the sentence, or nothing if it was already shown in this chat."""
        if text in self._said:
            return ()
        self._said.add(text)
        return (text,)


def _both(first: UtilityCalls | None, second: UtilityCalls | None) -> UtilityCalls | None:
    """Return the calls of two gatherings for one question."""
    if first is None or second is None:
        return first or second
    return msgspec.structs.replace(second, passes=(*first.passes, *second.passes))
