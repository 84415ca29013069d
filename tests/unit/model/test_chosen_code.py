"""Pinned code, and code excluded from a question, are determined by the log (`/context`)."""

from __future__ import annotations

import pytest

from codecompanion.model.chosen_code import (
    GATHERED_EVENT,
    NOTHING_CHOSEN,
    ChosenPiece,
    anchor_of,
    choice_event,
    chosen_after,
    chosen_in,
)
from codecompanion.model.history import LogEvent, PolicyEvent, TitleSet, decode_payload, encode_payload

POP, PUSH = ChosenPiece("a.py", 10, 19, "method", "pop"), ChosenPiece("a.py", 30, 39, "method", "push")


def sent(*places, message_id="m1"):
    pieces = [
        {"path": path, "start": start, "end": start + 9, "name": name, "kind": "method", "source": "pinned"}
        for path, start, name in places
    ]
    return PolicyEvent(name=GATHERED_EVENT, fields={"message_id": message_id, "pieces": pieces})


def after(*payloads):
    chosen = NOTHING_CHOSEN
    for payload in payloads:
        chosen = chosen_after(chosen, payload)
    return chosen


def test_a_choice_replaces_the_previous_one():
    assert after(choice_event(POP, "pinned"), choice_event(PUSH, "pinned")).pinned == (POP, PUSH)
    assert after(choice_event(POP, "pinned"), choice_event(POP, "pinned")).pinned == (POP,)
    both = after(choice_event(POP, "pinned"), choice_event(POP, "left_out"))
    assert (both.pinned, both.left_out) == ((), (POP,))
    assert after(choice_event(POP, "left_out"), choice_event(POP, "pinned")).left_out == ()
    assert after(choice_event(POP, "pinned"), choice_event(POP, "")) == NOTHING_CHOSEN
    assert after(TitleSet(title="x")) is NOTHING_CHOSEN


def test_an_exclusion_lasts_until_a_question_got_code():
    chosen = after(choice_event(POP, "left_out"), choice_event(PUSH, "pinned"), sent(message_id=""))
    assert chosen.left_out == (POP,)
    chosen = chosen_after(chosen, sent())
    assert (chosen.pinned, chosen.left_out) == ((PUSH,), ())


def test_a_pin_is_identified_by_the_place_last_sent():
    chosen = after(choice_event(POP, "pinned"), sent(("a.py", 110, "pop")))
    assert [(one.start, one.end) for one in chosen.pinned] == [(110, 119)]
    assert after(choice_event(POP, "pinned"), sent(("b.py", 110, "pop"))).pinned == (POP,)


def test_two_definitions_of_one_name_keep_their_order():
    first, second = ChosenPiece("a.py", 10, 12, "method", "__init__"), ChosenPiece("a.py", 50, 52, "method", "__init__")
    pinned = (choice_event(second, "pinned"), choice_event(first, "pinned"))
    chosen = after(*pinned, sent(("a.py", 60, "__init__"), ("a.py", 100, "__init__")))
    assert [one.start for one in chosen.pinned] == [100, 60], "both moved by 50 lines"
    assert [one.start for one in after(*pinned, sent(("a.py", 60, "__init__"))).pinned] == [50, 10], "one is missing"


@pytest.mark.parametrize(
    ("text", "anchor"),
    [
        ("class Queue:\n    pass", ("class Queue:", 0)),
        ("\n# ---\n    }\nimport logging\n", ("import logging", 3)),
        ("a = 1\nbc = 2", ("bc = 2", 1)),
        ("---\n\n", ("", 0)),
        ("", ("", 0)),
        ("x" + "y" * 500 + "abcdefg", ("x" + "y" * 199, 0)),
    ],
)
def test_a_piece_without_a_name_is_identified_by_a_meaningful_line(text, anchor):
    assert anchor_of(text) == anchor


def test_it_survives_the_log_also_with_a_damaged_entry():
    stored = [
        choice_event(POP, "pinned"),
        PolicyEvent(name="code_chosen", fields={"choice": "pinned", "start": "x"}),
        sent(),
    ]
    events = [LogEvent(seq, 0.0, decode_payload(encode_payload(one))) for seq, one in enumerate(stored)]
    assert chosen_in(events).pinned == (POP, ChosenPiece(""))
