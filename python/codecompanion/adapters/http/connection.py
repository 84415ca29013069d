"""The connection to one endpoint: its key and headers, single requests and their responses, and the retry delay.

`exchange.py` moves the bytes. A body is validated before it is sent (`request_gate.py`); a failure becomes one of our
errors, with secrets removed from its message.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from typing import TYPE_CHECKING, overload

import msgspec

from codecompanion import errors
from codecompanion.adapters.base import AdapterSettings, SecretReader
from codecompanion.adapters.clouds import credentials_of
from codecompanion.adapters.errors.error_map import Endpoint, Remedies, error_from_exception
from codecompanion.adapters.keys.key_source import key_label
from codecompanion.adapters.keys.redact import secrets_in_url
from codecompanion.adapters.model_list import is_cloud_model
from codecompanion.adapters.request_gate import Purpose
from codecompanion.adapters.transport.client import client_timeout
from codecompanion.adapters.transport.exchange import Exchange, open_exchange
from codecompanion.adapters.transport.time_limits import ANSWER_LIMIT_S, is_loopback, max_silence_s
from codecompanion.adapters.wire_format import KEY_TEMPLATE, HttpCall, WireFormat
from codecompanion.formats.bounded import LimitHit, has_too_many_values
from codecompanion.formats.byte_limits import ASIDE_BYTES, MAX_JSON_VALUES, MODEL_LIST, REPLY, WHOLE_REPLY

if TYPE_CHECKING:
    import httpx2

MAX_LESSONS = 4
"""Maximum number of times that a request is sent again after its wire format learned from a refusal."""
_OWN_SERVER = Remedies(after_loss="The request may have been processed.")
"""Remedies for a local server, whose requests cost no money."""


class Connection:
    """The connection of one adapter. Tests can replace clock, sleep and random numbers.

    `is_final` returns whether an error is permanent, although errors of its type are usually temporary. `settings`
    are those of the entry; they are replaced when the server is recognised (`endpoint_models.py`).
    """

    def __init__(
        self,
        settings: AdapterSettings,
        wire: WireFormat,
        *,
        read_key: SecretReader,
        environ: Mapping[str, str],
        on_secret: Callable[[str], None],
        is_final: Callable[[errors.AdapterError], bool],
        clock: Callable[[], float],
        sleep: Callable[[float], Awaitable[None]],
        random: Callable[[], float],
    ) -> None:
        self.settings, self.wire, self.gate = settings, wire, wire.gate()
        self.clock, self.sleep, self.random = clock, sleep, random
        self._read_key, self._environ, self._on_secret, self._is_final = read_key, environ, on_secret, is_final
        self._told = frozenset[str]()
        self._exchange: Exchange | None = None
        self._loop: asyncio.AbstractEventLoop | None = None
        self._opening: asyncio.Future[Exchange] | None = None
        self._key: str | None = None

    def __repr__(self) -> str:
        """Show only the name: headers in the settings may contain keys."""
        return f"Connection({self.settings.name!r})"

    @property
    def may_be_gateway(self) -> bool:
        """Return whether the server is on this machine and may forward requests to providers that bill."""
        return self.settings.local_server and is_loopback(self.settings.base_url)

    # ---- the key

    def use_key(self, key: str) -> None:
        """Use this key starting with the next request."""
        self._key = key

    def forget_key(self) -> None:
        """Read the key again before the next request."""
        self._key = None

    def forget_credentials(self) -> None:
        """Read the key and a cloud's credentials again before the next request."""
        self._key = None
        if self._exchange is not None:
            self._exchange.forget_credentials()

    async def endpoint(self, model: str) -> Endpoint:
        """Return the facts about the endpoint for error messages; read the key and cache it.

        Raises:
            AdapterError: the key is missing.
        """
        if self._key is None:
            self._key = await asyncio.to_thread(self._read_key, self.settings)
        settings = self.settings
        hidden = (
            self._key,
            *(value for value in settings.headers.values() if KEY_TEMPLATE not in value),
            *secrets_in_url(settings.base_url),
            *secrets_in_url(settings.chat_path),
        )
        return Endpoint(
            name=settings.name,
            base_url=settings.base_url,
            key_label=key_label(settings),
            signed_with=credentials_of(settings.client),
            model=model,
            secrets=tuple(secret for secret in hidden if secret),
            start_command=settings.start_command if is_loopback(settings.base_url) else None,
            remedies=_OWN_SERVER if self._is_free(model) else Remedies(),
            connect_timeout_s=settings.connect_timeout_s,
            silence_s=ANSWER_LIMIT_S,
        )

    def with_secrets(self, endpoint: Endpoint) -> Endpoint:
        """Return the endpoint with the tokens that the exchange has added to requests among its secrets."""
        added = frozenset[str]() if self._exchange is None else self._exchange.secrets()
        for secret in added - self._told:
            self._on_secret(secret)
        self._told |= added
        return msgspec.structs.replace(endpoint, secrets=(*endpoint.secrets, *added)) if added else endpoint

    # ---- requests

    @overload
    async def judged(self, call: HttpCall, purpose: Purpose) -> HttpCall: ...

    @overload
    async def judged(self, call: HttpCall | None, purpose: Purpose) -> HttpCall | None: ...

    async def judged(self, call: HttpCall | None, purpose: Purpose) -> HttpCall | None:
        """Validate the call and return it; a body that the provider would reject is never sent."""
        if call is not None and self.gate.unknown_bytes(call.chunks, purpose) > ASIDE_BYTES:
            await asyncio.to_thread(self.gate.require_valid, call.chunks, purpose)
        elif call is not None:
            self.gate.require_valid(call.chunks, purpose)
        return call

    async def send(self, call: HttpCall, endpoint: Endpoint, *, stream: bool) -> httpx2.Response:
        """Send a validated call once and return its response; with `stream`, before its body is read.

        Raises:
            AdapterError: the call was not delivered, not answered, or rejected.
        """
        try:
            exchange = await self.open()
            limits = client_timeout(self.settings, max_silence_s(self.settings, call.size_bytes))
            headers = self._headers(call.headers)
            return await exchange.send(
                "POST",
                call.path,
                headers=headers,
                limits=limits,
                accepts=REPLY if stream else WHOLE_REPLY,
                content=call.chunks,
                stream=stream,
            )
        except Exception as caught:
            error = error_from_exception(caught, self.with_secrets(endpoint))
        raise error

    async def get(self, path: str) -> bytes:
        """Return the response body of a GET: a list of models, or a server's report. Raises `AdapterError`."""
        return await self._fetch("GET", path)

    async def post(self, path: str, body: bytes) -> bytes:
        """Return the response body of a POST that is not a request to a model. Raises `AdapterError`."""
        return await self._fetch("POST", path, (body,))

    async def _fetch(self, method: str, path: str, content: tuple[bytes, ...] | None = None) -> bytes:
        endpoint = await self.endpoint("")
        try:
            exchange = await self.open()
            headers, limits = self._headers(self.wire.models_headers), client_timeout(self.settings, ANSWER_LIMIT_S)
            response = await exchange.send(
                method, path, headers=headers, limits=limits, accepts=MODEL_LIST, content=content
            )
            return with_few_values(response.content)
        except Exception as caught:
            error = error_from_exception(caught, self.with_secrets(endpoint))
        raise error

    def pause_after(self, error: errors.AdapterError, attempt: int, *, is_free: bool = False) -> float | None:
        """Return the delay in seconds before the next attempt, or None for no retry.

        `is_free`: the request costs nothing, so it may be repeated even if it may have been processed.
        """
        from codecompanion.adapters.errors.retry import wait_before_retry  # not needed at startup

        if self._is_final(error):
            return None
        most, random = self.settings.max_retries, self.random()
        return wait_before_retry(error, attempt, max_retries=most, random=random, is_free=is_free)

    async def open(self) -> Exchange:
        """Return the exchange of this event loop; the first call imports the transport in a thread."""
        loop = asyncio.get_running_loop()
        exchange = self._exchange if self._loop is loop else None
        if exchange is None:
            if self._opening is None or self._loop is not loop:
                self._loop = loop
                self._opening = asyncio.ensure_future(asyncio.to_thread(open_exchange, self.settings, self._environ))
            opening = self._opening
            try:
                # Shielded: cancelling this request must not cancel the exchange that the next one needs.
                exchange = self._exchange = await asyncio.shield(opening)
            finally:
                if opening.done():
                    self._opening = None
        return exchange

    async def aclose(self) -> None:
        """Close the exchange."""
        exchange, self._exchange = self._exchange, None
        if exchange is not None:
            await exchange.aclose()

    def _is_free(self, model: str) -> bool:
        """Return whether this machine runs the model, as far as known, without forwarding requests that are billed."""
        passes_on = is_cloud_model(model) or self.wire.runs_model_itself(model) is False
        return self.may_be_gateway and not passes_on

    def _headers(self, more: Mapping[str, str]) -> dict[str, str]:
        """Return the headers for the key, the user's own headers and `more`, with lower-case names.

        The client does not get the key, because its `repr` would contain it.
        """
        settings, wire, key = self.settings, self.wire, self._key or ""
        headers: dict[str, str] = {}
        if key and settings.key_header:
            headers[settings.key_header.lower()] = key
        elif key:
            headers[wire.key_header.lower()] = wire.key_value.replace(KEY_TEMPLATE, key)
        own = (*settings.headers.items(), *more.items())
        return headers | {name.lower(): value.replace(KEY_TEMPLATE, key) for name, value in own}


def with_few_values(body: bytes) -> bytes:
    """Return the body. Raises `LimitHit` if it would take up far more memory when decoded."""
    if has_too_many_values(body):
        raise LimitHit(f"the answer has more than {MAX_JSON_VALUES:,} values")
    return body
