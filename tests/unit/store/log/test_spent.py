"""The costs of chats are a running total in the store: a query takes constant time for any logs (R-358)."""

from __future__ import annotations

import pytest

from codecompanion.model.history import CompactionStarted, RequestEnded, UsageReported, decode_payload, encode_payload
from codecompanion.model.messages import Usage
from codecompanion.store.log.totals import Spent
from tests.unit.store.conftest import CREATED, Desk, said


def cost(usd: float | None) -> UsageReported:
    return UsageReported(
        message_id="m", adapter="a", model="m", usage=Usage(5, 1), estimated_prompt_tokens=5, cost_usd=usd
    )


def test_the_total_follows_every_append_and_survives_a_restart(desk: Desk) -> None:
    """R-358, R-359: per chat and across chats; a call without a known price is counted apart, never as $0."""
    store = desk.open()
    assert store.spent() == Spent()
    store.append("a", [CREATED, said("hi"), cost(0.5), cost(None)]).result()
    store.append("b", [CREATED, cost(0.25)]).result()
    assert store.spent("a") == Spent(0.5, 1)
    assert store.spent() == Spent(0.75, 1)
    assert store.spent("nowhere") == Spent()
    store.close()
    store = desk.open()
    store.append("a", [cost(0.5)]).result()
    assert store.spent("a") == Spent(1.0, 1)


def test_a_salvaged_store_counts_again(desk: Desk) -> None:
    """The totals are rebuilt from the log like everything else that is not an event."""
    store = desk.open()
    store.append("a", [CREATED, cost(0.5), cost(None)]).result()
    store.close()
    content = bytearray(desk.path.read_bytes())
    content[:100] = b"\0" * 100
    desk.path.write_bytes(content)
    assert desk.open().spent("a") == Spent(0.5, 1)


OLD = (
    b'{"type":"request_sent","turn_id":"t","adapter":"a","model":"m","messages":3,"estimated_tokens":9}',
    b'{"type":"usage_reported","message_id":"m","adapter":"a","model":"m","usage":{"input_tokens":7},'
    b'"estimated_prompt_tokens":9,"cost_usd":0.5}',
    b'{"type":"compaction_started","compaction_id":"c","trigger":"manual","summariser":"m","tokens_before":9}',
)


@pytest.mark.parametrize("stored", OLD)
def test_logs_of_older_versions_can_still_be_read(stored: bytes) -> None:
    """New fields have a default, and are omitted if unused."""
    payload = decode_payload(stored)
    assert encode_payload(payload) == stored
    assert getattr(payload, "request_id", "") == ""
    assert isinstance(payload, CompactionStarted) or payload.adapter == "a"  # type: ignore[union-attr]


def test_the_end_of_a_request_survives_a_round_trip() -> None:
    ended = RequestEnded(request_id="r", result="failed", duration_ms=12, error="no network")
    assert decode_payload(encode_payload(ended)) == ended
