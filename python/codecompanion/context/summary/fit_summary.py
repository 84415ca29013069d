"""S13 `fit_summary`: keeps the summary from pushing the request over the limit (R-433, R-440…R-442).

It runs after `insert_summary`, so that the measured request is the one that will be sent. Only the text of the summary
shrinks: element, header and quoted request stay, and so do the headings of sections that an agent needs to continue.
Quotes added by code have a budget separate from the model's text (R-431), whether or not it has the requested form; if
that is still too much, quotes become excerpts with their keys.
"""

from __future__ import annotations

import msgspec

from codecompanion.context.strategy_parameters import EXCERPT_CHARS, FitSummary
from codecompanion.context.summary_text.fit_quotes import fit_quotes
from codecompanion.context.summary_text.place_quotes import put_quotes, take_quotes
from codecompanion.context.summary_text.quote_lines import parse_quotes, render_quotes
from codecompanion.context.summary_text.recall_keys import put_span, put_text, read_span, without_span
from codecompanion.context.summary_text.sections import Sectioned, close_fence, guess_schema, parse_sections
from codecompanion.context.thresholds import is_within, room_of, threshold_tokens
from codecompanion.context.work import Env, Outcome, Work
from codecompanion.formats.cutting import cut_with_note
from codecompanion.model.messages import SUMMARY_TAG
from codecompanion.summary_frame import split_frame

CUT_MARKER = "\n\n[... content truncated due to length ...]"
_CHARS_PER_TOKEN = 4
_SHRINK = 0.75


def fit_summary(work: Work, params: FitSummary, env: Env) -> Outcome:
    """Return the work with its summary as small as necessary; unchanged if it fits.

    The model's text is first cut to its own budget (R-433). `details` records the previous size.
    """
    place = next((i for i, message in enumerate(work.messages) if message.tag == SUMMARY_TAG), None)
    if place is None:
        return work
    whole = split_frame(work.messages[place].text).summary
    budget = work.details.summary_budget_tokens or 0
    fitted = _within_budget(whole, budget, env) if budget else whole
    work = _with_summary(work, place, fitted, env)
    room = room_of(env, work.messages, params.limit)
    allowed = _first_cut(work, place, params, env)
    while not is_within(params.limit, env.measure(work.messages), room) and allowed >= params.floor_tokens:
        fitted = _shrunk(whole, allowed, env)
        work = _with_summary(work, place, fitted, env)
        allowed = _next_cut(allowed, params.floor_tokens)
    if fitted == whole:
        return work
    return work.with_details(summary_cut_from_tokens=env.count_text(whole))


def _first_cut(work: Work, place: int, params: FitSummary, env: Env) -> int:
    """Return the room for the summary: the basis minus all other messages and some slack (R-440)."""
    all_of_it = msgspec.structs.replace(params.limit, at=1.0, tokens=None)
    basis = threshold_tokens(all_of_it, room_of(env, work.messages, all_of_it)) or 0
    others = env.measure((*work.messages[:place], *work.messages[place + 1 :])).tokens
    return max(params.floor_tokens, basis - others - params.slack_tokens)


def _next_cut(allowed: int, floor: int) -> int:
    """Return the next smaller size; 0 at the floor, which ends the loop."""
    return max(floor, int(allowed * _SHRINK)) if allowed > floor else 0


def _with_summary(work: Work, place: int, text: str, env: Env) -> Work:
    if text == split_frame(work.messages[place].text).summary:
        return work
    return msgspec.structs.replace(put_text(work, place, text, env), summary=text)


def _within_budget(text: str, tokens: int, env: Env) -> str:
    """Return the text with at most `tokens` of the model's text; parts added by code (quotes, keys, a ledger) stay."""
    told, quotes = take_quotes(without_span(text))
    tail = parse_sections(told).tail
    told = told[: len(told) - len(tail)]
    if env.count_text(told) <= tokens:
        return text
    return _with_quotes(level(told, tokens, env) + ("\n\n" if tail else "") + tail, quotes, text)


def _shrunk(text: str, tokens: int, env: Env) -> str:
    """Return the summary in at most `tokens`, as far as its headings allow; the line with the keys always stays.

    Whole sections are dropped in the form's order, and the user's quotes stay as far as there is room; then the longest
    sections are cut (R-441). A summary without sections leaves half of the room to the user's quotes.
    """
    span = read_span(text)
    told, quotes = take_quotes(without_span(text))
    tokens = max(0, tokens - (env.count_text(span.line) + 2 if span is not None else 0))
    form = guess_schema(told)
    users = form.number_of("user_messages") if form is not None else 0
    for number in form.drop_first if form is not None else ():
        over = env.count_text(_with_quotes(told, quotes)) - tokens
        if over <= 0:
            break
        if number == users and quotes:
            quotes = _fewer(quotes, env.count_text(quotes) - over, env)
        if number != users or not quotes:
            found = parse_sections(told, form)
            parts = tuple(
                msgspec.structs.replace(part, body=_closed(part.body)) for part in found.parts if part.number != number
            )
            told = msgspec.structs.replace(found, parts=parts).text.rstrip("\n")
    beside = env.count_text(_with_quotes(told, quotes)) - env.count_text(told)
    if not users and beside > max(tokens // 2, tokens - env.count_text(told)):
        room = max(tokens // 2, tokens - env.count_text(told))
        quotes = _fewer(quotes, room - (beside - env.count_text(quotes)), env)
        beside = env.count_text(_with_quotes(told, quotes)) - env.count_text(told)
    if env.count_text(told) + beside > tokens:
        told = level(told, tokens - beside, env)
    return _with_quotes(told, quotes, text)


def _with_quotes(told: str, quotes: str, whole: str = "") -> str:
    """Return the model's text with the quotes put back, and with the keys of the whole text."""
    text = put_quotes(told, quotes) if quotes else told
    span = read_span(whole)
    return put_span(text, span) if span is not None else text


def _fewer(quotes: str, tokens: int, env: Env) -> str:
    """Return as many of the quoted messages as fit, or "" if none fits."""
    kept = fit_quotes(parse_quotes(quotes.split("\n")), tokens, EXCERPT_CHARS, env.count_text)
    return "\n".join(render_quotes(kept)) if kept.quotes else ""


def level(text: str, tokens: int, env: Env) -> str:
    """Return at most `tokens` of the text, as far as headings allow: the longest sections are cut to the same length.

    A summary without sections keeps its head (R-442).
    """
    found = parse_sections(text)
    if not found.is_sectioned:
        return cut_plainly(text, tokens)
    low, high = 0, max(map(len, (found.preamble, found.tail, *(part.body for part in found.parts))))
    while low < high:
        middle = (low + high + 1) // 2
        if env.count_text(_cut_to(found, middle)) <= tokens:
            low = middle
        else:
            high = middle - 1
    return _cut_to(found, low)


def cut_plainly(text: str, tokens: int) -> str:
    """Return the head of the text and a marker, never longer than four characters per token (R-413).

    If the cut is inside a code fence, the fence is closed; without room for that, the text ends before it.
    """
    limit = max(0, tokens) * _CHARS_PER_TOKEN
    shorter = cut_with_note(text, limit, max(0, limit - 100), CUT_MARKER)
    if shorter == text:
        return text
    head, marker = (shorter.removesuffix(CUT_MARKER), CUT_MARKER) if shorter.endswith(CUT_MARKER) else (shorter, "")
    closed = close_fence(head) + marker
    return closed if len(closed) <= limit else _before_open_fence(head) + marker


def _before_open_fence(text: str) -> str:
    """Return the text up to its unclosed code fence."""
    lines = text.split("\n")
    while lines and close_fence("\n".join(lines)) != "\n".join(lines):
        lines.pop()
    return "\n".join(lines)


def _cut_to(found: Sectioned, chars: int) -> str:
    """Return the text with every body cut to `chars` characters; text outside sections stays if there is room."""
    told = [part.head + _cut_body(part.body, chars) for part in found.parts]
    preamble, tail = (_cut_around(text, chars) for text in (found.preamble, found.tail))
    return (preamble + "".join(told) + tail).rstrip("\n")


def _cut_around(text: str, chars: int) -> str:
    """Return the beginning of text outside sections, with a line break after a fence that had to be closed."""
    closed = close_fence(text[:chars])
    return text[:chars] if closed == text[:chars] else f"{closed}\n\n"


def _cut_body(body: str, chars: int) -> str:
    stripped = body.strip("\n")
    if len(stripped) <= chars:
        return _closed(body)
    # A heading keeps its own line even if its section is empty.
    ahead = "\n" if body.startswith("\n") else ""
    return close_fence(f"{ahead}{stripped[:chars].rstrip()} […]") + "\n\n"


def _closed(body: str) -> str:
    """Return the body of a section, closing a code fence that the model left open."""
    closed = close_fence(body)
    return body if closed == body else f"{closed}\n\n"
