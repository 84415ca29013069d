"""What stays of the turn the model is working on when its history is summarised in the middle of it (R-551, issue 9).

The words the user wants done and the model's plan stay word for word, as live messages after the summary, and so do
the newest rounds of tools: the model goes on with its work and need not ask how.
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
    """Return whether the model is in the middle of its answer: after tool results, or asked to go on with a reply.

    What was attached meanwhile stands after them and changes nothing.
    """
    for message in reversed(head):
        if message.tag == GO_ON_TAG:
            return True
        if message.role != "user" or message.tag in (None, SUMMARY_TAG):
            return message.role == "tool"
    return False


def running_from(head: Messages) -> int | None:
    """Return the index of the first request the model is still working on, None when it works on none.

    All that was typed since the last finished reply counts: what steers a loop does not end its request. `head` ends
    where messages begin that nobody has answered at all.
    """
    if not is_answering(head):
        return None
    first: int | None = None
    for index in range(len(head) - 1, -1, -1):
        message = head[index]
        if is_typed_by_user(message):
            first = index
        elif message.tag == SUMMARY_TAG:
            # Before these messages stayed live, the summary quoted them at its end.
            if first is not None or quoted_request(message.text):
                break
        elif message.role == "assistant" and not message.tool_calls and first is not None:
            break
    return first


def kept_of_running(messages: Messages, start: int, budget: int, env: Env) -> tuple[frozenset[int], frozenset[int]]:
    """Return the indexes of the running turn that stay as they are, and those of its plan, of which the text stays.

    What the user said stays, and so does the newest round; older rounds as far back as `budget` tokens reach. The plan
    is the first text the model wrote in this turn, and the latest one.
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
    # What stands between the kept rounds (a reply that was cut and continued) belongs to them.
    kept |= frozenset(range(min(kept, default=len(messages)), len(messages)))
    written = [index for index in tail if messages[index].role == "assistant" and messages[index].text.strip()]
    return said | kept, frozenset(written[:1] + written[-1:]) - kept


def _rounds(messages: Messages, start: int) -> list[frozenset[int]]:
    """Return the replies with calls from `start` on, each with its results, as indexes, oldest first."""
    rounds: dict[int, set[int]] = {i: {i} for i in range(start, len(messages)) if messages[i].tool_calls}
    for result, (assistant, _) in pair_tool_calls(messages).call_of.items():
        if assistant in rounds:
            rounds[assistant].add(result)
    return [frozenset(members) for members in rounds.values()]


def without_calls(message: Message, env: Env) -> Message:
    """Return what a reply says, without its tool calls and what a provider signed together with them."""
    if not message.tool_calls:
        return message
    readable = without_encrypted(message) if has_encrypted(message) else message
    return env.recounted(with_changes(readable, tool_calls=(), tokens=0))
