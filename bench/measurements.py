"""Every measurement of `bench.editor`, in reporting order."""

from __future__ import annotations

from bench import (
    bursts,
    chat_search,
    code_search,
    compacting,
    edits_and_mcp,
    long_chat,
    resume_times,
    startup,
    turn_times,
)
from bench.figures import Measurement

MEASUREMENTS: tuple[Measurement, ...] = (
    *startup.MEASUREMENTS,
    *turn_times.MEASUREMENTS,
    *resume_times.MEASUREMENTS,
    *compacting.MEASUREMENTS,
    *bursts.MEASUREMENTS,
    *long_chat.MEASUREMENTS,
    *edits_and_mcp.MEASUREMENTS,
    *code_search.MEASUREMENTS,
    *chat_search.MEASUREMENTS,
)
