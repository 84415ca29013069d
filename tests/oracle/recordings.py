"""Recorded replies: those of real providers, where they are on this machine, and those of our own fakes."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import httpx2

from codecompanion.adapters.base import AdapterSettings, ChatRequest, ToolSpec
from codecompanion.adapters.registry import make_wire
from codecompanion.model.messages import Message
from tests.faults.faults import Call, Says
from tests.faults.wires import KEY, WIRES, adapter_settings
from tests.oracle.reading import Family, Reply

WIRE = Path(__file__).resolve().parents[3] / "shared" / "data" / "wire"
FAMILIES: tuple[Family, ...] = ("chat", "responses", "messages")
_TOOLS = (ToolSpec("weather", "Tell the weather", {"type": "object", "properties": {"city": {"type": "string"}}}),)
SAID: dict[str, Says] = {
    "text": Says("Hello, ünïcödé 🎉 world"),
    "thinking": Says("It is noon.", thinking="let me see"),
    "calls": Says("I look.", calls=(Call("weather", '{"city": "Łódź"}', "call_1"), Call("weather", "{}", "call_2"))),
    "call alone": Says(calls=(Call("weather", '{"city": "Oslo"}', "call_1"),)),
    "cut by its length": Says("Once upon a", stop="length"),
    "long": Says("word " * 2_000),
}
_FILES: dict[str, Family] = {"anthropic": "messages", "openai_responses": "responses"}


def of_providers() -> list[Reply]:
    """Return the recorded replies of providers, or [] if the recordings are missing."""
    if not WIRE.is_dir():
        return []
    found = []
    for line in (WIRE / "recorded.jsonl").read_text(encoding="utf-8").split("\n"):
        entry: dict[str, Any] = json.loads(line) if line else {}
        response = entry.get("response", "")
        body = response if isinstance(response, str) else json.dumps(response)
        streams = "event-stream" in entry.get("content_type", "")
        if entry.get("status") == 200 and entry["method"] == "POST" and (streams or _is_reply(entry["family"], body)):
            name = f"{Path(entry['source']).stem}-{entry['i']}"
            found.append(Reply(name, entry["family"], body.encode(), streams))
    for path in sorted((WIRE / "codecompanion").glob("*.txt")):
        family = next((family for name, family in _FILES.items() if path.name.startswith(f"{name}_")), "chat")
        body = path.read_bytes()
        streams = not body.lstrip().startswith(b"{")
        if streams or _is_reply(family, body.decode()):
            found.append(Reply(path.stem, family, body, streams, with_blank_lines(body)))
    return found


def with_blank_lines(body: bytes) -> bytes:
    """Return a stream as it was sent, with the blank lines that its recorder left out."""
    return re.sub(rb"(?m)^(data:.*)\n(?!\n)", rb"\1\n\n", body)


def _is_reply(family: str, body: str) -> bool:
    """Return whether a body is a reply, and not a count, a compaction or a different kind of stored object."""
    try:
        read = json.loads(body)
    except ValueError:
        return False
    marks = {"chat": "choices", "responses": "output", "messages": "content"}
    return isinstance(read, dict) and marks[family] in read and read.get("object") != "response.compaction"


async def of_our_fakes(family: Family, name: str, *, streams: bool = True) -> Reply:
    """Return the reply of a fake provider to a request rendered by our adapter."""
    server = WIRES[family].serve(lambda body: SAID[name], 0)
    async with server:
        settings: AdapterSettings = adapter_settings(WIRES[family], server.url)
        wire = make_wire(settings, lambda _: b"")
        message = Message(id="u", role="user", content="Hi")
        call = wire.render(ChatRequest(messages=(message,), tools=_TOOLS, model=settings.model))
        key = {"x-api-key": KEY} if family == "messages" else {"authorization": f"Bearer {KEY}"}
        headers = {**key, "content-type": "application/json", "anthropic-version": "2026-10-21", **call.headers}
        async with httpx2.AsyncClient() as http:
            base = server.url.rstrip("/")
            answer = await http.post(f"{base}/{call.path.lstrip('/')}", content=call.body, headers=headers)
        assert answer.status_code == 200, answer.text
    return Reply(name, family, answer.content, streams)
