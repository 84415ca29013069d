"""The rendered history summary: R-316, R-317, R-318."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from codecompanion.context.artifact.artifact import (
    Artifact,
    Decision,
    Episode,
    OpenThread,
    PageInHint,
    Verification,
    WorkspaceFact,
)
from codecompanion.context.artifact.render_artifact import budget_bytes, render
from codecompanion.context.ledger.lines import cut_bytes
from codecompanion.context.strategy_parameters import SummarySize

FULL = Artifact(
    session_objective="Build the parser",
    constraints=("no new dependency",),
    settled_decisions=(Decision("use A", "fast", "superseded", "turn-1"), Decision("use B", "", "active", "turn-2")),
    completed_episodes=(
        Episode("e1", "wrote it", ("a.py", "b.py"), (Verification("tool_result", "make test", False),), ("turn-1",)),
    ),
    open_threads=(
        OpenThread("tests", "pending", blocking=True),
        OpenThread("the key", "blocked", True, "user"),
        OpenThread("docs", "deferred"),
        OpenThread("benchmark", "pending"),
    ),
    workspace_facts=(WorkspaceFact("", "main is protected"), WorkspaceFact("a.py", "has the grammar")),
    page_in_hints=(PageInHint("for the output of grep", call_ids=("c7",)),),
)
TEXT = """Compaction Summary:

## Goal
- Build the parser

## Constraints & Preferences
- no new dependency

## Progress

### Done
- turn-1: wrote it

### In Progress
- tests

### Blocked
- waiting on the user: the key

## Key Decisions
- [superseded] use A (because fast)
- use B

## Next Steps
- [deferred] docs
- benchmark

## Critical Context
- turn-1: failed: make test
- main is protected

## Relevant Files
- a.py: has the grammar
- b.py
- recall c7 for the output of grep"""


def test_the_sections_have_their_lines():
    """R-316: the seven sections are in order, with one line per item; superseded and user-owned items are marked."""
    assert render(FULL, 4096) == TEXT


def test_an_empty_section_is_marked_none():
    """R-316."""
    text = render(Artifact(), 4096)
    assert text.count("- (none)") == 9
    assert text.startswith("Compaction Summary:\n\n## Goal\n- (none)\n\n## Constraints & Preferences\n- (none)")


@pytest.mark.parametrize(
    ("limit", "target", "expected"),
    [(8_000, 0, 1024), (32_000, 0, 2000), (200_000, 0, 4096), (200_000, 2_000, 2000), (32_000, 19_200, 2000)],
)
def test_the_budget_follows_limit_and_target(limit, target, expected):
    """R-317: the budget is limit/64 within 256…1024 tokens, at most a quarter of the target, at 4 bytes per token."""
    assert budget_bytes(SummarySize(), limit, target) == expected


def test_a_small_budget_keeps_goal_constraints_and_warnings():
    """R-317 [proposed]: Critical Context is placed third although it is shown sixth."""
    long = Artifact(
        session_objective="goal " * 60,
        constraints=("constraint " * 40,),
        workspace_facts=(WorkspaceFact("", "never push to main"),),
        completed_episodes=tuple(Episode(f"e{i}", f"episode {i} " * 40, (f"{i}.py",)) for i in range(20)),
        settled_decisions=tuple(Decision(f"decision {i} " * 30) for i in range(20)),
    )
    text = render(long, 1024)
    assert len(text.encode()) <= 1024
    assert "never push to main" in text
    assert "## Relevant Files" not in text
    order = [line for line in text.splitlines() if line.startswith("#")]
    assert order == [line for line in TEXT.splitlines() if line in order]


RULE = "Never touch part {n:02} of the store, not even when a test asks for it."
WISH = "Keep part {n:02} of the store as short as the others, if you can."
WARNING = "The key {n:02} of the store must stay in its vault until the release."
NOTE = "Part {n:02} of the store is slower than the others, as measured."


def with_57(strict_every: int, **fields) -> Artifact:
    """Return 57 constraints and 57 warnings; every `strict_every`-th one is strict."""
    strict = {n for n in range(57) if n % strict_every == 0}
    return Artifact(
        constraints=tuple((RULE if n in strict else WISH).format(n=n) for n in range(57)),
        workspace_facts=tuple(WorkspaceFact("", (WARNING if n in strict else NOTE).format(n=n)) for n in range(57)),
        **fields,
    )


def numbers(text: str, form: str) -> list[int]:
    """Return the numbers of the lines in the text that have this form, in order."""
    lines = text.splitlines()
    return [n for line in lines for n in range(57) if line == f"- {form.format(n=n)}"]


BUSY = {
    "session_objective": "build the store " * 20,
    "completed_episodes": tuple(Episode(f"e{i}", f"did {i} " * 20, (f"src/{i}.py",)) for i in range(60)),
    "settled_decisions": tuple(Decision(f"decision {i} " * 9) for i in range(40)),
    "open_threads": tuple(OpenThread(f"thread {i} " * 9) for i in range(40)),
}


@pytest.mark.parametrize("fields", [{}, BUSY], ids=["alone", "busy"])
def test_of_57_constraints_and_57_warnings_strict_ones_stay_then_the_newest(fields):
    """R-317 [decided]: 4096 bytes; items with never, must, always or do not come first, then the newest."""
    text = render(with_57(strict_every=5, **fields), 4096)
    assert 3900 < len(text.encode()) <= 4096
    strict = list(range(0, 57, 5))
    assert numbers(text, RULE) == numbers(text, WARNING) == strict
    wishes, notes = numbers(text, WISH), numbers(text, NOTE)
    newest = [n for n in range(57) if n not in strict]
    assert wishes == newest[len(newest) - len(wishes) :]
    assert notes == newest[len(newest) - len(notes) :]
    assert abs(len(wishes) - len(notes)) <= 1
    assert len(wishes) >= (1 if fields else 12)
    for heading in (
        "### Done\n- did",
        "## Key Decisions\n- decision",
        "## Next Steps\n- thread",
        "## Relevant Files\n- src",
    ):
        assert (heading in text) == bool(fields)


def test_the_newest_stay_if_all_are_strict():
    """R-317 [decided]."""
    text = render(with_57(strict_every=1), 4096)
    rules, warnings = numbers(text, RULE), numbers(text, WARNING)
    assert rules == list(range(57 - len(rules), 57))
    assert warnings == list(range(57 - len(warnings), 57))
    assert len(rules) + len(warnings) > 50


@pytest.mark.parametrize("limit", range(520, 700, 20))
def test_constraints_lose_their_turns_before_one_is_dropped(limit):
    """R-317: the words of a rule matter more than its source turn."""
    rules = tuple(f"Keep the names of group {number} in snake_case." for number in range(6))
    turns = dict.fromkeys(rules, "turn-1")
    shown = render(Artifact(session_objective="Port it.", constraints=rules, constraint_turn_ids=turns), limit)
    assert [rule for rule in rules if rule not in shown] == []


@pytest.mark.parametrize("limit", [1024, 2000, 4096])
def test_no_constraint_or_warning_is_dropped_while_there_is_room(limit):
    """R-317 [decided]: they may use half of the room before other sections get a line, then the room these leave."""
    rules = tuple(f"keep {n}" for n in range(limit // 2 // 20))
    warnings = tuple(WorkspaceFact("", f"hot {n}") for n in range(limit // 2 // 30))
    text = render(Artifact(constraints=rules, workspace_facts=warnings, **BUSY), limit)
    assert [line for line in text.splitlines() if line.startswith("- keep")] == [f"- {rule}" for rule in rules]
    assert [line for line in text.splitlines() if line.startswith("- hot")] == [f"- {fact.fact}" for fact in warnings]
    assert len(text.encode()) <= limit


LENGTHY = st.builds(lambda letter, number: letter * number, st.sampled_from("xüい"), st.integers(0, 400))


@given(
    st.lists(LENGTHY, min_size=8, max_size=40),
    st.lists(LENGTHY, max_size=9),
    st.sampled_from([256, 300, 512, 1000, 1024, 2000, 3333, 4096]),
)
def test_no_turn_is_dropped_while_200_bytes_are_free(texts, others, limit):
    """R-314 [decided 3]: this applies to any budget, whatever else has to fit."""
    artifact = Artifact(
        session_objective=" ".join(others[:1]),
        constraints=tuple(others),
        settled_decisions=tuple(map(Decision, others)),
        completed_episodes=tuple(
            Episode(f"e{n}", text, source_turn_ids=(f"turn-{n}",)) for n, text in enumerate(texts)
        ),
        open_threads=tuple(OpenThread(text, "blocked") for text in others),
    )
    text = render(artifact, limit)
    size = len(text.encode())
    shown = [n for n in range(len(texts)) if f"\n- turn-{n}:" in text]
    assert size <= limit
    assert len(shown) == len(texts) or limit - size < 200
    assert shown == list(range(len(texts)))[len(texts) - len(shown) :], "the newest stay"


def test_the_newest_of_many_stay():
    """R-317, R-318: the oldest lines are dropped from a full share; at most 12 files."""
    many = Artifact(
        session_objective="go",
        completed_episodes=tuple(Episode(f"e{i}", f"did {i} " * 20, (f"f{i}.py",)) for i in range(60)),
    )
    text = render(many, 4096)
    assert "did 59 " in text
    assert "did 1 " not in text
    assert text.index("did 58 ") < text.index("did 59 ")
    assert sum(line.endswith(".py") for line in text.splitlines()) == 12
    assert "- f59.py" in text


def test_lines_have_their_limits():
    """R-318: the byte limits are 240 for the goal, verifications and files, 320 for derived items, 360 for episodes."""
    huge = "ü" * 1000
    artifact = Artifact(
        session_objective=huge,
        constraints=(huge,),
        completed_episodes=(Episode("e", huge, (huge,), (Verification("runtime_note", huge, False),)),),
    )
    lines = [line[2:] for line in render(artifact, 100_000).splitlines() if line.startswith("- ü")]
    assert [len(line.encode()) <= limit for line, limit in zip(lines, (240, 320, 360, 240, 240), strict=True)] == [
        True
    ] * 5


@given(st.text(), st.integers(0, 400))
def test_truncation_never_splits_a_character(text, limit):
    """R-318: the result is valid UTF-8 of at most `limit` bytes, always on one line."""
    cut = cut_bytes(text, limit)
    assert len(cut.encode("utf-8")) <= limit
    assert "\n" not in cut


@given(st.lists(st.text(), max_size=30), st.text(), st.integers(200, 5000))
def test_content_cannot_open_a_section_or_exceed_the_budget(texts, goal, limit):
    """R-316, R-317: for any items, headings are ours and the size limit is kept."""
    artifact = Artifact(
        session_objective=goal,
        constraints=tuple(texts),
        completed_episodes=tuple(Episode(f"e{i}", text, (text,)) for i, text in enumerate(texts)),
    )
    text = render(artifact, limit)
    assert len(text.encode("utf-8")) <= limit
    assert {line for line in text.split("\n") if line.startswith("#")} <= {
        line for line in TEXT.splitlines() if line.startswith("#")
    }
