"""Defines the details of a view change: those shown on its card, and those needed later."""

from __future__ import annotations

from typing import Any

import msgspec


class ChangeReport(msgspec.Struct, frozen=True, gc=False, omit_defaults=True, kw_only=True):
    """The report of one `ViewChanged`; its fields depend on the origin of the change.

    Any change by the policy: `stage` (its id, "server" for a provider's own compaction, "manual"), `trigger`
    ("proactive", "reactive", "manual"), `details` (figures of its strategies). Edits: `cleared` (tool results), their
    `call_ids`, `code` (the number of messages with cleared code, included in `cleared`), `cut` (percent kept of each
    truncated result, R-524), `tier` and `counts` (messages before and after) if the policy's card shows them (R-137).

    Compactions: `compaction_id`, `summariser`, the summarised `messages` and `cycles`, `duration_ms`, `summary`, the
    card's `title` and `folded`, the id of the message `before` which it is shown (None in older logs), the `artifact`
    that the summary was rendered from (R-319), the `origin` of a provider's own compaction.

    By the user: `title` of the message, `names` of detached items, `turn` of the new answer (regenerated: undoing
    removes that answer as well), `superseded` by a newer attachment of the file. Repairs: the number of `completed`
    calls and `dropped` results.
    """

    stage: str = ""
    trigger: str = ""
    origin: str = ""
    cleared: int | None = None
    call_ids: tuple[str, ...] = ()
    code: int = 0
    cut: tuple[int, ...] = ()
    tier: int = 0
    counts: tuple[int, int] = (0, 0)
    details: dict[str, Any] = {}
    compaction_id: str = ""
    summariser: str = ""
    messages: int | None = None
    cycles: tuple[int, int] = (0, 0)
    duration_ms: int = 0
    summary: str = ""
    title: str = ""
    folded: bool = False
    before: str | None = None
    artifact: dict[str, Any] | None = None
    names: tuple[str, ...] = ()
    turn: str = ""
    superseded: bool = False
    completed: int = 0
    dropped: int = 0


NO_REPORT = ChangeReport()
