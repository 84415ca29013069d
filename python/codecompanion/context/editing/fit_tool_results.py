"""`fit_tool_results`: truncates the largest tool results until the request fits (R-524).

The head and tail of a result are kept with a note between them; the log keeps the full text. All results share one size
limit, so huge results shrink and small ones stay unchanged. A result that was truncated before loses more of its head
and tail; its single note reports the total number of characters omitted.
"""

from __future__ import annotations

import msgspec

from codecompanion.context.strategy_parameters import FitToolResults
from codecompanion.context.work import Env, Messages, Outcome, Skipped, Work
from codecompanion.model.messages import Message, is_protected, replaced_text, with_changes
from codecompanion.placeholders import RESULT_CUT

_HEAD_SHARE = 2 / 3
_WORTH_CUTTING = 1.25
"""Minimum ratio of a result's size to its truncated size; below it, truncation frees too little."""


def fit_tool_results(work: Work, params: FitToolResults, env: Env) -> Outcome:
    """Return the work with large tool results truncated to the highest limit at which the request fits the target.

    If even the lowest limit is not enough, the results are truncated to it; returns `Skipped` if no result exceeds it.
    """
    lowest = max(params.least, int(params.min_share * env.window))
    sizes = {
        index: env.count(work.messages[index])
        for index in (unseen_results(work.messages) if params.newest_only else range(len(work.messages)))
        if _may_be_cut(work.messages[index]) and (work.messages[index].tokens or lowest + 1) > lowest
    }
    smallest = int(_WORTH_CUTTING * lowest) if params.newest_only else lowest
    sizes = {index: size for index, size in sizes.items() if size > smallest}
    if not sizes:
        return Skipped("nothing_to_truncate", "every tool result fits")
    measure = env.sent or env.measure
    low, high = lowest, max(sizes.values())
    while low < high:
        middle = (low + high + 1) // 2
        if measure(_cut(work.messages, sizes, middle, env)).tokens <= env.target:
            low = middle
        else:
            high = middle - 1
    messages = _cut(work.messages, sizes, low, env)
    cut = tuple(old for old, new in zip(work.messages, messages, strict=True) if old != new)
    if not cut:
        return Skipped("nothing_to_truncate", "every tool result fits")
    return msgspec.structs.replace(work, messages=messages, cleared=(*work.cleared, *cut))


def unseen_results(messages: Messages) -> list[int]:
    """Return the indexes of the tool results after the last reply, which the model has not seen."""
    first = next((i + 1 for i in range(len(messages) - 1, -1, -1) if messages[i].role == "assistant"), 0)
    return [index for index in range(first, len(messages)) if _may_be_cut(messages[index])]


def _may_be_cut(message: Message) -> bool:
    return message.role == "tool" and not is_protected(message)


def _cut(messages: Messages, sizes: dict[int, int], level: int, env: Env) -> Messages:
    """Return the messages with every result in `sizes` that exceeds `level` tokens truncated to about that level."""
    changed = list(messages)
    for index, size in sizes.items():
        if size > level:
            changed[index] = _shortened(messages[index], level / size, env)
    return tuple(changed)


def _shortened(message: Message, share: float, env: Env) -> Message:
    """Return the result reduced to this share of its text (head, note, tail), with all its images and documents."""
    before, after = _ends(message)
    keep = max(0, int(share * len(message.text)) - len(RESULT_CUT))
    head = before[: int(keep * _HEAD_SHARE)]
    tail = after[max(0, len(after) - (keep - len(head))) :]
    left_out = message.left_out + len(before) - len(head) + len(after) - len(tail)
    shorter = head + RESULT_CUT.format(chars=left_out) + tail
    if len(shorter) >= len(message.text):
        return message
    return env.recounted(with_changes(message, content=replaced_text(message, shorter), left_out=left_out, tokens=0))


def _ends(message: Message) -> tuple[str, str]:
    """Return the sources of head and tail: two parts of the full text, or the ends left by an earlier truncation."""
    head, note, tail = message.text.partition(RESULT_CUT.format(chars=message.left_out))
    if message.left_out and note:
        return head, tail
    middle = int(_HEAD_SHARE * len(message.text))
    return message.text[:middle], message.text[middle:]
