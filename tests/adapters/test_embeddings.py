"""Tests of embeddings from endpoints that refuse what OpenAI, Ollama, llama.cpp, vLLM and TEI refuse (R-239)."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from typing import Any

import pytest

from codecompanion.adapters.embeddings.http_embedder import HttpEmbedder
from codecompanion.adapters.keys.key_source import KeyReader
from codecompanion.errors import (
    AdapterError,
    AuthenticationFailed,
    MalformedReply,
    MissingKey,
    ModelNotFound,
    NetworkFailed,
    NotServed,
    Overloaded,
    RequestRejected,
)
from codecompanion.model.embedding import EmbeddingSettings
from tests.providers.embeddings.hashing import hashed_vector
from tests.providers.embeddings.rules import Flavour
from tests.providers.embeddings.server import EmbeddingServer, packed, reply
from tests.providers.loopback.answers import DROP, Answer, failure, json_answer, plain, silence

KEY = "sk-proj-aBcD1234efGH5678"
FLAVOURS: tuple[Flavour, ...] = ("openai", "ollama", "llama.cpp", "vllm", "tei")
Shape = Callable[[dict[str, Any]], dict[str, Any]]


def embedder(server: EmbeddingServer, waits: list[float] | None = None, **fields: Any) -> HttpEmbedder:
    """Return an embedder for a server; it records its waits instead of waiting."""
    noted = [] if waits is None else waits

    async def sleep(seconds: float) -> None:
        noted.append(seconds)

    settings = EmbeddingSettings(**{"url": server.url, "model": "test-embedding", **fields})
    return HttpEmbedder(settings, read_key=KeyReader(environ={"EMBED_KEY": KEY}), sleep=sleep, random=lambda: 0.5)


def near(vector: Any, text: str) -> bool:
    """Return whether the vector is close to that of the text."""
    return sum(a * b for a, b in zip(vector, hashed_vector(text), strict=True)) > 0.9999


def changed(**of_first: Any) -> Shape:
    """Return a function that changes the first entry of an answer."""
    return lambda body: {**body, "data": [{**body["data"][0], **of_first}, *body["data"][1:]]}


@pytest.mark.parametrize("flavour", FLAVOURS)
async def test_every_server_returns_vectors_in_the_order_of_the_texts(flavour: Flavour) -> None:
    """Blank texts, which OpenAI, llama.cpp and TEI refuse, are not sent; TEI accepts 32 at a time."""
    texts = [f"def load_{number}(): word{number}" for number in range(70)]
    texts[3], texts[40] = "", " \n "
    async with EmbeddingServer(flavour, max_texts=32 if flavour == "tei" else 2048) as server:
        maker = embedder(server)
        vectors = await maker.embed(texts)
        assert [len(vector) for vector in vectors if vector] == [32] * 68
        assert all(near(vector, text) for vector, text in zip(vectors, texts, strict=True) if vector)
        assert not vectors[3]
        assert not vectors[40]
        assert near(await maker.embed_query("where is load"), "where is load")
        assert not await maker.embed_query("  ")
        assert server.refused == 0
        await maker.aclose()


@pytest.mark.parametrize("flavour", FLAVOURS)
async def test_a_text_that_is_too_long_is_truncated_and_counted(flavour: Flavour) -> None:
    """Each server reports it in its own words; the other texts of the request keep their own vectors."""
    long = "lorem ipsum dolor " * 400
    async with EmbeddingServer(flavour, text_tokens=256) as server:
        maker = embedder(server)
        vectors = await maker.embed(["short one", long, "short two"])
        assert near(vectors[0], "short one")
        assert near(vectors[2], "short two")
        assert len(vectors[1]) == 32
        assert maker.shortened == 1
        (sent,) = (text for text in server.texts if text.startswith("lorem"))
        assert long.startswith(sent)
        refused = server.refused
        await maker.embed([long])
        assert server.refused == refused, "the next long text is cut before it is sent"
        await maker.aclose()


async def test_a_limit_on_all_texts_together_is_learned_once() -> None:
    texts = [f"text {number} " * 40 for number in range(16)]
    async with EmbeddingServer(request_tokens=800) as server:
        maker = embedder(server)
        vectors = await maker.embed(texts)
        assert all(near(vector, text) for vector, text in zip(vectors, texts, strict=True))
        assert maker.shortened == 0
        refused = server.refused
        assert refused
        await maker.embed(texts)
        assert server.refused == refused
        await maker.aclose()


@pytest.mark.parametrize("flavour", ["openai", "tei"])
async def test_a_limit_on_the_number_of_texts_is_learned_once(flavour: Flavour) -> None:
    async with EmbeddingServer(flavour, max_texts=10) as server:
        maker = embedder(server)
        assert len(await maker.embed([f"text {number}" for number in range(40)])) == 40
        assert maker.batch_size == 8
        refused = server.refused
        await maker.embed([f"text {number}" for number in range(40)])
        assert server.refused == refused
        await maker.aclose()


async def test_temporary_trouble_is_retried_as_in_a_chat() -> None:
    trouble = [
        failure(429, "Rate limit reached", headers={"retry-after": "2"}),
        failure(503, "loading the model"),
        Answer(parts=(b'{"data": [', DROP)),
    ]
    async with EmbeddingServer(script=trouble) as server:
        waits: list[float] = []
        maker = embedder(server, waits)
        assert near((await maker.embed(["one"]))[0], "one")
        assert waits[:2] == [2.0, 1.0]
        assert len(server.requests) == 4
        await maker.aclose()


async def test_repeated_trouble_ends_in_one_sentence() -> None:
    async with EmbeddingServer(script=[failure(500, "out of memory")] * 9) as server:
        maker = embedder(server)
        with pytest.raises(Overloaded, match=r"^embeddings: the provider failed \(500\)\. The provider says: out of"):
            await maker.embed(["one"])
        assert len(server.requests) == 4
        await maker.aclose()


async def test_a_key_is_sent_and_shown_nowhere(caplog: pytest.LogCaptureFixture) -> None:
    """Even if the server echoes the key in its refusal, no error, log line or repr contains it (lesson 44)."""
    caplog.set_level(logging.DEBUG)
    async with EmbeddingServer(key=KEY) as server:
        maker = embedder(server, key="EMBED_KEY")
        await maker.embed(["one"])
        assert server.requests[0].headers["authorization"] == f"Bearer {KEY}"
        await maker.aclose()
    async with EmbeddingServer(key="another", script=[failure(429, f"slow down, {KEY}")] * 4) as server:
        maker = embedder(server, key="EMBED_KEY")
        with pytest.raises(AuthenticationFailed) as caught:
            await maker.embed(["one"])
        said = "embeddings: the key in EMBED_KEY was refused (401). Check the key of context.embedding."
        assert str(caught.value) == said
        await maker.aclose()
    async with EmbeddingServer(script=[failure(429, f"slow down, {KEY}")] * 4) as server:
        maker = embedder(server, key="EMBED_KEY")
        with pytest.raises(AdapterError) as slow:
            await maker.embed(["one"])
        assert KEY not in f"{slow.value} {maker!r} {vars(maker)['_endpoint']!r}"
        await maker.aclose()
    assert KEY not in caplog.text


async def test_a_missing_key_names_its_source_before_anything_is_sent() -> None:
    async with EmbeddingServer() as server:
        maker = embedder(server, key="OTHER_KEY")
        with pytest.raises(
            MissingKey, match=r"no API key: OTHER_KEY is not set\. Set it, or change the key of context"
        ):
            await maker.embed(["one"])
        assert not server.requests


@pytest.mark.parametrize(
    ("shape", "said"),
    [
        (changed(embedding=[1.0, 2.0]), "the model's vectors have 2 and 32 dimensions"),
        (changed(index=5), "the index of a vector is invalid or repeated (5 of 2)"),
        (lambda body: {**body, "data": body["data"][1:]}, "1 vectors were returned for 2 texts"),
        (lambda body: {"embeddings": []}, "no list of vectors"),
        (
            lambda body: {**body, "data": [{**entry, "embedding": [0.0] * 32} for entry in body["data"]]},
            "the vectors are all zero",
        ),
    ],
)
async def test_a_wrong_answer_is_refused_in_one_sentence(shape: Shape, said: str) -> None:
    async with EmbeddingServer(shape=shape) as server:
        maker = embedder(server)
        with pytest.raises(MalformedReply) as caught:
            await maker.embed(["one", "two"])
        assert said in str(caught.value)
        assert str(caught.value).endswith("Is test-embedding an embedding model?")
        assert len(server.requests) == 1, "asking again would be paid for again"
        await maker.aclose()


async def test_a_later_change_of_dimensions_is_refused() -> None:
    async with EmbeddingServer(script=[json_answer(reply(["one"], 16))]) as server:
        maker = embedder(server)
        assert len((await maker.embed(["one"]))[0]) == 16
        with pytest.raises(MalformedReply, match="vectors have 16 and 32 dimensions"):
            await maker.embed(["two"])
        await maker.aclose()


async def test_answers_in_any_order_and_in_base64_are_read() -> None:
    def shuffled(body: dict[str, Any]) -> dict[str, Any]:
        entries = [{**entry, "embedding": packed(entry["embedding"])} for entry in body["data"]]
        return {**body, "data": entries[::-1]}

    async with EmbeddingServer(shape=shuffled) as server:
        maker = embedder(server)
        first, second = await maker.embed(["one", "two"])
        assert near(first, "one")
        assert near(second, "two")
        await maker.aclose()


async def test_a_text_without_usable_numbers_is_counted_and_the_others_kept() -> None:
    async with EmbeddingServer(shape=changed(embedding=[float("nan")] * 32)) as server:
        maker = embedder(server)
        first, second = await maker.embed(["one", "two"])
        assert not first
        assert near(second, "two")
        assert maker.unusable == 1
        await maker.aclose()


async def test_a_server_without_embeddings_is_reported() -> None:
    async with EmbeddingServer("llama.cpp", width=0) as server:
        maker = embedder(server)
        with pytest.raises(NotServed) as caught:
            await maker.embed(["one"])
        remedy = "Start it with --embeddings and an embedding model."
        said = f"embeddings: {server.url} does not serve embeddings. {remedy}"
        assert str(caught.value) == said
        assert len(server.requests) == 1
        await maker.aclose()
    async with EmbeddingServer("ollama") as server:
        maker = embedder(server, model="nomic")
        said = r"does not know the model nomic \(404\)\. Name another model in context\.embedding\."
        with pytest.raises(ModelNotFound, match=said):
            await maker.embed(["one"])
        await maker.aclose()


async def test_dimensions_are_sent_only_if_configured() -> None:
    async with EmbeddingServer(model="text-embedding-3-small", width=1536) as server:
        small = embedder(server, model="text-embedding-3-small", dimensions=64)
        assert len((await small.embed(["one"]))[0]) == 64
        await small.aclose()
    async with EmbeddingServer() as server:
        maker = embedder(server, dimensions=64)
        with pytest.raises(RequestRejected, match="does not support specifying dimensions"):
            await maker.embed(["one"])
        assert "dimensions" not in embedder(server).name
        await maker.aclose()


async def test_text_that_json_cannot_encode_is_still_sent() -> None:
    async with EmbeddingServer() as server:
        maker = embedder(server)
        assert len((await maker.embed(["half \ud83d a pair \x00 nul"]))[0]) == 32
        assert server.texts == ["half ? a pair \x00 nul"]
        await maker.aclose()


async def test_prefixes_precede_question_and_code_and_are_part_of_the_name() -> None:
    async with EmbeddingServer(model="nomic-embed-text") as server:
        maker = embedder(server, model="nomic-embed-text")
        await maker.embed(["code"])
        await maker.embed_query("question")
        assert server.texts == ["search_document: code", "search_query: question"]
        other = embedder(server, model="nomic-embed-text", document_prefix="")
        assert maker.name != other.name
        await maker.aclose()


@pytest.mark.parametrize("tail", ["", "/", "/v1", "/v1/", "/v1/embeddings"])
async def test_an_address_may_end_at_any_level(tail: str) -> None:
    async with EmbeddingServer() as server:
        maker = embedder(server, url=server.url.removesuffix("/v1") + tail)
        await maker.embed(["one"])
        await maker.aclose()


async def test_a_closed_port_is_reported() -> None:
    async with EmbeddingServer() as server:
        maker = embedder(server)
    with pytest.raises(NetworkFailed, match=r"Check the network and the url of context\.embedding"):
        await maker.embed(["one"])
    await maker.aclose()


async def test_a_web_page_is_not_a_vector() -> None:
    async with EmbeddingServer(script=[plain(b"<html>Log in</html>", content_type="text/html")]) as server:
        maker = embedder(server)
        with pytest.raises(MalformedReply, match="no list of vectors"):
            await maker.embed(["one"])
        await maker.aclose()


async def test_cancelling_ends_the_request_at_once() -> None:
    async with EmbeddingServer(script=[silence()]) as server:
        maker = embedder(server)
        task = asyncio.create_task(maker.embed(["one"]))
        await server.wait_until(lambda: bool(server.requests))
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        await server.wait_until(lambda: server.requests[0].aborted)
        await maker.aclose()
