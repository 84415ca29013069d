"""Reads an error body in any provider's format: its code, message and figures.

OpenAI's `{"error": {"message", "code", "type"}}` is the most common format. Others are a bare string, a list (Gemini),
an error that is a string (TGI, Ollama, LM Studio), `errors: […]` (Cloudflare, watsonx), `error_msg` and `error_code`
(Baidu), `detail` (FastAPI servers), `base_resp` (MiniMax), `Response.Error` (Tencent), and OpenRouter's `metadata.raw`,
the only part that contains the reason.
"""

from __future__ import annotations

import contextlib
import json
from collections.abc import Mapping

import msgspec

from codecompanion.formats.bounded import has_too_many_values
from codecompanion.formats.byte_limits import FEW_JSON_VALUES
from codecompanion.formats.cutting import cut
from codecompanion.formats.outside_text import NOT_READABLE

_MAX_SENTENCE_LENGTH = 4_000
_MAX_QUOTE_LENGTH = 300
_DEEPEST = 4
_INNER = ("error", "Error", "Response", "base_resp")
_TEXTS = ("message", "Message", "msg", "error_msg", "status_msg", "error_message", "detail", "title")
# MiniMax's error numbers → the equivalent codes of other providers
# (https://platform.minimax.io/docs/api-reference/errorcode).
_BASE_RESP = {
    "1002": "rate_limit_exceeded",
    "1004": "invalid_api_key",
    "2049": "invalid_api_key",
    "1008": "insufficient_balance",
    "1026": "content_filter",
    "1027": "content_filter",
    "1039": "context_length_exceeded",
    **dict.fromkeys(("1000", "1013", "1024", "1033"), "server_error"),
}
_CODES = ("code", "Code", "error_code", "status_code")


class ErrorBody(msgspec.Struct, frozen=True):
    """An error as the provider sent it; any part may be empty. `body` is the decoded JSON, or text."""

    code: str = ""
    sentence: str = ""
    body: object = None

    @property
    def figures(self) -> tuple[int, int]:
        """Return (prompt tokens, limit in tokens) of a request that is too long, with 0 for missing figures.

        Searches the message for some fifty patterns, so call it only if the error is an overflow.
        """
        from codecompanion.adapters.errors.overflow_figures import read_overflow  # not needed at startup

        return read_overflow(self.sentence, self.body)

    @property
    def quote(self) -> str:
        """Return the message, shortened for display."""
        return quote(self.sentence)


def read_error(body: object) -> ErrorBody:
    """Return the error in a body (decoded JSON, or text)."""
    code, sentence = _read(body, 0)
    line = " ".join(sentence[:_MAX_SENTENCE_LENGTH].split())
    return ErrorBody(code, line, body)


def decode_body(payload: bytes, max_values: int = FEW_JSON_VALUES) -> object:
    """Return the JSON of a body, or its text if it is not JSON or has too many values."""
    if has_too_many_values(payload, max_values):
        return payload.decode("utf-8", "replace")
    for decode in (msgspec.json.decode, json.loads):  # `json` accepts NaN, which some servers write
        with contextlib.suppress(*NOT_READABLE):
            return decode(payload)
    return payload.decode("utf-8", "replace")


def quote(text: str) -> str:
    """Return the text as one line of limited length."""
    return cut(" ".join(text[: 20 * _MAX_QUOTE_LENGTH].split()), _MAX_QUOTE_LENGTH)


def _read(body: object, depth: int) -> tuple[str, str]:
    if isinstance(body, list) and body:
        body = body[0]
    if isinstance(body, str):
        text = body.strip()
        return "", "" if text.startswith("<") and not text.startswith("<4") else text
    if not isinstance(body, Mapping) or depth > _DEEPEST:
        return "", ""
    outer = _own(body)
    inner = next((body[name] for name in (*_INNER, "errors") if body.get(name)), None)
    if inner is None:
        return outer
    code, sentence = _read(inner, depth + 1)
    if inner is body.get("base_resp"):
        code = _BASE_RESP.get(code, code)
    return code or outer[0], sentence or outer[1]


def _own(error: Mapping[str, object]) -> tuple[str, str]:
    """Return (code, message) from an error object's own fields."""
    details = error.get("details")
    # Anthropic: the type is a broad category; the details may name the cause.
    cause = details.get("error_code") if isinstance(details, Mapping) else None
    named = next((error[name] for name in _CODES if _is_code(error.get(name))), None)
    code = named or cause or error.get("type") or ""
    message = next((error[name] for name in _TEXTS if error.get(name)), "")
    text = message if isinstance(message, str) else msgspec.json.encode(message).decode()
    metadata = error.get("metadata")
    if isinstance(metadata, Mapping) and isinstance(metadata.get("raw"), str):
        text = f"{text}: {metadata['raw']}"
    return str(code), text


def _is_code(value: object) -> bool:
    return bool(value) and isinstance(value, str | int) and not isinstance(value, bool)
