"""S14 `insert_summary`: put the summary into the view; at most one lives (R-527, R-551)."""

from __future__ import annotations

from typing import Literal

import msgspec

from codecompanion.context.work import Env, Failed, Outcome, Work
from codecompanion.messages import SUMMARY_TAG, Message, Role, with_changes
from codecompanion.placeholders import SUMMARY_PREFIX, quote_request


class InsertSummary(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Parameters of S14. `carry`: the previous summary was part of the transcript and is replaced (K10)."""

    role: Role = "user"
    place: Literal["last"] = "last"
    tag: str = SUMMARY_TAG
    carry: Literal["in_transcript"] = "in_transcript"


def insert_summary(work: Work, params: InsertSummary, env: Env) -> Outcome:
    """Return the work with the summary behind the kept messages and in front of the pending ones.

    The user message of an interrupted loop is quoted at its end, verbatim, by code; the summary then stays last.
    """
    if not work.summary:
        return Failed("there is no summary to insert")
    text = SUMMARY_PREFIX + work.summary
    if work.request:
        text += quote_request(work.request)
    summary = Message(
        id=env.new_id("summary"), role=params.role, content=text, tag=params.tag, cycle=env.cycle, ts=env.now
    )
    summary = with_changes(summary, tokens=env.count(summary))
    messages = tuple(message for message in work.messages if message.tag != params.tag)
    return msgspec.structs.replace(work, messages=(*messages, summary, *work.pending))
