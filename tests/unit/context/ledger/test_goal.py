"""The goal of a session (R-319)."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from codecompanion.context.ledger.goal import better_goal, goal_of, goal_of_all, is_usable_goal

BUILD = "Build a parser for the config language."
DIALOGUES = {
    "the first request": ((BUILD, "Add tests.", "And what does load() do?", "Fix the typo in README.md"), BUILD),
    "no small talk": (("Hello there!", "How are you today?", BUILD, "Thanks a lot!", "Have a nice day"), BUILD),
    "no question about time": (("What time is it in Rome?", BUILD, "How long will it take?", "what day is it"), BUILD),
    "no steering": (("continue", BUILD, "ok, go on", "yes please", "/compact names", "/exit"), BUILD),
    "no rules": (("Never touch the store.", "File names are in lower case.", BUILD, "Do not use print."), BUILD),
    "rules when there is nothing else": (("Never touch the store.", "thanks"), "Never touch the store."),
    "nothing at all": (("hi", "what time is it?", "ok"), ""),
    "goal": ((BUILD, "Goal: a linter for the same language"), "Goal: a linter for the same language"),
    "the goal is now": ((BUILD, "The goal is now to port it to Rust."), "The goal is now to port it to Rust."),
    "i want": ((BUILD, "Good. Now I want a command line for it."), "Good. Now I want a command line for it."),
    "i'd like you to": ((BUILD, "I’d like you to port it to Rust"), "I’d like you to port it to Rust"),
    "let's build": ((BUILD, "Nice! Let's build the formatter next."), "Nice! Let's build the formatter next."),
    "wishes that are none": (
        (BUILD, "I want to know why.", "I want it fast.", "I need help", "I want to thank you.", "Let's see",
         "let's do it", "I want you to never use print.", "I need a break",
         "then we need to fix that bug", "The task is done.", "I like it"),
        BUILD,
    ),
    "the last of several": (("I want a parser.", "I want a linter.", "add tests"), "I want a linter."),
    "on a line of its own": (("Hi\n\nI work on a compiler\nGoal: port it\nto Rust",), "Goal: port it to Rust"),
    "German": (("Hallo!", "Baue einen Parser.", "Danke", "Ich will jetzt nicht mehr.", "Ich möchte ein CLI."),
               "Ich möchte ein CLI."),
    "Chinese": (("你好", "写一个解析器。", "谢谢", "现在几点？"), "写一个解析器。"),
}  # fmt: skip


@pytest.mark.parametrize("name", DIALOGUES)
def test_the_goal_of_a_dialogue_is_its_first_request(name):
    """R-319: the first substantive request, until a new goal is stated; talk, thanks and the time never replace it."""
    said, goal = DIALOGUES[name]
    assert goal_of_all(said) == goal


def test_of_a_long_message_the_stated_goal_stays():
    """R-319: the goal has 240 bytes; truncation must not remove the request itself."""
    long = (
        "The old loader reads everything twice, which we found out last week. " * 9 + "I want a loader that reads once."
    )
    assert goal_of_all([BUILD, long]) == "I want a loader that reads once."
    assert goal_of("Explain this. " * 60).startswith("Explain this. Explain")


@pytest.mark.parametrize(
    "text", ["no longer crash on start", "next, add tests", "continue with a.py", "```\nx = 1\n```"]
)
def test_short_substantive_words_are_usable(text):
    """R-319: a few words can be a goal."""
    assert is_usable_goal(text)


SAID = st.lists(
    st.sampled_from([text for said, _ in DIALOGUES.values() for text in said])
    | st.text("ab. I wantGoal:\n", max_size=20),
    max_size=8,
)


@pytest.mark.sweep
@given(SAID, SAID)
@settings(max_examples=300)
def test_a_goal_carried_over_equals_that_of_the_whole_log(older, newer):
    """R-313, R-319: an incremental summary has the same goal as one rebuilt from the log."""
    assert better_goal(goal_of_all(older), goal_of_all(newer)) == goal_of_all([*older, *newer])


def test_a_question_about_the_time_is_parsed_in_one_way_only():
    """An ambiguous pattern would double the work with each " is it"; with 200 of them it would never end."""
    assert is_usable_goal("what time" + " is it" * 200 + " x")
    assert not is_usable_goal("what time" + " is it" * 200)
