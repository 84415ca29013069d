"""Short facts that the user stated: codes, names, numbers, decisions and rules, sentence by sentence, word for word.

A summary by a small model loses them, and a small window has no room for whole messages. A sentence counts if it
decides or forbids something, or has a value in it: a digit, a path or another joined word, a name inside the sentence,
something quoted. A question counts only if the value is in a clause before it ("Since the port is 6390, how …?").
Short plain statements ("We ship on Fridays.") come second. Long messages are reports or pasted: of those only strict
demands count.
"""

from __future__ import annotations

import re
from functools import lru_cache

from codecompanion.context.message_facts.demands import find_demands, is_strict, sentences
from codecompanion.context.message_facts.noise import is_noise, is_pasted, without_examples
from codecompanion.context.message_facts.plain_sentences import facts_of_sentences
from codecompanion.formats.regex import regex
from codecompanion.formats.sanitise import leave_out_orders

_TYPED_CHARS, _MAX_CHARS, _MAX_FACTS = 1500, 200, 12
"""Lengths of a message and of a fact, and how many facts of one message count."""
_VALUE = regex(r"\d|\w[_/@#:]\w|\w\w\.\w|\w-\w+-\w|[`\"“«]|(?<=[\w.,;:)] )[^\W\d_a-z][\w'’]+")
_REQUEST = regex(
    r"(?:please|can|could|would|will|shall|should|do|does|is|are|what|why|how|where|which|who|when|show|tell|give|explain"
    r"|list|describe|check|look|find|fix|add|write|make|run|try|go|continue|thanks?|thx|hi|hey|hello|ok(?:ay)?|yes|no"
    r"|great|good|nice|sure|bitte|kannst|zeig|erklär)\b|.*\b(?:give|tell|show|help) me\b",
    re.IGNORECASE,
)
_STATEMENT_CHARS, _STATEMENT_WORDS = 100, 3
_TITLE = regex(r"(?:^|\s)(?:Mrs?|Ms|Dr|Prof|St|No|Nr|Fr|Hr)\.$")


@lru_cache(maxsize=2048)
def stated_facts(text: str, *, plain: bool = False) -> tuple[str, ...]:
    """Return the facts that a message of the user's states, in their order, each once and on one line.

    `plain`: short statements without a value count, too.
    """
    if is_noise(text) or is_pasted(text):
        return ()
    strict = tuple(said for said in find_demands([text]) if is_strict(said))
    if len(text) > _TYPED_CHARS:
        return tuple(" ".join(said.split()) for said in strict[:_MAX_FACTS])
    told = facts_of_sentences(text, "user", is_last=True)
    decided = {*strict, *(fact.text for fact in told if fact.kind in ("decision", "constraint"))}
    found = dict.fromkeys(
        " ".join(said.split())
        for said in _whole(text)
        if said in decided or ((_has_value(said) or (plain and _is_statement(said))) and not leave_out_orders(said)[1])
    )
    return tuple(found)[:_MAX_FACTS]


def _whole(text: str) -> list[str]:
    """Return the sentences; one that seems to end after `Ms.` goes on."""
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
