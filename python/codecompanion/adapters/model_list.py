"""The model names in what `/models` of an endpoint answers: OpenAI's shape, Ollama's, or a bare list."""

from __future__ import annotations

from collections.abc import Mapping

import msgspec


def read_model_names(body: bytes) -> list[str]:
    """Return the names, sorted and without repeats; [] when the body is no list of models."""
    try:
        answer = msgspec.json.decode(body)
    except (msgspec.DecodeError, UnicodeDecodeError):
        return []
    entries = answer
    if isinstance(answer, Mapping):
        entries = answer.get("data") or answer.get("models")
    names: set[str] = set()
    for entry in entries if isinstance(entries, list) else []:
        name = entry
        if isinstance(entry, Mapping):
            name = entry.get("id") or entry.get("name") or entry.get("model")
        if isinstance(name, str) and name:
            names.add(name)
    return sorted(names)
