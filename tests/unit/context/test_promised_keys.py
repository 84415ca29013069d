"""The keys in a summary cover all messages that have left the view, even after a final trim."""

from __future__ import annotations

import json
import random

import pytest

from codecompanion.context.policy.policy import Policy
from codecompanion.context.policy.policy_catalog import load_policy, policy_names
from codecompanion.context.policy.policy_options import with_options
from codecompanion.context.stage_report import Ask
from codecompanion.context.summary_text.recall_keys import read_span, span_of
from codecompanion.context.work import SummaryReply
from codecompanion.model.messages import SUMMARY_TAG, Message, ToolCall
from tests.summaries import nine_sections
from tests.unit.context.builders import run

pytestmark = pytest.mark.slow("chats under every policy that are compacted several times")


class Chat:
    """A chat that grows; every message has the key of its position in the log."""

    def __init__(self, seed: int) -> None:
        self.dice, self.cycle = random.Random(seed), 0
        self.view = [Message(id="system", role="system", content="You help.")]
        self.keys: dict[str, str] = {}

    def add(self, role: str, text: str, **fields: object) -> None:
        made = Message(id=f"x{len(self.keys)}", role=role, content=text, cycle=self.cycle, **fields)
        self.keys[made.id] = f"r{len(self.keys) + 1}"
        self.view.append(made)

    def grow(self) -> None:
        """Add a question, some calls and usually a reply, of any size."""
        self.cycle += 1
        here = f"load_{self.cycle}"
        self.add("user", f"wish-{self.cycle}: please change {here} " + "why not so " * self.dice.choice((1, 5, 60)))
        for _ in range(self.dice.choice((0, 1, 3))):
            path = json.dumps({"path": f"src/loader_{self.cycle}.py"})
            call = ToolCall(f"c{len(self.keys)}", "read_file", path)
            self.add("assistant", "I look.", tool_calls=(call,))
            self.add("tool", f"def {here}(): pass  " * self.dice.choice((5, 60, 200)), tool_call_id=call.id)
        if self.dice.random() < 0.9:
            text = "I explain it at length. " * self.dice.choice((2, 20, 80))
            self.add("assistant", f"answer {self.cycle}. {text}")


def writes(ask: Ask) -> SummaryReply:
    """Write about the chat's subject, in the requested form."""
    asked = "; ".join(message.text[:60] for message in ask.request.subject if message.role == "user")
    schema = next(
        (name for name in ("cc_9", "cw_9") if nine_sections("", name).splitlines()[0][4:12] in ask.request.prompt), ""
    )
    text = f"The user wants changes of these functions, and why they are so: {asked}. The files were read for it."
    return SummaryReply(text=nine_sections(text, schema) if schema else text)


WRITERS = (writes, writes, lambda ask: SummaryReply(error="down"), lambda ask: SummaryReply(text="ok"))


def policy_of(name: str, dice: random.Random) -> Policy:
    """Return the policy, for CodeBuddy with random targets: with a small one it trims after a summary."""
    target = {"at": dice.choice((0.15, 0.3, 0.5, 0.9)), "measure": "messages", "basis": "budget"}
    options = {"compaction.target": target, "compaction.keep_messages": dice.choice((4, 8, 12))}
    return with_options(load_policy(name), options if name == "codebuddy" else {}, "k")


@pytest.mark.parametrize("name", policy_names())
def test_the_line_names_the_first_and_last_key_of_all_removed_messages(name: str) -> None:
    """R-431: `r1 to r2` used to be written although r1 to r8 had been removed."""
    seen = trimmed = 0
    for seed in range(120 if name == "codebuddy" else 20):
        chat, gone = Chat(seed), set[str]()
        script = chat.dice.choice(WRITERS)
        window = chat.dice.choice((3_000, 6_000, 12_000))
        for _ in range(10):
            chat.grow()
            before = tuple(chat.view)
            prepared, _ = run(
                before,
                window,
                policy=policy_of(name, chat.dice),
                script=script,
                manual=chat.dice.random() < 0.3,
                has_utility=True,
                key_of=lambda message_id, keys=chat.keys: keys.get(message_id, ""),
            )
            here = {message.id for message in prepared.messages}
            gone |= {message.id for message in before if message.id in chat.keys and message.id not in here}
            chat.view = list(prepared.messages)
            trimmed += sum(bool(report.work and report.work.details.trimmed) for report in prepared.reports)
            for summary in (message for message in chat.view if message.tag == SUMMARY_TAG):
                seen += 1
                assert read_span(summary.text) == span_of([chat.keys[one] for one in gone]), (seed, summary.text[-200:])
    assert seen > 10
    assert trimmed or name != "codebuddy"
