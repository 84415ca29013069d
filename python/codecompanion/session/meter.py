"""The ctx meter: how large the next request is, and how sure we are of it (R-505, lessons 7, 8, 45).

One number moves: the sum of the estimates of everything sent. What the provider reported is the anchor; what changed
since (new messages, cleared results, a summary) is the difference of the estimates, times what this model's reports
have taught. Edits and compactions therefore show at once.
"""

from __future__ import annotations

import msgspec

from codecompanion.context.work import Measure, Messages
from codecompanion.history import View
from codecompanion.messages import Message, ToolSpec, Usage, with_changes
from codecompanion.tokens import Anchor, Calibration, Count, MessageCounter, Meter


class ContextMeter:
    """Counts one chat's next request with one model."""

    def __init__(self, counter: MessageCounter, calibration: Calibration) -> None:
        self.counter = counter
        self._meter = Meter(calibration)
        self._overhead = 0

    @property
    def calibration(self) -> Calibration:
        """Return what this model's reports have taught so far."""
        return self._meter.calibration

    def switch_model(self, calibration: Calibration) -> None:
        """Forget what another model reported."""
        self._meter = Meter(calibration)

    def set_fixed_part(self, system: Message, specs: tuple[ToolSpec, ...]) -> None:
        """Count what goes with every request: system prompt and tool schemas."""
        self._overhead = self.counter.message(system) + self.counter.tools(specs)

    def counted(self, message: Message) -> Message:
        """Return the message with its cached estimate."""
        return message if message.tokens else with_changes(message, tokens=self.counter.message(message))

    def count(self, view: View) -> Count:
        """Return the size of the next request made of the view."""
        return self._meter.count(self._overhead + view.tokens)

    def measure(self, messages: Messages, view: View) -> Measure:
        """Return the size of a request made of these messages; the view itself costs nothing to count."""
        estimated = view.tokens if messages is view.messages else self.counter.count_messages(messages)
        count = self._meter.count(self._overhead + estimated)
        return Measure(count.tokens, count.upper)

    def estimated_prompt(self, view: View) -> int:
        """Return the uncalibrated estimate of the request: what a later report is compared with."""
        return self._overhead + view.tokens

    def learn(self, usage: Usage, estimated_prompt: int, view: View) -> None:
        """Take in what the provider reported for the call whose reply now ends the view (lesson 7).

        The reply itself was counted by the provider too; reasoning is not sent back and does not count.
        """
        meter = self._meter.report(usage.prompt_tokens, estimated_prompt)
        if meter is self._meter:
            return
        reply = max(0, usage.output_tokens - usage.reasoning_tokens)
        anchor = Anchor(usage.prompt_tokens + reply, self.estimated_prompt(view))
        self._meter = msgspec.structs.replace(meter, anchor=anchor)

    def take_provider_count(self, prompt_tokens: int, estimated_prompt: int) -> None:
        """Take in what the provider says a request is, before any reply."""
        self._meter = self._meter.report(prompt_tokens, estimated_prompt)

    def anchor_after_compaction(self, usage: Usage, kept_estimate: int, view: View) -> None:
        """Take in what was counted for a reply behind the provider's compaction (R-538).

        It counted its block and what came behind; `kept_estimate` is what we send again on top of that.
        """
        reply = max(0, usage.output_tokens - usage.reasoning_tokens)
        kept = round(kept_estimate * self.calibration.ratio)
        anchor = Anchor(usage.prompt_tokens + reply + kept, self.estimated_prompt(view))
        self._meter = msgspec.structs.replace(self._meter, anchor=anchor)
