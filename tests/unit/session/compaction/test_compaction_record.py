"""The figures that a compaction reports about itself."""

from __future__ import annotations

import pytest

from codecompanion.model.messages import LOOKING_TAG, REVERTED_TAG, SUMMARY_TAG, UPDATE_TAG, Message
from codecompanion.session.compaction.compaction_record import CompactionRecord
from tests.unit.session.fakes import Bench, ScriptedAdapter


@pytest.mark.parametrize(("tag", "count"), [(LOOKING_TAG, 2), (REVERTED_TAG, 2), (SUMMARY_TAG, 2), (UPDATE_TAG, 3)])
async def test_the_card_counts_the_messages_a_reader_sees(tmp_path, tag, count):
    """Seen: "38 messages summarised" right above "Summary · 41 messages"; three were internal and never shown."""
    bench = Bench(tmp_path, ScriptedAdapter("s", []))
    session = await bench.open()
    record = CompactionRecord(bench.services, session.log, lambda is_on: None)
    removed = (
        Message(id="a", role="user", content="a line", tag=tag, cycle=1),
        Message(id="b", role="user", content="question", cycle=1),
        Message(id="c", role="assistant", content="answer", cycle=1),
    )
    report = record.report(removed, "a summary")
    assert report.messages == count
    assert report.cycles == (1, 1)
