"""Computes the input cost of a session whose provider caches prompt prefixes (lessons 22, 23).

The model, relative to plain input: the common prefix of a request and its predecessor is read at 0.1; everything after
it is written at 1.25. So an edit means paying once for everything after it. If the next request comes after the cache's
lifetime, the cache is empty and everything is written. Without a cache every token costs 1. Requests without a time
count as immediate successors.

The part before the messages (system prompt, tool schemas) never changes. Output costs 5, as in Anthropic's price list
and roughly in those of others.

Not in the model: the smallest cacheable prefix, several chats that share a prefix, prices of one provider.
"""

from __future__ import annotations

from typing import Literal

import msgspec

from codecompanion.context.work import CacheState, Messages

CacheKind = Literal["5m", "1h", "none"]
LIFETIME_S: dict[CacheKind, float] = {"5m": 300.0, "1h": 3600.0, "none": 0.0}
READ_PRICE, WRITE_PRICE, OUTPUT_PRICE = 0.1, 1.25, 5.0


class PrefixCache(msgspec.Struct, frozen=True):
    """The provider's cache: the messages of the last request, and the time it was read (seconds since the epoch).

    `fixed` tokens precede the messages in every request; each token of a message counts `ratio` times.
    """

    kind: CacheKind
    sent: Messages = ()
    at: float = 0.0
    fixed: int = 0
    ratio: float = 1.0

    def is_cold(self, now: float) -> bool:
        """Return whether the cache is empty at `now` (0 = unknown time)."""
        return bool(self.at and now) and now - self.at > LIFETIME_S[self.kind]

    def state(self, now: float) -> CacheState:
        """Return the cache state as a strategy sees it before the next request."""
        if self.kind == "none":
            return CacheState(read_price=1.0, write_price=1.0, lifetime_s=0.0)
        warm = 0 if self.is_cold(now) else sum(message.tokens for message in self.sent)
        return CacheState(warm, READ_PRICE, WRITE_PRICE, LIFETIME_S[self.kind])

    def price(self, messages: Messages, now: float) -> float:
        """Return the input cost of a request, in tokens of plain input."""
        total = self.fixed + self.ratio * sum(message.tokens for message in messages)
        if self.kind == "none":
            return float(total)
        is_warm = bool(self.sent) and not self.is_cold(now)
        cached = self.fixed + self.ratio * _common_tokens(self.sent, messages) if is_warm else 0
        return READ_PRICE * cached + WRITE_PRICE * (total - cached)

    def after(self, messages: Messages, now: float) -> PrefixCache:
        """Return the cache as it is after the request was answered."""
        return msgspec.structs.replace(self, sent=messages, at=now or self.at)


def _common_tokens(sent: Messages, messages: Messages) -> int:
    """Return the token count of the messages that both lists start with."""
    common = 0
    for old, new in zip(sent, messages, strict=False):
        if old is not new and (old.content, old.tool_calls) != (new.content, new.tool_calls):
            break
        common += new.tokens
    return common
