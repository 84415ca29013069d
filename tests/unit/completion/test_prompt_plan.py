"""The division of a prompt with project context (R-256)."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from codecompanion.completion.prompt_budgets import budgets, split, total_chars
from codecompanion.completion.prompt_plan import NO_ANCHOR, anchor_of, plan_prompt

TOTAL = budgets().total


def test_a_short_file_is_complete_and_the_project_gets_the_rest():
    plan = plan_prompt("a.py", "x = 1\n" * 100, "y = 2\n" * 50, TOTAL)
    assert (len(plan.window.prefix), len(plan.window.suffix)) == (600, 300)
    assert plan.knowledge_chars == budgets().max_knowledge


def test_a_long_file_leaves_the_project_its_minimum():
    plan = plan_prompt("a.txt", "x = 1\n" * 5_000, "y = 2\n" * 5_000, TOTAL)
    assert plan.knowledge_chars == budgets().min_knowledge
    assert len(plan.window.prefix) > 3 * len(plan.window.suffix)
    small = plan_prompt("a.txt", "x = 1\n" * 5_000, "y = 2\n" * 5_000, 1_000)
    assert small.knowledge_chars == 400


@given(st.integers(0, 12_000), st.integers(0, 4_000), st.integers(0, 12_000))
def test_the_parts_never_exceed_the_whole(before, after, total):
    shared = split(total, min(before, 8_000), min(after, 2_000))
    assert min(shared.knowledge, shared.prefix, shared.suffix) >= 0
    assert shared.knowledge + shared.prefix + shared.suffix <= total
    plan = plan_prompt("a.py", "import os\n" + "x" * before, "y" * after, total)
    size = len(plan.imports) + len(plan.window.prefix) + len(plan.window.suffix) + plan.knowledge_chars
    assert size <= max(total, len(plan.imports) + len(plan.window.suffix))


def test_a_model_of_four_thousand_tokens_has_room_for_both():
    """The prompt is limited to three characters per token, with room reserved for the reply."""
    assert total_chars(0, 128) == TOTAL
    assert total_chars(1_000_000, 128) == TOTAL
    assert total_chars(4_096, 128) / budgets().chars_per_token + 128 <= 4_096
    assert total_chars(1_024, 128) == (1_024 - 128) * 3
    assert total_chars(100, 128) == 0


def test_imports_outside_the_smaller_window_are_added():
    text = "import os\nfrom project import helper\n" + "x = 1\n" * 2_000
    plan = plan_prompt("a.py", text, "", TOTAL)
    assert plan.imports == "import os\nfrom project import helper\n"
    assert "helper" in plan.weights
    apart = plan_prompt("a.py", "x = 1\n" * 2_000, "", TOTAL, head="import os\n")
    assert apart.imports == "import os\n"


def test_a_window_starts_at_the_same_line_during_typing():
    """Otherwise the server would have to read the whole window again after every key."""
    text, anchor, starts = "".join(f"x_{number} = 1\n" for number in range(3_000)), "", []
    for key in "y = some_call(with_an_argument, another)\n" * 30:
        plan = plan_prompt("a.py", text, "", TOTAL, anchor=anchor)
        if anchor:
            starts.append(len(plan.window.above))
        anchor = anchor_of(plan.window)
        text += key
    assert len(set(starts)) <= 3
    assert all(text[start - 1] == "\n" for start in starts)


def test_a_completely_shown_file_has_no_anchor():
    assert anchor_of(plan_prompt("a.py", "x", "", TOTAL).window) == NO_ANCHOR
    assert plan_prompt("a.py", "x", "", TOTAL, anchor=NO_ANCHOR).window.prefix == "x"
