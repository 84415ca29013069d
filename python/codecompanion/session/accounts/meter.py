"""The ctx meter: the size of the next request, and how certain it is (R-505, lessons 7, 8, 45).

Every report gives the size of a whole prompt and of its reply, from which the size of every message follows: a reply
has its reported size, the messages between two requests share the difference between the requests in proportion to
their estimates, and everything else (system prompt, schemas, framing) is the remainder, `base`. The size of the next
request is the base plus the sum over its messages, and only messages without a report are estimated: right after a
reply the count is exact, after a tool result nearly so. An edit, a compaction or an undo subtracts and adds counted
sizes, so the meter is correct immediately.

The known sizes are kept in `message_sizes`.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import msgspec

from codecompanion.context.work import Measure
from codecompanion.counting.calibration import Calibration, Count, is_plausible
from codecompanion.counting.tokens import MessageCounter
from codecompanion.model.fold import Fold
from codecompanion.model.history import LogEvent
from codecompanion.model.messages import Message, ReasoningPart, TextPart, ToolSpec, Usage, with_changes
from codecompanion.model.view import View
from codecompanion.session.accounts.message_sizes import Key, MessageSizes, Split
from codecompanion.session.accounts.reported_steps import reported_steps
from codecompanion.session.accounts.usage_check import Doubt, ExpectedSize, Request, UsageCheck

# Error margins of a count: as shares of the tokens estimated since the last report (short texts, so less precise than a
# whole request), of removed messages (known only as shares of a report), and of the total (providers add a little to
# everything), and a minimum in tokens. Fitted on one half of recorded sessions: 98 % of the other half are within these
# margins (bench/bench_counting.py); the last two follow each endpoint's reports.
_NEW_MARGIN, _TAKEN_MARGIN, _ALL_MARGIN, _FLOOR = 0.22, 0.02, 0.004, 64
# The first report covers the fixed part and the messages together: with at least the first number of tokens in messages
# it teaches about the messages, with at most the second about the fixed part (a ratio off by a tenth then misplaces 200
# tokens).
_MOSTLY_MESSAGES, _MOSTLY_FIXED = 20_000, 2_000
# After a first report, the fixed part keeps at least this share of its estimate.
_MIN_BASE = 0.5
# After an edit, a report differs from the expected value by up to 2 % of the remaining messages (recorded and replayed
# sessions).
_MAX_TAKEN = 0.05


class FixedPart(msgspec.Struct, frozen=True):
    """Estimated tokens of a request's fixed part: of system prompt and tools together, and of the tools alone."""

    tokens: int
    schemas: int


class ContextMeter:
    """Counts the tokens of one chat's next request to one model."""

    def __init__(self, counter: MessageCounter, calibration: Calibration, *, checks_usage: bool = True) -> None:
        self.counter = counter
        self.calibration = calibration
        """The calibration learned from this model's reports."""
        self.window = self.assumed_window = 0
        """The context window in tokens, which no report can exceed; 0 if unknown, in which case `assumed_window` is a
        guess.
        """
        self._fixed = self._schemas = 0
        self._reasoning_returns = False
        self._base: float | None = None
        self._unconfirmed = 0.0
        """The part of the base that is known from only one report, which the next report will confirm or contradict."""
        self._sizes = MessageSizes(counter)
        self._check = UsageCheck(enabled=checks_usage)
        self._total = 0.0
        self._estimate = Fold[Message, int](0, lambda tokens, new: tokens + counter.count_messages(new))

    def switch_model(self, calibration: Calibration, *, readable_reasoning_returns: bool = False) -> None:
        """Switch to another model's calibration and drop the reports of the previous model."""
        self.calibration, self._reasoning_returns = calibration, readable_reasoning_returns
        self.forget_doubts()

    def resends(self, part: ReasoningPart, origin: str) -> bool:
        """Return whether a finished turn's reasoning still takes up tokens in prompts to this endpoint (R-542)."""
        goes_out = part.origin == origin if part.encrypted else self._reasoning_returns
        return goes_out and not self._sizes.forgets_thoughts

    @property
    def schemas(self) -> int:
        """Return the estimated tokens of the tool schemas sent with every request."""
        return self._schemas

    def forget_doubts(self) -> None:
        """Forget all reports and doubts, because the next report is for a different kind of request."""
        self._forget_reports()
        self._check.forget()

    def _forget_reports(self) -> None:
        self._base, self._unconfirmed, self._sizes = None, 0.0, MessageSizes(self.counter)

    def set_fixed_part(self, system: Message, specs: tuple[ToolSpec, ...]) -> None:
        """Set and count the fixed part of every request: system prompt and tool schemas."""
        fixed = self.fixed_part(system, specs)
        if self._base is not None:
            self._base += self.calibration.ratio * (fixed.tokens - self._fixed)
        self._fixed, self._schemas = fixed.tokens, fixed.schemas

    def fixed_part(self, system: Message, specs: tuple[ToolSpec, ...]) -> FixedPart:
        """Return the estimate of a system prompt and tool schemas."""
        schemas = self.counter.tools(specs)
        return FixedPart(self.counter.message(system) + schemas, schemas)

    @property
    def has_reports(self) -> bool:
        """Return whether the current model has reported usage for this chat."""
        return self._base is not None

    @property
    def state(self) -> tuple[float | None, float, float]:
        """Return the values, other than the messages, that counts depend on; they change with every report."""
        return self._base, self._total - self._unconfirmed, self.calibration.ratio

    def counted(self, message: Message) -> Message:
        """Return the message with its estimated tokens stored in it."""
        return message if message.tokens else with_changes(message, tokens=self.counter.message(message))

    def scaled(self, tokens: int) -> int:
        """Convert an estimate to this model's tokens, as shown for a message in the buffer."""
        return round(self.calibration.ratio * tokens)

    def estimated_prompt(self, view: View) -> int:
        """Return the uncalibrated estimate of the request, for comparison with a later report."""
        return self._fixed + view.tokens

    def by_estimate(self, messages: Sequence[Message]) -> Count:
        """Return the size of a request with these messages by our own estimate, ignoring reports about them.

        Hidden tokens that the provider adds are excluded: they are uncertain, so they must not block a request.
        """
        ours = msgspec.structs.replace(self.calibration, extra=0.0)
        return ours.count(self._fixed + self.counter.count_messages(messages), self._schemas, len(messages))

    def count(self, view: View) -> Count:
        """Return the size of the next request for this view."""
        return self._count(view.messages)

    def measure(self, messages: Sequence[Message], fixed: FixedPart | None = None) -> Measure:
        """Return the size of a request with these messages; `fixed` overrides the fixed part."""
        count = self._count(messages, fixed)
        return Measure(count.tokens, count.upper)

    def _count(self, messages: Sequence[Message], fixed: FixedPart | None = None) -> Count:
        fixed = fixed or FixedPart(self._fixed, self._schemas)
        if self._base is None:
            # Without messages, the estimate is skipped, which keeps the cached fold of the last messages.
            estimated = fixed.tokens + (self._estimate.of(messages) if messages else 0)
            return self.calibration.count(estimated, fixed.schemas, len(messages))
        base = self._base + self.calibration.ratio * (fixed.tokens - self._fixed)
        split = self._sizes.split(messages) if messages else Split()
        known, added = self._sizes.read(split), self._added(split)
        tokens = max(0.0, base + known + added)
        taken = self._total - base - known
        if self._unconfirmed:
            count = self.calibration.around(tokens, added * _NEW_MARGIN, tokens * _ALL_MARGIN + _FLOOR)
            return msgspec.structs.replace(count, lower=max(0, math.floor(count.lower - self._unconfirmed)))
        if not split.new and abs(taken) < 1:
            return Count(tokens=round(tokens), lower=round(tokens), upper=round(tokens), exact=True)
        doubt = added * _NEW_MARGIN + max(0.0, taken) * _TAKEN_MARGIN
        return self.calibration.around(tokens, doubt, tokens * _ALL_MARGIN + _FLOOR)

    def learn(self, usage: Usage, estimated_prompt: int, view: View, *, cleared: int = 0) -> Doubt | None:
        """Learn from the provider's report for the call whose reply is now the last message of the view (lesson 7).

        `estimated_prompt`: the estimate of the request that was sent; if the view has changed since, nothing is learned
        about the model. `cleared`: tokens that the provider itself left out. Returns the reason if the report is not
        used; the estimate then remains valid (lesson 58).
        """
        return self._report(usage, estimated_prompt, view, teaches=True, cleared=cleared)

    def _report(
        self, usage: Usage, estimated_prompt: int, view: View, *, teaches: bool, cleared: int = 0
    ) -> Doubt | None:
        prompt, reply = view.messages[:-1], view.messages[-1]
        changed = self.estimated_prompt(view) - reply.tokens - estimated_prompt
        total = usage.prompt_tokens + self.calibration.ratio * changed
        doubt = self._doubt(total if usage.prompt_tokens > 0 else 0, prompt, cleared, usage.cache_read_tokens)
        self._take_judged(total, doubt, prompt, teaches=teaches and changed == 0)
        if doubt is None or doubt.unconfirmed:
            self._take_reply(usage, reply, teaches=teaches and doubt is None)
        elif self._base is not None and (doubt.cut_to or not self._check.has_proved):
            # In this case the first two reports were wrong too; and before a detected cut, the previous prompt was cut
            # as well.
            self._forget_reports()
        return doubt

    def _doubt(self, total: float, messages: Sequence[Message], cleared: int = 0, cached: int = 0) -> Doubt | None:
        """Return the doubt if a report of `total` tokens cannot be about these messages, or None if it can."""
        ratio, split = self.calibration.ratio, self._sizes.split(messages)
        request = Request(
            text=ratio * (self._fixed - self._schemas + split.all_tokens - split.non_text_tokens),
            schemas=ratio * self._schemas,
            non_text=ratio * split.non_text_tokens,
            hidden=self.calibration.extra_with(self._schemas),
            window=self.window,
            assumed=self.assumed_window,
            cleared=cleared,
        )
        if self._base is None:
            return self._check.doubt(total, request, None, cached)
        known, non_text = self._sizes.read(split), sum(map(self._sizes.non_text_tokens, split.new.values()))
        expected = ExpectedSize(
            known=self._base - self._unconfirmed + known,
            new=self._added(split),
            non_text=ratio * non_text,
            taken=self._total - self._base - known,
            thoughts=split.past_thoughts + split.thoughts,
            cleared=cleared,
        )
        return self._check.doubt(total, request, expected, cached)

    def take_provider_count(self, prompt_tokens: int, view: View) -> None:
        """Learn from the provider's own token count for this view, from a count request or an overflow error.

        A figure that cannot be this request's token count (a character count, for example) is not used.
        """
        if prompt_tokens > 0:
            doubt = self._doubt(prompt_tokens, view.messages)
            teaches = is_plausible(prompt_tokens, self.estimated_prompt(view))
            self._take_judged(prompt_tokens, doubt, view.messages, teaches=teaches)

    def anchor_after_compaction(self, usage: Usage, estimated_prompt: int, view: View) -> None:
        """Learn from the usage of the view's last reply, the first after the provider's own compaction (R-538).

        Anthropic's usage covers its compaction block and the fixed part; messages that are sent again after the block
        keep their sizes. In recordings, OpenAI counts the incoming prompt, which does not include the block, so the
        size of the block remains an estimate.
        """
        reply = view.messages[-1]
        block = next((message for message in reversed(view.messages) if message.compaction is not None), None)
        least = _MIN_BASE * self.calibration.ratio * (self._fixed - self._schemas)
        if block is None or usage.prompt_tokens <= least:
            return
        if self._base is None:
            self._base = min(usage.prompt_tokens, self._expected_base())
        size, came = float(self._sizes.key(block)[1]), self.calibration.count(estimated_prompt, self._schemas).tokens
        if usage.prompt_tokens**2 < (self._base + size) * came:
            size = usage.prompt_tokens - self._base
            self._sizes.set(block, size)
        # The output may or may not include the block: choose the interpretation that gives the reply a plausible size.
        ours = self.calibration.size(reply.tokens, self.counter.marks(reply))
        output = min(usage.output_tokens, usage.output_tokens - size, key=lambda tokens: abs(tokens - ours))
        self._take_reply(msgspec.structs.replace(usage, output_tokens=round(output)), reply)
        self._total = self._base + self._sizes.read(self._sizes.split(view.messages))

    def resume(self, events: Sequence[LogEvent], adapter: str, model: str) -> None:
        """Replay this model's reports from a chat's log, so that a restored chat counts as before.

        Where older reports are skipped, sizes are apportioned by estimates. Nothing is learned about the model, because
        this already happened when the reports arrived.
        """
        for report, view, compacted in reported_steps(events, adapter, model):
            if compacted:
                self.anchor_after_compaction(report.usage, report.estimated_prompt_tokens, view)
            else:
                cleared = sum(edit.cleared_tokens for edit in report.server_edits)
                self._report(report.usage, report.estimated_prompt_tokens, view, teaches=False, cleared=cleared)

    def _expected_base(self) -> float:
        return self.calibration.ratio * self._fixed + self.calibration.extra_with(self._schemas)

    def _take_judged(self, total: float, doubt: Doubt | None, messages: Sequence[Message], *, teaches: bool) -> None:
        """Apply a report as far as it is trusted; an unconfirmed surplus is added to the base."""
        hidden, self._unconfirmed = self._unconfirmed, 0.0
        if hidden and (doubt is not None or self._is_nearer_without(hidden, total, messages)):
            self._add_to_base(-hidden)
            hidden = 0.0
        if doubt is None:
            self._take(total, messages, teaches=teaches)
            if hidden and teaches:
                self._learn_hidden(messages)
        elif doubt.unconfirmed:
            self._take(doubt.expected, messages, teaches=False)
            self._unconfirmed = float(doubt.reported - doubt.expected)
            self._add_to_base(self._unconfirmed)

    def _is_nearer_without(self, hidden: float, total: float, messages: Sequence[Message]) -> bool:
        """Return whether a trusted report contradicts the surplus of the previous one."""
        return total < self._count(messages).tokens - hidden / 2

    def _add_to_base(self, tokens: float) -> None:
        if self._base is not None:
            self._base, self._total = self._base + tokens, self._total + tokens

    def _learn_hidden(self, messages: Sequence[Message]) -> None:
        """Learn the size of a server's hidden prompt from two reports, unless the messages could explain it."""
        extra = (self._base or 0.0) - self.calibration.ratio * self._fixed
        if extra >= self.calibration.ratio * self._sizes.split(messages).all_tokens:
            self.calibration = self.calibration.learn_extra(extra, self._schemas, confirmed=True)

    def _take(self, total: float, messages: Sequence[Message], *, teaches: bool) -> None:
        """Divide a prompt of `total` tokens among its messages and the base; the shares add up to the total."""
        sizes, ratio, first = self._sizes, self.calibration.ratio, self._base is None
        counted, split = self._count(messages), sizes.split(messages)
        estimate, fresh, expected = split.estimate, split.new.values(), self._expected_sizes(split)
        added = sum(expected.values())
        base = self._expected_base() if self._base is None else self._base
        if teaches and not first and all(map(_is_text, fresh)):
            self.calibration = self.calibration.learn_doubt(counted, total)
        if not first and any(message.role == "user" for message in fresh):
            sizes.learn_forgetting(split, total - base - added, added * _NEW_MARGIN + _FLOOR)
        known = sizes.read(split)
        observed = total - base - known
        told = is_plausible(observed, estimate) and (not first or estimate >= _MOSTLY_MESSAGES)
        if told and teaches and all(map(_is_text, fresh)):
            self.calibration = self.calibration.learn(observed, estimate, split.marks, 0 if first else len(split.new))
        share = observed / added if told and added else 1.0
        if first and added:
            # A wrong ratio must not reduce the fixed part to nothing, which would distort every later request.
            share = min(share, max(0.0, (total - _MIN_BASE * base) / added))
        sizes.share_out(split, {key: share * size for key, size in expected.items()})
        rest, taken, self._total = observed - share * added, self._total - base - known, total
        if not first and taken > 0 and 0.5 < abs(rest) < _MAX_TAKEN * known:
            # Removed and remaining messages had been reported together: the shares were wrong, not the base.
            sizes.scale([message for message in messages if sizes.key(message) not in split.new], 1 + rest / known)
            return
        self._base = base + rest
        self._keep_base(messages, total)
        if first and teaches and estimate <= _MOSTLY_FIXED:
            self.calibration = self.calibration.learn_extra(self._base - ratio * self._fixed, self._schemas)

    def _expected_sizes(self, split: Split) -> dict[Key, float]:
        """Return the expected sizes of messages without a report, in the model's tokens; code and prose differ."""
        size, marks = self.calibration.size, self._sizes.marks
        return {key: size(key[1], marks(key, message), 1) for key, message in split.new.items()}

    def _added(self, split: Split) -> float:
        """Return the expected total size of the messages without a report."""
        return self.calibration.size(split.estimate, split.marks, len(split.new))

    def _keep_base(self, messages: Sequence[Message], total: float) -> None:
        """Keep the base at its minimum after a contradictory report; the rest is attributed to the messages.

        Otherwise a chat would appear to be empty once its messages are compacted.
        """
        least = min(total, _MIN_BASE * min(self._expected_base(), self.calibration.ratio * self._fixed))
        if self._base is not None and self._base < least:
            self._sizes.scale(messages, (total - least) / (total - self._base))
            self._base = least

    def _take_reply(self, usage: Usage, reply: Message, *, teaches: bool = False) -> None:
        """Record the output that the next prompt will contain: all of it except reasoning that is not sent again.

        Signed or encrypted reasoning is sent again and counted (recorded for Claude and GPT-5); the readable reasoning
        of Chat Completions mostly is not, and some endpoints do not report how much of the output was reasoning.
        """
        size, thoughts_size = float(usage.output_tokens), 0.0
        parts = () if isinstance(reply.content, str) else reply.content
        thoughts = [part for part in parts if isinstance(part, ReasoningPart)]
        sent_back = bool(thoughts) and (self._reasoning_returns or any(part.encrypted for part in thoughts))
        if sent_back:
            thoughts_size = float(min(usage.reasoning_tokens, usage.output_tokens))
        else:
            readable = self.calibration.ratio * sum(self.counter.text(part.text) for part in thoughts)
            size -= usage.reasoning_tokens or readable
        ours = self.calibration.size(reply.tokens - self._sizes.non_text_tokens(reply), self.counter.marks(reply))
        if size > 0 and self._check.is_reply(size, ours, thinks=sent_back):
            self._sizes.add(reply, size, thoughts_size)
            self._total += size
            says_all = _is_text(reply) and not reply.tool_calls and not usage.reasoning_tokens
            if teaches and says_all and self.calibration.is_cold:
                self.calibration = self.calibration.learn(size, reply.tokens, self.counter.marks(reply))


def _is_text(message: Message) -> bool:
    """Return whether a message is text only; the counts of other parts reveal nothing about a tokenizer."""
    return isinstance(message.content, str) or all(isinstance(part, TextPart) for part in message.content)
