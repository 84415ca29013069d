"""The user's messages in little room: short facts from all of them take precedence over whole messages."""

from __future__ import annotations

import pytest

from codecompanion.context.summary_text import quote_facts
from codecompanion.context.summary_text.quote_facts import fit_facts
from codecompanion.context.summary_text.quote_lines import Quote, Quotes, parse_quotes, render_quotes
from tests.unit.context.builders import chars4

ASK = (
    "Please explain in a few words what I have to watch when I roll a service out in the evening, and the usual order."
)
SAID = Quotes(tuple(Quote(f"{ASK} The code of door {n} is {4000 + n}. {ASK}", key=f"r{n}") for n in range(20)))


def size(said: Quotes) -> int:
    return chars4("\n".join(render_quotes(said)))


def test_with_room_for_everything_nothing_changes() -> None:
    assert fit_facts(SAID, 5_000, 0, 120, chars4) == SAID


@pytest.mark.parametrize("budget", [60, 120, 300, 600, 900])
def test_facts_have_their_share_and_the_rest_only_the_usual_budget(budget: int) -> None:
    kept = fit_facts(SAID, budget, 200, 120, chars4)
    told = [n for n in range(20) if any(f"door {n} is {4000 + n}." in quote.text for quote in kept.quotes)]
    assert told == list(range(20 - len(told), 20)), "the newest are kept"
    assert len(told) == 20 or budget < 300
    assert size(kept) <= budget + 200 + 30
    assert any(quote.whole for quote in kept.quotes) == (budget > 500)
    assert kept.total == SAID.total


def test_a_later_summary_carries_the_facts_over() -> None:
    kept = fit_facts(SAID, 200, 200, 120, chars4)
    again = fit_facts(parse_quotes(render_quotes(kept)), 200, 200, 120, chars4)
    assert [quote.text for quote in again.quotes] == [quote.text for quote in kept.quotes]


def test_facts_that_do_not_fit_are_counted_with_their_keys() -> None:
    kept = fit_facts(SAID, 60, 0, 120, chars4)
    assert kept.left_out == 20 - len(kept.quotes) > 0
    assert (
        render_quotes(kept)[0]
        == f"- […] {kept.left_out} older messages are not listed: recall r0 to r{kept.left_out - 1}"
    )


def test_strict_demands_precede_newer_facts() -> None:
    rule = Quote(f"{ASK} Never touch the legacy folder. {ASK}")
    kept = fit_facts(Quotes((rule, *SAID.quotes)), 70, 0, 120, chars4)
    assert "Never touch the legacy folder." in kept.quotes[0].text


def test_of_a_very_long_chat_only_the_newest_messages_are_read_and_older_ones_counted(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    read: list[str] = []
    stated = quote_facts.stated_facts
    monkeypatch.setattr(quote_facts, "stated_facts", lambda text: read.append(text) or stated(text))
    said = Quotes(tuple(Quote(f"The code of door {n} is {4000 + n}.", key=f"r{n}") for n in range(1_000)), 7)
    kept = fit_facts(said, 300, 200, 120, chars4)
    assert [*read] == [quote.text for quote in said.quotes[-300:]]
    assert kept.total == said.total
    assert kept.left_keys is not None
    assert render_quotes(kept)[0].endswith(f"are not listed: recall r0 to r{999 - len(kept.quotes)}")
