"""Renders a request as the bytes of a Responses body: `/responses`, `/responses/compact`, `/responses/input_tokens`.

Nothing is stored on the provider's side (`store: false`), so encrypted reasoning is requested and sent back; nothing is
truncated silently. The system prompt is `instructions`, and changing parts are last, so that the prefix stays constant
between requests (lesson 22). Items are rendered in `items.py` and cached in `pieces.py`.
"""

from __future__ import annotations

import hashlib
from collections import defaultdict
from typing import Any

from codecompanion.adapters.base import AdapterSettings, BlobReader, ChatRequest
from codecompanion.adapters.function_names import function_name
from codecompanion.adapters.joined_pieces import JoinedPieces
from codecompanion.adapters.openai_chat.render import encode
from codecompanion.adapters.openai_responses.items import ItemRenderer
from codecompanion.adapters.openai_responses.options import (
    MIN_OUTPUT_TOKENS,
    MIN_THRESHOLD,
    ResponsesOptions,
    may_reason,
)
from codecompanion.adapters.openai_responses.pieces import PieceRenderer
from codecompanion.model.invariants import with_partners
from codecompanion.model.messages import Message, ToolSpec, is_protected

ENCRYPTED_REASONING = "reasoning.encrypted_content"
_COUNTED = ("reasoning", "text", "tool_choice")
"""Parameters that affect the prompt, and therefore its token count."""


class ResponsesRenderer:
    """Renders requests for one adapter. `refused`: the fields that the endpoint rejected, by model."""

    def __init__(
        self, settings: AdapterSettings, options: ResponsesOptions, read_blob: BlobReader, origin: str
    ) -> None:
        self._settings, self._options = settings, options
        self._pieces = PieceRenderer(ItemRenderer(options, read_blob, origin), settings.name)
        self.refused: defaultdict[str, set[str]] = defaultdict(set)
        self.alternating = self._pieces.alternating

    def render(self, request: ChatRequest) -> tuple[bytes, ...]:
        """Return the body of a chat request, in chunks."""
        return _body(self.head(request), self._pieces.render(request), self.first_item(request))

    def first_item(self, request: ChatRequest) -> bytes:
        """Return an item to send before the items of the messages, or b""."""
        return b""

    def render_compaction(self, request: ChatRequest, instructions: str) -> tuple[bytes, ...]:
        """Return the body that compacts the messages of the request.

        Protected messages are omitted: they stay in the history unchanged, so a compaction would repeat them.
        """
        head: dict[str, Any] = {"model": request.model, **self._cache_key(request)}
        told = "\n\n".join(text for text in (_system_prompt(request), instructions.strip()) if text)
        if told:
            head["instructions"] = told
        messages = _without_protected(request.messages)
        return _body(head, self._pieces.render_only(messages, with_encrypted=request.send_encrypted))

    def render_count(self, request: ChatRequest) -> tuple[bytes, ...]:
        """Return the body that counts the tokens of the request's prompt."""
        full = self.head(request)
        head = {key: full[key] for key in ("model", "instructions", "tools", *_COUNTED) if key in full}
        return _body(head, self._pieces.render(request), self.first_item(request))

    def head(self, request: ChatRequest) -> dict[str, Any]:
        """Return the body without its items."""
        settings, refused = self._settings, self.refused[request.model]
        head: dict[str, Any] = {"model": request.model, "stream": True, "store": False, "truncation": "disabled"}
        head |= settings.parameters
        head |= self._reasoning(request.model, refused)
        head |= self._cache_key(request)
        limit = request.max_output_tokens or settings.max_output_tokens
        if limit:
            head["max_output_tokens"] = max(MIN_OUTPUT_TOKENS, limit)
        if request.compact_at and self._options.compaction:
            threshold = max(MIN_THRESHOLD, request.compact_at)
            head["context_management"] = [{"type": "compaction", "compact_threshold": threshold}]
        for field in refused & set(head):
            del head[field]
        if request.tools:
            if settings.parallel_tool_calls is not None:
                head["parallel_tool_calls"] = settings.parallel_tool_calls
            head["tools"] = [render_tool(tool) for tool in request.tools]
        prompt = _system_prompt(request)
        if prompt:
            head["instructions"] = prompt
        return head

    def _reasoning(self, model: str, refused: set[str]) -> dict[str, Any]:
        """Return `reasoning` and `include`; neither is sent to models known not to reason."""
        parameters = self._settings.parameters
        fields: dict[str, Any] = {}
        include = [name for name in parameters.get("include") or () if name != ENCRYPTED_REASONING]
        if may_reason(model):
            include.append(ENCRYPTED_REASONING)
            summary = self._options.reasoning_summary
            own = parameters.get("reasoning") or {}
            if summary != "none" and "summary" not in own and "reasoning.summary" not in refused:
                fields["reasoning"] = {**own, "summary": summary}
        if include:
            fields["include"] = include
        return fields

    def _cache_key(self, request: ChatRequest) -> dict[str, str]:
        """Return the chat's prompt cache key, which is the same for all its requests and reveals nothing about it."""
        wanted = self._options.prompt_cache_key and "prompt_cache_key" not in self.refused[request.model]
        if not wanted or not request.chat_id or "prompt_cache_key" in self._settings.parameters:
            return {}
        return {"prompt_cache_key": hashlib.sha256(request.chat_id.encode()).hexdigest()[:32]}


def _system_prompt(request: ChatRequest) -> str:
    first = request.messages[0] if request.messages else None
    return first.text if first is not None and first.role == "system" else ""


def _without_protected(messages: Any) -> list[Message]:
    protected = frozenset(k for k, message in enumerate(messages) if is_protected(message))
    left_out = with_partners(messages, protected)
    return [message for k, message in enumerate(messages) if k not in left_out]


def render_tool(tool: ToolSpec) -> dict[str, Any]:
    """Return the endpoint's description of a tool."""
    return {
        "type": "function",
        "name": function_name(tool.name),
        "description": tool.description,
        "parameters": tool.parameters,
        "strict": False,
    }


def _body(head: dict[str, Any], items: JoinedPieces, first: bytes = b"") -> tuple[bytes, ...]:
    comma = b"," if first and not items.is_empty else b""
    return items.between(encode(head)[:-1] + b',"input":[' + first + comma, b"]}")
