"""Estimates the content of the provider's prompt cache from the messages of a chat (lesson 22).

The last request cached everything before the newest reply; it stays warm for the cache lifetime, counted from that
reply. If a time is unknown, the cache counts as warm, because invalidating a warm cache by mistake costs more than
delaying an edit. Edits since then are ignored, because edits are made right before a request.

A self-hosted server costs no money, only the time to read the prompt. Cached tokens take no time, and stay cached until
another prompt takes their place (a slot in llama.cpp), not just for a few minutes. Then they are `lost`. The longer
time per token in a long chat is ignored, because no server reports it.
"""

from __future__ import annotations

import msgspec

from codecompanion.context.work import CacheState, Messages

READ_PRICE, WRITE_PRICE = 0.1, 1.25
OWN_READ_PRICE, OWN_WRITE_PRICE = 0.0, 1.0
"""Prices of a self-hosted server, relative to the seconds it needs to read a token."""
DEFAULT_LIFETIME_S = 300.0


def find_cache_state(
    messages: Messages,
    now: float,
    lifetime_s: float = DEFAULT_LIFETIME_S,
    total: int | None = None,
    *,
    is_own: bool = False,
    is_lost: bool = False,
    reads_per_s: float = 0.0,
) -> CacheState:
    """Return the cache state for the next request at `now` (seconds since the epoch, 0 if unknown).

    `lifetime_s` 0 = the provider caches nothing: every token costs full price. `total`: the token count of all
    messages, if known; only the newest are then examined. `is_own`: the server is the user's own and reads
    `reads_per_s` tokens per second; `is_lost`: none of the chat is in the model's cache.
    """
    if lifetime_s <= 0:
        return CacheState(read_price=1.0, write_price=1.0, lifetime_s=0.0)
    read, write = (OWN_READ_PRICE, OWN_WRITE_PRICE) if is_own else (READ_PRICE, WRITE_PRICE)
    known = CacheState(lifetime_s=lifetime_s, read_price=read, write_price=write, reads_per_s=reads_per_s)
    newest = next((index for index in range(len(messages) - 1, -1, -1) if messages[index].role == "assistant"), None)
    if newest is None or is_lost:
        return known
    answered = messages[newest].ts
    if now and answered and now - answered > lifetime_s:
        return known
    if total is None:
        warm = sum(message.tokens for message in messages[:newest])
    else:
        warm = total - sum(message.tokens for message in messages[newest:])
    return msgspec.structs.replace(known, warm_tokens=warm)
