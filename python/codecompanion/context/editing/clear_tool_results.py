"""S2 `clear_tool_results`: replaces the content of old tool results with a placeholder.

One strategy with parameters implements the rules of four documents (K12, K13): by cycle (R-511…R-514), by message and
size (R-116, R-117), by tool step within a turn (R-339…R-341), by finished turn until a budget is met (R-342). It never
removes a message and never changes a tool call. Code gathered for a question (`gathered_context`) and editor context
(`editor_context`) are cleared like the results of tools with these names; their placeholders name the files.
"""

from __future__ import annotations

import bisect
from typing import Literal

import msgspec

from codecompanion.context.editing.age import newest_finished_turn, old_messages
from codecompanion.context.editing.referenced_content import attached_mentions, referenced_indexes
from codecompanion.context.strategy_parameters import ClearToolResults, RawTail
from codecompanion.context.work import Env, Messages, Outcome, Skipped, Work
from codecompanion.model.invariants import pair_tool_calls
from codecompanion.model.messages import SUMMARY_TAG, Message, is_protected, is_question_context, with_changes
from codecompanion.placeholders import TEMPLATES, cleared_along, fill_tool_template


def clear_tool_results(work: Work, params: ClearToolResults, env: Env) -> Outcome:
    """Return the work with old results cleared; calls, user text and replies are not changed (R-511).

    A result is cleared if and only if it answers a call (or was attached to a question), is not cleared yet, comes from
    a selected tool, is old and large enough, and is longer than the placeholder (R-514). Content that the running
    question refers to does not count as old, unless `older_than.count` is 0. A second run clears nothing.
    """
    old = old_messages(work.messages, params.older_than, env, params.keep_share)
    excess = _raw_excess(work.messages, params.stop_when, env)
    is_some = bool(params.older_than.count)
    in_use = referenced_indexes(work.messages, env.cycle) if is_some else attached_mentions(work.messages)
    edits: list[tuple[int, Message]] = []
    for index, tool in _results(work.messages):
        if excess is not None and excess <= 0:
            break
        message = work.messages[index]
        is_cleared = message.compacted or (message.edited and not message.left_out)
        if index not in old or index in in_use or is_cleared or is_protected(message):
            continue
        if tool in params.exclude_tools or (params.tools and tool not in params.tools):
            continue
        if message.is_error and not params.include_errors:
            continue
        placeholder = _placeholder(message, tool, params)
        if not _is_worth_it(message, placeholder, params):
            continue
        edited = env.recounted(with_changes(message, content=placeholder, edited=True))
        if excess is not None:
            excess -= env.size((message,)) - edited.tokens
        edits.append((index, edited))
    if not edits:
        return Skipped("nothing_to_clear", "no tool result is old enough to be cleared")
    if params.until_target and env.target:
        edits = edits[: _enough(work.messages, edits, env)]
    cleared = (work.messages[index] for index, _ in edits)
    return msgspec.structs.replace(work, messages=_with(work.messages, edits), cleared=(*work.cleared, *cleared))


def _enough(messages: Messages, edits: list[tuple[int, Message]], env: Env) -> int:
    """Return the number of edits, oldest first, that bring the request down to the target; all if even they do not."""

    def is_reached(number: int) -> bool:
        return env.measure(_with(messages, edits[:number])).tokens <= env.target

    return min(bisect.bisect_left(range(1, len(edits)), True, key=is_reached) + 1, len(edits))


def _with(messages: Messages, edits: list[tuple[int, Message]]) -> Messages:
    changed = list(messages)
    for index, edited in edits:
        changed[index] = edited
    return tuple(changed)


def _results(messages: Messages) -> list[tuple[int, str]]:
    """Return the index and the tool name of every message that may be cleared, in order."""
    found = [
        (index, messages[reply].tool_calls[place].name)
        for index, (reply, place) in pair_tool_calls(messages).call_of.items()
    ]
    found += [(index, message.tag or "") for index, message in enumerate(messages) if is_question_context(message)]
    return sorted(found)


def _placeholder(message: Message, tool: str, params: ClearToolResults) -> str:
    if is_question_context(message):
        return cleared_along(message)
    return fill_tool_template(TEMPLATES[params.template], message, tool)


def _is_worth_it(message: Message, placeholder: str, params: ClearToolResults) -> bool:
    """Return whether the result is large enough, and larger than its placeholder."""
    size = _size(message.text, params.size_unit)
    if size <= params.min_size:
        return False
    return not params.only_if_shorter or size > _size(placeholder, params.size_unit) or bool(message.images)


def _size(text: str, unit: Literal["chars", "bytes"]) -> int:
    return len(text) if unit == "chars" else len(text.encode("utf-8", "surrogatepass"))


def _raw_excess(messages: Messages, budget: RawTail | None, env: Env) -> int | None:
    """Return the number of tokens by which the finished turns exceed the raw budget, or None without a budget."""
    if budget is None:
        return None
    newest = newest_finished_turn(messages, env)
    raw = env.size(
        message
        for message in messages
        if message.cycle is not None
        and message.cycle <= newest
        and message.tag != SUMMARY_TAG
        and not is_protected(message)
    )
    allowed = max(budget.min_tokens, int(env.window * budget.share))
    if budget.max_tokens:
        allowed = min(allowed, budget.max_tokens)
    if env.target:
        allowed = min(allowed, env.target // 2)
    return raw - allowed
