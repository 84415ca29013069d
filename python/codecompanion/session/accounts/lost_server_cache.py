"""Whether the user's own server still had a chat in its cache, judged by its replies.

A reply may report how many tokens of its prompt were read. If far more were read than are new, another request has
used the slot, or the server cannot keep this model's cache. Then the next turn counts as cold; the next request of a
running tool loop, which follows at once, only after two such replies in a row.
"""

from __future__ import annotations

import msgspec

from codecompanion.adapters.prompt_slots import Loss
from codecompanion.model.messages import Usage

MIN_SHARED = 256
"""A shared prefix of fewer tokens is not judged, because its size is an estimate."""
SHARE = 0.5
"""A prefix counts as lost if this share of it (0..1) or more was read."""


class ReadAgain(msgspec.Struct):
    """Cache misses of one model in one chat. `misses`: how many replies in a row had to read the chat again."""

    misses: int = 0
    was_kept: bool = False
    """Whether the last judged reply had the prefix in its cache."""

    def judge(self, usage: Usage | None, read_tokens: int | None, shared_tokens: int, loss: Loss) -> int:
        """Judge a reply; return how many tokens had to be read again, 0 = none or unknown.

        `shared_tokens`: how much of the request was in the previous one, by estimate; `loss`: why it was expected to be
        read again.
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
        """Return whether the next request will likely be read as a whole."""
        return self.misses > in_loop
