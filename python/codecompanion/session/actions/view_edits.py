"""The user's manual changes to the view: undo, redo, restore, clear, pin, unpin (R-361, R-516, R-545).

Each change is one event of the log, so a crash leaves the view either before or after it. None is allowed during a
turn, because a request that is being sent cannot be changed.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import msgspec

from codecompanion.errors import InputError
from codecompanion.formats.plural import counted
from codecompanion.model.change_report import ChangeReport
from codecompanion.model.history import ChangeKind, FileChangeEnded, Insertion, ViewChanged
from codecompanion.model.messages import PIN_TAG, Message, is_question_context, with_changes
from codecompanion.model.view import apply_change
from codecompanion.placeholders import TOOL_RESULT_CLEARED, cleared_along
from codecompanion.session.attachments.pins import instruction, pinned, title_of, to_pin, to_unpin
from codecompanion.session.chat.chat import Chat
from codecompanion.session.chat.redraw import redraw
from codecompanion.session.history.messages_out_of_view import WIPED
from codecompanion.session.history.restore_message import find, logged, restoration
from codecompanion.session.history.undo import PAUSED_BY, chain_of, outcome, summarised
from codecompanion.waiting import to_the_end
from codecompanion.wire import requests
from codecompanion.wire.events import ContextEdited, Severity


class ViewEdits:
    """The user's changes to the view of one chat."""

    def __init__(self, chat: Chat) -> None:
        self._chat = chat
        self.services, self.log, self.control = chat.services, chat.log, chat.control
        self.context = chat.context

    async def carry_out(self, request: requests.Request) -> Any:
        """Carry out the user's request; return the answer defined in `requests`.

        Raises:
            CodeCompanionError: nothing was changed; the message says why.
        """
        match request:
            case requests.UndoChange(change_id=change_id):
                return await self._chat.occupy(lambda: self._undo(change_id))
            case requests.RedoChange(change_id=change_id):
                return await self._chat.occupy(lambda: self._redo(change_id))
            case requests.RestoreMessage(item=item):
                return await self._chat.occupy(lambda: self._restore(item))
            case requests.ClearMessage(item=item):
                return await self._chat.occupy(lambda: self._clear(item))
            case requests.Pin():
                return await self._chat.occupy(lambda: self._pin(request))
            case requests.Unpin(item=item, number=number):
                return await self._chat.occupy(lambda: self._unpin(item, number))
            case requests.ListPins():
                return self._pins()
            case requests.Recall(words=words):
                return await self._chat.removed.listed(words)
            case _:
                raise InputError(f"{type(request).__name__} is not a request to a chat")

    # ---- undo and redo

    async def _undo(self, change_id: str) -> str:
        events = await self.log.events()
        chain = chain_of(events)
        if not chain.undoable and any(isinstance(event.payload, FileChangeEnded) for event in events):
            raise InputError("Nothing to undo; :CodeCompanionRevert reverts file changes.")
        change = chain.to_undo(change_id)
        await to_the_end(self._undo_or_redo(change, redo=False))
        await self._tell_outlook(change)
        if change.kind == "compacted":
            number = counted(summarised(change), "message")
            return f"Compaction undone; {number} {'is' if summarised(change) == 1 else 'are'} back."
        return f"Undone: {outcome(change, undone=True)}."

    async def _redo(self, change_id: str) -> str:
        change = chain_of(await self.log.events()).to_redo(change_id)
        self._refuse_foreign(change)
        await to_the_end(self._undo_or_redo(change, redo=True))
        return f"Redone: {outcome(change)}."

    async def _undo_or_redo(self, change: ViewChanged, *, redo: bool) -> None:
        if redo:
            await self.log.redo(change.change_id)
        else:
            await self.log.undo([change.change_id], by_user=True)
        if change.kind == WIPED or self._crosses_page(change):
            await redraw(self._chat)
        await self.context.rules.follow(self.log.view, self._chat.root())
        self._show()

    def _refuse_foreign(self, change: ViewChanged) -> None:
        """Raise `InputError` if the change restores a summary of a provider that the chat no longer uses (R-542)."""
        origin = self.control.adapter().origin
        for insertion in change.inserted:
            block = insertion.message.compaction
            if block is not None and (block.origin != origin or not self.control.native.compact_at):
                raise InputError("This summary was written by another provider; the current model cannot read it.")

    async def _tell_outlook(self, change: ViewChanged) -> None:
        """Tell the user if compaction is paused, or if the next request will have to be made smaller."""
        pause = self.control.pause
        size = await self.control.fitting.paused_excess()
        if size:
            told = f"Paused: {size:,} tokens; only {self.control.fitting.room:,} fit. Sending asks whether to compact."
            self.control.notice(Severity.WARN, told, while_paused=True)
            return
        if change.kind in PAUSED_BY and pause.is_on:
            told = f"{pause.what} paused until you /compact, redo or choose a policy."
            self.control.notice(Severity.INFO, told, while_paused=True)
            return
        if not self.control.shaper.env().fits(self.log.view.messages, self.control.measured()):
            text = "The request is now larger than the context window; it will be made smaller before it is sent."
            self.control.notice(Severity.WARN, text)

    # ---- restore and pin

    async def _restore(self, item: str) -> str:
        found = restoration(logged(await self.log.events()), self.log.view, item)
        title = title_of(found.original) if found.count == 1 else f"{found.count} messages (a call and its results)"
        change = self._changed(
            "restored",
            replaced=tuple(self.control.meter.counted(message) for message in found.replaced),
            inserted=found.inserted,
            report=ChangeReport(title=title),
        )
        after = apply_change(self.log.view, change)
        size, room = self.control.shaper.measure(after.messages).tokens, self.control.fitting.room
        if room and size > room:
            raise InputError(
                f"Not restored: the request needs {size:,} tokens; only {room:,} fit. Compact first or read it with K."
            )
        if not after.sound:
            raise InputError("Not restored: that would separate a tool call from its result. Read it with K.")
        await to_the_end(self._commit(change))
        return f"Restored: {title}."

    async def _clear(self, item: str) -> str:
        message = find(self.log.view.messages, item)
        is_cleared = message is not None and message.edited and not message.left_out
        is_code = message is not None and is_question_context(message)
        if message is None or (message.role != "tool" and not is_code) or is_cleared or message.pinned:
            raise InputError(
                "Only tool results and the context sent with a question can be cleared,"
                " unless pinned or already cleared."
            )
        placeholder = cleared_along(message) if is_code else TOOL_RESULT_CLEARED
        cleared = with_changes(message, content=placeholder, edited=True)
        call_ids = (message.tool_call_id or "",)
        report = ChangeReport(stage="manual", trigger="manual", cleared=1, code=int(is_code), call_ids=call_ids)
        change = self._changed("edited", replaced=(self.control.meter.counted(cleared),), report=report)
        if change.tokens_after >= change.tokens_before:
            raise InputError(_saves_nothing(item, self.log.view.messages))
        await to_the_end(self._commit(change))
        edited = ContextEdited(
            chat=self.log.chat_id, cleared=1, code=int(is_code), tokens_before=change.tokens_before,
            tokens_after=change.tokens_after, call_ids=call_ids, change_id=change.change_id, changed=(message.id,),
        )  # fmt: skip
        self.services.emit(edited)
        return f"Cleared: {title_of(message)}."

    async def _pin(self, request: requests.Pin) -> str:
        view = self.log.view
        if request.text.strip():
            content = instruction(request.text, request.source)
            same = next((m for m in view.messages if m.tag == PIN_TAG and m.text == content), None)
            if same is not None and request.again:
                return f"Already pinned: {title_of(same)}."
            if same is not None:
                raise InputError(f"{title_of(same)} is already pinned.")
            message = Message(
                id=self.services.new_token(), role="user", content=content, tag=PIN_TAG, pinned=True,
                path=request.source or None, cycle=max(1, view.cycle), ts=self.services.clock(),
            )  # fmt: skip
            message = self.control.meter.counted(message)
            last = view.messages[-1].id if view.messages else ""
            change = self._changed(
                "pinned", inserted=(Insertion(message, after=last),), report=ChangeReport(title=title_of(message))
            )
        else:
            message = to_pin(view, request.item)
            change = self._changed(
                "pinned", replaced=(with_changes(message, pinned=True),), report=ChangeReport(title=title_of(message))
            )
        await to_the_end(self._commit(change))
        return f"Pinned: {title_of(message)}."

    async def _unpin(self, item: str, number: int) -> str:
        message = to_unpin(self.log.view, item, number)
        report = ChangeReport(title=title_of(message))
        if message.tag == PIN_TAG:
            change = self._changed("unpinned", removed=(message.id,), report=report)
        else:
            change = self._changed("unpinned", replaced=(with_changes(message, pinned=False),), report=report)
        await to_the_end(self._commit(change))
        return f"Unpinned: {title_of(message)}."

    def _pins(self) -> list[dict[str, Any]]:
        return [
            {"number": number, "id": m.id, "role": m.role, "tokens": m.tokens, "text": title_of(m)}
            for number, m in enumerate(pinned(self.log.view), 1)
        ]

    def _changed(self, kind: ChangeKind, **fields: Any) -> ViewChanged:
        """Return a view change with the token counts before and after it."""
        before = self.control.measured().tokens
        change = ViewChanged(change_id=self.services.new_token(), kind=kind, tokens_before=before, **fields)
        after = self.control.meter.measure(apply_change(self.log.view, change).messages).tokens
        return msgspec.structs.replace(change, tokens_after=after)

    async def _commit(self, change: ViewChanged) -> None:
        crosses = self._crosses_page(change)
        await self.log.write(change)
        if crosses:
            await redraw(self._chat)
        self._show()

    def _crosses_page(self, change: ViewChanged) -> bool:
        """Return whether the change may affect messages before a `/clear`, which are not in the buffer."""
        return bool(change.inserted) and WIPED in self.log.gone.values()

    def _show(self) -> None:
        """Show the current state of the view."""
        self.context.show_marks()
        self.context.show()
        self._chat.show_meter()


def _saves_nothing(item: str, messages: Sequence[Message]) -> str:
    """Return a sentence that explains why clearing a message would save nothing."""
    attached = (m for m in messages if any(one.restores and item in one.ids for one in m.references))
    path = next((message.path for message in attached), None)
    if path is None:
        return "This result is shorter than its placeholder; clearing it would save nothing."
    return f"Clearing it would save nothing: {path} is attached, and its text appears only here. Detach it first."
