"""Finds short facts that the user stated: codes, names, numbers, decisions and rules, as verbatim sentences.

Summaries by small models lose such facts, and a small window has no room for whole messages. A sentence counts if it
decides or forbids something, or contains a value: a digit, a path or another compound of words, a name inside the
sentence, a quotation. A question counts only if the value is in a clause before it ("Since the port is 6390, how …?").
Short plain statements ("We ship on Fridays.") have lower priority. Long messages are reports or pasted text, in which
only strict demands count.
"""

from __future__ import annotations

import re
from collections.abc import Container
from functools import lru_cache

import msgspec

from codecompanion.context.message_facts.demands import find_demands, is_demand, is_strict, sentences
from codecompanion.context.message_facts.noise import is_noise, is_pasted, without_examples
from codecompanion.context.message_facts.plain_sentences import facts_of_sentences
from codecompanion.formats.regex import regex
from codecompanion.formats.sanitise import leave_out_orders

_TYPED_CHARS, _MAX_CHARS, _MAX_FACTS = 1500, 200, 12
"""Maximum lengths of a message and of a fact, and maximum number of facts per message."""
_VALUE = regex(r"\d|\w[_/@#:]\w|\w\w\.\w|\w-\w+-\w|[`\"“«]|(?<=[\w.,;:)] )[^\W\d_a-z][\w'’]+")
_REQUEST = regex(
    r"(?:please|can|could|would|will|shall|should|do|does|is|are|what|why|how|where|which|who|when|show|tell|give|explain"
    r"|list|describe|check|look|find|fix|add|write|make|run|try|go|continue|thanks?|thx|hi|hey|hello|ok(?:ay)?|yes|no"
    r"|great|good|nice|sure|bitte|kannst|zeig|erklär)\b|.*\b(?:give|tell|show|help) me\b",
    re.IGNORECASE,
)
_STATEMENT_CHARS, _STATEMENT_WORDS = 100, 3
_TITLE = regex(r"(?:^|\s)(?:Mrs?|Ms|Dr|Prof|St|No|Nr|Fr|Hr)\.$")


class StatedFacts(msgspec.Struct, frozen=True):
    """The distinct facts of one message in order, one line each; `plain` also includes its short statements."""

    facts: tuple[str, ...] = ()
    plain: tuple[str, ...] = ()


@lru_cache(maxsize=2048)
def stated_facts(text: str) -> StatedFacts:
    """Return the facts that a user message states."""
    if is_noise(text) or is_pasted(text):
        return StatedFacts()
    if len(text) > _TYPED_CHARS:
        strict = tuple(" ".join(said.split()) for said in find_demands([text]) if is_strict(said))[:_MAX_FACTS]
        return StatedFacts(strict, strict)
    said = [(sentence, _is_fact(sentence)) for sentence in _whole(text)]
    known = {sentence for sentence, is_fact in said if is_fact}
    decided = _decided(text, known) if len(known) < len(said) else frozenset[str]()
    found = [(sentence, is_fact or sentence in decided) for sentence, is_fact in said]
    told = [(sentence, is_fact) for sentence, is_fact in found if is_fact or _is_statement(sentence)]
    if leave_out_orders("\n".join(sentence for sentence, _ in told))[1]:
        told = [(sentence, is_fact) for sentence, is_fact in told if not leave_out_orders(sentence)[1]]
    lines = [(" ".join(sentence.split()), is_fact) for sentence, is_fact in told]
    facts = dict.fromkeys(line for line, is_fact in lines if is_fact)
    return StatedFacts(tuple(facts)[:_MAX_FACTS], tuple(dict.fromkeys(line for line, _ in lines))[:_MAX_FACTS])


def _is_fact(sentence: str) -> bool:
    return _has_value(sentence) or (is_strict(sentence) and is_demand(sentence))


def _decided(text: str, known: Container[str]) -> frozenset[str]:
    """Return the sentences outside `known` that state a decision or constraint; questions do not count."""
    told = facts_of_sentences(text, "user", is_last=True, known=known)
    return frozenset(fact.text for fact in told if fact.kind in ("decision", "constraint"))


def _whole(text: str) -> list[str]:
    """Return the sentences, joining those that were split after an abbreviation such as `Ms.`."""
    said: list[str] = []
    for sentence in sentences(without_examples(text)):
        if said and _TITLE.search(said[-1]):
            said[-1] += f" {sentence}"
        else:
            said.append(sentence)
    return said


def _has_value(sentence: str) -> bool:
    said = sentence.rpartition(",")[0] if _asks(sentence) else sentence
    return len(sentence) <= _MAX_CHARS and _VALUE.search(said) is not None


def _is_statement(sentence: str) -> bool:
    is_short = len(sentence) <= _STATEMENT_CHARS and len(sentence.split()) >= _STATEMENT_WORDS
    return is_short and not _asks(sentence) and _REQUEST.match(sentence) is None


def _asks(sentence: str) -> bool:
    return sentence.rstrip(" *_)\"'”").endswith(("?", "？"))
