"""Conversations stored in increments: R-461, R-463, R-478."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from codecompanion.errors import StoreCorrupt
from codecompanion.model.checkpoint import encode
from codecompanion.model.conversation_lines import lines_of, parts_of, read_lines


class Said:
    """A message with a text; two messages are distinct even if their texts are equal."""

    def __init__(self, text: str) -> None:
        self.text = text


def stored(said: Said) -> bytes:
    return encode({"role": "user", "content": said.text})


@given(st.data())
def test_the_lines_of_a_changing_view_yield_its_final_state(data):
    """R-463: messages are added, removed, changed and inserted; reading yields the final state."""
    before: tuple[Said, ...] = ()
    lines: list[bytes] = []
    for _ in range(data.draw(st.integers(1, 6))):
        after = [said for said in before if data.draw(st.integers(0, 9))]
        for _ in range(data.draw(st.integers(0, 3))):
            place = data.draw(st.sampled_from([len(after), data.draw(st.integers(0, len(after)))]))
            after.insert(place, Said(data.draw(st.text(max_size=5))))
        lines += lines_of(*parts_of(before, tuple(after)), {}, stored)
        before = tuple(after)
    history, files = read_lines(lines, "f")
    assert [message["content"] for message in history] == [said.text for said in before]
    assert files == {}


def test_an_added_message_costs_one_line():
    """Lesson 31: none of 1,000 messages is encoded again, and they are named as a single run."""
    before = tuple(Said(str(number)) for number in range(1000))
    encoded = []

    def count(said):
        encoded.append(said)
        return stored(said)

    new = Said("new")
    (line,) = lines_of(*parts_of(before, (*before, new)), {}, count)
    assert encoded == [new]
    assert json.loads(line) == {"history": [[0, 1000], {"role": "user", "content": "new"}]}


def test_kept_messages_are_named_in_runs():
    """An edit in the middle of 1,000 messages encodes one."""
    before = tuple(Said(str(number)) for number in range(1000))
    after = (*before[:10], Said("new"), *before[11:500], *before[600:])
    (line,) = lines_of(*parts_of(before, after), {}, stored)
    assert json.loads(line)["history"] == [
        [0, 10], {"role": "user", "content": "new"}, [11, 500], [600, 1000],
    ]  # fmt: skip


def test_read_files_are_recorded_when_they_change():
    """R-462: for a file read twice, the last time counts; files may be read even if no message is added."""
    first = lines_of([Said("x")], 0, {"a": (1, 2), "b": (1, 3)}, stored)
    second = lines_of([(0, 1)], 1, {"a": (2, 5)}, stored)
    history, files = read_lines([*first, *second], "f")
    assert files == {"a": [2, 5], "b": [1, 3]}
    assert len(history) == 1


@pytest.mark.parametrize("line", [b"{", b"[]", b"{}", b'{"history":[[0,3]]}', b'{"history":[["x",1]]}', b"\xff"])
def test_a_damaged_line_is_reported(line):
    """R-474: the error makes its reader try the next candidate."""
    with pytest.raises(StoreCorrupt, match=r"f is damaged \(line 1"):
        read_lines([line], "f")
