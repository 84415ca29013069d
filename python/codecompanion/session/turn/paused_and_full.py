"""Asks whether to compact when compaction is paused and a request does not fit the context window (R-545).

The question is a block in the chat with keys, like a tool approval; the turn waits, but the editor does not block. The
user is asked before a message is logged, between the rounds of a tool loop, and after the provider refused a request as
too long. "No" returns the message to the input, or leaves the chat unchanged; nothing is sent if the host exits
meanwhile.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from enum import Enum, auto

from codecompanion.errors import CodeCompanionError
from codecompanion.model.messages import Message
from codecompanion.session.chat.chat import Chat
from codecompanion.session.state import State, Stop
from codecompanion.wire.events import ApprovalRequested
from codecompanion.wire.requests import Approve

_BACK = "No: your message goes back into the input."
_ENDS = "No: the turn ends here; /compact makes room and continues."
_NOT_AGAIN = "No: it is not sent again; /compact makes room and sends it."


class Answer(Enum):
    """The outcome of a question after which the turn continues."""

    NOT_ASKED = auto()
    """No question was asked, or the user's choice did not help; the refusal is handled as usual."""
    SEND = auto()
    """The chat was made smaller; the request may be sent."""


class PausedAndFull:
    """Asks the questions of one turn. `coming` returns the messages waiting for the turn's next request."""

    def __init__(self, chat: Chat, coming: Callable[[], Awaitable[Sequence[Message]]]) -> None:
        self._chat, self._coming = chat, coming
        self._open = ""
        self.allowed = False
        """Whether the user has agreed to compaction so that the next request fits."""
        self.waits = False
        """Whether the user declined, so that a later `/compact` continues the turn."""

    async def before_message(self) -> Stop | None:
        """Ask whether to compact before queued messages are logged; return a `Stop` if they are not sent, else None."""
        chat = self._chat
        if not chat.queue or not chat.control.pause.is_on:
            return None
        size = await self._excess()
        wanted = chat.take_compaction_request() if size else None
        if wanted is not None:  # `/compact` was typed before the question
            await chat.control.compact(wanted)
            size = await self._excess()
        if not size or self.allowed or await self._ask(self._figures(size), _BACK):
            return None
        return Stop(f"Not sent: {self._figures(size)}.")

    async def before_request(self) -> Stop | None:
        """Ask before a request whose messages are all logged; return a `Stop` if the turn ends, else None."""
        size = await self._chat.control.fitting.paused_excess()
        if not size or await self._ask(self._figures(size), _ENDS):
            return None
        self.waits = True
        return Stop(f"Stopped: {self._figures(size)}. /compact makes room and continues.")

    async def after_refusal(self, refusal: CodeCompanionError) -> Stop | Answer:
        """Ask after the provider refused a request as too long."""
        control = self._chat.control
        if self.allowed or not control.pause.is_on or not control.is_about_size(refusal):
            return Answer.NOT_ASKED
        control.learn_size(refusal)
        before = control.log.changes
        if await self._ask("the model refused it as too long", _NOT_AGAIN, compacts=True):
            return Answer.SEND if control.log.changes > before else Answer.NOT_ASKED
        self.waits = True
        return Stop("Refused as too long; not sent again. /compact makes room and sends it.")

    def take(self, instructions: str) -> bool:
        """Treat a `/compact` typed while a question is open as a yes; return whether a question was open."""
        if self._open:
            self._chat.desk.answer(Approve(call_id=self._open, decision="once", reason=instructions))
        return bool(self._open)

    async def _excess(self) -> int:
        return await self._chat.control.fitting.paused_excess(await self._coming())

    def _figures(self, size: int) -> str:
        return f"{size:,} tokens, {self._chat.control.fitting.room:,} fit"

    async def _ask(self, why: str, no: str, *, compacts: bool = False) -> bool:
        """Ask the user; on a yes, compact the chat unless the request fits by then.

        Return whether the answer was yes.
        """
        chat, control = self._chat, self._chat.control
        chat.enter(State.PREPARING)  # even if a truncated reply has just arrived
        chat.show_meter()
        chat.queue.tell()
        chat.enter(State.AWAITING_APPROVAL, "waiting for your answer: compact?")
        self._open = f"compact-{chat.services.new_token()}"
        question = ApprovalRequested(
            chat=chat.chat_id,
            call_id=self._open,
            name="compact",
            title=why,
            body=f"{control.pause.what} paused because of your undo.\n{no}",
            kind="compact",
        )
        try:
            given = await chat.desk.put(question)
        finally:
            self._open = ""
        chat.enter(State.PREPARING)
        self.allowed = given.decision in ("once", "always")
        if self.allowed and (compacts or await self._excess()):
            await control.compact(given.reason)
            chat.show_meter()
            chat.context.show()
        return self.allowed
