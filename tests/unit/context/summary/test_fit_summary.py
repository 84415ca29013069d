"""S13: the overflow guard (R-433, R-440…R-442)."""

from __future__ import annotations

import pytest

from codecompanion.context.strategy_parameters import FitSummary, InsertSummary
from codecompanion.context.summary.fit_summary import CUT_MARKER, cut_plainly, fit_summary
from codecompanion.context.summary.insert_summary import insert_summary
from codecompanion.context.summary_text.place_quotes import read_quotes
from codecompanion.context.summary_text.recall_keys import Span, put_span, read_span
from codecompanion.context.summary_text.sections import load_schema, parse_sections
from codecompanion.context.thresholds import Trigger
from codecompanion.context.work import Details, Work
from codecompanion.placeholders import QUOTES_HEADING, quoted_request
from codecompanion.summary_frame import HANDOFF
from tests.unit.context.builders import chars4, chat, count, env, user

FRAME = InsertSummary(
    place="after_first_user", header="handoff", wrapper="cowork_compaction_summary", pinned=True, upsert=True
)
SCHEMA = load_schema("cw_9")


def nine_sections(chars):
    return "\n\n".join(
        f"{SCHEMA.heading(number)}\n{f'body {number} ' * (chars // 7)}" for number in range(1, len(SCHEMA.section) + 1)
    )


def fit(kept_tokens, summary, window=10_000, request="", budget=0, **params):
    messages = chat(user("k" * 4 * kept_tokens))
    environment = env(messages, window)
    details = Details(schema="cw_9", summary_budget_tokens=budget)
    work = Work(before=messages, messages=messages, summary=summary, request=request, details=details)
    work = insert_summary(work, FRAME, environment)
    return fit_summary(work, FitSummary(**params), environment)


def block(work):
    return work.messages[1].text


def total(work):
    return sum(map(count, work.messages))


def numbers(work):
    return [part.number for part in parse_sections(work.summary, SCHEMA).parts]


def test_a_summary_that_fits_is_unchanged():
    """R-440: exactly 95 % is allowed."""
    text = nine_sections(700)
    frame = chars4(block(fit(10, text))) - chars4(text)
    kept = 9_500 - chars4(text) - frame
    work = fit(kept, text)
    assert total(work) == 9_500
    assert work.summary == text
    assert work.details.summary_cut_from_tokens is None
    assert fit(kept + 1, text).summary != text


def test_over_the_guard_sections_are_dropped_in_the_documents_order():
    """R-441: sections are dropped in the order 5, 6, 4, 3, 2; the headings 1, 7, 8, 9 always remain."""
    text = nine_sections(1750)
    seen = {tuple(numbers(fit(kept, text, window=100_000))) for kept in range(90_000, 96_000, 100)}
    assert (1, 2, 3, 4, 6, 7, 8, 9) in seen
    assert (1, 2, 3, 4, 7, 8, 9) in seen
    assert (1, 7, 8, 9) in seen
    assert all({1, 7, 8, 9} <= set(found) for found in seen)


@pytest.mark.parametrize("kept", [7_000, 8_000, 8_500, 9_000, 9_200])
def test_the_guard_is_kept_while_there_is_room_for_the_smallest_summary(kept):
    """R-440."""
    assert total(fit(kept, nine_sections(1400))) <= 9_500


def test_frame_and_request_always_stay():
    """R-441, R-442, R-551: they stay even if the summary does not fit."""
    work = fit(9_900, nine_sections(1400), request="please go on")
    assert block(work).startswith(f"<cowork_compaction_summary>\n{HANDOFF}1. **Primary Request and Intent**")
    assert "\n</cowork_compaction_summary>" in block(work)
    assert quoted_request(block(work)) == "please go on"
    assert {1, 7, 8, 9} <= set(numbers(work))
    assert work.messages[1].tokens == count(work.messages[1])


def test_a_fuller_window_means_a_shorter_summary():
    """R-441: the size decreases monotonically, and fitting ends even if nothing helps."""
    sizes = [chars4(fit(kept, nine_sections(1400)).summary) for kept in range(5_000, 12_000, 250)]
    assert sizes == sorted(sizes, reverse=True)
    assert sizes[-1] <= 260


def test_a_text_without_sections_keeps_its_head():
    """R-413, R-442."""
    work = fit(9_000, "prose " * 2000)
    assert total(work) <= 9_500
    assert work.summary.startswith("prose prose")
    assert work.summary.endswith(CUT_MARKER)
    assert work.details.summary_cut_from_tokens == 3000


def test_quotes_below_a_text_without_sections_stay():
    """R-431, R-434: the user's words are kept longer than raw text."""
    work = fit(7_000, "raw " * 3000 + f"\n\n{QUOTES_HEADING}\n> use tabs")
    assert total(work) <= 9_500
    assert work.summary.endswith(f"{QUOTES_HEADING}\n> use tabs")


def test_a_summary_over_its_budget_is_truncated_even_if_there_is_room():
    """R-433: the model's sections are truncated to their budget, the longest first."""
    text = nine_sections(2100)
    work = fit(100, text, window=100_000, budget=2000)
    said = parse_sections(work.summary, SCHEMA)
    assert chars4(work.summary.replace(said.body(2), "")) <= 2000 + 1  # a quarter of a token in each
    assert numbers(work) == list(range(1, 10))


@pytest.mark.parametrize("budget", [500, 640, 4096])
def test_quotes_have_their_own_budget(budget):
    """R-431: they neither shorten the model's sections nor are shortened with them."""
    quotes = "\n\n".join(f"> wish {n} " + "with some words " * 20 for n in range(40))
    said = "\n\n".join(f"{SCHEMA.heading(n)}\n{quotes if n == 2 else f'body {n} ' * 20}" for n in range(1, 10))
    work = fit(100, said, window=100_000, budget=budget)
    assert work.summary == said
    assert work.details.summary_cut_from_tokens is None


def test_over_the_guard_quotes_become_excerpts_and_keys_stay():
    """R-431, R-441: quotes are never reduced to a mere count, and the line with the keys is dropped last."""
    quotes = "\n\n".join(f"> wish {n} " + "with some words " * 20 + f"\n(recall r{n})" for n in range(40))
    span = Span(1, 90)
    said = "\n\n".join(f"{SCHEMA.heading(n)}\n{quotes if n == 2 else f'body {n} ' * 20}" for n in range(1, 10))
    sizes = []
    for kept in (92_000, 93_500, 94_200, 94_900):
        work = fit(kept, put_span(said, span), window=100_000)
        found = read_quotes(work.summary)
        assert read_span(work.summary) == span
        assert not found.total or [found.total, bool(found.quotes)] == [40, True]
        assert all(quote.whole or quote.key for quote in found.quotes)
        assert not found.left_out or found.left_keys is not None
        sizes.append(chars4(work.summary))
    assert sizes == sorted(sizes, reverse=True)
    free = fit(99_000, put_span("raw " * 3000 + f"\n\n{QUOTES_HEADING}\n{quotes}", span), window=100_000)
    assert read_span(free.summary) == span


def test_the_basis_can_be_the_size_available_to_cowork():
    """R-404, R-440: the messages alone are compared with window − 8000 − system prompt."""
    limit = Trigger(at=0.95, measure="messages", basis="available")
    text = nine_sections(700)
    assert fit(1_000, text, limit=limit, window=20_000).summary == text
    assert fit(11_000, text, limit=limit, window=20_000).summary != text


@pytest.mark.parametrize("tokens", [26, 100, 999])
def test_a_plain_truncation_never_exceeds_its_tokens(tokens):
    """R-413 [proposed]."""
    assert len(cut_plainly("x" * 9000, tokens)) <= tokens * 4
    assert cut_plainly("x" * (tokens * 4), tokens) == "x" * (tokens * 4)


def test_without_a_summary_nothing_happens():
    messages = chat(user("q"))
    work = Work(before=messages, messages=messages)
    assert fit_summary(work, FitSummary(), env(messages, 10)) == work
