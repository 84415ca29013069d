"""Asks the user for approvals and passes the answers to the waiting calls of a chat."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

import msgspec

from codecompanion.errors import InputError
from codecompanion.model.messages import ToolCall
from codecompanion.tools.approval import Approvals, Decision
from codecompanion.tools.tool import Accepted, ApprovalQuestion
from codecompanion.wire.events import ApprovalClosed, ApprovalRequested, Event, GrantScope
from codecompanion.wire.requests import Approve

REJECTED = "The user rejected this call."


class Verdict(msgspec.Struct, frozen=True):
    """The answer to a question. `refusal`: the message to the model in place of a result, or None if the call may run.

    `reason`: the user's own words. `accepted`: the proposal as edited by the user, or None if unchanged.
    """

    refusal: str | None = None
    reason: str = ""
    accepted: Accepted | None = None


class _Open(msgspec.Struct):
    """An open question as asked, with the grant it offers (None = no grant) and its pending answer."""

    asked: ApprovalRequested
    about: ApprovalQuestion | None
    answer: asyncio.Future[Approve]


class ApprovalDesk:
    """Asks the user, one question at a time, and remembers the grants of the chat."""

    def __init__(
        self,
        chat_id: str,
        approvals: Approvals,
        emit: Callable[[Event], None],
        on_waiting: Callable[[bool, str], None],
        on_cancel_all: Callable[[], None],
        on_granted: Callable[[Approvals], None],
    ) -> None:
        """Initialise the desk with the callbacks of the chat.

        `on_waiting(True, title)` is called when a question opens and `on_waiting(False, "")` when it closes,
        `on_cancel_all` when the answer stops the turn, `on_granted` after the answer "always".
        """
        self._chat_id, self.approvals, self._emit = chat_id, approvals, emit
        self._on_waiting, self._on_cancel_all, self._on_granted = on_waiting, on_cancel_all, on_granted
        self._open: dict[str, _Open] = {}
        self.unanswered = set[str]()
        """The ids of the calls whose question was open when the turn was stopped."""

    @property
    def questions(self) -> tuple[ApprovalRequested, ...]:
        """Return the open questions, as they were asked."""
        return tuple(one.asked for one in self._open.values())

    async def ask(self, call: ToolCall, question: ApprovalQuestion) -> Verdict:
        """Return whether the call may run, and the proposal as edited by the user.

        Raises:
            asyncio.CancelledError: the user cancelled all calls, or the turn was stopped meanwhile.
        """
        self._on_waiting(True, question.title)
        asked = ApprovalRequested(
            chat=self._chat_id,
            call_id=call.id,
            name=call.name,
            title=question.title,
            body=question.body,
            filetype=question.filetype,
            path=question.path,
            before=question.before,
            after=question.after,
            why=question.why,
            again=question.again,
            narrowed=question.narrowed,
            covers=GrantScope() if question.narrowed else question.offer.covers,
            exact=self.approvals.narrowest(question),
            place=question.place,
            note=question.note,
            hosts=question.hosts,
            cwd=question.cwd,
            limit_s=question.limit_s,
        )
        given = await self.put(asked, question)
        decision = given.decision
        if decision == "cancel":
            self._on_cancel_all()
            raise asyncio.CancelledError
        self._on_waiting(False, "")
        if decision == "reject":
            reason = given.reason.strip()
            return Verdict(refusal=f"{REJECTED} Reason: {given.reason}" if reason else REJECTED, reason=reason)
        if given.text is None or not question.path:
            return Verdict()
        return Verdict(accepted=Accepted(question.before, question.after, given.text))

    def grant(self, question: ApprovalQuestion, decision: Decision, *, family: bool = False) -> None:
        """Record the grant that an answer gives."""
        granted = self.approvals.after(question, decision, family=family)
        if granted != self.approvals:
            self.approvals = granted
            self._on_granted(granted)

    async def ask_aside(self, asked: ApprovalRequested, about: ApprovalQuestion | None = None) -> Approve:
        """Ask another question while a call runs, and return the answer; "cancel" closes only this question."""
        self._on_waiting(True, asked.title)
        try:
            return await self.put(asked, about)
        finally:
            self._on_waiting(False, "")

    async def put(self, asked: ApprovalRequested, about: ApprovalQuestion | None = None) -> Approve:
        """Ask, record the grant that the answer gives, and return the answer.

        The block disappears when the answer arrives or the turn is stopped.
        """
        answer: asyncio.Future[Approve] = asyncio.get_running_loop().create_future()
        waiting = self._open[asked.call_id] = _Open(asked, about, answer)
        self._emit(asked)
        decision: Decision = "cancel"
        try:
            given = await answer
            decision = given.decision
        except asyncio.CancelledError:
            self.unanswered.add(asked.call_id)
            raise
        finally:
            del self._open[asked.call_id]
            self._emit(ApprovalClosed(chat=self._chat_id, call_id=asked.call_id, decision=decision))
        if waiting.about is not None:
            self.grant(waiting.about, decision, family=given.family)
        return given

    def narrow(self, because: str) -> None:
        """Update the reason why open questions offer no "always" ("" = they do); resend those that change."""
        for one in self._open.values():
            if one.about is None or one.about.narrowed == because or one.answer.done():
                continue
            one.about = msgspec.structs.replace(one.about, narrowed=because)
            covers = GrantScope() if because else one.about.offer.covers
            one.asked = msgspec.structs.replace(one.asked, narrowed=because, covers=covers)
            self._emit(one.asked)

    def answer(self, given: Approve) -> None:
        """Pass on the user's answer.

        Raises: InputError: no question about that call is open.
        """
        waiting = self._open.get(given.call_id)
        if waiting is None or waiting.answer.done():
            raise InputError("This approval was already answered or cancelled.")
        waiting.answer.set_result(given)
