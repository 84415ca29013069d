"""`append_ledger`: appends facts that code collects from the log to a model's summary (lesson 21).

The facts are files with their actions and edited symbols, commands with their exit status, errors, todos, decisions,
and identifiers missing from the prose. Results cleared by an earlier stage or turn are read in their original form
(`Env.original`). The ledger doubles the hit rate of later steps: 62 % of file reads after a compaction re-read a known
file. Lines that the text already contains (because it was written from the log itself) are not repeated; a summary that
is a ledger stays unchanged.
"""

from __future__ import annotations

import msgspec

from codecompanion.context.ledger.facts import Facts, gather
from codecompanion.context.ledger.lines import (
    Count,
    command_lines,
    decision_lines,
    error_lines,
    file_lines,
    fit,
    name_line,
    todo_lines,
    write_within,
)
from codecompanion.context.message_facts.name_patterns import NAME
from codecompanion.context.strategy_parameters import AppendLedger
from codecompanion.context.summary_text.quote_user_messages import is_given
from codecompanion.context.summary_text.sections import parse_sections
from codecompanion.context.work import Env, Messages, Outcome, Work
from codecompanion.formats.regex import regex
from codecompanion.placeholders import LEDGER_HEADING

_SHARES = {"Todos": 0.10, "Errors": 0.12, "Commands": 0.10, "Decisions": 0.08, "Files": 0.50}
_SHOWN = ("Files", "Commands", "Errors", "Todos", "Decisions")
_NAMES = "Names: "
_NOT_WORTH_IT = 60
_TODO = regex(r"- \[[ x]\] \S")


def append_ledger(work: Work, params: AppendLedger, env: Env) -> Outcome:
    """Return the work with the ledger of the removed messages below its summary; `details` has its size."""
    if not work.summary or work.details.ledger_tokens is not None or (is_given(work) and not params.also_given):
        return work
    prose = env.count_text(work.summary)
    kept = env.measure((*work.messages, *work.pending)).tokens
    freed = env.measure(work.before).tokens - kept
    room = min(params.max_tokens, int(params.share * env.window), (freed - prose) // 2)
    if params.within_target and env.target:
        room = min(room, env.target - kept - prose)
    if room < _NOT_WORTH_IT:
        return work
    facts = gather(tuple(map(env.original, work.original_removed())))
    for name in _names_in((*work.messages, *work.pending)):
        facts.names.pop(name, None)
    ledger = write_ledger(facts, room, work.summary, env.count_text)
    if not ledger:
        return work
    said = work.with_details(ledger_tokens=env.count_text(ledger))
    return msgspec.structs.replace(said, summary=put_ledger(work.summary, ledger))


def _names_in(messages: Messages) -> set[str]:
    """Return the names that the model already sees in these messages."""
    texts = (text for message in messages for text in (message.text, *(call.arguments for call in message.tool_calls)))
    return {name for text in texts for name in NAME.findall(text)}


def write_ledger(facts: Facts, max_tokens: int, prose: str, count: Count) -> str:
    """Return the ledger in at most `max_tokens`, or "" if there are no facts or there is no room."""
    text = write_within(lambda budget: _write(facts, budget, prose, count), max_tokens, count, tries=8)
    return text if count(text) <= max_tokens else ""


def _write(facts: Facts, budget: int, prose: str, count: Count) -> str:
    room = budget - count(LEDGER_HEADING) - 2 * len(_SHOWN)
    left = room
    told = frozenset(prose.split("\n"))
    groups: dict[str, list[str]] = {}
    for name, share in _SHARES.items():
        lines = _lines(name, facts, min(left, int(room * share)), count)
        groups[name] = [line for line in lines if line not in told]
        left -= count("\n".join([f"{name}:", *groups[name]])) if groups[name] else 0
    shown = [line for name in _SHOWN if groups[name] for line in (f"{name}:", *groups[name])]
    names = name_line(_NAMES, facts, left, "\n".join([prose, *shown]), count)
    return "\n".join([LEDGER_HEADING, *shown, *names]) if shown or names else ""


def _lines(name: str, facts: Facts, limit: int, count: Count) -> list[str]:
    match name:
        case "Files":
            return file_lines(facts, limit, count)
        case "Commands":
            return fit(command_lines(facts), limit, count)
        case "Errors":
            return fit(error_lines(facts), limit, count)
        case "Todos":
            carried = [line for line in facts.earlier[-1].split("\n") if _TODO.match(line)] if facts.earlier else []
            return fit(todo_lines(facts, carried), limit, count)
        case _:
            return fit(decision_lines(facts), limit, count)


def put_ledger(summary: str, ledger: str) -> str:
    """Return the summary with the ledger below its text; everything else stays in place."""
    found = parse_sections(summary)
    text = summary[: len(summary) - len(found.tail)].rstrip("\n")
    quotes = found.tail.rstrip("\n")
    return "\n\n".join(part for part in (text, quotes, ledger) if part)
