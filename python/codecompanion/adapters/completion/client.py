"""Requests a code completion from one endpoint, without retries, because the next keystroke sends a new request.

A cancelled request closes its connection, which tells these servers to stop.
"""

from __future__ import annotations

import asyncio
import re

import msgspec

from codecompanion.adapters.base import AdapterSettings, SecretReader
from codecompanion.adapters.completion.endpoints import (
    CodeReply,
    CodeRequest,
    CompletionEndpoint,
    read_reply,
    render,
    without_path,
)
from codecompanion.adapters.errors.error_body import decode_body
from codecompanion.adapters.errors.error_map import (
    Endpoint,
    error_from_exception,
    error_from_payload,
    unexpected_content,
)
from codecompanion.adapters.keys.key_source import key_label
from codecompanion.adapters.keys.redact import plain_url, secrets_in_url
from codecompanion.adapters.server_facts import read_props
from codecompanion.adapters.transport.client import HttpClient, client_timeout, make_client
from codecompanion.adapters.wire_format import KEY_TEMPLATE
from codecompanion.errors import (
    AdapterError,
    AuthenticationFailed,
    ContextOverflow,
    MalformedReply,
    MissingKey,
    ModelNotFound,
    NetworkFailed,
    NotServed,
)
from codecompanion.formats.byte_limits import CODE
from codecompanion.formats.regex import regex

NAME = "completion"
"""The name of the client in messages."""
PROPS_LIMIT_S = 1.0

# Phrases in a chat's error messages: for a server that answers 404 without a message, and before a
# quotation.
_OR_ADDRESS = " Or the address is wrong: "
_SAID = " The provider says: "
_CANNOT_FILL_IN = regex(r"infill is not supported|does not support insert", re.IGNORECASE)
"""Matches the messages of llama.cpp and Ollama for a model without infill tokens."""
_PULL = "try pulling it first"
"""Part of Ollama's message for a missing model, whatever the status code."""

# Advice in a chat's error messages, and its replacement here.
_ADVICE = (
    (", or choose another adapter with ga", ""),
    (" Set env.api_key to", " Set completion.api_key to"),
    (" Choose another model with ga.", " Set completion.model to one it has."),
    (" Check the network and env.url.", " Is the server running? Its address is completion.url."),
    (" Check env.url and env.chat_url.", " Check completion.url and completion.endpoint."),
    (" Check env.url and the proxy.", " Check completion.url and the proxy."),
    (" Set env.url to it.", " Set completion.url to it."),
    (" instead of a chat reply", " instead of code"),
    (" (opts.idle_timeout).", " (completion.timeout)."),
    (" The request may have been processed and billed.", ""),
)


class CompletionClient:
    """A client for one endpoint at one URL. Nothing is imported or opened before the first request."""

    def __init__(self, endpoint: CompletionEndpoint, settings: AdapterSettings, read_key: SecretReader) -> None:
        self.endpoint = endpoint
        address = without_path(settings.base_url, endpoint.path)
        self._settings = msgspec.structs.replace(settings, base_url=address)
        self._read_key = read_key
        self._client: HttpClient | None = None
        self._key: str | None = None

    @property
    def address(self) -> str:
        """Return the base URL of requests, without the path and without secrets."""
        return plain_url(self._settings.base_url)

    def __repr__(self) -> str:
        """Show only the endpoint: headers may contain a key."""
        return f"CompletionClient({self.endpoint.name!r})"

    async def ask(self, request: CodeRequest, timeout_s: float) -> CodeReply:
        """Return the code; `timeout_s` limits the whole request.

        Raises:
            AdapterError: the request failed; the message is one sentence.
        """
        try:
            async with asyncio.timeout(timeout_s):
                return await self._ask(request, timeout_s)
        except TimeoutError:
            where = plain_url(self._settings.base_url)
            said = f"{NAME}: no answer from {where} within {timeout_s:g} s (completion.timeout)."
            error: AdapterError = NetworkFailed(said)
        except MissingKey as missing:
            label = key_label(self._settings)
            error = MissingKey(f"{NAME}: no key: {missing.brief or label}. Set it, or change completion.api_key.")
        except AdapterError as caught:
            if isinstance(caught, AuthenticationFailed):
                self._key = None  # the next request reads it again: the user may have fixed it
            if _CANNOT_FILL_IN.search(str(caught)):
                error = NotServed(await self._cannot_fill_in(request.model))
            else:
                error = _with_advice(caught, self._own_words(caught, request.model))
        raise error

    async def _cannot_fill_in(self, model: str) -> str:
        """Return the message about a model that cannot fill in the middle; it names the running model."""
        if self.endpoint.name == "llamacpp":
            model = await self._running_model() or "the model"
        remedy = (
            "Run a code model there" if self.endpoint.name == "llamacpp" else "Set completion.model to a code model"
        )
        return f"{NAME}: {model} at {self.address} cannot fill in code. {remedy}, for example Qwen2.5-Coder."

    async def _running_model(self) -> str:
        """Return the name of the model that llama.cpp runs, or "" if it is unknown."""
        try:
            async with asyncio.timeout(PROPS_LIMIT_S):
                props = read_props(
                    (await self._exchange("GET", "/props", self._about("", PROPS_LIMIT_S), PROPS_LIMIT_S))[0]
                )
        except (AdapterError, TimeoutError):
            return ""
        return props.model if props else ""

    def _own_words(self, error: AdapterError, model: str) -> str:
        """Return a message for completion that is more specific than the error's (such as a model to pull), or ""."""
        said = str(error)
        if self.endpoint.name == "ollama" and (_is_unknown_model(error) or _PULL in said):
            return f"{NAME}: Ollama has no model {model}: ollama pull {model}"
        if error.status == 404 and not _is_unknown_model(error):
            quote = said.partition(_SAID)[2].removesuffix(" Check env.url and env.chat_url.")
            where = f"{self.address.rstrip('/')}{self.endpoint.path}"
            told = f"{_SAID}{quote}" if quote else ""
            return f"{NAME}: nothing found at {where} (404). Check completion.url and completion.endpoint.{told}"
        return ""

    async def aclose(self) -> None:
        """Close the connections."""
        client, self._client = self._client, None
        if client is not None:
            await client.aclose()

    async def _ask(self, request: CodeRequest, timeout_s: float) -> CodeReply:
        if self._key is None:
            self._key = await asyncio.to_thread(self._read_key, self._settings)
        endpoint = self._about(request.model, timeout_s)
        body_sent = render(self.endpoint, request)
        payload, kind = await self._exchange("POST", self.endpoint.path, endpoint, timeout_s, (body_sent,))
        body = decode_body(payload)
        if isinstance(body, str):
            raise unexpected_content(kind, payload[:2_000], endpoint)
        reply = read_reply(self.endpoint, body)
        if reply is not None:
            return reply
        if isinstance(body, dict) and body.get("error"):
            raise error_from_payload(payload, endpoint)
        raise MalformedReply(endpoint.say(f"unexpected response from {self.endpoint.path}. Check completion.endpoint."))

    async def _exchange(
        self, method: str, path: str, endpoint: Endpoint, timeout_s: float, content: tuple[bytes, ...] | None = None
    ) -> tuple[bytes, str]:
        """Send a request; return the body and the content type of the response."""
        try:
            if self._client is None:
                self._client = await asyncio.to_thread(make_client, self._settings)
            limits = client_timeout(self._settings, timeout_s)
            response = await self._client.send(
                method, path, headers=self._headers(), limits=limits, accepts=CODE, content=content
            )
            return response.content, response.headers.get("content-type", "")
        except Exception as caught:
            error = error_from_exception(caught, endpoint)
        raise error

    def _headers(self) -> dict[str, str]:
        settings, key = self._settings, self._key or ""
        headers: dict[str, str] = {}
        if key:
            header = settings.key_header.lower() or "authorization"
            headers[header] = key if settings.key_header else f"Bearer {key}"
        return headers | {name.lower(): value.replace(KEY_TEMPLATE, key) for name, value in settings.headers.items()}

    def _about(self, model: str, timeout_s: float) -> Endpoint:
        settings = self._settings
        own = (value for value in settings.headers.values() if KEY_TEMPLATE not in value)
        hidden = (self._key or "", *own, *secrets_in_url(settings.base_url))
        return Endpoint(
            name=NAME,
            base_url=settings.base_url,
            key_label=key_label(settings),
            model=model,
            secrets=tuple(filter(None, hidden)),
            connect_timeout_s=settings.connect_timeout_s,
            silence_s=timeout_s,
        )


def _is_unknown_model(error: AdapterError) -> bool:
    """Return whether the server reported an unknown model: a 404 without a message may mean a wrong path."""
    return isinstance(error, ModelNotFound) and _OR_ADDRESS not in str(error)


def _with_advice(error: AdapterError, own: str = "") -> AdapterError:
    """Return the error with advice about the completion settings, using the message `own` if it is not empty."""
    said = own or str(error)
    for theirs, ours in _ADVICE:
        said = said.replace(theirs, ours)
    figures = (error.prompt_tokens, error.limit_tokens) if isinstance(error, ContextOverflow) else ()
    changed = type(error)(said, *figures)
    changed.code, changed.status = error.code, error.status
    return changed


def settings_of(endpoint: CompletionEndpoint, base: AdapterSettings | None, **said: str) -> AdapterSettings:
    """Return the connection settings: `base_url` and `key` as configured, else from `base`, else the endpoint's own."""
    start = base or AdapterSettings(name=NAME, kind="openai_compatible", base_url=endpoint.url, key=endpoint.key)
    given = {name: value for name, value in said.items() if value}
    if given.get("base_url") and "key" not in given and base is None:
        given["key"] = ""  # the provider's key is only for the provider
    # A separate name: keys returned by functions of the configuration are stored by adapter.
    changes = {**given, "kind": "openai_compatible", "address_key": "url"}
    return msgspec.structs.replace(start, **changes)
