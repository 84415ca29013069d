"""Estimates an embedding run before it begins: code chunks, tokens, and dollars if the price is known."""

from __future__ import annotations

from collections.abc import Iterable

import msgspec

from codecompanion.adapters.catalog import lookup, price_usd
from codecompanion.formats.plural import counted
from codecompanion.model.embedding import EmbeddingSettings
from codecompanion.model.messages import Usage
from codecompanion.retrieval.search.embedding_text import MAX_CHARS
from codecompanion.store.code_index.vectors import Missing

_CHARS_PER_TOKEN = 3.2
"""Average characters per token of code in embedding models (measured: 2.6 to 3.9)."""
_HEAD_CHARS = 50
"""Estimated number of characters for the path and name sent before each chunk."""
FREE_TOKENS = 2_000_000
"""Tokens above which a run at an unknown price needs approval; OpenAI's smallest model charges four cents for that
many.
"""
FREE_USD = 0.10


class Estimate(msgspec.Struct, frozen=True):
    """The estimated size of a run. `usd`: None = the price is unknown. `is_paid`: whether the run may be billed."""

    chunks: int = 0
    tokens: int = 0
    usd: float | None = None
    is_paid: bool = False

    @property
    def is_large(self) -> bool:
        """Return whether the user must approve the run first."""
        if not self.is_paid:
            return False
        return self.tokens > FREE_TOKENS if self.usd is None else self.usd > FREE_USD

    @property
    def sentence(self) -> str:
        """Return the estimate as text: "1,200 pieces of code, about 310k tokens, about $0.01"."""
        size = f"{self.tokens / 1000:,.0f}k" if self.tokens >= 1000 else f"{self.tokens}"
        said = f"{counted(self.chunks, 'piece')} of code, about {size} tokens"
        if not self.is_paid:
            return said
        return f"{said}, about ${max(self.usd, 0.01):.2f}" if self.usd is not None else f"{said}, at an unknown price"


def estimate_run(missing: Iterable[Missing], settings: EmbeddingSettings, *, is_paid: bool) -> Estimate:
    """Return the estimate for the vectors of these chunks. May import the table of prices: call it in a thread."""
    chunks = tokens = 0
    for one in missing:
        chunks += one.chunks
        chars = min(one.size / max(1, one.all_chunks), MAX_CHARS) + _HEAD_CHARS
        tokens += round(one.chunks * chars / _CHARS_PER_TOKEN)
    facts = lookup(settings.url, settings.model) if is_paid and settings.url else None
    usd = price_usd(facts, Usage(input_tokens=tokens)) if facts else None
    return Estimate(chunks, tokens, usd, is_paid)
