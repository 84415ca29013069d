"""Every long loop is summarised before it is truncated (R-524): 200 steps of tools under every policy.

Steps talk, read, run and write in turn; a result takes up to 30 % of the window. `strict` is excluded: without
our additions a document may leave a running turn to the last resort (R-310, R-524).
"""

from __future__ import annotations

import itertools
import random
from collections.abc import Iterator

import msgspec
import pytest

from codecompanion.context.change import view_change
from codecompanion.context.pipeline import prepare
from codecompanion.context.policy.policy_catalog import load_policy, policy_names
from codecompanion.context.shape_request import Kept, shape
from codecompanion.context.stage_report import Ask
from codecompanion.context.work import Env, Messages, SummaryReply
from codecompanion.counting.model_windows import reply_reserve
from codecompanion.model.invariants import violations
from codecompanion.model.messages import SUMMARY_TAG, Message, ToolCall
from codecompanion.model.view import View, append, apply_change, with_messages
from tests.amounts import amount
from tests.summaries import nine_sections
from tests.unit.context.builders import PARTS, count, drive, env

STEPS = 200
REQUEST = "Rename dock_1 of src/harbour.lua everywhere, but never in the API."
SAID = "The user wants dock_1 of src/harbour.lua renamed everywhere, but never in the API. "
HANDS_OFF = ("cowork", "cowork_chat")
KINDS = {
    "run_command": (0.002, 0.08),
    "read_file": (0.002, 0.15),
    "grep_search": (0.1, 0.3),
    "edit_file": (0.001, 0.002),
}
"""Sizes of a tool's results: the smallest and the largest share of the window."""


def writes(ask: Ask) -> SummaryReply:
    """Write a summary in the requested form."""
    prompt = ask.request.prompt
    schema = next((name for name in ("cc_9", "cw_9") if nine_sections("", name).splitlines()[0][4:12] in prompt), "")
    return SummaryReply(text=nine_sections(SAID, schema) if schema else 3 * SAID)


class Loop:
    """One turn under a policy: a question, then tool steps; the policy's changes to the view are committed."""

    def __init__(self, name: str, window: int, seed: int) -> None:
        self.policy, self.window, self.dice = load_policy(name), window, random.Random(f"{name} {window} {seed}")
        self.reserve, self.kept = reply_reserve(window), Kept()
        self._number = 0
        self.view = with_messages(View(), [self.made("system", "You help.")])
        self.stages: list[str] = []

    def number(self) -> int:
        self._number += 1
        return self._number

    def made(self, role: str, text: str, **fields: object) -> Message:
        made = Message(id=f"m{self.number()}", role=role, content=text, cycle=1, **fields)  # type: ignore[arg-type]
        return msgspec.structs.replace(made, tokens=count(made))

    def text(self, low: float, high: float) -> str:
        """Return text about the file; its size is between these two shares of the window."""
        size = int(4 * self.dice.uniform(low, high) * self.window)
        return (f"line {self.number()} of src/harbour.lua\n" * (size // 24 + 1))[: max(size, 20)]

    def requests(self) -> Iterator[tuple[Messages, Messages]]:
        """Yield for each request the view before its preparation, and the request."""
        self.view = append(self.view, self.made("user", REQUEST))
        talks, writes_much = self.dice.choice((0.0, 0.3, 1.0)), self.dice.choice((0.0, 0.3, 1.0))
        names = self.dice.sample(sorted(KINDS), self.dice.randint(1, len(KINDS)))
        for _ in range(STEPS):
            yield self.request()
            name = self.dice.choice(names)
            said = self.text(0.005, 0.02) if self.dice.random() < talks else ""
            given = self.text(0.01, 0.04) if name == "edit_file" and self.dice.random() < writes_much else "src/a.lua"
            ids = [f"c{self.number()}" for _ in range(self.dice.choice((1, 1, 2)))]
            calls = tuple(ToolCall(one, name, msgspec.json.encode({"text": given}).decode()) for one in ids)
            self.view = append(self.view, self.made("assistant", said, tool_calls=calls))
            for one in ids:
                self.view = append(self.view, self.made("tool", self.text(*KINDS[name]), tool_call_id=one))
        yield self.request()

    def request(self) -> tuple[Messages, Messages]:
        before = self.view.messages
        done, _ = drive(prepare(self.view, self.policy, self.env()), writes)
        for report in done.reports:
            if report.work is None or report.event == "memory_flushed":
                continue
            self.stages.append(report.stage.id)
            self.view = apply_change(
                self.view, view_change(report, report.work, self.view.messages, f"x{self.number()}")
            )
        shaped = shape(self.view.messages, PARTS, self.policy, self.env(), self.kept)
        self.kept = shaped.kept
        return before, shaped.messages

    def env(self) -> Env:
        here = env(
            self.view.messages, self.window, reserve=self.reserve, turn_id="turn-1", now=1.0,
            summariser_window=self.window, new_id=lambda purpose: f"{purpose}-{self.number()}",
        )  # fmt: skip
        if not self.policy.shape:
            return here
        return msgspec.structs.replace(
            here, sent=lambda messages: shape(messages, PARTS, self.policy, here, self.kept).measure
        )


def newest_round(messages: Messages) -> Messages:
    start = max((index for index, message in enumerate(messages) if message.tool_calls), default=len(messages))
    return messages[start:]


@pytest.mark.parametrize(
    "window",
    [
        8_000,
        32_000,
        pytest.param(
            200_000,
            marks=[pytest.mark.slow("loops of 15 million tokens"), pytest.mark.thorough("the same in a larger window")],
        ),
    ],
)
@pytest.mark.parametrize("name", policy_names())
def test_a_loop_is_summarised_before_it_is_truncated(name: str, window: int) -> None:
    """R-408, R-510, R-524: requests stay within the window with complete pairs and the newest round.

    The last resort is not used.
    """
    for seed in range(amount(1, 2, 30)):
        loop = Loop(name, window, seed)
        own = {stage.id for stage in loop.policy.stages}
        for before, sent in loop.requests():
            assert sum(map(count, sent)) + loop.reserve <= window
            assert violations(sent) == []
            assert REQUEST in [message.text for message in sent if message.role == "user"]
            left = {message.id: message for message in sent}
            changed = [one for one in newest_round(before) if left.get(one.id) != one]
            # Its document has larger results cut, the newest, too.
            assert [one for one in changed if name != "cowork" or one.tokens <= 10_000] == []
            if name in HANDS_OFF:
                assert [one for one in sent if one.edited and not one.left_out] == []
        assert set(loop.stages) <= own, f"seed {seed}: the last resort took part"


@pytest.mark.parametrize("name", policy_names())
def test_a_loop_of_text_is_summarised_repeatedly(name: str) -> None:
    """Nothing can be cleared: a summary replaces the older rounds, under KodaCode as well (R-310 is ours)."""
    loop = Loop(name, 8_000, 0)
    loop.dice.choice = lambda options: options[-1]  # type: ignore[method-assign, assignment]
    loop.dice.sample = lambda options, number: ["edit_file"]  # type: ignore[method-assign, assignment]
    sizes = [sum(map(count, sent)) for _, sent in loop.requests()]
    assert sum(later < earlier for earlier, later in itertools.pairwise(sizes)) >= 5
    (summary,) = (message for message in loop.view.messages if message.tag == SUMMARY_TAG)
    assert "src/harbour.lua" in summary.text
