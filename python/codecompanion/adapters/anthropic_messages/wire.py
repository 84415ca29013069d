"""The Anthropic Messages wire format: chat, compaction on demand, counting, models (`providers.md`)."""

from __future__ import annotations

import logging
import re
from collections.abc import Callable, Mapping
from typing import Any, Literal

import msgspec

from codecompanion.adapters.anthropic_messages.blocks import MessageRenderer
from codecompanion.adapters.anthropic_messages.conversation import Conversation
from codecompanion.adapters.anthropic_messages.decode import MessagesDecoder
from codecompanion.adapters.anthropic_messages.gate import MessagesJudge
from codecompanion.adapters.anthropic_messages.media import Media
from codecompanion.adapters.anthropic_messages.model_facts import ModelFacts
from codecompanion.adapters.anthropic_messages.options import MessagesOptions
from codecompanion.adapters.anthropic_messages.parameters import (
    ON_DEMAND_BETA,
    THRESHOLD_BETA,
    Head,
    beta_header,
    can_drop_mismatched_thinking,
    compaction_parameter,
    counted,
    drop_mismatched_thinking,
    fit_thinking,
    needed_betas,
    threshold_edits,
    without_conflicts,
)
from codecompanion.adapters.anthropic_messages.render import BodyRenderer, Rendered, RenderOptions
from codecompanion.adapters.base import (
    AdapterSettings,
    BlobReader,
    ChatRequest,
    CompactionDone,
    Finished,
    TextDelta,
    ToolCallStarted,
)
from codecompanion.adapters.clouds import TAKES_FIELDS
from codecompanion.adapters.errors.error_map import Endpoint
from codecompanion.adapters.model_list import read_model_names
from codecompanion.adapters.openai_chat.wire import new_call_id
from codecompanion.adapters.request_gate import Purpose, RequestGate
from codecompanion.adapters.wire_format import HttpCall, WireFormat, origin_of
from codecompanion.counting.model_windows import ModelLimits
from codecompanion.errors import AdapterError, RequestRejected
from codecompanion.formats import typed
from codecompanion.formats.outside_text import NOT_READABLE
from codecompanion.formats.regex import regex

_log = logging.getLogger(__name__)

PATH = "/v1/messages"
_NO_THRESHOLD = regex(rf"context_management|compact_20260112|{THRESHOLD_BETA}", re.IGNORECASE)
_NO_ON_DEMAND = regex(rf"\bcompaction\b.{{0,60}}(?:not support|not permitted|unknown)|{ON_DEMAND_BETA}", re.IGNORECASE)
_LIFETIMES_S = {"5m": 300.0, "1h": 3600.0}
_NO_CACHE = regex(r"cache_control.{0,40}(?:not permitted|not support|unknown|unexpected)", re.IGNORECASE)
_MISMATCH = regex(r"bound to a different conversation|prefix_mismatch_behavior", re.IGNORECASE)


class AnthropicMessages(WireFormat):
    """One endpoint that speaks the Messages API."""

    key_header = "x-api-key"
    key_value = "${api_key}"
    models_path = f"{PATH.rpartition('/')[0]}/models?limit=1000"
    model_list_tells = True
    origin_name = "anthropic"

    def __init__(
        self,
        settings: AdapterSettings,
        read_blob: BlobReader,
        options: MessagesOptions | None = None,
        new_id: Callable[[], str] = new_call_id,
    ) -> None:
        self._settings = settings
        self._options = options or MessagesOptions()
        self.cache_lifetime_s = _LIFETIMES_S[self._options.cache_ttl] if self._options.cache else 0.0
        self._path = settings.chat_path or PATH
        self._origin = origin_of(self.origin_name, settings.base_url)
        self._bodies = BodyRenderer(
            settings.name, self._origin, MessageRenderer(self._origin, Media(self._options, read_blob))
        )
        # Without its beta the model list does not report compaction on demand.
        self.models_headers = beta_header(settings.headers, [ON_DEMAND_BETA])
        if settings.client in TAKES_FIELDS:
            self.models_path, self.model_list_tells = "", False
        self._facts = ModelFacts()
        self._counts_nothing: set[str] = set()
        """Models whose tokens the endpoint cannot count."""
        self._new_id = new_id

    def render(self, request: ChatRequest) -> HttpCall:
        """Return the request as sent."""
        rendered = self._bodies.read(request, self._render_options(request), keep=True)
        return self._call(self._path, self._chat_head(request, rendered), rendered, request)

    def gate(self) -> RequestGate:
        """Return the gate that validates finished bodies."""
        configured = frozenset(self._settings.parameters)

        def new_judge(purpose: Purpose) -> MessagesJudge:
            return MessagesJudge(strict=False, configured=configured, is_count=purpose == "count")

        return RequestGate(self._settings.name, "messages", new_judge)

    def decoder(self, endpoint: Endpoint) -> MessagesDecoder:
        """Return a fresh decoder for one reply."""
        return MessagesDecoder(endpoint, self._origin, self._new_id)

    def compacts_natively(self, model: str) -> bool:
        """Return whether the model compacts during a request with `compact_at` (R-534)."""
        wanted = self._options.compaction
        known = self._facts.compacts(model, "threshold")
        return wanted is not False and not self._facts.has_quirk(model, "threshold") and bool(wanted or known)

    def render_compaction(self, request: ChatRequest, instructions: str) -> HttpCall | None:
        """Return the request that compacts now (R-540), or None if the model does not support it.

        The request cannot contain an earlier automatic compaction by the server: its summary is sent as text.
        """
        wanted = self._options.compaction
        if wanted is False or self._facts.has_quirk(request.model, "on_demand"):
            return None
        if not (wanted or self._facts.compacts(request.model, "on_demand")):
            return None
        rendered = self._bodies.read(request, self._render_options(request, unsigned=False), keep=False)
        max_tokens = self._max_tokens(request)
        fields = {"model": request.model, "max_tokens": max_tokens, **without_conflicts(self._settings.parameters)}
        # Streaming keeps the connection alive however long the summary takes.
        fields |= {"max_tokens": max_tokens, "stream": True}
        self._fit_thinking(fields, rendered.conversation, max_tokens)
        fields["compaction"] = compaction_parameter(self._options, instructions)
        return self._call(self._path, Head(fields, mark=self._mark(request)), rendered, request)

    def read_compaction(self, body: bytes, endpoint: Endpoint) -> CompactionDone:
        """Return the result of a compaction; without a `part`, the model wrote no summary and nothing changed.

        Raises:
            RequestRejected: the endpoint does not compact on demand; this is remembered.
        """
        decoder = self.decoder(endpoint)
        is_json = body.lstrip()[:1] == b"{"
        events = decoder.read_json(body) if is_json else [*decoder.feed(body), *decoder.finish()]
        if decoder.problem is not None:
            raise decoder.problem
        done = next((event for event in events if isinstance(event, CompactionDone)), None)
        finished = next((event for event in events if isinstance(event, Finished)), None)
        if done is None and any(isinstance(event, TextDelta | ToolCallStarted) for event in events):
            # LiteLLM's proxy ignores the unknown key and replies to the chat instead.
            self._facts.learn(endpoint.model, "on_demand")
            raise RequestRejected(endpoint.say(f"{endpoint.model} answered instead of compacting."))
        counted = decoder.counted
        usage = counted.compactions[-1] if counted.compactions else counted.reply
        if done is None or done.part is None:
            stop = finished.stop if finished is not None else "nothing"
            _log.warning("%s: no summary was returned (%s)", endpoint.name, stop)
            return CompactionDone(None, usage)
        tokens = usage.output_tokens if usage is not None else 0
        return CompactionDone(msgspec.structs.replace(done.part, tokens=tokens), usage)

    def render_count(self, request: ChatRequest) -> HttpCall | None:
        """Return the request that counts the tokens of a prompt after the server's edits, or None if unsupported."""
        if request.model in self._counts_nothing or self._settings.client == "bedrock":
            return None
        rendered = self._bodies.read(request, self._render_options(request), keep=True)
        head = self._chat_head(request, rendered)
        kept = counted(head.fields) | {k: v for k, v in head.fields.items() if k in ("model", "context_management")}
        return self._call(f"{self._path}/count_tokens", Head(kept, mark=head.mark), rendered, request)

    def read_count(self, body: bytes) -> int | None:
        """Return the token count, or None if the response contains none."""
        try:
            return typed.read_json(body, type=_Count).input_tokens
        except NOT_READABLE:
            return None

    def read_models(self, body: bytes) -> list[str]:
        """Return the model names in the list of models, and remember the facts about them."""
        self._facts.read_model_list(body)
        return read_model_names(body)

    def limits(self, model: str) -> ModelLimits | None:
        """Return the limits that the endpoint reports for the model."""
        return self._facts.limits(model)

    def learn_refusal(self, error: AdapterError, request: ChatRequest) -> bool:
        """Record that a model lacks compaction or caching, or rejects thinking from a changed conversation.

        Return whether the refusal taught something new.
        """
        if not isinstance(error, RequestRejected):
            return False
        said, model = str(error), request.model
        if _MISMATCH.search(said):
            return self._facts.learn(model, "mismatch")
        if _NO_CACHE.search(said) and self._options.cache:
            return self._facts.learn(model, "cache")
        if request.compact_at and self.compacts_natively(model) and _NO_THRESHOLD.search(said):
            return self._facts.learn(model, "threshold")
        return False

    def learn_missing(self, what: Literal["compaction", "count"], error: AdapterError, model: str) -> None:
        """Record that the model does not compact on demand, or that the endpoint cannot count its tokens."""
        if what == "count" and error.status in (404, 405, 501):
            self._counts_nothing.add(model)
        if what == "compaction" and isinstance(error, RequestRejected) and _NO_ON_DEMAND.search(str(error)):
            self._facts.learn(model, "on_demand")

    def _render_options(self, request: ChatRequest, *, unsigned: bool = True) -> RenderOptions:
        thinking = self._settings.parameters.get("thinking")
        bound = self._facts.has_quirk(request.model, "mismatch") and not can_drop_mismatched_thinking(thinking)
        threshold = unsigned and request.compact_at > 0 and self.compacts_natively(request.model)
        return RenderOptions(
            think=request.send_encrypted and not bound,
            unsigned=threshold and request.send_encrypted,
            signed=request.send_encrypted,
        )

    def _chat_head(self, request: ChatRequest, rendered: Rendered) -> Head:
        """Return the fields of a chat request."""
        max_tokens = self._max_tokens(request)
        fields: dict[str, Any] = {"model": request.model, "stream": True, **self._settings.parameters}
        fields["max_tokens"] = max_tokens
        if request.tools and self._settings.parallel_tool_calls is False:
            choice = fields.get("tool_choice")
            given = choice if isinstance(choice, Mapping) else {"type": "auto"}
            fields["tool_choice"] = {**given, "disable_parallel_tool_use": True}
        self._fit_thinking(fields, rendered.conversation, max_tokens)
        if request.purpose == "chat":
            # The provider does not compact after a signed compaction; another one on demand replaces it.
            compacts = self.compacts_natively(request.model) and not rendered.signed
            edits = threshold_edits(self._options, request.compact_at if compacts else 0)
            if edits:
                fields["context_management"] = {"edits": edits}
        return Head(fields, mark=self._mark(request))

    def _fit_thinking(self, fields: dict[str, Any], conversation: Conversation, max_tokens: int) -> None:
        thinking = fields.get("thinking")
        lacks_start = conversation.starts_with_thinking is False
        fitted = fit_thinking(thinking, max_tokens, lacks_start=lacks_start)
        if self._facts.has_quirk(str(fields["model"]), "mismatch"):
            fitted = drop_mismatched_thinking(fitted)
        if fitted is not None:
            fields["thinking"] = fitted

    def _max_tokens(self, request: ChatRequest) -> int:
        """Return the `max_tokens` that the API requires: the requested value, capped at the model's limit."""
        given = self._settings.parameters.get("max_tokens")
        asked = (
            request.max_output_tokens or (given if isinstance(given, int) else 0) or self._settings.max_output_tokens
        )
        largest = self._facts.largest_output(request.model)
        asked = asked or self._facts.output_limit(request.model)
        return min(asked, largest) if largest else asked

    def _mark(self, request: ChatRequest) -> dict[str, str] | None:
        """Return the value of a cache breakpoint, or None if caching is off or the request is a one-off summary."""
        if not self._options.cache or request.purpose != "chat" or self._facts.has_quirk(request.model, "cache"):
            return None
        if "cache_control" in self._settings.parameters:
            return None
        ttl = self._options.cache_ttl
        return {"type": "ephemeral"} if ttl == "5m" else {"type": "ephemeral", "ttl": ttl}

    def _call(self, path: str, head: Head, rendered: Rendered, request: ChatRequest) -> HttpCall:
        betas = needed_betas(head.fields, rendered.signed)
        chunks = self._bodies.body(head, rendered, request)
        return HttpCall(path, chunks, beta_header(self._settings.headers, betas))


class _Count(msgspec.Struct):
    input_tokens: int
