"""A policy is data: triggers plus a program of strategies, frozen and checked (pipeline.md 5.5, K1).

`table` reads and writes these values as tables, `policy_options` lays settings over them,
`policy_catalog` knows which policies there are.
"""

from __future__ import annotations

from typing import Annotated, Any, Literal, get_args

import msgspec

from codecompanion.context.strategies import STRATEGIES
from codecompanion.context.thresholds import Size, Trigger
from codecompanion.context.work import StageEvent

CHAT_ADAPTER = "chat_adapter"
"""In `on_fail`: the model step is tried again by the chat's own adapter."""
OWN_FIELDS = ("description", "resume", "default_window", "status_event", "cooldown", "recovery")
"""What a user's own policy may say besides stages, steps and options."""
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
    """Parameters in which a step of the document is ours: `why` by name, and all as the `document` has them."""

    why: dict[str, str]
    document: Any


class Step(msgspec.Struct, frozen=True):
    """One strategy with its parameters, already checked against the strategy's own struct.

    `optional`: when it has nothing to do the next one goes on without it, instead of ending the tier. `ours` says why
    there is such a step when its document has none (`strict.py`).
    """

    use: str
    params: Any
    optional: bool = False
    ours: str = ""
    departs: Departure | None = None


class Tier(msgspec.Struct, frozen=True, kw_only=True):
    """One way through a stage. Tiers are tried in order; the first whose result is accepted wins, the last one always.

    `ours` says why there is such a tier when its document has none.

    `accept`: `target` when the result must fit the stage's target. `start` (`from` in a table) names the tier whose
    result it works on. `on_fail`: who else writes the summary when the model could not: the chat's own adapter, or a
    strategy that needs no model (K9). `number` is what the result calls it (R-137). `event`: what a change is called
    when it is not what the stage's are, "" = it is: cutting results alone is no compaction (R-411). `manual` false:
    `/compact` does not end with it. `needs`: stages without which it does not run: what is switched off stays off.
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
        """Return whether a summary takes the place of messages; left out when the provider compacts itself (K15)."""
        return any(STRATEGIES[step.use].summarises for step in self.steps)


class Effects(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """What the session does around a change, by name: `before` it is logged, and `after` it."""

    before: tuple[Literal["checkpoint"], ...] = ()
    after: tuple[Literal["memory_flush", "daily_log", "snapshot"], ...] = ()


class Emits(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The named events of a stage: when a model is asked, when it failed ("" = none), and all that a change may be.

    Of several in `changed` those are told that apply (`named_events.applies`).
    """

    started: str = ""
    changed: tuple[str, ...] = ()
    failed: str = ""


class Card(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """What the user reads of a compaction: the title of its card, what is said while it runs, and when it failed.

    `folded`: the card is drawn closed (R-327); otherwise its open sections can be read at once (R-454). `shows_tier`:
    below the title stands which tier it was, and how many messages became how many (R-137).
    """

    title: str = "Summary"
    running: str = "compacting the chat"
    failed: str = "Compaction failed"
    folded: bool = False
    shows_tier: bool = False


class Stage(msgspec.Struct, frozen=True, kw_only=True):
    """A part of the program with its own trigger and its own event.

    `after` names stages that must have had their chance before this one, `unless` those after whose removals this one
    is not needed (R-410). `target` is the size to reach, `target_gap` (0..1 of the basis) how far it stays below the
    trigger (R-306). `label` is how the user reads an automatic run. `manual` means `/compact` runs it, with at least
    `manual_min_messages`. `ours` says why there is such a stage when its document has none.
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
        """Return whether one of its tiers puts a summary in the place of messages."""
        return any(tier.summarises for tier in self.tiers)


class ShapeStep(msgspec.Struct, frozen=True, kw_only=True):
    """A step of request shaping: applied to every request while `when` is crossed (None = always), never stored."""

    use: str
    params: Any
    when: Trigger | None = None
    ours: str = ""
    departs: Departure | None = None


class Cooldown(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """After `failures` failed or useless compactions in a row, automatic ones pause for `cycles` cycles (R-532)."""

    failures: int = 3
    cycles: int = 2


class Recovery(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """What is done about a request that the provider refused as too long (R-451, R-535).

    It is made as small as `share` of the window (0 = a little smaller than it was), at most `attempts` times; `emits`
    names the events of an attempt.
    """

    share: Annotated[float, msgspec.Meta(ge=0, le=1)] = 0.0
    attempts: Annotated[int, msgspec.Meta(ge=1)] = 1
    emits: Emits = Emits()


class SummaryAdapter(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Who writes summaries (R-504): an adapter by name, and a model of it ("" = its default)."""

    name: str = ""
    model: str = ""


class Recall(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The memory that a new chat starts with (R-420, R-444): the `element` around it; `ours` as at a stage."""

    element: str = "memory_recall"
    ours: str = ""


class Policy(msgspec.Struct, frozen=True, kw_only=True):
    """A policy in force. `summary_adapter` "" = the chat's own adapter.

    `without_tools` names the policy of chats that have no tools (R-460), "" = this one.
    `status_event` names the event that tells how full the window is (R-144), "" = none. `response_style` is what a chat
    has when its configuration says nothing (K16).
    `stop_over_limit`: a request that is larger than the input limit after all is not sent (R-335). `request_events`
    name what is logged of the first request of a turn, and of the first after a compaction (R-328). `gathers`: with
    `context.enabled = "auto"` code is gathered for every message (R-201), else only for one that asks for it. `recall`
    None: a new chat starts without memory. `ours` says what it is for when it follows no document.
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
        """Return the stage of that id, None when it is not one of this policy's."""
        return next((stage for stage in self.stages if stage.id == id), None)
