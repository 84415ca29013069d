"""Searches all messages, including cleared and compacted ones, with one ranking for phrases and questions.

The index stores no text; the few hits are read from the log, and a temporary index in memory makes their snippets.
`find_rows` needs no store: any database with `events`, `message_text` and `message_inner` works (`chat_index`).
"""

from __future__ import annotations

import contextlib
import datetime
import heapq
import itertools
import json
import sqlite3
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence

import msgspec

from codecompanion.formats.word_rarity import rarity
from codecompanion.model.history import MessageAdded
from codecompanion.model.messages import Message
from codecompanion.store.log.encoding import storable
from codecompanion.store.log.event_rows import decode_rows
from codecompanion.store.search.parsed_question import Question, Term, read_question
from codecompanion.store.search.ranking import Matches, Row, Surroundings, own_scores, score_rows
from codecompanion.store.search.snippets import make_snippets

COMMON = 2_000
"""If more messages than this contain a word, it counts only in messages that rarer words found."""
POOL = 150
"""Number of top-ranked messages whose neighbours are also scored."""
SIDE = 3
"""Number of neighbours on each side of a message in the pool."""
FEW_WORDS = 3
"""In a query with fewer words, neighbouring messages do not count."""
INNER_SHARE = 0.6
"""Weight of a word inside a name, relative to a word of the text."""
RARE = 0.5
"""Exponent that raises the index's weight of rare words."""

_Place = tuple[str, str, int, float]
Read = Callable[[Iterable[Row]], Mapping[Row, Message]]


class SearchHit(msgspec.Struct, frozen=True):
    """A message found by a search. `snippet` marks the matched words with « »; `ts` is seconds since the epoch."""

    chat_id: str
    title: str
    seq: int
    ts: float
    message_id: str
    role: str
    snippet: str


def search_messages(
    connection: sqlite3.Connection,
    query: str,
    today: datetime.date,
    *,
    chat_id: str | None = None,
    seqs: Collection[int] | None = None,
    limit: int = 50,
) -> list[SearchHit]:
    """Return the hits, best first, without damaged rows.

    `chat_id` limits the search to one chat, `seqs` to these positions in its log.
    """
    question = read_question(storable(query), today)
    read = reader_of(connection)
    ranked = find_rows(connection, question, chat_id, read)
    rows: list[Row] = []
    places: dict[Row, _Place] = {}
    while len(rows) < limit and (some := list(itertools.islice(ranked, max(limit, POOL)))):
        places |= _places(connection, some)
        wanted = [row for row in some if row in places and (seqs is None or places[row][2] in seqs)]
        messages = read(wanted[: limit - len(rows)])
        rows += [row for row in wanted[: limit - len(rows)] if row in messages]
    messages = read(())
    snippets = make_snippets([messages[row] for row in rows], question)
    return [
        SearchHit(*places[row], messages[row].id, messages[row].role, snippet)
        for row, snippet in zip(rows, snippets, strict=True)
    ]


def _places(connection: sqlite3.Connection, rows: Sequence[Row]) -> dict[Row, _Place]:
    """Return the chat, title, log position and time of each row."""
    found = connection.execute(
        "SELECT events.id, events.chat_id, chats.title, events.seq, events.ts FROM events "
        "JOIN chats ON chats.chat_id = events.chat_id WHERE events.id IN (SELECT value FROM json_each(?))",
        (json.dumps(rows),),
    )
    return {row: (chat_id, title, seq, ts) for row, chat_id, title, seq, ts in found}


def reader_of(connection: sqlite3.Connection) -> Read:
    """Return a function that reads messages by row; it reads each message once and leaves out damaged ones."""
    known: dict[Row, Message] = {}

    def read(rows: Iterable[Row]) -> Mapping[Row, Message]:
        missing = json.dumps([row for row in rows if row not in known])
        for row, *stored in connection.execute(
            "SELECT id, seq, ts, payload, sum FROM events WHERE id IN (SELECT value FROM json_each(?))", (missing,)
        ):
            for event in decode_rows([tuple(stored)])[0]:
                if isinstance(event.payload, MessageAdded):
                    known[row] = event.payload.message
        return known

    return read


def find_rows(connection: sqlite3.Connection, question: Question, chat_id: str | None, read: Read) -> Iterator[Row]:
    """Yield the rows of the messages that match the question, best first."""
    matches = _look_up(connection, question, chat_id)
    if not matches.totals:
        yield from _find_whole(connection, question, chat_id)
        return
    own = own_scores(question, matches)
    pool = heapq.nlargest(POOL, own, key=lambda row: (own[row], row))
    around, messages = Surroundings({}, {}), dict[Row, Message]()
    near = dict.fromkeys(pool)
    if question.words >= FEW_WORDS:
        around = _surroundings(connection, pool)
        near |= dict.fromkeys(around.before[row] for row in pool if row in around.before)
        near |= dict.fromkeys(around.after[row] for row in pool if row in around.after)
        messages |= read({*near, *(around.before.get(row, -1) for row in near)})
    days = _days(connection, near) if question.periods else {}
    scores = score_rows(question, matches, list(near), around, messages, days)
    yield from sorted(scores, key=lambda row: (-scores[row], -row))
    yield from sorted(own.keys() - scores.keys(), key=lambda row: (-own[row], -row))


def _look_up(connection: sqlite3.Connection, question: Question, chat_id: str | None) -> Matches:
    """Return the matches of each term, looking up the rarest terms first."""
    size = max(1, connection.execute("SELECT count(*) FROM message_text_docsize").fetchone()[0])
    matches = Matches([], {}, {}, {})
    counted = sorted(((_count(connection, term), number) for number, term in enumerate(question.terms)))
    for count, number in counted:
        term = question.terms[number]
        if count > COMMON and len(matches.totals) >= POOL:
            hits = _common_hits(connection, term, matches.totals, rarity(count, size))
        else:
            hits = _text_hits(connection, question, term, chat_id)
        inner = _rows_with(connection, term.in_names, chat_id) if term.in_names else []
        count = max(count, len(hits), len(inner))
        share = INNER_SHARE * rarity(count, size)
        hits |= {row: max(hits.get(row, 0.0), share) for row in inner}
        if term.bonus:
            for row, score in hits.items():
                matches.bonuses[row] = matches.bonuses.get(row, 0.0) + term.weight * score
        else:
            _add(matches, hits, term.weight * rarity(count, size) ** RARE)
    return matches


def _add(matches: Matches, hits: dict[Row, float], weight: float) -> None:
    totals, counts = matches.totals, matches.counts
    weighted = {row: weight * score for row, score in hits.items()}
    matches.terms.append(weighted)
    for row, score in weighted.items():
        totals[row] = totals.get(row, 0.0) + score
        counts[row] = counts.get(row, 0) + 1


def _count(connection: sqlite3.Connection, term: Term) -> int:
    if not term.in_text:
        return 0
    found = connection.execute("SELECT count(*) FROM message_text WHERE message_text MATCH ?", (term.in_text,))
    return int(found.fetchone()[0])


def _common_hits(connection: sqlite3.Connection, term: Term, wanted: Iterable[Row], score: float) -> dict[Row, float]:
    """Return the wanted rows that contain a very common word; scoring all rows with the word would take too long."""
    found = connection.execute("SELECT rowid FROM message_text WHERE message_text MATCH ?", (term.in_text,))
    texts = {row for (row,) in found}
    copies = connection.execute(
        "SELECT event_id, text_id FROM shared_text WHERE event_id IN (SELECT value FROM json_each(?))",
        (json.dumps(list(wanted)) if _has_copies(connection) else "[]",),
    )
    return dict.fromkeys([*texts.intersection(wanted), *(row for row, text in copies if text in texts)], score)


def _has_copies(connection: sqlite3.Connection) -> bool:
    return connection.execute("SELECT 1 FROM shared_text LIMIT 1").fetchone() is not None


def _text_hits(connection: sqlite3.Connection, question: Question, term: Term, chat_id: str | None) -> dict[Row, float]:
    """Return the matches in the text; the last word may be a prefix if the query is short or it has no matches."""
    if not term.in_text:
        return {}
    is_last = not term.bonus and question.last_word and term.in_text == f'"{question.last_word}"'
    if is_last and question.words < FEW_WORDS:
        return _matching(connection, f"{term.in_text}*", chat_id) | _matching(connection, term.in_text, chat_id)
    hits = _matching(connection, term.in_text, chat_id)
    return hits or (_matching(connection, f"{term.in_text}*", chat_id) if is_last else {})


def _rows_with(connection: sqlite3.Connection, expression: str, chat_id: str | None) -> list[Row]:
    """Return the rows with these inner words.

    Each row lists an inner word only once, so its rarity is known only from the number of rows.
    """
    return [row for row, _ in _found(connection, "message_inner", "0", expression, chat_id)]


def _matching(connection: sqlite3.Connection, expression: str, chat_id: str | None) -> dict[Row, float]:
    """Return the score of every row whose text matches: never 0, higher is better."""
    return dict(_found(connection, "message_text", "-bm25(message_text)", expression, chat_id))


def _found(
    connection: sqlite3.Connection, index: str, score: str, expression: str, chat_id: str | None
) -> Iterable[tuple[Row, float]]:
    """Return the matching rows, including copied messages, which have no index entry of their own."""
    select = f"SELECT events.id, {score} FROM {index} "  # noqa: S608 - constants, here and below
    direct = f"JOIN events ON events.id = {index}.rowid"
    copied = f"JOIN shared_text ON text_id = {index}.rowid JOIN events ON events.id = event_id"
    wanted = f" WHERE {index} MATCH ?1 AND (?2 IS NULL OR events.chat_id = ?2)"
    statement = select + direct + wanted
    if _has_copies(connection):
        statement += f" UNION ALL {select}{copied}{wanted}"
    return connection.execute(statement, (expression, chat_id))


def _find_whole(connection: sqlite3.Connection, question: Question, chat_id: str | None) -> list[Row]:
    """Return the rows with the exact phrase or, if there are none, with any of its words."""
    for expression in (question.whole, question.any_word):
        if expression:
            found = _matching(connection, expression, chat_id)
            if found:
                return sorted(found, key=lambda row: (-found[row], -row))
    return []


def _surroundings(connection: sqlite3.Connection, rows: Sequence[Row]) -> Surroundings:
    """Return the neighbours of the rows, `SIDE` on each side."""
    around = Surroundings({}, {})
    places = connection.execute(
        "SELECT id, chat_id, seq FROM events WHERE id IN (SELECT value FROM json_each(?))", (json.dumps(rows),)
    ).fetchall()
    for row, chat_id, seq in places:
        earlier, later = (
            connection.execute(
                f"SELECT id FROM events WHERE chat_id = ? AND seq {than} ? AND type = 'message_added' "  # noqa: S608
                f"ORDER BY seq {order} LIMIT {SIDE}",
                (chat_id, seq),
            ).fetchall()
            for than, order in (("<", "DESC"), (">", "ASC"))
        )
        line = [*(one for (one,) in reversed(earlier)), row, *(one for (one,) in later)]
        for before, after in itertools.pairwise(line):
            around.before[after], around.after[before] = before, after
    return around


def _days(connection: sqlite3.Connection, rows: Iterable[Row]) -> dict[Row, datetime.date]:
    """Return the day of each message whose day is known."""
    days = {}
    for row, ts in connection.execute(
        "SELECT id, ts FROM events WHERE id IN (SELECT value FROM json_each(?))", (json.dumps(list(rows)),)
    ):
        with contextlib.suppress(ValueError, OverflowError, OSError):
            if ts > 0:
                days[row] = datetime.datetime.fromtimestamp(ts).astimezone().date()
    return days
