"""The output of the demo: a summary of the session's event log, and the screens."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Any, TextIO

from codecompanion.formats.plural import counted
from codecompanion.model.history import LogEvent, MessageAdded, RequestSent, ToolRan, TurnStarted, ViewChanged
from codecompanion.model.messages import SUMMARY_TAG, Message
from codecompanion.model.view import View, project
from codecompanion.placeholders import TOOL_RESULT_CLEARED

WIDTH = 112
ROW = "{:>5}  {:>8}  {:<10} {:>10} {:>10} {:>8}  {}"


def report(events: Sequence[LogEvent], told: Sequence[dict[str, Any]], window: int, out: TextIO) -> None:
    """Print the requests, each edit and compaction with its tokens, kept messages, placeholders and screens."""
    print("\n" + ROW.format("cycle", "requests", "what", "before", "after", "saved", "details"), file=out)
    requests, cycle, peak = 0, 0, 0
    for event in events:
        payload = event.payload
        if isinstance(payload, TurnStarted):
            cycle = payload.cycle
        elif isinstance(payload, RequestSent) and payload.purpose == "chat":
            requests += 1
            peak = max(peak, payload.estimated_tokens)
        elif isinstance(payload, ViewChanged) and payload.kind in ("edited", "compacted"):
            saved = payload.tokens_before - payload.tokens_after
            row = (
                cycle, requests, payload.kind, f"{payload.tokens_before:,}", f"{payload.tokens_after:,}",
                f"{saved:,}", _details(payload),
            )  # fmt: skip
            print(ROW.format(*row), file=out)
    view = project(events)
    logged = [event.payload.message for event in events if isinstance(event.payload, MessageAdded)]
    tools = sum(isinstance(event.payload, ToolRan) for event in events)
    print(
        f"\n{requests} requests, {tools} tool calls; the largest request had {peak:,} of {window:,} tokens"
        f" ({peak / window:.0%}). History: {sum(m.tokens for m in logged):,} tokens in {len(logged)} messages;"
        f" view: {view.tokens:,} in {len(view.messages)}.",
        file=out,
    )
    _kept(view, logged, out)
    _placeholders(events, out)
    for told_screen in (line["data"]["rows"] for line in told if line["kind"] == "screen"):
        print("\n" + "─" * WIDTH, file=out)
        print("\n".join(told_screen).rstrip(), file=out)
    print("─" * WIDTH, file=out)


def _details(change: ViewChanged) -> str:
    details = change.report
    if change.kind == "edited":
        return f"{counted(details.cleared or 0, 'tool result')} cleared"
    low, high = details.cycles
    return (
        f"{counted(details.messages or 0, 'message')} (cycles {low}–{high}) → a summary of"
        f" {len(details.summary):,} characters by {details.summariser}, {details.trigger}"
    )


def _kept(view: View, logged: Sequence[Message], out: TextIO) -> None:
    """Print the content of the next request, and whether protected messages are unchanged."""
    original = {message.id: message for message in logged}
    print("\nThe next request holds:", file=out)
    kinds = Counter(_kind(message) for message in view.messages)
    for kind, number in kinds.items():
        print(f"  {number:>4}  {kind}", file=out)
    rules = [message for message in view.messages if message.tag == "rules"]
    same = sum(original.get(message.id) == message for message in rules)
    print(f"  rules byte-identical to what was read: {same} of {len(rules)}", file=out)


def _placeholders(events: Sequence[LogEvent], out: TextIO) -> None:
    """Print every placeholder text, with the number of times it was inserted."""
    changes = [event.payload for event in events if isinstance(event.payload, ViewChanged)]
    used = Counter(
        message.text for change in changes for message in change.replaced if message.edited or message.compacted
    )
    if used:
        print("\nPlaceholders, and how often each was put in:", file=out)
    for text, number in used.items():
        print(f"  {number:>4}  {text}", file=out)


def _kind(message: Message) -> str:
    if message.tag == SUMMARY_TAG:
        return "summary of what was compacted"
    if message.text == TOOL_RESULT_CLEARED:
        return "cleared tool result"
    if message.compacted:
        return f"placeholder of an attached {message.tag}"
    return f"{message.tag or message.role} message"
