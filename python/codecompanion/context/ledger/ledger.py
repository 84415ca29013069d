"""Writes a summary without a model: fills the sections of a schema from the log (R-526, lessons 11, 14, 21).

Nothing is invented: user messages are quoted, file names, identifiers, commands and errors are copied, a status comes
from an exit code or an error mark. The offline adapter uses this summary as its reply, and it is the last tier when no
model succeeds.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from codecompanion.context.ledger.facts import Facts, gather
from codecompanion.context.ledger.goal import is_usable_goal
from codecompanion.context.ledger.lines import (
    Count,
    command_lines,
    decision_lines,
    error_lines,
    file_lines,
    fit,
    name_line,
    neutral,
    plain,
    quote,
    quote_within,
    todo_lines,
    write_within,
)
from codecompanion.context.message_facts.calls import describe_call
from codecompanion.context.message_facts.noise import is_pasted
from codecompanion.context.strategy_parameters import EXCERPT_CHARS
from codecompanion.context.summary_text.fit_quotes import demands_something, fit_quotes
from codecompanion.context.summary_text.place_quotes import read_quotes
from codecompanion.context.summary_text.quote_facts import fit_facts
from codecompanion.context.summary_text.quote_lines import Quote, Quotes, render_quotes
from codecompanion.context.summary_text.recall_keys import KeyOf, no_key
from codecompanion.context.summary_text.sections import Role, Schema, guess_schema, load_schema, parse_sections
from codecompanion.formats.cutting import MAX_TOKEN_LENGTH, cut_to_tokens
from codecompanion.model.messages import Message
from codecompanion.placeholders import NO_ROOM, NO_ROOM_FOR

# Shares of the budget, in writing order. Unused tokens go to sections that had too little room, in order of importance,
# and then to the identifiers.
_SHARES: dict[Role, float] = {
    "user_messages": 0.28,
    "request": 0.10,
    "current": 0.08,
    "pending": 0.05,
    "next_step": 0.03,
    "errors": 0.08,
    "decisions": 0.05,
    "solved": 0.08,
    "files": 0.28,
}
_IMPORTANCE: tuple[Role, ...] = (
    "request", "current", "pending", "user_messages", "files", "errors", "next_step", "solved", "decisions", "names",
)  # fmt: skip
# All headings are written if they take at most this share of the budget; otherwise only those of non-empty sections.
_HEADINGS_SHARE = 0.25
_SMALLEST_SECTION = 10
_UNLIMITED = 10_000
# Minimum tokens to which user messages are shortened; beyond that, the oldest are dropped.
_MIN_QUOTE_LENGTH = 40
_ROOM_FOR_BOTH = 30
"""Minimum tokens for showing both the first and the latest request; with less room, only the latest is shown."""
_FIRST = "First request:"
_LATEST = "Latest request:"
_NAMES = "Identifiers used, the most important first: "
_DEFAULT = "cc_9"


class Maker(Protocol):
    """Writes one section."""

    def __call__(self, limit: int, already: str = "") -> list[str]:
        """Return the section's lines in at most `limit` tokens; `already` is the text of the other sections."""
        ...


def summarise(
    messages: Sequence[Message],
    max_tokens: int,
    count: Count,
    schema: str = _DEFAULT,
    key_of: KeyOf = no_key,
    *,
    for_quotes: int = 0,
    facts_first: bool = False,
) -> str:
    """Return the summary of the messages, at most `max_tokens` by `count`; "" only if nothing fits.

    The user's own words may take `for_quotes` additional tokens, which are reserved for them (R-431). `facts_first`:
    short facts in these words take precedence over whole messages.

    An earlier summary among the messages is carried over: its quoted user messages, files and open tasks stay. A schema
    without sections for a ledger is replaced by the default.
    """
    chosen = load_schema(schema)
    if not chosen.number_of("files"):
        chosen = load_schema(_DEFAULT)
    makers = _makers(gather(messages), count, chosen, key_of, facts_first=facts_first)
    most = max_tokens + for_quotes
    if count(_join({}, chosen)) <= _HEADINGS_SHARE * most:
        text = write_within(
            lambda budget: _write_all(makers, budget, count, chosen, budget * for_quotes // most),
            most,
            count,
            tries=12,
        )
    else:
        text = write_within(lambda budget: _write_few(makers, budget, count, chosen), most, count, tries=12)
    return _cut_to(text, most, count)


def _write_all(makers: dict[Role, Maker], budget: int, count: Count, schema: Schema, for_quotes: int) -> str:
    parts: dict[Role, list[str]] = {}
    left = room = max(0, budget - for_quotes - count(_join({}, schema)))
    for role, share in _SHARES.items():
        if role in makers:
            own = for_quotes if role == "user_messages" else 0
            parts[role] = makers[role](min(left, int(room * share)) + own)
            left -= max(0, count("\n".join(parts[role])) - own)
    for role in _IMPORTANCE:
        if role in makers and not parts.get(role):
            already = "\n".join("\n".join(lines) for lines in parts.values())
            parts[role] = makers[role](max(0, left), already) or _nothing_or_no_room(makers[role])
            left -= count("\n".join(parts[role]))
    return _join(parts, schema)


def _write_few(makers: dict[Role, Maker], budget: int, count: Count, schema: Schema) -> str:
    """Return the non-empty sections, most important first, as long as there is room."""
    telling = [role for role in _IMPORTANCE if role in makers and makers[role](_UNLIMITED)]
    left = budget - count(_few({}, schema, telling))
    parts: dict[Role, list[str]] = {}
    for role in telling:
        room = left - count(schema.heading(schema.number_of(role))) - 2
        # Use half of the room, to leave some for the next sections, or all of it if the section would otherwise be
        # empty.
        lines = (makers[role](room // 2) or makers[role](room)) if room >= _SMALLEST_SECTION else []
        if lines:
            parts[role] = lines
            left = room - count("\n".join(lines))
    return _few(parts, schema, telling) if parts or not telling else ""


def _few(parts: dict[Role, list[str]], schema: Schema, telling: Sequence[Role]) -> str:
    """Return the written sections, preceded by a note on the non-empty ones that are missing."""
    sections = list(enumerate(schema.section, 1))
    missing = [number for number, section in sections if section.role in telling and section.role not in parts]
    shown = [
        f"{schema.heading(number)}\n" + "\n".join(parts[section.role])
        for number, section in sections
        if section.role in parts
    ]
    note = [NO_ROOM_FOR.format(numbers=_in_words(missing))] if missing else []
    return "\n\n".join([*note, *shown])


def _in_words(numbers: Sequence[int]) -> str:
    """Return ascending numbers as text with each run joined, such as `2, 4 to 6`."""
    runs: list[tuple[int, int]] = []
    for number in numbers:
        first = runs.pop()[0] if runs and runs[-1][1] == number - 1 else number
        runs.append((first, number))
    joint = {0: "{0}", 1: "{0}, {1}"}
    return ", ".join(joint.get(last - first, "{0} to {1}").format(first, last) for first, last in runs)


def _makers(facts: Facts, count: Count, schema: Schema, key_of: KeyOf, *, facts_first: bool) -> dict[Role, Maker]:
    """Return the writer of each section of the schema; names that other sections contain are not repeated."""
    earlier = _carry(facts.earlier)
    has_solved = schema.number_of("solved") > 0
    makers: dict[Role, Maker] = {
        "user_messages": lambda limit, already="": _user_messages(facts, limit, count, key_of, facts_first=facts_first),
        "request": lambda limit, already="": _request(earlier.get("request", []), facts, limit, count),
        "current": lambda limit, already="": _current(facts, limit, count),
        "pending": lambda limit, already="": fit(todo_lines(facts, earlier.get("pending", [])), limit, count),
        "next_step": lambda limit, already="": _next_step(facts, limit, count),
        "errors": lambda limit, already="": fit(error_lines(facts), limit, count),
        "decisions": lambda limit, already="": fit(decision_lines(facts), limit, count),
        "solved": lambda limit, already="": fit(decision_lines(facts) + command_lines(facts), limit, count),
        "files": lambda limit, already="": _files(facts, limit, count, with_commands=not has_solved),
        "names": lambda limit, already="": name_line(_NAMES, facts, limit, already, count),
    }
    return {role: make for role, make in makers.items() if schema.number_of(role)}


def _nothing_or_no_room(make: Maker) -> list[str]:
    return [NO_ROOM] if make(_UNLIMITED) else []


def _join(parts: dict[Role, list[str]], schema: Schema) -> str:
    return "\n\n".join(
        f"{schema.heading(number)}\n" + ("\n".join(parts.get(section.role, ())) or "None")
        for number, section in enumerate(schema.section, 1)
    )


def _carry(earlier: Sequence[str]) -> dict[Role, list[str]]:
    """Return the lines of the newest earlier summary by role; if it has no known headings, all of it is the request."""
    if not earlier:
        return {}
    schema = guess_schema(earlier[-1])
    if schema is None:
        return {"request": ["An earlier summary:", *quote(earlier[-1].strip())]}
    found = parse_sections(earlier[-1], schema)
    return {
        section.role: [line for line in found.body(number).split("\n") if line.strip()]
        for number, section in enumerate(schema.section, 1)
    }


def _request(carried: list[str], facts: Facts, limit: int, count: Count) -> list[str]:
    lines = _without_bare_label(fit(_before_latest(carried), limit // 2, count))
    substantial = [text for text in facts.requests if is_usable_goal(text) and not is_pasted(text)]
    substantial = substantial or facts.requests
    first = substantial[:1] if not carried and (limit >= _ROOM_FOR_BOTH or len(substantial) == 1) else []
    latest = substantial[-1:] if len(substantial) > len(first) else []
    for label, texts in ((_FIRST, first), (_LATEST, latest)):
        for text in texts:
            room = limit - count("\n".join(lines)) - count(label) - 4
            said = quote_within(text.strip(), room // (2 if texts is first and latest else 1), count)
            lines += [label, *said] if said else []
    return _without_bare_label(fit(lines, limit, count))


def _without_bare_label(lines: list[str]) -> list[str]:
    """Return the lines without a final label whose text did not fit."""
    return lines[:-1] if lines and lines[-1] in (_FIRST, _LATEST) else lines


def _before_latest(carried: list[str]) -> list[str]:
    """Return the carried first section without its latest request."""
    return carried[: carried.index(_LATEST)] if _LATEST in carried else carried


def _user_messages(facts: Facts, limit: int, count: Count, key_of: KeyOf, *, facts_first: bool) -> list[str]:
    """Return every user message verbatim; if there is no room, the longest without demands are shortened first.

    Quotes of an earlier summary come first; its excerpts and counts are carried over.
    """
    earlier = read_quotes(facts.earlier[-1]) if facts.earlier else Quotes()
    asked = [pair for pair in zip(facts.requests, facts.request_ids, strict=True) if pair[0].strip()]
    texts = [text.strip() for text, _ in asked]
    if facts_first:
        whole = (Quote(neutral(text), key=key_of(id)) for text, (_, id) in zip(texts, asked, strict=True))
        said = Quotes((*earlier.quotes, *whole), earlier.left_out, earlier.left_keys)
        return render_quotes(fit_facts(said, limit, 0, EXCERPT_CHARS, count)) if said.total else []
    sizes = [count("\n".join(quote(text[: limit * MAX_TOKEN_LENGTH]))) + 3 for text in texts]
    room = int(limit * (0.7 if earlier.quotes else 1))
    spared = [sum(sizes) > room and demands_something(text) for text in texts]
    cap = limit
    room -= sum(size for size, is_spared in zip(sizes, spared, strict=True) if is_spared)
    may_shrink = [size for size, is_spared in zip(sizes, spared, strict=True) if not is_spared]
    while cap > _MIN_QUOTE_LENGTH and sum(min(size, cap) for size in may_shrink) > room:
        cap = int(cap * 0.8)
    quotes = [
        Quote(neutral(text if is_spared else _in_tokens(text, cap, count)), key=key_of(message_id))
        for text, is_spared, (_, message_id) in zip(texts, spared, asked, strict=True)
    ]
    said = Quotes((*earlier.quotes, *quotes), earlier.left_out, earlier.left_keys)
    lines = render_quotes(fit_quotes(said, limit, EXCERPT_CHARS, count)) if said.total else []
    return lines if count("\n".join(lines)) <= limit else []


def _in_tokens(text: str, tokens: int, count: Count) -> str:
    return cut_to_tokens(text, max(8, tokens - 4), count) or text[:EXCERPT_CHARS]


def _files(facts: Facts, limit: int, count: Count, *, with_commands: bool) -> list[str]:
    if not with_commands:
        return file_lines(facts, limit, count)
    commands = fit(command_lines(facts), limit // 4, count)
    return file_lines(facts, limit - count("\n".join(commands)), count) + commands


def _current(facts: Facts, limit: int, count: Count) -> list[str]:
    lines = []
    for call, failed in reversed(facts.recent_calls[-8:]):
        status = " (failed)" if failed else ""
        lines.append(f"- {plain(describe_call(call), 140)}{status}")
    # Repeated lines (about another part of the same file) are dropped.
    kept = fit(dict.fromkeys(lines), limit // 2, count)[::-1]
    if facts.statements:
        room = limit - count("\n".join(kept)) - 12
        said = quote_within(facts.statements[-1].strip(), room, count)
        kept += ["The assistant's last words:", *said] if said else []
    return fit(kept, limit, count)


def _next_step(facts: Facts, limit: int, count: Count) -> list[str]:
    if facts.unanswered and facts.requests:
        said = quote_within(facts.requests[-1].strip(), limit - 12, count)
        return fit(["Answer the latest user message:", *said], limit, count) if said else []
    open_todo = next((text for text, done in facts.todos if not done), "")
    return fit([f"- {plain(open_todo, 160)}"], limit, count) if open_todo else []


def _cut_to(text: str, max_tokens: int, count: Count) -> str:
    """Return as many whole lines of the text as fit in `max_tokens`."""
    lines = text.split("\n")
    while lines and count("\n".join(lines)) > max_tokens:
        lines = lines[: int(len(lines) * 0.8)]
    return "\n".join(lines)
