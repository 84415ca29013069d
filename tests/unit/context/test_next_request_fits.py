"""Under every policy, at every window from 4k to 1M, the next request fits unless nothing could make it fit (R-524).

The histories are random, with huge single results and arguments, good and bad summarisers, and exact or estimated
counts. The checks are independent of the pipeline.
"""

from __future__ import annotations

import math
import os
import random

import msgspec
import pytest

from codecompanion.context.pipeline import prepare
from codecompanion.context.policy.policy_catalog import load_policy, policy_names
from codecompanion.context.selection.select_window import first_pending
from codecompanion.context.shape_request import shape
from codecompanion.context.work import Measure, SummaryReply
from codecompanion.counting.model_windows import ResolvedLimits
from codecompanion.model.invariants import violations
from codecompanion.model.mentioned import Mentioned
from codecompanion.model.messages import (
    EDITOR_TAG,
    GATHERED_TAG,
    GatheredPiece,
    Message,
    ToolCall,
    is_protected,
)
from codecompanion.model.view import View, append, with_messages
from tests.amounts import amount
from tests.unit.context.builders import PARTS, chars4, count, drive, env

HISTORIES = int(os.environ.get("HISTORIES", amount(15, 50, 500)))
"""Number of histories per policy; `make fuzz` plays more."""
WINDOWS = (4_000, 6_000, 8_192, 12_000, 16_000, 32_768, 64_000, 128_000, 200_000, 1_000_000)
SHARES = (6, 6, 6, 6, 6, 3, 1, 0.3, 0.1, 0.02)
"""How often each window is used: a history in a large window costs as much as hundreds in a small one."""
SECTIONS = "Primary request and intent", "Key technical concepts", "Files and code sections", "Errors and fixes"
GOOD = "\n\n".join(f"{n}. **{name}**\nThe port is 8089; see src/app.py." for n, name in enumerate(SECTIONS * 2, 1))
SUMMARISERS = {
    "good": lambda ask: SummaryReply(text=GOOD),
    "failing": lambda ask: SummaryReply(error="down"),
    "empty": lambda ask: SummaryReply(text=""),
    "junk": lambda ask: SummaryReply(text="ok"),
    "over-long": lambda ask: SummaryReply(text=GOOD + "word " * 4 * ask.request.max_output_tokens),
}


class History:
    """One random chat: new messages are logged, and the policy prepares each request."""

    def __init__(self, name: str, seed: int) -> None:
        self.dice = random.Random(f"{name} {seed}")
        self.policy = load_policy(name)
        self.window = self.dice.choices(WINDOWS, SHARES)[0]
        self.max_output = self.dice.choice((0, self.window // 10, min(4096, self.window // 4)))
        self.reserve = ResolvedLimits(self.window, self.max_output, "user").reply_reserve
        # By our own rule: the configured reply size, else a twentieth of the window, at most 4,096 tokens.
        self.kept_free = self.max_output or min(4_096, self.window // 20)
        self.script = self.dice.choice(list(SUMMARISERS))
        self.doubt = self.dice.choice((1.0, 1.15))
        self.number = self.cycle = 0
        self.view = with_messages(View(), [self.made("system", "You help.")])

    def made(self, role: str, text: str, **fields: object) -> Message:
        self.number += 1
        message = Message(id=f"m{self.number}", role=role, content=text, cycle=self.cycle, **fields)  # type: ignore[arg-type]
        return msgspec.structs.replace(message, tokens=count(message))

    def add(self, role: str, text: str, **fields: object) -> None:
        self.view = append(self.view, self.made(role, text, **fields))

    def text(self, share: float) -> str:
        """Return text of a random size: mostly small, at most `share` of the window."""
        size = int(4 * self.window * share * self.dice.random() ** 4)
        return f"{self.dice.choice(('read', 'src/a.py', 'fails with E42', 'must never be lost'))} " * max(1, size // 12)

    def turn(self) -> None:
        self.cycle += 1
        if self.dice.random() < 0.1:
            self.add("user", self.text(0.5), tag="file", path="src/a.py")
        if self.dice.random() < 0.3:
            pieces = (GatheredPiece("src/a.py", 1, 40), GatheredPiece("src/b.py"))
            self.add("user", self.text(0.5), tag=GATHERED_TAG, gathered=pieces)
        if self.dice.random() < 0.2:
            self.add("user", self.text(0.5), tag=EDITOR_TAG, mentioned=Mentioned("#{diff}", paths=("src/a.py",)))
        self.add("user", self.text(0.3), pinned=self.dice.random() < 0.02)
        for _ in range(self.dice.randrange(6)):
            self.ask()
            names = [f"c{self.number}_{i}" for i in range(self.dice.randint(1, 3))]
            long = self.dice.random() < 0.1
            arguments = f'{{"text": "{self.text(0.6 if long else 0.01)}"}}'
            calls = tuple(ToolCall(name, "run", arguments) for name in names)
            self.add("assistant", self.dice.choice(("", "I look at it.")), tool_calls=calls)
            for name in names:
                self.add("tool", self.text(self.dice.choice((0.05, 0.5, 4))), tool_call_id=name)
        self.ask()
        self.add("assistant", self.text(0.1))

    def ask(self) -> None:
        """Prepare the next request and check it."""
        known = lambda messages: Measure(total := sum(map(count, messages)), math.ceil(total * self.doubt))  # noqa: E731
        here = env(self.view.messages, self.window, measure=known, reserve=self.reserve, cycle=self.cycle)
        here = msgspec.structs.replace(here, summariser_window=self.window)
        if self.policy.shape:
            sent = lambda messages: shape(messages, PARTS, self.policy, here).measure  # noqa: E731
            here = msgspec.structs.replace(here, sent=sent)
        prepared, _ = drive(prepare(self.view, self.policy, here), SUMMARISERS[self.script])
        request = shape(prepared.messages, PARTS, self.policy, here).messages
        assert not violations(request), self
        size, room = sum(map(count, request)), self.window - self.kept_free
        assert size <= room or self.least(request) > room, f"{self}: {size} tokens, {room} fit"
        self.view = with_messages(self.view, prepared.messages)

    def least(self, messages: tuple[Message, ...]) -> int:
        """Return the irreducible size: that of protected and pending messages, and of a ledger.

        A message left over from an earlier turn, whose answer was summarised, is not pending.
        """
        pending = [m for m in messages[first_pending(messages) :] if m.cycle == messages[-1].cycle]
        staying = sum(count(m) for m in messages if is_protected(m) or m in pending)
        return math.ceil(self.doubt * (staying + min(2_000, self.window // 8) + chars4("x" * 1_000)))

    def __repr__(self) -> str:
        return f"{self.policy.name}, window {self.window}, reply {self.max_output}, {self.script}, doubt {self.doubt}"


@pytest.mark.parametrize(("name", "seed"), [("cowork", 4431), ("kodacode", 4444), ("cowork_chat", 8046)])
def test_histories_that_once_did_not_fit_now_do(name, seed):
    """Found by `make fuzz`: an unanswered first message counted as a new one, and a pinned message was also quoted."""
    history = History(name, seed)
    history.reserve = history.kept_free = history.max_output  # as it was then
    for _ in range(history.dice.randint(1, 3)):
        history.turn()


def test_a_long_request_is_quoted_once_and_uses_the_quotes_room():
    """Found by `make fuzz`: a second quote among the user's words made the summary too large to help."""
    history = History("cowork_chat", 20059)
    for _ in range(history.dice.randint(1, 3)):
        history.turn()


@pytest.mark.slow("random histories under every policy")
@pytest.mark.parametrize("name", policy_names())
def test_every_request_fits_unless_nothing_could_make_it_fit(name):
    """R-524, R-507: this applies during a turn as well, and to any output of the summariser."""
    for seed in range(HISTORIES):
        history = History(name, seed)
        for _ in range(history.dice.randint(1, 3)):
            history.turn()
