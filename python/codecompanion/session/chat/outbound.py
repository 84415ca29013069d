"""What the user has sent and the model has not seen yet: delivered exactly once, at a request boundary (lesson 16).

A message is durable before it is shown as sent (lesson 36); what could not be stored goes back to the user as a draft.
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
from codecompanion.session.message_context.found import NOTHING, Found
from codecompanion.session.services import Services
from codecompanion.session.window.too_large import IS_BACK, NOT_SENT, Refusal
from codecompanion.waiting import to_the_end
from codecompanion.wire.events import MessageSent, Notice, Queued, Severity, SubmitFailed, TitleChanged
from codecompanion.wire.requests import Submit


async def _nothing_to_know(text: str) -> None:
    del text


class OutboundQueue:
    """The submits of one chat that wait for a request boundary.

    `refuse` says why a text cannot be sent, None when it can; `before` collects what is sent before a message.
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
        """Which tools a message chooses (`@{files}`)."""
        self.know_tools: Callable[[str], Awaitable[None]] = _nothing_to_know
        """Asked before: lets those be known that it may name."""

    def __bool__(self) -> bool:
        """Return whether anything waits."""
        return bool(self._waiting)

    @property
    def edits_in_place(self) -> bool:
        """Return whether what waits is the instruction of an edit in place."""
        return any(submit.edit is not None for submit in self._waiting)

    @property
    def texts(self) -> tuple[str, ...]:
        """Return what waits, oldest first."""
        return tuple(submit.text for submit in self._waiting)

    def add(self, submit: Submit) -> None:
        """Let a message wait for the next request boundary."""
        self._mentioned.expect(submit)
        self._waiting.append(submit)

    async def refused(self) -> dict[int, Refusal]:
        """Return why what waits can never be sent (R-524), by submit; what can be sent is not in it."""
        found: dict[int, Refusal] = {}
        for submit in tuple(self._waiting):
            refusal = await self._refuse(self._before.whole(submit))
            if refusal is not None:
                why = f"{refusal.why} {IS_BACK}" if submit.edit is None else refusal.why
                found[submit.submit_id] = Refusal(why, refusal.tokens)
        return found

    async def coming(self, cycle: int) -> tuple[Message, ...]:
        """Return what waits and can be sent as the messages that it will be."""
        self.give_back_refused(await self.refused())
        return tuple(
            self._meter.counted(Message(id=f"coming-{submit.submit_id}", role="user", content=submit.text, cycle=cycle))
            for submit in self._waiting
            if self._sent_before(submit, "") is None
        )

    def tell(self) -> None:
        """Show all that waits as waiting, also what is not waiting for a request."""
        for submit in self._waiting:
            self._services.emit(Queued(chat=self._log.chat_id, submit_id=submit.submit_id))

    def are_all(self, refused: dict[int, Refusal]) -> bool:
        """Return whether these are all that wait, and there are some."""
        return bool(self._waiting) and all(submit.submit_id in refused for submit in self._waiting)

    def give_back_refused(self, refused: dict[int, Refusal]) -> None:
        """Give these back as drafts, before they are logged."""
        waiting, self._waiting = self._waiting, deque[Submit]()
        for submit in waiting:
            if submit.submit_id in refused:
                self._return(submit, refused[submit.submit_id].why)
            else:
                self._waiting.append(submit)

    async def deliver(self, turn_id: str, cycle: int) -> str:
        """Log what waits, then show it as sent; return why the last one that cannot be sent went back, "" = none did.

        Until the code for a message is gathered it waits: a stop gives it back.

        Raises:
            StoreError: the message that could not be stored waits again, at the front.
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
            if self._waiting and self._waiting[0] is submit:  # else it was given back meanwhile
                await to_the_end(self._deliver(self._waiting.popleft(), found, turn_id, cycle))
        return why

    async def _gather(self, submit: Submit, turn_id: str, cycle: int) -> Found:
        """Return what goes before a message; nothing before one that was logged already.

        Raises:
            InputError: it cannot be sent as it was meant.
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
        """Return what waits to the user as drafts, so that nothing typed is lost."""
        while self._waiting:
            self._return(self._waiting.popleft(), why)

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
        """Return the message an earlier turn has logged last with these very words and that nothing has answered.

        A host killed between logging and telling leaves the message in the log and its words with the user; sent
        again they are the same message, not a second one (lesson 36). So are words tried again after a failure,
        but not those of an edit in place: its lines may be others by now.
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
        if is_untitled:  # only once: no compaction and no /clear gives a chat another title
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
