"""`replay`: walks through a recorded session request by request under a policy, and adds up the hypothetical cost.

There is a request before each recorded reply. For each, the policy prepares and commits, exactly as in a session:
prepare → one change per stage → the changed view continues, shaped for this request. The recorded reply is then used as
the answer, whatever the view has become.

All consequences of a policy are included in the cost. System prompt and tool schemas are sent with each request
(`recorded_sizes`). The offline ledger writes the summaries here, at a model's cost: its input (a transcript as plain
input, the chat itself at its cached price) and the text as output. After a fault the model reads the file again: one
more request, and the result stays in the chat from then on. If the recorded session outgrows the window, there is no
baseline for its cost: `compared_cost` covers the requests that would have fit with everything in them.

Costs: `cache_price`; faults: `faults`. Pure: no clock, no files; a recording always gives the same figures.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

import msgspec

from codecompanion.context.change import repair_change, view_change
from codecompanion.context.editing.repair_pairs import repair_pairs
from codecompanion.context.ledger.ledger import summarise
from codecompanion.context.pipeline import prepare
from codecompanion.context.policy.policy import Policy
from codecompanion.context.shape_request import NO_PARTS, Kept, shape
from codecompanion.context.stage_report import Ask, Prepared, drive
from codecompanion.context.work import Continuation, Env, Folds, Measure, Messages, SummaryReply
from codecompanion.counting.model_windows import reply_reserve
from codecompanion.counting.tokens import MessageCounter
from codecompanion.model.messages import Message, ToolCall, with_changes
from codecompanion.model.view import View, append, apply_change, with_messages
from codecompanion.reports.cache_price import OUTPUT_PRICE, WRITE_PRICE, CacheKind, PrefixCache
from codecompanion.reports.faults import LineIndex, needed_texts, readable_texts
from codecompanion.reports.recorded_sizes import RecordedSizes, find_sizes

NO_WINDOW_LIMIT = 1 << 40
"""Window passed to the ledger to leave its summaries unlimited."""


class Figures(msgspec.Struct, frozen=True):
    """The sums of a walk. Tokens are the provider's if usage was recorded; `cost` is in tokens of plain input.

    `edits` and `compactions`: committed changes of the view. `summary_tokens` were read and `summary_output_tokens`
    written for summaries. `text_edits`: recorded edits whose old text is known; `faults`: those that would have been
    impossible; the cost of reading their text again is included, but not in `requests`. `overflows`: requests larger
    than the window. `compared_requests` would have fit without management, and cost `compared_cost`.
    """

    requests: int = 0
    prompt_tokens: int = 0
    peak: int = 0
    edits: int = 0
    compactions: int = 0
    cost: float = 0.0
    summary_tokens: int = 0
    text_edits: int = 0
    faults: int = 0
    overflows: int = 0
    summary_output_tokens: int = 0
    compared_requests: int = 0
    compared_cost: float = 0.0

    def __add__(self, other: Figures) -> Figures:
        """Return the sum of both figures, with the larger peak."""
        added = {name: getattr(self, name) + getattr(other, name) for name in self.__struct_fields__}
        return Figures(**(added | {"peak": max(self.peak, other.peak)}))


class Recording(msgspec.Struct, frozen=True):
    """A recorded session prepared for walking: every message counted, its lines indexed."""

    messages: Messages
    lines: LineIndex
    counter: MessageCounter
    sizes: RecordedSizes = RecordedSizes()


def read_recording(messages: Sequence[Message], counter: MessageCounter | None = None) -> Recording:
    """Return the recording of a transcript."""
    counter = counter or MessageCounter()
    counted = tuple(with_changes(message, tokens=counter.message(message)) for message in messages)
    return Recording(counted, LineIndex(counted), counter, find_sizes(counted))


def walk(recording: Recording, policy: Policy | None, window: int, cache: CacheKind) -> Figures:
    """Return the figures of a session under a policy, or without management if `policy` is None."""
    return sum(walk_requests(recording, policy, window, cache), Figures())


def walk_requests(recording: Recording, policy: Policy | None, window: int, cache: CacheKind) -> tuple[Figures, ...]:
    """Return the figures of each request of a session; reads after a fault belong to its request."""
    sizes = recording.sizes
    walker = _Walker(recording, policy, window, PrefixCache(cache, fixed=sizes.fixed, ratio=sizes.ratio))
    recorded = 0
    for place, message in enumerate(recording.messages):
        if message.role == "assistant":
            walker.send(place, message, would_fit=sizes.request(recorded) <= window)
        walker.view = append(walker.view, message)
        recorded += message.tokens
    return tuple(walker.figures)


def relative_cost(figures: Figures, unmanaged: Figures) -> float:
    """Return the cost of the requests that fit without management, relative to that without it; 1 if there are none."""
    return figures.compared_cost / unmanaged.compared_cost if unmanaged.compared_cost else 1.0


class _Walker:
    """Walks through one session: holds the current view, and the figures of the requests so far."""

    def __init__(self, recording: Recording, policy: Policy | None, window: int, cache: PrefixCache) -> None:
        self._recording, self._policy, self._window, self._cache = recording, policy, window, cache
        self._made = 0
        self._folds = Folds()
        self._kept, self._kept_cycle = Kept(), 0
        self.view = View()
        self.figures: list[Figures] = []

    def send(self, place: int, reply: Message, *, would_fit: bool) -> None:
        """Prepare the request that the reply answered, add its cost, then find faults and add theirs.

        `would_fit`: the request would fit even with all recorded messages before it.
        """
        now = self._asked_at(place, reply)
        sent, done = self._repaired() if self._policy is None else self._prepared(self._policy, now)
        needs = needed_texts(reply)
        shown = {message.id: message for message in sent} if needs and self._policy is not None else {}
        lines = self._recording.lines
        faults = [need for need in needs if lines.is_fault(need, place, shown)] if shown else []
        done += self._request(sent, now)
        for need in faults:
            if lines.is_fault(need, place, shown):  # one read may provide the text for several edits of a reply
                done += self._read_again(lines.newest_source(need, place), sent, now)
                sent = self.view.messages
                shown = {message.id: message for message in sent}
        compared = Figures(compared_requests=1, compared_cost=done.cost) if would_fit else Figures()
        self.figures.append(done + compared + Figures(requests=1, text_edits=len(needs), faults=len(faults)))

    def _request(self, sent: Messages, now: float) -> Figures:
        """Return the figures of one request, and update the cache."""
        tokens = self._recording.sizes.request(sum(message.tokens for message in sent))
        cost, self._cache = self._cache.price(sent, now), self._cache.after(sent, now)
        return Figures(prompt_tokens=tokens, peak=tokens, cost=cost, overflows=int(tokens > self._window))

    def _read_again(self, source: Message, sent: Messages, now: float) -> Figures:
        """Return the cost of reading content again: a request with a call and its result, which join the view."""
        call_id, cycle = self._new_id("call"), max(1, self.view.cycle)
        call = self._call_of(source, call_id)
        asked = Message(id=self._new_id("again"), role="assistant", tool_calls=(call,), cycle=cycle, ts=now)
        text = "\n".join(readable_texts(source))
        result = Message(id=self._new_id("again"), role="tool", content=text, tool_call_id=call_id, cycle=cycle, ts=now)
        pair = self._counted((asked, result))
        for message in pair:
            self.view = append(self.view, message)
        written = OUTPUT_PRICE * self._recording.sizes.ratio * pair[0].tokens
        return self._request((*sent, *pair), now) + Figures(cost=written)

    def _call_of(self, source: Message, call_id: str) -> ToolCall:
        """Return the call that provides the source's text: the recorded call, or a new one that reads it."""
        calls = (call for message in self._recording.messages for call in message.tool_calls)
        found = next((call for call in calls if source.role == "tool" and call.id == source.tool_call_id), None)
        return ToolCall(call_id, found.name, found.arguments) if found else ToolCall(call_id, "read_file", "{}")

    def _asked_at(self, place: int, reply: Message) -> float:
        """Return the time of the request: that of the message before it, or else that of the reply."""
        before = self._recording.messages[place - 1].ts if place else 0.0
        return before or reply.ts

    def _prepared(self, policy: Policy, now: float) -> tuple[Messages, Figures]:
        """Return the messages sent under the policy, and the figures of its changes, which are committed."""
        counter, ratio, asked, cost, written = self._recording.counter, self._recording.sizes.ratio, 0, 0.0, 0

        def answer(ask: Ask) -> SummaryReply:
            nonlocal asked, cost, written
            tokens = counter.text(ask.request.prompt)
            if ask.request.in_place:
                cost += self._cache.price(self.view.messages, now) + WRITE_PRICE * ratio * tokens
                tokens += sum(message.tokens for message in self.view.messages)
            else:
                cost += ratio * tokens
            asked += tokens
            text = summarise(ask.request.subject, ask.request.max_output_tokens, counter.text)
            written += counter.text(text)
            return SummaryReply(text=text, source="code")

        preparation = prepare(self.view, policy, self._env_as_sent(policy, now))
        prepared, _ = drive(preparation, answer)
        self._commit(prepared)
        changed = [report.event for report in prepared.changed]
        return self._shaped(policy, now), Figures(
            edits=changed.count("context_edited"),
            compactions=changed.count("context_compacted"),
            summary_tokens=asked,
            summary_output_tokens=written,
            cost=cost + OUTPUT_PRICE * ratio * written,
        )

    def _shaped(self, policy: Policy, now: float) -> Messages:
        """Return the view as sent; shaping applies within a cycle and is never stored."""
        if not policy.shape:
            return self.view.messages
        shaped = shape(self.view.messages, NO_PARTS, policy, self._env(now), self._kept_now())
        self._kept = shaped.kept
        return self._counted(shaped.messages)

    def _kept_now(self) -> Kept:
        """Return the parts that earlier requests of this cycle left out or kept."""
        if self.view.cycle != self._kept_cycle:
            self._kept, self._kept_cycle = Kept(), self.view.cycle
        return self._kept

    def _repaired(self) -> tuple[Messages, Figures]:
        """Return the messages sent without management, repaired so that every call has its result."""
        repair = repair_pairs(self.view.messages)
        if repair.changed:
            self.view = with_messages(self.view, self._counted(repair.messages))
        return self.view.messages, Figures()

    def _commit(self, prepared: Prepared) -> None:
        """Apply the changes to the view, one per stage."""
        current = self.view.messages
        if prepared.repair.changed:
            self.view = apply_change(self.view, repair_change(current, prepared.repair, self._new_id("repair")))
            current = prepared.repair.messages
        for report in prepared.reports:
            if report.work is None or report.event == "memory_flushed":
                continue
            change = view_change(report, report.work, current, self._new_id("change"))
            self.view = apply_change(self.view, change)
            current = report.work.messages
        self.view = msgspec.structs.replace(self.view, messages=self._counted(self.view.messages))

    def _counted(self, messages: Messages) -> Messages:
        """Return the messages with their sizes, because messages made by a strategy may lack them."""
        if all(message.tokens for message in messages):
            return messages
        count = self._recording.counter.message
        return tuple(
            message if message.tokens else with_changes(message, tokens=count(message)) for message in messages
        )

    def _env(self, now: float) -> Env:
        counter = self._recording.counter
        return Env(
            window=self._window,
            reserve=reply_reserve(self._window),
            measure=_measure(counter, self._recording.sizes),
            count=counter.message,
            count_text=counter.text,
            cycle=max(1, self.view.cycle),
            summariser_window=NO_WINDOW_LIMIT,
            new_id=self._new_id,
            # Without times the price assumes a warm cache, so the policy sees one as well.
            now=now or 1.0,
            cache=self._cache.state(now),
            continuation=lambda: self._continuation(now),
            folds=self._folds,
        )

    def _continuation(self, now: float) -> Continuation:
        """Return the input for a summary written within the chat."""
        sizes, messages = self._recording.sizes, self.view.messages
        tokens = sizes.request(sum(message.tokens for message in messages))
        new = sum(message.tokens for message in messages) - self._cache.state(now).warm_tokens
        return Continuation(tokens, math.ceil(sizes.ratio * max(0, new)))

    def _env_as_sent(self, policy: Policy, now: float) -> Env:
        """Return the environment that also measures a request as it would be sent (R-301)."""
        env, kept = self._env(now), self._kept_now()
        if not policy.shape:
            return env
        return msgspec.structs.replace(
            env, sent=lambda messages: env.measure(shape(messages, NO_PARTS, policy, env, kept).messages)
        )

    def _new_id(self, purpose: str) -> str:
        self._made += 1
        return f"{purpose}-{self._made}"


def _measure(counter: MessageCounter, sizes: RecordedSizes) -> Callable[[Messages], Measure]:
    """Return a function that counts a request of these messages."""

    def measure(messages: Messages) -> Measure:
        total = sizes.request(counter.count_messages(messages))
        return Measure(total, total)

    return measure
