"""Assembles tool calls from the deltas of a Chat Completions stream.

A delta belongs to the call with its index. Endpoints break this rule in several ways, all handled here: no index; no
id; index 0 for every parallel call; the name repeated in every delta; a new id in every delta; arguments as an object
instead of text, all at once, or missing. Ids are unique within the reply and never empty (`base.py`).

`extra_content` (Gemini's thought signature) is kept with its call, byte for byte, for the endpoint that created it.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import msgspec

from codecompanion.adapters.reply_events import ReplyEvents
from codecompanion.formats import typed
from codecompanion.formats.json_growth import GrowingObject
from codecompanion.formats.outside_text import NOT_READABLE, is_too_deep
from codecompanion.model.messages import ToolCall

_MAX_NAME_LENGTH = 1_000
"""Maximum stored characters of a name that arrives in pieces; it is later truncated to the provider's limit."""


class FunctionDelta(msgspec.Struct):
    """The `function` of a delta."""

    name: Any = None
    arguments: Any = None


class ToolDelta(msgspec.Struct):
    """One entry of `delta.tool_calls` (or of `message.tool_calls`, which has the same fields)."""

    index: int | None = None
    id: Any = None
    function: FunctionDelta | None = None
    extra_content: msgspec.Raw = msgspec.Raw(b"")


class _Draft:
    """A call whose arguments are still arriving."""

    __slots__ = ("arguments", "encrypted", "id", "name")

    def __init__(self, call_id: str) -> None:
        self.id = call_id
        self.name = ""
        self.encrypted = ""
        self.arguments = GrowingObject(is_json_object)


class ToolCallAssembler:
    """Collects deltas; `new_id` creates ids for calls without one, `origin` marks parts to send back unchanged.

    Stored text counts toward the limit in `out`, which raises `LimitHit`. The cost of a delta depends only on its
    length.
    """

    def __init__(self, new_id: Callable[[], str], out: ReplyEvents, origin: str = "") -> None:
        self._new_id, self._out = new_id, out
        self._origin = origin
        self._drafts: list[_Draft] = []
        self._by_index: dict[int, _Draft] = {}
        self._by_id: dict[str, _Draft] = {}

    def __bool__(self) -> bool:
        return bool(self._drafts)

    def add(self, delta: ToolDelta) -> str | None:
        """Add a delta; return the name of the call if the delta begins one."""
        function = delta.function or FunctionDelta()
        call_id = delta.id if isinstance(delta.id, str) else ""
        name = function.name if isinstance(function.name, str) else ""
        draft = self._find(delta.index, call_id, name)
        begins = draft is None
        if draft is None:
            self._out.charge_call()
            draft = _Draft(call_id)
            self._drafts.append(draft)
            if delta.index is not None:
                self._by_index[delta.index] = draft
        draft.id = draft.id or call_id
        if draft.id == call_id and call_id not in self._by_id:
            self._out.charge(len(call_id))
            self._by_id[call_id] = draft
        if (extra := bytes(delta.extra_content)) not in (b"", b"null", b"{}"):
            self._out.charge(len(extra))
            draft.encrypted = extra.decode()
        named_before = bool(draft.name)
        if name and name != draft.name and not draft.arguments and len(draft.name) < _MAX_NAME_LENGTH:
            draft.name += name[:_MAX_NAME_LENGTH]
        # If a server repeats a complete call, its arguments must not be doubled.
        repeated = (call_id or name) and draft.arguments.is_whole
        if function.arguments and not repeated:
            piece = _as_text(function.arguments)
            self._out.charge(len(piece))
            draft.arguments.append(piece)
        return draft.name if draft.name and (begins or not named_before) else None

    def finish(self, *, cut_by_limit: bool = False) -> tuple[ToolCall, ...]:
        """Return the calls in the order in which they began.

        With `cut_by_limit` (the reply hit the output limit), calls whose arguments are not a complete JSON object are
        omitted, because they cannot be run. A call without a name is always omitted; see `nameless`.
        """
        calls: list[ToolCall] = []
        taken: set[str] = set()
        for draft in self._drafts:
            arguments = draft.arguments.text.strip() or "{}"
            if not draft.name or (cut_by_limit and not is_json_object(arguments)):
                continue
            call_id = draft.id if draft.id and draft.id not in taken else self._new_id()
            taken.add(call_id)
            origin = self._origin if draft.encrypted else ""
            calls.append(ToolCall(call_id, draft.name, arguments, origin, draft.encrypted))
        return tuple(calls)

    @property
    def are_whole(self) -> bool:
        """Return whether the arguments of every call are one JSON object; missing arguments count as one."""
        return all(draft.arguments.is_whole or draft.arguments.is_blank for draft in self._drafts)

    @property
    def nameless(self) -> bool:
        """Return whether a call has no name, which means that the reply is malformed."""
        return any(not draft.name for draft in self._drafts)

    def _find(self, index: int | None, call_id: str, name: str) -> _Draft | None:
        if not self._drafts:
            return None
        if index is None:
            # Without an index a delta continues the last call, unless it begins another.
            draft = self._drafts[-1]
        else:
            known = self._by_index.get(index)
            if known is None:
                return None
            draft = known
        if call_id and draft.id and call_id != draft.id:
            own = self._by_id.get(call_id)
            if own is not None:
                return own
            # A fresh id without a name, or in the middle of the arguments, is noise; otherwise it is a new call.
            return None if name and (not draft.arguments or draft.arguments.is_whole) else draft
        same_id = call_id and call_id == draft.id
        renamed = index is None and name != draft.name
        return None if name and not same_id and (renamed or draft.arguments.is_whole) else draft


def is_json_object(text: str) -> bool:
    """Return whether the text is one JSON object that other JSON parsers also accept."""
    if not text.lstrip().startswith("{") or is_too_deep(text):
        return False
    try:
        typed.read_json(text, type=dict[str, object])  # parsed as a whole: `Raw` would accept malformed numbers
    except NOT_READABLE:
        return False
    return True


def _as_text(arguments: Any) -> str:
    return arguments if isinstance(arguments, str) else msgspec.json.encode(arguments).decode()
