"""The durable history summary as a typed value (R-315); what the model reads is rendered from it.

Every item names the turn it came from, so that whatever it says can be looked up in the log. Pure values:
`extract_artifact` reads them from the log, `merge_artifacts` merges them, `render_artifact` writes the text.
"""

from __future__ import annotations

from typing import Any, Literal

import msgspec

from codecompanion.formats import typed

EARLIER = "earlier: "
"""How a fact begins that is a line of a summary whose artifact is gone."""


def quoted(text: str) -> str:
    """Return the words of a sentence as an item has them: in quotes, beside items that a label or a model gave."""
    return f'"{text}"'


def is_quoted(text: str) -> bool:
    """Return whether an item is somebody's sentence, word for word."""
    return len(text) > 2 and text[0] == text[-1] == '"'


class _Item(msgspec.Struct, frozen=True, omit_defaults=False):
    """Base of all items: every field is written, so that a stored artifact says everything."""


class Decision(_Item, frozen=True):
    """What was decided, and why."""

    decision: str
    rationale: str = ""
    status: Literal["active", "superseded"] = "active"
    source_turn_id: str = ""


class Verification(_Item, frozen=True):
    """Evidence of how a turn went: what tools answered, what the runtime noted, how the turn ended."""

    kind: Literal["tool_result", "runtime_note", "turn_status"]
    value: str
    succeeded: bool


class Episode(_Item, frozen=True):
    """What was done in one turn or several.

    `file_uses`: why a file matters (R-314): by path, how often it was `edited`, `read` … or `named`, by the user.
    """

    episode_id: str
    summary: str
    touched_paths: tuple[str, ...] = ()
    verification: tuple[Verification, ...] = ()
    source_turn_ids: tuple[str, ...] = ()
    file_uses: dict[str, dict[str, int]] = {}


class OpenThread(_Item, frozen=True):
    """What is still to be done: `blocking` when the work stands still in the middle of it."""

    item: str
    status: Literal["pending", "blocked", "deferred"] = "pending"
    blocking: bool = False
    owner: Literal["agent", "user", "shared"] = "agent"
    source_turn_id: str = ""


class WorkspaceFact(_Item, frozen=True):
    """A fact about a file, or, with an empty path, a warning about the whole."""

    path: str
    fact: str
    source_turn_id: str = ""


class PageInHint(_Item, frozen=True):
    """What can be looked up in the log again, and when that is worth it."""

    when: str
    match_kinds: tuple[str, ...] = ()
    tool_names: tuple[str, ...] = ()
    paths: tuple[str, ...] = ()
    call_ids: tuple[str, ...] = ()
    source_turn_ids: tuple[str, ...] = ()


class Artifact(_Item, frozen=True):
    """The durable summary of a session; lists are in the order of the turns.

    `constraint_turn_ids`: of constraints that are somebody's sentences, the turn.
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
        """Return what its items say, without names of turns, states and hints."""
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
        """Return every turn an item names."""
        ids = {decision.source_turn_id for decision in self.settled_decisions}
        ids |= {thread.source_turn_id for thread in self.open_threads}
        ids |= {fact.source_turn_id for fact in self.workspace_facts}
        ids |= set(self.constraint_turn_ids.values())
        ids |= {turn for episode in self.completed_episodes for turn in episode.source_turn_ids}
        ids |= {turn for hint in self.page_in_hints for turn in hint.source_turn_ids}
        return frozenset(ids - {""})


class Consolidated(_Item, frozen=True):
    """An artifact and how far it reaches (R-324): its last turn, and how many turns it covers."""

    frontier_turn_id: str
    consolidated_turn_count: int
    artifact: Artifact

    def as_table(self) -> dict[str, Any]:
        """Return the artifact as plain JSON values, with how far it reaches among them."""
        reach = {
            "frontier_turn_id": self.frontier_turn_id,
            "consolidated_turn_count": self.consolidated_turn_count,
        }
        return {**msgspec.to_builtins(self.artifact), **reach}


def read_consolidated(stored: dict[str, Any] | None) -> Consolidated | None:
    """Return what `as_table` gave of the last summary, None when there is nothing or it is of another shape."""
    if stored is None:
        return None
    try:
        return typed.convert({**stored, "artifact": stored}, Consolidated)
    except msgspec.ValidationError:
        return None
