"""Types for MCP servers that do not need the SDK: a server's offer, its results, its requests.

All text of a server is external: it is cut, and shown or sent as data.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Literal, Protocol

import msgspec

from codecompanion.errors import CodeCompanionError


class McpError(CodeCompanionError):
    """A server could not be started, reached or called; one sentence for the user."""


class McpMissing(McpError):
    """The packages that servers need are not installed."""


class McpTool(msgspec.Struct, frozen=True, kw_only=True):
    """A tool as its server describes it. `hints` are the server's own claims: shown, never trusted."""

    name: str
    title: str = ""
    description: str = ""
    schema: dict[str, Any] = msgspec.field(default_factory=dict)
    hints: tuple[str, ...] = ()


class McpResource(msgspec.Struct, frozen=True, kw_only=True):
    """A resource, or with `is_template` an address with parameters in braces."""

    uri: str
    name: str = ""
    description: str = ""
    mime: str = ""
    is_template: bool = False


class McpPrompt(msgspec.Struct, frozen=True, kw_only=True):
    """A prompt and the names of its arguments, each marked if required."""

    name: str
    description: str = ""
    arguments: tuple[tuple[str, bool, str], ...] = ()
    """Name, whether it is required, description."""


class Offer(msgspec.Struct, frozen=True, kw_only=True):
    """A server's current offer. `left_out`: a sentence when it exceeded the limits."""

    tools: tuple[McpTool, ...] = ()
    resources: tuple[McpResource, ...] = ()
    prompts: tuple[McpPrompt, ...] = ()
    left_out: tuple[str, ...] = ()


class Image(msgspec.Struct, frozen=True):
    """An image that came with a result."""

    mime: str
    content: bytes


class Given(msgspec.Struct, frozen=True, kw_only=True):
    """The result of a call, a resource or a prompt: text for the model, images beside it."""

    text: str
    images: tuple[Image, ...] = ()
    is_error: bool = False


class SamplingRequest(msgspec.Struct, frozen=True, kw_only=True):
    """A server asks for a reply of the user's model: roles with texts."""

    messages: tuple[tuple[Literal["user", "assistant"], str], ...]
    system: str = ""
    max_tokens: int = 0


class SamplingReply(msgspec.Struct, frozen=True, kw_only=True):
    """The reply that the user allowed for the server."""

    text: str
    model: str
    was_cut: bool = False


class ElicitationRequest(msgspec.Struct, frozen=True, kw_only=True):
    """A server asks the user for values. `fields` is its flat schema by name; `url` asks to open an address instead.

    `fields` is unchecked: a field may not even be a table.
    """

    message: str
    fields: Mapping[str, Any] = {}
    required: tuple[str, ...] = ()
    url: str = ""


class Refused(CodeCompanionError):
    """The user declines the server's request; `is_final`: the call is stopped as well."""


class Unaskable(CodeCompanionError):
    """A server's request cannot be shown to the user in full; the sentence is for the server, too."""


class ServerListener(Protocol):
    """Receives the events of a connected server, and answers its requests."""

    async def on_changed(self) -> None:
        """The server's offer has changed; the connection has the new one."""

    def on_log(self, level: str, text: str) -> None:
        """The server, or its standard error, sent a line."""

    def on_ended(self, problem: str) -> None:
        """The connection is over; `problem` is the reason, "" when we closed it."""

    def roots(self) -> Sequence[str]:
        """Return the folders the server may know of, as absolute paths."""

    async def sample(self, request: SamplingRequest) -> SamplingReply:
        """Return a reply of the model; raises `Refused`."""

    async def elicit(self, request: ElicitationRequest) -> dict[str, Any] | None:
        """Return the values the user gave, None when the question was closed; raises `Refused`, `Unaskable`."""
