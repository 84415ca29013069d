"""Shapes the view for one request; the result is sent and never stored (R-302, R-338…R-346, K14).

    tool results → placeholders · a packet of facts · tool schemas without docs · short prompt fragments

Triggers are measured before shaping; the meter shows the size after shaping. `shape` is pure and deterministic.
Decisions that must stay stable within a turn, for the prompt cache, are passed in as `kept` and returned in the result.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

import msgspec

from codecompanion.context.policy.policy import Policy, ShapeStep
from codecompanion.context.shaping.prompt_shape import Fragment, join_fragments, shape_specs
from codecompanion.context.strategies import STRATEGIES
from codecompanion.context.strategy_parameters import ContextPacket, ShapeFragments, ShapeSchemas
from codecompanion.context.thresholds import is_crossed, room_of, target_tokens, threshold_tokens
from codecompanion.context.work import Env, Measure, Messages, Work
from codecompanion.model.messages import Message, ToolSpec


class Kept(msgspec.Struct, frozen=True):
    """Earlier shaping in the same turn, which is kept (R-343): placeholders by message id, steps by name."""

    placeholders: dict[str, Message] = {}
    steps: frozenset[str] = frozenset()


class Levels(msgspec.Struct, frozen=True):
    """The request sizes above which steps may apply, in tokens of the whole request, or 0 if there is none."""

    target: int = 0
    trigger: int = 0
    limit: int = 0


class Savings(msgspec.Struct, frozen=True):
    """Content that shaping left out of a request, in estimated tokens by type; `packet`: workspace facts (R-354)."""

    history: int = 0
    prompt: int = 0
    tools: int = 0
    packet: int = 0


class Shaped(msgspec.Struct, frozen=True, kw_only=True):
    """The parts of a shaped request, and figures about the shaping.

    `raw`: the size without shaping. `measure`: the size as sent. `pruned`: the number of results replaced by
    placeholders. `packets`: the workspace facts sent, by the cycle they precede.
    """

    messages: Messages
    system: Message
    specs: tuple[ToolSpec, ...]
    raw: Measure
    measure: Measure
    savings: Savings = Savings()
    pruned: int = 0
    packet_tokens: int = 0
    packets: Mapping[int, Message] = {}
    kept: Kept = Kept()
    levels: Levels = Levels()

    @property
    def is_plain(self) -> bool:
        """Return whether the view is sent unchanged."""
        return self.savings == Savings() and not self.pruned and not self.packet_tokens

    @property
    def is_compact(self) -> bool:
        """Return whether prompt fragments are sent in their short form."""
        return "shape_fragments" in self.kept.steps

    @property
    def is_pressed(self) -> bool:
        """Return whether the shaped request still exceeds the trigger (R-334)."""
        return 0 < self.levels.trigger < self.measure.tokens


class Parts(msgspec.Struct, frozen=True, kw_only=True):
    """The parts of a request besides the view. `fixed` counts the tokens of the system prompt and tools, as measured.

    `measure` counts a whole request with a given system prompt and tools; without it, the savings on these are
    subtracted. `packets`: the packet that precedes each turn, by turn number.
    """

    system: Message
    specs: tuple[ToolSpec, ...]
    fragments: tuple[Fragment, ...] = ()
    fixed: Callable[[Message, tuple[ToolSpec, ...]], int]
    measure: Callable[[Messages, Message, tuple[ToolSpec, ...]], Measure] | None = None
    packets: Mapping[int, Message] = {}


NO_PARTS = Parts(system=Message(id="system", role="system"), specs=(), fixed=lambda system, specs: 0)
"""The parts for messages without a system prompt and tools."""


def levels_of(policy: Policy, env: Env, messages: Messages) -> Levels:
    """Return the target and the trigger of the summarising stage, and the window size."""
    stage = next((stage for stage in policy.stages if stage.summarises and stage.trigger.is_on), None)
    if stage is None:
        return Levels(limit=env.window)
    room = room_of(env, messages, stage.trigger, stage.target)
    target = target_tokens(stage.trigger, stage.target, stage.target_gap, room)
    return Levels(target=target, trigger=threshold_tokens(stage.trigger, room) or 0, limit=env.window)


def shape(
    messages: Messages, parts: Parts, policy: Policy, env: Env, kept: Kept | None = None, *, only_kept: bool = False
) -> Shaped:
    """Return the request as sent, which is the view itself if there are no steps.

    `only_kept`: return the request as it was sent plus newer messages, without further shaping.
    """
    kept = kept or Kept()
    raw, levels = env.measure(messages), levels_of(policy, env, messages)
    plain = Shaped(
        messages=messages, system=parts.system, specs=parts.specs, raw=raw, measure=raw, kept=kept, levels=levels
    )
    steps = policy.shape if policy.enabled else ()
    if parts.packets and not any(isinstance(step.params, ContextPacket) for step in steps):
        steps = (*steps, ShapeStep(use="context_packet", params=ContextPacket()))
    if not steps:
        return plain
    run = _Shaping(parts, msgspec.structs.replace(env, target=levels.target), levels, kept, plain)
    for step in steps:
        if not only_kept or step.use in kept.steps:
            run.take(step)
    return run.finish()


class _Shaping:
    """A request that is being shaped."""

    def __init__(self, parts: Parts, env: Env, levels: Levels, kept: Kept, plain: Shaped) -> None:
        self._parts, self._env, self._levels, self._plain = parts, env, levels, plain
        self._system, self._specs = parts.system, parts.specs
        self._packets: Mapping[int, Message] = parts.packets
        self._left_out = 0
        self._fixed = parts.fixed(parts.system, parts.specs)
        self._prompt_saved = self._tools_saved = 0
        self._kept_steps = set(kept.steps)
        self._placeholders = dict(kept.placeholders)
        present = {message.id: message for message in plain.messages}
        self._placeholders = {i: m for i, m in self._placeholders.items() if i in present and not present[i].edited}
        self._messages = tuple(self._placeholders.get(message.id, message) for message in plain.messages)
        self._measured = None if self._placeholders or parts.packets else plain.raw

    def _size(self) -> Measure:
        """Return the current size of the request; each list is measured only once."""
        saved = self._prompt_saved + self._tools_saved
        if saved and self._parts.measure is not None:
            return self._parts.measure(with_packets(self._messages, self._packets), self._system, self._specs)
        if self._measured is None:
            self._measured = self._env.measure(with_packets(self._messages, self._packets))
        return Measure(max(0, self._measured.tokens - saved), max(0, self._measured.upper - saved))

    def take(self, step: ShapeStep) -> None:
        """Apply one step if it is due."""
        if step.when is not None and not is_crossed(
            step.when, self._size(), room_of(self._env, self._messages, step.when)
        ):
            return
        match step.params:
            case ShapeSchemas():
                if self._is_above(step.use, step.params.above):
                    self._shape_specs(step.params)
            case ShapeFragments():
                if self._is_above(step.use, step.params.above):
                    self._shape_fragments()
            case ContextPacket():
                self._leave_packet_out(step.params)
            case params:
                self._run_strategy(step.use, params)

    def _is_above(self, name: str, above: str) -> bool:
        """Return whether the request exceeds this level, or did so earlier in the turn (R-343)."""
        if above == "always" or name in self._kept_steps:
            self._kept_steps.add(name)
            return True
        level = self._levels.target if above == "target" else self._levels.trigger
        if 0 < level < self._size().tokens:
            self._kept_steps.add(name)
            return True
        return False

    def _run_strategy(self, name: str, params: msgspec.Struct) -> None:
        """Run a strategy over the messages; only replacements count, and later requests of the turn reuse them."""
        outcome = STRATEGIES[name].run(Work(before=self._messages, messages=self._messages), params, self._env)
        if not isinstance(outcome, Work) or len(outcome.messages) != len(self._messages):
            return
        for before, after in zip(self._messages, outcome.messages, strict=True):
            if before is not after:
                self._placeholders[before.id] = after
        self._messages, self._measured = outcome.messages, None

    def _shape_specs(self, params: ShapeSchemas) -> None:
        self._specs = shape_specs(self._parts.specs, params)
        self._tools_saved = max(0, self._fixed - self._parts.fixed(self._parts.system, self._specs))

    def _shape_fragments(self) -> None:
        text = join_fragments(self._parts.fragments, compact=True)
        if len(text) >= len(self._parts.system.text):
            return
        self._system = msgspec.structs.replace(self._parts.system, content=text)
        self._prompt_saved = max(0, self._fixed - self._parts.fixed(self._system, self._parts.specs))

    def _leave_packet_out(self, params: ContextPacket) -> None:
        """Leave out all packets if the request is close to the limit (R-354)."""
        level = {"never": 0, "target": self._levels.target, "trigger": self._levels.trigger}[params.omit_above]
        if self._packets and ("context_packet" in self._kept_steps or 0 < level < self._size().tokens):
            self._kept_steps.add("context_packet")
            self._left_out = sum(message.tokens for message in self._packets.values())
            self._packets, self._measured = {}, None

    def finish(self) -> Shaped:
        """Return the shaped request."""
        originals = {message.id: message for message in self._plain.messages}
        pruned = self._placeholders
        history = self._env.size(originals[i] for i in pruned) - self._env.size(pruned.values())
        return msgspec.structs.replace(
            self._plain,
            messages=with_packets(self._messages, self._packets),
            system=self._system,
            specs=self._specs,
            measure=self._size(),
            savings=Savings(history, self._prompt_saved, self._tools_saved, self._left_out),
            pruned=len(pruned),
            packet_tokens=sum(message.tokens for message in self._packets.values()),
            packets=self._packets,
            kept=Kept(pruned, frozenset(self._kept_steps)),
        )


def with_packets(messages: Messages, packets: Mapping[int, Message]) -> Messages:
    """Return the messages with each packet before the first message of its turn."""
    if not packets:
        return messages
    waiting, placed = dict(packets), list[Message]()
    for message in messages:
        if message.role == "user" and message.tag is None and message.cycle in waiting:
            placed.append(waiting.pop(message.cycle))
        placed.append(message)
    return tuple(placed)
