"""Writes `/trace [turn]`: a turn, call by call (R-357, R-360).

    title · Summary · Provider calls · Prompt assembly · Context and history · Retries and errors · Tools

After the summary come the gathered code, for turns that gathered any (R-268), and other attachments; at the end are the
events before the next turn, if any.

Without a number it shows the newest turn; a number out of range is an error that names the range.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from codecompanion.context.change import why_edited
from codecompanion.errors import InputError
from codecompanion.formats.cutting import cut_cells
from codecompanion.formats.plural import cleared_words, counted
from codecompanion.model.history import PolicyEvent, ViewChanged
from codecompanion.reports.attachments_section import attachments_section
from codecompanion.reports.call_totals import read_again, sum_calls
from codecompanion.reports.context_sizes import LEFT_OUT, shaped_tokens
from codecompanion.reports.gathered_code import gathered_code
from codecompanion.reports.markdown import (
    INCLUDED,
    LOCAL,
    Page,
    clock_text,
    duration_text,
    one_line,
    page_text,
    share_text,
    table,
    tokens_text,
    usd_text,
)
from codecompanion.reports.money import UNKNOWN, free, unknown_prices
from codecompanion.reports.record import OTHER_PURPOSES, Call, Record, Stretch, failed_exit

EMPTY = "No turn yet: send a message first."
_LAST = ("rendered_summary", "event_version", "artifact_version", "renderer_version", "schema", "version")
"""Fields that are shown last because they are the least informative."""
PARTS = {"prompt": "instructions", "conversation": "conversation", "tools": "tool schemas"}


def find_turn(record: Record, number: int | None = None) -> Stretch:
    """Return a turn by its number, by default the newest.

    Raises:
        InputError: the turn does not exist; the message names the range.
    """
    turns = record.turns
    if not turns:
        raise InputError(EMPTY)
    if number is None:
        return turns[-1]
    if not 1 <= number <= len(turns):
        there_are = "there is only turn 1" if len(turns) == 1 else f"the turns are 1 to {len(turns)}"
        raise InputError(f"There is no turn {number}: {there_are}.")
    return turns[number - 1]


def trace_report(record: Record, turn: Stretch, page: Page) -> str:
    """Return the report on a turn as Markdown."""
    lines = [
        *_title(record, turn, page),
        *_summary(turn),
        *gathered_code(turn, page),
        *attachments_section(turn, page),
        *_calls(turn, page),
        *_assembly(turn, page),
        *_context(record, turn, page),
        *_errors(turn),
        *_tools(turn, page),
        *_after(record, turn, page),
    ]
    return page_text(lines)


def _title(record: Record, turn: Stretch, page: Page) -> list[str]:
    head = f"# Turn {turn.number} of {len(record.turns)}: "
    question = cut_cells(one_line(turn.question), max(20, page.width - len(head)))
    how = "still running" if turn.end is None else turn.end.reason
    took = f" after {duration_text(1000 * (turn.ended_at - turn.began))}" if turn.end else ""
    lines = [head + question, "", f"{how}{took} · {clock_text(turn.began, page)}"]
    if turn.end is not None and turn.end.error:
        lines.append(f"> {one_line(turn.end.error)}")
    return lines


def _summary(turn: Stretch) -> list[str]:
    sums = sum_calls(turn.calls)
    lines = ["", "## Summary", ""]
    cost = usd_text(sums.usd if sums.priced else None) if sums.priced or sums.unpriced else "no usage reported"
    if sums.included and not sums.unpriced:
        cost = f"{cost}, the rest {free(sums)}" if sums.priced else free(sums)
    lines.append(f"- {counted(sums.calls, 'request')}, {counted(len(turn.tools), 'tool call')}, {cost}")
    if sums.prompt_tokens:
        hits = f"{share_text(sums.hit_ratio, 1)} from cache" if sums.uses_cache else "no cache reported"
        lines.append(
            f"- {tokens_text(sums.prompt_tokens)} tokens sent ({hits}), {tokens_text(sums.output_tokens)} received"
        )
    largest = max((call for call in turn.calls if call.sent and call.sent.mix), key=_prompt_size, default=None)
    if largest is not None:
        lines += _mix(largest)
    saved = sum(max(0, change.tokens_before - change.tokens_after) for change in _managed(turn))
    shaped = {part: sum(shaped_tokens(call, part) for call in turn.calls) for part in LEFT_OUT}
    if saved or any(shaped.values()):
        mix = {
            "history": saved + shaped["results"],
            "prompt": shaped["prompt"] + shaped["packet_omitted"],
            "tool catalogue": shaped["tools"],
        }
        parts = ", ".join(f"{name} {tokens_text(tokens)}" for name, tokens in mix.items())
        # One `~` for all: Markdown highlighters render text between two as strikethrough.
        lines.append(f"- ~{tokens_text(sum(mix.values()))} tokens left out: {parts}")
    return lines


def _prompt_size(call: Call) -> int:
    return call.usage.prompt_tokens or (call.sent.estimated_tokens if call.sent else 0)


def _mix(call: Call) -> list[str]:
    """Return lines on the parts of the largest request, and on the largest part."""
    mix = call.sent.mix if call.sent else {}
    whole = sum(mix.values())
    parts = [f"{PARTS.get(part, part)} {share_text(tokens, whole)}" for part, tokens in mix.items()]
    driver = max(mix, key=lambda part: mix[part])
    size = tokens_text(_prompt_size(call))
    return [f"- largest request {size} tokens: {', '.join(parts)}; driven by the {PARTS.get(driver, driver)}"]


def _calls(turn: Stretch, page: Page) -> list[str]:
    if not turn.calls:
        return ["", "## Requests", "", "None."]
    lines = ["", "## Requests", "", *_call_table(turn, page)]
    lines += ["", *again] if (again := read_again(turn.calls)) else []
    for number, call in enumerate(turn.calls, 1):
        for report in call.reported:
            lines += [
                f"- {number}: the provider left out {counted(edit.cleared_items, 'item')}"
                f" ({tokens_text(edit.cleared_tokens)} tokens, {edit.kind})"
                for edit in report.server_edits
            ]
    unknown = unknown_prices(turn.calls)
    return [*lines, "", f"{unknown} `/cost` shows how to set it."] if unknown else lines


def _call_table(turn: Stretch, page: Page) -> list[str]:
    head = ("request", "model", "time", "in", "hits", "out", "cost", "result")
    rows = []
    for number, call in enumerate(turn.calls, 1):
        sums = sum_calls([call])
        rows.append(
            (
                f"{number}.{call.attempts}",
                call.model or call.adapter,
                duration_text(call.ended.duration_ms) if call.ended else "-",
                tokens_text(sums.prompt_tokens) if call.reported else f"~{tokens_text(_prompt_size(call))}",
                share_text(sums.cache_read_tokens, sums.prompt_tokens) if sums.uses_cache else "-",
                tokens_text(sums.output_tokens) if call.reported else "-",
                _cost(call),
                _result(call, runs=turn.number > 0 and turn.end is None and number == len(turn.calls)),
            )
        )
    return table(head, rows, page.width, "llrrrrr")


def _cost(call: Call) -> str:
    if call.is_included:
        return LOCAL if call.is_local else INCLUDED
    return usd_text(call.cost_usd) if call.cost_usd is not None else UNKNOWN if call.reported else "-"


def _result(call: Call, *, runs: bool) -> str:
    """Return the result of the call; the newest call of an unfinished turn has none yet."""
    asked = (call.sent.asked if call.sent else "") or "summary"
    if call.ended is not None:
        said = call.ended.result
        if call.purpose == "summary":
            return f"{asked} {said}" if said in ("failed", "stopped") else asked
        return said
    if call.purpose in OTHER_PURPOSES:
        return OTHER_PURPOSES[call.purpose]
    if call.purpose == "summary" and not runs:
        return asked
    return "reply" if call.reported else "running" if runs else "no end logged"


def _assembly(turn: Stretch, page: Page) -> list[str]:
    """Return the composition of the turn's newest request: its layers and fragments, or at least its parts."""
    lines = ["", "## Prompt assembly", ""]
    compiled = next((event.fields for event in reversed(turn.named) if event.name == "prompt_compiled"), None)
    if compiled is not None:
        rows = [
            (layer["name"], layer["stability"], str(layer["fragments"]), f"{layer['bytes']:,}", layer["status"])
            for layer in compiled["layers"]
        ]
        lines += table(("layer", "stability", "fragments", "bytes", "status"), rows, page.width, "llrr")
        lines += ["", f"{compiled['cacheable_prefix']:,} bytes are unchanged, {compiled['dynamic_suffix']:,} changed."]
        parts = [
            (
                part["layer"],
                f"{part['bytes']:,}",
                f"{part['tokens']:,}" if part["tokens"] else "-",
                one_line(part["label"]),
            )
            for part in compiled["fragments"]
        ]
        return [*lines, "", "### Fragments", "", *table(("layer", "bytes", "tokens", "what"), parts, page.width, "lrr")]
    newest = next((call for call in reversed(turn.calls) if call.sent and call.sent.mix), None)
    if newest is None or newest.sent is None:
        return [*lines, "Not logged for this turn."]
    whole = sum(newest.sent.mix.values())
    shares = [
        (PARTS.get(part, part), f"~{tokens_text(tokens)}", share_text(tokens, whole))
        for part, tokens in newest.sent.mix.items()
    ]
    lines += [f"The newest request had {counted(newest.sent.messages, 'message')}.", ""]
    return [*lines, *table(("part", "tokens", "share"), shares, page.width, "lrr")]


def _managed(stretch: Stretch) -> list[ViewChanged]:
    """Return the changes that made requests smaller."""
    return [change for change in stretch.changes if change.kind in ("edited", "compacted")]


def _context(record: Record, turn: Stretch, page: Page) -> list[str]:
    body, summaries = _happened(record, turn, page)
    return ["", "## Context and history", "", *(body or ["Nothing was changed."]), *summaries]


def _after(record: Record, turn: Stretch, page: Page) -> list[str]:
    """Return the events between this turn and the next one: a `/compact`, or a message that could not be sent."""
    after = turn.after
    if after is None or after.is_empty:
        return []
    body, summaries = _happened(record, after, page)
    calls = [*([""] if body else []), *_call_table(after, page)] if after.calls else []
    return ["", "## After the turn", "", *body, *calls, *summaries]


def _happened(record: Record, turn: Stretch, page: Page) -> tuple[list[str], list[str]]:
    """Return the changes, failures and named events, and the summaries that were written."""
    body = [_change(change, change.change_id in record.undone) for change in turn.changes]
    for failed in turn.failures:
        body.append(f"- history | failed | {'stopped by you' if failed.cancelled else one_line(failed.reason)}")
    for event in turn.named:
        if event.name == "context_pruned":
            body.append(f"- `{event.name}` {_prior_turns(record, turn, event)}")
        elif event.name != "prompt_compiled":
            body.append(f"- {_named(event, page)}")
    # Summaries come after the list, because a fold ends only at the next heading.
    return body, [line for change in turn.changes for line in _summary_text(change)]


def _change(change: ViewChanged, undone: bool) -> str:
    sizes = f", {tokens_text(change.tokens_before)} → {tokens_text(change.tokens_after)} tokens"
    report, mark = change.report, " (undone)" if undone else ""
    if change.kind == "edited":
        cleared = len(change.replaced) if report.cleared is None else report.cleared
        why = why_edited(change)
        return f"- {cleared_words(cleared, report.code)} cleared{sizes}{f' ({why})' if why else ''}{mark}"
    if change.kind != "compacted":
        touched = len(change.removed) or len(change.replaced) or len(change.inserted)
        return f"- {change.kind.replace('_', ' ')}: {counted(touched, 'message')}{mark}"
    how = [report.trigger, f"by {report.summariser}" if report.summariser else ""]
    took = duration_text(report.duration_ms) if report.duration_ms else ""
    count = counted(len(change.removed) if report.messages is None else report.messages, "message")
    return f"- compacted {count}{sizes} ({', '.join(filter(None, [*how, took]))}){mark}"


def _summary_text(change: ViewChanged) -> Iterator[str]:
    """Yield the summary as a separate fold; its headings do not become headings of the report."""
    text = change.report.summary.strip()
    if text:
        yield from ("", "### Summary", "")
        for line in text.splitlines():
            yield f"> {line}".rstrip()


def _prior_turns(record: Record, turn: Stretch, event: PolicyEvent) -> str:
    """Return in words how many earlier turns were sent with a turn, and which were left out (R-330)."""
    sent, raw, omitted = (event.fields.get(f"{name}prior_turns", 0) for name in ("", "raw_", "omitted_"))
    as_they_were = "" if raw == sent else f" ({raw} unchanged, {sent - raw} with placeholders)"
    said = f"{counted(sent, 'earlier turn')} sent{as_they_were}"
    if not omitted:
        return said
    pruned = [one for past in record.turns[: turn.number] for one in past.named if one.name == event.name]
    gone = dict.fromkeys(name for one in pruned for name in one.fields.get("turn_ids", ()))
    # After an undo, named turns are sent again, so only the number is known.
    names = f": {_listed(tuple(gone))}" if len(gone) == omitted else ""
    return f"{said}, {omitted} left out after the summary{names}"


def _listed(names: Sequence[str]) -> str:
    """Return the names of turns, or only the first and last of many."""
    return ", ".join(names) if len(names) <= 3 else f"{names[0]} to {names[-1]}"


def _named(event: PolicyEvent, page: Page) -> str:
    """Return a named event and its plain fields on one line."""
    fields = event.fields
    if event.name == "context_compaction_failed":
        sizes = f"{fields.get('estimated_request_tokens', 0):,}/{fields.get('input_limit_tokens', 0):,}"
        return f"history | {fields.get('reason', '')} | {one_line(str(fields.get('detail', '')))} | {sizes}"
    if event.name == "told_below_message":
        return one_line(f"said: {fields.get('text', '')}")
    plain = {name: value for name, value in fields.items() if isinstance(value, str | int | float) and value != ""}
    line, most = f"`{event.name}`", max(40, 2 * page.width)
    for number, (name, value) in enumerate(sorted(plain.items(), key=lambda field: field[0] in _LAST)):
        field = f"{',' if number else ''} {name} {_value(value)}"
        if len(line) + len(field) > most - len(", …"):
            return f"{line}, …"
        line += field
    return line


def _value(value: object) -> str:
    if isinstance(value, bool):
        return "yes" if value else "no"
    return f"{value:,}" if isinstance(value, int) else cut_cells(one_line(str(value)), 60)


def _errors(turn: Stretch) -> list[str]:
    lines = ["", "## Retries and errors", ""]
    body: list[str] = []
    for number, call in enumerate(turn.calls, 1):
        ended = call.ended
        if ended is None:
            continue
        for attempt, retry in enumerate(ended.retries, 1):
            body.append(f"- {number}.{attempt}: {one_line(retry.reason)}; waited {duration_text(retry.wait_ms)}")
        if ended.error:
            body.append(f"- {number}.{call.attempts}: {one_line(ended.error)}")
    return [*lines, *(body or ["None."])]


def _tools(turn: Stretch, page: Page) -> list[str]:
    lines = ["", "## Tools", ""]
    if not turn.tools:
        return [*lines, "None ran."]
    rows: Sequence[Sequence[str]] = [
        (
            ran.name,
            failed_exit(ran) or ran.status,
            duration_text(ran.duration_ms),
            tokens_text(turn.tool_tokens.get(ran.message_id, 0)),
            one_line(ran.title),
        )
        for ran in turn.tools
    ]
    return [*lines, *table(("tool", "status", "time", "tokens", "what"), rows, page.width, "llrr")]
