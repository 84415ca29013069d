"""The answers of the Responses fake before rendering: the items of a response, its end, its errors.

A `Reply` is data. Ids, encrypted contents, usage and the echo of the request are added when it is sent (`stream.py`),
as an event stream or as one JSON object, as requested. `failure`, `plain`, `silence` and the failures below are
complete answers.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

from tests.providers.loopback.answers import CLOSE, DROP, END, Answer, Faults, failure, plain, silence

__all__ = ["CLOSE", "DROP", "END", "Answer", "Faults", "failure", "plain", "silence"]

Phase = Literal["commentary", "final_answer"]


@dataclass(frozen=True)
class Text:
    """A message."""

    text: str
    phase: Phase | None = None


@dataclass(frozen=True)
class Declined:
    """A message whose content is a refusal."""

    text: str


@dataclass(frozen=True)
class Thought:
    """A reasoning item with the parts of its summary; `tokens` is the token count of the thinking."""

    summary: tuple[str, ...] = ()
    tokens: int = 64


@dataclass(frozen=True)
class Call:
    """A function call; `arguments` is JSON text. If `call_id` is "", a new one is generated."""

    name: str
    arguments: str = "{}"
    call_id: str = ""


@dataclass(frozen=True)
class Compacted:
    """A compaction item; `tokens` is its token count in later prompts."""

    tokens: int = 400


Item = Text | Declined | Thought | Call | Compacted


@dataclass(frozen=True)
class Failing:
    """A failure inside a stream: `response.failed` or, with `as_event`, an `error` event.

    after: the failure follows this many events (created and in_progress are the first two); None for the end of all
    items. nested: the error of the event is an object of its own, as the endpoint sends it for some errors; the SDK's
    type is flat.
    """

    code: str
    message: str
    as_event: bool = False
    nested: bool = False
    after: int | None = None


@dataclass(frozen=True)
class Reply:
    """One response. incomplete: the reason it stopped early. interleaved: the events of its items are interleaved."""

    items: tuple[Item, ...] = ()
    incomplete: Literal["max_output_tokens", "content_filter"] | None = None
    failing: Failing | None = None
    faults: Faults = field(default_factory=Faults)
    chunk_chars: int = 4
    interleaved: bool = False
    usage: dict[str, Any] | None = None


def reply(
    text: str = "",
    *,
    reasoning: Sequence[str] | None = None,
    calls: Sequence[Call] = (),
    items: Sequence[Item] = (),
    refusal: str = "",
    **fields: Any,
) -> Reply:
    """Return a response: reasoning with these summary parts, a message, calls; or exactly `items`.

    `fields` are those of `Reply`, `Faults` and `Failing` (`error_code` and `error_message` for the first two of
    `Failing`).
    """
    parts: list[Item] = [Thought(tuple(reasoning))] if reasoning is not None else []
    if text:
        parts.append(Text(text))
    if refusal:
        parts.append(Declined(refusal))
    faults = {name: fields.pop(name) for name in Faults.__dataclass_fields__ if name in fields}
    if "error_code" in fields:
        named = {name: fields.pop(name) for name in ("as_event", "nested", "after") if name in fields}
        fields["failing"] = Failing(fields.pop("error_code"), fields.pop("error_message", "It went wrong."), **named)
    return Reply(tuple(items or (*parts, *calls)), faults=Faults(**faults), **fields)


def rate_limited(*, retry_after_s: float | None = None, retry_after_ms: int | None = None) -> Answer:
    """Return a 429 after which a retry may succeed."""
    headers = {"x-ratelimit-remaining-tokens": "0"}
    if retry_after_s is not None:
        headers["retry-after"] = f"{retry_after_s:g}"
    if retry_after_ms is not None:
        headers["retry-after-ms"] = str(retry_after_ms)
    text = "Rate limit reached for test-model in organization org-test on tokens per min (TPM): Limit 30000."
    return failure(429, text, type="tokens", code="rate_limit_exceeded", headers=headers)


def quota_exhausted() -> Answer:
    """Return a 429 after which a retry cannot succeed."""
    text = "You exceeded your current quota, please check your plan and billing details."
    return failure(429, text, type="insufficient_quota", code="insufficient_quota")


def server_error(status: int = 500) -> Answer:
    """Return a 500, or a 503 of an overloaded service."""
    if status == 503:
        return failure(503, "The server is overloaded or not ready yet.", type="service_unavailable_error")
    text = "The server had an error while processing your request. Sorry about that!"
    return failure(status, text, type="server_error", code="server_error")


def reply_from(entry: dict[str, Any]) -> Reply | Answer:
    """Return the answer described by an entry of a JSON script: `kind` and the arguments of its function."""
    arguments = dict(entry)
    kind = arguments.pop("kind", "reply")
    kinds = {"text": Text, "refusal": Declined, "reasoning": Thought, "call": Call, "compaction": Compacted}
    if "calls" in arguments:
        arguments["calls"] = [Call(**call) for call in arguments["calls"]]
    if "items" in arguments:
        given = [dict(item) for item in arguments["items"]]
        arguments["items"] = [kinds[item.pop("type")](**item) for item in given]
    for name in ("insert", "body"):
        if isinstance(arguments.get(name), str):
            arguments[name] = arguments[name].encode()
    makers = {
        "reply": reply,
        "rate_limited": rate_limited,
        "quota_exhausted": quota_exhausted,
        "server_error": server_error,
        "failure": failure,
        "plain": plain,
        "silence": silence,
    }
    answer: Reply | Answer = makers[kind](**arguments)  # type: ignore[operator]
    return answer
