"""Reads the facts that a local server reports about a model: context window, slots, tools, images.

Sources: llama.cpp's `GET /props` (`tools/server/README.md`; a router answers for one model with `?model=`), its list of
models (`status`, `architecture`), Ollama's `GET /api/ps` (`context_length` of loaded models) and `POST /api/show`
(`capabilities`), LM Studio's `GET /api/v0/models` (`state`, `type`, `loaded_context_length`), vLLM's `GET /v1/models`
(`max_model_len`). Pure; `http/server_reader.py` sends the requests.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any, Literal

import msgspec

from codecompanion.adapters.model_list import (
    ANY_MODEL,
    count_in,
    decode_answer,
    entries_of,
    find_named,
    read_model_limits,
    table_in,
    window_of,
)
from codecompanion.formats.regex import regex

ServerState = Literal["", "loading", "sleeping", "unloaded"]
_STATES: dict[str, ServerState] = {
    "loading": "loading",
    "downloading": "loading",
    "sleeping": "sleeping",
    "unloaded": "unloaded",
    "not-loaded": "unloaded",
}
RUNNING_PATH = "/api/ps"
"""Path at which Ollama lists the loaded models."""
_KEEP_ALIVE_S = 300.0
MAX_TEXT = 200
"""Maximum stored length of a version or model name, in characters."""


# Sources: llama.cpp (`server-common.cpp`), vLLM (`serving_chat.py`), Ollama (`server/images.go`).
_TOOL_REFUSALS = (
    (regex(r"tools param requires --jinja"), "the server was started without --jinja"),
    (regex(r"requires --enable-auto-tool-choice"), "the server was started without --enable-auto-tool-choice"),
    (regex(r"does not support tools"), "the model does not support them"),
)


class ServerFacts(msgspec.Struct, frozen=True, kw_only=True):
    """The facts that a server reports about one of its models. 0, "" and None mean that a fact was not reported.

    `window`: the context window of one request, in tokens; `slots`: the number of requests that the server processes at
    once. `tools`: whether the chat template shows tools to the model; `refuses_tools`: why a request with tools was
    refused, in a few words. `fills_in`: whether the model completes code between a prefix and a suffix. `model`: the
    running model of a server that uses it regardless of the requested name. `is_router`: the server starts other
    servers, one for each model.
    """

    window: int = 0
    slots: int = 0
    tools: bool | None = None
    images: bool | None = None
    fills_in: bool | None = None
    embeds: bool | None = None
    state: ServerState = ""
    model: str = ""
    version: str = ""
    is_router: bool = False
    refuses_tools: str = ""


NO_FACTS = ServerFacts()
Told = Mapping[str, ServerFacts]
"""Facts by model; `ANY_MODEL` is the key for a server that runs one model regardless of the requested name."""


def read_props(body: bytes) -> ServerFacts | None:
    """Return the facts in a response of `GET /props`, or None if the body is something else."""
    answer = decode_answer(body)
    if not isinstance(answer, Mapping) or "default_generation_settings" not in answer:
        return None
    # A template without a system role or parallel calls needs no change by us: llama.cpp merges the system text into
    # the next message, and ignores `parallel_tool_calls` (`common/chat.cpp`).
    caps, modalities = table_in(answer, "chat_template_caps"), table_in(answer, "modalities")
    tools, calls = _flag(caps, "supports_tools"), _flag(caps, "supports_tool_calls")
    is_router = answer.get("role") == "router"
    return ServerFacts(
        window=count_in(table_in(answer, "default_generation_settings"), "n_ctx"),
        slots=count_in(answer, "total_slots"),
        # A template with calls but without tool descriptions: how the server shows tools is unknown.
        tools=None if tools is False and calls else tools,
        images=_flag(modalities, "vision"),
        state="sleeping" if answer.get("is_sleeping") is True else "",
        model="" if is_router else _model_name(_text(answer, "model_alias"), _text(answer, "model_path")),
        version=_text(answer, "build_info"),
        is_router=is_router,
    )


def read_listed(body: bytes) -> Told:
    """Return the facts in a list of models; a window without a model name (koboldcpp) is under `ANY_MODEL`."""
    answer = decode_answer(body)
    told = {name: _listed(entry) for name, entry in entries_of(answer)}
    for name, limits in read_model_limits(body).items():
        if name == ANY_MODEL:
            told[name] = ServerFacts(window=limits.context_window)
    return told


def read_capabilities(body: bytes) -> ServerFacts | None:
    """Return the facts in Ollama's reply to `POST /api/show`, or None if it lists no capabilities (older versions)."""
    answer = decode_answer(body)
    listed = answer.get("capabilities") if isinstance(answer, Mapping) else None
    if not isinstance(listed, list) or not listed:
        return None
    return ServerFacts(
        tools="tools" in listed,
        images="vision" in listed,
        fills_in="insert" in listed,
        embeds="embedding" in listed,
    )


def own_cache_lifetime_s(limits_path: str) -> float:
    """Return the seconds for which a local server caches a prompt prefix, unless another prompt replaces it.

    Ollama unloads a model and its cache after five minutes without use (`OLLAMA_KEEP_ALIVE`).
    """
    return _KEEP_ALIVE_S if limits_path.endswith(RUNNING_PATH) else math.inf


def tool_refusal(said: str) -> str:
    """Return why a server refused a request's tools, in a few words, or "" if it refused for another reason."""
    return next((why for pattern, why in _TOOL_REFUSALS if pattern.search(said)), "")


def find_facts(told: Told, model: str) -> ServerFacts:
    """Return the facts about a model; the tag `latest` may be missing from Ollama's names."""
    return find_named(told, model) or NO_FACTS


def filled(newer: ServerFacts, older: ServerFacts) -> ServerFacts:
    """Return the newer facts, with older values where the newer report has none."""
    told = {
        name: value
        for name in ServerFacts.__struct_fields__
        if (value := getattr(newer, name)) != getattr(NO_FACTS, name)
    }
    return msgspec.structs.replace(older, **{**told, "state": newer.state})


def _listed(entry: Mapping[str, Any]) -> ServerFacts:
    status = table_in(entry, "status").get("value", entry.get("state"))
    inputs, kind = table_in(entry, "architecture").get("input_modalities"), entry.get("type")
    images = "image" in inputs if isinstance(inputs, list) else True if kind == "vlm" else None
    capabilities = entry.get("capabilities")
    # LM Studio lists which models were trained for tools; for other models it uses its own format.
    tools = True if isinstance(capabilities, list) and "tool_use" in capabilities else None
    state = _STATES.get(status, "") if isinstance(status, str) else ""
    embeds = True if kind in ("embeddings", "embedding") else None
    return ServerFacts(window=window_of(entry), tools=tools, images=images, embeds=embeds, state=state)


def _flag(table: Mapping[str, Any], name: str) -> bool | None:
    value = table.get(name)
    return value if isinstance(value, bool) else None


def _text(table: Mapping[str, Any], name: str) -> str:
    value = table.get(name)
    return value[:MAX_TEXT] if isinstance(value, str) else ""


def _model_name(alias: str, path: str) -> str:
    """Return the alias of a model; without an alias, llama.cpp shows its path, which is shortened to the file name."""
    return alias if alias and alias != path else path.replace("\\", "/").rpartition("/")[2]
