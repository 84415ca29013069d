"""What is known of MCP servers without the SDK: what a server offers, what it gives, what it may ask of us.

Everything a server says is text from outside: it is cut, and shown or sent as data.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Literal, Protocol

import msgspec

from codecompanion.errors import CodeCompanionError


class McpError(CodeCompanionError):
    """A server could not be started, reached or asked; one sentence for the user."""


class McpMissing(McpError):
    """The packages that servers need are not installed."""


class McpTool(msgspec.Struct, frozen=True, kw_only=True):
    """A tool as its server describes it. `hints` are the server's own words about it: shown, never believed."""

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
    """A prompt and the names of its arguments, those that are required first marked."""

    name: str
    description: str = ""
    arguments: tuple[tuple[str, bool, str], ...] = ()
    """Name, whether it is required, description."""


class Offer(msgspec.Struct, frozen=True, kw_only=True):
    """What a server offers now. `left_out`: a sentence when there was more than is taken."""

    tools: tuple[McpTool, ...] = ()
    resources: tuple[McpResource, ...] = ()
    prompts: tuple[McpPrompt, ...] = ()
    left_out: tuple[str, ...] = ()


class Image(msgspec.Struct, frozen=True):
    """An image that came with a result."""

    mime: str
    content: bytes


class Given(msgspec.Struct, frozen=True, kw_only=True):
    """What a call, a resource or a prompt gave: text for the model, images beside it."""

    text: str
    images: tuple[Image, ...] = ()
    is_error: bool = False


class SamplingRequest(msgspec.Struct, frozen=True, kw_only=True):
    """A server asks for a reply of the user's model: roles with texts."""

    messages: tuple[tuple[Literal["user", "assistant"], str], ...]
    system: str = ""
    max_tokens: int = 0


class SamplingReply(msgspec.Struct, frozen=True, kw_only=True):
    """The reply the user let the server have."""

    text: str
    model: str
    was_cut: bool = False


class ElicitationRequest(msgspec.Struct, frozen=True, kw_only=True):
    """A server asks the user for values. `fields` is its flat schema by name; `url` asks to open an address instead.

    What stands in `fields` is as the server gave it: nothing says that a field is a table.
    """

    message: str
    fields: Mapping[str, Any] = {}
    required: tuple[str, ...] = ()
    url: str = ""


class Refused(CodeCompanionError):
    """The user does not let the server have what it asks for; `is_final` when the call is to be stopped as well."""


class Unaskable(CodeCompanionError):
    """What a server asks cannot be put to the user as a whole; the sentence is for the server, too."""


class ServerListener(Protocol):
    """Who is told what a connected server does, and answers it."""

    async def on_changed(self) -> None:
        """What the server offers has changed; the connection has the new offer."""

    def on_log(self, level: str, text: str) -> None:
        """The server, or its standard error, said something."""

    def on_ended(self, problem: str) -> None:
        """The connection is over; `problem` says why, "" when it was closed by us."""

    def roots(self) -> Sequence[str]:
        """Return the folders the server may know of, as absolute paths."""

    async def sample(self, request: SamplingRequest) -> SamplingReply:
        """Return a reply of the model; raises `Refused`."""

    async def elicit(self, request: ElicitationRequest) -> dict[str, Any] | None:
        """Return the values the user gave, None when the question was closed; raises `Refused`, `Unaskable`."""
