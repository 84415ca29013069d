"""Documented model lists: names for the picker, windows for the meter."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from codecompanion.adapters.model_list import (
    ANY_MODEL,
    OWNERS,
    find_limits,
    other_model,
    read_model_limits,
    read_model_names,
    read_model_owners,
)
from codecompanion.counting.model_windows import ModelLimits


@pytest.mark.parametrize(
    ("body", "names"),
    [
        (b'{"object": "list", "data": [{"id": "b"}, {"id": "a"}, {"id": "a"}]}', ["a", "b"]),
        (b'{"models": [{"name": "llama3:latest"}, {"model": "qwen"}]}', ["llama3:latest", "qwen"]),
        (b'["x", {"id": "y"}]', ["x", "y"]),
        (b'{"data": [{"id": "models/gemini-3.8-flash"}]}', ["gemini-3.8-flash"]),
        (b'{"data": [{"id": "a"}, {"id": "e", "type": "embeddings"}]}', ["a"]),
        (b'{"data": [{"id": "a"}, {"id": "e", "capabilities": {"completion_chat": false}}]}', ["a"]),
        (b'{"data": [{"id": "gpt-4o"}, {"id": "text-embedding-3-small"}, {"id": "tts-1"}]}', ["gpt-4o"]),
        (b'{"data": [{"id": "nomic-embed-text:latest"}, {"id": "BAAI/bge-m3"}, {"id": "qwen3-reranker"}]}', []),
        (
            b'{"data": [{"id": "embedder-of-none"}, {"id": "emberlight"}, {"id": "bgeneral"}]}',
            ["bgeneral", "emberlight"],
        ),
        (b'{"data": [{"id": "a", "capabilities": ["completion", "embedding"]}]}', ["a"]),
        (b'{"data": [{"id": "a"}, {"id": "e", "capabilities": ["embedding"]}]}', ["a"]),
        (b'{"data": [{"id": "a"}, {"id": "e", "capabilities": {"type": "embeddings"}}]}', ["a"]),
        (b'{"models": [{"name": "g"}, {"name": "e", "supportedGenerationMethods": ["embedContent"]}]}', ["g"]),
        (b'{"data": [{"id": "a"}, {"id": "e", "architecture": {"output_modalities": ["embeddings"]}}]}', ["a"]),
        (b'{"data": [{"id": "a"}, {"id": "r", "type": "rerank"}, {"id": "i", "type": "image"}]}', ["a"]),
        (b'{"data": {"id": "a"}}', []),
        (b'{"data": [{"id": 5}, null]}', []),
        (b"<html>", []),
        (b"\xff", []),
        (b"", []),
    ],
)
def test_the_list_of_models_is_read_in_every_shape(body: bytes, names: list[str]) -> None:
    """The shapes are those of OpenAI and Ollama, and a bare list; an invalid body yields an empty list."""
    assert read_model_names(body) == names


LMSTUDIO_V0 = {"id": "m", "object": "model", "type": "llm", "state": "loaded", "max_context_length": 131072}
LLAMA_META = {"n_ctx_train": 262144, "n_params": 7}


@pytest.mark.parametrize(
    ("entry", "limits"),
    [
        # vLLM
        ({"id": "m", "object": "model", "max_model_len": 32768}, ModelLimits(32768)),
        # Mistral
        ({"id": "m", "max_context_length": 131072, "capabilities": {"completion_chat": True}}, ModelLimits(131072)),
        # OpenRouter: the provider in front may have less than the model
        (
            {"id": "m", "context_length": 1048576, "top_provider": {"context_length": 200000}},
            ModelLimits(200000),
        ),
        (
            {"id": "m", "context_length": 8192, "top_provider": {"context_length": 8192, "max_completion_tokens": 512}},
            ModelLimits(8192, 512),
        ),
        # Hugging Face: a router that may hand it to any of them
        (
            {"id": "m", "providers": [{"context_length": 131072}, {"provider": "x"}, {"context_length": 65536}]},
            ModelLimits(65536),
        ),
        ({"id": "m", "context_size": 64000, "max_output_tokens": 16000}, ModelLimits(64000, 16000)),
        # Ollama /api/ps: loaded models
        ({"name": "m", "model": "m", "context_length": 4096, "size_vram": 0}, ModelLimits(4096)),
        # LM Studio, loaded and not
        ({**LMSTUDIO_V0, "loaded_context_length": 4096}, ModelLimits(4096)),
        ({**LMSTUDIO_V0, "state": "not-loaded"}, None),
        (
            {"key": "m", "max_context_length": 131072, "loaded_instances": [{"config": {"context_length": 8192}}]},
            ModelLimits(8192),
        ),
        ({"key": "m", "max_context_length": 131072, "loaded_instances": []}, None),
        # llama.cpp: the trained window is not that of a request
        ({"id": "m", "meta": LLAMA_META}, None),
        ({"id": "m", "meta": {**LLAMA_META, "n_ctx": 16384}}, ModelLimits(16384)),
        ({"id": "m", "context_length": "big", "max_model_len": True}, None),
        ({"id": "m", "created": 1}, None),
    ],
)
def test_a_window_is_the_size_available_to_a_request(entry: dict[str, Any], limits: ModelLimits | None) -> None:
    """Lesson 30: a figure that is only the model's maximum is not a window."""
    found = read_model_limits(msgspec.json.encode({"data": [entry]}))
    assert found == ({"m": limits} if limits else {})


def test_a_server_with_one_model_reports_its_window_for_any_name() -> None:
    """`/props` of llama.cpp reports the window of one slot, which is the window for one request."""
    body = b'{"default_generation_settings": {"n_ctx": 65536, "id": 0}, "total_slots": 4, "model_alias": "x"}'
    known = read_model_limits(body)
    assert known == {ANY_MODEL: ModelLimits(65536)}
    assert find_limits(known, "whatever") == ModelLimits(65536)


@pytest.mark.parametrize(
    ("body", "window"),
    [
        # github.com/LostRuins/koboldcpp/pull/1237 and `koboldcpp.py`: newer ones, and all of them.
        (b'{"chat_template": "x", "total_slots": 1, "default_generation_settings": {"n_ctx": 8192}}', 8192),
        (b'{"value": 8192}', 8192),
        (b'{"value": "8192"}', 0),
        (b'{"value": 8192, "data": []}', 0),
    ],
)
def test_koboldcpp_reports_its_window(body: bytes, window: int) -> None:
    """Lesson 30: it silently drops the start of a longer prompt and answers."""
    assert read_model_limits(body) == ({ANY_MODEL: ModelLimits(window)} if window else {})


def test_a_listing_shows_whether_the_server_runs_the_models() -> None:
    """LiteLLM reports `openai` as the owner of every model; servers that run models report themselves.

    Others say nothing.
    """
    owned = {"a": "library", "b": "vllm", "c": "llamacpp", "d": "organization_owner", "e": "openai", "f": "me", "g": 1}
    body = msgspec.json.encode({"data": [{"id": name, "owned_by": owner} for name, owner in owned.items()]})
    owners = read_model_owners(body)
    assert {name: OWNERS.get(owners.get(name, "")) for name in owned} == {
        "a": True, "b": True, "c": True, "d": True, "e": False, "f": None, "g": None
    }  # fmt: skip


def test_a_name_without_a_tag_is_the_latest() -> None:
    """The name is resolved as by Ollama itself."""
    known = {"qwen3:latest": ModelLimits(4096), "qwen3:14b": ModelLimits(8192)}
    assert find_limits(known, "qwen3") == ModelLimits(4096)
    assert find_limits(known, "qwen3:14b") == ModelLimits(8192)
    assert find_limits(known, "llama3") is None


@pytest.mark.parametrize("body", [b"", b"\xff", b"[1, null]", b'{"data": 5}', b'{"default_generation_settings": 1}'])
def test_garbage_is_ignored(body: bytes) -> None:
    """It is the server's problem, not an error of the chat."""
    assert read_model_limits(body) == {}


@pytest.mark.parametrize(
    ("wanted", "answered", "other"),
    [
        ("smart", "qwen3-8b", "qwen3-8b"),
        ("local", "/models/Qwen3-8B-Q4.gguf", "Qwen3-8B-Q4.gguf"),
        ("local", "C:\\models\\Qwen3.gguf", "Qwen3.gguf"),
        ("gpt-4o", "gpt-4o-mini", "gpt-4o-mini"),
        ("gpt-4o", "gpt-4o-2024-08-06", ""),
        ("gpt-4", "gpt-4-0613", ""),
        ("claude-3-5-sonnet-latest", "claude-3-5-sonnet-20241022", ""),
        ("qwen3", "qwen3:latest", ""),
        ("qwen3:8b", "qwen3:30b", "qwen3:30b"),
        ("qwen3-8b", "qwen/Qwen3-8B", ""),
        ("qwen3", "/models/qwen3.gguf", ""),
        ("smart", "", ""),
        ("", "qwen3", ""),
        ("smart", "x" * 1000, "x" * 200),
    ],
)
def test_another_model_is_distinguished_from_another_name(wanted: str, answered: str, other: str) -> None:
    """A version, a vendor or a path does not make it another model."""
    assert other_model(wanted, answered) == other
