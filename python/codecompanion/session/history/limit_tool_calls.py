"""Limits the size of tool calls written by a model or a server, because a chat stores them permanently (lesson 28).

Every call is stored, drawn, counted and sent again with each later request, so a megabyte-long name or endless
arguments must not be stored. A truncated call still results in an error that the model sees, because the registry
refuses it.
"""

from __future__ import annotations

import hashlib

import msgspec

from codecompanion.adapters.base import Finished
from codecompanion.formats.regex import regex
from codecompanion.model.messages import ToolCall

MAX_ID_LENGTH = 16_384
"""Maximum length of a call id; long ids are valid, because some gateways keep a signature in them."""
MAX_NAME_LENGTH = 64
MAX_ARGUMENTS_LENGTH = 1_000_000
_KEPT_ARGUMENTS = 2_000
_CONTROL = regex(r"[\x00-\x1f\x7f\ud800-\udfff]")


def tame(finished: Finished) -> Finished:
    """Return the finished reply with oversized tool calls truncated.

    Return the same object if nothing was truncated.
    """
    calls = tuple(_tame(call) for call in finished.tool_calls)
    return finished if calls == finished.tool_calls else msgspec.structs.replace(finished, tool_calls=calls)


def one_line(title: str) -> str:
    """Return a title without characters that are not allowed in a buffer line."""
    return _CONTROL.sub(" ", title)


def _tame(call: ToolCall) -> ToolCall:
    return msgspec.structs.replace(
        call, id=_tame_id(call.id), name=_tame_name(call.name), arguments=_tame_arguments(call.arguments)
    )


def _tame_id(call_id: str) -> str:
    if len(call_id) <= MAX_ID_LENGTH and not _CONTROL.search(call_id):
        return call_id
    return "call_" + hashlib.sha256(call_id.encode("utf-8", "surrogatepass")).hexdigest()[:32]


def _tame_name(name: str) -> str:
    return _CONTROL.sub("_", name[:MAX_NAME_LENGTH])


def _tame_arguments(arguments: str) -> str:
    if len(arguments) > MAX_ARGUMENTS_LENGTH:
        left_out = len(arguments) - _KEPT_ARGUMENTS
        arguments = f"{arguments[:_KEPT_ARGUMENTS]}… [{left_out:,} more characters, left out: the call ran on too long]"
    return arguments.encode("utf-8", "replace").decode("utf-8")
