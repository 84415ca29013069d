"""The interface of wire formats: each is a class that turns requests into bytes and replies into events.

Rendering and decoding are pure, apart from a cache of rendered messages and the endpoint's reports about its models.
The transport (`http/`), retries and errors are common to all formats.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Literal
from urllib.parse import urlsplit

import msgspec

from codecompanion.adapters.base import AdapterSettings, ChatRequest, CompactionDone
from codecompanion.adapters.errors.error_map import Endpoint
from codecompanion.adapters.reply_decoder import ReplyDecoder
from codecompanion.adapters.request_gate import RequestGate
from codecompanion.counting.model_windows import ModelLimits
from codecompanion.errors import AdapterError, MalformedReply

KEY_TEMPLATE = "${api_key}"


def origin_of(origin_name: str, base_url: str) -> str:
    """Return the `origin` of parts that only this endpoint can read: its wire format, host and port.

    Two servers on one machine are two endpoints, which do not accept each other's signatures.
    """
    return f"{origin_name}@{urlsplit(base_url).netloc.rpartition('@')[2].lower()}"


class HttpCall(msgspec.Struct, frozen=True):
    """One POST request. `path` is relative to the base URL; `headers` are sent with the key and the user's own headers.

    `chunks` are the body; a chunk may be the same object as in the chat's last request.
    """

    path: str
    chunks: tuple[bytes, ...]
    headers: dict[str, str] = {}

    @property
    def body(self) -> bytes:
        """Return the body in one piece."""
        return self.chunks[0] if len(self.chunks) == 1 else b"".join(self.chunks)

    @property
    def size_bytes(self) -> int:
        """Return the length of the body in bytes."""
        return sum(map(len, self.chunks))


class WireFormat(ABC):
    """Base of all wire formats, with defaults for optional features."""

    key_header = "Authorization"
    key_value = f"Bearer {KEY_TEMPLATE}"
    models_path = "/models"
    """The path of the endpoint's list of models, relative to the base URL."""
    models_headers: Mapping[str, str] = MappingProxyType({})
    """Headers of the request for the list of models, in addition to the key."""
    model_list_tells = False
    """Whether the list of models reports capabilities and is therefore read before the first request."""
    returns_readable_reasoning = False
    """Whether readable reasoning is sent back, as in `Adapter`."""
    cache_lifetime_s = 300.0
    """Seconds for which a prompt prefix is cached, as in `Adapter`; most providers document five to ten minutes."""
    takes_images: Callable[[str], bool] = staticmethod(lambda model: True)
    """A function that returns whether a model accepts images, according to its server."""
    origin_name = ""
    """The prefix of `origin` for encrypted parts; the endpoint's host and port follow it."""

    @abstractmethod
    def render(self, request: ChatRequest) -> HttpCall:
        """Return the request as sent."""

    @abstractmethod
    def decoder(self, endpoint: Endpoint) -> ReplyDecoder:
        """Return a fresh decoder for one reply."""

    @abstractmethod
    def gate(self) -> RequestGate:
        """Return the gate that validates finished bodies of this format."""

    def compacts_natively(self, model: str) -> bool:
        """Return whether this model supports `ChatRequest.compact_at`."""
        return False

    def render_compaction(self, request: ChatRequest, instructions: str) -> HttpCall | None:
        """Return the request that compacts on demand, or None if the model does not support it."""
        return None

    def read_compaction(self, body: bytes, endpoint: Endpoint) -> CompactionDone:
        """Return the result of a request from `render_compaction`; raises `MalformedReply`."""
        raise MalformedReply(endpoint.say("this kind of endpoint does not compact."))

    def render_count(self, request: ChatRequest) -> HttpCall | None:
        """Return the request that counts the tokens of a prompt, or None if the endpoint does not support it."""
        return None

    def read_count(self, body: bytes) -> int | None:
        """Return the token count, or None if the response contains none."""
        return None

    @abstractmethod
    def read_models(self, body: bytes) -> list[str]:
        """Return the model names in the endpoint's list of models, and remember the facts about them."""

    def use_recognised_server(self, settings: AdapterSettings) -> None:  # noqa: B027
        """Adopt the settings of a server that was recognised after the adapter had been created."""

    def forget_models(self) -> None:  # noqa: B027
        """Forget the list of models, because another server answers at the address."""

    def limits(self, model: str) -> ModelLimits | None:
        """Return the limits that the endpoint reports for the model."""
        return None

    def runs_model_itself(self, model: str) -> bool | None:
        """Return whether the endpoint runs the model itself rather than forwarding requests, or None if unknown."""
        return None

    def learn_missing(self, what: Literal["compaction", "count"], error: AdapterError, model: str) -> None:  # noqa: B027
        """Learn why `render_compaction` or `render_count` failed: the endpoint may not support it."""

    def learn_refusal(self, error: AdapterError, request: ChatRequest) -> bool:
        """Learn from a refused request; return whether rendering it again avoids the refusal.

        Override this for features that some models lack.
        """
        return False
