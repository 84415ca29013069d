"""The answer of `/responses/compact`: verbatim user messages, and one compaction item for the rest.

As recorded: assistant messages, calls and reasoning are dropped, user messages are returned as complete items with ids.
The guide calls this list the next context window and asks clients not to prune it, so the ledger remembers which
messages were kept.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from tests.providers.loopback.answers import Answer
from tests.providers.responses.answers import Compacted, Reply
from tests.providers.responses.ledger import Issued, Ledger
from tests.providers.responses.rules import Accepted
from tests.providers.responses.stream import CREATED_AT, Rendering


def compact(accepted: Accepted, ledger: Ledger, item: Compacted, wanted: Reply, usage: Mapping[str, Any]) -> Answer:
    """Return the compacted conversation; its items are entered into the ledger."""
    rendering = Rendering(Reply((item,)), accepted.body, ledger)
    model = str(accepted.body.get("model"))
    kept = [_as_kept(message, rendering) for message in accepted.live if message.get("role") == "user"]
    for message in kept:
        ledger.issued[message["id"]] = Issued(message, model, 0)
    compaction = rendering.output[0]
    ids = tuple(message["id"] for message in kept)
    ledger.issued[compaction["id"]] = Issued(compaction, model, item.tokens, kept=ids)
    body = {
        "id": rendering.response_id,
        "object": "response.compaction",
        "created_at": CREATED_AT,
        "output": [*kept, compaction],
        "usage": usage,
    }
    parts = wanted.faults.applied([json.dumps(body, ensure_ascii=False).encode()])
    return Answer(content_type="application/json", parts=parts)


def _as_kept(message: Mapping[str, Any], rendering: Rendering) -> dict[str, Any]:
    content = message["content"]
    parts = [{"type": "input_text", "text": content}] if isinstance(content, str) else list(content)
    own = rendering.ledger.new_id("msg", rendering.response_id)
    return {"content": parts, "id": own, "role": "user", "status": "completed", "type": "message"}
