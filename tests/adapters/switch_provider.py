"""The providers of a switched chat: for each a judging server, a real adapter connected to it, and encrypted parts.

All of them play the same story (`switch_story.py`) in their own format: signed thinking, encrypted reasoning, and call
ids. A `Stage` provides their replies and sees every request before it is answered.
"""

from __future__ import annotations

import math
import re
import struct
import zlib
from collections.abc import AsyncIterator, Iterable, Mapping
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, field, replace
from typing import Any, Protocol

from codecompanion.adapters.anthropic_messages.gate import check_body as check_anthropic
from codecompanion.adapters.base import AdapterSettings
from codecompanion.adapters.http.adapter import HttpAdapter
from codecompanion.adapters.openai_chat.gate import check_body as check_chat
from codecompanion.adapters.openai_responses.gate import check_body as check_responses
from codecompanion.adapters.registry import make_wire
from tests.adapters.switch_dialects import (
    VLLM,
    Dialect,
    DialectServer,
    DialectStep,
    Gemini,
    Kimi,
    Mistral,
    OpenAI,
    OpenRouter,
)
from tests.adapters.switch_reading import Wire
from tests.adapters.switch_story import IMAGE, PDF, Step
from tests.providers.anthropic import answers as anthropic_answers
from tests.providers.anthropic.models import HAIKU, OPUS, SONNET
from tests.providers.anthropic.server import AnthropicServer
from tests.providers.chat.answers import Counted
from tests.providers.loopback.answers import Answer, failure
from tests.providers.loopback.server import LoopbackServer, Received
from tests.providers.responses import answers as responses_answers
from tests.providers.responses.rules import Rules
from tests.providers.responses.server import ResponsesServer

_SEAL = re.compile(rb'"(?:signature|encrypted_content|thought_signature|data)"\s*:\s*"([^"\\]{24,})"')
_TOKEN = re.compile(rb"[A-Za-z0-9+/=_-]{24,}")
REPLY_TOKENS = 4_000


class Stage(Protocol):
    """Supplies the next step of the story."""

    def next_step(self, provider: Provider, body: Mapping[str, Any]) -> Step:
        """Return the next reply to an accepted request."""
        ...


@dataclass(frozen=True)
class Kind:
    """One kind of provider. `lessons` lists facts its adapter may learn from one refusal each."""

    wire: Wire
    settings: Mapping[str, Any] = field(default_factory=dict)
    dialect: type[Dialect] = Dialect
    server: Mapping[str, Any] = field(default_factory=dict)
    model: str = "test-model"
    lessons: tuple[str, ...] = ()

    @property
    def seals(self) -> bool:
        """Return whether this kind of provider encrypts anything that only it can read."""
        return self.wire != "chat" or self.dialect in (Gemini, OpenRouter)


_PDFS = {"options": {"document_input": True}}
_TOOL_TURNS = {"options": {"send_reasoning": "tool_turns", "reasoning_field": "reasoning_content"}}
_ANY_REASONING = {"options": {"send_reasoning": "tool_turns"}}
_CHANGED = "bound to a different conversation"
_THINKING = {"parameters": {"thinking": {"type": "enabled", "budget_tokens": 1024}}}
_ADAPTIVE = {"parameters": {"thinking": {"type": "adaptive"}}}
_OPENAI = {"kind": "openai", "max_tokens_field": "max_completion_tokens", **_PDFS}
_MISTRAL = {"include_usage": False, "options": {"short_call_ids": True, "reasoning_field": "content.thinking"}}
_NO_USER = "Unexpected role 'user' after role 'tool'"
KINDS: dict[str, Kind] = {
    "openai": Kind("chat", _OPENAI, OpenAI),
    "azure": Kind("chat", _PDFS, OpenAI, lessons=("string too long",)),
    "vllm": Kind("chat", _ANY_REASONING, VLLM, {"reasoning_fields": ("reasoning_content",)}),
    "mistral": Kind("chat", _MISTRAL, Mistral, lessons=(_NO_USER,)),
    "nim": Kind("chat", {}, Mistral, lessons=("with a length of 9", _NO_USER)),
    "gemini": Kind("chat", {}, Gemini, {"call_fields": ("extra_content",)}, lessons=("missing a thought_signature",)),
    "openrouter": Kind("chat", _PDFS, OpenRouter, {"reasoning_fields": ("reasoning_details",)}),
    "kimi": Kind(
        "chat",
        _TOOL_TURNS,
        Kimi,
        {"reasoning_fields": ("reasoning_content",)},
        lessons=("reasoning_content is missing",),
    ),
    "responses": Kind("responses"),
    "anthropic": Kind("anthropic", _THINKING, model=SONNET.id),
    "opus": Kind("anthropic", _ADAPTIVE, model=OPUS.id, lessons=(_CHANGED,)),
}
"""Kinds of providers by name; `name@localhost` is the same kind of endpoint on another host."""


@dataclass
class Provider:
    """One endpoint. `planted` are its own seals, `met` all texts in its requests that look like one."""

    name: str
    kind: Kind
    stage: Stage
    server: LoopbackServer = field(init=False)
    adapter: HttpAdapter = field(init=False)
    settings: AdapterSettings = field(init=False)
    planted: set[bytes] = field(default_factory=set)
    met: set[bytes] = field(default_factory=set)
    paths: list[str] = field(default_factory=list)
    complaints: list[str] = field(default_factory=list)
    _replies: int = 0

    @property
    def refusals(self) -> list[str]:
        """Return the server's refusals, in its words."""
        return [refusal.message for refusal in self.server.refusals]  # type: ignore[attr-defined]

    def make_server(self, window: int) -> LoopbackServer:
        """Return the provider's watched server."""
        kind = self.kind
        match kind.wire:
            case "chat":
                return watched(DialectServer, self)(
                    kind.dialect(self.name), window=window, default=self._say_in_chat, **kind.server
                )
            case "responses":
                rules = Rules(("test-model",), window)
                return watched(ResponsesServer, self)(rules=rules, default=self._say_in_responses)
            case "anthropic":
                models = tuple(replace(model, window=window) for model in (SONNET, OPUS, HAIKU))
                return watched(AnthropicServer, self)(models=models, default=self._say_in_messages)

    def open(self, window: int, **settings: Any) -> None:
        """Create the adapter; the server must be running."""
        kind = {"chat": "openai_compatible", "responses": "openai_responses", "anthropic": "anthropic"}
        url = self.server.url
        entry = {
            "kind": kind[self.kind.wire],
            "model": self.kind.model,
            "context_window": window,
            "max_output_tokens": min(REPLY_TOKENS, window // 4),
            "max_tokens_field": "max_tokens",
            **self.kind.settings,
            **settings,
        }
        if self.name.endswith("@localhost"):
            url = url.replace("127.0.0.1", "localhost")
        self.settings = AdapterSettings(name=self.name, base_url=url, key="K", max_retries=0, **entry)
        wire = make_wire(self.settings, {IMAGE: PNG, PDF: b"%PDF-1.4 /Type /Page"}.__getitem__)
        self.adapter = HttpAdapter(self.settings, wire, read_key=lambda _: "sk-test")

    def look_at(self, request: Received) -> None:
        """Check a request with the plugin's own format checks; the servers check the SDK types."""
        self.paths.append(request.path)
        if not request.body:
            return
        self.met.update(_TOKEN.findall(request.body))
        match request.path.rpartition("/")[2]:
            case "responses":
                self.complaints += check_responses(request.json)
            case "compact":
                self.complaints += check_responses(request.json, "compact")
            case "input_tokens":
                self.complaints += check_responses(request.json, "count")
            case "messages":
                self.complaints += check_anthropic(request.json)
            case "completions":
                # Only OpenAI itself has a longest id.
                found = check_chat(request.json)
                self.complaints += [one for one in found if self.name == "openai" or "has the call id" not in one]

    def _say_in_chat(self, request: Received) -> Answer | Counted:
        step = self.stage.next_step(self, request.json)
        self._replies += 1
        dialect = self.server.dialect  # type: ignore[attr-defined]
        return _failed() if step.ending == "failed" else DialectStep(step.text, (), {}, dialect, step, self._replies)

    def _say_in_responses(self, accepted: Any) -> responses_answers.Reply | Answer:
        step = self.stage.next_step(self, accepted.body)
        if step.ending == "failed":
            return _failed()
        items: list[Any] = []
        if step.thinking is not None:
            items.append(responses_answers.Thought((step.thinking,) if step.thinking else ()))
        if step.text:
            items.append(responses_answers.Text(step.text, "commentary" if step.calls else "final_answer"))
        for number, call in enumerate(step.calls):
            if number and step.thinking is not None:
                items.append(responses_answers.Thought(("And then?",)))
            items.append(responses_answers.Call(call.name, call.arguments))
        incomplete: Any = "max_output_tokens" if step.ending == "length" else None
        # The break comes when some of the text has arrived.
        broken = {"break_after": 8 + 8 * (step.thinking is not None)} if step.ending == "cut" else {"one_chunk": True}
        return responses_answers.reply(items=items, incomplete=incomplete, chunk_chars=_chunk_chars(step), **broken)

    def _say_in_messages(self, checked: Any) -> anthropic_answers.Reply | Answer:
        if checked.body.get("compaction") is not None:
            return anthropic_answers.reply()
        step = self.stage.next_step(self, checked.body)
        if step.ending == "failed":
            return anthropic_answers.failure(500)
        pieces: list[anthropic_answers.Piece] = []
        if step.thinking is not None:
            pieces.append(anthropic_answers.Thinking(step.thinking))
        self._replies += 1
        if step.thinking is not None and self._replies % 3 == 0 and step.ending != "cut":
            pieces.append(anthropic_answers.Redacted())
        if step.text:
            pieces.append(anthropic_answers.Text(step.text))
        pieces.extend(anthropic_answers.Call(call.name, call.arguments) for call in step.calls)
        stop = {"length": "max_tokens", "paused": "pause_turn"}.get(step.ending)
        thought = 3 + math.ceil(len(step.thinking) / 4) if step.thinking is not None else 0
        faults = {"break_after": 5 + thought} if step.ending == "cut" else {"one_chunk": True}
        return anthropic_answers.Reply(
            tuple(pieces), stop, chunk_chars=_chunk_chars(step), faults=anthropic_answers.Faults(**faults)
        )


def watched(kind: type[Any], provider: Provider) -> type[Any]:
    """Return the server class that shows every request to the provider and records the seals it issues."""

    class Watched(kind):  # type: ignore[misc]
        def answer(self, request: Received) -> Answer:
            if request.method == "POST":
                provider.look_at(request)
            answer: Answer = super().answer(request)
            for part in answer.parts:
                if isinstance(part, bytes):
                    provider.planted.update(_SEAL.findall(part))
            # A long chat sends hundreds of megabytes.
            request.body = b""
            return answer

    return Watched


def leaks(providers: Iterable[Provider]) -> list[str]:
    """Return the seals that reached a provider other than their own."""
    found: list[str] = []
    everybody = list(providers)
    for provider in everybody:
        for other in everybody:
            if other.adapter.origin != provider.adapter.origin and (leaked := provider.planted & other.met):
                found.append(f"{len(leaked)} seals of {provider.name} reached {other.name}: {min(leaked)!r:.60}")
    return found


@asynccontextmanager
async def open_providers(
    names: Iterable[str],
    stage: Stage,
    *,
    window: int = 200_000,
    windows: Mapping[str, int] = {},
    believed: Mapping[str, int] = {},
    **settings: Any,
) -> AsyncIterator[dict[str, Provider]]:
    """Run the servers of these providers with their adapters.

    `windows` are non-default context windows; `believed` are wrong window sizes given to the adapters.
    """
    providers = {name: Provider(name, KINDS[name.partition("@")[0]], stage) for name in dict.fromkeys(names)}
    async with AsyncExitStack() as stack:
        for name, provider in providers.items():
            size = windows.get(name, window)
            provider.server = provider.make_server(size)
            await stack.enter_async_context(provider.server)
            provider.open(believed.get(name, size), **settings)
            stack.push_async_callback(provider.adapter.aclose)
        yield providers


def _chunk_chars(step: Step) -> int:
    return 4 if step.ending == "cut" else 400


def _failed() -> Answer:
    return failure(500, "The server had an error.", type="server_error")


def _png(side: int) -> bytes:
    def chunk(name: bytes, content: bytes) -> bytes:
        return struct.pack(">I", len(content)) + name + content + struct.pack(">I", zlib.crc32(name + content))

    head = struct.pack(">IIBBBBB", side, side, 8, 0, 0, 0, 0)
    pixels = zlib.compress(bytes(side * (side + 1)))
    return b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", head) + chunk(b"IDAT", pixels) + chunk(b"IEND", b"")


PNG = _png(8)
