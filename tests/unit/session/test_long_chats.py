"""What a request costs in a long chat: it looks at what is new, not at what is there (lesson 31)."""

from __future__ import annotations

import pytest

from codecompanion.messages import Message, Usage
from codecompanion.session import native_side
from codecompanion.tokens import MessageCounter
from tests.unit.session.fakes import Bench, ScriptedAdapter, says
from tests.unit.session.test_native_compaction import talk


@pytest.mark.parametrize("reports", [True, False])
async def test_a_request_looks_only_at_new_messages(tmp_path, monkeypatch, reports):
    """Also at an endpoint that reports no usage."""
    usage = Usage(input_tokens=9_000, output_tokens=10) if reports else None
    bench = Bench(tmp_path, ScriptedAdapter("s", lambda request: says("answer", usage), native=True))
    session = await bench.open()
    for number in range(200):
        await session.attach(Message(id=f"f{number}", role="user", tag="file", path=f"{number}", content="words"))
    await talk(bench, session, 1)
    looked_at = []
    real_blocks, real_count = native_side.live_blocks, MessageCounter.count_messages

    def blocks(messages):
        looked_at.extend(messages)
        return real_blocks(messages)

    def count(self, messages):
        looked_at.extend(messages)
        return real_count(self, messages)

    monkeypatch.setattr(native_side, "live_blocks", blocks)
    monkeypatch.setattr(MessageCounter, "count_messages", count)
    await talk(bench, session, 3, first=2)
    assert 0 < len(looked_at) < 60
