"""kill -9 of a writing host at any moment: confirmed writes survive (lesson 36)."""

from __future__ import annotations

import random

import pytest

from .conftest import Desk, Start

WRITE_FOREVER = """
store = open_store(folder)
store.acquire("c").result()
tell("ready")
number = 0
while True:
    futures = [store.append("c", [said(f"{number + more}")]) for more in range(5)]
    if number % 50 == 0:
        store.save_partial("c", f"partial {number}")
        tell("blob", store.put_blob(str(number).encode() * 1000))
    for more, future in enumerate(futures):
        future.result()
        tell("durable", number + more)
    number += 5
"""


@pytest.mark.parametrize("seed", range(6))
def test_every_confirmed_write_survives_kill_9(desk: Desk, start: Start, seed: int) -> None:
    """The host is killed after some confirmed writes; nothing before the kill is lost, and the next host may write."""
    rounds = random.Random(seed)
    confirmed = -1
    blobs: list[str] = []
    for _ in range(2):
        process = start(WRITE_FOREVER)
        assert process.stdout is not None
        kill_after = rounds.randrange(1, 400)
        seen = [process.stdout.readline() for _ in range(kill_after)]
        process.kill()  # it runs ahead of the output read here: anywhere between two writes
        seen += process.stdout.read().splitlines(keepends=True)
        whole = [line.split() for line in seen if line.endswith("\n")]  # the last one may be cut by the kill
        durable = [int(words[1]) for words in whole if words[0] == "durable"]
        blobs += [words[1] for words in whole if words[0] == "blob"]
        if durable:
            confirmed = durable[-1]
        store = desk.open()
        events = store.load_events("c")
        assert [event.seq for event in events] == list(range(1, len(events) + 1))
        texts = [event.payload.message.text for event in events]  # type: ignore[union-attr]
        last_run = texts[len(texts) - texts[::-1].index("0") - 1 :] if "0" in texts else []
        assert last_run == [str(number) for number in range(len(last_run))]
        if durable:
            assert len(last_run) > confirmed, f"{confirmed} was durable, the log ends at {last_run[-3:]}"
        for name in blobs:
            assert store.read_blob(name)
        assert store.check() == []
        store.acquire("c").result()
        store.close()
    assert desk.reports == []


def test_a_partial_reply_and_a_draft_survive_kill_9(desk: Desk, start: Start) -> None:
    """Scratch is written without fsync, and still outlives its process."""
    process = start("""
        store = open_store(folder)
        store.save_draft("c", "my draft").result()
        store.save_partial("c", "half a reply").result()
        tell("saved")
        sys.stdin.read()
    """)
    assert process.stdout is not None
    assert process.stdout.readline() == "saved\n"
    process.kill()
    process.wait()
    store = desk.open()
    assert (store.load_draft("c"), store.load_partial("c")) == ("my draft", "half a reply")
