"""Where a chat's open approval questions wait for an answer."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

import msgspec

from codecompanion.errors import InputError
from codecompanion.events import ApprovalClosed, ApprovalRequested, Event
from codecompanion.messages import ToolCall
from codecompanion.tools.approval import Approvals, Decision
from codecompanion.tools.base import Accepted, ApprovalQuestion

REJECTED = "The user rejected this call."


class Verdict(msgspec.Struct, frozen=True):
    """How a question was answered: `refusal` is what the model reads instead of a result.

    `accepted` is the proposal as the user left it, None when the user did not edit it.
    """

    refusal: str | None = None
    accepted: Accepted | None = None


class ApprovalDesk:
    """Asks the user, one question at a time, and remembers what the chat has granted."""

    def __init__(
        self,
        chat_id: str,
        approvals: Approvals,
        emit: Callable[[Event], None],
        on_waiting: Callable[[bool, str], None],
        on_cancel_all: Callable[[], None],
    ) -> None:
        """`on_waiting(True, title)` while a question is open; `on_cancel_all` when the answer is to stop the turn."""
        self._chat_id, self.approvals, self._emit = chat_id, approvals, emit
        self._on_waiting, self._on_cancel_all = on_waiting, on_cancel_all
        self._answers: dict[str, asyncio.Future[tuple[Decision, str, str | None]]] = {}

    async def ask(self, call: ToolCall, question: ApprovalQuestion) -> Verdict:
        """Return whether the call may run, and the proposal as the user left it.

        Raises:
            asyncio.CancelledError: the user cancelled all, or the turn was stopped meanwhile.
        """
        answer: asyncio.Future[tuple[Decision, str, str | None]] = asyncio.get_running_loop().create_future()
        self._answers[call.id] = answer
        self._on_waiting(True, question.title)
        self._emit(
            ApprovalRequested(
                chat=self._chat_id,
                call_id=call.id,
                name=call.name,
                title=question.title,
                body=question.body,
                filetype=question.filetype,
                path=question.path,
                before=question.before,
                after=question.after,
            )
        )
        decision: Decision = "cancel"
        try:
            decision, reason, text = await answer
        finally:
            del self._answers[call.id]
            self._emit(ApprovalClosed(chat=self._chat_id, call_id=call.id, decision=decision))
        self.approvals = self.approvals.after(question, decision)
        if decision == "cancel":
            self._on_cancel_all()
            raise asyncio.CancelledError
        self._on_waiting(False, "")
        if decision == "reject":
            return Verdict(refusal=f"{REJECTED} Reason: {reason}" if reason.strip() else REJECTED)
        if text is None or not question.path:
            return Verdict()
        return Verdict(accepted=Accepted(question.before, question.after, text))

    def answer(self, call_id: str, decision: Decision, reason: str, text: str | None = None) -> None:
        """Pass the user's answer on; `text` is the proposal as the user left it.

        Raises:
            InputError: nothing is being asked about that call (any more).
        """
        waiting = self._answers.get(call_id)
        if waiting is None or waiting.done():
            raise InputError("This approval was already answered or cancelled.")
        waiting.set_result((decision, reason, text))
