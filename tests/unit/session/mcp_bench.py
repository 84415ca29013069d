"""A chat with MCP servers: the session bench with the servers of its settings."""

from __future__ import annotations

import contextlib
import sys
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import msgspec

from codecompanion.engine.mcp import McpHost
from codecompanion.session.session import Session
from codecompanion.settings import load
from tests.mcp.listener import HOSTILE
from tests.patience import PATIENCE_S
from tests.unit.session.fakes import Bench, ScriptedAdapter

PROPER = HOSTILE.with_name("proper.py")


def server(*ways: str, **more: Any) -> dict[str, Any]:
    """Return the entry of the hostile server with these behaviours."""
    base = {"enabled": True, "cmd": [sys.executable, str(HOSTILE), *ways], "start_timeout_s": PATIENCE_S}
    return {**base, "timeout_s": PATIENCE_S, **more}


@contextlib.asynccontextmanager
async def with_servers(
    root: Path, adapter: ScriptedAdapter, servers: dict[str, Any], **mcp: Any
) -> AsyncIterator[tuple[Bench, Session, McpHost]]:
    """Yield a bench, an open chat and its servers, and end the servers."""
    settings = {"servers": servers, "wait_s": PATIENCE_S, **mcp}
    bench = Bench(root, adapter)
    loaded = load({"mcp": settings}).mcp
    bench.services.settings = msgspec.structs.replace(bench.services.settings, mcp=loaded)
    chats: dict[str, Session] = {}
    host = McpHost(bench.services, chats)
    session = await bench.open()
    chats[session.chat_id] = session
    try:
        yield bench, session, host
    finally:
        await host.aclose()
