"""Prompts that the user's own server may still have in its cache."""

from __future__ import annotations

from codecompanion.adapters.prompt_slots import MAX_OWNERS, PromptSlots


def test_a_prompt_loses_its_slot_when_as_many_others_were_read_as_there_are_slots() -> None:
    slots = PromptSlots()
    for at, owner in enumerate(("a", "b", "a")):
        slots.read(owner, at)
    assert [slots.loss(owner, 1, -1) for owner in ("a", "b")] == ["", "other_request"]
    assert slots.loss("b", 2, -1) == ""
    assert slots.loss("b", 0, -1) == "", "nobody has said how many slots there are"
    assert slots.loss("c", 1, -1) == "", "nothing is known of it"


def test_a_server_that_was_away_has_nothing_left_until_it_reads_the_prompt_again() -> None:
    slots = PromptSlots()
    slots.read("a", 1.0)
    assert slots.loss("a", 4, 2.0) == "restart"
    slots.read("a", 3.0)
    assert slots.loss("a", 4, 2.0) == ""


def test_a_server_that_keeps_more_prompts_than_slots_has_lost_none_to_others() -> None:
    """llama.cpp with `--cache-ram` keeps more prompts than it has slots; a restart still loses them."""
    slots = PromptSlots()
    slots.read("a", 1.0)
    slots.read("b", 2.0)
    slots.learn_kept()
    assert slots.loss("a", 1, -1) == ""
    assert slots.loss("a", 1, 3.0) == "restart"


def test_few_owners_are_remembered() -> None:
    slots = PromptSlots()
    for number in range(3 * MAX_OWNERS):
        slots.read(str(number), number)
    assert slots.loss("0", 1, -1) == ""
    assert slots.loss(str(3 * MAX_OWNERS - 2), 1, -1) == "other_request"
