"""Finds the prefixes that a model's developers specify for questions and for code (`prefixes.toml`)."""

from __future__ import annotations

from functools import cache
from typing import Any

from codecompanion.formats.package_table import package_table
from codecompanion.model.embedding import EmbeddingSettings


def prefixes_of(settings: EmbeddingSettings, model: str) -> tuple[str, str]:
    """Return the prefixes for questions and for code; the user's settings take precedence."""
    name = model.lower()
    found = next((entry for entry in _table() if any(part in name for part in entry["names"])), {})
    query, document = settings.query_prefix, settings.document_prefix
    return (
        found.get("query", "") if query is None else query,
        found.get("document", "") if document is None else document,
    )


@cache
def _table() -> list[dict[str, Any]]:
    models: list[dict[str, Any]] = package_table("adapters/embeddings/prefixes.toml")["model"]
    return models
