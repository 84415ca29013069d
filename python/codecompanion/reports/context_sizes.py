"""How large each request of a chat was, and how large it would have been had nothing been managed (R-356, R-360).

**Removed.** What edits and compactions took out of the view counts from then on as removed; what the user restored,
or an undo brought back, no longer does. `/clear` takes everything with it, so that nothing is missing after it. What
shaping left out of one request counts for that request alone. Sizes of changes are the plugin's own counts, so all of
this is an estimate, while the size of a request is the provider's wherever it reported one.

**Without management** a request would have held what it did hold and all that was removed by then. No model takes
more than its window: sums count such a request as large as the window, and tell how many there are.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Literal

import msgspec

from codecompanion.model.history import ChangeUndone, ViewChanged
from codecompanion.reports.record import Call, Record

LEFT_OUT = ("prompt", "tools", "results", "packet_omitted")
"""What `RequestSent.shaping` says was left out (R-338, R-354)."""

Mark = Literal["edit", "compaction", "undo"]
_MARKS: dict[str, Mark] = {"edited": "edit", "compacted": "compaction"}


class ContextSize(msgspec.Struct, frozen=True):
    """One request, in tokens. `marks`: what changed since the request before; limits are 0 where nobody knows them."""

    call: Call
    sent: int
    removed: int
    shaped: int
    marks: tuple[Mark, ...]
    window: int
    edit_at: int
    compact_at: int

    @property
    def missing(self) -> int:
        """Return what was left out of this request in any way."""
        return self.removed + self.shaped

    @property
    def without(self) -> int:
        """Return the size without management, which may be more than the window."""
        return self.sent + self.missing

    @property
    def is_too_large(self) -> bool:
        """Return whether it could not have been sent without management."""
        return 0 < self.window < self.without

    @property
    def saved(self) -> int:
        """Return what was not sent; of a request that could not have been sent only what the window would have held."""
        return max(0, self.window - self.sent) if self.is_too_large else self.missing


class Removed:
    """What is missing from the view, change by change."""

    def __init__(self) -> None:
        self.tokens = 0
        self._changes: dict[str, ViewChanged] = {}
        self._undone: set[str] = set()

    def take(self, change: ViewChanged) -> None:
        """Take a change into account."""
        self._changes[change.change_id] = change
        self.tokens = _removed_after(change, self.tokens)

    def take_undo(self, undo: ChangeUndone) -> None:
        """Take back a change, or bring it back: everything is summed up again, which is seldom."""
        if undo.change_id not in self._changes:
            return
        (self._undone.discard if undo.redone else self._undone.add)(undo.change_id)
        self.tokens = 0
        for change in self._changes.values():
            if change.change_id not in self._undone:
                self.tokens = _removed_after(change, self.tokens)

    def mark_of(self, undo: ChangeUndone) -> Mark | None:
        """Return how an undo or redo is marked; None for one of something else, such as a pin."""
        change = self._changes.get(undo.change_id)
        mark = _MARKS.get(change.kind) if change else None
        return mark if mark is None or undo.redone else "undo"


def _removed_after(change: ViewChanged, removed: int) -> int:
    match change.kind:
        case "edited" | "compacted":
            return removed + max(0, change.tokens_before - change.tokens_after)
        case "restored":
            return max(0, removed - max(0, change.tokens_after - change.tokens_before))
        case "cleared":
            return 0
        case _:
            return removed


def context_sizes(record: Record) -> tuple[ContextSize, ...]:
    """Return the requests of the chat that were answered, in their order; those for summaries are none of them."""
    return tuple(_sizes(record))


def _sizes(record: Record) -> Iterator[ContextSize]:
    removed, marks = Removed(), list[Mark]()
    limits: dict[str, int] = {}
    for item in record.order:
        if isinstance(item, ViewChanged):
            removed.take(item)
            marks += [_MARKS[item.kind]] if item.kind in _MARKS else []
        elif isinstance(item, ChangeUndone):
            removed.take_undo(item)
            mark = removed.mark_of(item)
            marks += [mark] if mark else []
        elif item.purpose != "summary" and (sent := item.usage.prompt_tokens or item.estimated_tokens):
            limits = (item.sent.limits if item.sent else {}) or limits
            yield ContextSize(
                call=item,
                sent=sent,
                removed=removed.tokens,
                shaped=sum(shaped_tokens(item, part) for part in LEFT_OUT),
                marks=tuple(marks),
                window=limits.get("window", 0),
                edit_at=limits.get("edit", 0),
                compact_at=limits.get("compaction", 0),
            )
            marks = []


def shaped_tokens(call: Call, part: str) -> int:
    """Return how much shaping left out of this request alone, or how large the context packet was (`packet`)."""
    return call.sent.shaping.get(part, 0) if call.sent else 0


def total_sent(sizes: Iterable[ContextSize]) -> int:
    """Return what was sent in all requests together."""
    return sum(size.sent for size in sizes)
