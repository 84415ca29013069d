"""Checks the order of items for a Responses endpoint. It is a fold, so that a request costs O(new items).

Rules: each call is answered once, directly after it and before any other speaker; call ids and encrypted items occur
once; reasoning is followed by its result, an item of the model that is not reasoning (unencrypted reasoning of
compatible endpoints may be consecutive); the request has at most one compaction (a provider may write it as several
consecutive items), and only messages before it; ids, keys, content and sizes follow `check_items.py`. The check is
stricter than the endpoint where its reference is silent: any violation is a bug in this plugin.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal

import msgspec

from codecompanion.adapters.openai_responses.check_items import HOSTED_CALLS, Item, type_of

MAX_IMAGES = 500
MAX_ATTACHED_CHARS = 50 * 1024 * 1024
"""Maximum characters of images and files in one request (guides “Images and vision”, “File inputs”)."""

Kind = Literal[
    "input", "assistant", "reasoning", "encrypted", "call", "output", "hosted", "compaction", "trigger", "other"
]
_FOLLOWERS: dict[Kind | None, tuple[Kind, ...]] = {
    "encrypted": ("assistant", "call", "hosted"),
    "reasoning": ("reasoning", "assistant", "call", "hosted"),
}


class Mark(msgspec.Struct, frozen=True):
    """The properties of an item that affect the order. `names`: unique values; `attached`: media size in characters."""

    kind: Kind
    call_id: str = ""
    names: tuple[str, ...] = ()
    images: int = 0
    attached: int = 0


class OrderCheck:
    """Checks the marks of items: pass them in order to `add`, then call `finish`."""

    def __init__(self) -> None:
        self._names: set[str] = set()
        self._calls: set[str] = set()
        self._open: dict[str, None] = {}
        self._last: Kind | None = None
        self._compacted = self._conversed = False
        self._images = self._attached = 0

    def add(self, mark: Mark) -> list[str]:
        """Add the next item; return the errors in its position, as phrases that complete a sentence."""
        problems = [f"repeats {name}" for name in mark.names if name in self._names]
        self._names.update(mark.names)
        if self._last in _FOLLOWERS and mark.kind not in _FOLLOWERS[self._last]:
            problems.append("follows reasoning in place of the output that belongs to it")
        if self._last == "trigger":
            problems.append("follows a compaction trigger, which must be the last item")
        match mark.kind:
            case "call":
                problems += [f"repeats the call {mark.call_id}"] if mark.call_id in self._calls else []
                self._calls.add(mark.call_id)
                self._open[mark.call_id] = None
            case "output":
                if mark.call_id not in self._open:
                    problems.append(f"answers {mark.call_id}, which is not a pending call")
                self._open.pop(mark.call_id, None)
            case "input":
                problems += [f"comes before the output of {call_id}" for call_id in self._open]
                self._open.clear()
            case "compaction":
                problems += self._add_compaction()
        self._conversed |= mark.kind not in ("input", "assistant", "compaction")
        self._last = mark.kind
        return problems + self._add_attachments(mark)

    def finish(self) -> list[str]:
        """Return the errors of a request that ends here."""
        problems = [f"the call {call_id} has no output" for call_id in self._open]
        if self._last in _FOLLOWERS:
            problems.append("reasoning is the last item")
        if self._last is None:
            problems.append("input is empty")
        return problems

    def _add_compaction(self) -> list[str]:
        problems = [f"is between {call_id} and its output" for call_id in self._open]
        if self._compacted and self._last != "compaction":
            problems.append("is a second compaction")
        elif self._conversed:
            problems.append("is a compaction that follows items it replaces")
        self._compacted = True
        return problems

    def _add_attachments(self, mark: Mark) -> list[str]:
        before = self._images <= MAX_IMAGES and self._attached <= MAX_ATTACHED_CHARS
        self._images += mark.images
        self._attached += mark.attached
        if before and self._images > MAX_IMAGES:
            return [f"adds image {self._images}; at most {MAX_IMAGES} fit into a request"]
        if before and self._attached > MAX_ATTACHED_CHARS:
            return [f"brings the size of images and files to over {MAX_ATTACHED_CHARS // (1024 * 1024)} MB"]
        return []


def mark_of(item: Item) -> Mark:
    """Return the properties of an item that affect the order."""
    kind = type_of(item)
    names = tuple(str(item[key]) for key in ("id", "encrypted_content") if item.get(key))
    match kind:
        case "message":
            role: Kind = "assistant" if item.get("role") == "assistant" else "input"
            return Mark(role, "", names, *_attachments(item.get("content")))
        case "function_call":
            return Mark("call", str(item.get("call_id")), names)
        case "function_call_output":
            return Mark("output", str(item.get("call_id")), names, *_attachments(item.get("output")))
        case "reasoning":
            return Mark("encrypted" if item.get("encrypted_content") else "reasoning", "", names)
        case "compaction":
            return Mark("compaction", "", names)
        case "compaction_trigger":
            return Mark("trigger")
        case _:
            return Mark("hosted" if kind in HOSTED_CALLS else "other", "", names)


def _attachments(content: object) -> tuple[int, int]:
    """Return (number of images, characters of images and files) for a content list."""
    parts = [part for part in content if isinstance(part, Mapping)] if isinstance(content, list) else []
    images = [part for part in parts if part.get("type") == "input_image"]
    return len(images), sum(len(str(part.get(key) or "")) for part in parts for key in ("image_url", "file_data"))
