"""Shapes a chat's view into requests, and keeps the shaping fixed within a turn (R-302, R-338…R-355).

`context.shape_request` makes the decisions; this module provides its inputs, its memory, and the workspace facts, which
are read once per turn without blocking the editor. Requests themselves are not stored; only the policy's named events
about them are.
"""

from __future__ import annotations

import asyncio
import logging
import os
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import cache
from pathlib import Path

import msgspec

from codecompanion.adapters.base import ChatRequest
from codecompanion.context.editing.age import newest_finished_turn
from codecompanion.context.named_events import Occasion, events_of
from codecompanion.context.shape_request import Kept, Parts, Shaped, shape
from codecompanion.context.shaping.context_packet import (
    PACKET_TAG,
    ChangedFile,
    DiagnosticFact,
    Facts,
    Packet,
    budget_tokens,
    plan_packet,
)
from codecompanion.context.strategy_parameters import ContextPacket
from codecompanion.context.work import Env, Measure, Messages
from codecompanion.model.messages import Content, Message, ToolSpec, is_typed_by_user
from codecompanion.model.view import View
from codecompanion.session.accounts.meter import FixedPart
from codecompanion.session.compaction.announcer import tell
from codecompanion.session.window.chat_env import ChatEnv
from codecompanion.session.window.chat_model import ChatModel
from codecompanion.session.window.prior_turns import PriorTurns
from codecompanion.wire.events import Severity
from codecompanion.wire.requests import Snapshot

_log = logging.getLogger(__name__)
UNREACHABLE, PRESSURE = "input_limit_unreachable", "input_limit_pressure"


def count_shared(before: Shaped | None, now: Shaped) -> int:
    """Return how many leading messages the two requests share, or -1 if even their system prompts or tools differ."""
    if before is None or before.system != now.system or before.specs != now.specs:
        return -1
    pairs = enumerate(zip(before.messages, now.messages, strict=False))
    end = min(len(before.messages), len(now.messages))
    return next((i for i, (a, b) in pairs if a is not b and a != b), end)


class RequestShaper:
    """Shapes the requests of one chat. `snapshot` and `root` return the editor's state and the workspace folder."""

    def __init__(self, chat: ChatModel, env: ChatEnv) -> None:
        self._chat, self._bare = chat, env
        self.snapshot: Callable[[], Snapshot] = Snapshot
        self._kept, self._kept_cycle = Kept(), 0
        self._packets: dict[int, Message] = {}
        self._said: dict[int, dict[str, str]] = {}
        self._read_cycle = self._pressed_cycle = -1
        self._logged = -1, -1
        self._seen: tuple[tuple[object, ...], Shaped | None] = ((), None)
        self._fixed: dict[tuple[str, int], tuple[tuple[ToolSpec, ...], FixedPart]] = {}
        self._prior_turns = PriorTurns(chat.log)
        self.sent: Shaped | None = None
        """The last request."""
        self._before: Shaped | None = None
        """The request before the last one, if it was sent to the same model."""
        self._sent_to = ("", "")

    def env(self, instructions: str = "", *, manual: bool = False) -> Env:
        """Return the environment of the next request, including the function that measures a request as sent."""
        env = self._bare.read(instructions, manual=manual)
        return msgspec.structs.replace(env, exists=self._files(), sent=self.measure if self.shapes else None)

    def current(self) -> Shaped:
        """Return the request as it is now; calling this again without a change costs nothing.

        While no message waits for an answer, this is the last request plus its reply, because the next turn's shaping
        belongs to requests that no provider has counted (R-301, R-303).
        """
        chat = self._chat
        view = chat.log.view
        parts = (chat.policy, chat.specs, chat.system_message, chat.limits, len(self._packets))
        key = (view, chat.meter.state, *parts)
        before, shaped = self._seen
        if shaped is None or before[0] is not view or before[1:] != key[1:]:
            if view.cycle != self._kept_cycle:
                self._kept, self._kept_cycle = Kept(), view.cycle
            env = self._bare.read()
            is_idle, kept = newest_finished_turn(view.messages, env) == env.cycle, self._kept
            if is_idle and self.sent is None:
                # After a restart, the messages of the last request determine how it was shaped.
                kept = shape(view.messages[:-1], self._parts(), chat.policy, env, kept).kept
            shaped = shape(view.messages, self._parts(), chat.policy, env, kept, only_kept=is_idle)
            self._seen = key, shaped
        return shaped

    @property
    def shapes(self) -> bool:
        """Return whether a request can differ from the view."""
        return bool(self._packets) or (self._chat.policy.enabled and bool(self._chat.policy.shape))

    def of(self, messages: Messages) -> Shaped:
        """Return the request for these messages as it would be sent now, even for a turn that has not begun."""
        env, cycle = self._bare.read(), (messages[-1].cycle or 0) if messages else 0
        kept = self._kept if cycle <= self._kept_cycle else Kept()
        env = msgspec.structs.replace(env, cycle=max(env.cycle, cycle))
        return shape(messages, self._parts(), self._chat.policy, env, kept)

    def measure(self, messages: Messages) -> Measure:
        """Return the size of a request with these messages as it would be sent now."""
        return self.of(messages).measure if self.shapes else self._chat.meter.measure(messages)

    def take(self) -> Shaped:
        """Return the request to send now, and fix its shaping for the rest of the turn (R-343)."""
        is_same, self._sent_to = self._sent_to == self._chat.named, self._chat.named
        self._before, self.sent = self.sent if is_same else None, self.current()
        self._kept = self.sent.kept
        return self.sent

    def sent_contents(self) -> dict[str, Content]:
        """Return the contents of the last request by message id, if it went to the current model."""
        if self.sent is None or self._sent_to != self._chat.named:
            return {}
        return {message.id: message.content for message in self.sent.messages}

    def unread_tokens(self) -> int:
        """Return the estimated number of tokens of the last request that its server has to process."""
        now, known = self.sent or self.current(), self._known_messages()
        if known < 0 or self._chat.cache_state().is_cold:
            return now.measure.tokens
        return round(self._chat.meter.calibration.ratio * sum(message.tokens for message in now.messages[known:]))

    def shared_tokens(self, *, is_lost: bool) -> int:
        """Return the estimated tokens that the last request shares with the previous request and its reply.

        `is_lost`: the cache was lost, not invalidated by an edit, so everything up to the last reply counts.
        """
        now = self.sent or self.current()
        replies = (index for index in range(len(now.messages), 0, -1) if now.messages[index - 1].role == "assistant")
        known = next(replies, -1) if is_lost else self._known_messages()
        if known < 0:
            return 0
        shared = self._count_fixed(now.system, now.specs)
        return shared + round(
            self._chat.meter.calibration.ratio * sum(message.tokens for message in now.messages[:known])
        )

    def _known_messages(self) -> int:
        """Return how many messages of the last request were already known to its server.

        -1 = not even the system prompt.
        """
        now, before = self.sent or self.current(), self._before
        shared = count_shared(before, now)
        if before is None or shared < len(before.messages) or shared == len(now.messages):
            return shared
        return shared + (now.messages[shared].role == "assistant")  # the model wrote it

    def request_of(self, shaped: Shaped, compact_at: int) -> ChatRequest:
        """Return the provider request for a shaped request, with room left for the reply (R-507)."""
        return self._chat.request_of(shaped.messages, shaped.system, shaped.specs, shaped.measure.upper, compact_at)

    def _parts(self) -> Parts:
        chat = self._chat
        return Parts(
            system=chat.system_message,
            specs=chat.specs,
            fragments=chat.fragments(),
            fixed=self._count_fixed,
            measure=self._measure_with,
            packets=self._packets,
        )

    def _count_fixed(self, system: Message, specs: tuple[ToolSpec, ...]) -> int:
        """Return the measured token count of the system prompt and tools."""
        return round(self._chat.meter.calibration.ratio * self._fixed_part(system, specs).tokens)

    def _measure_with(self, messages: Messages, system: Message, specs: tuple[ToolSpec, ...]) -> Measure:
        """Return the size of a request with this system prompt and these tools.

        It is exact if the provider reported it.
        """
        return self._chat.meter.measure(messages, self._fixed_part(system, specs))

    def _fixed_part(self, system: Message, specs: tuple[ToolSpec, ...]) -> FixedPart:
        """Return the estimated size of system prompt and tools; each combination is counted once."""
        key = system.text, id(specs)
        known = self._fixed.get(key)
        if known is None or known[0] is not specs:
            # The specs are kept with the count, so their id cannot be reused.
            known = specs, self._chat.meter.fixed_part(system, specs)
            self._fixed = {**dict(list(self._fixed.items())[-3:]), key: known}
        return known[1]

    # ---- facts of the workspace

    def _files(self) -> Callable[[str], bool]:
        """Return a predicate that tells whether the workspace has a file with this relative path (R-419)."""
        root = cache(lambda: self._chat.services.root(self.snapshot()))
        # `Path.is_file` raises if a name is too long.
        return lambda name: ".." not in name and os.path.isfile(root() / name)  # noqa: PTH113

    async def read_facts(self) -> None:
        """Read the state of the workspace at the start of a turn, if packet sections are enabled (R-353)."""
        chat = self._chat
        view, enabled = chat.log.view, chat.services.settings.chat.context_packet.enabled_sections
        if not enabled or view.cycle == self._read_cycle:
            return
        self._read_cycle = view.cycle
        known = 0 if chat.limits.source == "default" else chat.limits.context_window
        params = next((s.params for s in chat.policy.shape if isinstance(s.params, ContextPacket)), ContextPacket())
        facts = await self._facts(enabled)
        typed = [message for message in view.messages if is_typed_by_user(message)]
        words = "\n".join(message.text for message in typed if message.cycle == view.cycle)
        # Facts sent with a turn that has since been summarised are sent again.
        said = {k: v for message in typed for k, v in self._said.get(message.cycle or 0, {}).items()}
        count, budget = chat.meter.counter.text, budget_tokens(params, known)
        packet = plan_packet(enabled, facts, words, said, budget=budget, count=count)
        for section, reason in packet.omitted:
            _log.info("context packet: %s left out (%s)", section, reason)
        self._add(packet, view)

    def _add(self, packet: Packet, view: View) -> None:
        if not packet.text:
            return
        turn = next((m.turn_id for m in reversed(view.messages) if m.cycle == view.cycle), "")
        message = Message(
            id=f"packet-{view.cycle}", role="user", tag=PACKET_TAG, content=packet.text, cycle=view.cycle, turn_id=turn
        )
        self._packets = {**self._packets, view.cycle: self._chat.meter.counted(message)}
        if "context_packet" not in self.current().kept.steps:
            self._said[view.cycle] = packet.sections

    async def _facts(self, enabled: Sequence[str]) -> Facts:
        snapshot = self.snapshot()
        root = self._chat.services.root(snapshot)
        wants_diagnostics = "diagnostics" in enabled and snapshot.send_code
        from codecompanion.workspace.git import read_status  # not needed at startup

        status = await asyncio.to_thread(read_status, root) if set(enabled) - {"diagnostics"} else None
        reported = await self._chat.services.editor.diagnostics() if wants_diagnostics else ()
        found = tuple(DiagnosticFact(_relative(d.path, root), d.line, d.severity, d.message) for d in reported or ())
        if status is None:
            return Facts(root.name, diagnostics=found)
        changed = tuple(ChangedFile(code, path) for code, path in status.changed)
        # use the diagnostics of changed files, if there are any.
        of_changed = tuple(fact for fact in found if fact.path in {file.path for file in changed})
        return Facts(root.name, True, status.branch, changed, of_changed or found)

    # ---- events about the requests

    async def announce(self, compacted: bool) -> None:
        """Log the state of the next request, under the policy's event names (R-328, R-334)."""
        chat, shaped = self._chat, self.current()
        if not chat.policy.enabled:
            return
        cycle = chat.log.view.cycle
        if shaped.is_pressed and not compacted and chat.policy.stop_over_limit and self._pressed_cycle != cycle:
            self._pressed_cycle = cycle
            await self.fail(
                PRESSURE, "the request is close to the input limit, and nothing more can be removed", shaped
            )
        await self.log_request()

    async def fail(self, reason: str, detail: str, shaped: Shaped | None = None, tokens: int = 0) -> None:
        """Log and report that the history could not be made to fit, if the policy has events for that.

        The failure is logged as a compaction that began and ended: two events with one id, in one transaction (R-332).
        The user is informed unless the request is sent anyway (R-327).
        """
        shaped = shaped or self.current()
        stage = next((stage for stage in self._chat.policy.stages if stage.emits.failed), None)
        if stage is None:
            return
        occasion = Occasion(
            tokens=tokens or shaped.measure.tokens,
            window=self._chat.limits.context_window,
            trigger_tokens=shaped.levels.trigger,
            target_tokens=shaped.levels.target,
            reason=reason,
            detail=detail,
        )
        await self._write((stage.emits.started, stage.emits.failed), occasion, self._chat.services.new_token())
        if reason == UNREACHABLE:
            self._chat.notice(Severity.WARN, f"{stage.card.failed}: the request still does not fit.")

    async def give_up(self, problem: str, tokens: int = 0) -> None:
        """Log that the request cannot be made to fit, if the policy has an event for that (R-335).

        `tokens`: the size of the request, 0 = the current request's.
        """
        if self._chat.policy.stop_over_limit:
            await self.fail(UNREACHABLE, problem, tokens=tokens)

    async def log_request(self) -> None:
        """Log the next request's contents if it is the first of its turn or after a compaction (R-328)."""
        chat, log = self._chat, self._chat.log
        at = log.view.cycle, log.compactions
        if not chat.policy.request_events or not chat.policy.enabled or self._logged == at:
            return
        self._logged, shaped = at, self.current()
        turn_id = log.view.messages[-1].turn_id if log.view.messages else ""
        raw, left_out = await self._prior_turns.read()
        occasion = Occasion(
            sent=(shaped.system, *shaped.messages),
            raw=raw,
            left_out=left_out,
            tools=shaped.specs,
            turn_id=turn_id,
            is_compact=shaped.is_compact,
        )
        await self._write(chat.policy.request_events, occasion)

    async def _write(self, names: Sequence[str], occasion: Occasion, compaction_id: str = "") -> None:
        chat = self._chat
        events = events_of(names, occasion, compaction_id)
        await chat.log.write(*events)
        tell(chat.services.emit, chat.chat_id, events)

    def savings(self) -> dict[str, int]:
        """Return the tokens omitted from the last request, by category, as logged (R-354, R-356)."""
        if self.sent is None or self.sent.is_plain:
            return {}
        saved = self.sent.savings
        figures = {
            "prompt": saved.prompt,
            "tools": saved.tools,
            "results": saved.history,
            "packet": self.sent.packet_tokens,
            "packet_omitted": saved.packet,
        }
        return {name: tokens for name, tokens in figures.items() if tokens}

    @contextmanager
    def as_sent(self, reply: Message | None = None) -> Iterator[View]:
        """Yield the last request as a view, with the reply appended; the meter uses its system prompt and tools."""
        chat, sent = self._chat, self.sent
        if sent is None or sent.is_plain:
            yield chat.log.view
            return
        messages = sent.messages if reply is None else (*sent.messages, reply)
        chat.meter.set_fixed_part(sent.system, sent.specs)
        try:
            yield View(messages=messages, tokens=sum(message.tokens for message in messages))
        finally:
            chat.meter.set_fixed_part(chat.system_message, chat.specs)


def _relative(path: str, root: Path) -> str:
    whole = Path(path)
    return whole.relative_to(root).as_posix() if whole.is_relative_to(root) else path
