"""Creates the embedder from the settings."""

from __future__ import annotations

from codecompanion.adapters.base import SecretReader
from codecompanion.adapters.embeddings.http_embedder import HttpEmbedder
from codecompanion.adapters.embeddings.onnx_embedder import OnnxEmbedder
from codecompanion.adapters.embeddings.spec import problem_with
from codecompanion.errors import NotConfigured
from codecompanion.model.embedding import Embedder, EmbeddingSettings


def make_embedder(settings: EmbeddingSettings, read_key: SecretReader) -> Embedder:
    """Return the embedder; it imports, reads and sends nothing (not even the key) before the first text.

    Raises:
        NotConfigured: the settings cannot be used, or their folder contains no model.
    """
    if problem := problem_with(settings):
        raise NotConfigured(f"context.embedding.{problem[0]}: {problem[1]}")
    return OnnxEmbedder(settings) if settings.onnx else HttpEmbedder(settings, read_key=read_key)
