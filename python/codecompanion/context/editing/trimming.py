"""Reductions without a model: S3 `strip_tool_args` (R-117), S15 `trim_to_fit` (R-133), S17 `prune_tool_errors` (R-425).

`require_room` first checks whether S15 could succeed. S2 and S4 are in `clear_tool_results` and
`truncate_tool_results`. Calls and results stay paired (R-004); protected messages stay unchanged.
"""

from __future__ import annotations

import msgspec

from codecompanion.context.editing.age import old_messages
from codecompanion.context.strategy_parameters import OlderThan, PruneToolErrors, RequireRoom, StripToolArgs, TrimToFit
from codecompanion.context.summary_text.recall_keys import update_keys
from codecompanion.context.work import Env, Messages, Outcome, Skipped, Work
from codecompanion.model.invariants import pair_tool_calls, with_partners
from codecompanion.model.messages import (
    SUMMARY_TAG,
    Message,
    ToolCall,
    has_encrypted,
    is_protected,
    with_changes,
    without_encrypted,
)
from codecompanion.placeholders import ERROR_PRUNED, without_gathered_code


def strip_tool_args(work: Work, params: StripToolArgs, env: Env) -> Outcome:
    """Return the work with the large arguments of old calls replaced (R-117); ids and names stay.

    A reply with encrypted reasoning is changed as a whole or not at all (lesson 26): in the running turn the reply
    stays unchanged; in older turns it loses the encrypted parts along with the arguments.
    """
    old = old_messages(work.messages, params.older_than, env)
    messages = list(work.messages)
    stripped = 0
    for index, message in enumerate(work.messages):
        if index not in old or is_protected(message) or message.compacted:
            continue
        large = sum(len(call.arguments) > params.min_size for call in message.tool_calls)
        if not large or (has_encrypted(message) and message.cycle == env.cycle):
            continue
        calls = tuple(
            ToolCall(call.id, call.name, params.placeholder) if len(call.arguments) > params.min_size else call
            for call in message.tool_calls
        )
        edited = with_changes(message, tool_calls=calls, edited=True)
        messages[index] = env.recounted(without_encrypted(edited) if has_encrypted(message) else edited)
        stripped += large
    if not stripped:
        return Skipped("nothing_to_strip", "no old tool call has large arguments")
    return msgspec.structs.replace(work.with_details(stripped_arguments=stripped), messages=tuple(messages))


def trim_to_fit(work: Work, params: TrimToFit, env: Env) -> Outcome:
    """Return the work with as few of the oldest messages dropped as needed to fit the stage's target (R-133).

    The summary, protected messages and the newest messages stay; a call is dropped with its results. Work that fits is
    returned as is. If dropping all others is not enough, the trimmed work is returned although it exceeds the target.
    """
    groups = _droppable(work.messages, params, env)
    if not groups or not env.target or env.measure(work.messages).tokens <= env.target:
        return work
    low, high = 1, len(groups)
    while low < high:
        middle = (low + high) // 2
        if env.measure(_without(work.messages, groups[:middle])).tokens <= env.target:
            high = middle
        else:
            low = middle + 1
    gone = frozenset[int]().union(*groups[:low])
    dropped = tuple(message for index, message in enumerate(work.messages) if index in gone)
    trimmed = msgspec.structs.replace(
        work.with_details(trimmed=len(dropped)),
        messages=_without(work.messages, groups[:low]),
        removed=(*work.removed, *map(without_gathered_code, dropped)),
    )
    return update_keys(trimmed, env)


def require_room(work: Work, params: RequireRoom, env: Env) -> Outcome:
    """Return the work, or `Skipped` if the messages that must stay exceed the stage's target (R-115).

    In that case no summary could make it fit, so no model is called.
    """
    kept = (*work.messages, *work.pending)
    least = env.measure(_without(kept, _droppable(kept, TrimToFit(params.protect), env))).tokens
    if env.target and least > env.target:
        return Skipped("no_room", f"protected messages take {least} tokens, more than the target of {env.target}")
    return work


def _droppable(messages: Messages, params: TrimToFit, env: Env) -> list[frozenset[int]]:
    """Return the droppable groups, oldest first: single messages, and calls together with their results."""
    old = old_messages(messages, OlderThan("messages", params.protect), env)
    staying = with_partners(
        messages,
        frozenset(
            index
            for index, message in enumerate(messages)
            if index not in old or is_protected(message) or message.tag == SUMMARY_TAG
        ),
    )
    call_of = pair_tool_calls(messages).call_of
    groups: dict[int, set[int]] = {}
    for index in range(len(messages)):
        if index not in staying:
            groups.setdefault(call_of[index][0] if index in call_of else index, set()).add(index)
    return [frozenset(group) for group in groups.values()]


def _without(messages: Messages, groups: list[frozenset[int]]) -> Messages:
    gone = frozenset[int]().union(*groups)
    return tuple(message for index, message in enumerate(messages) if index not in gone)


def prune_tool_errors(work: Work, params: PruneToolErrors, env: Env) -> Outcome:
    """Return the work with `{"error":"pruned"}` in place of old errors that contain a marker (R-425)."""
    old = old_messages(work.messages, params.older_than, env)
    messages = list(work.messages)
    pruned: list[Message] = []
    for index, message in enumerate(work.messages):
        if index not in old or message.role != "tool" or not message.is_error or is_protected(message):
            continue
        text = message.text.lower()
        if len(text) <= len(ERROR_PRUNED) or not any(marker.lower() in text for marker in params.markers):
            continue
        messages[index] = env.recounted(with_changes(message, content=ERROR_PRUNED, edited=True))
        pruned.append(message)
    if not pruned:
        return Skipped("nothing_to_prune", "no old tool error can be pruned")
    return msgspec.structs.replace(work, messages=tuple(messages), cleared=(*work.cleared, *pruned))
