"""Computes the size of each request of a chat, and its size without context management (R-356, R-360).

**Removed.** Content that edits and compactions took out of the view counts as removed from then on; content restored by
the user or an undo no longer does. `/clear` removes everything, so nothing is missing after it. Content that shaping
left out counts only for that request. Sizes of changes are the plugin's own counts, so all of this is an estimate; the
size of a request is the provider's count if it was reported.

**Without management** a request would contain its actual content plus everything removed before it. No model accepts
more than its window: sums count a larger request as the window's size, and state how many there were.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Literal

import msgspec

from codecompanion.model.history import ChangeUndone, ViewChanged
from codecompanion.reports.record import Call, Record

LEFT_OUT = ("prompt", "tools", "results", "packet_omitted")
"""The parts of `RequestSent.shaping` that were left out (R-338, R-354)."""

Mark = Literal["edit", "compaction", "undo"]
_MARKS: dict[str, Mark] = {"edited": "edit", "compacted": "compaction"}


class ContextSize(msgspec.Struct, frozen=True):
    """The size of one request, in tokens. `marks`: changes since the previous request; unknown limits are 0."""

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
        """Return the number of tokens missing from this request for any reason."""
        return self.removed + self.shaped

    @property
    def without(self) -> int:
        """Return the size without management, which may exceed the window."""
        return self.sent + self.missing

    @property
    def is_too_large(self) -> bool:
        """Return whether the request could not have been sent without management."""
        return 0 < self.window < self.without

    @property
    def saved(self) -> int:
        """Return the tokens saved; for a request that would have been too large, only up to the window."""
        return max(0, self.window - self.sent) if self.is_too_large else self.missing


class Removed:
    """The tokens missing from the view, updated change by change."""

    def __init__(self) -> None:
        self.tokens = 0
        self._changes: dict[str, ViewChanged] = {}
        self._undone: set[str] = set()

    def take(self, change: ViewChanged) -> None:
        """Add the tokens that a change removed."""
        self._changes[change.change_id] = change
        self.tokens = _removed_after(change, self.tokens)

    def take_undo(self, undo: ChangeUndone) -> None:
        """Undo or redo a change by summing up everything again; this is rare."""
        if undo.change_id not in self._changes:
            return
        (self._undone.discard if undo.redone else self._undone.add)(undo.change_id)
        self.tokens = 0
        for change in self._changes.values():
            if change.change_id not in self._undone:
                self.tokens = _removed_after(change, self.tokens)

    def mark_of(self, undo: ChangeUndone) -> Mark | None:
        """Return the mark of an undo or redo; None if its change has none, such as a pin."""
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
    """Return the answered requests of the chat in order, without those for summaries."""
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
    """Return the tokens that shaping left out of this request only, or the size of the context packet (`packet`)."""
    return call.sent.shaping.get(part, 0) if call.sent else 0


def total_sent(sizes: Iterable[ContextSize]) -> int:
    """Return the total number of tokens sent in all requests."""
    return sum(size.sent for size in sizes)
