"""Judges from the replies of the user's own server whether a chat was still in its prompt cache.

A reply may report how many tokens of its prompt were processed. If that is far more than the new tokens, another
request has used the slot, or the server cannot keep this model's cache. The next turn then counts as cold; a tool loop,
whose next request follows immediately, counts as cold only after two cache misses in a row.
"""

from __future__ import annotations

import msgspec

from codecompanion.adapters.prompt_slots import Loss
from codecompanion.model.messages import Usage

MIN_SHARED = 256
"""Minimum size of a shared prefix in tokens; a shorter one is not judged, because its size is an estimate."""
SHARE = 0.5
"""Share of a prefix (0..1) that must be processed again for it to count as lost."""


class ReadAgain(msgspec.Struct):
    """The cache misses of one model in one chat; `misses` is the number of consecutive unexpected misses."""

    misses: int = 0
    was_kept: bool = False
    """Whether the prefix of the last judged reply was in the cache."""

    def judge(self, usage: Usage | None, read_tokens: int | None, shared_tokens: int, loss: Loss) -> int:
        """Judge a reply; return how many shared tokens were processed again, 0 if none or unknown.

        `shared_tokens`: estimated tokens shared with the previous request; `loss`: the reason a cache miss was
        expected.
        """
        self.was_kept = False
        prompt = usage.prompt_tokens if usage else 0
        shared = min(shared_tokens, prompt)
        if read_tokens is None or shared < MIN_SHARED:
            return 0
        again = max(0, shared - (prompt - read_tokens))
        self.was_kept = again < SHARE * shared
        if self.was_kept:
            self.misses = 0
            return 0
        self.misses += not loss
        return again

    def expects_loss(self, *, in_loop: bool) -> bool:
        """Return whether the next request will probably miss the cache."""
        return self.misses > in_loop
