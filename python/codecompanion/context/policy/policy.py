"""Defines the types of a policy: triggers and a program of strategies, frozen and checked (pipeline.md 5.5, K1).

`table` reads and writes these values as tables, `policy_options` applies settings to them, `policy_catalog` lists the
policies.
"""

from __future__ import annotations

from typing import Annotated, Any, Literal, get_args

import msgspec

from codecompanion.context.strategies import STRATEGIES
from codecompanion.context.thresholds import Size, Trigger
from codecompanion.context.work import StageEvent

CHAT_ADAPTER = "chat_adapter"
"""Value in `on_fail` that retries the model step with the chat's own adapter."""
OWN_FIELDS = ("description", "resume", "default_window", "status_event", "cooldown", "recovery")
"""Fields that a custom policy may set besides stages, steps and options."""
PolicyEventName = Literal[
    "context_compaction_started",
    "context_compaction_failed",
    "session_history_continuation_updated",
    "prompt_compiled",
    "context_pruned",
    "context_summarized",
    "context_tools_truncated",
    "pinned_over_target",
    "context_window_status",
    "context_still_over_budget",
    "context_capacity_recovery_started",
    "context_capacity_recovery_completed",
    "context_capacity_recovery_failed",
    "checkpoint_failed",
    "memory_flushed",
    "conversation_snapshot",
    "session_restored",
]
EVENT_NAMES: tuple[PolicyEventName, ...] = get_args(PolicyEventName)


class Departure(msgspec.Struct, frozen=True):
    """Parameters that we changed in a document's step: the reasons by name (`why`), and the old values (`document`)."""

    why: dict[str, str]
    document: Any


class Step(msgspec.Struct, frozen=True):
    """One strategy with its parameters, already checked against the strategy's own struct.

    `optional`: if the step has nothing to do, the tier continues with the next step instead of ending. `ours`: why the
    step exists although the document does not have it (`strict.py`).
    """

    use: str
    params: Any
    optional: bool = False
    ours: str = ""
    departs: Departure | None = None


class Tier(msgspec.Struct, frozen=True, kw_only=True):
    """An alternative within a stage: tiers are tried in order until a result is accepted; the last one always is.

    `ours`: why the tier exists although the document does not have it.

    `accept`: `target` if the result must fit the stage's target. `start` (`from` in a table) names the tier whose
    result this tier continues. `on_fail`: the fallbacks for a failed summary: the chat's own adapter, or a strategy
    without a model (K9). `number`: the tier's number in the result (R-137). `event`: the event of a change, or "" for
    the stage's event, since just truncating results is not a compaction (R-411). `manual`: if False, `/compact` does
    not use it as the final tier. `needs`: stages that must be enabled for the tier to run.
    """

    id: str = ""
    number: int = 0
    accept: Literal["target", "always"] = "always"
    start: str = msgspec.field(default="", name="from")
    on_fail: tuple[str, ...] = ()
    event: Literal["", "context_edited"] = ""
    manual: bool = True
    needs: tuple[str, ...] = ()
    steps: tuple[Step, ...] = ()
    ours: str = ""

    @property
    def summarises(self) -> bool:
        """Return whether a summary replaces messages; such tiers are skipped if the provider itself compacts (K15)."""
        return any(STRATEGIES[step.use].summarises for step in self.steps)


class Effects(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The session's actions around a change, by name: `before` and `after` the change is logged."""

    before: tuple[Literal["checkpoint"], ...] = ()
    after: tuple[Literal["memory_flush", "daily_log", "snapshot"], ...] = ()


class Emits(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The named events of a stage: when the model is asked, when it fails ("" if none), and after a change.

    The events in `changed` are sent if they apply (`named_events.applies`).
    """

    started: str = ""
    changed: tuple[str, ...] = ()
    failed: str = ""


class Card(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The texts of a compaction: the title of its card, the status while it runs, and the message if it fails.

    `folded`: the card is displayed closed (R-327); otherwise its open sections are visible at once (R-454).
    `shows_tier`: the line below the title shows the tier, and the number of messages before and after (R-137).
    """

    title: str = "Summary"
    running: str = "compacting the chat"
    failed: str = "Compaction failed"
    folded: bool = False
    shows_tier: bool = False


class Stage(msgspec.Struct, frozen=True, kw_only=True):
    """A part of a policy with its own trigger and event.

    `after` names stages that must be tried before this one, `unless` names stages whose removals make this one
    unnecessary (R-410). `target` is the size to reach, `target_gap` (0..1 of the basis) its minimum distance below the
    trigger (R-306). `label` is shown for an automatic run. `manual`: `/compact` runs the stage, if the chat has at
    least `manual_min_messages` messages. `ours`: why the stage exists although the document does not have it.
    """

    id: str
    event: StageEvent
    trigger: Trigger
    tiers: tuple[Tier, ...]
    label: Literal["proactive", "reactive"] = "proactive"
    target: Size | None = None
    target_gap: float = 0.0
    after: tuple[str, ...] = ()
    unless: tuple[str, ...] = ()
    manual: bool = False
    manual_min_messages: int = 0
    effects: Effects = Effects()
    emits: Emits = Emits()
    card: Card = Card()
    ours: str = ""

    @property
    def summarises(self) -> bool:
        """Return whether one of the stage's tiers replaces messages with a summary."""
        return any(tier.summarises for tier in self.tiers)


class ShapeStep(msgspec.Struct, frozen=True, kw_only=True):
    """A step of request shaping, applied to every request while `when` is crossed (always if None) and never stored."""

    use: str
    params: Any
    when: Trigger | None = None
    ours: str = ""
    departs: Departure | None = None


class Cooldown(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """After `failures` failed or useless compactions in a row, automatic ones stop for `cycles` cycles (R-532)."""

    failures: int = 3
    cycles: int = 2


class Recovery(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The reaction to a request that the provider refused as too long (R-451, R-535).

    The request is reduced to `share` of the window (or to slightly less than its size if `share` is 0), at most
    `attempts` times; `emits` names the events of an attempt.
    """

    share: Annotated[float, msgspec.Meta(ge=0, le=1)] = 0.0
    attempts: Annotated[int, msgspec.Meta(ge=1)] = 1
    emits: Emits = Emits()


class SummaryAdapter(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The adapter that writes summaries (R-504): its name, and one of its models ("" for its default)."""

    name: str = ""
    model: str = ""


class Recall(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The memory recalled at the start of a new chat (R-420, R-444): `element` names the wrapper.

    `ours` as in a stage.
    """

    element: str = "memory_recall"
    ours: str = ""


class Policy(msgspec.Struct, frozen=True, kw_only=True):
    """A complete policy. An empty `summary_adapter` means the chat's own adapter.

    `without_tools`: name of the policy for chats without tools (R-460), or "" for this policy. `status_event`: name of
    the event with the window's fill level (R-144), or "" for none. `response_style`: the default when a chat's
    configuration sets none (K16). `stop_over_limit`: do not send a request that still exceeds the input limit (R-335).
    `request_events`: names of events logged for the first request of a turn, and the first after a compaction (R-328).
    `gathers`: with `context.enabled = "auto"`, gather code for every message (R-201) instead of only on request.
    `recall`: if None, a new chat starts without memory. `ours`: the purpose of a policy that follows no document.
    """

    name: str
    description: str
    default_window: int
    stages: tuple[Stage, ...]
    options: dict[str, str]
    shape: tuple[ShapeStep, ...] = ()
    resume: Literal["submit", "continue"] = "submit"
    cooldown: Cooldown = Cooldown()
    recovery: Recovery = Recovery()
    response_style: Literal["default", "terse"] = "default"
    stop_over_limit: bool = False
    request_events: tuple[str, ...] = ()
    status_event: str = ""
    without_tools: str = ""
    gathers: bool = False
    recall: Recall | None = Recall()
    enabled: bool = True
    summary_adapter: SummaryAdapter = SummaryAdapter()
    ours: str = ""

    def stage(self, id: str) -> Stage | None:
        """Return the stage with that id, or None."""
        return next((stage for stage in self.stages if stage.id == id), None)
