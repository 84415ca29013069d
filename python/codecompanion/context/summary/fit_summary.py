"""S13 `fit_summary`: the summary must not push the request over the guard (R-433, R-440…R-442).

Runs after `insert_summary`, so that what is measured is what will be sent. What shrinks is what the summary says:
element, header and quoted request stay, and so do the headings of what an agent needs to go on. What code quotes has a
budget of its own beside the model's (R-431): when even that is too much, quotes become excerpts with their keys.
"""

from __future__ import annotations

import msgspec

from codecompanion.context.strategy_parameters import EXCERPT_CHARS, FitSummary
from codecompanion.context.summary_text.quote_lines import parse_quotes, render_quotes
from codecompanion.context.summary_text.quote_user_messages import fit_quotes
from codecompanion.context.summary_text.recall_keys import put_span, put_text, read_span, without_span
from codecompanion.context.summary_text.sections import (
    Part,
    Schema,
    Sectioned,
    guess_schema,
    load_schema,
    parse_sections,
)
from codecompanion.context.thresholds import is_within, room_of, threshold_tokens
from codecompanion.context.work import Env, Outcome, Work
from codecompanion.formats.cutting import cut_with_note
from codecompanion.model.messages import SUMMARY_TAG
from codecompanion.placeholders import QUOTES_HEADING
from codecompanion.summary_frame import split_frame

CUT_MARKER = "\n\n[... content truncated due to length ...]"
_CHARS_PER_TOKEN = 4
_SHRINK = 0.75


def fit_summary(work: Work, params: FitSummary, env: Env) -> Outcome:
    """Return the work with its summary as small as it must be; untouched when it fits.

    It is cut to its own budget first (R-433). `details` say what it measured before.
    """
    place = next((i for i, message in enumerate(work.messages) if message.tag == SUMMARY_TAG), None)
    if place is None:
        return work
    whole = split_frame(work.messages[place].text).summary
    schema = _schema(work, whole)
    budget = work.details.summary_budget_tokens or 0
    fitted = whole
    own = _size_of_quotes(whole, schema, env)
    if budget and env.count_text(whole) > budget + own:
        fitted = shrink(whole, schema, budget + own, env, may_drop=False)
    work = _with_summary(work, place, fitted, env)
    room = room_of(env, work.messages, params.limit)
    allowed = _first_cut(work, place, params, env)
    while not is_within(params.limit, env.measure(work.messages), room) and allowed >= params.floor_tokens:
        fitted = shrink(whole, schema, allowed, env, may_drop=True)
        work = _with_summary(work, place, fitted, env)
        allowed = _next_cut(allowed, params.floor_tokens)
    if fitted == whole:
        return work
    return work.saying(summary_cut_from_tokens=env.count_text(whole))


def _schema(work: Work, text: str) -> Schema | None:
    return load_schema(work.details.schema) if work.details.schema else guess_schema(text)


def _size_of_quotes(text: str, schema: Schema | None, env: Env) -> int:
    """Return the tokens of what code put into the summary: quotes, keys, a ledger."""
    found = parse_sections(text, schema)
    users = schema.number_of("user_messages") if schema is not None else 0
    bodies = [part.body for part in found.parts if users and part.number == users]
    return env.count_text("".join([*bodies, found.tail]))


def _first_cut(work: Work, place: int, params: FitSummary, env: Env) -> int:
    """Return what the source leaves for the summary: the basis less all else and some slack (R-440)."""
    all_of_it = msgspec.structs.replace(params.limit, at=1.0, tokens=None)
    basis = threshold_tokens(all_of_it, room_of(env, work.messages, all_of_it)) or 0
    others = env.measure((*work.messages[:place], *work.messages[place + 1 :])).tokens
    return max(params.floor_tokens, basis - others - params.slack_tokens)


def _next_cut(allowed: int, floor: int) -> int:
    """Return the next smaller size; 0 below the floor ends it."""
    return max(floor, int(allowed * _SHRINK)) if allowed > floor else 0


def _with_summary(work: Work, place: int, text: str, env: Env) -> Work:
    if text == split_frame(work.messages[place].text).summary:
        return work
    return msgspec.structs.replace(put_text(work, place, text, env), summary=text)


def shrink(text: str, schema: Schema | None, tokens: int, env: Env, *, may_drop: bool) -> str:
    """Return at most `tokens` of the summary, as far as headings allow; the line that tells the keys always stays.

    Sections are dropped whole in the schema's order when that is allowed, then the longest are cut (R-441). A text
    without sections keeps its head (R-442).
    """
    span = read_span(text)
    if span is not None:
        text, tokens = without_span(text), max(0, tokens - env.count_text(span.line) - 2)
    shrunk = _shrunk(text, schema, tokens, env, may_drop=may_drop)
    return put_span(shrunk, span) if span is not None else shrunk


def _shrunk(text: str, schema: Schema | None, tokens: int, env: Env, *, may_drop: bool) -> str:
    found = parse_sections(text, schema)
    if schema is None or not found.is_sectioned:
        return _cut_text(text, tokens, env)
    users = schema.number_of("user_messages")
    for number in schema.drop_first if may_drop else ():
        over = env.count_text(found.text) - tokens
        if over <= 0:
            break
        changed = (_less(part, users, over, env) if part.number == number else part for part in found.parts)
        found = msgspec.structs.replace(found, parts=tuple(part for part in changed if part is not None))
    if env.count_text(found.text) <= tokens:
        return found.text.rstrip("\n")
    return _level(found, schema, tokens, env)


def _less(part: Part, users: int, over: int, env: Env) -> Part | None:
    """Return None, a section is dropped whole; but of what the user said as much stays as there is room for."""
    if part.number != users:
        return None
    room = env.count_text(part.body) - over
    kept = fit_quotes(parse_quotes(part.body.split("\n")), room, EXCERPT_CHARS, env.count_text)
    if not kept.quotes:
        return None
    ahead = "\n" if part.body.startswith("\n") else ""
    return msgspec.structs.replace(part, body=ahead + "\n".join(render_quotes(kept)) + "\n\n")


def _cut_text(text: str, tokens: int, env: Env) -> str:
    """Return the head of a text without sections; what code quotes below it stays in half of the room."""
    head, heading, quotes = text.partition(f"\n\n{QUOTES_HEADING}\n")
    if heading and 2 * env.count_text(heading + quotes) > tokens:
        room = tokens // 2 - env.count_text(heading)
        kept = fit_quotes(parse_quotes(quotes.split("\n")), room, EXCERPT_CHARS, env.count_text)
        quotes = "\n".join(render_quotes(kept))
        heading = heading if kept.quotes else ""
    if not heading:
        return cut_plainly(head, tokens)
    return cut_plainly(head, tokens - env.count_text(heading + quotes)) + heading + quotes


def cut_plainly(text: str, tokens: int) -> str:
    """Return the head of the text and a marker, never longer than four characters a token (R-413)."""
    limit = tokens * _CHARS_PER_TOKEN
    return cut_with_note(text, limit, max(0, limit - 100), CUT_MARKER)


def _level(found: Sectioned, schema: Schema, tokens: int, env: Env) -> str:
    """Cut the longest sections to the length at which all fit; what the user said keeps its length if it can."""
    user_messages = schema.number_of("user_messages")
    for exempt in (user_messages, 0):
        low, high = 0, max(len(part.body) for part in found.parts)
        while low < high:
            middle = (low + high + 1) // 2
            if env.count_text(_cut_to(found, middle, exempt)) <= tokens:
                low = middle
            else:
                high = middle - 1
        text = _cut_to(found, low, exempt)
        if env.count_text(text) <= tokens:
            return text
    return text


def _cut_to(found: Sectioned, chars: int, exempt: int) -> str:
    """Return the text with every body cut to that many characters; what is no section stays while there is room."""
    told = [part.head + _cut_body(part.body, part.number, chars, exempt) for part in found.parts]
    return (found.preamble[:chars] + "".join(told) + found.tail[:chars]).rstrip("\n")


def _cut_body(body: str, number: int, chars: int, exempt: int) -> str:
    stripped = body.strip("\n")
    if len(stripped) <= chars or (exempt and number == exempt):
        return body
    # A heading stands on its own line even when nothing of its section is left.
    ahead = "\n" if body.startswith("\n") else ""
    return f"{ahead}{stripped[:chars].rstrip()} […]\n\n"
