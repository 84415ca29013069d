"""Every measurement of `bench.editor`, in the order they are reported."""

from __future__ import annotations

from bench import at_home, bursts, chat_search, code_search, compacting, long_chat, resuming, starting, turning
from bench.figures import Measurement

MEASUREMENTS: tuple[Measurement, ...] = (
    *starting.MEASUREMENTS,
    *turning.MEASUREMENTS,
    *resuming.MEASUREMENTS,
    *compacting.MEASUREMENTS,
    *bursts.MEASUREMENTS,
    *long_chat.MEASUREMENTS,
    *at_home.MEASUREMENTS,
    *code_search.MEASUREMENTS,
    *chat_search.MEASUREMENTS,
)
