"""Ranks the messages that match a question by the number and rarity of matched words, by neighbours, and by time.

The weights are fitted on half of the LoCoMo dialogues (`bench/bench_recall.py`). A reply seldom repeats the words of
the question it answers, so a message also gets a share of its neighbours' scores, above all a reply to a question; a
message that only asks something is seldom the wanted one.
"""

from __future__ import annotations

import datetime
import re
from collections.abc import Mapping, Sequence

import msgspec

from codecompanion.formats.regex import regex
from codecompanion.model.messages import Message
from codecompanion.store.search.parsed_question import Question

PREVIOUS = 0.35
PREVIOUS_ASKS = 1.0
NEXT = 0.4
TWO_AWAY = 0.1
COVERAGE = 1.0
ONLY_ASKS = 0.7
IN_PERIOD = 0.8
ON_THE_DAY = 1.6
TOLD_LATER_DAYS = 10
SAYS_WHEN = 0.4
MAX_READ_FOR_WHEN = 60

_READ_CHARS = 2_000
_SHORT_CHARS = 1_000
_QUESTION = regex(r"[^\W_][\"'”’)*]*\?+(?![^\s\"'”’)*!])|？")
"""Matches a question mark after a word and before a space, but not inside a pattern or a URL."""
_TIME = regex(
    r"\b(?:yesterday|today|tonight|tomorrow|ago|since|recently|(?:last|next|this) \w+|\w+day|weekend|(?:19|20)\d\d"
    r"|january|february|march|april|june|july|august|september|october|november|december|\d{1,2}[:/.]\d{2})\b",
    re.IGNORECASE,
)

Row = int


class Matches(msgspec.Struct):
    """Matches in the index: the rows of each term with their scores, and the totals of each row."""

    terms: list[dict[Row, float]]
    totals: dict[Row, float]
    counts: dict[Row, int]
    bonuses: dict[Row, float]


class Surroundings(msgspec.Struct):
    """The messages before and after each row, if known."""

    before: dict[Row, Row]
    after: dict[Row, Row]


def own_scores(question: Question, matches: Matches) -> dict[Row, float]:
    """Return each row's own score, ignoring its neighbours."""
    share, bonuses, counts = COVERAGE / max(1, question.count), matches.bonuses, matches.counts
    scores = {row: total * (1 + share * counts[row]) for row, total in matches.totals.items()}
    for row in bonuses.keys() & scores.keys():
        scores[row] += bonuses[row] * (1 + share * counts[row])
    return scores


def score_rows(
    question: Question,
    matches: Matches,
    rows: Sequence[Row],
    around: Surroundings,
    messages: Mapping[Row, Message],
    days: Mapping[Row, datetime.date],
) -> dict[Row, float]:
    """Return the final score of each row."""
    scores = {row: _with_neighbours(question, matches, row, around, messages) for row in rows}
    for row in scores:
        if asks_only(messages.get(row)):
            scores[row] *= ONLY_ASKS
        scores[row] *= 1 + _in_time(question, days.get(row))
    if question.asks_when:
        for row in sorted(scores, key=scores.__getitem__, reverse=True)[:MAX_READ_FOR_WHEN]:
            message = messages.get(row)
            if message is not None and _TIME.search(message.text[:_READ_CHARS]):
                scores[row] *= 1 + SAYS_WHEN
    return scores


def _with_neighbours(
    question: Question, matches: Matches, row: Row, around: Surroundings, messages: Mapping[Row, Message]
) -> float:
    before, after = around.before.get(row, -1), around.after.get(row, -1)
    share = PREVIOUS_ASKS if asks(messages.get(before)) else PREVIOUS
    score = sum(
        max(hits.get(row, 0.0), share * hits.get(before, 0.0), NEXT * hits.get(after, 0.0)) for hits in matches.terms
    )
    far = (around.before.get(before, -1), around.after.get(after, -1))
    score += TWO_AWAY * sum(matches.totals.get(which, 0.0) for which in far) + matches.bonuses.get(row, 0.0)
    return score * (1 + COVERAGE * matches.counts.get(row, 0) / max(1, question.count))


def asks(message: Message | None) -> bool:
    """Return whether the message asks a question; tool output with a question mark does not count."""
    if message is None or message.role not in ("user", "assistant"):
        return False
    text = message.text
    return _QUESTION.search(text if len(text) <= _SHORT_CHARS else text[-_SHORT_CHARS // 4 :]) is not None


def asks_only(message: Message | None) -> bool:
    """Return whether the message ends with a question."""
    return message is not None and message.role != "tool" and message.text[-20:].rstrip().endswith(("?", "？"))


def _in_time(question: Question, day: datetime.date | None) -> float:
    """Return the bonus for a message from `day`; events are reported on the day they happen or soon afterwards."""
    if day is None:
        return 0.0
    gain = 0.0
    for period in question.periods:
        off = period.days_off(day)
        if period.first == period.last:
            gain = max(gain, ON_THE_DAY if off == 0 else IN_PERIOD if -1 <= off <= TOLD_LATER_DAYS else 0.0)
        elif off == 0:
            gain = max(gain, IN_PERIOD)
    return gain
