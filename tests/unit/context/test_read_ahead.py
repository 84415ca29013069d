"""Reading during a summary changes no result, and is not repeated once the summary is written."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from codecompanion.context.grounding import known_names
from codecompanion.context.grounding.known_names import KnownNames
from codecompanion.context.grounding.verify_summary import VerifySummary, mark_unverified, verify_summary
from codecompanion.context.policy.policy import Step
from codecompanion.context.policy.policy_catalog import load_policy, policy_names
from codecompanion.context.read_ahead import forget, read_ahead
from codecompanion.context.strategy_parameters import QuoteUserMessages
from codecompanion.context.summary_text import fit_quotes as user_quotes
from codecompanion.context.summary_text.fit_quotes import QuoteFacts
from codecompanion.context.summary_text.quote_user_messages import quote_user_messages
from codecompanion.context.work import Details, Folds, SummaryReply, Work
from codecompanion.model.messages import SUMMARY_TAG
from tests.summaries import nine_sections
from tests.unit.context.builders import assistant, chars4, chat, env, run, tool, turns, user

STEPS = (Step("verify_summary", VerifySummary()), Step("quote_user_messages", QuoteUserMessages(max_tokens=60)))
WORDS = st.lists(
    st.sampled_from("never use `load_item` in src/a.py lib/deep/b_c.py 12,000 v1.2 4f5e6d7a8b9c \\n é must".split()),
    max_size=12,
).map(" ".join)
SUMMARY = "3. **Files**\n- `load_item` in src/a.py, deep/b_c.py, other_name, 12000, v1.2, 4f5e6d7, lib/x.py\n"


def histories():
    kinds = st.sampled_from([user, assistant, lambda text: user(text, tag=SUMMARY_TAG)])
    return st.lists(st.tuples(kinds, WORDS), max_size=8).map(lambda made: chat(*(kind(text) for kind, text in made)))


def checked(history, environment):
    """Return the work after both checks."""
    work = Work(before=history, messages=(), removed=history, summary=SUMMARY, details=Details(written_by="model"))
    return quote_user_messages(
        verify_summary(work, VerifySummary(), environment), QuoteUserMessages(max_tokens=60), environment
    )


@settings(max_examples=150)
@given(histories(), histories())
def test_the_checks_yield_the_same_with_and_without_reading_ahead(history, earlier):
    """This includes reading a shorter or a different chat beforehand."""
    ahead, alone = env(history, 10_000), env(history, 10_000)
    read_ahead(STEPS, earlier, earlier, ahead, lambda: None)
    read_ahead(STEPS, history[: len(history) // 2], history, ahead, lambda: None)
    read_ahead(STEPS, history, history, ahead, lambda: None)
    assert checked(history, ahead) == checked(history, alone)


@settings(max_examples=100)
@given(histories(), st.integers(1, 3))
def test_names_are_the_same_in_any_reading_order(history, at_once):
    """Messages may be read one by one, a few pieces at a time, or all together."""
    with pytest.MonkeyPatch.context() as patch:
        together = mark_unverified(SUMMARY, KnownNames().of(history))
        patch.setattr(known_names, "_PIECES_AT_ONCE", at_once)
        names = KnownNames()
        for end in range(len(history) + 1):
            known = names.of(history[:end])
        assert mark_unverified(SUMMARY, known) == together


def test_text_read_ahead_is_not_read_again(monkeypatch):
    """After the summary no message is split, no quote measured, no demand searched."""
    history = chat(*turns(30))
    sought = []
    find = user_quotes.find_demands
    monkeypatch.setattr(user_quotes, "find_demands", lambda texts: (sought.extend(texts), find(texts))[1])
    user_quotes._demands_of.cache_clear()
    counted, split = [], []
    real = known_names._texts_of
    monkeypatch.setattr(known_names, "_texts_of", lambda message: (split.append(message.id), real(message))[1])
    environment = env(history, 20_000, count_text=lambda text: (counted.append(text), chars4(text))[1])
    read_ahead(STEPS, history, history, environment, lambda: None)
    assert split == [message.id for message in history]
    read = len(counted)
    assert read >= 10
    assert len(sought) == 30
    checked(history, environment)
    assert len(split) == len(history)
    assert len(sought) == 30
    assert len(counted) - read < 10, "the summary and the line of what is left out"


def test_each_part_of_a_long_history_needs_it_and_it_is_read_once():
    history, pauses = chat(*turns(30)), []
    environment = env(history, 10_000)
    read_ahead(STEPS, history, history, environment, lambda: pauses.append("first"))
    read_ahead(STEPS, history, history, environment, lambda: pauses.append("second"))
    assert pauses.count("first") > 90
    assert pauses.count("second") <= 3
    shorter = history[:-4]
    read_ahead(STEPS, history, shorter, environment, lambda: pauses.append("third"))
    assert pauses.count("third") > 25, "of other messages it is read again"


def test_of_a_grown_chat_only_new_messages_are_read(monkeypatch):
    history = chat(*turns(20))
    split = []
    real = known_names._texts_of
    monkeypatch.setattr(known_names, "_texts_of", lambda message: (split.append(message.id), real(message))[1])
    names = KnownNames()
    names.of(history[:60])
    names.of(history)
    names.of(history)
    assert split == [message.id for message in history]


def test_an_interrupted_reading_starts_over():
    """A partial reading does not count as complete."""
    history = chat(user("see alpha_one"), tool("c", "and beta_two"))
    names = KnownNames()

    def end() -> None:
        raise InterruptedError

    with pytest.raises(InterruptedError):
        names.of(history, end)
    assert names.of(history).has_word("beta_two")


def test_nothing_is_cached_after_the_stage():
    """The names of a long chat take memory; later uses read them again."""
    history = chat(*turns(8))
    environment = env(history, 10_000)
    read_ahead(STEPS, history, history, environment, lambda: None)
    names, facts = environment.folds.get(KnownNames), environment.folds.get(QuoteFacts)
    forget(environment.folds)
    assert environment.folds.get(KnownNames) is not names
    assert environment.folds.get(QuoteFacts) is not facts


@pytest.mark.parametrize("name", policy_names())
def test_a_compaction_yields_the_same_with_reading_ahead(name):
    """This is true under every policy, and nothing remains cached afterwards."""
    history, pauses = chat(*turns(24, size=2000)), []

    def compacted(reads: bool):
        def answer(ask):
            if reads:
                ask.meanwhile(lambda: pauses.append(1))
            return SummaryReply(text=nine_sections("See `load_item` in a.py and no_such_name. " * 3))

        return run(history, 16_000, policy=load_policy(name), script=answer, manual=True, folds=folds)

    folds = Folds()
    alone, _ = compacted(reads=False)
    ahead, asked = compacted(reads=True)
    assert ahead.messages == alone.messages
    assert [report.details for report in ahead.reports] == [report.details for report in alone.reports]
    assert bool(pauses) == any(step.use == "verify_summary" for ask in asked for step in steps_of(ask))
    assert not {KnownNames, QuoteFacts} & folds._made.keys()


def steps_of(ask):
    return [step for tier in ask.stage.tiers for step in tier.steps]
