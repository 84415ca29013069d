"""A Responses server's record of issued items: ids, encrypted contents, related items, stored responses.

The provider seals reasoning and compactions so that only it can read them, and it knows from which reasoning item each
of its items came. Here it is an unguessable text in a dictionary: one that the server never issued, or that was
modified, does not open. As recorded, an item has a different seal in each of `output_item.added`, `output_item.done`
and the finished response; the first was created before the item was complete. It is refused here, because an item is
only complete with `done`.
"""

from __future__ import annotations

import base64
import hashlib
import secrets
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

PREFIXES = {"message": "msg", "reasoning": "rs", "function_call": "fc", "compaction": "cmp"}
"""Prefix of an item's id, by item type."""


@dataclass(frozen=True)
class Issued:
    """An item issued by the server.

    follower: the id of the item that came right after this reasoning item; None for the last item of a response. needs:
    the id of the reasoning item from which this item came. tokens: its size in a later prompt. kept: the ids of the
    messages that `/responses/compact` returned before this compaction.
    """

    item: Mapping[str, Any]
    model: str
    tokens: int
    follower: str | None = None
    needs: str | None = None
    kept: tuple[str, ...] = ()


@dataclass
class Ledger:
    """Everything one provider remembers. Two servers that share a ledger are the same provider."""

    salt: str = field(default_factory=lambda: secrets.token_hex(8))
    issued: dict[str, Issued] = field(default_factory=dict)
    stored: dict[str, tuple[Mapping[str, Any], ...]] = field(default_factory=dict)
    """Response id → the items of its conversation up to its end; only for responses with `store`."""
    _sealed: dict[str, str] = field(default_factory=dict)
    _unfinished: set[str] = field(default_factory=set)
    _count: int = 0

    def new_id(self, prefix: str, response_id: str = "") -> str:
        """Return an id in OpenAI's format; ids of one response share their first half."""
        half = response_id.partition("_")[2][:18] or self._hex(18)
        return f"{prefix}_{half}{self._hex(32)}"

    def seal(self, item_id: str, chars: int = 264, *, finished: bool = True) -> str:
        """Return new encrypted content of this length for the item."""
        text = ("gAAAAAB" + base64.urlsafe_b64encode(bytes.fromhex(self._hex(chars // 2 * 4))).decode())[:chars]
        self._sealed[text] = item_id
        if not finished:
            self._unfinished.add(text)
        return text

    def opened(self, text: str) -> str | None:
        """Return the id of the item to which this content belongs, or None if it was not issued for a finished item."""
        return None if text in self._unfinished else self._sealed.get(text)

    def find_stored(self, item_id: str) -> Mapping[str, Any] | None:
        """Return an item of a stored response."""
        return next((item for items in self.stored.values() for item in items if item.get("id") == item_id), None)

    def record(self, items: Sequence[Mapping[str, Any]], model: str, tokens: Mapping[str, int]) -> None:
        """Record the items of one response, in order, and their relations."""
        needs: str | None = None
        for number, item in enumerate(items):
            after = items[number + 1]["id"] if number + 1 < len(items) else None
            is_reasoning = item["type"] == "reasoning"
            follower = after if is_reasoning else None
            entry = Issued(item, model, tokens.get(item["id"], 0), follower, None if is_reasoning else needs)
            self.issued[item["id"]] = entry
            if is_reasoning:
                needs = item["id"]
            elif item["type"] == "compaction":
                needs = None

    def _hex(self, length: int) -> str:
        self._count += 1
        digest = hashlib.shake_128(f"{self.salt}:{self._count}".encode())
        return digest.hexdigest(-(-length // 2))[:length]
