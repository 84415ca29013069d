"""Turns a stage's result into one log event (R-530, R-531): removals, replacements and insertions by message id."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from codecompanion.context.editing.repair_pairs import Repair
from codecompanion.context.stage_report import StageReport
from codecompanion.context.work import Messages, Work
from codecompanion.model.change_report import NO_REPORT, ChangeReport
from codecompanion.model.history import ChangeKind, Insertion, ViewChanged
from codecompanion.model.messages import Message, is_question_context
from codecompanion.placeholders import kept_percent


def difference(before: Messages, after: Messages) -> tuple[tuple[str, ...], Messages, tuple[Insertion, ...]]:
    """Return the (removed ids, replaced messages, insertions) that turn one list into the other.

    Kept messages keep their order. An insertion is anchored to the old message before it or, if that message is
    removed, to the newest removed message before it, so that later messages stay after it.
    """
    old = {message.id: message for message in before}
    new_ids = {message.id for message in after}
    removed = tuple(message.id for message in before if message.id not in new_ids)
    replaced = tuple(message for message in after if message.id in old and old[message.id] != message)
    insertions: list[Insertion] = []
    for index, message in enumerate(after):
        if message.id not in old:
            insertions.append(Insertion(message, _anchor(before, after, index)))
    return removed, replaced, tuple(insertions)


def _anchor(before: Messages, after: Messages, index: int) -> str:
    """Return the id in `before` after which the inserted message belongs, or "" for the front."""
    known = {message.id: position for position, message in enumerate(before)}
    following = next((known[message.id] for message in after[index + 1 :] if message.id in known), len(before))
    return before[following - 1].id if following > 0 else ""


def cuts_of(messages: Sequence[Message]) -> dict[str, int]:
    """Return the percentage of each truncated result that is sent, by message id (R-524)."""
    return {message.id: kept_percent(message) for message in messages if message.left_out}


def view_change(
    report: StageReport, work: Work, before: Messages, change_id: str, about: ChangeReport = NO_REPORT
) -> ViewChanged:
    """Return the event that applies the result of a stage; `about` describes its compaction."""
    removed, replaced, inserted = difference(before, work.messages)
    # A compaction that only shortened messages is an edit, because no message replaces others.
    kind: ChangeKind = "compacted" if report.event == "context_compacted" and (removed or inserted) else "edited"
    about = msgspec.structs.replace(
        about,
        stage=report.stage.id,
        trigger=report.trigger,
        details=msgspec.to_builtins(work.details),
        artifact=work.artifact,
    )
    if work.cleared or kind == "edited":
        cut = cuts_of(replaced)
        about = msgspec.structs.replace(
            about,
            cleared=sum(message.id not in cut for message in work.cleared),
            code=sum(is_question_context(message) for message in work.cleared),
            call_ids=tuple(message.tool_call_id or "" for message in work.cleared),
            cut=tuple(cut.values()),
        )
    if report.stage.card.shows_tier:
        about = msgspec.structs.replace(about, tier=report.tier, counts=(len(before), len(work.messages)))
    return ViewChanged(
        change_id=change_id,
        kind=kind,
        removed=removed,
        replaced=replaced,
        inserted=inserted,
        tokens_before=report.before.tokens,
        tokens_after=report.after.tokens,
        report=about,
    )


def why_edited(change: ViewChanged) -> str:
    """Return the reason for an edit in a few words, or "" if its strategy gave none."""
    return str(change.report.details.get("why", ""))


def repair_change(before: Messages, repair: Repair, change_id: str) -> ViewChanged:
    """Return the event for the repair of incomplete pairs of tool calls and results in the view (R-004)."""
    removed, replaced, inserted = difference(before, repair.messages)
    report = ChangeReport(completed=len(repair.completed), dropped=len(repair.dropped))
    return ViewChanged(
        change_id=change_id, kind="repaired", removed=removed, replaced=replaced, inserted=inserted, report=report
    )
