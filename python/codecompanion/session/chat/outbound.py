"""Queues messages that the model has not seen, and delivers each exactly once at a request boundary (lesson 16).

A message is stored before it is shown as sent (lesson 36); if that fails, the user gets it back as a draft.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Awaitable, Callable, Sequence

from codecompanion.errors import CodeCompanionError, InputError
from codecompanion.model.history import EventPayload, MessageAdded, TitleSet
from codecompanion.model.messages import Message, is_typed_by_user
from codecompanion.session.accounts.meter import ContextMeter
from codecompanion.session.attachments.chosen_tools import Choice
from codecompanion.session.history.chat_log import ChatLog
from codecompanion.session.history.titles import title_of
from codecompanion.session.message_context.before_message import BeforeMessage
from codecompanion.session.message_context.found_context import NOTHING, Found
from codecompanion.session.services import Services
from codecompanion.session.window.too_large import IS_BACK, NOT_SENT, Refusal
from codecompanion.waiting import to_the_end
from codecompanion.wire.events import MessageSent, Notice, Queued, Severity, SubmitFailed, TitleChanged
from codecompanion.wire.requests import Submit


async def _nothing_to_know(text: str) -> None:
    del text


class OutboundQueue:
    """The submitted messages of one chat that wait for a request boundary.

    `refuse` returns why a message cannot be sent, None if it can; `before` collects the context sent before a message.
    """

    def __init__(
        self,
        services: Services,
        log: ChatLog,
        meter: ContextMeter,
        refuse: Callable[[str], Awaitable[Refusal | None]],
        before: BeforeMessage,
    ) -> None:
        self._services, self._log, self._meter, self._refuse = services, log, meter, refuse
        self._before, self._mentioned = before, before.mentioned
        self._waiting: deque[Submit] = deque()
        self.choice_in: Callable[[str], Choice] = lambda text: Choice()
        """Returns the tools that a message chooses (`@{files}`)."""
        self.know_tools: Callable[[str], Awaitable[None]] = _nothing_to_know
        """Finds the tools that the message may name; called before `choice_in`."""

    def __bool__(self) -> bool:
        """Return whether anything is queued."""
        return bool(self._waiting)

    @property
    def edits_in_place(self) -> bool:
        """Return whether a queued message is the instruction of an in-place edit."""
        return any(submit.edit is not None for submit in self._waiting)

    @property
    def texts(self) -> tuple[str, ...]:
        """Return the queued messages, oldest first."""
        return tuple(submit.text for submit in self._waiting)

    def add(self, submit: Submit) -> None:
        """Queue a message for the next request boundary."""
        self._mentioned.expect(submit)
        self._waiting.append(submit)

    async def refused(self) -> dict[int, Refusal]:
        """Return the queued messages that can never be sent (R-524): submit id → reason."""
        found: dict[int, Refusal] = {}
        for submit in tuple(self._waiting):
            refusal = await self._refuse(self._before.whole(submit))
            if refusal is not None:
                why = f"{refusal.why} {IS_BACK}" if submit.edit is None else refusal.why
                found[submit.submit_id] = Refusal(why, refusal.tokens)
        return found

    async def coming(self, cycle: int) -> tuple[Message, ...]:
        """Return the queued messages that can be sent, as they will be in the request."""
        self.give_back_refused(await self.refused())
        return tuple(
            self._meter.counted(Message(id=f"coming-{submit.submit_id}", role="user", content=submit.text, cycle=cycle))
            for submit in self._waiting
            if self._sent_before(submit, "") is None
        )

    def tell(self) -> None:
        """Show every queued message as waiting, even if it is not waiting for a request."""
        for submit in self._waiting:
            self._services.emit(Queued(chat=self._log.chat_id, submit_id=submit.submit_id))

    def are_all(self, refused: dict[int, Refusal]) -> bool:
        """Return whether the queue is not empty and all of its messages are refused."""
        return bool(self._waiting) and all(submit.submit_id in refused for submit in self._waiting)

    def give_back_refused(self, refused: dict[int, Refusal]) -> None:
        """Return refused messages to the user as drafts, before they are logged."""
        waiting, self._waiting = self._waiting, deque[Submit]()
        for submit in reversed(waiting):
            if submit.submit_id in refused:
                self._return(submit, refused[submit.submit_id].why)
            else:
                self._waiting.appendleft(submit)

    async def deliver(self, turn_id: str, cycle: int) -> str:
        """Log the queued messages, then show them as sent; return why the last refused message was returned, or "".

        A message stays queued until its context is gathered, so that stopping returns it as a draft.

        Raises:
            StoreError: a message could not be stored; it is back at the front of the queue.
        """
        why, checked = "", frozenset[int]()
        while self._waiting:
            if not checked.issuperset(submit.submit_id for submit in self._waiting):
                refused = await self.refused()
                checked = frozenset(submit.submit_id for submit in self._waiting)
                self.give_back_refused(refused)
                why = [*refused.values()][-1].why if refused else why
                continue
            submit = self._waiting[0]
            try:
                found = await self._gather(submit, turn_id, cycle)
            except InputError as error:
                why = str(error)
                if self._waiting and self._waiting[0] is submit:
                    self._return(self._waiting.popleft(), why)
                continue
            if self._waiting and self._waiting[0] is submit:  # else it was returned to the user meanwhile
                await to_the_end(self._deliver(self._waiting.popleft(), found, turn_id, cycle))
        return why

    async def _gather(self, submit: Submit, turn_id: str, cycle: int) -> Found:
        """Return the context sent before a message; none if the message was already logged.

        Raises:
            InputError: the message cannot be sent as written.
        """
        if self._sent_before(submit, turn_id) is not None:
            return NOTHING
        if submit.edit is None:
            await self.know_tools(submit.text)
        why = self.choice_in(submit.text).why_not if submit.edit is None else ""
        if why:
            raise InputError(f"{NOT_SENT}: {why[:1].lower()}{why[1:]} {IS_BACK}")
        return await self._before.of(submit, turn_id, cycle)

    def give_back(self, why: str) -> None:
        """Return all queued messages to the user as drafts, so that no typed text is lost.

        The newest is first, because the editor puts each one before the text in the input.
        """
        while self._waiting:
            self._return(self._waiting.pop(), why)

    def _return(self, submit: Submit, why: str) -> None:
        self._mentioned.forget(submit)
        failed = SubmitFailed(chat=self._log.chat_id, submit_id=submit.submit_id, text=submit.text, error=why)
        self._services.emit(failed)

    async def _deliver(self, submit: Submit, found: Found, turn_id: str, cycle: int) -> None:
        message = self._sent_before(submit, turn_id)
        if message is None:
            message = self._meter.counted(
                Message(
                    id=self._services.new_token(),
                    role="user",
                    content=submit.text,
                    cycle=cycle,
                    turn_id=turn_id,
                    ts=self._services.clock(),
                )
            )
            await self._log_message(submit, message, found.payloads)
        self._mentioned.forget(submit)
        self._services.emit(
            MessageSent(
                chat=self._log.chat_id,
                submit_id=submit.submit_id,
                message_id=message.id,
                text=submit.text,
                cycle=cycle,
                tokens=message.tokens,
                number=self._log.typed,
            )
        )
        for told in found.told:
            self._services.emit(told)

    def _sent_before(self, submit: Submit, turn_id: str) -> Message | None:
        """Return the last logged message if it has these exact words, belongs to an earlier turn, and has no answer.

        If a host is killed between logging and reporting, the message is both in the log and with the user; if it is
        sent again, it is the same message, not a second one (lesson 36). The same applies to a retry after a failure,
        but not to an in-place edit, because its lines may have changed.
        """
        last = self._log.view.messages[-1] if self._log.view.messages else None
        if submit.edit is not None or last is None or not is_typed_by_user(last):
            return None
        return last if last.turn_id != turn_id and last.text == submit.text else None

    async def _log_message(self, submit: Submit, message: Message, before: Sequence[EventPayload]) -> None:
        payloads: list[EventPayload] = [*before, MessageAdded(message=message, submit=submit.key)]
        choice = self.choice_in(submit.text) if submit.edit is None else Choice()
        if choice.change is not None:
            payloads.append(choice.change)
        is_untitled = not self._log.title
        if is_untitled:  # only once: neither a compaction nor /clear changes the title
            payloads.insert(0, TitleSet(title=title_of(submit.text)))
        try:
            await self._log.write(*payloads)
        except CodeCompanionError:
            self._waiting.appendleft(submit)
            raise
        if is_untitled:
            self._services.emit(TitleChanged(chat=self._log.chat_id, title=self._log.title))
        for sentence in choice.said:
            self._services.emit(Notice(chat=self._log.chat_id, level=Severity.INFO, text=sentence))
