"""The items of a request that the model reads, and their tokens in order: tools, instructions, the conversation.

From the compaction guide: a compaction item replaces everything before it, so only the newest compaction and later
items are read; messages that `/responses/compact` kept before its item still belong to it. From the reasoning guide:
reasoning of earlier turns is not read again (recorded responses have `"context": "current_turn"`).
"""

from __future__ import annotations

import base64
import json
from collections.abc import Mapping, Sequence
from typing import Any

from tests.providers.loopback.token_count import IMAGE_TOKENS, MESSAGE_TOKENS, REPLY_TOKENS, Prompt
from tests.providers.responses.ledger import Ledger

Item = Mapping[str, Any]
_PAGE_TOKENS = 1000


def live_items(items: Sequence[Item], ledger: Ledger) -> tuple[Item, ...]:
    """Return the items from the newest compaction on, including the messages kept with it."""
    at = _newest_compaction(items)
    if at is None:
        return tuple(items)
    kept = _kept_beside(items[at], ledger)
    return (*(item for item in items[:at] if item.get("id") in kept), *items[at:])


def pruned_messages(items: Sequence[Item], ledger: Ledger) -> set[str]:
    """Return the ids of messages that an on-demand compaction kept but that were not sent with its item."""
    at = _newest_compaction(items)
    return set() if at is None else set(_kept_beside(items[at], ledger)) - {item.get("id", "") for item in items[:at]}


def lay_out(body: Mapping[str, Any], live: Sequence[Item], ledger: Ledger) -> Prompt:
    """Return the tokens of the request, in the order of the provider's prompt."""
    prompt = Prompt()
    for tool in body.get("tools") or ():
        prompt.add_text("\n".join(str(tool.get(name) or "") for name in ("name", "description")))
        prompt.add_text(_compact_json(tool.get("parameters") or tool))
    form = (body.get("text") or {}).get("format")
    if form and form.get("type") != "text":
        prompt.add_text(_compact_json(form))
    if body.get("instructions"):
        prompt.add_marks("instructions", MESSAGE_TOKENS)
        prompt.add_text(body["instructions"])
    turn = max((number for number, item in enumerate(live) if item.get("role") == "user"), default=-1)
    for number, item in enumerate(live):
        _add_item(prompt, item, ledger, reads_reasoning=number > turn)
    prompt.add_marks("reply", REPLY_TOKENS)
    return prompt


def _newest_compaction(items: Sequence[Item]) -> int | None:
    return max((number for number, item in enumerate(items) if item.get("type") == "compaction"), default=None)


def _kept_beside(item: Item, ledger: Ledger) -> tuple[str, ...]:
    return ledger.issued[ledger.opened(item["encrypted_content"]) or ""].kept


def _add_item(prompt: Prompt, item: Item, ledger: Ledger, *, reads_reasoning: bool) -> None:
    match item.get("type", "message"):
        case "reasoning":
            if reads_reasoning:
                prompt.add_marks(item["id"], ledger.issued[item["id"]].tokens)
        case "compaction":
            own = ledger.opened(item["encrypted_content"]) or ""
            prompt.add_marks(own, ledger.issued[own].tokens)
        case "message":
            prompt.add_marks(item["role"], MESSAGE_TOKENS)
            _add_content(prompt, item["content"])
        case "function_call":
            prompt.add_marks("call", MESSAGE_TOKENS)
            prompt.add_text(item["name"])
            prompt.add_text(item["arguments"])
        case "function_call_output":
            prompt.add_marks("output", MESSAGE_TOKENS)
            _add_content(prompt, item["output"])
        case _:
            prompt.add_text(_compact_json(item))


def _add_content(prompt: Prompt, content: str | Sequence[Mapping[str, Any]]) -> None:
    if isinstance(content, str):
        prompt.add_text(content)
        return
    for part in content:
        match part["type"]:
            case "input_image":
                prompt.add_marks(str(part.get("image_url")), IMAGE_TOKENS[part.get("detail") or "auto"])
            case "input_file":
                _add_file(prompt, str(part.get("file_data")))
            case "refusal":
                prompt.add_text(part["refusal"])
            case _:
                prompt.add_text(part["text"])


def _add_file(prompt: Prompt, url: str) -> None:
    """Append a file: plain text as it is, a thousand tokens for each page of a PDF."""
    head, _, encoded = url.partition(",")
    content = base64.b64decode(encoded)
    if head.startswith("data:text/"):
        prompt.add_text(content.decode(errors="replace"))
        return
    pages = content.count(b"/Type /Page") - content.count(b"/Type /Pages")
    prompt.add_marks(url, _PAGE_TOKENS * max(1, pages))


def _compact_json(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"))
