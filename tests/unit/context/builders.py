"""Builders for messages, environments and scripted summarisers in tests of the context pipeline."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

import msgspec

from codecompanion.context.pipeline import compact, prepare
from codecompanion.context.policy.policy import Policy
from codecompanion.context.policy.policy_catalog import load_policy
from codecompanion.context.shape_request import NO_PARTS, shape
from codecompanion.context.stage_report import Ask, Preparation, Prepared
from codecompanion.context.work import Env, Measure, Messages, SummaryReply
from codecompanion.model.cycles import assign_cycles, current_cycle
from codecompanion.model.messages import Message, ToolCall
from codecompanion.model.view import View, with_messages

Script = Callable[[Ask], SummaryReply]
PARTS = NO_PARTS
"""The fixed parts of a request, for `shape`: none."""


def chars4(text: str) -> int:
    """Return ceil(characters / 4)."""
    return math.ceil(len(text) / 4)


def count(message: Message) -> int:
    """Return the chars4 count of a message and its calls, without overhead."""
    return chars4(message.text) + sum(chars4(call.name + call.arguments) for call in message.tool_calls)


def system(text: str = "You help.") -> Message:
    return Message(id="", role="system", content=text)


def user(text: str, tag: str | None = None, **fields: object) -> Message:
    return Message(id="", role="user", content=text, tag=tag, **fields)  # type: ignore[arg-type]


def assistant(text: str = "", *calls: tuple[str, str]) -> Message:
    """Return a reply; each call is (id, tool name)."""
    return Message(
        id="",
        role="assistant",
        content=text,
        tool_calls=tuple(ToolCall(i, name, '{"path": "a.py"}') for i, name in calls),
    )


def tool(call_id: str, text: str, **fields: object) -> Message:
    return Message(id="", role="tool", tool_call_id=call_id, content=text, **fields)  # type: ignore[arg-type]


def chat(*messages: Message) -> Messages:
    """Return the messages with ids m0, m1, … and cycles."""
    numbered = [
        Message(**{**{f: getattr(m, f) for f in m.__struct_fields__}, "id": f"m{i}"}) for i, m in enumerate(messages)
    ]
    return assign_cycles(numbered)


def made(*messages: Message) -> Messages:
    """Return the messages as a chat with known sizes."""
    return tuple(msgspec.structs.replace(message, tokens=count(message)) for message in chat(*messages))


def turns(number: int, size: int = 400, name: str = "read_file") -> list[Message]:
    """Return `number` user turns with one call each whose result has `size` characters."""
    made: list[Message] = []
    for i in range(number):
        made += [user(f"question {i}"), assistant("", (f"c{i}", name)), tool(f"c{i}", f"r{i} " * (size // 4))]
        made.append(assistant(f"answer {i}"))
    return made


def env(messages: Messages, window: int, **changes: object) -> Env:
    """Return an environment whose counts are chars4."""

    def measure(measured: Messages) -> Measure:
        total = sum(map(count, measured))
        return Measure(total, total)

    fields: dict[str, object] = {
        "window": window,
        "measure": measure,
        "count": count,
        "count_text": chars4,
        "cycle": current_cycle(messages),
        "new_id": lambda purpose: f"{purpose}-new",
        "summariser_window": 1_000_000,
    }
    return Env(**{**fields, **changes})  # type: ignore[arg-type]


def as_sent(here: Env, policy: Policy) -> Env:
    """Return the environment of a session: it measures messages after shaping, if the policy shapes."""
    if not policy.shape:
        return here
    return msgspec.structs.replace(here, sent=lambda messages: shape(messages, PARTS, policy, here).measure)


def reply_with(text: str) -> Script:
    """Return a summariser that always answers `text`, which counts as a summary whatever its content."""
    return lambda ask: SummaryReply(text=text, source="caller")


SUMMARISES = reply_with("SUMMARY")


def drive(preparation: Preparation, script: Script) -> tuple[Prepared, list[Ask]]:
    """Run a preparation to its end with the scripted summariser; return the result and the requests."""
    asked: list[Ask] = []
    try:
        ask = next(preparation)
        while True:
            asked.append(ask)
            ask = preparation.send(script(ask))
    except StopIteration as stop:
        return stop.value, asked


def run(
    messages: Messages,
    window: int,
    *,
    policy: Policy | None = None,
    script: Script = SUMMARISES,
    manual: bool = False,
    automatic_summaries: bool = True,
    **changes: object,
) -> tuple[Prepared, list[Ask]]:
    """Prepare the messages, or compact them manually, under a policy (default: `codecompanion`)."""
    view: View = with_messages(View(cycle=current_cycle(messages)), messages)
    chosen = policy or load_policy("codecompanion")
    environment = as_sent(env(messages, window, manual=manual, **changes), chosen)
    if manual:
        return drive(compact(view, chosen, environment), script)
    return drive(prepare(view, chosen, environment, automatic_summaries=automatic_summaries), script)


def texts(messages: Sequence[Message]) -> list[str]:
    return [message.text for message in messages]
