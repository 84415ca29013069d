"""Defines types for MCP servers that do not need the SDK: a server's offer, its results, its requests.

All text from a server is untrusted: it is truncated, and shown or sent as data.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Literal, Protocol

import msgspec

from codecompanion.errors import CodeCompanionError


class McpError(CodeCompanionError):
    """A server could not be started, reached or called; the message is a sentence for the user."""


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
    """A resource, or with `is_template` a URI template with parameters in braces."""

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
    """Each argument as (name, whether it is required, description)."""


class Offer(msgspec.Struct, frozen=True, kw_only=True):
    """The current offer of a server. `left_out`: sentences about lists that exceeded the limits."""

    tools: tuple[McpTool, ...] = ()
    resources: tuple[McpResource, ...] = ()
    prompts: tuple[McpPrompt, ...] = ()
    left_out: tuple[str, ...] = ()


class Image(msgspec.Struct, frozen=True):
    """An image in a result."""

    mime: str
    content: bytes


class Given(msgspec.Struct, frozen=True, kw_only=True):
    """The content of a tool result, a resource or a prompt: text and images for the model."""

    text: str
    images: tuple[Image, ...] = ()
    is_error: bool = False


class SamplingRequest(msgspec.Struct, frozen=True, kw_only=True):
    """A server's request for a reply from the user's model: messages as (role, text)."""

    messages: tuple[tuple[Literal["user", "assistant"], str], ...]
    system: str = ""
    max_tokens: int = 0


class SamplingReply(msgspec.Struct, frozen=True, kw_only=True):
    """The model's reply, which the user allowed to be sent to the server."""

    text: str
    model: str
    was_cut: bool = False


class ElicitationRequest(msgspec.Struct, frozen=True, kw_only=True):
    """A server's request for input from the user. `fields`: its flat schema by name; `url`: a URL to open instead.

    `fields` is unchecked, so a field may be any JSON value.
    """

    message: str
    fields: Mapping[str, Any] = {}
    required: tuple[str, ...] = ()
    url: str = ""


class Refused(CodeCompanionError):
    """The user declined the server's request; `is_final`: the call is stopped as well."""


class Unaskable(CodeCompanionError):
    """A server's request cannot be shown to the user in full; the message is sent to the server too."""


class ServerListener(Protocol):
    """Receives the events of a connected server, and answers its requests."""

    async def on_changed(self) -> None:
        """Handle a changed offer, which the connection has already read."""

    def on_log(self, level: str, text: str) -> None:
        """Handle a log line from the server or its standard error."""

    def on_ended(self, problem: str) -> None:
        """Handle the end of the connection; `problem`: the reason, or "" if we closed it."""

    def roots(self) -> Sequence[str]:
        """Return the folders that the server may see, as absolute paths."""

    async def sample(self, request: SamplingRequest) -> SamplingReply:
        """Return a reply of the model; raises `Refused`."""

    async def elicit(self, request: ElicitationRequest) -> dict[str, Any] | None:
        """Return the values the user entered, or None if the question was closed; raises `Refused`, `Unaskable`."""
