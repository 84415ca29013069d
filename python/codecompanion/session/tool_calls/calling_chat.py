"""Implements the operations that a running tool may use in its chat (`tools.tool.CallingChat`)."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable

import msgspec

from codecompanion.model.messages import Message, Source, with_changes
from codecompanion.session.attachments.attached import image_attachment
from codecompanion.session.services import Services
from codecompanion.session.state import State
from codecompanion.session.tool_calls.approval_desk import ApprovalDesk
from codecompanion.tools.commands.offer import Offer
from codecompanion.tools.tool import ApprovalQuestion
from codecompanion.wire.events import ApprovalRequested
from codecompanion.wire.events import State as StateEvent


class ToolChatAccess:
    """A tool's access to its chat. `state` returns the chat's state; `attach` adds a message to its next request."""

    def __init__(
        self,
        services: Services,
        chat_id: str,
        state: Callable[[], State],
        attach: Callable[[Message], Awaitable[None]],
        desk: ApprovalDesk,
    ) -> None:
        self._services, self._chat_id, self._state, self._attach = services, chat_id, state, attach
        self._desk = desk

    def progress(self, label: str) -> None:
        """Show the call's current step, unless a question is open."""
        if self._state() is State.RUNNING_TOOLS:
            self._services.emit(StateEvent(chat=self._chat_id, state=State.RUNNING_TOOLS.value, label=label))

    async def attach_image(self, name: str, content: bytes, source: Source) -> None:
        """Attach an image from `source` to the next request."""
        message, _ = await asyncio.to_thread(image_attachment, name, content, self._services.new_token())
        await asyncio.to_thread(self._services.store.put_blob, content)
        await self._attach(with_changes(message, sources=(source,)))

    async def ask_to_repeat(self, question: ApprovalQuestion) -> str | None:
        """Ask whether to rerun a command with network access or unsandboxed; in YOLO mode the user is not asked."""
        if question.place == "network" and self._desk.approvals.reaches(question.hosts) and not question.narrowed:
            return "always"
        if self._desk.approvals.yolo:
            return None
        asked = ApprovalRequested(
            chat=self._chat_id,
            call_id=self._services.new_token(),
            name="run_command",
            title=question.title,
            body=question.body,
            filetype=question.filetype,
            why=question.why,
            note=question.note,
            narrowed=question.narrowed,
            exact=self._desk.approvals.narrowest(question),
            place=question.place,
            hosts=question.hosts,
            retry=True,
            cwd=question.cwd,
            limit_s=question.limit_s,
        )
        exactly = msgspec.structs.replace(question, offer=Offer())
        given = await self._desk.ask_aside(asked, exactly)
        return "asked" if given.decision in ("once", "always") else ""

    def granted_hosts(self) -> frozenset[str]:
        """Return the hosts that this chat's commands may reach under "always" grants."""
        return self._desk.approvals.hosts
