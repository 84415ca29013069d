"""Facts that servers report, read from the shapes of their answers.

Recorded from sources and documentation: llama.cpp's `tools/server/server-context.cpp` and `server-models.cpp` (b11434),
Ollama's `api/types.go` and `types/model/capability.go`, LM Studio's page on its REST API v0, vLLM's `ModelCard`.
"""

from __future__ import annotations

import json
from typing import Any

import pytest

from codecompanion.adapters.model_list import ANY_MODEL
from codecompanion.adapters.server_facts import (
    NO_FACTS,
    ServerFacts,
    filled,
    find_facts,
    read_capabilities,
    read_listed,
    read_props,
)

CAPS = {
    "supports_string_content": True,
    "supports_tools": True,
    "supports_tool_calls": True,
    "supports_parallel_tool_calls": False,
    "supports_system_role": True,
}
LLAMA_CPP = {
    "default_generation_settings": {"params": {}, "n_ctx": 4096},
    "total_slots": 4,
    "model_alias": "",
    "model_path": "/models/SmolLM2-135M.gguf",
    "modalities": {"vision": False, "video": False, "audio": False},
    "chat_template": "{% for m in messages %}…",
    "chat_template_caps": CAPS,
    "build_info": "b11434-abc",
    "is_sleeping": False,
}
ROUTER = {
    "role": "router",
    "model_alias": "llama-server",
    "model_path": "none",
    "default_generation_settings": {"params": {}, "n_ctx": 0},
    "build_info": "b11434-abc",
}


def encoded(value: Any) -> bytes:
    return json.dumps(value).encode()


def props(**changes: Any) -> ServerFacts:
    """Return the facts read from llama.cpp's answer after these changes to it."""
    found = read_props(encoded({**LLAMA_CPP, **changes}))
    assert found is not None
    return found


def test_llama_cpp_reports_window_slots_template_and_version() -> None:
    """The window is that of one slot."""
    assert props() == ServerFacts(
        window=4096,
        slots=4,
        tools=True,
        images=False,
        model="SmolLM2-135M.gguf",
        version="b11434-abc",
    )
    assert props(is_sleeping=True, model_alias="smol").state == "sleeping"
    assert props(model_alias="smol").model == "smol"
    assert props(model_alias=LLAMA_CPP["model_path"]).model == "SmolLM2-135M.gguf"


@pytest.mark.parametrize(
    ("caps", "tools"),
    [
        ({"supports_tools": False, "supports_tool_calls": False}, False),
        ({"supports_tools": False}, False),
        ({"supports_tools": False, "supports_tool_calls": True}, None),
        ({}, None),
        ({"supports_tools": "no"}, None),
        ([], None),
    ],
)
def test_a_template_without_tools_is_distinguished_from_an_unknown_one(caps: Any, tools: bool | None) -> None:
    """If a template supports only tool calls, the model may still receive the tool descriptions in another way."""
    assert props(chat_template_caps=caps).tools is tools


@pytest.mark.parametrize("body", [b"", b"[]", b"null", b'{"data": []}', b"[" * 100_000, b'{"value": 8192}', b"\xff"])
def test_an_invalid_description_yields_no_facts(body: bytes) -> None:
    """The description comes from a server and may be anything."""
    assert read_props(body) is None
    assert read_capabilities(body) is None


def test_a_router_has_no_window_itself() -> None:
    """Only its models have windows."""
    found = read_props(encoded(ROUTER))
    assert found is not None
    assert found.is_router
    assert (found.window, found.model) == (0, "")


def test_a_router_lists_its_models_with_state_and_window() -> None:
    """A loaded model has its configured window; for others only the name and images are known."""
    inputs = {"input_modalities": ["text", "image"], "output_modalities": ["text"]}
    told = read_listed(
        encoded(
            {
                "data": [
                    {"id": "a", "status": {"value": "loaded"}, "architecture": inputs, "meta": {"n_ctx": 8192}},
                    {"id": "b", "status": {"value": "unloaded"}, "architecture": {"input_modalities": ["text"]}},
                    {"id": "c", "status": {"value": "loading", "args": ["llama-server"]}},
                ]
            }
        )
    )
    assert told == {
        "a": ServerFacts(window=8192, images=True),
        "b": ServerFacts(images=False, state="unloaded"),
        "c": ServerFacts(state="loading"),
    }


def test_ollama_reports_the_window_of_loaded_models_and_abilities() -> None:
    """The window is `context_length` of `/api/ps`, the abilities are `capabilities` of `/api/show`.

    Its training window is ignored.
    """
    running = {"name": "qwen3:latest", "model": "qwen3:latest", "size_vram": 5, "context_length": 4096}
    told = read_listed(encoded({"models": [running]}))
    assert find_facts(told, "qwen3").window == 4096
    shown = {"model_info": {"qwen3.context_length": 40960}, "capabilities": ["completion", "tools", "insert"]}
    assert read_capabilities(encoded(shown)) == ServerFacts(tools=True, images=False, fills_in=True, embeds=False)
    assert read_capabilities(encoded({"capabilities": ["completion"]})) == ServerFacts(
        tools=False, images=False, fills_in=False, embeds=False
    )
    assert read_capabilities(encoded({"template": "…"})) is None


def test_lm_studio_reports_state_kind_and_the_window_of_loaded_models() -> None:
    """A model without `tool_use` gets tools in LM Studio's own format."""
    told = read_listed(
        encoded(
            {
                "object": "list",
                "data": [
                    {"id": "a", "type": "vlm", "state": "loaded", "loaded_context_length": 4096,
                     "max_context_length": 32768, "capabilities": ["tool_use"]},
                    {"id": "b", "type": "llm", "state": "not-loaded", "max_context_length": 32768},
                    {"id": "c", "type": "embeddings", "state": "not-loaded", "max_context_length": 2048},
                ],
            }
        )
    )  # fmt: skip
    assert told == {
        "a": ServerFacts(window=4096, tools=True, images=True),
        "b": ServerFacts(state="unloaded"),
        "c": ServerFacts(embeds=True, state="unloaded"),
    }


def test_vllm_and_koboldcpp_report_a_window() -> None:
    """vLLM reports the window of each model.

    Koboldcpp reports that of the loaded model, even in versions without `/props`.
    """
    card = {"id": "Qwen/Qwen3-8B", "object": "model", "owned_by": "vllm", "max_model_len": 32768}
    assert find_facts(read_listed(encoded({"object": "list", "data": [card]})), "Qwen/Qwen3-8B").window == 32768
    assert read_listed(encoded({"value": 8192})) == {ANY_MODEL: ServerFacts(window=8192)}
    assert find_facts({}, "m") is NO_FACTS


def test_newer_facts_replace_older_ones_and_the_rest_stays() -> None:
    """A reported "no" replaces an older "yes"; a state is never taken from older facts."""
    older = ServerFacts(window=4096, tools=True, images=True, state="sleeping", model="a")
    assert filled(ServerFacts(tools=False, slots=2), older) == ServerFacts(
        window=4096, slots=2, tools=False, images=True, model="a"
    )
