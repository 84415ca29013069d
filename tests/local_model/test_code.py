"""Completion and embeddings with a real llama.cpp server, whose model supports neither unless started for it."""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from codecompanion.adapters.embeddings.make import make_embedder
from codecompanion.model.embedding import EmbeddingSettings
from ghost import OPTIONS, Ghost
from harness import NO_PROVIDER, Nvim, lua_string
from tests.forked_python import forked_python
from tests.peers.tap import Tap

QUIET_S = 1.0


@pytest.fixture
def tap(llama) -> Iterator[Tap]:
    """Return a recording proxy in front of a running server."""
    llama.start(2048)
    with Tap(llama.url) as before:
        yield before


def editor(factory: Callable[..., Nvim], **settings: Any) -> Ghost:
    settings = {"python": {"host_prog": forked_python()}, **settings}
    text = lua_string(json.dumps(settings))
    init = f"{NO_PROVIDER}require('codecompanion').setup(vim.json.decode({text}))\n"
    return Ghost(factory(init=init, size=(100, 20)))


def test_a_model_without_fim_tokens_is_asked_once_and_named(tap, nvim_factory):
    completion = {**OPTIONS, "endpoint": "llamacpp", "url": tap.url}
    ghost = editor(nvim_factory, completion=completion)
    ghost.open("a.py", "x = 1\n\n", (2, 0))
    ghost.type("ifor i in ")
    ghost.nvim.wait_for(lambda: "cannot fill in code" in ghost.status(), "the reason")
    assert "smollm2.gguf at " in ghost.status()
    asked = [one.path for one in tap.exchanges if one.path.endswith("/infill")]
    assert len(asked) == 1
    for letters in ("range", "(3", "):"):
        ghost.type(letters)
        time.sleep(QUIET_S / 3)
    assert [one.path for one in tap.exchanges if one.path.endswith("/infill")] == asked, "it is not asked again"


def test_embeddings_that_are_not_served_are_reported_with_the_remedy(tap, nvim_factory):
    """Neither line of the health report cuts off the remedy."""
    ghost = editor(nvim_factory, context={"embedding": {"url": f"{tap.url}/v1", "model": "smollm2"}})
    ghost.nvim.command("checkhealth codecompanion")
    text = " ".join(" ".join(ghost.nvim.lines()).split())
    assert "does not serve embeddings. Start it with --embeddings and an embedding model." in text
    assert "Keyword search is used until it answers" in text


def test_embeddings_are_read_from_a_server_that_serves_them(llama):
    llama.start(512, "--embeddings", "--pooling", "mean")

    async def vectors() -> list[list[float]]:
        embedder = make_embedder(EmbeddingSettings(url=f"{llama.url}/v1", model="smollm2"), lambda settings: "")
        try:
            return [list(await embedder.embed_query(text)) for text in ("parse the configuration", "a cat")]
        finally:
            await embedder.aclose()

    one, other = asyncio.run(vectors())
    assert len(one) == len(other) > 100
    assert one != other
