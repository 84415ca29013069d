"""The wire formats of the table: a server that judges requests, an adapter for it, and the bytes of each answer."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any, Protocol

from codecompanion.adapters.base import Adapter, AdapterSettings
from codecompanion.adapters.chatgpt.adapter import make_chatgpt
from codecompanion.adapters.chatgpt.stored_login import Session, StoredLogin
from codecompanion.adapters.http.adapter import HttpAdapter
from codecompanion.adapters.registry import make_wire
from tests.faults.faults import Answers, Place, Refuses, Says, Sends, WireName
from tests.providers.anthropic import answers as messages
from tests.providers.anthropic.models import HAIKU
from tests.providers.anthropic.server import AnthropicServer
from tests.providers.chat import answers as chat
from tests.providers.chat.server import ChatServer
from tests.providers.chatgpt.server import ChatGPTServer
from tests.providers.chatgpt.sign_in import SCOPES, Grant
from tests.providers.loopback.answers import END, Answer, plain
from tests.providers.loopback.server import LoopbackServer
from tests.providers.responses import answers as responses
from tests.providers.responses.rules import Rules
from tests.providers.responses.server import ResponsesServer

KEY = "sk-test"
LARGE = 1_000_000
Body = Mapping[str, Any]
Reply = Callable[[Body], Answers]
"""A function that returns the server's answer to a request body."""


class Wire(Protocol):
    """One wire format. `text_at`, `call_at`: the number of events before the first piece of text or call arguments."""

    name: WireName
    text_at: int
    call_at: int

    def serve(self, reply: Reply, window: int) -> LoopbackServer:
        """Return a server that answers with `reply` and refuses prompts of over `window` tokens (0 = its own limit)."""

    def entry(self, url: str) -> dict[str, Any]:
        """Return the entry of an adapter of this format."""

    def user_texts(self, body: Body) -> list[str]:
        """Return the texts of the user's messages in a request, oldest first."""

    def newest_text(self, body: Body) -> str:
        """Return the text of the message that ends the request, or "" if it ends with a tool result."""

    def refusals(self, server: Any) -> list[str]:
        """Return the server's own refusals."""


def adapter_settings(wire: Wire, url: str, **fields: Any) -> AdapterSettings:
    """Return the settings of an adapter of that format."""
    return AdapterSettings(**{"name": wire.name, "base_url": url, "key": "TEST_KEY", **wire.entry(url), **fields})


def _refusal(given: Refuses, body: Any) -> Answer:
    if given.body is not None:
        return plain(given.body, content_type="text/html", status=given.status, headers=dict(given.headers))
    return chat.json_answer(body, status=given.status, headers=dict(given.headers))


def _chunk_chars(says: Says) -> int:
    """Return the size of one event; long texts have large events, because their number is irrelevant to a row."""
    longest = max(len(says.text), *(len(call.arguments) for call in says.calls), 0)
    return 4 if longest < 2_000 else 1_000


def _faults(says: Says, text_at: int, call_at: int) -> dict[str, Any]:
    """Return the `Faults` arguments for a reply."""
    places: dict[Place, int] = {
        "before the first byte": 0,
        "in the text": text_at + 2,
        "in a call": call_at + 2,
        "after the text": text_at + -(-len(says.text) // _chunk_chars(says)),
    }
    faults: dict[str, Any] = {}
    if says.ends_at is not None:
        faults = {"break_after": places[says.ends_at]}
    if says.silent_at is not None:
        faults = {"gate": asyncio.Event(), "gate_after": places[says.silent_at]}
    inserted_at = places["in the text"] if says.text else 1
    if says.insert or says.error:
        faults = {"insert": says.insert, "insert_at": inserted_at}
    if says.error:
        faults["break_after"] = inserted_at + 1
    if says.error or (says.quietly and says.ends_at):
        faults["break_with"] = END
    return faults


async def _no_wait(seconds: float) -> None:
    """Return at once instead of waiting before a retry."""


def make_adapter(wire: Wire, settings: AdapterSettings, server: Any, folder: Path) -> Adapter:
    """Return an adapter for that format that never waits; the login of a plan is in `folder`."""
    if isinstance(wire, Plan):
        return wire.adapter(settings, server, folder)
    format_ = make_wire(settings, lambda sha: b"")
    return HttpAdapter(settings, format_, read_key=lambda _: KEY, sleep=_no_wait, random=lambda: 0.5)


class Chat:
    """OpenAI's Chat Completions, as used by compatible endpoints."""

    name: WireName = "chat"
    text_at, call_at = 1, 2

    def serve(self, reply: Reply, window: int) -> ChatServer:
        def answer(request: Any) -> Any:
            return self.bytes_of(reply(request.json))

        return ChatServer(window=window or LARGE, default=answer)

    def entry(self, url: str) -> dict[str, Any]:
        return {"kind": "openai_compatible", "model": "test-model"}

    def bytes_of(self, given: Answers) -> Any:
        match given:
            case Refuses():
                error = {"message": given.message, "type": "invalid_request_error", "param": None, "code": given.code}
                return _refusal(given, {"error": error})
            case Sends():
                return plain(given.body, content_type=given.content_type, headers=dict(given.headers))
        if given.error:
            error_line = b'data: {"error": {"message": "%s", "code": "server_error"}}\n\n' % given.error.encode()
            given = replace(given, insert=error_line)
        faults = _faults(given, self.text_at, self.call_at)
        if given.unmarked:
            faults = _faults(replace(given, ends_at="after the text"), self.text_at, self.call_at)
            faults["break_with"] = b"data: [DONE]\n\n"
        calls = [chat.Call(call.name, call.arguments, call.id or f"call_{k}") for k, call in enumerate(given.calls)]
        more = {"reasoning": given.thinking, "finish": given.stop or None, **faults}
        more["chunk_chars"] = _chunk_chars(given)
        if given.usage is None:
            return chat.counted(given.text, calls=calls, **more)
        return chat.reply(given.text, calls=calls, usage=dict(given.usage) or None, **more)

    def user_texts(self, body: Body) -> list[str]:
        return [_text_of(message["content"]) for message in body["messages"] if message["role"] == "user"]

    def newest_text(self, body: Body) -> str:
        last = body["messages"][-1]
        return _text_of(last["content"]) if last["role"] == "user" else ""

    def refusals(self, server: Any) -> list[str]:
        return [refusal.message for refusal in server.refusals]


class Responses:
    """OpenAI's Responses."""

    name: WireName = "responses"
    text_at, call_at = 4, 3

    def serve(self, reply: Reply, window: int) -> ResponsesServer:
        def answer(accepted: Any) -> Any:
            return self.bytes_of(reply(accepted.body))

        return ResponsesServer(rules=Rules(("test-model",), window or LARGE), default=answer)

    def entry(self, url: str) -> dict[str, Any]:
        # The provider's own compaction has tests of its own; here the chat's is looked at, as in the other formats.
        return {"kind": "openai_responses", "model": "test-model", "options": {"compaction": False}}

    def bytes_of(self, given: Answers) -> Any:
        match given:
            case Refuses():
                error = {"message": given.message, "type": "invalid_request_error", "param": None, "code": given.code}
                return _refusal(given, {"error": error})
            case Sends():
                return plain(given.body, content_type=given.content_type, headers=dict(given.headers))
        if given.error:
            named = {"error_code": "server_error", "error_message": given.error, "as_event": True}
            return responses.reply(given.text, after=self.text_at + 2, **named)
        calls = [responses.Call(call.name, call.arguments, call.id) for call in given.calls]
        more = {"chunk_chars": _chunk_chars(given), **_faults(given, self.text_at, self.call_at)}
        if given.stop:
            more["incomplete"] = "max_output_tokens"
        thought = [given.thinking] if given.thinking else None
        usage = None if given.usage is None else dict(given.usage)
        return responses.reply(given.text, reasoning=thought, calls=calls, usage=usage, **more)

    def user_texts(self, body: Body) -> list[str]:
        return [_text_of(item["content"]) for item in body["input"] if item.get("role") == "user"]

    def newest_text(self, body: Body) -> str:
        last = body["input"][-1]
        return _text_of(last["content"]) if last.get("role") == "user" else ""

    def refusals(self, server: Any) -> list[str]:
        return [refusal.message for refusal in server.refusals]


class Plan(Responses):
    """OpenAI's Responses for a ChatGPT plan: the user is logged in, and the token is about to expire."""

    name: WireName = "plan"

    def serve(self, reply: Reply, window: int) -> ChatGPTServer:
        def answer(accepted: Any) -> Any:
            return self.bytes_of(reply(accepted.body))

        return ChatGPTServer(default=answer)

    def entry(self, url: str) -> dict[str, Any]:
        options = {"issuer": url.removesuffix("/v1")}
        return {"kind": "chatgpt", "model": "gpt-6-sol", "key": "", "options": options, "included": True}

    def adapter(self, settings: AdapterSettings, server: ChatGPTServer, folder: Path) -> Adapter:
        """Return an adapter with a login, which is created if there is none."""
        stored = StoredLogin(folder)
        if stored.session() is None:
            grant = server.sign_in.refreshes["rt_first"] = Grant("oaiapp_1", "ada@example.com", SCOPES)
            server.sign_in.clients[grant.client_id] = grant.user
            told = server.sign_in.account_of(grant)
            tokens = {"access_token": "at_first", "refresh_token": "rt_first", "scopes": tuple(SCOPES.split())}
            stored.keep(Session(client_id=grant.client_id, subject=told, expires_at=time.time(), **tokens))
        adapter = make_chatgpt(settings, lambda sha: b"", folder)
        connection = adapter._connection._connection
        connection.sleep, connection.random = _no_wait, lambda: 0.5
        return adapter


class Messages:
    """Anthropic's Messages."""

    name: WireName = "messages"
    text_at, call_at = 3, 4

    def serve(self, reply: Reply, window: int) -> AnthropicServer:
        def answer(checked: Any) -> Any:
            return self.bytes_of(reply(checked.body))

        return AnthropicServer(models=(replace(HAIKU, window=window or LARGE),), default=answer)

    def entry(self, url: str) -> dict[str, Any]:
        return {"kind": "anthropic", "model": HAIKU.id}

    def bytes_of(self, given: Answers) -> Any:
        match given:
            case Refuses():
                error: dict[str, Any] = {"type": given.code or "invalid_request_error", "message": given.message}
                return _refusal(given, {"type": "error", "error": error, "request_id": messages.REQUEST_ID})
            case Sends():
                return plain(given.body, content_type=given.content_type, headers=dict(given.headers))
        if given.error:
            given = replace(given, insert=messages.error_event("api_error", given.error))
        pieces: list[Any] = [messages.Thinking(given.thinking)] if given.thinking else []
        pieces += [messages.Text(given.text)] if given.text else []
        pieces += [messages.Call(call.name, call.arguments, call.id) for call in given.calls]
        return messages.Reply(
            tuple(pieces),
            stop="max_tokens" if given.stop else None,
            chunk_chars=_chunk_chars(given),
            faults=messages.Faults(**_faults(given, self.text_at, self.call_at)),
            usage=dict(given.usage or {}),
        )

    def user_texts(self, body: Body) -> list[str]:
        return [text for message in body["messages"] if message["role"] == "user" for text in _texts_of(message)]

    def newest_text(self, body: Body) -> str:
        last = body["messages"][-1]
        texts = _texts_of(last) if last["role"] == "user" else []
        ends_with_result = isinstance(last["content"], list) and last["content"][-1]["type"] == "tool_result"
        return "" if ends_with_result or not texts else texts[-1]

    def refusals(self, server: Any) -> list[str]:
        return [refusal.message for refusal in server.refusals]


def _texts_of(message: Body) -> list[str]:
    content = message["content"]
    if isinstance(content, str):
        return [content]
    return [block["text"] for block in content if block["type"] == "text"]


def _text_of(content: Any) -> str:
    if isinstance(content, str):
        return content
    return "".join(part.get("text", "") for part in content)


WIRES: dict[WireName, Wire] = {"chat": Chat(), "responses": Responses(), "messages": Messages(), "plan": Plan()}
