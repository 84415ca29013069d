"""Builds the `/cost` and `/trace` reports of a stored chat from its log (R-356…R-360).

Logs stay in memory, because an open report is updated with every event of its chat: each update reads only the new
events. All figures still come from the log.
"""

from __future__ import annotations

import threading
from datetime import datetime
from functools import partial
from typing import Any

from codecompanion.adapters import catalog
from codecompanion.counting.tokens import EXACT_VOCABULARY, MessageCounter, estimate_text
from codecompanion.model.view import project
from codecompanion.reports.cost import LocalCounts, cost_report
from codecompanion.reports.markdown import Page
from codecompanion.reports.record import LogReader, Record
from codecompanion.reports.trace import find_turn, trace_report
from codecompanion.session.accounts.local_models import speed_of
from codecompanion.session.actions.spending import Spending, priced_now
from codecompanion.session.services import Services
from codecompanion.wire.requests import ShowCost, ShowTrace

MAX_CHATS = 4
"""Maximum number of chats whose logs stay in memory."""


class Reports:
    """Builds the reports of a host; thread-safe."""

    def __init__(self) -> None:
        self._readers: dict[str, LogReader] = {}
        self._lock = threading.Lock()

    def show_cost(self, services: Services, request: ShowCost) -> dict[str, Any]:
        """Return the cost report as `{title, text, spans}`.

        Raises:
            StoreError: the log cannot be read.
        """
        spending = Spending(services, request.chat)
        budgets, everywhere = spending.budgets(), spending.of_all_chats()
        with self._lock:
            page = _page(request.width, ascii=request.ascii)
            counts = _local_counts(services, request.chat)
            record = self._record(services, request.chat)
            report = cost_report(record, page, budgets, everywhere, counts, _speeds(services, record))
        return {"title": "Cost", "text": report.text, "spans": report.spans}

    def show_trace(self, services: Services, request: ShowTrace) -> dict[str, Any]:
        """Return the trace of a turn as `{title, text, turn, turns}`.

        Raises:
            InputError: the turn does not exist; the message gives the valid range.
            StoreError: the log cannot be read.
        """
        with self._lock:
            record = self._record(services, request.chat)
            turn = find_turn(record, request.turn)
            text = trace_report(record, turn, _page(request.width))
        return {"title": f"Turn {turn.number}", "text": text, "turn": turn.number, "turns": len(record.turns)}

    def _record(self, services: Services, chat_id: str) -> Record:
        reader = self._readers.pop(chat_id, None) or LogReader()
        for event in services.store.load_events(chat_id, reader.last_seq):
            reader.read(event)
        self._readers[chat_id] = reader
        while len(self._readers) > MAX_CHATS:
            del self._readers[next(iter(self._readers))]
        record = reader.record()
        for call in record.calls:
            call.price_again(partial(priced_now, services))
        return record


def _speeds(services: Services, record: Record) -> dict[tuple[str, str], str]:
    """Return the current speeds of the user's own servers, by adapter and model."""
    named = {(call.adapter, call.model) for call in record.calls if call.is_local}
    return {one: text for one in named if (text := speed_of(services.adapters, *one).text)}


def _local_counts(services: Services, chat_id: str) -> LocalCounts | None:
    """Return estimated and exact counts of the messages in the context, or None if only an estimate is available."""
    if services.count_text is estimate_text:
        return None
    messages = project(services.store.load_events(chat_id)).messages
    estimated, exact = (
        sum(map(MessageCounter(text).message, messages)) for text in (estimate_text, services.count_text)
    )
    return LocalCounts(estimated, exact, EXACT_VOCABULARY)


def _page(width: int, *, ascii: bool = False) -> Page:
    zone = datetime.now().astimezone().tzinfo
    table = catalog.table_name()
    return Page(width=max(40, width), price_table=table, ascii=ascii, **({"zone": zone} if zone else {}))
