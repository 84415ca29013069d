"""Restores a chat from its files beside the database (R-473…R-477), even if the database has lost it.

The restored chat is a new one, so nothing is lost: the old chat is unchanged and can still be resumed. The restored
chat takes the old id only if the database no longer knows the old chat. It is written to the log and then opened like
any other (`session.storage.open_chat`); a note in it names its source.
"""

from __future__ import annotations

import asyncio
import datetime
import logging
from collections.abc import Sequence
from typing import Any

import msgspec

from codecompanion.context.checkpoints.event_conversation import (
    conversation_from_events,
    conversation_from_spans,
    usage_from_events,
)
from codecompanion.context.checkpoints.precedence import NAMES, Candidate, RestoredState, choose
from codecompanion.context.named_events import Occasion, events_of
from codecompanion.context.summary_text.recall_keys import without_keys
from codecompanion.counting.tokens import MessageCounter
from codecompanion.errors import InputError, StoreError
from codecompanion.formats import typed
from codecompanion.formats.plural import counted
from codecompanion.model.checkpoint import Span, UsageTotals
from codecompanion.model.history import ChatCreated, EventPayload, LogEvent, MessageAdded, TitleSet
from codecompanion.model.messages import SUMMARY_TAG, Message, with_changes
from codecompanion.session.checkpoint_files.state_writer import StateWriter
from codecompanion.session.services import Services
from codecompanion.store.files.checkpoints import CheckpointFiles, file_name
from codecompanion.store.store import Store, durable

_log = logging.getLogger(__name__)


async def restore_chat(services: Services, wanted: str, cwd: str) -> dict[str, Any]:
    """Restore the chat, or the checkpoint `<chat>/<name>`; return `{chat, source, note}` for the stored result.

    Raises:
        InputError: there is nothing to restore, or nothing is kept outside the database.
        StoreError: the restored chat could not be stored.
    """
    keeping = services.keeping
    if keeping is None:
        raise InputError("No checkpoints: the state folder cannot be used.")
    chat, _, name = wanted.partition("/")
    events = await asyncio.to_thread(_events_of, services.store, chat)
    now = services.clock()
    state = await asyncio.to_thread(read_state, keeping.checkpoints, chat, name, events, now)
    chat_id = f"{chat}-{services.new_token()}" if events else chat
    note = describe(state, chat)
    await durable(services.store.acquire(chat_id))
    try:
        # Its newest checkpoint records how far the log had come; that has not changed (`missing_chats`).
        newest_seq = 0 if events else (await asyncio.to_thread(keeping.checkpoints.newest_seqs)).get(file_name(chat), 0)
        payloads = _payloads(services, state, chat, note, cwd)
        # A chat restored under its own id has the time of its checkpoint; a copy is new.
        at = state.snapshot.timestamp / 1000 if not events and state.snapshot.timestamp else None
        await durable(services.store.append(chat_id, payloads, after_seq=newest_seq, at=at))
        if state.snapshot.queues.pending_follow_ups:
            await durable(services.store.save_draft(chat_id, "\n\n".join(state.snapshot.queues.pending_follow_ups)))
    finally:
        await durable(services.store.release(chat_id))
    await _upgrade_files(services, keeping.checkpoints, state, {chat, chat_id})
    return {"chat": chat_id, "source": state.source, "note": note}


def read_state(files: CheckpointFiles, chat: str, name: str, events: Sequence[LogEvent], now: float) -> RestoredState:
    """Return the state to restore, from the first usable source in the documented order. Blocks.

    Raises:
        InputError: there is no usable source.
    """
    candidates = [
        Candidate("checkpoint" if stored.kind == "checkpoint" else "snapshot", stored.where, stored.raw, stored.problem)
        for stored in files.payloads_of(chat, name)
    ]

    def from_record() -> tuple[Message, ...]:
        return conversation_from_events(events, now) or conversation_from_spans(_spans(files, chat), now)

    usage = usage_from_events(events) if events else UsageTotals()
    state = choose(candidates, from_record, usage, named=bool(name))
    if state is None:
        told = f" ({candidates[0].problem})" if candidates and candidates[0].problem else ""
        called = f"{chat}/{name}" if name else chat
        if events and not name:
            raise InputError(f'The chat "{called}" cannot be restored{told}.')
        raise InputError(f'No stored chat or checkpoint is called "{called}"{told}; nothing was restored.')
    _log.info(
        "restored from source %d; checkpoint of %d, snapshot of %d",
        state.source,
        state.checkpoint_at,
        state.snapshot_at,
    )
    return state


def describe(state: RestoredState, chat: str) -> str:
    """Return the note about the restore: source (1–5), type, time, message count, upgrade, skipped sources."""
    snapshot = state.snapshot
    when = ""
    if snapshot.timestamp:
        when = f", {datetime.datetime.fromtimestamp(snapshot.timestamp / 1000).astimezone():%Y-%m-%d %H:%M}"
    kind = state.raw.get("checkpointKind")
    kind = f" ({kind.replace('_', '-')})" if isinstance(kind, str) and state.source in (1, 3) else ""
    text = (
        f"Restored chat {chat} from {NAMES[state.source]}{kind}, source {state.source} of 5{when},"
        f" {counted(len(state.messages), 'message')}."
    )
    if state.upgraded:
        text += " It was upgraded to the current format."
    if state.problems:
        text += f" Skipped: {'; '.join(state.problems)}."
    return text


def _spans(files: CheckpointFiles, chat: str) -> list[Span]:
    found = []
    for raw in files.load_spans(chat):
        try:
            found.append(typed.convert(raw, Span))
        except msgspec.ValidationError as error:
            _log.warning("a stored span is damaged: %s", error)
    return found


def _events_of(store: Store, chat: str) -> list[LogEvent]:
    try:
        return store.load_events(chat)
    except StoreError as error:  # the checkpoint files exist for this case
        _log.warning("the database cannot be read: %s", error)
        return []


def without_old_keys(message: Message) -> Message:
    """Return a message without recall keys from another log, which would point to the wrong messages here."""
    if message.tag != SUMMARY_TAG or not isinstance(message.content, str):
        return message
    return with_changes(message, content=without_keys(message.content))


def _payloads(services: Services, state: RestoredState, chat: str, note: str, cwd: str) -> list[EventPayload]:
    """Return the log events of the restored chat."""
    snapshot, settings = state.snapshot, services.settings.chat
    counter = MessageCounter(services.count_text)
    created = ChatCreated(
        adapter=snapshot.adapter or settings.adapter,
        model=snapshot.model_id if snapshot.adapter else settings.model,
        policy=snapshot.policy or settings.policy,
        cwd=snapshot.cwd or cwd,
    )
    title = snapshot.title or next((m.text for m in state.messages if m.role == "user" and not m.tag), "")
    more = {
        "source": state.source,
        "chat": chat,
        "messages": len(state.messages),
        "upgraded": state.upgraded,
        "checkpointAt": state.checkpoint_at,
        "snapshotAt": state.snapshot_at,
        "note": note,
    }
    kept = [without_old_keys(m) for m in state.messages]
    said = [MessageAdded(message=with_changes(m, tokens=counter.message(m))) for m in kept]
    return [
        created,
        TitleSet(title=" ".join(title.split())[:60]),
        *said,
        *events_of(("session_restored",), Occasion(more=more)),
    ]


async def _upgrade_files(services: Services, files: CheckpointFiles, state: RestoredState, chats: set[str]) -> None:
    """Write the restored state in the current format, for the restored chat and in place of an older format (R-476)."""
    keeping = services.keeping
    if keeping is None or state.source == 5:
        return
    for chat_id in sorted(chats):
        is_new = not (await asyncio.to_thread(files.newest, chat_id))
        if not (is_new or state.upgraded) or services.store.foreign_lease(chat_id) is not None:
            continue
        writer = StateWriter(chat_id, services.store, files, keeping.redact, keeping.keys_known, 0)
        try:
            await asyncio.to_thread(writer.adopt, state, services.new_token(), services.clock())
        except StoreError as error:
            _log.warning("the restored state could not be written: %s", error)
