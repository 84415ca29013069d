"""Cycles: R-002, R-508…R-510."""

from __future__ import annotations

import pytest

from codecompanion.model.cycles import assign_cycles, current_cycle, is_aged
from codecompanion.model.messages import Message


def cycles(*roles_and_fields):
    made = [Message(id=str(i), role=role, **fields) for i, (role, fields) in enumerate(roles_and_fields)]
    return [message.cycle for message in assign_cycles(made)]


def test_cycles_start_at_one_and_increase_with_typed_messages():
    """R-002, R-508: a cycle is a user message and everything up to the next one."""
    assert cycles(("system", {}), ("user", {}), ("assistant", {}), ("tool", {}), ("user", {}), ("user", {})) == [
        1, 1, 1, 1, 2, 3,
    ]  # fmt: skip


def test_tagged_messages_open_no_cycle():
    """R-002, R-509: these are summaries, rules, attachments and our own "continue" prompts."""
    tags = [{"tag": tag} for tag in ("rules", "compact_summary", "file", "go_on")]
    assert cycles(("user", {}), *(("user", tag) for tag in tags), ("user", {})) == [1, 1, 1, 1, 1, 2]


def test_recorded_cycles_stay_and_set_the_counter():
    assert cycles(("user", {"cycle": 6, "tag": "compact_summary"}), ("user", {}), ("assistant", {})) == [6, 7, 7]
    assert cycles(("system", {"cycle": 1}), ("user", {}), ("user", {"cycle": 9}), ("assistant", {})) == [1, 1, 9, 9]


@pytest.mark.parametrize(("cycle", "aged"), [(None, False), (3, False), (2, True), (5, False)])
def test_a_message_is_aged_outside_the_kept_cycles(cycle, aged):
    """R-510, R-512: in cycle 5 with three kept cycles, cycle 3 is kept and cycle 2 is not."""
    assert is_aged(cycle, 5, 3) is aged


def test_an_empty_chat_is_in_its_first_cycle():
    assert current_cycle([]) == 1
    assert assign_cycles([]) == ()
