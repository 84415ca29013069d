"""Finds the messages that are old enough for a cheap reduction (K7, K12), by one of five units.

    cycles      outside the newest `count` cycles                                               (R-510, R-512)
    messages    outside the newest `count` messages, system messages not counted                (R-116)
    turns       in a finished turn, but not in the newest `count` finished ones                 (R-342)
    tool_step   in the running turn, before its newest `count` replies that call tools          (R-341)
    rounds      before the newest `count` replies that call tools, in any turn                  (R-524)

A turn is a cycle (R-002). Strategies check the other properties of a message (tools, size, protection).
"""

from __future__ import annotations

from typing import assert_never

from codecompanion.context.strategy_parameters import OlderThan
from codecompanion.context.work import Env, Messages
from codecompanion.model.cycles import is_aged
from codecompanion.model.messages import is_system_prompt


def old_messages(messages: Messages, older_than: OlderThan, env: Env, share: float = 0.0) -> range | frozenset[int]:
    """Return the indexes of the old messages.

    Tool steps beyond the newest `count` also count as new while all new steps and their results take at most `share`
    (0..1) of the window. Rounds beyond the newest `count` also count as new while these additional rounds take at most
    `share`.
    """
    match older_than.unit:
        case "cycles":
            return _up_to_cycle(messages, env.cycle, older_than.count)
        case "turns":
            return _up_to_cycle(messages, newest_finished_turn(messages, env), older_than.count)
        case "messages":
            return range(_newest_messages_start(messages, older_than.count))
        case "tool_step":
            return _before_tool_steps(messages, older_than.count, env, share)
        case "rounds":
            return _before_rounds(messages, older_than.count, env, share)
        case _:
            assert_never(older_than.unit)


def newest_finished_turn(messages: Messages, env: Env) -> int:
    """Return the newest cycle with a final reply; the running cycle counts only if no message awaits an answer."""
    if not env.turn_id:
        last = next((message for message in reversed(messages) if not is_system_prompt(message)), None)
        if last is not None and last.role == "assistant" and not last.tool_calls and not last.cut:
            return env.cycle
    return env.cycle - 1


def _up_to_cycle(messages: Messages, newest: int, keep: int) -> frozenset[int]:
    return frozenset(index for index, message in enumerate(messages) if is_aged(message.cycle, newest, keep))


def _newest_messages_start(messages: Messages, keep: int) -> int:
    """Return the index of the first of the newest `keep` messages, not counting system messages."""
    counted = [index for index, message in enumerate(messages) if message.role != "system"]
    if keep <= 0:
        return len(messages)
    return counted[-keep] if len(counted) >= keep else 0


def _before_tool_steps(messages: Messages, keep: int, env: Env, share: float) -> frozenset[int]:
    running = env.cycle if newest_finished_turn(messages, env) < env.cycle else None
    turn = [index for index, message in enumerate(messages) if running is not None and message.cycle == running]
    steps = [index for index in turn if messages[index].tool_calls]
    if keep <= 0 or len(steps) < keep:
        return frozenset(turn) if keep <= 0 else frozenset()
    start, end, used = steps[-keep], len(messages), 0
    for step in reversed(steps) if share else ():
        used += env.size(messages[step:end])
        if used > share * env.window:
            break
        start, end = min(start, step), step
    return frozenset(index for index in turn if index < start)


def _before_rounds(messages: Messages, keep: int, env: Env, share: float) -> range:
    rounds = [index for index, message in enumerate(messages) if message.tool_calls]
    start = end = rounds[-keep] if 0 < keep <= len(rounds) else (len(messages) if keep <= 0 else 0)
    used = 0
    for step in reversed(rounds[:-keep] if keep > 0 else rounds):
        used += env.size(messages[step:end])
        if used > share * env.window:
            break
        start = end = step
    return range(start)
