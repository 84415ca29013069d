"""Attaches the memory to a new chat, and removes it when the chat's policy or the user's trust forbids it.

The memory is one message, shown as a line of the context block with its token count. It is read once: a resumed chat
keeps its original memory, so that its requests keep the same prefix (prompt caches).
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

from codecompanion.errors import StoreError
from codecompanion.model.change_report import ChangeReport
from codecompanion.model.messages import MEMORY_TAG, Message
from codecompanion.session.chat.chat import Chat
from codecompanion.session.services import Keeping
from codecompanion.tools.builtin import MEMORY
from codecompanion.wire.events import Severity

if TYPE_CHECKING:
    from codecompanion.memory.new_chat_memory import Recalled
    from codecompanion.session.memory.project_memory import ProjectMemory


async def join_memory(chat: Chat) -> None:
    """Attach the project's memory to a chat that has no typed message yet.

    If the memory folder cannot be read, a notice is shown instead.
    """
    try:
        await _join(chat)
    except StoreError as error:
        chat.notice(Severity.WARN, f"The memory was not read: {error}")


async def _join(chat: Chat) -> None:
    keeping, policy = chat.services.keeping, chat.control.policy
    if keeping is None or policy.recall is None or not keeping.remembers or chat.log.typed:
        return
    memory = chat.services.memory_of(chat.root())
    if memory is None or not await asyncio.to_thread(memory.has_any):
        return
    from codecompanion.memory.new_chat_memory import budget_of  # not needed at startup

    budget = budget_of(chat.services.settings.chat.memory.max_tokens, chat.control.limits.context_window)
    if budget <= 0:
        return
    recalled = await asyncio.to_thread(_read, chat, memory, keeping, budget, policy.recall.element)
    here = [one for one in chat.log.view.messages if one.tag == MEMORY_TAG]
    if [one.text for one in here] == ([recalled.text] if recalled.text else []):
        return
    if here:
        await chat.context.remove("detached", tuple(one.id for one in here), ChangeReport(superseded=True))
    if recalled.text:
        await chat.attach(
            Message(
                id=chat.services.new_token(),
                role="user",
                tag=MEMORY_TAG,
                path=_label(recalled),
                pinned=True,
                content=recalled.text,
                sources=recalled.sources,
            )
        )


async def follow_policy(chat: Chat) -> None:
    """Remove the memory if the chat's policy has none, otherwise attach it to a chat without typed messages.

    During a turn, nothing is done: the next request removes the memory.
    """
    if chat.task is not None:
        return
    if chat.control.policy.recall is None:
        await chat.context.drop_memory(chat.root())
    else:
        await join_memory(chat)


def _read(chat: Chat, memory: ProjectMemory, keeping: Keeping, budget: int, element: str) -> Recalled:
    from codecompanion.memory.entries import hide_in_entry
    from codecompanion.memory.new_chat_memory import MAX_LOOKED_AT, recall

    def count(text: str) -> int:
        return chat.meter.scaled(chat.meter.counter.message(Message(id="", role="user", content=text)))

    found, unread = memory.newest(MAX_LOOKED_AT)
    entries = (hide_in_entry(one, keeping.redact) for one in found)
    has_tool = any(spec.name == MEMORY.spec.name for spec in chat.control.specs)
    return recall([*entries], budget, count, element, has_tool=has_tool, unread=unread)


def _label(recalled: Recalled) -> str:
    if recalled.shown == recalled.of:
        return "1 entry" if recalled.of == 1 else f"all {recalled.of:,} entries"
    return f"{recalled.shown:,} of {recalled.of:,} entries"
