"""Token counting of local servers: llama.cpp (`tools/server`), vLLM (`entrypoints/serve/tokenize`)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from tests.providers.chat.rules import count_tokens
from tests.providers.loopback.answers import Answer, failure, json_answer

LLAMA_CPP, VLLM = "/v1/chat/completions/input_tokens", "/tokenize"
_VLLM_KEYS = {"model", "messages", "tools", "chat_template_kwargs", "add_generation_prompt"}


def counted(path: str, body: Mapping[str, Any], window: int) -> Answer:
    """Return the server's answer at this path; both refuse to continue a reply, as they do for thinking models.

    vLLM accepts any key and logs a warning about unknown ones; here they are refused.
    """
    if body["messages"][-1]["role"] == "assistant":
        return failure(400, "Assistant response prefill is incompatible with enable_thinking.")
    tokens = count_tokens(body)
    if path == LLAMA_CPP:
        return json_answer({"object": "response.input_tokens", "input_tokens": tokens})
    if set(body) - _VLLM_KEYS:
        return failure(400, f"fields were present in the request but ignored: {set(body) - _VLLM_KEYS}")
    return json_answer({"count": tokens, "max_model_len": window, "tokens": [7] * tokens, "token_strs": None})
