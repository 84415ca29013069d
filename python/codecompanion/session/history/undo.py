"""Derives a chat's undo and redo state, and the stages paused after an undo, from the log alone (R-545).

Only the newest change can be undone, because a newer change may depend on an older one (such as a summary of a
summary). To undo a change, the log is replayed without it, so the view is exactly as before, plus later messages. This
module has no side effects; `session.actions.view_edits` carries out the undo.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import msgspec

from codecompanion.context.change import cuts_of
from codecompanion.errors import InputError
from codecompanion.formats.plural import cleared_words, counted
from codecompanion.model.history import (
    ChangeUndone,
    EventPayload,
    LogEvent,
    MessageAdded,
    PauseEnded,
    PolicySet,
    TurnStarted,
    ViewChanged,
)
from codecompanion.model.messages import Message, is_typed_by_user
from codecompanion.model.view import answer_turn, cycle_after, is_of_answer
from codecompanion.session.history.messages_out_of_view import by_kind
from codecompanion.wire.events import Replaced, ViewMarks

UNDOABLE = frozenset({"edited", "compacted", "detached", "cleared", "pinned", "unpinned", "restored", "tools_chosen"})
"""Kinds of changes that the user can undo; the others repair the history or belong to later messages."""
_REMOVING = frozenset({"edited", "compacted", "detached", "cleared", "regenerated"})
_PAUSED_CYCLES = 2
"""Number of cycles that a pause lasts, including the current one; between turns, the next request starts the next
cycle.
"""


class Chain(msgspec.Struct, frozen=True):
    """The changes that can be undone, oldest first, and those that can be redone, with the next one last.

    `blocked`: whether an irreversible change has since replaced a message that the newest change had changed.
    """

    undoable: tuple[ViewChanged, ...] = ()
    redoable: tuple[ViewChanged, ...] = ()
    blocked: bool = False
    replaced: tuple[Replaced, ...] = ()
    """Replies that were replaced by a new reply, whether or not the replacement can still be undone."""

    @property
    def has_answer(self) -> bool:
        """Return whether the last answer can be swapped for another, which is possible until the chat continues."""
        return any(answer_turn(change) for change in (*self.undoable, *self.redoable))

    def to_undo(self, change_id: str) -> ViewChanged:
        """Return the newest change, to be undone; `change_id`, if given, must be its id.

        Raises:
            InputError: there is nothing to undo, the id is another change's, or the change can no longer be undone.
        """
        if not self.undoable:
            raise InputError("Nothing to undo: nothing in this chat was cleared, compacted, detached or pinned.")
        newest = self.undoable[-1]
        if change_id and change_id != newest.change_id:
            raise InputError(f"Only the newest change can be undone: {outcome(newest)}.")
        if self.blocked:
            raise InputError(
                f"The newest change ({outcome(newest)}) can no longer be undone: the messages were repaired afterwards."
            )
        return newest

    def to_redo(self, change_id: str) -> ViewChanged:
        """Return the change undone last, to be redone; `change_id`, if given, must be its id.

        Raises:
            InputError: there is nothing to redo, or the id is another change's.
        """
        if not self.redoable:
            raise InputError("Nothing to redo: nothing was undone, or the chat has changed since.")
        last = self.redoable[-1]
        if change_id and change_id != last.change_id:
            raise InputError(f"Only the most recently undone change can be redone: {outcome(last)}.")
        return last


def chain_of(events: Sequence[LogEvent]) -> Chain:
    """Return the current undo and redo state; any new change of the view clears the redo list.

    A new answer can be swapped with the old one as long as it ends the chat, because the next message replies to the
    current one.
    """
    undoable: list[ViewChanged] = []
    redoable: list[ViewChanged] = []
    mended: list[tuple[int, ViewChanged]] = []
    places: dict[str, int] = {}
    has_answer = False
    for place, event in enumerate(events):
        match event.payload:
            case MessageAdded(message=message):
                # Fast path for most messages: without a new answer among the changes, nothing has to be checked.
                if has_answer and (is_typed_by_user(message) or is_of_answer(message)):
                    undoable = _without_settled(undoable, message)
                    redoable = [change for change in redoable if not answer_turn(change)]
                    has_answer = any(map(answer_turn, undoable))
            case ViewChanged() as change:
                redoable.clear()
                places[change.change_id] = place
                has_answer = has_answer or bool(answer_turn(change))
                if is_offered(change):
                    undoable.append(change)
                else:
                    mended.append((place, change))
            case ChangeUndone(change_id=change_id, redone=True):
                back = next((change for change in redoable if change.change_id == change_id), None)
                if back is not None:
                    redoable.remove(back)
                    undoable.append(back)
            case ChangeUndone(change_id=change_id, by_user=by_user):
                gone = next((change for change in undoable if change.change_id == change_id), None)
                if gone is not None:
                    undoable.remove(gone)
                if not by_user:
                    redoable.clear()
                elif gone is not None:
                    redoable.append(gone)
            case _:
                pass
    return Chain(tuple(undoable), tuple(redoable), _is_blocked(undoable, mended, places), replaced_answers(events))


def is_offered(change: ViewChanged) -> bool:
    """Return whether the user can undo the change."""
    if change.kind == "regenerated":
        return bool(answer_turn(change))
    return change.kind in UNDOABLE and not change.report.superseded


def _without_settled(undoable: list[ViewChanged], message: Message) -> list[ViewChanged]:
    """Return the changes that can still be undone after this message.

    If the message is not part of a new answer, the chat has continued, so replaced answers can no longer be swapped.
    """
    turns = {turn for change in undoable if (turn := answer_turn(change))}
    if not turns or (is_of_answer(message) and message.turn_id in turns):
        return undoable
    return [change for change in undoable if not answer_turn(change)]


def replaced_answers(events: Sequence[LogEvent]) -> tuple[Replaced, ...]:
    """Return the replies that were replaced by a new reply, each with the ids of its messages."""
    undone = frozenset(undone_ids(events))
    changes = [e.payload for e in events if isinstance(e.payload, ViewChanged) and e.payload.kind == "regenerated"]
    if not changes:
        return ()
    said: dict[str, list[str]] = {}
    for event in events:
        if isinstance(event.payload, MessageAdded) and is_of_answer(event.payload.message):
            said.setdefault(event.payload.message.turn_id, []).append(event.payload.message.id)
    return tuple(
        Replaced(change.change_id, tuple(said.get(answer_turn(change), ())) if is_undone else change.removed, is_undone)
        for change in changes
        for is_undone in (change.change_id in undone,)
    )


def chain_after(chain: Chain, payload: EventPayload) -> Chain:
    """Return the undo and redo state after one more event; only `chain_of` determines `blocked`."""
    match payload:
        case ViewChanged() as change:
            undoable = (*chain.undoable, change) if is_offered(change) else chain.undoable
            replaced = chain.replaced
            if change.kind == "regenerated":
                replaced = (*replaced, Replaced(change.change_id, change.removed))
            return Chain(undoable, replaced=replaced)
        case MessageAdded(message=message) if chain.has_answer and (is_typed_by_user(message) or is_of_answer(message)):
            undoable = tuple(_without_settled(list(chain.undoable), message))
            redoable = tuple(change for change in chain.redoable if not answer_turn(change))
            return Chain(undoable, redoable, replaced=chain.replaced)
        case _:
            return chain


def _is_blocked(
    undoable: Sequence[ViewChanged], mended: Sequence[tuple[int, ViewChanged]], places: dict[str, int]
) -> bool:
    """Return whether an irreversible change has since replaced a message that the newest change added to the view."""
    if not undoable:
        return False
    newest = undoable[-1]
    touched = {message.id for message in newest.replaced} | {entry.message.id for entry in newest.inserted}
    since = (change for place, change in mended if place > places[newest.change_id])
    return any(message.id in touched for change in since for message in change.replaced)


def tools_chosen(events: Sequence[LogEvent], undone: Sequence[str]) -> tuple[str, ...]:
    """Return the tools and groups chosen at the end of a log, or () if the configuration applies."""
    chosen: tuple[str, ...] = ()
    for event in events:
        change = event.payload
        if isinstance(change, ViewChanged) and change.tools is not None and change.change_id not in undone:
            chosen = change.tools
    return chosen


def undone_ids(events: Sequence[LogEvent]) -> tuple[str, ...]:
    """Return the ids of the changes that are currently undone, by any undo, in order."""
    undone: dict[str, None] = {}
    for event in events:
        if isinstance(event.payload, ChangeUndone):
            undone.pop(event.payload.change_id, None)
            if not event.payload.redone:
                undone[event.payload.change_id] = None
    return tuple(undone)


def marks(
    chat_id: str,
    undone: tuple[str, ...],
    messages: Sequence[Message],
    gone: Mapping[str, str],
    chain: Chain,
    lost: tuple[str, ...] = (),
) -> ViewMarks:
    """Return the marks of messages that are in the next request or were removed from it."""
    newest = chain.undoable[-1] if chain.undoable else None
    return ViewMarks(
        chat=chat_id,
        undone=undone,
        cleared=tuple(message.id for message in messages if message.edited or message.compacted or message.left_out),
        cut=cuts_of(messages),
        pinned=tuple(message.id for message in messages if message.pinned),
        gone=by_kind(gone),
        next_undo=newest.change_id if newest else "",
        next_redo=chain.redoable[-1].change_id if chain.redoable else "",
        # Part of an answer may have been restored: it is then folded like any other removed message, even if another
        # change has removed that part again.
        replaced=tuple(
            answer for answer in chain.replaced if all(gone.get(item) == "regenerated" for item in answer.items)
        ),
        undo_kind=newest.kind if newest else "",
        lost=lost,
    )


def removes_messages(change: ViewChanged) -> bool:
    """Return whether the change removed messages that the user may want to restore."""
    return change.kind in _REMOVING and bool(change.removed or change.replaced)


class Pauses(msgspec.Struct, frozen=True):
    """The stages paused because the user undid their changes, which the next request would otherwise repeat.

    `paused`: the events of stages that wait for the user; an undone edit also pauses compactions, because they remove
    more. After a restored message, automatic stages are paused `until` a cycle (exclusive).
    """

    until: int = 0
    paused: frozenset[str] = frozenset()

    def kinds(self, cycle: int) -> frozenset[str]:
        """Return the events of the stages paused in this cycle after a restored message."""
        return _AUTOMATIC if cycle < self.until else frozenset()

    def after(self, payload: EventPayload, cycle: int) -> Pauses:
        """Return the pauses after one more event of a log whose view is in this cycle; `pauses_of` handles undos."""
        if ends_pauses(payload):
            return Pauses()
        if isinstance(payload, ViewChanged) and payload.kind == "restored":
            return msgspec.structs.replace(self, until=max(self.until, cycle + _PAUSED_CYCLES))
        return self


_AUTOMATIC = frozenset({"context_edited", "context_compacted"})
PAUSED_BY = {"edited": _AUTOMATIC, "compacted": frozenset({"context_compacted"})}


def ends_pauses(payload: EventPayload) -> bool:
    """Return whether the event ends the pauses: a compaction, `/clear`, a chosen policy or an explicit resume."""
    match payload:
        case PauseEnded() | PolicySet():
            return True
        case ViewChanged(kind=kind):
            return kind in ("compacted", "cleared")
        case _:
            return False


def pauses_of(events: Sequence[LogEvent]) -> Pauses:
    """Return the pauses in effect at the end of a log."""
    kinds: dict[str, str] = {}
    pauses: dict[str, int] = {}
    paused: dict[str, frozenset[str]] = {}
    cycle = 0
    for event in events:
        if isinstance(event.payload, MessageAdded):
            cycle = cycle_after(cycle, event.payload.message)
            continue
        if ends_pauses(event.payload):
            pauses, paused = {}, {}
        match event.payload:
            case ViewChanged(change_id=change_id, kind=kind):
                kinds[change_id] = kind
                if kind == "restored":
                    pauses[change_id] = cycle + _PAUSED_CYCLES
            case TurnStarted(cycle=began):
                cycle = max(cycle, began)
            case ChangeUndone(change_id=change_id, redone=redone, by_user=by_user) if by_user:
                undone = kinds.get(change_id, "")
                pauses.pop(change_id, None)
                paused.pop(change_id, None)
                if redone and undone == "restored":
                    pauses[change_id] = cycle + _PAUSED_CYCLES
                elif not redone and undone in PAUSED_BY:
                    paused[change_id] = PAUSED_BY[undone]
            case _:
                pass
    return Pauses(max(pauses.values(), default=0), frozenset().union(*paused.values()))


def outcome(change: ViewChanged, *, undone: bool = False) -> str:
    """Describe the effect of the change, or of undoing it (`undone`), such as `1 tool result restored`."""
    report, number = change.report, len(change.removed)
    title = report.title or "a message"
    match change.kind:
        case "edited":
            cut = len(report.cut)
            cleared = report.cleared or len(change.replaced) - cut
            if undone:
                return f"{cleared_words(cleared + cut, report.code)} restored"
            if not cleared:
                return f"{counted(cut, 'tool result')} cut"
            return f"{cleared_words(cleared, report.code)} cleared{f', {cut:,} cut' if cut else ''}"
        case "compacted":
            messages = counted(summarised(change), "message")
            return f"{messages} {'restored' if undone else 'compacted'}{_cycles(*report.cycles)}"
        case "detached":
            names = ", ".join(report.names) or counted(number, "attachment")
            return f"{names} {'attached again' if undone else 'detached'}"
        case "cleared":
            return f"{counted(number, 'message')} {'restored after' if undone else 'removed by'} /clear"
        case "regenerated":
            return "the previous reply restored" if undone else "the previous reply replaced"
        case "pinned" | "unpinned":
            return f"{title} {'pinned' if (change.kind == 'pinned') != undone else 'unpinned'}"
        case "tools_chosen":
            names = ", ".join(report.names) or "as configured"
            return f"the tool selection ({names}) {'reverted' if undone else 'changed'}"
        case "restored":
            return f"{title} {'removed again' if undone else 'restored'}"
        case _:
            return f"{change.kind} {'undone' if undone else 'done'}".replace("_", " ")


def summarised(change: ViewChanged) -> int:
    """Return the number of messages a compaction removed, as shown on its card."""
    return len(change.removed) if change.report.messages is None else change.report.messages


def _cycles(first: int, last: int) -> str:
    if not last:
        return ""
    return f" (cycle {first})" if first == last else f" (cycles {first} to {last})"
