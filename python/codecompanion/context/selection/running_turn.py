"""Selects the messages of the running turn that stay when the history is summarised during it (R-551).

The user's request and the model's plan stay verbatim, as live messages after the summary, and so do the newest tool
rounds, so that the model can continue without asking.
"""

from __future__ import annotations

from codecompanion.context.work import Env, Messages
from codecompanion.model.invariants import pair_tool_calls
from codecompanion.model.messages import (
    GO_ON_TAG,
    SUMMARY_TAG,
    Message,
    has_encrypted,
    is_typed_by_user,
    with_changes,
    without_encrypted,
)
from codecompanion.placeholders import quoted_request


def is_answering(head: Messages) -> bool:
    """Return whether the model is in the middle of its answer: after tool results, or asked to continue a reply.

    Messages attached in the meantime come later and do not count.
    """
    for message in reversed(head):
        if message.tag == GO_ON_TAG:
            return True
        if message.role != "user" or message.tag in (None, SUMMARY_TAG):
            return message.role == "tool"
    return False


def running_from(head: Messages) -> int | None:
    """Return the index of the first request the model is still working on, or None.

    Everything typed since the last finished reply counts: steering a loop does not end its request. `head` excludes the
    final messages, which have no answer yet.
    """
    if not is_answering(head):
        return None
    first: int | None = None
    for index in range(len(head) - 1, -1, -1):
        message = head[index]
        if is_typed_by_user(message):
            first = index
        elif message.tag == SUMMARY_TAG:
            # In older chats the summary quotes these messages at its end instead of keeping them live.
            if first is not None or quoted_request(message.text):
                break
        elif message.role == "assistant" and not message.tool_calls and first is not None:
            break
    return first


def kept_of_running(messages: Messages, start: int, budget: int, env: Env) -> tuple[frozenset[int], frozenset[int]]:
    """Return the indexes of the running turn that stay unchanged, and the indexes of its plan, which stay as text only.

    The user's messages and the newest round stay; older rounds stay within `budget` tokens. The plan is the first text
    that the model wrote in this turn, and the latest one.
    """
    tail = range(start, len(messages))
    said = frozenset(index for index in tail if messages[index].role == "user")
    rounds = _rounds(messages, start)
    kept = rounds[-1] if rounds else frozenset[int]()
    used = env.size(messages[index] for index in kept)
    for older in reversed(rounds[:-1]):
        used += env.size(messages[index] for index in older)
        if used > budget:
            break
        kept |= older
    # Messages between the kept rounds (a reply that was cut and continued) belong to them.
    kept |= frozenset(range(min(kept, default=len(messages)), len(messages)))
    written = [index for index in tail if messages[index].role == "assistant" and messages[index].text.strip()]
    return said | kept, frozenset(written[:1] + written[-1:]) - kept


def _rounds(messages: Messages, start: int) -> list[frozenset[int]]:
    """Return, for each reply with calls, its index and those of its results, oldest first, beginning at `start`."""
    rounds: dict[int, set[int]] = {i: {i} for i in range(start, len(messages)) if messages[i].tool_calls}
    for result, (assistant, _) in pair_tool_calls(messages).call_of.items():
        if assistant in rounds:
            rounds[assistant].add(result)
    return [frozenset(members) for members in rounds.values()]


def without_calls(message: Message, env: Env) -> Message:
    """Return the text of a reply, without its tool calls and the signatures that a provider tied to them."""
    if not message.tool_calls:
        return message
    readable = without_encrypted(message) if has_encrypted(message) else message
    return env.recounted(with_changes(readable, tool_calls=(), tokens=0))
