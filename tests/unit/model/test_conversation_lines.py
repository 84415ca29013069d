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
    """A message by its text; another one is another one, whatever it says."""

    def __init__(self, text: str) -> None:
        self.text = text


def stored(said: Said) -> bytes:
    return encode({"role": "user", "content": said.text})


@given(st.data())
def test_whatever_becomes_of_a_view_its_lines_come_to_it(data):
    """R-463: messages join, leave, change and are put in between; what is read is what was there last."""
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


def test_what_joins_costs_a_line_and_nothing_else_is_told():
    """Lesson 31: not one of 1,000 messages is encoded again, and no run of them but one is named."""
    before = tuple(Said(str(number)) for number in range(1000))
    encoded = []

    def count(said):
        encoded.append(said)
        return stored(said)

    new = Said("new")
    (line,) = lines_of(*parts_of(before, (*before, new)), {}, count)
    assert encoded == [new]
    assert json.loads(line) == {"history": [[0, 1000], {"role": "user", "content": "new"}]}


def test_what_stays_is_named_in_runs():
    """An edit in the middle of 1,000 messages encodes one."""
    before = tuple(Said(str(number)) for number in range(1000))
    after = (*before[:10], Said("new"), *before[11:500], *before[600:])
    (line,) = lines_of(*parts_of(before, after), {}, stored)
    assert json.loads(line)["history"] == [
        [0, 10], {"role": "user", "content": "new"}, [11, 500], [600, 1000],
    ]  # fmt: skip


def test_files_are_told_when_they_were_read():
    """R-462: of the same file the last time counts; a chat that says nothing new may have read some."""
    first = lines_of([Said("x")], 0, {"a": (1, 2), "b": (1, 3)}, stored)
    second = lines_of([(0, 1)], 1, {"a": (2, 5)}, stored)
    history, files = read_lines([*first, *second], "f")
    assert files == {"a": [2, 5], "b": [1, 3]}
    assert len(history) == 1


@pytest.mark.parametrize("line", [b"{", b"[]", b"{}", b'{"history":[[0,3]]}', b'{"history":[["x",1]]}', b"\xff"])
def test_a_damaged_line_is_told(line):
    """R-474: whoever reads it falls through to the next."""
    with pytest.raises(StoreCorrupt, match=r"f is damaged \(line 1"):
        read_lines([line], "f")
