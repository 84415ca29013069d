"""Projects the log into the view, the content of the next request (R-301).

The view is built by folding `apply` over the events, or by `project` from a whole log.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import msgspec

from codecompanion.model.history import ChangeUndone, LogEvent, MessageAdded, TurnStarted, ViewChanged
from codecompanion.model.messages import GO_ON_TAG, Message, ToolCall
from codecompanion.model.provenance import inherited
from codecompanion.model.references import with_true_references

_REWRITING = frozenset({"compacted", "edited"})
"""The kinds of changes that may move text of removed messages into others."""


class View(msgspec.Struct, frozen=True):
    """The projection of the log: the content of the next request (R-301). Built by `apply`, never edited.

    `tokens`: the sum of the cached message estimates. `open_calls`: ids of calls of the newest assistant message that
    have no result yet; `sound`: false if any other call or result lacks its partner (R-004). Appending costs O(1)
    besides the tuple copy; only a `ViewChanged` reads all messages.
    """

    messages: tuple[Message, ...] = ()
    tokens: int = 0
    cycle: int = 0
    open_calls: tuple[str, ...] = ()
    sound: bool = True
    last_seq: int = 0

    @property
    def has_open_calls(self) -> bool:
        """Return whether the newest assistant message waits for tool results (R-520)."""
        return bool(self.open_calls)


def cycle_after(current: int, message: Message) -> int:
    """Return the current cycle after a message is appended; attachments for the next cycle do not open it (R-509)."""
    return current if message.role == "user" and message.tag else max(current, message.cycle or 0)


def append(view: View, message: Message) -> View:
    """Return the view with the message appended."""
    open_calls, sound = _pairing_after(view.open_calls, view.sound, message)
    return msgspec.structs.replace(
        view,
        messages=(*view.messages, message),
        tokens=view.tokens + message.tokens,
        cycle=cycle_after(view.cycle, message),
        open_calls=open_calls,
        sound=sound,
    )


def _pairing_after(open_calls: tuple[str, ...], sound: bool, message: Message) -> tuple[tuple[str, ...], bool]:
    """Return (open calls, sound) after the message is appended."""
    if message.role != "tool":
        return tuple(call.id for call in message.tool_calls), sound and not open_calls
    if message.tool_call_id not in open_calls:
        return open_calls, False
    answered = open_calls.index(message.tool_call_id)
    return (*open_calls[:answered], *open_calls[answered + 1 :]), sound


def open_tool_calls(view: View) -> tuple[ToolCall, ...]:
    """Return the tool calls in the newest assistant message that have no result yet, in order."""
    waiting = list(view.open_calls)
    if not waiting:
        return ()
    newest = next(message for message in reversed(view.messages) if message.tool_calls)
    found: list[ToolCall] = []
    for call in reversed(newest.tool_calls):
        if call.id in waiting:
            waiting.remove(call.id)
            found.append(call)
    return tuple(reversed(found))


def with_messages(view: View, messages: Iterable[Message]) -> View:
    """Return the view with other messages but the same cycle and position in the log."""
    kept = with_true_references(tuple(messages))
    cycle, open_calls, sound = view.cycle, tuple[str, ...](), True
    for message in kept:
        open_calls, sound = _pairing_after(open_calls, sound, message)
        cycle = cycle_after(cycle, message)
    return View(
        messages=kept,
        tokens=sum(message.tokens for message in kept),
        cycle=cycle,
        open_calls=open_calls,
        sound=sound,
        last_seq=view.last_seq,
    )


def apply_change(view: View, change: ViewChanged) -> View:
    """Return the view after the change: removals, replacements in place, insertions after their anchors.

    If an anchor is gone, the message is inserted at the end, so that nothing is lost if the history has changed since
    (R-531). A message already in the view is replaced rather than duplicated, because a message that the change
    restores may have been restored separately since.
    """
    return with_messages(view, _changed(view.messages, change))


def _changed(before: Sequence[Message], change: ViewChanged) -> list[Message]:
    removed = frozenset(change.removed)
    replaced = {message.id: message for message in change.replaced}
    after: dict[str, list[Message]] = {}
    present = {message.id for message in before if message.id not in removed} if change.inserted else set()
    for insertion in change.inserted:
        if insertion.message.id in present:
            replaced[insertion.message.id] = insertion.message
        else:
            after.setdefault(insertion.after, []).append(insertion.message)
    messages: list[Message] = list(after.pop("", ()))
    for message in before:
        if message.id not in removed:
            messages.append(replaced.get(message.id, message))
        if after:
            messages.extend(after.pop(message.id, ()))
    for orphaned in after.values():
        messages.extend(orphaned)
    # Every change of a view passes here, so that no strategy, provider or user code has to derive the sources.
    return [*inherited(before, messages)] if removed and change.kind in _REWRITING else messages


def apply(view: View, event: LogEvent) -> View:
    """Return the view after one more event of the log.

    `ChangeUndone` is not handled here: it requires projecting the whole log again with `project`.
    """
    payload = event.payload
    if isinstance(payload, MessageAdded):
        view = append(view, payload.message)
    elif isinstance(payload, ViewChanged):
        view = apply_change(view, payload)
    elif isinstance(payload, TurnStarted):
        view = msgspec.structs.replace(view, cycle=max(view.cycle, payload.cycle))
    return msgspec.structs.replace(view, last_seq=max(view.last_seq, event.seq))


def is_of_answer(message: Message) -> bool:
    """Return whether the message belongs to the model's side of a turn: it is neither typed nor attached."""
    return message.role != "user" or message.tag == GO_ON_TAG


def answer_turn(change: ViewChanged) -> str:
    """Return the turn of the new answer after a `regenerated` change; "" in logs of older versions."""
    return change.report.turn if change.kind == "regenerated" else ""


def project(events: Sequence[LogEvent]) -> View:
    """Return the view of a whole log, without undone changes and undone regenerated answers (R-545)."""
    undone: dict[str, bool] = {}
    for event in events:
        if isinstance(event.payload, ChangeUndone):
            undone[event.payload.change_id] = not event.payload.redone
    changes = (event.payload for event in events if isinstance(event.payload, ViewChanged)) if undone else ()
    undone_answers = {answer_turn(change) for change in changes if undone.get(change.change_id)} - {""}
    messages: list[Message] = []
    places: dict[str, int] = {}
    cycle = last_seq = 0
    for event in events:
        payload, last_seq = event.payload, event.seq
        if isinstance(payload, MessageAdded):
            if payload.message.turn_id in undone_answers and is_of_answer(payload.message):
                continue
            messages.append(payload.message)
            cycle = cycle_after(cycle, payload.message)
        elif isinstance(payload, TurnStarted):
            cycle = max(cycle, payload.cycle)
        elif isinstance(payload, ViewChanged) and not undone.get(payload.change_id):
            for place in range(len(places), len(messages)):
                places[messages[place].id] = place
            if payload.removed or payload.inserted or len(places) < len(messages):
                messages, places = _changed(messages, payload), {}
                continue
            for message in payload.replaced:  # the cost depends on the replaced messages, not on the length of the chat
                if message.id in places:
                    messages[places[message.id]] = message
    return with_messages(View(cycle=cycle, last_seq=last_seq), messages)
