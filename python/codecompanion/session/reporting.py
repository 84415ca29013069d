"""`/cost` and `/trace` of a stored chat: read its log, write the report (R-356…R-360). Nothing here is kept."""

from __future__ import annotations

from datetime import datetime
from typing import Any

from codecompanion.adapters import catalog
from codecompanion.reports.cost import cost_report
from codecompanion.reports.markdown import Page
from codecompanion.reports.record import Record, read_log
from codecompanion.reports.trace import find_turn, trace_report
from codecompanion.requests import ShowCost, ShowTrace
from codecompanion.session.services import Services
from codecompanion.session.spending import Spending


def show_cost(services: Services, request: ShowCost) -> dict[str, Any]:
    """Return `{title, text}`.

    Raises:
        StoreError: the log cannot be read.
    """
    budgets = Spending(services, request.chat).budgets()
    text = cost_report(_record(services, request.chat), _page(request.width), budgets)
    return {"title": "Cost", "text": text}


def show_trace(services: Services, request: ShowTrace) -> dict[str, Any]:
    """Return `{title, text, turn, turns}`.

    Raises:
        InputError: there is no such turn; names the range.
        StoreError: the log cannot be read.
    """
    record = _record(services, request.chat)
    turn = find_turn(record, request.turn)
    text = trace_report(record, turn, _page(request.width))
    return {"title": f"Turn {turn.number}", "text": text, "turn": turn.number, "turns": len(record.turns)}


def _record(services: Services, chat_id: str) -> Record:
    return read_log(services.store.load_events(chat_id))


def _page(width: int) -> Page:
    zone = datetime.now().astimezone().tzinfo
    return Page(width=max(40, width), price_table=catalog.table_name(), **({"zone": zone} if zone else {}))
