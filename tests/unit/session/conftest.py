"""Short summaries for tests about other things."""

from __future__ import annotations

from pathlib import Path

import msgspec
import pytest

from codecompanion.session.compaction import summarise

JUDGING = frozenset(
    ("test_scripted_summarisers", "test_failing_summariser", "test_facts_in_small_windows", "test_unusable_writer")
)
"""Modules whose summarisers are judged as models are (R-526)."""


@pytest.fixture(autouse=True)
def short_texts_stand_for_summaries(request, monkeypatch):
    """Accept a text such as "SUMMARY" unchecked, like a summary supplied on the command line."""
    if Path(request.path).stem in JUDGING:
        return

    async def ask(*args, **kwargs):
        return msgspec.structs.replace(await asked(*args, **kwargs), source="caller")

    asked = summarise.ask_summary
    monkeypatch.setattr(summarise, "ask_summary", ask)
