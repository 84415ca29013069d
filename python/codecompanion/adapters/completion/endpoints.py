"""Renders the completion request of each endpoint, and reads the code in its answer. The table is `endpoints.toml`."""

from __future__ import annotations

from functools import cache
from typing import Any
from urllib.parse import urlsplit, urlunsplit

import msgspec

from codecompanion.errors import ConfigError
from codecompanion.formats import typed
from codecompanion.formats.package_table import package_table

MAX_NAME = 200
"""Maximum stored length of a model's name, in characters."""
_NAMELESS = "gpt-3.5-turbo"
"""The model name that older versions of llama.cpp report for any model."""


class CodeRequest(msgspec.Struct, frozen=True, kw_only=True):
    """A request for an endpoint. If `has_tokens`, `prompt` contains infill tokens and `suffix` is empty.

    `extra`: (path, text) of other project files, for an endpoint that accepts them separately.
    """

    model: str
    prompt: str
    suffix: str = ""
    has_tokens: bool = False
    extra: tuple[tuple[str, str], ...] = ()
    stop: tuple[str, ...] = ()
    max_tokens: int
    temperature: float


class CodeReply(msgspec.Struct, frozen=True):
    """The code in a reply. `is_cut`: the token limit truncated it. `model`: the model that the reply names."""

    text: str
    is_cut: bool = False
    model: str = ""


class CompletionEndpoint(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """An endpoint, as described in `endpoints.toml`."""

    name: str
    url: str
    path: str
    key: str = ""
    adapter: str = ""
    reads_tokens: bool = False
    fields: dict[str, str]
    body: dict[str, Any]
    token_body: dict[str, Any] = {}
    reply: str
    finish: str
    max_stops: int

    @property
    def takes_suffix(self) -> bool:
        """Return whether the endpoint receives the text after the cursor separately from the prompt."""
        return "suffix" in self.fields

    @property
    def takes_extra(self) -> bool:
        """Return whether the endpoint receives other files separately from the prompt."""
        return "extra" in self.fields


def endpoint_named(name: str) -> CompletionEndpoint:
    """Return an endpoint.

    Raises:
        ConfigError: the name is unknown.
    """
    found = _endpoints().get(name)
    if found is None:
        raise ConfigError("completion.endpoint", f"there is no endpoint {name!r}", ", ".join((*_endpoints(), "chat")))
    return found


def render(endpoint: CompletionEndpoint, request: CodeRequest) -> bytes:
    """Return the body of the request."""
    values: dict[str, Any] = {
        "model": request.model,
        "prompt": request.prompt,
        "max_tokens": request.max_tokens,
        "temperature": request.temperature,
        "stop": request.stop[: endpoint.max_stops],
    }
    if not request.has_tokens:
        values["suffix"] = request.suffix
    values["extra"] = [{"filename": path, "text": text} for path, text in request.extra]
    body: dict[str, Any] = {**endpoint.body, **(endpoint.token_body if request.has_tokens else {})}
    for name, value in values.items():
        if name in endpoint.fields:
            _put(body, endpoint.fields[name], value)
    return msgspec.json.encode(body)


def read_reply(endpoint: CompletionEndpoint, body: object) -> CodeReply | None:
    """Return the code in a response (decoded JSON), or None if it is malformed."""
    text, finish = _find(body, endpoint.reply), _find(body, endpoint.finish)
    if isinstance(text, list):  # Mistral's content can be a list of parts
        pieces: list[Any] = [
            piece.get("text") for piece in text if isinstance(piece, dict) and piece.get("type") == "text"
        ]
        text = "".join(pieces) if all(isinstance(piece, str) for piece in pieces) else None
    if text is None and finish is not None and _holds(body, endpoint.reply):
        text = ""  # a reply that ended before its first token
    if not isinstance(text, str):
        return None
    model = _find(body, "model")
    named = model[:MAX_NAME] if isinstance(model, str) and model.isprintable() and model != _NAMELESS else ""
    return CodeReply(text, finish in ("length", "limit", "model_length"), named)


def without_path(url: str, path: str) -> str:
    """Return the URL without an ending that `path` repeats, such as `/v1` before `/v1/completions`."""
    address = urlsplit(url)
    parts, base = path.strip("/").split("/"), address.path.rstrip("/")
    for count in range(len(parts), 0, -1):
        known = "/" + "/".join(parts[:count])
        if base.endswith(known):
            return urlunsplit(address._replace(path=base.removesuffix(known)))
    return url


def _put(body: dict[str, Any], field: str, value: Any) -> None:
    *tables, last = field.split(".")
    for name in tables:
        body = body.setdefault(name, {})
    body[last] = value


def _find(body: object, field: str) -> object:
    for name in field.split("."):
        if isinstance(body, dict):
            body = body.get(name)
        elif isinstance(body, list) and name.isdecimal() and int(name) < len(body):
            body = body[int(name)]
        else:
            return None
    return body


def _holds(body: object, field: str) -> bool:
    """Return whether the field exists, whatever its value."""
    table, _, last = field.rpartition(".")
    found = _find(body, table) if table else body
    return isinstance(found, dict) and last in found


@cache
def _endpoints() -> dict[str, CompletionEndpoint]:
    table = package_table("adapters/completion/endpoints.toml")
    return {name: typed.convert({**entry, "name": name}, CompletionEndpoint) for name, entry in table.items()}
