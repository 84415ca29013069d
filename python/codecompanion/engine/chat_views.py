"""Builds read-only views of a chat; imported when the user first opens one, not when the host starts."""

from __future__ import annotations

import asyncio
from typing import Any, assert_never

from codecompanion.model.history import ToolRan
from codecompanion.session.actions.forecast_compaction import forecast
from codecompanion.session.actions.preview_compaction import compare_with_last, preview
from codecompanion.session.chat.inspection import inspect, original, state_of
from codecompanion.session.chat.sent_requests import SentRequest, inspect_sent, read_sent, show
from codecompanion.session.services import Services
from codecompanion.session.session import Session
from codecompanion.wire.requests import (
    ForecastCompaction,
    Inspect,
    Preview,
    ShowOriginal,
    ShowRequest,
    ShowSystemPrompt,
)

Look = Inspect | ForecastCompaction | Preview | ShowOriginal | ShowRequest | ShowSystemPrompt


async def look(services: Services, session: Session, request: Look) -> object:
    """Return the requested view."""
    match request:
        case Inspect(request=0):
            return inspect(session.control, session.log, session.narrowing.narrows)
        case Inspect():
            return inspect_sent(await _read_sent(services, session, request.request), session.control)
        case ShowRequest():
            return await _show_request(services, session, request)
        case ForecastCompaction():
            return await asyncio.to_thread(forecast, session.control, session.log)
        case Preview(against="last_request"):
            return await asyncio.to_thread(compare_with_last, session.control, await session.log.events())
        case Preview():
            return await asyncio.to_thread(preview, session.control, session.log)
        case ShowOriginal():
            return await _show_original(services, session, request.item)
        case ShowSystemPrompt():
            names = [spec.name for spec in session.control.specs]
            return {"text": session.control.system_message.text, "tools": names}
        case _:
            assert_never(request)


async def _read_sent(services: Services, session: Session, number: int) -> SentRequest:
    events = await session.log.events()
    return await asyncio.to_thread(read_sent, events, number, session.control, services.store.read_blob)


async def _show_request(services: Services, session: Session, request: ShowRequest) -> dict[str, Any]:
    control = session.control
    if request.request:
        found = await _read_sent(services, session, request.request)
        adapter, wanted, title = found.sent.adapter, found.request, f"Request {found.number} of {found.count}"
    else:
        adapter, title = control.adapter_name, "Next request"
        wanted = control.shaper.request_of(control.shaper.current(), control.native.compact_at)
    body = b"" if request.item else await asyncio.to_thread(services.adapters.get(adapter).render, wanted)
    return show(wanted, request.item, body, title)


async def _show_original(services: Services, session: Session, item: str) -> dict[str, Any]:
    events = await asyncio.to_thread(services.store.load_events, session.chat_id)
    message = original(events, session.log.view.messages, item)
    text = message.text
    if message.blob:
        stored = await asyncio.to_thread(services.store.read_blob, message.blob)
        text = stored.decode("utf-8", "surrogatepass")
    now = next((m for m in session.log.view.messages if m.id == message.id), None)
    state = state_of(now) if now else "summarised"
    ran = next(
        (e.payload for e in events if isinstance(e.payload, ToolRan) and e.payload.message_id == message.id), None
    )
    title, summary = (ran.title or ran.name, ran.summary) if ran else (message.path or message.role, "")
    return {"title": title, "text": text, "filetype": "text", "state": state, "summary": summary}
