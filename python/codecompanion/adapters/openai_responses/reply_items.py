"""Assembles the items of a reply from their events, and emits the stream events.

Items arrive one after another, but nothing is lost when an endpoint interleaves them, omits the beginning or the pieces
of an item, or sends all of them at the end. Calls keep the order in which they began, which is the order of their
`ToolCallStarted` events (`base.py`).
"""

from __future__ import annotations

from io import StringIO
from typing import Any

import msgspec

from codecompanion.adapters.base import (
    CompactionBegun,
    CompactionDone,
    ReasoningDone,
)
from codecompanion.adapters.openai_chat.tool_deltas import is_json_object
from codecompanion.adapters.reply_events import ReplyEvents, require_few_parts
from codecompanion.model.messages import CompactionPart, ToolCall

_BETWEEN_PARTS = "\n\n"
_KEPT = ("function_call", "reasoning", "compaction")
"""Item types that store more than the text counted when it is emitted."""


class ItemBody(msgspec.Struct):
    """The fields that are read from an item; its bytes are kept separately for parts to be sent back unchanged."""

    type: str = ""
    id: Any = None
    role: Any = None
    phase: Any = None
    call_id: Any = None
    name: Any = None
    arguments: Any = None
    content: Any = None
    summary: Any = None
    encrypted_content: Any = None


class _Draft:
    """An item that is still arriving. `part` is the latest part of its reasoning; `streamed`: pieces have arrived."""

    __slots__ = ("arguments", "call_id", "done", "id", "is_call", "kind", "name", "part", "phase", "streamed")

    def __init__(self, kind: str) -> None:
        self.kind = kind
        self.id = self.phase = self.part = self.call_id = self.name = ""
        self.arguments = StringIO()
        self.streamed = self.done = self.is_call = False


class Drafts:
    """The items of one reply, by their index."""

    def __init__(self, out: ReplyEvents, origin: str) -> None:
        self._out, self._origin = out, origin
        self._drafts: dict[Any, _Draft] = {}
        self._keys: dict[str, Any] = {}
        self._calls: list[_Draft] = []
        self._held: tuple[Any, CompactionDone] | None = None
        self._compacting = self._told = False
        self.refused = False

    def take_rest(self, index: int, body: ItemBody, raw: bytes) -> None:
        """Add an item of the finished response; parts that have already arrived are not emitted again."""
        key = self._key_at_the_end(index, body)
        draft = self._drafts.get(key)
        if draft is None or not draft.done:
            self.take_item(key, body, raw, whole=True)

    def take_item(self, key: Any, body: ItemBody, raw: bytes, *, whole: bool) -> None:
        """Add an item when it begins, or when it is `whole`. `key` is None if the endpoint sends no index."""
        key = body.type if key is None else key
        if self._held is not None and self._held[0] != key:
            self.release_compaction()
        draft = self._drafts.get(key)
        if draft is None or (draft.done and draft.id != _text(body.id)):
            draft = self._new_draft(key, body.type)
        draft.kind = draft.kind or body.type
        draft.id = _text(body.id) or draft.id
        self._keys.setdefault(draft.id, key)
        self._out.charge(len(raw) if body.type in _KEPT else len(draft.id) + len(_text(body.phase)))
        draft.done = draft.done or whole
        match body.type:
            case "message":
                draft.phase = _text(body.phase)
                if whole and not draft.streamed:
                    self._whole_message(key, body)
            case "reasoning":
                if whole:
                    self._whole_reasoning(key, draft, body, raw)
            case "function_call":
                self._call(draft, body)
            case "compaction":
                self._compact(key, body, raw, whole=whole)
            case _:
                # An unsupported item, see `decode.py`. It still counts as output, so the request is not retried.
                self._out.seen = True

    def add_text(self, key: Any, text: object, *, refusal: bool = False) -> None:
        """Add a piece of a message; a refusal is shown like text."""
        draft = self._draft(key, "message")
        self.refused = self.refused or refusal
        if isinstance(text, str) and text:
            draft.streamed = True
            self._out.add_text(text, draft.phase)

    def add_reasoning(self, key: Any, text: object, part: str) -> None:
        """Add a piece of reasoning; its parts are separated by a blank line."""
        if not isinstance(text, str) or not text:
            return
        draft = self._draft(key, "reasoning")
        if draft.part and draft.part != part:
            text = _BETWEEN_PARTS + text
        draft.part, draft.streamed = part, True
        self._out.add_reasoning(text)

    def add_arguments(self, key: Any, piece: object) -> None:
        """Add a piece of a call's arguments."""
        if isinstance(piece, str):
            self._out.charge(len(piece))
            self._draft(key, "function_call").arguments.write(piece)

    def set_arguments(self, key: Any, arguments: object) -> None:
        """Set the complete arguments of a call."""
        if isinstance(arguments, str):
            self._out.charge(len(arguments))
            self._draft(key, "function_call").arguments = _begun(arguments)

    def begin_compaction(self) -> None:
        """Emit `CompactionBegun`, at most once."""
        if not self._compacting:
            self._compacting = True
            self._out.put(CompactionBegun())

    def release_compaction(self) -> None:
        """Emit the held compaction, which has begun but not ended."""
        held, self._held = self._held, None
        if held is not None:
            self._told = True
            self._out.put(held[1])

    def calls(self, *, cut_by_limit: bool) -> tuple[ToolCall, ...] | None:
        """Return the calls in the order in which they began, or None if a call has no name or id.

        With `cut_by_limit`, calls whose arguments are not a complete JSON object are omitted: they cannot be run.
        """
        made: list[ToolCall] = []
        taken = dict[str, int]()
        for draft in self._calls:
            arguments = draft.arguments.getvalue().strip() or "{}"
            if cut_by_limit and not (draft.done and is_json_object(arguments)):
                continue
            call_id = draft.call_id or draft.id
            if not draft.name or not call_id:
                return None
            given, repeated = call_id, taken.get(call_id, 0)
            while call_id in taken:
                repeated += 1
                call_id = given + "_" * repeated
            taken[given] = repeated
            taken.setdefault(call_id, 0)
            made.append(ToolCall(id=call_id, name=draft.name, arguments=arguments))
        return tuple(made)

    def _draft(self, key: Any, kind: str) -> _Draft:
        """Return the item that a piece belongs to; create it if its beginning was not reported."""
        key = kind if key is None else key
        draft = self._drafts.get(key)
        if draft is None:
            draft = self._new_draft(key, kind)
        return draft

    def _new_draft(self, key: Any, kind: str) -> _Draft:
        self._out.charge_item()
        self._out.charge(len(key) if isinstance(key, str) else 0)
        draft = self._drafts[key] = _Draft(kind)
        if isinstance(key, str):
            self._keys.setdefault(key, key)
        return draft

    def _key_at_the_end(self, index: int, body: ItemBody) -> Any:
        """Return the key under which an item of the finished response arrived earlier, else its index."""
        own = _text(body.id)
        at_index = self._drafts.get(index)
        if at_index is not None and at_index.kind == body.type:
            return index
        fallback = body.type if body.type in self._drafts else index
        return self._keys.get(own, fallback) if own else fallback

    def _call(self, draft: _Draft, body: ItemBody) -> None:
        draft.call_id = _text(body.call_id) or draft.call_id
        arguments = body.arguments
        if arguments is not None and not isinstance(arguments, str):
            arguments = msgspec.json.encode(arguments).decode()
        if arguments:
            draft.arguments = _begun(arguments)
        if not draft.name and _text(body.name):
            draft.name = _text(body.name)
            self._out.start_call(draft.name)
        if not draft.is_call:
            self._out.charge_call()
            draft.is_call = True
            self._calls.append(draft)

    def _whole_message(self, key: Any, body: ItemBody) -> None:
        parts = body.content if isinstance(body.content, list) else []
        require_few_parts(len(parts))
        for part in parts:
            if isinstance(part, dict):
                refusal = part.get("type") == "refusal"
                self.add_text(key, part.get("refusal" if refusal else "text"), refusal=refusal)

    def _whole_reasoning(self, key: Any, draft: _Draft, body: ItemBody, raw: bytes) -> None:
        if not draft.streamed:
            for name, parts in (("summary", body.summary), ("content", body.content)):
                listed = parts if isinstance(parts, list) else []
                require_few_parts(len(listed))
                for index, part in enumerate(listed):
                    self.add_reasoning(key, part.get("text") if isinstance(part, dict) else None, f"{name} {index}")
        if _text(body.encrypted_content):
            self._out.put(ReasoningDone(self._origin, raw.decode("utf-8", "replace")))

    def _compact(self, key: Any, body: ItemBody, raw: bytes, *, whole: bool) -> None:
        """Add a compaction. Recordings show that its content changes until it ends, so the final content is emitted.

        If another item arrives first, the initial content is emitted, so that a truncated stream keeps it (R-539). If a
        model writes two compactions, the later one covers everything: the last one emitted counts.
        """
        self.begin_compaction()
        held, self._held = self._held, None
        content = _text(body.encrypted_content)
        if content:
            part = CompactionPart(self._origin, f"[{raw.decode('utf-8', 'replace')}]")
            self._held = (key, CompactionDone(part))
        elif held is not None and held[0] == key:
            self._held = held
        if whole and self._held is not None:
            self.release_compaction()
        elif whole and not self._told:
            self._out.put(CompactionDone(None))


def _begun(text: str) -> StringIO:
    """Return a buffer that begins with the text and can be appended to."""
    growing = StringIO()
    growing.write(text)
    return growing


def _text(value: object) -> str:
    return value if isinstance(value, str) else ""
