"""What shows a chat without changing it; imported when the user first looks, not when the host starts."""

from __future__ import annotations

import asyncio
from typing import Any, assert_never

from codecompanion.session.actions.forecast_compaction import forecast
from codecompanion.session.actions.preview_compaction import compare_with_last, preview
from codecompanion.session.chat.inspection import inspect, original, state_of
from codecompanion.session.services import Services
from codecompanion.session.session import Session
from codecompanion.wire.requests import ForecastCompaction, Inspect, Preview, ShowOriginal, ShowSystemPrompt

Look = Inspect | ForecastCompaction | Preview | ShowOriginal | ShowSystemPrompt


async def look(services: Services, session: Session, request: Look) -> object:
    """Return what the request asks to see."""
    match request:
        case Inspect():
            return inspect(session.control, session.log, session.narrowing.narrows)
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


async def _show_original(services: Services, session: Session, item: str) -> dict[str, Any]:
    events = await asyncio.to_thread(services.store.load_events, session.chat_id)
    message = original(events, session.log.view.messages, item)
    text = message.text
    if message.blob:
        stored = await asyncio.to_thread(services.store.read_blob, message.blob)
        text = stored.decode("utf-8", "surrogatepass")
    now = next((m for m in session.log.view.messages if m.id == message.id), None)
    state = state_of(now) if now else "summarised"
    return {"title": message.path or message.role, "text": text, "filetype": "text", "state": state}
