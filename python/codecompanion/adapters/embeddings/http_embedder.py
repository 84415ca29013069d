"""Computes vectors with an OpenAI-compatible endpoint: OpenAI, Ollama, llama.cpp, vLLM, TEI and similar (R-239).

https://platform.openai.com/docs/api-reference/embeddings. `encoding_format` is not sent: by default all of these
servers return numbers, and some refuse the field. An endpoint's limits (number and size of inputs) are learned from its
refusals; an input that is too long is truncated, and counted in `shortened`. Failed requests are retried as in a chat.
"""

from __future__ import annotations

import asyncio
import logging
import re
from collections.abc import Awaitable, Callable, Coroutine, Sequence
from random import random as system_random
from urllib.parse import urlsplit

import msgspec

from codecompanion import errors
from codecompanion.adapters.base import AdapterSettings, SecretReader
from codecompanion.adapters.embeddings.prefixes import prefixes_of
from codecompanion.adapters.embeddings.reply import WrongVectors, read_vectors
from codecompanion.adapters.errors.error_map import Endpoint, Remedies, error_from_exception
from codecompanion.adapters.errors.retry import wait_before_retry
from codecompanion.adapters.keys.key_source import key_label
from codecompanion.adapters.keys.redact import plain_url, secrets_in_url
from codecompanion.adapters.transport.client import HttpClient, client_timeout, make_client
from codecompanion.adapters.transport.time_limits import place_of
from codecompanion.errors import ContextOverflow, MalformedReply, NotServed, RequestRejected
from codecompanion.formats.byte_limits import VECTORS
from codecompanion.formats.regex import regex
from codecompanion.model.embedding import EmbeddingSettings, Vector, unit_vector

_log = logging.getLogger(__name__)

TEXTS_IN_A_REQUEST = 32
"""Texts per request: TEI's default limit (`--max-client-batch-size`); other servers accept hundreds."""
CHARS_IN_A_REQUEST = 100_000
"""Characters per request; OpenAI accepts 300,000 tokens."""
REQUESTS_AT_ONCE = 4
"""Concurrent requests to a provider on the internet; the user's own server gets one at a time."""
SILENCE_S = 300.0
"""Seconds without a response before a request fails; a server may have to load the model first."""
_MIN_CHARS = 32
"""Minimum length of a truncated text; if even this is refused, length is not the reason."""
_TOO_MANY = regex(
    r"batch size (?:is|\d+ >)|(?:in one|more) batch|too many (?:inputs|texts)|array too long|inputs? .{0,40}at most",
    re.IGNORECASE,
)
_NOT_SERVED, _LLAMA_CPP = 501, "--embeddings"
"""Status and part of the message of llama.cpp's error if it was started without embeddings."""
_VERSIONED = regex(r"/v\d\w*(?:/|$)")
_REMEDIES = Remedies(
    check_address="the url of context.embedding",
    check_path="the url of context.embedding",
    other_key="Check the key of context.embedding.",
    no_key="Set the key of context.embedding.",
    other_model="Name another model in context.embedding.",
    after_silence="after texts were sent to it. Is the model loaded?",
    after_loss="",
)


class HttpEmbedder:
    """One model at one endpoint; see `model.embedding.Embedder`. Tests can replace sleep and random numbers."""

    def __init__(
        self,
        settings: EmbeddingSettings,
        *,
        read_key: SecretReader,
        sleep: Callable[[float], Awaitable[None]] = asyncio.sleep,
        random: Callable[[], float] = system_random,
    ) -> None:
        self._settings = connection_of(settings)
        self._model, self._dimensions = settings.model, settings.dimensions
        self._query_prefix, self._document_prefix = prefixes_of(settings, settings.model)
        self.is_paid = place_of(settings.url) == "public"
        self._at_once = REQUESTS_AT_ONCE if self.is_paid else 1
        self._max_texts, self._max_chars, self._max_text = TEXTS_IN_A_REQUEST, CHARS_IN_A_REQUEST, CHARS_IN_A_REQUEST
        self.shortened = self.unusable = 0
        size = f" {settings.dimensions}" if settings.dimensions else ""
        self.name = f"{settings.model}{size}@{plain_url(self._settings.base_url)}{_mark(self._document_prefix)}"
        self._read_key, self._sleep, self._random = read_key, sleep, random
        self._client: HttpClient | None = None
        self._endpoint: Endpoint | None = None
        self._key = ""
        self._width = 0

    def __repr__(self) -> str:
        """Show only the name."""
        return f"HttpEmbedder({self.name!r})"

    @property
    def batch_size(self) -> int:
        """Return the number of inputs that keeps the endpoint busy."""
        return self._max_texts * self._at_once

    async def embed(self, texts: Sequence[str]) -> list[Vector]:
        """Return the vectors of code chunks."""
        return await self._embed([self._document_prefix + text if text.strip() else "" for text in texts])

    async def embed_query(self, text: str) -> Vector:
        """Return the vector of a question."""
        return (await self._embed([self._query_prefix + text if text.strip() else ""]))[0]

    async def aclose(self) -> None:
        """Close the connections."""
        client, self._client = self._client, None
        if client is not None:
            await client.aclose()

    async def _embed(self, texts: Sequence[str]) -> list[Vector]:
        await self._open()
        filled = [index for index, text in enumerate(texts) if text]
        vectors = [unit_vector(()) for _ in texts]
        gate = asyncio.Semaphore(self._at_once)

        async def fill(indexes: list[int]) -> None:
            async with gate:
                found = await self._embed_some([texts[index] for index in indexes])
            for index, vector in zip(indexes, found, strict=True):
                vectors[index] = vector

        await _all_or_none([fill(indexes) for indexes in self._requests(texts, filled)])
        return vectors

    def _requests(self, texts: Sequence[str], indexes: Sequence[int]) -> list[list[int]]:
        """Group the inputs' indexes so that each group fits into one request."""
        groups: list[list[int]] = []
        chars = 0
        for index in indexes:
            chars += len(texts[index])
            if not groups or len(groups[-1]) == self._max_texts or chars > self._max_chars:
                groups.append([])
                chars = len(texts[index])
            groups[-1].append(index)
        return groups

    async def _embed_some(self, texts: Sequence[str]) -> list[Vector]:
        """Return the vectors of texts, split into several requests if needed."""
        try:
            return await self._ask([text[: self._max_text] for text in texts])
        except (ContextOverflow, RequestRejected) as error:
            refusal: errors.AdapterError = error
        are_too_many = len(texts) > 1 and _TOO_MANY.search(str(refusal)) is not None
        if are_too_many:
            self._max_texts = min(self._max_texts, max(1, len(texts) // 2))
        elif not isinstance(refusal, ContextOverflow):
            raise refusal
        if len(texts) == 1:
            return [await self._embed_shortened(texts[0][: self._max_text], refusal)]
        middle, before = len(texts) // 2, self.shortened
        halves = [await self._embed_some(texts[:middle]), await self._embed_some(texts[middle:])]
        if not are_too_many and self.shortened == before:
            # Only all the inputs together were too long.
            self._max_chars = min(self._max_chars, max(_chars(texts[:middle]), _chars(texts[middle:])))
        return halves[0] + halves[1]

    async def _embed_shortened(self, text: str, refusal: errors.AdapterError) -> Vector:
        """Truncate the text to a length that the model accepts, and return its vector."""
        while isinstance(refusal, ContextOverflow) and len(text) > _MIN_CHARS:
            known = refusal.limit_tokens and refusal.prompt_tokens > refusal.limit_tokens
            share = 0.9 * refusal.limit_tokens / refusal.prompt_tokens if known else 0.5
            text = text[: max(_MIN_CHARS, int(len(text) * share))]
            try:
                vectors = await self._ask([text])
            except ContextOverflow as error:
                refusal = error
                continue
            self._max_text = min(self._max_text, max(len(text), 2 * _MIN_CHARS))
            self.shortened += 1
            return vectors[0]
        raise refusal

    async def _ask(self, texts: Sequence[str]) -> list[Vector]:
        """Return the vectors from one request, retried as in a chat."""
        attempt = 1
        while True:
            try:
                return self._judged(*await self._post(texts), len(texts))
            except errors.AdapterError as caught:
                error = caught
            most, random = self._settings.max_retries, self._random()
            wait = wait_before_retry(error, attempt, max_retries=most, random=random, is_free=not self.is_paid)
            if wait is None:
                raise error
            _log.info("attempt %d failed, next in %.1f s: %s", attempt, wait, error)
            await self._sleep(wait)
            attempt += 1

    async def _post(self, texts: Sequence[str]) -> tuple[bytes, Endpoint]:
        client, endpoint = await self._open()
        body: dict[str, object] = {"model": self._model, "input": [_sendable(text) for text in texts]}
        if self._dimensions:
            body["dimensions"] = self._dimensions
        headers = {"authorization": f"Bearer {self._key}"} if self._key else {}
        try:
            limits = client_timeout(self._settings, SILENCE_S)
            content = msgspec.json.encode(body)
            response = await client.send(
                "POST", self._settings.chat_path, headers=headers, limits=limits, accepts=VECTORS, content=(content,)
            )
            return response.content, endpoint
        except Exception as caught:
            error = error_from_exception(caught, endpoint)
        raise NotServed(self._not_served(str(error))) if error.status == _NOT_SERVED else error

    def _not_served(self, said: str) -> str:
        """Return the message for a server without embeddings, with the remedy if it is known."""
        remedy = "Start it with --embeddings and an embedding model." if _LLAMA_CPP in said else said
        return f"embeddings: {plain_url(self._settings.base_url)} does not serve embeddings. {remedy}"

    def _judged(self, body: bytes, endpoint: Endpoint, count: int) -> list[Vector]:
        try:
            vectors = read_vectors(body, count)
            widths = {len(vector) for vector in vectors if vector} | ({self._width} - {0})
            if len(widths) > 1:
                raise WrongVectors(f"the model's vectors have {' and '.join(map(str, sorted(widths)))} dimensions")
            if self._dimensions and widths - {self._dimensions}:
                raise WrongVectors(f"the vectors have {max(widths)} dimensions, but `dimensions` is {self._dimensions}")
            empty = sum(not vector for vector in vectors)
            if empty == count > 1:
                raise WrongVectors("the vectors are all zero, or contain a value that is not a number")
        except WrongVectors as wrong:
            error = MalformedReply(endpoint.say(f"{wrong}. Is {self._model} an embedding model?"))
        else:
            self._width = max(widths, default=0)
            self.unusable += empty
            return vectors
        raise error

    async def _open(self) -> tuple[HttpClient, Endpoint]:
        """Return the HTTP client and the endpoint, created on first use."""
        if self._endpoint is None:
            self._endpoint = await asyncio.to_thread(self._read_endpoint)
        if self._client is None:
            self._client = await asyncio.to_thread(make_client, self._settings)
        return self._client, self._endpoint

    def _read_endpoint(self) -> Endpoint:
        settings = self._settings
        missing = ""
        try:
            self._key = self._read_key(settings) if settings.key else ""
        except errors.MissingKey as error:
            missing = error.brief
        if missing:
            raise errors.MissingKey(
                f"embeddings: no API key: {missing}. Set it, or change the key of context.embedding."
            )
        hidden = (self._key, *secrets_in_url(settings.base_url), *secrets_in_url(settings.chat_path))
        return Endpoint(
            name="embeddings",
            base_url=settings.base_url,
            key_label=key_label(settings),
            model=self._model,
            secrets=tuple(secret for secret in hidden if secret),
            silence_s=SILENCE_S,
            remedies=_REMEDIES,
        )


def connection_of(settings: EmbeddingSettings) -> AdapterSettings:
    """Return the endpoint's connection settings; the URL may end before or after `/v1` or `/embeddings`."""
    address, mark, query = settings.url.partition("?")
    base = address.rstrip("/").removesuffix("/embeddings")
    ends_with_path = address.rstrip("/") != base
    has_version = _VERSIONED.search(urlsplit(base).path) is not None
    path = "embeddings" if ends_with_path or has_version else "v1/embeddings"
    return AdapterSettings(
        name="embeddings",
        kind="openai" if urlsplit(base).hostname == "api.openai.com" else "openai_compatible",
        base_url=base + mark + query,
        chat_path=path,
        key=settings.key,
        model=settings.model,
    )


async def _all_or_none(steps: Sequence[Coroutine[None, None, None]]) -> None:
    """Run all coroutines; the first failure, or a cancellation, cancels the rest."""
    tasks = [asyncio.ensure_future(step) for step in steps]
    try:
        await asyncio.gather(*tasks)
    except BaseException:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        raise


def _chars(texts: Sequence[str]) -> int:
    return sum(map(len, texts))


def _sendable(text: str) -> str:
    """Replace characters that UTF-8 cannot encode."""
    return text.encode("utf-8", "replace").decode()


def _mark(prefix: str) -> str:
    """Return a suffix of the model name that distinguishes vectors with different prefixes."""
    return f" [{prefix.strip()[:40]}]" if prefix else ""
