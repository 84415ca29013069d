"""S14 `insert_summary`: inserts the summary into the view, where at most one is live (R-527, R-551, K5, K10).

The policy decides its position, role and wording (R-129, R-323, R-433, R-443). Its tag is fixed, so that the next
compaction finds it under any policy.
"""

from __future__ import annotations

from typing import assert_never

import msgspec

from codecompanion.context.selection.fill_window import legal_cuts
from codecompanion.context.strategy_parameters import InsertSummary
from codecompanion.context.summary_text.recall_keys import note_keys
from codecompanion.context.work import Env, Failed, Messages, Outcome, Work
from codecompanion.model.messages import STARTING_TAGS, SUMMARY_TAG, Message, Role, is_system_prompt, is_typed_by_user
from codecompanion.placeholders import quote_request
from codecompanion.summary_frame import SUMMARY_HEADERS, neutralise_element


def insert_summary(work: Work, params: InsertSummary, env: Env) -> Outcome:
    """Return the work with the summary in its place and the pending messages at the end.

    The user's request of an interrupted loop is quoted verbatim at the end of the summary.
    """
    if not work.summary:
        return Failed("there is no summary to insert")
    previous = [message for message in work.before if message.tag == SUMMARY_TAG]
    if params.carry == "in_transcript" and any(message not in work.removed for message in previous):
        return Failed("the earlier summary would be lost: the new one does not include it")
    role: Role = params.role
    summary = Message(
        id=env.new_id("summary"),
        role=role,
        content=summary_text(work, params),
        tag=params.tag,
        pinned=params.pinned,
        cycle=env.cycle,
        ts=env.now,
    )
    summary = env.recounted(summary)
    kept = tuple(message for message in work.messages if message.tag != SUMMARY_TAG)
    index = _next_legal(kept, _place(work.before, kept, params))
    # Restored messages are no longer pending: a later trim may remove them, and their keys are then listed as well.
    messages = (*kept[:index], summary, *kept[index:], *work.pending)
    placed = msgspec.structs.replace(work, messages=messages, pending=())
    return note_keys(placed, env) if params.recall_keys else placed


def summary_text(work: Work, params: InsertSummary) -> str:
    """Return the whole text of the summary message.

    The text ends with the quoted request, and is escaped so that it cannot close the element around it (R-433).
    """
    said = work.summary + (quote_request(work.request) if work.request else "")
    header = SUMMARY_HEADERS[params.header].format(count=len(work.removed))
    if not params.wrapper:
        return header + said
    return f"<{params.wrapper}>\n{header}{neutralise_element(said, params.wrapper)}\n</{params.wrapper}>"


def _place(before: Messages, kept: Messages, params: InsertSummary) -> int:
    """Return the index in `kept` at which to insert the summary."""
    if params.upsert:
        stood = next((index for index, message in enumerate(before) if message.tag == SUMMARY_TAG), None)
        if stood is not None:
            ahead = {message.id for message in before[:stood]}
            return max((index + 1 for index, message in enumerate(kept) if message.id in ahead), default=0)
    match params.place:
        case "last":
            return len(kept)
        case "first":
            return _head(kept, with_rules=False)
        case "history_head":
            return _head(kept, with_rules=True)
        case "after_first_user":
            typed = (index + 1 for index, message in enumerate(kept) if is_typed_by_user(message))
            return next(typed, _head(kept, with_rules=True))
        case _:
            assert_never(params.place)


def _head(kept: Messages, *, with_rules: bool) -> int:
    """Return the index after the leading system prompt, and after the rules if `with_rules`."""
    for index, message in enumerate(kept):
        if not is_system_prompt(message) and not (with_rules and message.tag in STARTING_TAGS):
            return index
    return len(kept)


def _next_legal(kept: Messages, index: int) -> int:
    """Return the index, or the next one that is not between a call and its result."""
    return next(cut for cut in legal_cuts(kept) if cut >= index)
