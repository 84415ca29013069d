"""Branches of a chat: edit and resend, `/fork`.

A branch is a separate chat. Its log begins with a copy of the original log up to the fork, followed by `ChatForked`:
projecting it yields the view, undo, pins and compactions at the fork, whatever has happened to the messages since. Only
costs after `ChatForked` are counted. The copy is one transaction, and the text to send is stored with it as the draft,
so if the process is killed, the branch is either complete or absent. The original chat is not changed.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Iterator, Sequence

import msgspec

from codecompanion.errors import InputError
from codecompanion.formats.regex import regex
from codecompanion.model.change_report import ChangeReport
from codecompanion.model.chosen_code import GATHERED_EVENT, choice_event, chosen_in
from codecompanion.model.history import (
    ChatForked,
    EventPayload,
    LogEvent,
    MessageAdded,
    PolicyEvent,
    TitleSet,
    TurnEnded,
    TurnStarted,
    ViewChanged,
)
from codecompanion.model.live_files import files_in, live_event
from codecompanion.model.messages import (
    GATHERED_TAG,
    LOOKING_TAG,
    UPDATE_TAG,
    is_attachment,
    is_question_context,
    is_typed_by_user,
)
from codecompanion.model.view import View, project
from codecompanion.session.codebase.shown_code import TOLD_EVENT
from codecompanion.session.history.titles import given_title
from codecompanion.session.history.undo import undone_ids
from codecompanion.session.services import Services
from codecompanion.store.log.totals import SessionInfo
from codecompanion.store.store import durable
from codecompanion.wire.requests import ForkChat

_NUMBER = regex(r" \((\d{1,9})\)$")
_ALONG = frozenset({GATHERED_TAG, LOOKING_TAG})


class Cut(msgspec.Struct, frozen=True):
    """The part of a log that goes into the branch: the events up to `last_seq` except `left_out`, then `more`.

    `is_untitled`: the message that gave the chat its title is not in it.
    """

    last_seq: int
    left_out: frozenset[int] = frozenset()
    more: tuple[EventPayload, ...] = ()
    is_untitled: bool = False


def cut_before(events: Sequence[LogEvent], message_id: str) -> Cut:
    """Return the cut for editing a message: the log before it without its gathered code, and the attachments.

    Raises:
        InputError: the message does not exist, or the user did not type it.
    """
    place = next((at for at, event in enumerate(events) if _is_message(event, message_id)), None)
    edited = events[place].payload if place is not None else None
    if place is None or not isinstance(edited, MessageAdded) or not is_typed_by_user(edited.message):
        raise InputError("Only your own messages can be edited and resent.")
    kept, turn_id = events[:place], edited.message.turn_id
    is_first = not any(isinstance(e.payload, MessageAdded) and is_typed_by_user(e.payload.message) for e in kept)
    names = [event.payload for event in events if isinstance(event.payload, TitleSet)]
    is_untitled = is_first and not any(name.by_user for name in names)
    left_out = {event.seq for event in kept if is_untitled and isinstance(event.payload, TitleSet)}
    left_out |= set(_code_for(kept))
    more: list[EventPayload] = []
    if turn_id and _has_begun(kept, turn_id):
        if any(_is_question_or_reply(event, turn_id) for event in kept):
            more.append(TurnEnded(turn_id=turn_id, reason="stopped"))
        else:  # the turn began with this message
            left_out |= {event.seq for event in kept if _is_of_turn(event, turn_id)}
    last_seq = kept[-1].seq if kept else 0
    before = project([event for event in kept if event.seq not in left_out])
    more.extend(_attached_since(events, place, before))
    more.extend(_pinned_since(events, [event for event in kept if event.seq not in left_out]))
    more.extend(live_event(file.path, file.live) for file in files_in(events, undone_ids(events)).values())
    return Cut(last_seq, frozenset(left_out), tuple(more), is_untitled)


def _code_for(kept: Sequence[LogEvent]) -> Iterator[int]:
    """Yield the sequence numbers of the code gathered for the edited message, and of the notes below it."""
    for event in reversed(kept):
        if not _is_question_context(event) and not (
            isinstance(event.payload, PolicyEvent) and event.payload.name in (GATHERED_EVENT, TOLD_EVENT)
        ):
            return
        yield event.seq


def _attached_since(events: Sequence[LogEvent], place: int, before: View) -> Iterator[EventPayload]:
    """Yield the attachment changes meant for the chat's next message, which in the branch is the edited one."""
    ended = max((at for at, event in enumerate(events) if isinstance(event.payload, TurnEnded)), default=-1)
    fresh = events[max(place, ended) + 1 :]
    undone, here = frozenset(undone_ids(events)), {message.id for message in project(events).messages}
    for event in fresh:
        match event.payload:
            case MessageAdded(message=message) if message.id in here and is_attachment(message):
                older = tuple(m.id for m in before.messages if (m.tag, m.path) == (message.tag, message.path))
                if older:
                    report = ChangeReport(superseded=True)
                    yield ViewChanged(change_id=f"{message.id}-new", kind="detached", removed=older, report=report)
                yield event.payload
            case ViewChanged(kind="detached") as change if change.change_id not in undone:
                gone = tuple(message.id for message in before.messages if message.id in change.removed)
                if gone and not change.report.superseded:
                    yield msgspec.structs.replace(change, removed=gone)
            case _:
                pass


def _pinned_since(events: Sequence[LogEvent], kept: Sequence[LogEvent]) -> Iterator[EventPayload]:
    """Yield events that make the branch's pinned code equal to the currently pinned code."""
    now, then = chosen_in(events).pinned, chosen_in(kept).pinned
    yield from (choice_event(piece, "") for piece in then if piece not in now)
    yield from (choice_event(piece, "pinned") for piece in now if piece not in then)


def _is_message(event: LogEvent, message_id: str) -> bool:
    return isinstance(event.payload, MessageAdded) and event.payload.message.id == message_id


def _has_begun(events: Iterable[LogEvent], turn_id: str) -> bool:
    return any(isinstance(event.payload, TurnStarted) and event.payload.turn_id == turn_id for event in events)


def _is_question_or_reply(event: LogEvent, turn_id: str) -> bool:
    """Return whether the event is a message of the turn, other than an attachment or the context of a question."""
    payload = event.payload
    if not isinstance(payload, MessageAdded) or payload.message.turn_id != turn_id:
        return False
    return not is_attachment(payload.message) and payload.message.tag != UPDATE_TAG and not _is_question_context(event)


def _is_question_context(event: LogEvent) -> bool:
    if not isinstance(event.payload, MessageAdded):
        return False
    return event.payload.message.tag in _ALONG or is_question_context(event.payload.message)


def _is_of_turn(event: LogEvent, turn_id: str) -> bool:
    return not isinstance(event.payload, MessageAdded) and getattr(event.payload, "turn_id", "") == turn_id


def next_title(title: str, family: Iterable[SessionInfo]) -> str:
    """Return the title of a new branch: the same title with the next free number."""
    base = _NUMBER.sub("", title)
    numbers = [
        int(found[1]) for info in family if (found := _NUMBER.search(info.title)) and info.title.startswith(base)
    ]
    return f"{base} ({max(numbers, default=1) + 1})"


async def fork(services: Services, request: ForkChat) -> str:
    """Create the branch and return its id; if the branch already exists, only replace its draft.

    Raises:
        InputError: the chat or message does not exist, or the title is empty.
        StoreError: the branch could not be stored; none was created.
    """
    store, chat_id = services.store, request.fork or services.new_token()
    last_seq = await asyncio.to_thread(store.last_seq, request.chat)
    source = await asyncio.to_thread(store.find_session, request.chat)
    if not last_seq:
        raise InputError(f"No stored chat has the id {request.chat!r}")
    if await asyncio.to_thread(store.knows, chat_id):
        # On a retry, the text may have changed.
        await durable(store.save_draft(chat_id, request.draft))
        return chat_id
    cut = Cut(last_seq)
    if request.at:  # a branch of the whole chat is made without reading it
        events = await asyncio.to_thread(store.load_events, request.chat)
        cut = await asyncio.to_thread(cut_before, events, request.at)
    family = (source.family if source else "") or request.chat
    title = source.title if source else ""
    forked = ChatForked(from_chat=request.chat, family=family, at_message=request.at, from_title=title)
    payloads: list[EventPayload] = [*cut.more, forked]
    if request.title:
        payloads.append(TitleSet(title=given_title(request.title), by_user=True))
    elif title and not cut.is_untitled:
        others = await asyncio.to_thread(store.list_family, family)
        payloads.append(TitleSet(title=next_title(title, others)))
    await durable(store.fork(request.chat, chat_id, cut.last_seq, cut.left_out, payloads, request.draft))
    return chat_id


async def list_branches(services: Services, chat_id: str) -> list[dict[str, object]]:
    """Return the tree of branches that a chat belongs to, each branch after its parent and with its `depth`."""
    store = services.store
    this = await asyncio.to_thread(store.find_session, chat_id)
    if this is None:
        return []
    found = await asyncio.to_thread(store.list_family, this.family or chat_id)
    known = {info.id for info in found}
    children: dict[str, list[SessionInfo]] = {}
    for info in sorted(found, key=lambda info: info.created):
        # A branch whose parent was deleted is listed at the root.
        children.setdefault(info.forked_from if info.forked_from in known else "", []).append(info)
    rows: list[dict[str, object]] = []
    waiting = [(info, 0) for info in reversed(children.get("", []))]
    while waiting:
        info, depth = waiting.pop()
        rows.append({**msgspec.to_builtins(info), "depth": depth, "current": info.id == chat_id})
        waiting.extend((child, depth + 1) for child in reversed(children.get(info.id, [])))
    return rows
