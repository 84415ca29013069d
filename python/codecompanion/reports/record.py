"""Reads a chat's log as turns and provider calls, for `/cost` and `/trace` (R-356, R-357, R-360).

It is a pure projection. Logs of older versions have no request ids and no request ends; a usage report then belongs to
the newest request or, for a compaction, to a separate call. Events outside turns (`/compact` of an idle chat) are kept
apart.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator

import msgspec

from codecompanion.formats.cutting import without_code
from codecompanion.model import history
from codecompanion.model.messages import GO_ON_TAG, UPDATE_TAG, Message, Usage, is_typed_by_user

FAILED_EXIT = re.compile(r"exit [1-9]\d*")
OTHER_PURPOSES = {"sampling": "MCP servers", "gathering": "code search"}
"""The purposes of calls that were made for neither the chat nor a summary, as the user reads them."""
_CONTINUED = "(continued)"
_AFTER_COMPACTION = "(continued after a compaction)"


class Call(msgspec.Struct):
    """One provider call. `sent` is None for a call known only by its usage, `ended` is None while it runs.

    `purpose`: "chat", "summary" or one of `OTHER_PURPOSES`. `priced_later`: number of reports whose price was unknown
    when they were logged.
    """

    ts: float
    adapter: str
    model: str
    purpose: str = "chat"
    sent: history.RequestSent | None = None
    ended: history.RequestEnded | None = None
    reported: list[history.UsageReported] = msgspec.field(default_factory=list)
    priced_later: int = 0

    def price_again(self, priced_now: Callable[[history.UsageReported], history.UsageReported]) -> None:
        """Price the reports that had no known price when they were logged, as far as it is known now."""
        for index, report in enumerate(self.reported):
            if report.cost_usd is None and (now := priced_now(report)).cost_usd is not None:
                self.reported[index] = now
                self.priced_later += 1

    @property
    def passes(self) -> Iterator[Usage]:
        """Yield each billed usage: the reply's, and those of the provider's other passes."""
        for report in self.reported:
            if report.usage != Usage():
                yield report.usage
            yield from report.other_passes

    @property
    def usage(self) -> Usage:
        """Return the usage of the reply itself: its prompt is the size of the context."""
        return next((report.usage for report in self.reported if report.usage != Usage()), Usage())

    @property
    def estimated_tokens(self) -> int:
        """Return the assumed prompt size of an answered call without reported usage, or 0 for other calls."""
        if self.reported or self.sent is None or self.ended is None or self.ended.result in ("failed", "stopped"):
            return 0
        return self.sent.estimated_tokens

    @property
    def cost_usd(self) -> float | None:
        """Return the cost of the call; None if the price is unknown, or nothing was reported."""
        costs = [report.cost_usd for report in self.reported]
        return None if not costs or None in costs else sum(cost for cost in costs if cost is not None)

    @property
    def is_included(self) -> bool:
        """Return whether a subscription paid for the whole call."""
        return bool(self.reported) and all(report.included for report in self.reported)

    @property
    def is_local(self) -> bool:
        """Return whether the user's own server answered the whole call, at no price."""
        return bool(self.reported) and all(report.local for report in self.reported)

    @property
    def prices(self) -> history.Prices | None:
        """Return the list prices of the call."""
        return next((report.prices for report in self.reported if report.prices), None)

    @property
    def attempts(self) -> int:
        """Return the number of attempts."""
        return 1 + (len(self.ended.retries) if self.ended else 0)


Happening = Call | history.ViewChanged | history.ChangeUndone
"""A request, or a change that affects the size of the next request."""


def failed_exit(ran: history.ToolRan) -> str:
    """Return `exit 1` if the tool ran a command that failed, such as a test: not an error of the tool; otherwise ""."""
    found = FAILED_EXIT.match(ran.summary)
    return found[0] if found else ""


class Stretch(msgspec.Struct):
    """A turn, or the events before the first turn or `after` another (`number` is 0, `follows` that turn's number)."""

    number: int = 0
    turn_id: str = ""
    cycle: int = 0
    began: float = 0.0
    question: str = ""
    end: history.TurnEnded | None = None
    ended_at: float = 0.0
    calls: list[Call] = msgspec.field(default_factory=list)
    tools: list[history.ToolRan] = msgspec.field(default_factory=list)
    tool_tokens: dict[str, int] = msgspec.field(default_factory=dict)
    changes: list[history.ViewChanged] = msgspec.field(default_factory=list)
    failures: list[history.CompactionFailed] = msgspec.field(default_factory=list)
    named: list[history.PolicyEvent] = msgspec.field(default_factory=list)
    gathered: list[history.PolicyEvent] = msgspec.field(default_factory=list)
    along: list[Message] = msgspec.field(default_factory=list)
    follows: int = 0
    after: Stretch | None = None

    @property
    def is_empty(self) -> bool:
        """Return whether there are no events to report."""
        return not (self.calls or self.changes or self.failures or self.named)


class Record(msgspec.Struct, frozen=True):
    """A whole log. `order`: calls, view changes and undos in order; `undone`: changes that are currently undone.

    `forked_from`: the title of the chat that this one is a branch of; events copied from it are excluded.
    """

    turns: tuple[Stretch, ...]
    before: Stretch
    order: tuple[Happening, ...]
    undone: frozenset[str]
    forked_from: str = ""

    @property
    def stretches(self) -> tuple[Stretch, ...]:
        """Return all turns, and the events between them."""
        pairs = ((turn, turn.after) for turn in self.turns)
        return (self.before, *(stretch for pair in pairs for stretch in pair if stretch is not None))

    @property
    def calls(self) -> list[Call]:
        """Return all provider calls."""
        return [call for stretch in self.stretches for call in stretch.calls]


class LogReader:
    """Reads a log event by event; the record so far is available at any time. `last_seq`: the last event read."""

    def __init__(self) -> None:
        self.last_seq = 0
        self.forked_from = ""
        self._start_over()

    def _start_over(self) -> None:
        """Drop the events read so far: they belong to the chat that this one was forked from, and count there."""
        self.turns: list[Stretch] = []
        self.before = self.now = Stretch()
        self.order: list[Happening] = []
        self.undone: set[str] = set()
        self._question = ""
        self._began: dict[str, history.CompactionStarted] = {}
        self._by_id: dict[str, Call] = {}
        self._newest: Call | None = None

    def read(self, event: history.LogEvent) -> None:
        """Read an event and add it to the record."""
        self.last_seq = event.seq
        match event.payload:
            case history.ChatForked(from_title=title):
                self._start_over()
                self.forked_from = title or "New chat"
            case history.TurnStarted(turn_id=turn_id, cycle=cycle):
                self.now = Stretch(len(self.turns) + 1, turn_id, cycle, event.ts, self._question)
                self.turns.append(self.now)
                self._newest = None
            case history.TurnEnded() as end:
                self.now.end, self.now.ended_at = end, event.ts
                if self.now.number:
                    self.now.after = self.now = Stretch(follows=self.now.number)
                self._newest = None
            case history.MessageAdded(message=message) if is_typed_by_user(message):
                self._question = without_code(message.text)
                if all(call.purpose == "gathering" for call in self.now.calls):  # this is before the question
                    self.now.question = self._question
            case history.MessageAdded(message=message) if message.tag == GO_ON_TAG:
                self._question = _CONTINUED
                if not self.now.calls:
                    self.now.question = _CONTINUED
            case history.MessageAdded(message=message) if message.mentioned is not None or message.tag == UPDATE_TAG:
                self.now.along.append(message)
            case history.MessageAdded(message=message) if message.role == "tool":
                self.now.tool_tokens[message.id] = message.tokens
            case history.RequestSent() as sent:
                call = Call(event.ts, sent.adapter, sent.model, sent.purpose, sent)
                self._add(call)
                self._by_id[sent.request_id or f"#{event.seq}"] = self._newest = call
            case history.RequestEnded() as ended if ended.request_id in self._by_id:
                self._by_id[ended.request_id].ended = ended
            case history.UsageReported() as report:
                self._call_of(report, event.ts).reported.append(report)
            case history.ToolRan() as ran:
                self.now.tools.append(ran)
            case history.ViewChanged() as change:
                if change.kind == "compacted" and not self.now.number:
                    self._question = _AFTER_COMPACTION  # the next turn answers it, unless the user writes first
                self.now.changes.append(change)
                self.order.append(change)
            case history.ChangeUndone(change_id=change_id, redone=redone) as undo:
                self.order.append(undo)
                (self.undone.discard if redone else self.undone.add)(change_id)
            case history.CompactionStarted() as began:
                self._began[began.compaction_id] = began
            case history.CompactionFailed() as failed:
                self.now.failures.append(failed)
            case history.PolicyEvent(name="code_gathered") as gathered:
                self.now.gathered.append(gathered)
            case history.PolicyEvent() as named:
                self.now.named.append(named)
            case _:
                pass

    def record(self) -> Record:
        """Return the record so far; reading more events extends its turns."""
        return Record(tuple(self.turns), self.before, tuple(self.order), frozenset(self.undone), self.forked_from)

    def _add(self, call: Call) -> None:
        self.now.calls.append(call)
        self.order.append(call)

    def _call_of(self, report: history.UsageReported, ts: float) -> Call:
        """Return the call that a usage report belongs to; the report of a call without a reply gets a separate one."""
        if report.request_id in self._by_id:
            return self._by_id[report.request_id]
        is_new = report.purpose or report.message_id in self._began or self._newest is None or self._newest.reported
        if not is_new and self._newest is not None:
            return self._newest
        purpose = report.purpose or ("summary" if report.usage == Usage() else "chat")
        call = Call(ts, report.adapter, report.model, purpose)
        self._add(call)
        return call
