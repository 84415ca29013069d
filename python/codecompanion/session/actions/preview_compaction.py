"""Previews the changes that the policy would make as a diff, without sending or changing anything (R-546).

The preview is a dry run of the pipeline that prepares requests. A summary that a model would write is shown as a
placeholder line, because its length is not known in advance.
"""

from __future__ import annotations

from collections.abc import Sequence

from codecompanion.context.change import difference
from codecompanion.context.server_side import replace_by_block
from codecompanion.context.stage_report import Prepared, StageReport
from codecompanion.context.work import Messages
from codecompanion.formats.cutting import cut
from codecompanion.model.history import LogEvent, RequestSent
from codecompanion.model.messages import CompactionPart, Message
from codecompanion.model.view import project
from codecompanion.session.actions.forecast_compaction import NOT_SMALLER, forecast
from codecompanion.session.chat.inspection import state_of
from codecompanion.session.compaction.dry_run import UNWRITTEN, dry_run
from codecompanion.session.history.chat_log import ChatLog
from codecompanion.session.window.context_control import ContextControl
from codecompanion.session.window.native import UNREADABLE

PREVIEW_CHARS = 90


def preview(control: ContextControl, log: ChatLog) -> dict[str, str]:
    """Return `{title, text, filetype, state}`: the changes before the next request, and those made by /compact."""
    before = log.view.messages
    sections = [_section("Before the next request", before, dry_run(control.plans.request()))]
    if control.native.compact_at:
        sections.append(f"# The provider compacts on its own above {control.native.compact_at:,} tokens")
    if control.native.compacts_on_demand:
        sections.append(_by_the_provider(control, before))
    elif forecast(control, log)["why"] == NOT_SMALLER:
        sections.append(f"# If you run /compact now: nothing changes ({NOT_SMALLER})")
    else:
        sections.append(_section("If you run /compact now", before, dry_run(control.plans.compaction())))
    return {"title": "Preview", "text": "\n\n".join(sections), "filetype": "diff", "state": ""}


def compare_with_last(control: ContextControl, events: Sequence[LogEvent]) -> dict[str, str]:
    """Return `{title, text, filetype, state}`: the differences between the next request and the last one (R-546).

    After a restart, the view at the time of the last request is used, because its shaping is no longer known.
    """
    now, sent = control.shaper.current(), control.shaper.sent
    if sent is not None:
        before: Messages = (sent.system, *sent.messages)
    else:
        last = next((i for i in range(len(events) - 1, -1, -1) if _is_chat_request(events[i])), None)
        before = () if last is None else (now.system, *project(events[:last]).messages)
    after = (now.system, *now.messages)
    removed, replaced, inserted = difference(before, after)
    tokens = f"{sum(m.tokens for m in before):,} → {sum(m.tokens for m in after):,} tokens of messages"
    figures = f"{len(inserted)} new, {len(replaced)} changed, {len(removed)} gone"
    head = "# Nothing has been sent yet: everything is new"
    if before:
        head = f"# Since the last request: {figures}, {tokens}"
    return {
        "title": "Next request vs. last",
        "text": "\n".join([head, *_diff(before, after)]),
        "filetype": "diff",
        "state": "",
    }


def _is_chat_request(event: LogEvent) -> bool:
    return isinstance(event.payload, RequestSent) and event.payload.purpose == "chat"


def _by_the_provider(control: ContextControl, before: Messages) -> str:
    """Return the preview of an on-demand compaction, whose summary the provider writes."""
    part = CompactionPart(origin="", encrypted="[]", text=UNWRITTEN)
    work = replace_by_block(before, part, control.meter.counter.message, Message(id="preview", role="assistant"))
    return "\n".join(["# If you run /compact now: compacted by the provider", *_diff(before, work.messages)])


def _section(title: str, before: Messages, prepared: Prepared) -> str:
    changed = prepared.changed
    if not changed:
        why = "; ".join(report.detail for report in prepared.reports if report.detail)
        return f"# {title}: nothing changes{f' ({why})' if why else ''}"
    tokens = f"{changed[0].before.tokens:,} → {changed[-1].after.tokens:,} tokens"
    kinds = ", then ".join(map(_kind, changed))
    return "\n".join([f"# {title}: {kinds}, {tokens}", *_diff(before, prepared.messages)])


def _kind(report: StageReport) -> str:
    if report.event != "context_edited" or report.work is None:
        return "compacted"
    cut = {message.id for message in report.work.messages if message.left_out}
    return "cut" if cut and cut.issuperset(message.id for message in report.work.cleared) else "cleared"


def _diff(before: Messages, after: Messages) -> list[str]:
    """Return one line per message: unchanged, or marked `-` as it is now and `+` as it would be."""
    removed_ids, replaced, inserted = difference(before, after)
    removed, fresh = frozenset(removed_ids), {message.id: message for message in replaced}
    following: dict[str, list[Message]] = {}
    for insertion in inserted:
        following.setdefault(insertion.after, []).append(insertion.message)
    lines = [f"+ {_line(message)}" for message in following.get("", ())]
    for message in before:
        gone = message.id in removed or message.id in fresh
        lines.append(f"{'-' if gone else ' '} {_line(message)}")
        if message.id in fresh:
            lines.append(f"+ {_line(fresh[message.id])}")
        lines.extend(f"+ {_line(added)}" for added in following.get(message.id, ()))
    return lines


def _line(message: Message) -> str:
    said = message.text if message.compaction is None else message.compaction.text or UNREADABLE
    text = " ".join(said.split()) or ", ".join(call.name for call in message.tool_calls)
    label = message.tag or message.role
    return f"{label:<16} {message.tokens:>7,}  {state_of(message):<8} {cut(text, PREVIEW_CHARS)}"
