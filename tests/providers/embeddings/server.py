"""A loopback server that implements `/v1/embeddings` like OpenAI, Ollama, llama.cpp, vLLM or TEI.

`async with EmbeddingServer("ollama") as server: … server.url … server.texts`; in a test that is not async
`EmbeddingServerThread`. Vectors are hashed words (`hashing.py`). A request is judged first (`rules.py`); then the next
answer of the script is sent or, when it is used up, the vectors. `shape` changes a successful answer before it is sent.
"""

from __future__ import annotations

import base64
from array import array
from collections.abc import Callable, Iterable
from typing import Any

from tests.providers.embeddings.hashing import hashed_vector
from tests.providers.embeddings.rules import Flavour, Limits, refusal_of
from tests.providers.loopback.answers import Answer, failure, json_answer
from tests.providers.loopback.server import LoopbackServer, Received
from tests.providers.loopback.thread import LoopbackThread
from tests.providers.loopback.token_count import count
from tests.providers.loopback.wire_schemas import Kind

Body = dict[str, Any]


class EmbeddingServer(LoopbackServer):
    """The server; see the module docstring.

    If `key` is "", no key is required. `texts` are those that got vectors, in order.
    """

    def __init__(
        self,
        flavour: Flavour = "openai",
        script: Iterable[Answer] = (),
        *,
        key: str = "",
        model: str = "test-embedding",
        width: int = 32,
        text_tokens: int = 8192,
        request_tokens: int = 300_000,
        max_texts: int = 2048,
        shape: Callable[[Body], Body] = lambda body: body,
    ) -> None:
        super().__init__()
        self.script = list(script)
        self.texts: list[str] = []
        self.refused = 0
        self._flavour, self._key, self._shape = flavour, key, shape
        self._limits = Limits(model, text_tokens, request_tokens, max_texts, width)

    def answer(self, request: Received) -> Answer:
        """Return the refusal of the request, or the next answer of the script, or else the vectors."""
        given = request.headers.get("authorization", "")
        if self._key and given != f"Bearer {self._key}":
            # As OpenAI echoes it, and as a careless gateway does.
            return failure(401, f"Incorrect API key provided: {given.removeprefix('Bearer ')}.", code="invalid_api_key")
        if request.method != "POST" or request.path != "/v1/embeddings":
            return failure(404, f"Invalid URL ({request.method} {request.path})")
        try:
            body = request.json
        except ValueError:
            return failure(400, "We could not parse the JSON body of your request.")
        refusal = refusal_of(self._flavour, body, self._limits)
        if refusal is not None:
            self.refused += 1
            return refusal
        if self.script:
            return self.script.pop(0)
        texts = [body["input"]] if isinstance(body["input"], str) else body["input"]
        self.texts += texts
        width = body.get("dimensions") or self._limits.width
        wants_text = body.get("encoding_format") == "base64"
        return json_answer(self._shape(reply(texts, width, wants_text, self._limits.model)))


def reply(texts: list[str], width: int, is_base64: bool = False, model: str = "test-embedding") -> Body:
    """Return the body of a successful answer."""
    vectors = [hashed_vector(text, width) for text in texts]
    entries = [
        {"object": "embedding", "index": index, "embedding": packed(vector) if is_base64 else vector}
        for index, vector in enumerate(vectors)
    ]
    tokens = sum(map(count, texts))
    return {
        "object": "list",
        "data": entries,
        "model": model,
        "usage": {"prompt_tokens": tokens, "total_tokens": tokens},
    }


def packed(vector: list[float]) -> str:
    """Return a vector as base64 of float32."""
    return base64.b64encode(array("f", vector).tobytes()).decode()


class EmbeddingServerThread(LoopbackThread[EmbeddingServer]):
    """The server in a thread of its own: `with EmbeddingServerThread("ollama") as server:`."""

    def __init__(self, flavour: Flavour = "openai", **options: Any) -> None:
        # OpenAI's rules need the types of its SDK, which take seconds to import.
        kinds: tuple[Kind, ...] = ("openai.embeddings",) if flavour == "openai" else ()
        super().__init__(lambda: EmbeddingServer(flavour, **options), *kinds)
