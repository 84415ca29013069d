"""Quotes the user's messages so that short facts are kept: in a small window, these outrank full messages.

Each message is first reduced to its facts (`message_facts.stated_facts`), on one line; full messages and beginnings of
others follow within the usual budget. The rest is counted, as in `fit_quotes`.
"""

from __future__ import annotations

from collections.abc import Sequence

from codecompanion.context.message_facts.demands import is_strict
from codecompanion.context.message_facts.stated_facts import stated_facts
from codecompanion.context.summary_text.fit_quotes import Count, QuoteFacts, demands_something, excerpt_of, fit_quotes
from codecompanion.context.summary_text.quote_lines import Quote, Quotes, joined, left_out_line
from codecompanion.context.summary_text.recall_keys import span_of

_MAX_MESSAGES = 300
"""Maximum number of messages to search for facts; for more, a window of 16,000 tokens has no room for a line each."""
_ENDS = (".", "!", "?", "。", "！", "？")


def fit_facts(
    said: Quotes, budget: int, for_facts: int, excerpt_chars: int, count: Count, facts: QuoteFacts | None = None
) -> Quotes:
    """Return the quotes in at most `budget` tokens; facts alone may take `for_facts` more.

    The newest message comes first, then messages with strict demands, then facts from the newest to the oldest.
    """
    facts = facts or QuoteFacts()
    if fit_quotes(said, budget, excerpt_chars, count, facts) == said:
        return said
    said = _newest(said)
    told = _ChosenQuotes(said, count, facts)
    newest = len(said.quotes) - 1
    stated, plain = _by_message(said.quotes)
    with_facts = [place for place in range(newest, -1, -1) if stated[place]]
    strict = [place for place in with_facts if any(map(is_strict, stated[place]))]
    for place in dict.fromkeys((*strict, *with_facts)):
        told.take(place, _line(said.quotes[place], stated[place]), budget + for_facts)
    for place in range(newest, -1, -1):
        if plain[place] != stated[place]:
            told.take(place, _line(said.quotes[place], plain[place]), budget + for_facts)
    if not told.take(newest, said.quotes[newest], budget) and newest not in told.chosen:
        told.take(newest, excerpt_of(said.quotes[newest], excerpt_chars), budget)
    others = [place for place in reversed(range(newest)) if place not in told.chosen]
    for place in sorted(others, key=lambda place: demands_something(said.quotes[place].text), reverse=True):
        if not told.take(place, excerpt_of(said.quotes[place], excerpt_chars), budget):
            break
    for place in reversed(range(newest + 1)):
        if place in told.chosen and not told.take(place, said.quotes[place], budget):
            break
    return told.quotes()


def _newest(said: Quotes) -> Quotes:
    """Return the newest messages; older ones, for which a small window has no room, are only counted."""
    older, newest = said.quotes[:-_MAX_MESSAGES], said.quotes[-_MAX_MESSAGES:]
    keys = joined(said.left_keys, span_of([quote.key for quote in older]))
    return Quotes(newest, said.left_out + len(older), keys) if older else said


def _by_message(quotes: Sequence[Quote]) -> tuple[list[tuple[str, ...]], list[tuple[str, ...]]]:
    """Return, per message, the facts that no earlier message states, and the same including plain statements."""
    stated = [stated_facts(quote.text) for quote in quotes]
    return _each_once([one.facts for one in stated]), _each_once([one.plain for one in stated])


def _each_once(said: Sequence[tuple[str, ...]]) -> list[tuple[str, ...]]:
    known, found = set[str](), list[tuple[str, ...]]()
    for facts in said:
        found.append(tuple(fact for fact in facts if fact not in known))
        known.update(facts)
    return found


def _line(quote: Quote, facts: tuple[str, ...]) -> Quote:
    """Return a message as its facts, or unchanged if it contains only them.

    Each fact ends like a sentence, so that a later summary finds it again.
    """
    line = " ".join(fact if fact.endswith(_ENDS) or fact is facts[-1] else f"{fact}." for fact in facts)
    return quote if line == quote.text else Quote(line, whole=False, key=quote.key)


class _ChosenQuotes:
    """The chosen quotes by index, and their size, including the line that counts the others."""

    def __init__(self, said: Quotes, count: Count, facts: QuoteFacts) -> None:
        self.chosen = dict[int, Quote]()
        self._said, self._count, self._facts = said, count, facts
        keys = joined(said.left_keys, span_of([quote.key for quote in said.quotes]))
        self._taken = count(left_out_line(Quotes(left_out=said.total, left_keys=keys))) + 1

    def take(self, place: int, quote: Quote, most: int) -> bool:
        """Add a message in this form if the total stays within `most` tokens."""
        before = self._facts.size(self.chosen[place], self._count) if place in self.chosen else 0
        taken = self._taken - before + self._facts.size(quote, self._count)
        if taken > most and taken > self._taken:
            return False
        self.chosen[place], self._taken = quote, taken
        return True

    def quotes(self) -> Quotes:
        """Return the chosen quotes, and the number of other messages."""
        left = [quote for place, quote in enumerate(self._said.quotes) if place not in self.chosen]
        keys = joined(self._said.left_keys, span_of([quote.key for quote in left]))
        told = tuple(self.chosen[place] for place in sorted(self.chosen))
        return Quotes(told, self._said.left_out + len(left), keys if left or self._said.left_out else None)
