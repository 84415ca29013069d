"""The Chat Completions wire format of OpenAI and compatible endpoints (`providers.md`)."""

from __future__ import annotations

import secrets
from collections.abc import Callable
from typing import Literal

import msgspec

from codecompanion.adapters.alternation import is_refusal
from codecompanion.adapters.base import AdapterSettings, BlobReader, ChatRequest
from codecompanion.adapters.errors.error_map import Endpoint
from codecompanion.adapters.model_list import (
    OWNERS,
    find_limits,
    read_model_limits,
    read_model_names,
    read_model_owners,
)
from codecompanion.adapters.openai_chat.call_ids import MAX_ID_LENGTH
from codecompanion.adapters.openai_chat.decode import ChatDecoder
from codecompanion.adapters.openai_chat.gate import ChatJudge
from codecompanion.adapters.openai_chat.refusals import NOTHING_LEARNED, Learned, learn
from codecompanion.adapters.openai_chat.render import ChatRenderer, RenderOptions
from codecompanion.adapters.request_gate import Purpose, RequestGate
from codecompanion.adapters.transport.time_limits import is_loopback, is_own_server
from codecompanion.adapters.wire_format import HttpCall, WireFormat, origin_of
from codecompanion.counting.model_windows import ModelLimits
from codecompanion.errors import AdapterError
from codecompanion.formats import typed
from codecompanion.formats.outside_text import NOT_READABLE

PATH = "/chat/completions"
_LLAMA_CPP_REPORT, _VLLM_REPORT = "/props", "/v1/models"
"""Paths where llama.cpp (`tools/server`) and vLLM (`entrypoints/serve/tokenize`) report their context windows. Both
servers count prompts.
"""
LLAMA_CPP = "llamacpp"
"""The `owned_by` in llama.cpp's list of models; only this server is asked to report prompt progress."""
_NO_COUNT = (400, 404, 405, 422, 501)


class _Count(msgspec.Struct):
    """The token count in a response: `input_tokens` from llama.cpp, `count` from vLLM."""

    input_tokens: int = -1
    count: int = -1


def new_call_id() -> str:
    """Return an id for a tool call that arrived without one."""
    return f"call_{secrets.token_hex(12)}"


class OpenAIChat(WireFormat):
    """Chat Completions, without provider-side compaction; only the user's own servers count tokens."""

    origin_name = "openai_chat"

    def __init__(
        self,
        settings: AdapterSettings,
        read_blob: BlobReader,
        options: RenderOptions | None = None,
        new_id: Callable[[], str] = new_call_id,
    ) -> None:
        self._path = settings.chat_path or PATH
        self._origin = origin_of(self.origin_name, settings.base_url)
        options = options or RenderOptions()
        self.returns_readable_reasoning = options.send_reasoning is not False
        self._settings, self._options = settings, options
        self._renderer = ChatRenderer(settings, options, read_blob, self._origin)
        self._new_id = new_id
        self._learned: dict[str, Learned] = {}
        self._limits: dict[str, ModelLimits] = {}
        self._owners: dict[str, str] = {}
        self._count_path = _count_path(settings, self._path)
        self._counts_nothing: set[str] = set()

    def render(self, request: ChatRequest) -> HttpCall:
        """Return the request as sent."""
        return HttpCall(self._path, self._renderer.render(request, self._known(request)))

    def gate(self) -> RequestGate:
        """Return the gate that validates finished bodies."""
        own_keys = (self._options.reasoning_field,) if self._options.reasoning_field else ()
        of_llama = ("return_progress",) if is_loopback(self._settings.base_url) else ()
        configured = frozenset((*self._settings.parameters, *of_llama))
        is_openai = self._settings.kind == "openai"

        def new_judge(_purpose: Purpose) -> ChatJudge:
            return ChatJudge(
                "openai" if is_openai else "compatible",
                configured=configured,
                max_id_length=MAX_ID_LENGTH if is_openai else 0,
                own_keys=own_keys,
            )

        return RequestGate(self._settings.name, "messages", new_judge)

    def render_count(self, request: ChatRequest) -> HttpCall | None:
        """Return the request that counts a prompt's tokens, or None if the endpoint cannot count or forwards it."""
        passes_on = self.runs_model_itself(request.model) is False
        if not self._count_path or passes_on or request.model in self._counts_nothing:
            return None
        return HttpCall(self._count_path, self._renderer.render_count(request, self._known(request)))

    def read_count(self, body: bytes) -> int | None:
        """Return the token count, or None if the response contains none."""
        try:
            answer = typed.read_json(body, type=_Count)
        except NOT_READABLE:
            return None
        count = max(answer.input_tokens, answer.count)
        return count if count >= 0 else None

    def learn_missing(self, what: Literal["compaction", "count"], error: AdapterError, model: str) -> None:
        """Remember that the server cannot count tokens, if that is what the error means."""
        if what == "count" and error.status in _NO_COUNT:
            self._counts_nothing.add(model)

    def decoder(self, endpoint: Endpoint) -> ChatDecoder:
        """Return a fresh decoder for one reply."""
        return ChatDecoder(endpoint, self._new_id, self._origin)

    def read_models(self, body: bytes) -> list[str]:
        """Return the model names in the list of models, and remember their context windows and owners."""
        self._limits.update(read_model_limits(body))
        self._owners.update(read_model_owners(body))
        return read_model_names(body)

    def use_recognised_server(self, settings: AdapterSettings) -> None:
        """Count prompts as the recognised server does."""
        self._count_path = _count_path(settings, self._path)

    def forget_models(self) -> None:
        """Forget the list of models, because another server answers at the address."""
        self._limits.clear()
        self._owners.clear()
        self._counts_nothing.clear()

    def limits(self, model: str) -> ModelLimits | None:
        """Return the limits that the endpoint reports for the model."""
        return find_limits(self._limits, model)

    def runs_model_itself(self, model: str) -> bool | None:
        """Return whether the server runs the model or forwards requests, by the model's owner; None if unknown."""
        return OWNERS.get(self._owners.get(model, ""))

    def learn_refusal(self, error: AdapterError, request: ChatRequest) -> bool:
        """Learn from a refused request; return whether rendering it again avoids the refusal."""
        if not is_refusal(error):
            return False
        # Facts that the server reports are not stored, because another server may run here later.
        kept = self._learned.get(request.model, NOTHING_LEARNED)
        learned = learn(kept, str(error), limit_field=self._renderer.limit_field(request, kept))
        if learned is None:
            return False
        self._learned[request.model] = learned
        return True

    def _known(self, request: ChatRequest) -> Learned:
        learned = self._learned.get(request.model, NOTHING_LEARNED)
        if not self.takes_images(request.model):
            learned = msgspec.structs.replace(learned, images=False)
        # It accepts any model name, so the list does not have to include this one.
        is_llama = set(self._owners.values()) == {LLAMA_CPP} and is_loopback(self._settings.base_url)
        if is_llama and learned.tells_progress is None:
            learned = msgspec.structs.replace(learned, tells_progress=True)
        return learned


def _count_path(settings: AdapterSettings, path: str) -> str:
    """Return the path or URL where the user's own server counts the tokens of a prompt, or "" if it cannot.

    `limits_path` is a URL if the server was recognised.
    """
    if not is_own_server(settings):
        return ""
    if settings.limits_path.endswith(_LLAMA_CPP_REPORT) and path.endswith(PATH):
        return f"{path}/input_tokens"
    if settings.limits_path == _VLLM_REPORT:
        return f"{path.removesuffix(f'/v1{PATH}')}/tokenize" if path.endswith(f"/v1{PATH}") else ""
    if settings.limits_path.endswith(_VLLM_REPORT):
        return f"{settings.limits_path.removesuffix(_VLLM_REPORT)}/tokenize"
    return ""
