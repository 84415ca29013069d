"""Events on their way to the editor: merged, batched, in order, paced."""

from __future__ import annotations

import json
from itertools import pairwise
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from codecompanion.engine.outbox import (
    FIRST_LIMIT_BYTES,
    MAX_LIMIT_BYTES,
    MIN_LIMIT_BYTES,
    SLICE_CHARS,
    Outbox,
    Pacer,
)
from codecompanion.wire.events import (
    ChatOpened,
    Entry,
    Event,
    Notice,
    Reasoning,
    Redrawn,
    Reply,
    Restored,
    State,
    Text,
)


def drain(outbox: Outbox, limit: int = FIRST_LIMIT_BYTES) -> list[list[dict[str, Any]]]:
    """Return all batches."""
    batches = []
    while (batch := outbox.take(limit)) is not None:
        batches.append(json.loads(batch))
    return batches


def filled(*events: Event) -> Outbox:
    """Return an outbox with `events`."""
    outbox = Outbox()
    for event in events:
        outbox.put(event)
    return outbox


def test_consecutive_chunks_of_a_chat_become_one_event() -> None:
    """The wire costs depend on the number of objects, not on bytes (design "Wire")."""
    (batch,) = drain(filled(*(Text(chat="a", text=f"{number} ") for number in range(500))))
    assert [event["text"] for event in batch] == ["".join(f"{number} " for number in range(500))]


def test_another_event_of_the_chat_ends_the_run() -> None:
    """Order within a chat is kept."""
    (batch,) = drain(filled(Text(chat="a", text="1"), State(chat="a", state="idle"), Text(chat="a", text="2")))
    assert [event["type"] for event in batch] == ["text", "state", "text"]


def test_events_of_other_chats_do_not_end_the_run() -> None:
    """Two chats that stream at once still cost two events per flush."""
    pieces = [Text(chat=chat, text=chat) for _ in range(10) for chat in "ab"]
    (batch,) = drain(filled(*pieces))
    assert [(event["chat"], event["text"]) for event in batch] == [("a", "a" * 10), ("b", "b" * 10)]


def test_reasoning_and_reply_are_not_merged() -> None:
    """One is folded, the other is not."""
    (batch,) = drain(filled(Reasoning(chat="a", text="why"), Text(chat="a", text="so"), Text(chat="a", text="!")))
    assert [(event["type"], event["text"]) for event in batch] == [("reasoning", "why"), ("text", "so!")]


def test_a_chunk_added_after_a_flush_is_not_lost() -> None:
    """An event that was sent is no longer extended."""
    outbox = filled(Text(chat="a", text="1"))
    drain(outbox)
    outbox.put(Text(chat="a", text="2"))
    assert drain(outbox)[0][0]["text"] == "2"
    assert outbox.is_empty


def test_a_long_text_is_split_into_batches() -> None:
    """No flush may stall the editor, however much arrives at once."""
    batches = drain(filled(Text(chat="a", text="x" * 1_000_000)))
    assert sum(len(batch[0]["text"]) for batch in batches) == 1_000_000
    assert max(len(batch[0]["text"]) for batch in batches) <= FIRST_LIMIT_BYTES + SLICE_CHARS


def test_an_event_over_the_limit_is_sent_alone() -> None:
    """It cannot be split, but it must not wait forever."""
    big = Reply(id=1, ok=True, result="y" * 100_000)
    batches = drain(filled(Notice(level="INFO", text="a"), big, Notice(level="INFO", text="b")))
    assert [len(batch) for batch in batches] == [1, 1, 1]


def test_other_events_are_more_urgent_than_streamed_text() -> None:
    """Only a stream may be made to wait."""
    outbox = filled(Text(chat="a", text="1"))
    assert not outbox.is_pressing
    outbox.put(State(chat="a", state="idle"))
    assert outbox.is_pressing
    drain(outbox)
    assert not outbox.is_pressing


@pytest.mark.parametrize(("pieces", "whole"), [(["\ud83d", "\ude00"], "😀"), (["a\ud83d"], "a\ufffd")])
def test_half_an_emoji_does_not_break_the_batch(pieces: list[str], whole: str) -> None:
    """Providers split surrogate pairs between chunks; a single surrogate cannot be encoded."""
    (batch,) = drain(filled(*(Text(chat="a", text=piece) for piece in pieces)))
    assert batch[0]["text"] == whole


def piece(number: int, chat: str = "a", *, first: bool = False) -> Restored:
    """Return a piece of a resumed chat."""
    return Restored(chat=chat, entries=(Entry(kind="note", text=f"{number} " + "x" * 500),), first=first)


def told(batches: list[list[dict[str, Any]]]) -> list[str]:
    """Return the sent events by type, or by number for pieces."""
    return [e["entries"][0]["text"].split()[0] if e["type"] == "restored" else e["type"] for b in batches for e in b]


def test_older_pieces_come_after_everything_else_in_order() -> None:
    outbox = filled(piece(0, first=True), piece(1), piece(2), Text(chat="a", text="now"))
    outbox.put(State(chat="a", state="idle"))
    assert outbox.is_pressing
    assert told(drain(outbox, 600)) == ["0", "text", "state", "1", "2"]
    assert outbox.is_empty
    assert not outbox.is_pressing


def test_an_event_that_fills_a_batch_is_not_overtaken_by_older_pieces() -> None:
    """The newest piece of a chat is the largest event before its older ones, and the user waits for it."""
    outbox = filled(State(chat="a", state="idle"), piece(0, first=True), piece(1))
    assert told(drain(outbox, 400)) == ["state", "0", "1"]


def test_a_stream_does_not_block_older_pieces() -> None:
    """Each batch has room for an older piece, as long as half of the batch is free."""
    outbox = filled(piece(1), piece(2))
    sent = []
    for _ in range(2):
        outbox.put(Text(chat="a", text="now"))
        sent.append(json.loads(outbox.take(600) or "[]"))
    assert told(sent) == ["text", "1", "text", "2"]


@pytest.mark.parametrize(
    "again",
    [Redrawn(chat="a"), ChatOpened(chat="a", title="", adapter="", model="", window=1, policy="")],
    ids=["redrawn", "opened"],
)
def test_pieces_of_a_redrawn_chat_are_not_sent_twice(again: Event) -> None:
    outbox = filled(piece(1), piece(2, "b"), again, piece(3))
    assert told(drain(outbox)) == [str(again.__struct_config__.tag), "2", "3"]


def test_an_event_that_cannot_be_json_is_refused_at_its_source() -> None:
    """The error belongs to the emitter, not to the flusher."""
    with pytest.raises(TypeError):
        Outbox().put(Reply(id=1, ok=True, result=object()))


@given(
    st.lists(
        st.one_of(
            st.builds(Text, chat=st.sampled_from("ab"), text=st.text(max_size=20)),
            st.builds(Reasoning, chat=st.sampled_from("ab"), text=st.text(max_size=20)),
            st.builds(State, chat=st.sampled_from("ab"), state=st.sampled_from(["idle", "streaming"])),
        ),
        max_size=40,
    ),
    st.integers(1, 500),
)
def test_each_chat_sees_its_events_complete_and_in_order(events: list[Event], limit: int) -> None:
    """Merging and splitting change neither order nor content."""

    def story(chat: str, told: list[tuple[str, str, str]]) -> list[tuple[str, str]]:
        merged: list[tuple[str, str]] = []
        for of, kind, text in told:
            if of != chat or (kind != "state" and not text):
                continue
            if merged and kind != "state" and merged[-1][0] == kind:
                merged[-1] = (kind, merged[-1][1] + text)
            else:
                merged.append((kind, text))
        return merged

    put = [(e.chat, type(e).__name__.lower(), e.state if isinstance(e, State) else e.text) for e in events]  # type: ignore[attr-defined]
    taken = [
        (event["chat"], event["type"], event["state"] if event["type"] == "state" else event["text"])
        for batch in drain(filled(*events), limit)
        for event in batch
    ]
    assert all(story(chat, put) == story(chat, taken) for chat in "ab")


def test_a_slow_editor_gets_smaller_and_rarer_batches() -> None:
    """Design "Streaming": clamp(4 x smoothed cost, 25 ms, 250 ms), and no flush that stalls."""
    pacer = Pacer()
    assert pacer.text_gap_s == 0.025
    gaps, limits = [pacer.text_gap_s], [pacer.limit_bytes]
    for _ in range(20):
        pacer.record(40.0, 16_000)
        gaps.append(pacer.text_gap_s)
        limits.append(pacer.limit_bytes)
    assert all(one <= other for one, other in pairwise(gaps))
    assert all(one >= other for one, other in pairwise(limits))
    assert pacer.text_gap_s == pytest.approx(0.16, rel=0.01)
    assert pacer.limit_bytes == MIN_LIMIT_BYTES
    for _ in range(60):
        pacer.record(1000.0, 16_000)
    assert pacer.text_gap_s == 0.25


def test_a_fast_editor_gets_larger_batches_up_to_a_limit() -> None:
    """A burst is on the screen sooner."""
    pacer = Pacer()
    for _ in range(50):
        pacer.record(0.1, 16_000)
    assert pacer.limit_bytes == MAX_LIMIT_BYTES
    assert pacer.text_gap_s == 0.025
    assert pacer.gap_s == 0.002


def test_small_batches_do_not_affect_the_batch_size() -> None:
    """A state event of 60 bytes that costs 2 ms must not shrink the batches of a stream."""
    pacer = Pacer()
    for _ in range(50):
        pacer.record(2.0, 60)
    assert pacer.limit_bytes == FIRST_LIMIT_BYTES
