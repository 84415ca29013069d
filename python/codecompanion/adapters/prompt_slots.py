"""Tracks the prompts that the user's own server may still have cached: the most recently read prompts, one per slot.

llama.cpp assigns a prompt to the slot with the same prefix, else to the least recently used slot. Newer versions also
keep prompts in memory that lost their slot (`--cache-ram`); their replies show this (`learn_kept`). Pure.
"""

from __future__ import annotations

from typing import Literal

Loss = Literal["", "restart", "other_request"]
MAX_OWNERS = 50


class PromptSlots:
    """The prompts of one model, by owner: a chat, or a request outside chats."""

    def __init__(self) -> None:
        self._read_at: dict[str, float] = {}
        self._keeps_more = False

    def read(self, owner: str, now: float) -> None:
        """Record that the server is processing a prompt from this owner."""
        self._read_at.pop(owner, None)
        self._read_at[owner] = now
        if len(self._read_at) > MAX_OWNERS:
            del self._read_at[next(iter(self._read_at))]

    def learn_kept(self) -> None:
        """Record that a prompt was still cached although other requests had since used all slots."""
        self._keeps_more = True

    def loss(self, owner: str, slots: int, lost_at: float) -> Loss:
        """Return why the owner's newest prompt is no longer cached, or "" if it may still be cached.

        `slots`: the server's number of slots, or 0 if unknown; `lost_at`: when the server was last unreachable.
        """
        if owner not in self._read_at:
            return ""
        if self._read_at[owner] <= lost_at:
            return "restart"
        later = [*reversed(self._read_at)].index(owner)
        return "other_request" if 0 < slots <= later and not self._keeps_more else ""
