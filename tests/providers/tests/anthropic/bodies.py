"""Request bodies for tests of the fake Messages server, and short functions for sending them."""

from __future__ import annotations

import base64
import json
import struct
from typing import Any

from tests.providers.anthropic.models import SONNET
from tests.providers.anthropic.prompt import prompt_of
from tests.providers.anthropic.refusals import Refusal
from tests.providers.anthropic.server import AnthropicServer
from tests.providers.anthropic.signing import (
    binding_at_end,
    demanded_block,
    redacted_block,
    thinking_block,
    threshold_block,
)
from tests.providers.loopback.server import Received

Body = dict[str, Any]
MARK: Body = {"cache_control": {"type": "ephemeral"}}
TOOL = {"name": "now", "input_schema": {"type": "object"}}
CALL = {"type": "tool_use", "id": "a", "name": "now", "input": {}}
RESULT = {"type": "tool_result", "tool_use_id": "a", "content": "noon"}
ENABLED = {"type": "enabled", "budget_tokens": 1024}


def text(words: str = "hi", **more: Any) -> Body:
    return {"type": "text", "text": words, **more}


def user(*blocks: Any) -> Body:
    return {"role": "user", "content": list(blocks) or [text()]}


def assistant(*blocks: Any) -> Body:
    return {"role": "assistant", "content": list(blocks)}


def body(*messages: Any, **fields: Any) -> Body:
    return {"model": SONNET.id, "max_tokens": 2048, "messages": list(messages) or [user()], **fields}


def calling(*blocks: Any, **fields: Any) -> Body:
    """Return a request in the middle of a tool turn, with these blocks in the assistant message."""
    return body(user(), assistant(*blocks), user(RESULT), **{"tools": [TOOL], **fields})


THINKING = thinking_block("let me see", binding_at_end(prompt_of(body())))
REDACTED = redacted_block(1, binding_at_end(prompt_of(body())))


def edits(*wanted: Body) -> Body:
    return {"context_management": {"edits": list(wanted)}}


def demand(*messages: Any, **fields: Any) -> Body:
    return body(*messages, compaction={"type": "summarize"}, **fields)


def image(side: int = 10, padding: int = 0, kind: str = "image/png") -> Body:
    head = b"\x89PNG\r\n\x1a\n" + struct.pack(">I4sII", 13, b"IHDR", side, side) + b"\0" * padding
    source = {"type": "base64", "media_type": kind, "data": base64.b64encode(head).decode()}
    return {"type": "image", "source": source}


EDITING, THRESHOLD, DEMAND = "context-management-2025-06-27", "compact-2026-01-12", "compact-2026-09-04"
SIGNED = demanded_block("what was said", prompt_of(body()))
SUMMARY = threshold_block("what was said", encrypted=True)
COMPACT = {"type": "compact_20260112", "trigger": {"type": "input_tokens", "value": 50_000}}
CLEAR = {
    "type": "clear_tool_uses_20250919",
    "trigger": {"type": "tool_uses", "value": 1},
    "keep": {"type": "tool_uses", "value": 1},
}
LONG = "x" * 200_000
"""About 55,600 tokens by the server's count."""


def ask(
    request: Any, *betas: str, path: str = "/v1/messages", server: AnthropicServer | None = None, **headers: str | None
) -> tuple[int, Any]:
    """Return the status and JSON of a server's answer, without sockets; `headers` with the value None are omitted."""
    given: dict[str, str | None] = {"x_api_key": "sk-test", "anthropic_version": "2026-10-21"}
    given |= {"anthropic_beta": ",".join(betas), **headers}
    kept = {name.replace("_", "-"): value for name, value in given.items() if value is not None}
    raw = request if isinstance(request, bytes) else json.dumps(request).encode()
    answer = (server or AnthropicServer()).answer(Received("POST", path, kept, raw))
    return answer.status, json.loads(b"".join(part for part in answer.parts if isinstance(part, bytes)))


def refusal_of(request: Any, *betas: str, server: AnthropicServer | None = None, **options: Any) -> Refusal | None:
    """Return why a server refuses the request, or None; the options are those of `ask`."""
    server = server or AnthropicServer()
    status, seen = ask(request, *betas, server=server, **options)
    if status == 200:
        return None
    refusal = server.refusals[-1]
    assert (status, seen) == (refusal.status, refusal.body("req_0000loopback"))
    return refusal


def check_pair(bad: Any, words: str, good: Any, betas: tuple[str, ...] = (), **options: Any) -> None:
    """Check that a request is refused with these words and a similar valid one is not."""
    refusal = refusal_of(bad, *betas, **options)
    assert refusal is not None
    assert words in refusal.message
    assert (refusal.status, refusal.type) == (400, "invalid_request_error")
    assert refusal_of(good, *betas, **options) is None
