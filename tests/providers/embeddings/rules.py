"""The refusals of embedding endpoints, in their own wording.

OpenAI: the API reference (no empty text, 2048 texts, 8192 tokens each, 300,000 in all, unknown parameters, `dimensions`
only of the third models). Ollama: `the input length exceeds the context length` (github.com/ollama/ollama/issues/14186,
since 0.13.5), an unknown model must be pulled first. llama.cpp: 500 for a text beyond the physical batch
(github.com/ggml-org/llama.cpp/issues/12295; tools/server), 501 without `--embeddings`, an empty text. vLLM: its
`maximum context length` sentence. TEI: 422 for too many texts (`--max-client-batch-size` 32) and 413 for a long one.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Literal

from tests.providers.loopback.answers import Answer, failure, json_answer
from tests.providers.loopback.token_count import count
from tests.providers.openai.refusal import Refused, check_schema, refuse

Flavour = Literal["openai", "ollama", "llama.cpp", "vllm", "tei"]


@dataclass(frozen=True)
class Limits:
    """A server's start options; sizes are in tokens."""

    model: str
    text_tokens: int
    request_tokens: int
    texts: int
    width: int


def refusal_of(flavour: Flavour, body: Mapping[str, Any], limits: Limits) -> Answer | None:
    """Return the refusal of a request, or None if the server accepts it."""
    value = body.get("input")
    texts = [value] if isinstance(value, str) else value
    if flavour != "openai" and not (isinstance(texts, list) and all(isinstance(text, str) for text in texts)):
        return failure(400, "input must be a string or a list of strings")
    rules: dict[Flavour, Callable[[Mapping[str, Any], list[str], Limits], Answer | None]] = {
        "openai": _openai,
        "ollama": _ollama,
        "llama.cpp": _llama_cpp,
        "vllm": _vllm,
        "tei": _tei,
    }
    return rules[flavour](body, texts or [], limits)


def _openai(body: Mapping[str, Any], texts: list[str], limits: Limits) -> Answer | None:
    try:
        check_schema("openai.embeddings", body)
        if body["model"] != limits.model:
            refuse(
                f"The model `{body['model']}` does not exist or you do not have access to it.",
                None,
                "model_not_found",
                404,
            )
        if not texts or not all(texts):
            refuse(
                "'$.input' is invalid. Please check the API reference: https://platform.openai.com/docs/api-reference."
            )
        if len(texts) > limits.texts:
            expected = (
                f"Expected an array with maximum length {limits.texts}, but got an array with length {len(texts)}"
            )
            refuse(f"Invalid 'input': array too long. {expected} instead.", "input", "array_above_max_length")
        if "dimensions" in body and not limits.model.startswith("text-embedding-3"):
            refuse("This model does not support specifying dimensions.")
        tokens = [count(text) for text in texts]
        if max(tokens) > limits.text_tokens:
            figures = (
                f"{limits.text_tokens} tokens, however you requested {max(tokens)} tokens ({max(tokens)} in your prompt"
            )
            refuse(
                f"This model's maximum context length is {figures}; 0 for the completion). Please reduce your prompt."
            )
        if sum(tokens) > limits.request_tokens:
            figures = f"Requested {sum(tokens)} tokens, max {limits.request_tokens} tokens per request"
            refuse(figures, None, "max_tokens_per_request")
    except Refused as refused:
        return json_answer(refused.refusal.body(), status=refused.refusal.status)
    return None


def _ollama(body: Mapping[str, Any], texts: list[str], limits: Limits) -> Answer | None:
    if body.get("model") != limits.model:
        return failure(404, f'model "{body.get("model")}" not found, try pulling it first', type="api_error")
    if not texts:
        return failure(400, "invalid input", type="api_error")
    if any(count(text) > limits.text_tokens for text in texts):
        return failure(400, "the input length exceeds the context length", type="api_error")
    return None


def _llama_cpp(body: Mapping[str, Any], texts: list[str], limits: Limits) -> Answer | None:
    if not limits.width:
        said = "This server does not support embeddings. Start it with `--embeddings`"
        return json_answer({"error": {"code": 501, "message": said, "type": "not_supported_error"}}, status=501)
    if body.get("encoding_format", "float") not in ("float", "base64"):
        said = "The format to return the embeddings in. Can be either float or base64"
        return json_answer({"error": {"code": 400, "message": said, "type": "invalid_request_error"}}, status=400)
    if not texts or not all(texts):
        said = "Input content cannot be empty"
        return json_answer({"error": {"code": 400, "message": said, "type": "invalid_request_error"}}, status=400)
    longest = max(map(count, texts))
    if longest > limits.text_tokens:
        said = f"input ({longest} tokens) is too large to process. increase the physical batch size"
        said += f" (current batch size: {limits.text_tokens})"
        return json_answer({"error": {"code": 500, "message": said, "type": "server_error"}}, status=500)
    return None


def _vllm(body: Mapping[str, Any], texts: list[str], limits: Limits) -> Answer | None:
    if body.get("model") != limits.model:
        return failure(404, f"The model `{body.get('model')}` does not exist.", type="NotFoundError")
    if not texts:
        return failure(400, "input must not be empty", type="BadRequestError")
    for text in texts:
        if (tokens := count(text)) > limits.text_tokens:
            said = f"This model's maximum context length is {limits.text_tokens} tokens. However, you requested"
            said += f" {tokens} tokens in the input for embedding generation. Please reduce the length of the input."
            return failure(400, said, type="BadRequestError")
    return None


def _tei(body: Mapping[str, Any], texts: list[str], limits: Limits) -> Answer | None:
    if not texts or not all(texts):
        return json_answer({"error": "`inputs` cannot be empty", "error_type": "Validation"}, status=422)
    if len(texts) > limits.texts:
        said = f"batch size {len(texts)} > maximum allowed batch size {limits.texts}"
        return json_answer({"error": said, "error_type": "Validation"}, status=422)
    longest = max(map(count, texts))
    if longest > limits.text_tokens:
        said = f"Input validation error: `inputs` must have less than {limits.text_tokens} tokens. Given: {longest}"
        return json_answer({"error": said, "error_type": "Validation"}, status=413)
    return None
