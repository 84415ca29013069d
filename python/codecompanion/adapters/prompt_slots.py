"""Which prompts a server of the user's own may still have in its cache: those it read last, one in each slot.

llama.cpp gives a prompt the slot that begins like it, else the one that was used longest ago. Newer versions also keep
prompts that lost their slot in memory (`--cache-ram`): which ones do, their replies tell (`learn_kept`). Pure.
"""

from __future__ import annotations

from typing import Literal

Loss = Literal["", "restart", "other_request"]
MAX_OWNERS = 50


class PromptSlots:
    """The prompts of one model, by who sent them: a chat, or what is asked beside it."""

    def __init__(self) -> None:
        self._read_at: dict[str, float] = {}
        self._keeps_more = False

    def read(self, owner: str, now: float) -> None:
        """Take in that the server reads a prompt of this owner."""
        self._read_at.pop(owner, None)
        self._read_at[owner] = now
        if len(self._read_at) > MAX_OWNERS:
            del self._read_at[next(iter(self._read_at))]

    def learn_kept(self) -> None:
        """Take in that a prompt was there although other requests had used all slots since."""
        self._keeps_more = True

    def loss(self, owner: str, slots: int, lost_at: float) -> Loss:
        """Return why the newest prompt of the owner is not in the cache any more, "" when nothing tells that.

        `slots`: how many the server has, 0 = unknown; `lost_at`: when it was last not there.
        """
        if owner not in self._read_at:
            return ""
        if self._read_at[owner] <= lost_at:
            return "restart"
        later = [*reversed(self._read_at)].index(owner)
        return "other_request" if 0 < slots <= later and not self._keeps_more else ""
