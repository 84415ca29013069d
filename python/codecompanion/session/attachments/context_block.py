"""The context block: a chat's attachments, such as files, buffers, images and rules (R-548, R-549).

Nothing may come between a tool call and its result, so an attachment added during a turn waits for the next request
boundary.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path

import msgspec

from codecompanion.errors import InputError
from codecompanion.formats.plural import counted
from codecompanion.model.change_report import NO_REPORT, ChangeReport
from codecompanion.model.history import ChangeKind, EventPayload, MessageAdded, ViewChanged
from codecompanion.model.live_files import live_event
from codecompanion.model.messages import MEMORY_TAG, RULES_TAG, UPDATE_TAG, Message, with_changes
from codecompanion.model.provenance import FILE
from codecompanion.model.references import lost_references
from codecompanion.session.attachments.attached import CHANGE_TAGS, context_items
from codecompanion.session.attachments.chosen_tools import remove_tools, tool_items
from codecompanion.session.attachments.rules_sync import RuleKeeper
from codecompanion.session.history.chat_log import ChatLog
from codecompanion.session.history.undo import Chain, marks
from codecompanion.session.services import Services
from codecompanion.session.window.context_control import ContextControl
from codecompanion.wire.events import ContextItem, ContextItems
from codecompanion.workspace.secret_files import is_secret


class ContextBlock:
    """Manages the attachments of one chat, both those in the view and those waiting to join it."""

    def __init__(
        self, services: Services, log: ChatLog, control: ContextControl, must_be_idle: Callable[[str], None]
    ) -> None:
        self._services, self._log, self._control = services, log, control
        self._must_be_idle = must_be_idle
        self.rules = RuleKeeper(services)
        self._waiting: deque[Message] = deque()
        self._joining = asyncio.Lock()
        self._shown_at = 0
        self._shown_tools: tuple[ContextItem, ...] = ()
        self._shown_undone = log.undone
        self.shown_chain = Chain()
        """The undo and redo state that was last sent to the editor."""
        self._shaped_away: frozenset[str] = frozenset()
        self._lost: tuple[int, tuple[str, ...]] = (-1, ())
        self._shown_lost: tuple[str, ...] = ()

    def show(self) -> None:
        """Show the context block: attachments in the view, and those waiting to join it."""
        self._shown_at = self._log.changes
        messages, scaled = (*self._log.view.messages, *self._waiting), self._control.meter.scaled
        items = context_items(messages, self._log.files, scaled)
        self._shown_tools = tool_items(self._control)
        self._services.emit(ContextItems(chat=self._log.chat_id, items=(*self._shown_tools, *items)))

    def show_tools(self) -> None:
        """Show the context block again if its tool lines changed, for example because a server started or stopped."""
        if self._shown_tools != tool_items(self._control):
            self.show()

    def show_changes(self) -> None:
        """Show the context block again if the view changed: compaction may have removed or restored attachments."""
        if self._shown_at != self._log.changes:
            self.show()
        log = self._log
        # Switching providers undoes the old provider's compaction; a shaped request clears results for a turn; an
        # answer cannot be replaced once the chat continues from it; an edit or compaction may have removed the text
        # that a message refers to.
        settled = self.shown_chain.has_answer and self.shown_chain != log.chain
        told = self._shown_undone == log.undone and self._shaped_away == self._shaped()
        if log.untold or settled or not told or self._shown_lost != self._lost_now():
            self.show_marks()

    def show_marks(self) -> None:
        """Show which messages are undone, cleared, pinned or removed, and the undo and redo state."""
        log, messages = self._log, self._control.shaper.current().messages
        log.untold, self._shown_undone, self._shaped_away = False, log.undone, self._shaped()
        self.shown_chain, self._shown_lost = log.chain, self._lost_now()
        self._services.emit(marks(log.chat_id, log.undone, messages, log.gone, log.chain, self._shown_lost))

    def _lost_now(self) -> tuple[str, ...]:
        """Return the ids of messages that refer to text that is no longer sent; cheap if the view has not changed."""
        if self._lost[0] != self._log.changes:
            self._lost = self._log.changes, lost_references(self._log.view.messages)
        return self._lost[1]

    def _shaped(self) -> frozenset[str]:
        """Return the ids of messages that are placeholders only in the next request, not in the view."""
        return frozenset(self._control.shaper.current().kept.placeholders)

    def add(self, *messages: Message) -> None:
        """Queue messages for the next request boundary."""
        self._waiting.extend(messages)

    async def join(self, turn_id: str, cycle: int) -> None:
        """Log the waiting messages; a newer message replaces an older one of the same kind and path."""
        async with self._joining:
            if not self._waiting:
                return
            while waiting := tuple(self._waiting):
                await self._log.write(*self._joining_of(waiting, turn_id, cycle))
                # Messages added meanwhile are logged next; withdrawn ones are no longer in the queue.
                self._waiting = deque(known for known in self._waiting if not any(known is one for one in waiting))
        self.show()

    def _joining_of(self, waiting: Sequence[Message], turn_id: str, cycle: int) -> list[EventPayload]:
        """Return the events that add these messages to the view in order; they are logged in one transaction."""
        messages, payloads = self._log.view.messages, list[EventPayload]()
        from codecompanion.session.attachments.named import reference_if_above  # not needed at startup

        for message in waiting:
            older = _older(messages, message)
            if older:
                # Replacing an older attachment is not a change that the user can undo.
                payloads.append(self._removal("detached", older, ChangeReport(superseded=True), messages))
                messages = tuple(known for known in messages if known.id not in older)
            fresh = with_changes(message, cycle=cycle, turn_id=turn_id, ts=self._services.clock())
            fresh = reference_if_above(self._control, self._control.meter.counted(fresh), messages)
            payloads.append(MessageAdded(message=fresh))
            messages = (*messages, fresh)
        return payloads

    async def detach(self, items: tuple[str, ...]) -> None:
        """Remove attachments from the next request; the log keeps them (R-003).

        Raises:
            InputError: a turn is running, whose requests already contain them.
        """
        tools = remove_tools(self._control, items, self._services.new_token()) if self._control.tools.units else None
        if tools is not None:
            self._must_be_idle("Wait until the reply is complete, or stop it with q, then change the context.")
            await self._log.write(tools)
            self._control.offer_tools()
        self._waiting = deque(message for message in self._waiting if message.id not in items)
        known = self._with_updates(
            message for message in self._log.view.messages if message.tag and message.id in items
        )
        if known:
            self._must_be_idle("Wait until the reply is complete, or stop it with q, then change the context.")
            self.rules.forget(m.path or "" for m in self._log.view.messages if m.id in known and m.tag == RULES_TAG)
            from codecompanion.session.attachments.pins import title_of  # not needed at startup

            names = [message.path or title_of(message) for message in self._log.view.messages if message.id in known]
            await self.remove("detached", known, ChangeReport(names=tuple(names)))

    def _with_updates(self, items: Iterable[Message]) -> tuple[str, ...]:
        """Return the ids of these attachments and of later messages about changes to them."""
        removed = tuple(items)
        paths = {message.path for message in removed if message.file is not None}
        updates = (m.id for m in self._log.view.messages if m.tag == UPDATE_TAG and m.path in paths)
        return (*(message.id for message in removed), *updates)

    async def set_live(self, items: tuple[str, ...], live: bool) -> str:
        """Start or stop sending changes to attachments; return a confirmation.

        Raises:
            InputError: an attachment is not a file or buffer, or has the name of a secret file; nothing was changed.
        """
        known = [m for m in (*self._log.view.messages, *self._waiting) if m.id in items]
        paths = [message.path or "" for message in known if message.file is not None]
        if len(paths) < len(items):
            raise InputError("Only files and buffers that are attached as text can be live; attach them again.")
        secret = next((path for path in paths if live and is_secret(path)), None)
        if secret:
            raise InputError(f"{secret} looks like a file of keys or passwords; it is sent only when you attach it.")
        self._waiting = deque(_turned(one, live) if one.id in items else one for one in self._waiting)
        joined = {message.path: None for message in known if all(message.id != one.id for one in self._waiting)}
        if joined:
            await self._log.write_beside(*(live_event(path or "", live) for path in joined))
        self.show()
        what = paths[0] if len(paths) == 1 else counted(len(paths), "attachment")
        return (
            f"{what} is live: changes are sent with your messages."
            if live
            else f"{what} stays as sent: changes are no longer sent."
        )

    async def remove(self, kind: ChangeKind, removed: tuple[str, ...], report: ChangeReport = NO_REPORT) -> None:
        """Log that messages left the view."""
        await self._log.write(self._removal(kind, removed, report, self._log.view.messages))

    def _removal(
        self, kind: ChangeKind, removed: tuple[str, ...], report: ChangeReport, messages: tuple[Message, ...]
    ) -> ViewChanged:
        before = self._control.meter.measure(messages).tokens
        change_id = self._services.new_token()
        return ViewChanged(change_id=change_id, kind=kind, removed=removed, tokens_before=before, report=report)

    async def reread_rules(self, root: Path) -> list[str]:
        """Read changed rule files again (R-549), and remove those that are no longer trusted.

        Return sentences about unreadable and removed files.
        """
        replaced, problems = await self.rules.changed(self._log.view, root)
        await self.take_rules(replaced)
        return [*problems, *await self.drop_distrusted(root)]

    async def drop_distrusted(self, root: Path) -> list[str]:
        """Remove rules that are no longer trusted from the next request; return sentences about the removal."""
        gone = self.rules.distrusted(self._log.view, root)  # reads one small file, which is faster than a thread
        names = tuple(message.path or "" for message in gone)
        self._waiting = deque(
            one for one in self._waiting if one.tag != RULES_TAG or not self.rules.is_distrusted(one.path or "", root)
        )
        told = await self.drop_memory(root)
        if not gone:
            return told
        self.rules.forget(names)
        await self.remove("detached", tuple(message.id for message in gone), ChangeReport(names=names))
        self.show()
        return [f"Rules removed from the chat, no longer trusted: {', '.join(names)}.", *told]

    async def drop_memory(self, root: Path) -> list[str]:
        """Remove the memory if the policy has none, or if it contains text of files that are no longer trusted.

        Return a sentence if trust was the reason.
        """
        memories = [one for one in self._log.view.messages if one.tag == MEMORY_TAG]
        if not memories:
            return []
        has_recall = self._control.policy.recall is not None
        of_folder = any(FILE in one.sources for one in memories)
        memory = self._services.memory_of(root) if of_folder and has_recall else None
        if has_recall and (memory is None or await asyncio.to_thread(memory.may_use_folder)):
            return []
        await self.remove("detached", tuple(one.id for one in memories), ChangeReport(names=("memory",)))
        self.show()
        text = "The memory was removed from the chat: it contains text of a file that is no longer trusted."
        return [text] if has_recall else []

    async def take_rules(self, reread: tuple[Message, ...]) -> None:
        """Log the reread rules, if there are any."""
        if reread:
            counted = tuple(map(self._control.meter.counted, reread))
            change_id = self._services.new_token()
            await self._log.write(ViewChanged(change_id=change_id, kind="rules_reread", replaced=counted))


def _older(messages: Sequence[Message], message: Message) -> tuple[str, ...]:
    """Return the ids of the attachments that the message replaces.

    A note about a file's changes replaces earlier notes, except those the model has already seen: they stay, so that
    the next request has the same prefix as earlier ones (prompt caches).
    """
    tags: tuple[str | None, ...] = (message.tag,)
    if message.tag in CHANGE_TAGS:
        answers = [index for index, known in enumerate(messages) if known.role == "assistant"]
        tags, messages = CHANGE_TAGS, messages[answers[-1] + 1 :] if answers else messages
    if message.file is not None:
        tags = (*tags, UPDATE_TAG)
    return tuple(
        known.id for known in messages if known.tag in tags and known.path == message.path and not known.compacted
    )


def _turned(message: Message, live: bool) -> Message:
    """Return a waiting attachment with its live flag set."""
    return with_changes(
        message, file=None if message.file is None else msgspec.structs.replace(message.file, live=live)
    )
