"""Builders for the log of a chat: turns, calls, changes."""

from __future__ import annotations

import itertools
from collections.abc import Iterable
from typing import Any

from codecompanion.model.change_report import ChangeReport
from codecompanion.model.history import (
    ChatCreated,
    CompactionStarted,
    EventPayload,
    LogEvent,
    MessageAdded,
    Prices,
    ReadTwice,
    RequestEnded,
    RequestSent,
    Retry,
    ToolRan,
    TurnEnded,
    TurnStarted,
    UsageReported,
    ViewChanged,
)
from codecompanion.model.messages import Message, Usage
from codecompanion.reports.record import LogReader, Record


def read_log(events: Iterable[LogEvent]) -> Record:
    """Return the log as turns and calls."""
    reader = LogReader()
    for event in events:
        reader.read(event)
    return reader.record()


PRICES = Prices(input=3, output=15, cache_read=0.3, cache_write=3.75)


def price(usage: Usage, prices: Prices = PRICES) -> float:
    """Return the cost of a call at these prices."""
    return (
        usage.input_tokens * prices.input
        + usage.cache_read_tokens * prices.cache_read
        + usage.cache_write_tokens * prices.cache_write
        + usage.output_tokens * prices.output
    ) / 1e6


class LogWriter:
    """Writes a log event by event; each turn advances the clock by a minute, each call by a second."""

    def __init__(self) -> None:
        self.events: list[LogEvent] = []
        self.now = 1_800_000_000.0
        self._numbers = itertools.count(1)
        self._turn = ""
        self.add(ChatCreated(adapter="anthropic", model="claude", policy="codecompanion", cwd="/w"))

    def add(self, *payloads: EventPayload) -> None:
        for payload in payloads:
            self.events.append(LogEvent(len(self.events) + 1, self.now, payload))

    def begin(self, question: str) -> None:
        number = next(self._numbers)
        self._turn = f"t{number}"
        self.now += 60
        self.add(
            TurnStarted(turn_id=self._turn, cycle=number),
            MessageAdded(message=Message(id=f"u{number}", role="user", content=question, turn_id=self._turn)),
        )

    def call(
        self,
        usage: Usage | None = None,
        *,
        result: str = "stop",
        priced: bool = True,
        included: bool = False,
        local: bool = False,
        again: ReadTwice | None = None,
        model: str = "claude",
        **more: Any,
    ) -> str:
        """Log a request and its end, a failed one if there is no usage. Return its id."""
        id = f"r{len(self.events)}"
        self.now += 1
        sent: dict[str, Any] = {"mix": {"prompt": 100, "conversation": 700, "tools": 200}, **more}
        retries = tuple(Retry(reason, 500) for reason in sent.pop("retries", ()))
        error = sent.pop("error", "")
        self.add(
            RequestSent(
                turn_id=self._turn, adapter="anthropic", model=model, messages=4, estimated_tokens=1000,
                request_id=id, **sent,
            )
        )  # fmt: skip
        if usage is not None:
            self.add(
                UsageReported(
                    message_id=f"m{id}", adapter="anthropic", model=model, usage=usage, estimated_prompt_tokens=1000,
                    cost_usd=0.0 if included or local else price(usage) if priced else None,
                    prices=PRICES if priced and not (included or local) else None, request_id=id,
                    included=included or local, local=local, read_again=again,
                )
            )  # fmt: skip
        self.add(RequestEnded(request_id=id, result=result, duration_ms=1500, error=error, retries=retries))
        return id

    def tool(
        self, name: str = "read_file", title: str = "read_file a.py", status: Any = "ok", summary: str = ""
    ) -> None:
        id = f"x{len(self.events)}"
        self.add(
            MessageAdded(message=Message(id=id, role="tool", tool_call_id=id, content="text", tokens=40)),
            ToolRan(call_id=id, message_id=id, name=name, title=title, summary=summary, status=status, duration_ms=30),
        )

    def change(self, kind: Any, before: int, after: int, **report: Any) -> str:
        id = f"c{len(self.events)}"
        self.add(
            ViewChanged(
                change_id=id, kind=kind, tokens_before=before, tokens_after=after, report=ChangeReport(**report)
            )
        )
        return id

    def summary_call(self, usage: Usage, priced: bool = True) -> str:
        """Log the call that wrote a summary as the session does; return its id."""
        id = f"c{len(self.events)}"
        self.add(
            CompactionStarted(compaction_id=id, trigger="manual", summariser="claude", tokens_before=9),
            UsageReported(
                message_id=id, adapter="anthropic", model="claude", usage=Usage(), estimated_prompt_tokens=0,
                other_passes=(usage,), cost_usd=price(usage) if priced else None, prices=PRICES if priced else None,
            ),
        )  # fmt: skip
        return id

    def end(self, reason: Any = "done", error: str = "") -> None:
        self.add(TurnEnded(turn_id=self._turn, reason=reason, error=error))


def worked_chat() -> LogWriter:
    """Return a chat of three turns: a cached one, one that was edited and compacted, one that failed."""
    log = LogWriter()
    log.begin("Why is the test red?")
    log.call(Usage(input_tokens=200, cache_write_tokens=50_000, output_tokens=300), result="tool_calls")
    log.tool()
    log.tool("grep_search", "grep_search def main | in src", "error")
    log.call(Usage(input_tokens=9_000, cache_read_tokens=50_000, output_tokens=900, reasoning_tokens=400))
    log.end()
    log.begin("Refactor the parser, please")
    log.change("edited", 60_000, 30_000, cleared=5)
    log.call(Usage(input_tokens=22_000, cache_read_tokens=8_000, output_tokens=2_000), retries=["rate limited"])
    compaction = log.summary_call(Usage(input_tokens=30_000, output_tokens=1_500))
    log.add(
        ViewChanged(
            change_id=compaction,
            kind="compacted",
            removed=("u1", "u2"),
            tokens_before=34_000,
            tokens_after=6_000,
            report=ChangeReport(
                trigger="proactive", summariser="claude-haiku", messages=12, duration_ms=4_200,
                summary="# Goal\n- make the test green\n\n## Done\n- parser refactored",
            ),
        )
    )  # fmt: skip
    log.call(Usage(input_tokens=1_000, cache_read_tokens=5_000, output_tokens=100))
    log.end()
    log.begin("And now the docs " + "with many words " * 8)
    log.call(result="failed", error="The endpoint refused the key.")
    log.end("failed", "The endpoint refused the key.")
    return log
