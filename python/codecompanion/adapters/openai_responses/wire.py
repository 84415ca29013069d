"""The Responses wire format of OpenAI, Azure, and compatible endpoints (`providers.md`)."""

from __future__ import annotations

import re
from typing import Literal

import msgspec

from codecompanion.adapters.alternation import is_refusal, wants_alternation
from codecompanion.adapters.base import AdapterSettings, BlobReader, ChatRequest, CompactionDone
from codecompanion.adapters.errors.error_map import Endpoint
from codecompanion.adapters.model_list import read_model_names
from codecompanion.adapters.openai_chat.usage import normalise_usage
from codecompanion.adapters.openai_responses.decode import ResponsesDecoder
from codecompanion.adapters.openai_responses.gate import Endpoint as Judged
from codecompanion.adapters.openai_responses.gate import ResponsesJudge
from codecompanion.adapters.openai_responses.options import ResponsesOptions
from codecompanion.adapters.openai_responses.render import ENCRYPTED_REASONING, ResponsesRenderer
from codecompanion.adapters.request_gate import Purpose, RequestGate
from codecompanion.adapters.wire_format import HttpCall, WireFormat, origin_of
from codecompanion.errors import AdapterError, EncryptedRefused, MalformedReply, ModelNotFound, RequestRejected
from codecompanion.formats import typed
from codecompanion.formats.outside_text import NOT_READABLE
from codecompanion.formats.regex import regex
from codecompanion.model.messages import CompactionPart

PATH = "/responses"
_COMPACT = "/compact"
_COUNT = "/input_tokens"
_ENDPOINTS: dict[Purpose, Judged] = {"reply": "responses", "compaction": "compact", "count": "count"}
_IS_REFUSAL = regex(
    r"unsupported|not (?:yet )?supported|unknown|unrecogni[sz]ed|not permitted|unexpected|extra|invalid"
    r"|not available|not allowed|must be verified",
    re.IGNORECASE,
)
# The optional fields of a request, and an endpoint's names for them in its refusals.
_NAMED = {
    "context_management": regex(r"context_management|compact_threshold"),
    "prompt_cache_key": regex(r"prompt_cache_key"),
    "truncation": regex(r"\btruncation\b"),
    "include": regex(rf"['\"`]include\b|{re.escape(ENCRYPTED_REASONING)}|encrypted content is not", re.IGNORECASE),
    "reasoning.summary": regex(
        r"reasoning[. ]summar|['\"`]reasoning['\"`]|reasoning\.effort['\"`] is not supported|reasoning is not"
    ),
}


class _Compacted(msgspec.Struct):
    output: list[msgspec.Raw]
    usage: object = None


class _Typed(msgspec.Struct):
    type: str = ""


class OpenAIResponses(WireFormat):
    """The Responses format, with nothing stored by the provider."""

    origin_name = "openai_responses"
    renderer = ResponsesRenderer

    def __init__(
        self, settings: AdapterSettings, read_blob: BlobReader, options: ResponsesOptions | None = None
    ) -> None:
        self._settings = settings
        self._path = settings.chat_path or PATH
        self._options = options or ResponsesOptions()
        self._origin = origin_of(self.origin_name, settings.base_url)
        self._renderer = self.renderer(settings, self._options, read_blob, self._origin)
        # Features that the endpoint lacks, by model: `compaction` on demand, `count`.
        self._missing: set[tuple[str, str]] = set()

    def render(self, request: ChatRequest) -> HttpCall:
        """Return the request as sent."""
        return HttpCall(self._path, self._renderer.render(request))

    def gate(self) -> RequestGate:
        """Return the gate that validates finished bodies."""
        configured = frozenset(self._settings.parameters)

        def new_judge(purpose: Purpose) -> ResponsesJudge:
            return ResponsesJudge(_ENDPOINTS[purpose], configured=configured)

        return RequestGate(self._settings.name, "input", new_judge)

    def decoder(self, endpoint: Endpoint) -> ResponsesDecoder:
        """Return a fresh decoder for one reply."""
        return ResponsesDecoder(endpoint, self._origin)

    def compacts_natively(self, model: str) -> bool:
        """Return whether the endpoint compacts automatically (R-534); this is assumed until it refuses to."""
        return self._options.compaction and "context_management" not in self._renderer.refused[model]

    def render_compaction(self, request: ChatRequest, instructions: str) -> HttpCall | None:
        """Return the request that compacts on demand (R-540), or None if it is disabled or unsupported."""
        if not self._options.compaction or ("compaction", request.model) in self._missing:
            return None
        return HttpCall(self._below(_COMPACT), self._renderer.render_compaction(request, instructions))

    def read_compaction(self, body: bytes, endpoint: Endpoint) -> CompactionDone:
        """Return the compaction, which consists of all items in the response and must be sent back unchanged."""
        try:
            answer = typed.read_json(body, type=_Compacted)
            kinds = [typed.read_json(item, type=_Typed).type for item in answer.output]
        except NOT_READABLE as error:
            raise MalformedReply(endpoint.say(f"the compaction response cannot be read ({error}).")) from None
        if "compaction" not in kinds:
            raise MalformedReply(endpoint.say("the compaction response contains no compaction."))
        usage = normalise_usage(answer.usage)
        encrypted = b"[" + b",".join(bytes(item) for item in answer.output) + b"]"
        tokens = usage.output_tokens if usage else 0
        return CompactionDone(CompactionPart(self._origin, encrypted.decode("utf-8", "replace"), tokens=tokens), usage)

    def render_count(self, request: ChatRequest) -> HttpCall | None:
        """Return the request that counts the tokens of a prompt."""
        if ("count", request.model) in self._missing:
            return None
        return HttpCall(self._below(_COUNT), self._renderer.render_count(request))

    def read_count(self, body: bytes) -> int | None:
        """Return the token count, or None if the response contains none."""
        try:
            answer = msgspec.json.decode(body)
        except NOT_READABLE:
            return None
        count = answer.get("input_tokens") if isinstance(answer, dict) else None
        return count if type(count) is int and count >= 0 else None

    def read_models(self, body: bytes) -> list[str]:
        """Return the model names in the list of models, which has no context windows."""
        return read_model_names(body)

    def learn_refusal(self, error: AdapterError, request: ChatRequest) -> bool:
        """Learn to omit a field that the endpoint rejected for this model, or to alternate roles."""
        if not is_refusal(error) or isinstance(error, EncryptedRefused):
            return False
        said = str(error)
        if wants_alternation(said):
            known = request.model in self._renderer.alternating
            self._renderer.alternating.add(request.model)
            return not known
        if not _IS_REFUSAL.search(said):
            return False
        refused, head = self._renderer.refused[request.model], self._renderer.head(request)
        for field, name in _NAMED.items():
            if field not in refused and name.search(said):
                refused.add(field)
                if self._renderer.head(request) != head:
                    return True
                # The user set it, so the user is notified.
                refused.discard(field)
        return False

    def learn_missing(self, what: Literal["compaction", "count"], error: AdapterError, model: str) -> None:
        """Remember that the endpoint has no `compaction` on demand or no token `count`, if the error means that."""
        gone = (
            isinstance(error, ModelNotFound)
            or error.status in (404, 405, 501)
            or (
                isinstance(error, RequestRejected)
                and not isinstance(error, EncryptedRefused)
                and re.search(r"\(404\)|\(405\)|unsupported|not supported|unknown", str(error)) is not None
            )
        )
        if gone:
            self._missing.add((what, model))

    def _below(self, name: str) -> str:
        path, mark, query = self._path.partition("?")
        return f"{path.rstrip('/')}{name}{mark}{query}"
