"""One provider endpoint over HTTP: key, connection, retries and time limits, the same for every wire format.

How the bytes travel is `exchange.py`'s business, rendering and decoding the wire format's (`wire_format.py`). Retries
are here (`errors/retry.py`): visible, and cancelled at once. Consume `stream` with `contextlib.aclosing`, so that the
connection closes when the consumer stops early. Above 350 lines, because it is all that `base.Adapter` asks for.
"""

from __future__ import annotations

import asyncio
import logging
import math
import os
import time
from collections.abc import AsyncGenerator, Awaitable, Callable, Mapping
from contextlib import aclosing
from random import random as system_random
from typing import TYPE_CHECKING, Literal, overload

import msgspec

from codecompanion import errors
from codecompanion.adapters.base import (
    AdapterSettings,
    ChatRequest,
    CompactionDone,
    Finished,
    RetryScheduled,
    SecretReader,
    StreamEvent,
)
from codecompanion.adapters.clouds import credentials_of
from codecompanion.adapters.errors.error_map import Endpoint, Remedies, error_from_exception, error_of_reply
from codecompanion.adapters.http.reply_stream import final_cut, read_reply
from codecompanion.adapters.http.server_reader import CONNECT_WAIT_S, ServerReader
from codecompanion.adapters.keys.key_source import key_label
from codecompanion.adapters.keys.redact import secrets_in_url
from codecompanion.adapters.model_list import is_cloud_model
from codecompanion.adapters.request_gate import Purpose
from codecompanion.adapters.server_facts import ServerFacts
from codecompanion.adapters.speed import Speed
from codecompanion.adapters.transport.client import client_timeout
from codecompanion.adapters.transport.exchange import Exchange, open_exchange
from codecompanion.adapters.transport.time_limits import (
    ANSWER_LIMIT_S,
    is_loopback,
    is_own_server,
    max_keep_alive_s,
    max_silence_s,
)
from codecompanion.adapters.wire_format import KEY_TEMPLATE, HttpCall, WireFormat, origin_of
from codecompanion.counting.model_windows import ModelLimits
from codecompanion.formats.bounded import LimitHit, has_too_many_values
from codecompanion.formats.byte_limits import ASIDE_BYTES, LISTING, MAX_JSON_VALUES, REPLY, WHOLE_REPLY

if TYPE_CHECKING:
    import httpx2

    from codecompanion.adapters.http.reply_timer import ReplyTimer
    from codecompanion.adapters.http.server_wait import ServerWait
    from codecompanion.adapters.prompt_slots import Loss

_log = logging.getLogger(__name__)
_MAX_LESSONS = 4
"""So often a request is sent again because a wire format knows how to avoid what was refused."""
LISTING_LIMIT_S = 5.0
_OWN_SERVER = Remedies(after_loss="The request may have been processed.")
"""Nobody bills for a model that this machine runs."""


class HttpAdapter:
    """One endpoint that speaks the given wire format. Clock, sleep and random numbers can be given for tests.

    `environ` is the user's environment, where the client of a cloud finds credentials. `on_secret` hears each token
    that the exchange puts into requests by itself, so that no text will show it. `on_facts` is called when the server
    reports something new about itself.
    """

    def __init__(
        self,
        settings: AdapterSettings,
        wire: WireFormat,
        *,
        read_key: SecretReader,
        environ: Mapping[str, str] | None = None,
        on_secret: Callable[[str], None] = lambda secret: None,
        on_facts: Callable[[], None] = lambda: None,
        clock: Callable[[], float] = time.monotonic,
        sleep: Callable[[float], Awaitable[None]] = asyncio.sleep,
        random: Callable[[], float] = system_random,
    ) -> None:
        self.name = settings.name
        self.formatted_name = settings.formatted_name or settings.name
        self.default_model = settings.model
        self.origin = origin_of(wire.origin_name, settings.base_url)
        self.returns_readable_reasoning = wire.returns_readable_reasoning
        self.cache_lifetime_s = wire.cache_lifetime_s
        self._settings, self._wire, self._gate = settings, wire, wire.gate()
        self._read_key, self._on_secret = read_key, on_secret
        self._environ = os.environ if environ is None else environ
        self._told = frozenset[str]()
        self._clock, self._sleep, self._random = clock, sleep, random
        self._exchange: Exchange | None = None
        self._loop: asyncio.AbstractEventLoop | None = None
        self._opening: asyncio.Future[Exchange] | None = None
        self._key: str | None = None
        self._server = ServerReader(
            settings,
            self._get,
            self._post,
            take_listing=wire.read_models,
            has_window=lambda model: self.limits(model) is not None,
            forget_listing=self._forget_listing,
            on_change=on_facts,
            clock=clock,
        )
        wire.takes_images = lambda model: self.facts(model).images is not False
        self._is_own = is_own_server(settings)
        self._may_be_gateway = settings.local_server and is_loopback(settings.base_url)
        self._is_listed = False
        self._listing: asyncio.Task[None] | None = None

    def __repr__(self) -> str:
        """Show the name only: the settings may hold keys in headers."""
        return f"HttpAdapter({self.name!r})"

    def compacts_natively(self, model: str) -> bool:
        """Return whether the provider compacts by itself during a request with `compact_at` (R-534)."""
        return self._wire.compacts_natively(model)

    def compacts_on_demand(self, model: str) -> bool:
        """Return whether `compact` can be asked for (R-540)."""
        return self._wire.render_compaction(ChatRequest(messages=(), model=model), "") is not None

    def counts_tokens(self, model: str) -> bool:
        """Return whether `count_tokens` can be asked for."""
        return self._wire.render_count(ChatRequest(messages=(), model=model)) is not None

    def limits(self, model: str) -> ModelLimits | None:
        """Return what the endpoint itself has told about the model, None when it has not."""
        window = self.facts(model).window
        return ModelLimits(window) if window else self._wire.limits(model)

    def facts(self, model: str) -> ServerFacts:
        """Return what a server on the user's machine or network reports about itself and the model."""
        return self._server.facts(model or self.default_model)

    def forget_tool_refusal(self, model: str) -> None:
        """Send tools to the model again, although such a server has refused them: it may have been restarted."""
        self._server.forget_tool_refusal(model or self.default_model)

    def speed(self, model: str) -> Speed:
        """Return how fast such a server was of late with the model."""
        return self._server.speed(model or self.default_model)

    def prompt_loss(self, model: str, chat_id: str) -> Loss:
        """Return why such a server does not have the prompt of a chat in its cache, "" when nothing tells that."""
        return self._server.prompt_loss(model or self.default_model, chat_id)

    def learn_kept_prompt(self, model: str) -> None:
        """Take in that such a server kept a prompt although other requests had used all its slots since."""
        self._server.slots_of(model or self.default_model).learn_kept()

    async def know_server(self, model: str) -> None:
        """Ask such a server what it is, if what it said before may not hold any more; never waits for long."""
        if not (model or self.default_model) and self._is_own:
            try:
                async with asyncio.timeout(CONNECT_WAIT_S):
                    await self._first_model()
            except (errors.AdapterError, TimeoutError) as error:
                _log.info("no model to ask: %s", error)  # said where the request is sent
        await self._server.make_sure(model or self.default_model)

    def runs_model_itself(self, model: str) -> bool | None:
        """Return whether the endpoint runs the model or passes requests on, None when it has not told."""
        return self._wire.runs_model_itself(model)

    def render(self, request: ChatRequest) -> bytes:
        """Return the request body as sent; what was rendered and validated of it is kept for the request itself."""
        call = self._wire.render(request)
        self._gate.find_problem(call.chunks, "reply")
        return call.body

    async def stream(self, request: ChatRequest) -> AsyncGenerator[StreamEvent, None]:
        """Send the request and yield its events; the last one is `Finished`."""
        limit = self._settings.timeout_s
        deadline = self._clock() + limit if limit else math.inf
        attempt, lessons = 1, 0
        server: ServerWait | None = None
        while not request.model:
            try:
                request = msgspec.structs.replace(request, model=await self._first_model())
                break
            except errors.AdapterError as caught:
                error = caught
            server = server or self._server_wait()
            yield self._wait_for(server, error, attempt, deadline)
            await self._sleep(server.look_every_s)
        call = await self._judged(self._wire.render(request), "reply")
        reading: asyncio.Task[None] | None = None
        while True:
            yielded = False
            try:
                async with aclosing(self._attempt(request, call, deadline)) as events:
                    async for event in events:
                        if not yielded:
                            self._server.reply_began(request.model)
                        if reading is None and self._may_be_gateway and not self._is_listed:
                            reading = self._reading_listing()
                        if reading is not None and isinstance(event, Finished):
                            await asyncio.wait([reading])  # what the reply costs depends on who has answered
                        yielded = True
                        yield event
                return
            except errors.AdapterError as caught:
                error = caught
            self._server.doubt(error)
            if not yielded and request.tools and self._server.learn_toolless(error, request.model):
                _log.info("sent again without tools: %s", error)
                request = msgspec.structs.replace(request, tools=())
                call = await self._judged(self._wire.render(request), "reply")
                continue
            if not yielded and lessons < _MAX_LESSONS and self._wire.learn_refusal(error, request):
                _log.info("sent again without what the model does not have: %s", error)
                call, lessons = await self._judged(self._wire.render(request), "reply"), lessons + 1
                continue
            if isinstance(error, errors.AuthenticationFailed):
                # The next request reads the key again: the user may have mended it.
                self._forget_credentials()
            server = server or self._server_wait()
            if not yielded and server.is_worth_waiting(error):
                yield self._wait_for(server, error, attempt, deadline)
                await self._sleep(server.look_every_s)
                # The server that is there now may have been started with other options.
                await self._server.make_sure(request.model)
                call = await self._judged(self._wire.render(request), "reply")
                continue
            wait = None if yielded or server.has_ended else self._wait(error, attempt)
            if wait is None:
                raise error
            _log.info("attempt %d failed, next in %.1f s: %s", attempt, wait, error)
            yield RetryScheduled(str(error), attempt, round(wait * 1000), error.brief)
            await self._sleep(wait)
            attempt += 1

    def _wait_for(
        self, server: ServerWait, error: errors.AdapterError, attempt: int, deadline: float
    ) -> RetryScheduled:
        """Return what the user sees while a server is waited for that starts or loads; raise where none is."""
        waiting = server.reason(error)
        if not waiting or self._clock() + server.look_every_s > deadline:
            raise error
        return RetryScheduled(str(error), attempt, round(server.look_every_s * 1000), error.brief, waiting)

    async def compact(self, request: ChatRequest, instructions: str) -> CompactionDone:
        """Let the provider compact the messages of the request now (R-540).

        Raises:
            AdapterError: it did not; nothing was changed.
        """
        endpoint = await self._endpoint(request.model)
        body = await self._ask(
            "compaction", request, endpoint, lambda: self._wire.render_compaction(request, instructions)
        )
        if body is None:
            raise errors.RequestRejected(f"{self.name}: {request.model} does not compact on demand.")
        return self._wire.read_compaction(body, endpoint)

    async def count_tokens(self, request: ChatRequest) -> int:
        """Return the provider's own count of the request's prompt.

        Raises:
            AdapterError: it could not be asked.
        """
        if self._is_own and not await self._server.is_awake(request.model):
            raise errors.RequestRejected(f"{self.name}: not counted, as {request.model} is not loaded.")
        endpoint = await self._endpoint(request.model)
        body = await self._ask("count", request, endpoint, lambda: self._wire.render_count(request))
        if body is None:
            raise errors.RequestRejected(f"{self.name}: the endpoint has no way to count {request.model}.")
        count = self._wire.read_count(body)
        if count is None:
            raise errors.MalformedReply(endpoint.say("the answer to a count holds no count."))
        return count

    async def list_models(self) -> list[str]:
        """Return the model names the endpoint offers, sorted; those of the configuration when it has no list."""
        path = self._settings.models_path or self._wire.models_path
        names: list[str] = []
        try:
            names = self._wire.read_models(await self._get(path)) if path else []
        except (errors.ModelNotFound, errors.RequestRejected) as error:
            _log.info("%s lists no models: %s", self.name, error)
        if self._settings.limits_path not in ("", path) or self._is_own:
            await self._server.ask(self.default_model)
        return names or list(self._settings.models)

    def use_key(self, key: str) -> None:
        """Use this key from the next request on: one that is renewed now and then."""
        self._key = key

    def forget_key(self) -> None:
        """Read the key again before the next request."""
        self._key = None

    async def require_key(self) -> None:
        """Read the key; it is kept for the request."""
        await self._endpoint("")

    async def warm_up(self) -> None:
        """Import the transport and read the certificates in a thread (50 ms), before the first request needs them.

        Then read what the endpoint says of its models, when that is more than names. A key that a command prints is not
        asked for yet: the command may want a passphrase.

        Raises:
            AdapterError: the transport cannot be used: a package is missing, or the credentials of a cloud.
        """
        problem: errors.AdapterError | None = None
        try:
            await self._open()
        except Exception as caught:
            problem = error_from_exception(caught, Endpoint(name=self.name, base_url=self._settings.base_url))
        if problem is not None:
            raise problem
        if self._settings.key.startswith("cmd:"):
            return
        await self._server.ask(self.default_model)
        if self._wire.listing_tells or self._may_be_gateway:
            await asyncio.wait([self._reading_listing()])

    def _forget_listing(self) -> None:
        """Take in that another server answers: what it lists is read with the next reply."""
        self._wire.forget_models()
        self._is_listed = False

    def _reading_listing(self) -> asyncio.Task[None]:
        """Return the task that reads the listing now: in it a server on this machine names itself."""
        if self._listing is None or self._listing.done():
            self._listing = asyncio.get_running_loop().create_task(self._read_listing())
        return self._listing

    async def _read_listing(self) -> None:
        try:
            async with asyncio.timeout(LISTING_LIMIT_S):
                await self.list_models()
            self._is_listed = True
        except (errors.AdapterError, TimeoutError) as error:
            _log.info("the models could not be listed: %s", error)

    async def aclose(self) -> None:
        """Close the connections."""
        await self._server.aclose()
        if self._listing is not None:
            self._listing.cancel()
            await asyncio.wait([self._listing])
        exchange, self._exchange = self._exchange, None
        if exchange is not None:
            await exchange.aclose()

    def _forget_credentials(self) -> None:
        self._key = None
        if self._exchange is not None:
            self._exchange.forget_credentials()

    async def _get(self, path: str) -> bytes:
        return await self._fetch("GET", path)

    async def _post(self, path: str, body: bytes) -> bytes:
        return await self._fetch("POST", path, (body,))

    async def _fetch(self, method: str, path: str, content: tuple[bytes, ...] | None = None) -> bytes:
        """Return the body of an answer that is no reply: a listing, or what a server says of itself."""
        endpoint = await self._endpoint("")
        try:
            exchange = await self._open()
            headers, limits = self._headers(self._wire.models_headers), client_timeout(self._settings, ANSWER_LIMIT_S)
            response = await exchange.send(
                method, path, headers=headers, limits=limits, accepts=LISTING, content=content
            )
            return _with_few_values(response.content)
        except Exception as caught:
            error = error_from_exception(caught, self._with_secrets(endpoint))
        raise error

    async def _ask(
        self,
        what: Literal["compaction", "count"],
        request: ChatRequest,
        endpoint: Endpoint,
        render: Callable[[], HttpCall | None],
    ) -> bytes | None:
        """Send a request whose answer comes at once, None when there is no such request.

        Passing trouble is tried again like that of a reply, and a refusal teaches as much; a count costs nothing.
        """
        call = await self._judged(render(), what)
        attempt, lessons = 1, 0
        while call is not None:
            try:
                response = await self._send(call, endpoint, stream=False)
                return _with_few_values(response.content)
            except errors.AdapterError as caught:
                error = caught
            except LimitHit as hit:
                error = error_from_exception(hit, endpoint)
            if lessons < _MAX_LESSONS and self._wire.learn_refusal(error, request):
                call, lessons = await self._judged(render(), what), lessons + 1
                continue
            wait = self._wait(error, attempt, is_free=what == "count")
            if wait is None:
                self._wire.learn_missing(what, error, endpoint.model)
                raise error
            await self._sleep(wait)
            attempt += 1
        return None

    @overload
    async def _judged(self, call: HttpCall, purpose: Purpose) -> HttpCall: ...

    @overload
    async def _judged(self, call: HttpCall | None, purpose: Purpose) -> HttpCall | None: ...

    async def _judged(self, call: HttpCall | None, purpose: Purpose) -> HttpCall | None:
        """Return the call, validated; a body that the provider would reject is never sent (issue 20)."""
        if call is not None and self._gate.unknown_bytes(call.chunks, purpose) > ASIDE_BYTES:
            await asyncio.to_thread(self._gate.require_valid, call.chunks, purpose)
        elif call is not None:
            self._gate.require_valid(call.chunks, purpose)
        return call

    async def _attempt(
        self, request: ChatRequest, call: HttpCall, deadline: float
    ) -> AsyncGenerator[StreamEvent, None]:
        """Send the request once and yield its events."""
        silence_s = max_silence_s(self._settings, call.size_bytes)
        endpoint = msgspec.structs.replace(await self._endpoint(request.model), silence_s=silence_s)
        timer = self._reply_timer(request) if self._is_own else None
        response = await self._send(call, endpoint, stream=True)
        if self._is_own:
            self._server.read_prompt(request.chat_id or request.purpose, request.model)
        endpoint = self._with_secrets(endpoint)
        decoder = self._wire.decoder(endpoint)
        error: errors.AdapterError | None = None
        try:
            judge = self._patience(endpoint, deadline)
            async with aclosing(read_reply(response, decoder, endpoint, judge)) as events:
                async for event in events:
                    if timer is not None:
                        if decoder.seen_output:
                            timer.see_output()
                        if isinstance(event, Finished):
                            self._server.learn_speed(decoder.timings or timer.timings(event.usage), request.model)
                    yield event
        except errors.AdapterError:
            raise
        except Exception as caught:
            _log.info("the stream of %s ended with %s", self.name, type(caught).__name__)
            error = error_of_reply(caught, endpoint, seen_output=decoder.seen_output)
        finally:
            await response.aclose()
        if error is not None:
            raise error

    def _patience(self, endpoint: Endpoint, deadline: float) -> Callable[[int], None]:
        """Return a function that raises `StreamCut` when a reply takes too long or stops growing for too long."""
        limit = max_keep_alive_s(self._settings) or math.inf
        grown, since = -1, math.inf

        def judge(kept_chars: int) -> None:
            nonlocal grown, since
            now = self._clock()
            if kept_chars > grown:
                grown, since = kept_chars, now
            if now > deadline:
                raise errors.StreamCut(endpoint.say("the reply took longer than the time limit."))
            if now - since > limit:
                said = f"the provider sent only keep-alives for {limit:g} s {endpoint.remedies.after_silence}"
                raise final_cut(endpoint.say(said))

        return judge

    async def _send(self, call: HttpCall, endpoint: Endpoint, *, stream: bool) -> httpx2.Response:
        try:
            exchange = await self._open()
            limits = client_timeout(self._settings, max_silence_s(self._settings, call.size_bytes))
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
            error = error_from_exception(caught, self._with_secrets(endpoint))
        raise error

    def _with_secrets(self, endpoint: Endpoint) -> Endpoint:
        """Return the endpoint with the tokens that the exchange has put into requests, which no sentence may show."""
        added = frozenset[str]() if self._exchange is None else self._exchange.secrets()
        for secret in added - self._told:
            self._on_secret(secret)
        self._told |= added
        return msgspec.structs.replace(endpoint, secrets=(*endpoint.secrets, *added)) if added else endpoint

    def _wait(self, error: errors.AdapterError, attempt: int, *, is_free: bool = False) -> float | None:
        from codecompanion.adapters.errors.retry import wait_before_retry  # not part of the start

        most, random = self._settings.max_retries, self._random()
        return wait_before_retry(error, attempt, max_retries=most, random=random, is_free=is_free)

    def _reply_timer(self, request: ChatRequest) -> ReplyTimer:
        from codecompanion.adapters.http.reply_timer import ReplyTimer  # not part of the start

        return ReplyTimer(request, self.facts(request.model), self._clock)

    def _server_wait(self) -> ServerWait:
        from codecompanion.adapters.http.server_wait import ServerWait  # not part of the start

        return ServerWait(self._settings)

    async def _first_model(self) -> str:
        """Return the model of an adapter that names none: the first the endpoint lists."""
        if not self.default_model:
            names = await self.list_models()
            if not names:
                none = "no model is configured and the endpoint lists none. Choose with ga."
                if self.name == "ollama":
                    none = "it has no model yet. Get one, for example with: ollama pull qwen3:8b"
                raise errors.ModelNotFound(f"{self.name}: {none}")
            self.default_model = names[0]
        return self.default_model

    async def _endpoint(self, model: str) -> Endpoint:
        if self._key is None:
            self._key = await asyncio.to_thread(self._read_key, self._settings)
        settings = self._settings
        hidden = (
            self._key,
            *(value for value in settings.headers.values() if KEY_TEMPLATE not in value),
            *secrets_in_url(settings.base_url),
            *secrets_in_url(settings.chat_path),
        )
        return Endpoint(
            name=self.name,
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

    def _is_free(self, model: str) -> bool:
        """Return whether this machine runs the model, as far as is known: a gateway passes it on to who bills."""
        passes_on = is_cloud_model(model) or self.runs_model_itself(model) is False
        return self._may_be_gateway and not passes_on

    def _headers(self, more: Mapping[str, str]) -> dict[str, str]:
        """Return key, the user's own headers and `more`, names in lower case.

        The client is not given the key: it would keep it in its `repr`-able state.
        """
        settings, wire, key = self._settings, self._wire, self._key or ""
        headers: dict[str, str] = {}
        if key and settings.key_header:
            headers[settings.key_header.lower()] = key
        elif key:
            headers[wire.key_header.lower()] = wire.key_value.replace(KEY_TEMPLATE, key)
        own = (*settings.headers.items(), *more.items())
        return headers | {name.lower(): value.replace(KEY_TEMPLATE, key) for name, value in own}

    async def _open(self) -> Exchange:
        loop = asyncio.get_running_loop()
        exchange = self._exchange if self._loop is loop else None
        if exchange is None:
            if self._opening is None or self._loop is not loop:
                self._loop = loop
                self._opening = asyncio.ensure_future(asyncio.to_thread(open_exchange, self._settings, self._environ))
            opening = self._opening
            try:
                # Shielded: a request that is cancelled meanwhile must not take the exchange from the next one.
                exchange = self._exchange = await asyncio.shield(opening)
            finally:
                if opening.done():
                    self._opening = None
        return exchange


def _with_few_values(body: bytes) -> bytes:
    """Return the body. Raises `LimitHit` if it would become far larger in memory."""
    if has_too_many_values(body):
        raise LimitHit(f"the answer has more than {MAX_JSON_VALUES:,} values")
    return body
