"""Reads the formats of stored API traffic: a request, a request with its response, a list, one message per line."""

from __future__ import annotations

from typing import Any

import msgspec

from codecompanion.cli.importing.fields import Found, Skipped, expect_list, expect_object, numbered, read_values
from codecompanion.errors import InputError


class Conversation(msgspec.Struct, frozen=True):
    """The messages of a request, each with its location; the whole request; and the response if it was stored."""

    messages: list[Found]
    where: str
    request: dict[str, Any] = {}
    response: dict[str, Any] | None = None


def find_conversation(raw: bytes, source: str, expected: str, skipped: Skipped = None) -> Conversation:
    """Return the one conversation of a file.

    Raises:
        InputError: the file has no conversation, or more than one.
    """
    values = read_values(raw, source, expected, skipped)
    first = values[0]
    if isinstance(first.value, list) and len(values) == 1:
        return Conversation(list(numbered(first.value, first.where)), first.where)
    whole = expect_object(first.value, first.where, expected)
    request = whole.get("request", whole)
    if "role" in whole and "messages" not in whole and "request" not in whole:
        return Conversation(values, first.where)
    if len(values) > 1:
        raise InputError(f"{values[1].where}: a second conversation; expected one per file")
    request = expect_object(request, f"{first.where}: request", "a request object")
    if "messages" not in request:
        raise InputError(f"{first.where}: no messages in it; expected {expected}")
    where = f"{first.where}: messages"
    messages = list(numbered(expect_list(request["messages"], where, "a list of messages"), where))
    response = whole.get("response")
    if response is not None:
        response = expect_object(response, f"{first.where}: response", "a response object")
    return Conversation(messages, first.where, request, response)
