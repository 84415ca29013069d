"""Compacts a dummy chat while the host is idle, so that everything is loaded for the first real compaction.

Modules, prompts, word tables and patterns are loaded on first use (`formats.regex`); this takes 30 to 40 ms, which
would delay the first summary of a host.
"""

from __future__ import annotations

from codecompanion.context.pipeline import compact
from codecompanion.context.policy.policy import Policy
from codecompanion.context.stage_report import Ask, Prepared, drive
from codecompanion.context.summary_text.sections import load_schema
from codecompanion.context.work import Env, Measure, Messages, SummaryReply
from codecompanion.counting.tokens import MessageCounter
from codecompanion.model.messages import Message, ToolCall
from codecompanion.model.view import View, with_messages

_ASKED = "Rename `load_item` in src/items.py to `read_item`. Never touch conf/prod.ini; it took 1.5s before v2.0.1. "
_DONE = "- `read_item` in src/items.py took 12ms, see https://example.org/a_b and `no_such_name`."
_FORM = "cc_9"


def rehearse(policy: Policy) -> Prepared:
    """Compact a chat of four messages under the policy and return the result."""
    counter = MessageCounter()
    call = ToolCall("call", "read_file", '{"path": "src/items.py"}')
    said = (
        Message(id="1", role="user", content=_ASKED * 20, cycle=1),
        Message(id="2", role="assistant", content="I look.", tool_calls=(call,), cycle=1),
        Message(id="3", role="tool", content=f"def load_item(): ...  # {_ASKED}\n" * 20, tool_call_id="call", cycle=1),
        Message(id="4", role="assistant", content="It is renamed, and all tests pass. " * 40, cycle=1),
    )

    def measure(messages: Messages) -> Measure:
        tokens = sum(map(counter.message, messages))
        return Measure(tokens, tokens)

    env = Env(window=100_000, measure=measure, count=counter.message, count_text=counter.text, cycle=1, manual=True)
    return drive(compact(with_messages(View(), said), policy, env), _answer)[0]


def _answer(ask: Ask) -> SummaryReply:
    ask.meanwhile(lambda: None)
    schema = load_schema(_FORM)
    return SummaryReply(text="\n\n".join(f"{schema.heading(n)}\n{_DONE}" for n in range(1, len(schema.section) + 1)))
