"""Faults as data: the answers of a server, and rows of the table.

Answers are independent of wire formats; `copilot_formats.py` renders the bytes for each format.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

from tests.patience import PATIENCE_S

Kind = Literal["status", "stream", "tool", "server", "summary", "clock", "disk", "window", "usage"]
WireName = Literal["chat", "responses", "messages", "plan"]
ALL: tuple[WireName, ...] = ("chat", "responses", "messages")
"""Wire formats that most rows use; `plan` is Responses for a ChatGPT plan and has its own rows, including its login."""
Place = Literal["before the first byte", "in the text", "in a call", "after the text"]


@dataclass(frozen=True)
class Refuses:
    """An HTTP status with the provider's error body, or with exactly the bytes in `body`."""

    status: int
    message: str = "No."
    code: str | None = None
    headers: Mapping[str, str] = field(default_factory=dict)
    body: bytes | None = None


@dataclass(frozen=True)
class Call:
    """A tool call of a reply; `arguments` is JSON text, valid or not."""

    name: str
    arguments: str = "{}"
    id: str = ""


@dataclass(frozen=True)
class Says:
    """A streamed reply. `ends_at`: the connection breaks there; with `quietly` the body ends as if it were complete.

    error: an error event in the middle of the text, after which the body ends. insert: raw bytes in the middle of it.
    silent_at: nothing more is sent from there on. usage: reported instead of the server's own figures, {} = nothing.
    unmarked: the reply ends without a reason (`finish_reason`), only with the end of the stream.
    """

    text: str = ""
    calls: tuple[Call, ...] = ()
    thinking: str = ""
    usage: Mapping[str, Any] | None = None
    ends_at: Place | None = None
    quietly: bool = False
    silent_at: Place | None = None
    error: str = ""
    insert: bytes = b""
    stop: Literal["", "length"] = ""
    unmarked: bool = False


@dataclass(frozen=True)
class Sends:
    """An answer of exactly these bytes with status 200."""

    body: bytes
    content_type: str = "text/event-stream"
    headers: Mapping[str, str] = field(default_factory=dict)


Answers = Refuses | Says | Sends


@dataclass(frozen=True, kw_only=True)
class Row:
    """One fault: it occurs when the second of four messages is sent, or lasts from the first one on.

    kind, name: the fault, in words. expect: the outcome, in words. answers: the server's responses to the second
    message, one per request, instead of its normal answer. says: text in the first 80 columns of the one sentence shown
    to the user, "" = none. arrives: how many times the second message reaches the server as a new one; more than once
    only with `because`. answered: whether it is answered in the end. returned: it is back in the input instead, and was
    never shown as sent. kept: whether a part of the reply is kept, marked as truncated. For all other fields see
    `scene.py`.
    """

    kind: Kind
    name: str
    expect: str
    answers: tuple[Answers, ...] = ()
    says: str = ""
    arrives: int = 1
    because: str = ""
    answered: bool = True
    returned: bool = False
    kept: bool = False
    wires: tuple[WireName, ...] = ALL
    disk: str = ""
    clock_jumps_s: tuple[float, float, float] = (0.0, 0.0, 0.0)
    summary: tuple[Answers, ...] = ()
    usage: Mapping[WireName, Mapping[str, Any]] | None = None
    window: int = 100_000
    server_window: int = 0
    past_words: int = 0
    text: str = ""
    quiet_s: float = 0.0
    offers_tools: bool = True
    compact_at: int = 0
    policy: str = "codecompanion"
    away: bool = False
    hasty: bool = False
    server: tuple[str, ...] | None = None
    server_limit_s: float = PATIENCE_S
    may_be_over: bool = False
