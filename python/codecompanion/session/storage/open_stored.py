"""Opens a stored chat, showing its newest blocks first, then the whole log (lessons 35, 36; architecture.md)."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Sequence

from codecompanion.counting.tokens import MessageCounter
from codecompanion.errors import CodeCompanionError, ConfigError, InputError, LeaseHeld
from codecompanion.formats.plural import counted
from codecompanion.model.history import ChatCreated, ChatForked, CompactionFailed, LogEvent, MessageAdded, TitleSet
from codecompanion.model.view import project
from codecompanion.session.actions.follow_trust import show_waiting_files
from codecompanion.session.chat.redraw import restored, with_sizes
from codecompanion.session.compaction.compaction_record import STANDARD_CARD, failure
from codecompanion.session.history.chat_log import ChatLog
from codecompanion.session.services import Services
from codecompanion.session.session import Session
from codecompanion.session.storage.first_piece import PAINT_S, Newest, read_newest
from codecompanion.session.storage.missing_chats import catch_up, read_mended
from codecompanion.session.storage.older_pieces import send_older_pieces
from codecompanion.session.storage.open_chat import announce
from codecompanion.session.storage.resume import model_of, policy_of, repairs
from codecompanion.store.log.tail_state import TailState
from codecompanion.store.store import durable
from codecompanion.wire.events import Restored, Severity, StoredSubmit
from codecompanion.wire.requests import OpenChat

_log = logging.getLogger(__name__)


async def open_stored(services: Services, request: OpenChat) -> Session | None:
    """Open and repair a stored chat and return it; None if another Neovim owns it, which makes it read-only here.

    Raises:
        InputError: the chat does not exist.
        StoreError: the chat cannot be read.
    """
    chat_id, store, read_only = request.resume, services.store, False
    try:
        await durable(store.acquire(chat_id))
    except LeaseHeld:
        read_only = True  # the editor reports it, once
    newest = await _newest(services, request)
    shown = await _show_newest(services, request, newest, read_only) if newest is not None else None
    back = 0 if read_only else await catch_up(services, chat_id)
    events, damaged = await read_mended(services, chat_id, may_write=not read_only)
    if not events:
        await durable(store.release(chat_id))
        raise InputError(f"No stored chat has the id {chat_id!r}; it may have been deleted.")
    # Work proportional to the log runs in threads, so replies in other chats keep streaming.
    log = ChatLog(store, chat_id, await asyncio.to_thread(project, events))
    await asyncio.to_thread(log.resume, events)
    mended = () if read_only else await _repair(services, log, events, request.shown)
    if not read_only and not request.purpose and _is_unlisted(events):
        await log.write(TitleSet(title=log.title, by_user=True))  # an opened chat appears in the list of chats
    events = [*events, *mended]
    session = Session(services, log, request.snapshot)
    policy, model = await asyncio.to_thread(lambda: (policy_of(events), model_of(events)))
    is_own = _use_stored(session, policy, model, is_told=shown is not None)
    await session.control.read_environment(session.root())
    if shown is None:
        drafts = await durable(store.take_drafts(chat_id, request.copy, owned=not read_only))
        stored = await asyncio.to_thread(_stored_submits, events, request.unconfirmed)
        announce(session, resumed=True, read_only=read_only, drafts=drafts, stored=stored)
    if shown is not None:
        session.context.show()
    session.context.show_marks()  # names the folds of messages that left the view
    if shown is None:
        for piece in await asyncio.to_thread(restored, chat_id, events, session.meter.scaled):
            session.emit(piece)
        if not read_only:
            store.save_tail_state(chat_id, await asyncio.to_thread(TailState().after, events))
    # Done last, because reading the reports of a long chat takes longer than drawing its messages.
    if is_own:
        await asyncio.to_thread(session.meter.resume, events, session.adapter_name, session.model)
    session.show_meter()
    if back:
        text = f"This chat was older than its checkpoint: {counted(back, 'message')} restored."
        session.notice(Severity.WARN, text)
    if damaged:
        session.notice(Severity.WARN, damaged)
    _tell_interrupted(session, mended)
    if read_only:
        if shown is not None:
            await send_older_pieces(session, events, shown, read_only=True)
        return None
    await session.grants.restore()
    await _refresh_rules(session)
    await session.context.rules.know(session.root())
    await show_waiting_files(session)
    await _render_ahead(session)
    if shown is not None:
        session.send_older(lambda: send_older_pieces(session, events, shown, read_only=False))
    await _settle_unsaved(session, events)
    return session


async def _settle_unsaved(session: Session, events: Sequence[LogEvent]) -> None:
    """Update changes that were unsaved when the chat was closed; most chats have none."""
    from codecompanion.session.files.change_list import changes_of  # not needed at startup

    if any(change.is_unsaved for change in changes_of(events)):
        await session.changes.settle()


async def _newest(services: Services, request: OpenChat) -> Newest | None:
    """Return the newest blocks of a long chat, or None if the editor's text must first be compared with the log."""
    if request.shown or request.unconfirmed:
        return None
    return await asyncio.to_thread(read_newest, services, request.resume)


async def _show_newest(services: Services, request: OpenChat, newest: Newest, read_only: bool) -> Restored:
    """Announce a long chat, show its newest blocks and return them. Its requests wait until the log has been read."""
    chat_id, chosen = request.resume, newest.state.models[-1]
    # Only the limits and adapter names of this session are used; it has not read the log.
    session = Session(services, ChatLog(services.store, chat_id), request.snapshot)
    session.log.title = newest.state.title
    _use_stored(session, newest.state.policy, (chosen.adapter, chosen.model))
    drafts = await durable(services.store.take_drafts(chat_id, request.copy, owned=not read_only))
    announce(session, resumed=True, read_only=read_only, drafts=drafts, shows_context=False)
    entries = tuple(with_sizes(newest.entries, session.meter.scaled))
    shown = Restored(chat=chat_id, entries=entries, first=True)
    session.emit(shown)
    await asyncio.sleep(PAINT_S)
    return shown


def _is_unlisted(events: Sequence[LogEvent]) -> bool:
    """Return whether the chat has had no chat buffer yet, and no title from the user."""
    began = events[0].payload
    payloads = [event.payload for event in events]
    is_listed = any(isinstance(p, ChatForked) or (isinstance(p, TitleSet) and p.by_user) for p in payloads)
    return isinstance(began, ChatCreated) and bool(began.purpose) and not is_listed


async def _render_ahead(session: Session) -> None:
    """Render the current view in a thread, so that the first request renders only new messages."""
    try:
        control, services = session.control, session.services
        shaped = control.shaper.current()
        if not session.model or not shaped.messages:
            return
        request = control.shaper.request_of(shaped, 0)
        adapter = services.adapters.get(session.adapter_name)
        await asyncio.to_thread(adapter.render, request)
        await asyncio.to_thread(session.parts.mix, request)
    except CodeCompanionError as error:
        _log.info("the next request cannot be rendered yet: %s", error)  # the request itself will report it
    except Exception:
        _log.exception("rendering ahead failed; the chat opens anyway")


async def _repair(services: Services, log: ChatLog, events: Sequence[LogEvent], shown: str) -> Sequence[LogEvent]:
    """Write and return the events that an interrupted host left out; `shown`: the reply as shown in the editor."""
    partial = await asyncio.to_thread(services.store.load_partial, log.chat_id)
    is_arriving = bool(partial.strip()) or (bool(log.view.messages) and log.view.messages[-1].role != "assistant")
    if is_arriving and shown.startswith(partial.strip()):
        partial = shown or partial
    count = MessageCounter(services.count_text).message

    mending = await asyncio.to_thread(repairs, events, log.view, partial, services.new_token, services.clock(), count)
    return await log.write(*mending) if mending else ()


def _tell_interrupted(session: Session, mended: Sequence[LogEvent]) -> None:
    """Report that an interrupted compaction left no new summary, in the policy's wording (R-327, R-332)."""
    if any(isinstance(event.payload, CompactionFailed) for event in mended):
        stages = session.control.policy.stages
        card = next((stage.card for stage in stages if stage.event == "context_compacted"), STANDARD_CARD)
        session.control.notice(Severity.WARN, failure(card, "it was interrupted"), until_compacted=True)


def _use_stored(session: Session, policy: str, model: tuple[str, str], *, is_told: bool = False) -> bool:
    """Restore the chat's policy and adapter; replace those no longer configured, and report that once.

    Return whether the chat kept its own adapter.
    """
    adapter_name, model_name = model
    chat = session.services.settings.chat
    try:
        session.control.use_policy(policy)
    except ConfigError:
        name = session.control.policy.name
        if not is_told:
            session.notice(
                Severity.WARN, f"The chat's policy {policy!r} is no longer configured; {name} is used instead."
            )
    if adapter_name in session.services.adapters.names():
        session.control.use_model(adapter_name, model_name)
        return True
    session.control.use_model(chat.adapter, chat.model)
    if not is_told:
        text = f"The chat's adapter {adapter_name!r} is no longer configured; {chat.adapter} is used instead."
        session.notice(Severity.WARN, text)
    return False


def _stored_submits(events: Sequence[LogEvent], keys: Sequence[str]) -> tuple[StoredSubmit, ...]:
    """Return the submits that a killed host had stored but not reported."""
    found = (
        [e.payload for e in events if isinstance(e.payload, MessageAdded) and e.payload.submit in keys] if keys else []
    )
    return tuple(StoredSubmit(a.submit, a.message.id, a.message.text, a.message.tokens) for a in found)


async def _refresh_rules(session: Session) -> None:
    """Apply changes of rule files made while the chat was closed."""
    fresh = await session.context.rules.resume(session.log.view, session.root())
    for sentence in await session.context.drop_distrusted(session.root()):
        session.notice(Severity.WARN, sentence)
    if fresh:
        await session.context.take_rules(fresh)
        session.show_meter()
