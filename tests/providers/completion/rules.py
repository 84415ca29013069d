"""The refusals of code completion endpoints, in their own wording and format.

llama.cpp: tools/server/README.md and its `/infill` handler; Ollama: docs/api.md and the errors of `/api/generate`; vLLM
refuses `suffix`; Mistral and DeepSeek: their API references.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from tests.providers.loopback.answers import Answer, json_answer

_NUMBER = (int, float)
_MISTRAL_FIELDS: Mapping[str, Any] = {
    "model": str, "prompt": str, "suffix": str, "temperature": _NUMBER, "top_p": _NUMBER, "max_tokens": int,
    "min_tokens": int, "stream": bool, "random_seed": int, "stop": (str, list), "metadata": dict,
}  # fmt: skip
_DEEPSEEK_FIELDS: Mapping[str, Any] = {
    "model": str, "prompt": str, "echo": bool, "frequency_penalty": _NUMBER, "logprobs": int, "max_tokens": int,
    "presence_penalty": _NUMBER, "stop": (str, list), "stream": bool, "stream_options": dict, "suffix": str,
    "temperature": _NUMBER, "top_p": _NUMBER,
}  # fmt: skip
_OLLAMA_FIELDS = {
    "model", "prompt", "suffix", "images", "format", "system", "stream", "think", "raw", "keep_alive", "options",
    "template", "context",
}  # fmt: skip
_OLLAMA_OPTIONS = {"seed", "temperature", "top_k", "top_p", "min_p", "stop", "num_ctx", "num_predict"}


def refuse_llamacpp(body: Mapping[str, Any], *, fills_in: bool, window: int = 0) -> Answer | None:
    """Return llama.cpp's refusal of an `/infill` body; `window` is in tokens of three characters, 0 for unlimited."""
    if not fills_in:
        return _llamacpp(501, "Infill is not supported by this model: prefix token is missing. ", "not_supported_error")
    for name in ("input_prefix", "input_suffix"):
        if name not in body:
            return _llamacpp(400, f'"{name}" is required', "invalid_request_error")
    if "input_extra" in body and not isinstance(body["input_extra"], list):
        return _llamacpp(400, '"input_extra" must be an array of {"filename": string, "text": string}')
    for chunk in body.get("input_extra", []):
        if not isinstance(chunk.get("text"), str):
            return _llamacpp(400, 'extra_context chunk must contain a "text" field with a string value')
        if not isinstance(chunk.get("filename", ""), str):
            return _llamacpp(400, 'extra_context chunk must contain a "filename" field with a string value')
    texts = (body["input_prefix"], body["input_suffix"], *(chunk["text"] for chunk in body.get("input_extra", [])))
    tokens = sum(map(len, texts)) // 3
    if window and tokens + 10 >= window:
        error = {
            "code": 400, "type": "exceed_context_size_error", "n_prompt_tokens": tokens, "n_ctx": window,
            "message": f"the request of {tokens} tokens exceeds the available context size of {window}",
        }  # fmt: skip
        return json_answer({"error": error}, status=400)
    return None


def _llamacpp(status: int, message: str, kind: str = "invalid_request_error") -> Answer:
    return json_answer({"error": {"code": status, "message": message, "type": kind}}, status=status)


def refuse_completions(body: Mapping[str, Any], models: tuple[str, ...]) -> Answer | None:
    """Return vLLM's refusal of a `/v1/completions` body."""
    if body.get("suffix") is not None:
        return _openai(400, "suffix is not currently supported", "BadRequestError")
    if not isinstance(body.get("prompt"), str):
        return _openai(400, "Either prompt or prompt_embeds must be provided and non-empty.", "BadRequestError")
    if not isinstance(body.get("stop", []), list) or len(body.get("stop", [])) > 4:
        return _openai(400, "stop: List should have at most 4 items", "BadRequestError")
    if body.get("model") not in models:
        return _openai(404, f"The model `{body.get('model')}` does not exist.", "NotFoundError")
    return None


def _openai(status: int, message: str, kind: str) -> Answer:
    return json_answer({"error": {"message": message, "type": kind, "param": None, "code": status}}, status=status)


def refuse_ollama(body: Mapping[str, Any], models: tuple[str, ...], *, fills_in: bool) -> Answer | None:
    """Return Ollama's refusal of an `/api/generate` body. Ollama ignores unknown fields; here they are an error."""
    assert set(body) <= _OLLAMA_FIELDS, set(body) - _OLLAMA_FIELDS
    assert set(body.get("options", {})) <= _OLLAMA_OPTIONS
    if body.get("model") not in models:
        return json_answer({"error": f"model '{body.get('model')}' not found"}, status=404)
    if body.get("raw") and (body.get("template") or body.get("system") or body.get("context")):
        return json_answer({"error": "raw mode does not support template, system, or context"}, status=400)
    if body.get("suffix") and not fills_in:
        name = f"registry.ollama.ai/library/{body['model']}"
        return json_answer({"error": f"{name} does not support insert"}, status=400)
    return None


def refuse_mistral(body: Mapping[str, Any], models: tuple[str, ...]) -> Answer | None:
    """Return Mistral's refusal of a `/v1/fim/completions` body, which may not have unknown fields."""
    wrong = [_detail(name, "missing", "Field required") for name in ("model", "prompt") if name not in body]
    wrong += [
        _detail(name, "extra_forbidden", "Extra inputs are not permitted") for name in set(body) - set(_MISTRAL_FIELDS)
    ]
    wrong += [
        _detail(name, "type_error", "Input should be of another type")
        for name, value in body.items()
        if name in _MISTRAL_FIELDS and not isinstance(value, _MISTRAL_FIELDS[name])
    ]
    if wrong:
        message = {
            "object": "error",
            "message": {"detail": wrong},
            "type": "invalid_request_message_error",
            "code": 422,
        }
        return json_answer(message, status=422)
    if body["model"] not in models:
        message = {
            "object": "error",
            "message": f"Invalid model: {body['model']}",
            "type": "invalid_model",
            "code": "1500",
        }
        return json_answer(message, status=400)
    return None


def _detail(name: str, kind: str, message: str) -> dict[str, Any]:
    return {"type": kind, "loc": ["body", name], "msg": message}


def refuse_deepseek(body: Mapping[str, Any], models: tuple[str, ...]) -> Answer | None:
    """Return DeepSeek's refusal of a `/beta/completions` body."""
    for name, value in body.items():
        if name not in _DEEPSEEK_FIELDS or not isinstance(value, _DEEPSEEK_FIELDS[name]):
            return _deepseek(422, f"Failed to deserialize the JSON body into the target type: {name}")
    if len(body.get("stop") or []) > 16:
        return _deepseek(400, "Invalid 'stop': array too long. Expected an array with maximum length 16")
    if body.get("max_tokens", 1) > 4_096:
        return _deepseek(400, "Invalid max_tokens value, the valid range of max_tokens is [1, 4096]")
    if body.get("model") not in models:
        return _deepseek(400, "Model Not Exist")
    return None


def _deepseek(status: int, message: str) -> Answer:
    error = {"message": message, "type": "invalid_request_error", "param": None, "code": "invalid_request_error"}
    return json_answer({"error": error}, status=status)
