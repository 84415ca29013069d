"""A shortened summary leaves no code fence open: the text after it is prose, and is verified as such."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from codecompanion.context.grounding.known_names import KnownNames
from codecompanion.context.grounding.verify_summary import mark_unverified
from codecompanion.context.strategy_parameters import FitSummary, InsertSummary
from codecompanion.context.summary.fit_summary import cut_plainly, fit_summary, level
from codecompanion.context.summary.insert_summary import insert_summary
from codecompanion.context.summary.judge_reply import complete_sections
from codecompanion.context.summary_text.sections import close_fence, load_schema, parse_sections
from codecompanion.context.thresholds import Trigger
from codecompanion.context.work import Details, Work
from codecompanion.model.messages import SUMMARY_TAG
from codecompanion.summary_frame import split_frame
from tests.unit.context.builders import chars4, chat, env, user

PROSE = st.sampled_from(["The loader reads TOML.", "It fails with KeyError.", "", "Next: `run()`.", "# heading"])
MARK = st.sampled_from(["```", "````", "~~~", "```py", "  ```lua"])
BLOCK = st.builds(
    lambda mark, lines: "\n".join([mark, *["code = 1"] * lines, mark.strip().rstrip("pylua")]), MARK, st.integers(0, 12)
)
TEXT = st.lists(PROSE | BLOCK, min_size=1, max_size=5).map("\n".join)
# A model forgets the end of a fence now and then.
LOOSE = st.lists(PROSE | BLOCK | MARK, min_size=1, max_size=5).map("\n".join)


def sectioned(schema: str, bodies: list[str]) -> str:
    form = load_schema(schema)
    return "\n\n".join(f"{form.heading(n)}\n{body}" for n, body in enumerate(bodies, 1))


def is_closed(text: str) -> bool:
    """Return whether no fence is open at the end of the text or of a section."""
    found = parse_sections(text)
    return all(close_fence(part) == part for part in (text, found.preamble, *(one.body for one in found.parts)))


@pytest.mark.sweep
@settings(max_examples=150, deadline=None)
@given(st.sampled_from(["cc_9", "cw_9"]), st.lists(TEXT, min_size=9, max_size=9), st.integers(5, 400))
def test_sections_are_truncated_with_closed_fences(schema, bodies, tokens):
    text = sectioned(schema, bodies)
    shorter = level(text, tokens, env(chat(user("x")), 8000))
    assert is_closed(shorter), shorter
    assert shorter.count("\n") or shorter == text


@pytest.mark.sweep
@settings(max_examples=300, deadline=None)
@given(LOOSE, st.integers(0, 120))
def test_free_text_is_truncated_with_a_closed_fence_within_the_limit(text, tokens):
    shorter = cut_plainly(text, tokens)
    assert shorter == text or close_fence(shorter) == shorter
    assert len(shorter) <= max(4 * tokens, 43) or shorter == text


@pytest.mark.sweep
@settings(max_examples=100, deadline=None)
@given(st.lists(LOOSE, min_size=9, max_size=9), st.integers(0, 3000))
def test_a_reply_truncated_at_its_limit_has_no_open_fence(bodies, end):
    kept = complete_sections(sectioned("cc_9", bodies)[:end], load_schema("cc_9"))
    assert close_fence(kept) == kept


@pytest.mark.sweep
@settings(max_examples=60, deadline=None)
@given(st.lists(TEXT, min_size=9, max_size=9), st.integers(100, 900), st.integers(0, 300))
def test_a_summary_made_to_fit_has_no_open_fence(bodies, window, budget):
    """R-433, R-441: the summary may be truncated to its budget, or lose sections and be truncated to the room."""
    before = chat(user("wish"), user("now"))
    work = Work(
        before=before,
        messages=before[1:],
        removed=before[:1],
        summary=sectioned("cw_9", bodies),
        details=Details(summary_budget_tokens=budget or None),
    )
    environment = env(before, window)
    placed = insert_summary(work, InsertSummary(), environment)
    limit = Trigger(at=0.9, measure="request", basis="window")
    fitted = fit_summary(placed, FitSummary(limit=limit, floor_tokens=20, slack_tokens=0), environment)
    (message,) = [message for message in fitted.messages if message.tag == SUMMARY_TAG]
    shown = split_frame(message.text).summary
    assert shown == split_frame(placed.messages[0].text).summary or is_closed(shown), shown


def test_names_after_a_truncated_code_block_are_looked_up():
    """Lesson 11: the next code block looked like the end of the truncated one."""
    bodies = ["ok"] * 9
    bodies[2] = "```py\n" + "value = 1\n" * 60 + "```"
    bodies[3] = "It is in ghost_module.py.\n```py\nvalue = 1\n```"
    shorter = level(sectioned("cc_9", bodies), 150, env(chat(user("x")), 8000))
    known = KnownNames().of(chat(user("value = 1")))
    assert "ghost_module.py (unverified)" in mark_unverified(shorter, known)[0]
    assert chars4(shorter) <= 150
