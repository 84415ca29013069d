"""S13 `fit_summary`: the summary must not push the request over the guard (R-433, R-440…R-442).

Runs behind `insert_summary`, so that what is measured is what will be sent. What shrinks is what the summary says:
element, header and quoted request stay, and so do the headings of what an agent needs to go on.
"""

from __future__ import annotations

import msgspec

from codecompanion.context.budget import Trigger, is_within, room_of, threshold_tokens
from codecompanion.context.sections import Schema, Sectioned, guess_schema, load_schema, parse_sections
from codecompanion.context.work import Env, Outcome, Work
from codecompanion.messages import SUMMARY_TAG, with_changes
from codecompanion.placeholders import QUOTES_HEADING
from codecompanion.summary_frame import split_frame

CUT_MARKER = "\n\n[... content truncated due to length ...]"
_CHARS_PER_TOKEN = 4
_SHRINK = 0.75


class FitSummary(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Parameters of S13.

    `limit`: what request and summary may measure together. A summary beyond it is cut to what the other messages leave
    of the limit's basis less `slack_tokens`, then to three quarters again and again, but never below `floor_tokens`.
    """

    limit: Trigger = Trigger(at=0.95, measure="all", basis="window", op="<=")
    slack_tokens: int = 2000
    floor_tokens: int = 200


def fit_summary(work: Work, params: FitSummary, env: Env) -> Outcome:
    """Return the work with its summary as small as it must be; untouched when it fits.

    It is cut to its own budget first (R-433). `details` say what it measured before.
    """
    place = next((i for i, message in enumerate(work.messages) if message.tag == SUMMARY_TAG), None)
    if place is None:
        return work
    whole = split_frame(work.messages[place].text).summary
    schema = _schema(work, whole)
    budget = int(work.details.get("summary_budget_tokens") or 0)
    fitted = whole
    if budget and env.count_text(whole) > budget:
        fitted = shrink(whole, schema, budget, env, may_drop=False)
    work = _with_summary(work, place, fitted, env)
    room = room_of(env, work.messages, params.limit)
    allowed = _first_cut(work, place, params, env)
    while not is_within(params.limit, env.measure(work.messages), room) and allowed >= params.floor_tokens:
        fitted = shrink(whole, schema, allowed, env, may_drop=True)
        work = _with_summary(work, place, fitted, env)
        allowed = _next_cut(allowed, params.floor_tokens)
    if fitted == whole:
        return work
    return msgspec.structs.replace(work, details={**work.details, "summary_cut_from_tokens": env.count_text(whole)})


def _schema(work: Work, text: str) -> Schema | None:
    name = work.details.get("schema")
    return load_schema(str(name)) if name else guess_schema(text)


def _first_cut(work: Work, place: int, params: FitSummary, env: Env) -> int:
    """Return what the source leaves for the summary: the basis less all else and some slack (R-440)."""
    all_of_it = msgspec.structs.replace(params.limit, at=1.0)
    basis = threshold_tokens(all_of_it, room_of(env, work.messages, all_of_it)) or 0
    others = env.measure((*work.messages[:place], *work.messages[place + 1 :])).tokens
    return max(params.floor_tokens, basis - others - params.slack_tokens)


def _next_cut(allowed: int, floor: int) -> int:
    """Return the next smaller size; 0 behind the floor ends it."""
    return max(floor, int(allowed * _SHRINK)) if allowed > floor else 0


def _with_summary(work: Work, place: int, text: str, env: Env) -> Work:
    message = work.messages[place]
    frame = split_frame(message.text)
    if text == frame.summary:
        return work
    changed = with_changes(message, content=frame.before + text + frame.behind)
    changed = with_changes(changed, tokens=env.count(changed))
    messages = (*work.messages[:place], changed, *work.messages[place + 1 :])
    return msgspec.structs.replace(work, messages=messages, summary=text)


def shrink(text: str, schema: Schema | None, tokens: int, env: Env, *, may_drop: bool) -> str:
    """Return at most `tokens` of the summary, as far as headings allow.

    Sections are dropped whole in the schema's order when that is allowed, then the longest are cut (R-441). A text
    without sections keeps its head (R-442).
    """
    found = parse_sections(text, schema)
    if schema is None or not found.is_sectioned:
        return _cut_text(text, tokens, env)
    if may_drop:
        for number in schema.drop_first:
            if env.count_text(found.text) <= tokens:
                break
            kept = tuple(part for part in found.parts if part.number != number)
            found = msgspec.structs.replace(found, parts=kept)
    if env.count_text(found.text) <= tokens:
        return found.text.rstrip("\n")
    return _level(found, schema, tokens, env)


def _cut_text(text: str, tokens: int, env: Env) -> str:
    """Return the head of a text without sections; what code quotes below it stays while it leaves half of the room."""
    head, heading, quotes = text.partition(f"\n\n{QUOTES_HEADING}\n")
    size = env.count_text(heading + quotes)
    if not heading or 2 * size > tokens:
        return cut_plainly(text, tokens)
    return cut_plainly(head, tokens - size) + heading + quotes


def cut_plainly(text: str, tokens: int) -> str:
    """Return the head of the text and a marker, never longer than four characters a token (R-413)."""
    if len(text) <= tokens * _CHARS_PER_TOKEN:
        return text
    return text[: max(0, tokens * _CHARS_PER_TOKEN - 100)] + CUT_MARKER


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
