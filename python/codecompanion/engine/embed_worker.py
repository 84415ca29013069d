"""`python -m codecompanion.engine.embed_worker`: embeds questions for a host (`session.vectors.model_process`).

The model is loaded here and not in the host, whose memory would grow by ten times the model's size. The process reads
settings from the first line of standard input, then requests, one per line; it ends when that closes, or after
`IDLE_S` without requests.
"""

from __future__ import annotations

import asyncio
import base64
import os
import sys
import threading

import msgspec

from codecompanion.adapters.embeddings.make import make_embedder
from codecompanion.errors import CodeCompanionError
from codecompanion.formats import typed
from codecompanion.formats.outside_text import NOT_READABLE
from codecompanion.model.embedding import Embedder, EmbeddingSettings
from codecompanion.session.vectors.model_process import VectorAnswer, VectorRequest
from codecompanion.store.code_index.vectors import to_blob

IDLE_S = 300.0
"""Seconds without requests before the process ends; the next question reloads the model in a second."""


def main() -> int:
    """Answer requests until the input ends; return the exit status."""
    lines = sys.stdin.buffer
    try:
        embedder = make_embedder(typed.read_json(lines.readline(), type=EmbeddingSettings), lambda settings: "")
    except (*NOT_READABLE, CodeCompanionError):
        return 2
    with asyncio.Runner() as runner:
        while True:
            idle = threading.Timer(IDLE_S, os._exit, (0,))
            idle.daemon = True
            idle.start()
            line = lines.readline()
            idle.cancel()
            if not line:
                return 0
            try:
                request = typed.read_json(line, type=VectorRequest)
            except NOT_READABLE:
                return 2
            answer = runner.run(_answer(embedder, request))
            sys.stdout.buffer.write(msgspec.json.encode(answer) + b"\n")
            sys.stdout.buffer.flush()


async def _answer(embedder: Embedder, request: VectorRequest) -> VectorAnswer:
    try:
        vector = await embedder.embed_query(request.question)
    except CodeCompanionError as error:
        return VectorAnswer(request.id, error=str(error))
    return VectorAnswer(request.id, base64.b64encode(to_blob(vector)).decode())


if __name__ == "__main__":
    sys.exit(main())
