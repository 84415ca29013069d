"""Recognises the server at one of the user's own URLs if the entry (`openai_compatible`) does not name it.

The paths where llama.cpp, Ollama, LM Studio and vLLM report their models are tried in turn, with the key of the entry.
"""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable, Mapping

from codecompanion.adapters.model_list import decode_answer, entries_of, read_model_owners
from codecompanion.adapters.server_facts import RUNNING_PATH, read_props
from codecompanion.errors import AdapterError, MissingKey, NetworkFailed, ServerLoading

_log = logging.getLogger(__name__)


async def find_limits_path(get: Callable[[str], Awaitable[bytes]], base_url: str) -> str | None:
    """Return the path where the server reports its models, "" if there is none, or None if the server is not ready."""
    root = base_url.partition("?")[0].rstrip("/").removesuffix("/v1")
    for path, is_it in _REPORTS.items():
        try:
            body = await get(root + path)
        except (NetworkFailed, ServerLoading, MissingKey):
            return None
        except AdapterError as error:
            _log.info("%s is not available: %s", path, error)
            continue
        if is_it(body):
            return root + path
    return ""


def _lists_running(body: bytes) -> bool:
    answer = decode_answer(body)
    return isinstance(answer, Mapping) and isinstance(answer.get("models"), list)


def _lists_states(body: bytes) -> bool:
    return any(isinstance(entry.get("state"), str) for _, entry in entries_of(decode_answer(body)))


_REPORTS: dict[str, Callable[[bytes], bool]] = {
    "/props": lambda body: read_props(body) is not None,
    RUNNING_PATH: _lists_running,
    "/api/v0/models": _lists_states,
    "/v1/models": lambda body: "vllm" in read_model_owners(body).values(),
}
"""Path where llama.cpp, Ollama, LM Studio or vLLM reports its models → function that recognises the response."""
