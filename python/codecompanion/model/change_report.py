"""What a change of the view says of itself: what the user reads on its card, and what follows from it later."""

from __future__ import annotations

from typing import Any

import msgspec


class ChangeReport(msgspec.Struct, frozen=True, gc=False, omit_defaults=True, kw_only=True):
    """The report of one `ViewChanged`; which fields it has depends on who made the change.

    Any change by the policy: `stage` (its id, "server" for a provider's own compaction, "by hand"), `trigger`
    ("proactive", "reactive", "manual"), `details` (figures of its strategies). Edits: `cleared` (tool results),
    `call_ids` of them, `code` (for how many messages code was cleared, counted in `cleared`), `cut` (percent that is
    left of each result that was cut, R-524), `tier` and `counts` (messages before and after) where the policy's card
    shows them (R-137).

    Compactions: `compaction_id`, `summariser`, `messages` and `cycles` that were summarised, `duration_ms`, `summary`,
    the card's `title` and `folded`, the id of the message it stands `before` (None in older logs), `artifact` the
    summary was rendered from (R-319), `origin` of a provider's own.

    By the user: `title` of the message, `names` of what was detached, `turn` of the new answer (regenerated: undoing
    takes that answer back, too), `superseded` by the same attachment, newer. Repairs: calls `completed`, results
    `dropped`.
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
