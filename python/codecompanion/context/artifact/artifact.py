"""Defines the types of the durable history summary (R-315); `render_artifact` writes the text for the model.

Every item names its source turn, so that the turn can be looked up in the log. The types are pure values:
`extract_artifact` builds them from the log, `merge_artifacts` merges them.
"""

from __future__ import annotations

from typing import Any, Literal

import msgspec

from codecompanion.formats import typed

EARLIER = "earlier: "
"""Prefix of a fact copied from a summary whose artifact is lost."""


def quoted(text: str) -> str:
    """Return a sentence in quotes, which mark it as verbatim, unlike an item from a label or a model."""
    return f'"{text}"'


def is_quoted(text: str) -> bool:
    """Return whether an item is a verbatim sentence."""
    return len(text) > 2 and text[0] == text[-1] == '"'


class _Item(msgspec.Struct, frozen=True, omit_defaults=False):
    """Base class of all items: every field is stored, even a default, so that a stored artifact is self-contained."""


class Decision(_Item, frozen=True):
    """A settled decision and its rationale."""

    decision: str
    rationale: str = ""
    status: Literal["active", "superseded"] = "active"
    source_turn_id: str = ""


class Verification(_Item, frozen=True):
    """Evidence of how a turn went: tool results, runtime notes, and how the turn ended."""

    kind: Literal["tool_result", "runtime_note", "turn_status"]
    value: str
    succeeded: bool


class Episode(_Item, frozen=True):
    """The work done in one or more turns.

    `file_uses` shows why a file matters (R-314): it maps each path to counts of `edited`, `read` … and `named` (by the
    user).
    """

    episode_id: str
    summary: str
    touched_paths: tuple[str, ...] = ()
    verification: tuple[Verification, ...] = ()
    source_turn_ids: tuple[str, ...] = ()
    file_uses: dict[str, dict[str, int]] = {}


class OpenThread(_Item, frozen=True):
    """An unfinished task; `blocking` if work cannot continue without it."""

    item: str
    status: Literal["pending", "blocked", "deferred"] = "pending"
    blocking: bool = False
    owner: Literal["agent", "user", "shared"] = "agent"
    source_turn_id: str = ""


class WorkspaceFact(_Item, frozen=True):
    """A fact about a file, or a general warning if the path is empty."""

    path: str
    fact: str
    source_turn_id: str = ""


class PageInHint(_Item, frozen=True):
    """A pointer to content in the log, and when to look it up."""

    when: str
    match_kinds: tuple[str, ...] = ()
    tool_names: tuple[str, ...] = ()
    paths: tuple[str, ...] = ()
    call_ids: tuple[str, ...] = ()
    source_turn_ids: tuple[str, ...] = ()


class Artifact(_Item, frozen=True):
    """The durable summary of a session; lists are in turn order.

    `constraint_turn_ids`: the source turn of each constraint that is a verbatim sentence.
    """

    session_objective: str = ""
    constraints: tuple[str, ...] = ()
    settled_decisions: tuple[Decision, ...] = ()
    completed_episodes: tuple[Episode, ...] = ()
    open_threads: tuple[OpenThread, ...] = ()
    workspace_facts: tuple[WorkspaceFact, ...] = ()
    page_in_hints: tuple[PageInHint, ...] = ()
    constraint_turn_ids: dict[str, str] = {}

    @property
    def texts(self) -> tuple[str, ...]:
        """Return the text of all items, without turn names, statuses and hints."""
        return tuple(
            text
            for text in (
                self.session_objective,
                *self.constraints,
                *(f"{one.decision} {one.rationale}" for one in self.settled_decisions),
                *(episode.summary for episode in self.completed_episodes),
                *(thread.item for thread in self.open_threads),
                *(f"{one.path} {one.fact}" for one in self.workspace_facts),
            )
            if text.strip()
        )

    @property
    def turn_ids(self) -> frozenset[str]:
        """Return the id of every turn that an item names."""
        ids = {decision.source_turn_id for decision in self.settled_decisions}
        ids |= {thread.source_turn_id for thread in self.open_threads}
        ids |= {fact.source_turn_id for fact in self.workspace_facts}
        ids |= set(self.constraint_turn_ids.values())
        ids |= {turn for episode in self.completed_episodes for turn in episode.source_turn_ids}
        ids |= {turn for hint in self.page_in_hints for turn in hint.source_turn_ids}
        return frozenset(ids - {""})


class Consolidated(_Item, frozen=True):
    """An artifact and its coverage (R-324): the last turn, and the number of turns."""

    frontier_turn_id: str
    consolidated_turn_count: int
    artifact: Artifact

    def as_table(self) -> dict[str, Any]:
        """Return the artifact as plain JSON values, including its coverage."""
        reach = {
            "frontier_turn_id": self.frontier_turn_id,
            "consolidated_turn_count": self.consolidated_turn_count,
        }
        return {**msgspec.to_builtins(self.artifact), **reach}


def read_consolidated(stored: dict[str, Any] | None) -> Consolidated | None:
    """Return the artifact stored by `as_table`, or None if there is none or it has another shape."""
    if stored is None:
        return None
    try:
        return typed.convert({**stored, "artifact": stored}, Consolidated)
    except msgspec.ValidationError:
        return None
