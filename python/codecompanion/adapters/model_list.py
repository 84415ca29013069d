"""Reads names and context windows of models from endpoints' lists: OpenAI's shape, Ollama's, a bare list, extensions.

Only the context window available to a request matters. A local server often has two: the model's training window and
the loaded window; with the first, prompts would be truncated silently (lesson 30). This module therefore reads Ollama's
`/api/ps` (loaded), not `/api/show`; LM Studio's `loaded_context_length`; llama.cpp's `n_ctx` (per slot, in `/props`),
not `n_ctx_train`. koboldcpp silently drops the start of longer prompts; it reports its window in `/props` like
llama.cpp and, in older versions, as `{"value": 8192}` at `/api/extra/true_max_context_length`.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any, TypeVar

import msgspec

from codecompanion.counting.model_windows import ModelLimits
from codecompanion.formats.outside_text import NOT_READABLE
from codecompanion.formats.regex import regex

Found = TypeVar("Found")
ANY_MODEL = ""
"""Key for the limits of any requested model, on a server with a single model (llama.cpp)."""
_PREFIX = "models/"
"""Prefix of every name in Gemini's list."""
# OpenRouter, Together, Moonshot and Ollama; vLLM; Groq; Mistral; Novita; Anthropic.
_WINDOWS = (
    "context_length",
    "max_model_len",
    "context_window",
    "max_context_length",
    "context_size",
    "max_input_tokens",
)
_OTHER_TYPES = frozenset(
    {"embeddings", "embedding", "rerank", "reranker", "image", "audio", "moderation", "transcribe"}
)
# OpenAI's list contains only names, like many others.
_NO_CHAT = regex(
    r"(?:^|[-_/.:])(?:(?:text-)?embed(?:ding|dings|der)?|rerank(?:er)?|whisper|tts|dall-e|(?:omni|text)-moderation"
    r"|all-minilm|bge|gte|voyage)(?=$|[-_/.:\d])",
    re.IGNORECASE,
)
_OUTPUTS = ("max_completion_tokens", "max_output_tokens")
OWNERS = {"library": True, "llamacpp": True, "vllm": True, "organization_owner": True, "openai": False}
"""`owned_by` in a list of models → whether the server runs the model itself.

Ollama, llama.cpp, vLLM and LM Studio name themselves; LiteLLM, which forwards requests, writes "openai" for all models.
"""
_CLOUD_MODEL = regex(r"[:-]cloud$")
_VERSION = regex(r"[-@:](?:\d{4}-?\d{2}-?\d{2}|\d{4}|latest)$|\.gguf$")
"""Suffixes that a reply may add to or omit from the requested model's name: a date, `latest`, a file extension."""
_MAX_NAME = 200


def read_model_names(body: bytes) -> list[str]:
    """Return the names, sorted and without duplicates, or [] if the body is not a list of models.

    Models that, by their entry or name, cannot chat are omitted.
    """
    return sorted(
        {name for name, entry in entries_of(decode_answer(body)) if _chats(entry) and not _NO_CHAT.search(name)}
    )


def read_model_limits(body: bytes) -> dict[str, ModelLimits]:
    """Return the limits in a list of models or a server's report, by model."""
    answer = decode_answer(body)
    found = {name: limits for name, entry in entries_of(answer) if (limits := _limits(entry)).context_window}
    if isinstance(answer, Mapping):
        loaded = table_in(answer, "default_generation_settings")
        if window := count_in(loaded, "n_ctx") or (count_in(answer, "value") if len(answer) == 1 else 0):
            found[ANY_MODEL] = ModelLimits(window)
    return found


def read_model_owners(body: bytes) -> dict[str, str]:
    """Return the `owned_by` of each model that has it."""
    owners = {name: entry.get("owned_by") for name, entry in entries_of(decode_answer(body))}
    return {name: owner for name, owner in owners.items() if isinstance(owner, str) and owner}


def is_cloud_model(model: str) -> bool:
    """Return whether Ollama forwards requests for the model to its own service (`gpt-oss:120b-cloud`)."""
    return _CLOUD_MODEL.search(model) is not None


def other_model(wanted: str, answered: str) -> str:
    """Return the short name of the model that answered, or "" if it is the wanted model or has no known name.

    A path or vendor prefix, a date suffix and `latest` are ignored in the comparison.
    """
    short = answered.replace("\\", "/").rpartition("/")[2][:_MAX_NAME]
    return short if wanted and short and _bare(short) != _bare(wanted) else ""


def find_limits(known: Mapping[str, ModelLimits], model: str) -> ModelLimits | None:
    """Return the limits of a model; the tag `latest` may be missing from Ollama's names."""
    return find_named(known, model)


def find_named(known: Mapping[str, Found], model: str) -> Found | None:
    """Return a model's value, by its name with or without Ollama's tag `latest`, else the value for `ANY_MODEL`."""
    return known.get(model) or known.get(f"{model}:latest") or known.get(ANY_MODEL)


def decode_answer(body: bytes) -> object:
    """Return the content of a JSON body, or None if it is not readable."""
    try:
        return msgspec.json.decode(body)
    except NOT_READABLE:
        return None


def entries_of(answer: object) -> Iterator[tuple[str, Mapping[str, Any]]]:
    """Yield (name, entry) for each model in a decoded list."""
    if isinstance(answer, Mapping):
        answer = answer.get("data") or answer.get("models")
    for entry in answer if isinstance(answer, list) else []:
        if isinstance(entry, str) and entry:
            yield entry.removeprefix(_PREFIX), {}
        elif isinstance(entry, Mapping):
            name = entry.get("id") or entry.get("name") or entry.get("model") or entry.get("key")
            if isinstance(name, str) and name:
                yield name.removeprefix(_PREFIX), entry


def _bare(name: str) -> str:
    return _VERSION.sub("", name.replace("\\", "/").rpartition("/")[2][:_MAX_NAME].lower())


def _chats(entry: Mapping[str, Any]) -> bool:
    """Return whether the model can chat, judging by its capabilities (Mistral, Copilot), type, lists or outputs."""
    capabilities = table_in(entry, "capabilities")
    if entry.get("type") in _OTHER_TYPES or capabilities.get("type") in _OTHER_TYPES:
        return False
    if capabilities.get("completion_chat") is False:
        return False
    told = entry.get("capabilities"), entry.get("supportedGenerationMethods"), entry.get("endpoints")
    outputs = table_in(entry, "architecture").get("output_modalities")
    lists = [[str(word).lower() for word in words] for words in (*told, outputs) if isinstance(words, list) and words]
    return not any(all("embed" in word or "rerank" in word for word in words) for words in lists)


def _limits(entry: Mapping[str, Any]) -> ModelLimits:
    served = table_in(entry, "top_provider")
    output = next((count for name in _OUTPUTS if (count := count_in(served, name) or count_in(entry, name))), 0)
    return ModelLimits(window_of(entry), output)


def window_of(entry: Mapping[str, Any]) -> int:
    """Return the context window that a request to the model gets, in tokens, or 0 if its entry does not give it."""
    if "state" in entry or "loaded_instances" in entry:  # both of LM Studio's APIs
        return count_in(entry, "loaded_context_length") or _smallest(
            count_in(table_in(instance, "config"), "context_length") for instance in _list(entry, "loaded_instances")
        )
    own = next((count for name in _WINDOWS if (count := count_in(entry, name))), 0)
    # A router may forward the request to any of its providers, so the smallest counts.
    return _smallest(
        (
            own,
            count_in(table_in(entry, "meta"), "n_ctx"),
            count_in(table_in(entry, "top_provider"), "context_length"),
            *(count_in(provider, "context_length") for provider in _list(entry, "providers")),
        )
    )


def _smallest(counts: Any) -> int:
    return min((count for count in counts if count), default=0)


def count_in(table: Mapping[str, Any], name: str) -> int:
    """Return a positive number from a decoded response, or 0 if it is missing."""
    value = table.get(name)
    return value if isinstance(value, int) and not isinstance(value, bool) and value > 0 else 0


def table_in(table: Mapping[str, Any], name: str) -> Mapping[str, Any]:
    """Return an object from a decoded response, or {} if it is missing."""
    value = table.get(name)
    return value if isinstance(value, Mapping) else {}


def _list(table: Mapping[str, Any], name: str) -> list[Mapping[str, Any]]:
    value = table.get(name)
    return [item for item in value if isinstance(item, Mapping)] if isinstance(value, list) else []
