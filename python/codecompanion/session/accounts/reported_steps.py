"""Finds a model's usage reports in the log of a chat, each with the view it covers (R-505, R-538)."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple

from codecompanion.model.history import ChangeUndone, EventPayload, LogEvent, RequestSent, UsageReported, ViewChanged
from codecompanion.model.view import View, apply, project

MAX_REPORTS = 150
"""Maximum number of newest reports to read, in addition to the first one; limits the work."""


class ReportedStep(NamedTuple):
    """A usage report, the view that ends with its reply, and whether the provider compacted before that reply."""

    report: UsageReported
    view: View
    compacted: bool


def reported_steps(events: Sequence[LogEvent], adapter: str, model: str) -> Iterator[ReportedStep]:
    """Yield the model's first report, which shows the fixed part best, and its newest ones."""
    reports = {
        index: event.payload
        for index, event in enumerate(events)
        if isinstance(event.payload, UsageReported) and (event.payload.adapter, event.payload.model) == (adapter, model)
    }
    if not reports:
        return
    newest = dict(list(reports.items())[-MAX_REPORTS:])
    start, first = min(newest), min(reports)
    if first < start:
        yield from _about_its_reply(reports[first], project(events[:first]), compacted=False)
    view, compacted = project(events[:start]), False
    for event in events[:start]:
        compacted = _compacts_in_reply(event.payload, compacted)
    for index, event in enumerate(events[start:], start):
        view = project(events[: index + 1]) if isinstance(event.payload, ChangeUndone) else apply(view, event)
        compacted = _compacts_in_reply(event.payload, compacted)
        if index in newest:
            yield from _about_its_reply(newest[index], view, compacted=compacted)


def _about_its_reply(report: UsageReported, view: View, *, compacted: bool) -> Iterator[ReportedStep]:
    if view.messages and view.messages[-1].id == report.message_id:
        yield ReportedStep(report, view, compacted)


def _compacts_in_reply(payload: EventPayload, so_far: bool) -> bool:
    """Return whether the provider has compacted since the last request was sent."""
    match payload:
        case RequestSent(purpose="chat"):
            return False
        case ViewChanged(report=report) if report.stage == "server":
            return True
        case _:
            return so_far
