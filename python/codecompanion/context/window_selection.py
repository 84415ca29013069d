"""S6 `select_window`: decide which messages stay, which become the subject of a summary (R-522, R-551, K8)."""

from __future__ import annotations

import msgspec

from codecompanion.context.work import Env, Messages, Outcome, Skipped, Work
from codecompanion.invariants import with_partners
from codecompanion.messages import GO_ON_TAG, SUMMARY_TAG, is_protected, is_typed_by_user
from codecompanion.placeholders import quoted_request


class SelectWindow(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Parameters of S6. Protected messages (system, rules, pinned) always stay, under every policy (K8).

    `keep_compacted`: placeholders of an earlier compaction stay. `keep_pending`: user messages that have no answer
    yet are put aside to follow the summary (R-551).
    """

    keep_compacted: bool = True
    keep_pending: bool = True


def select_window(work: Work, params: SelectWindow, env: Env) -> Outcome:
    """Return the work with `messages` reduced to what stays and `removed` to what a summary must cover.

    The order of the kept messages is theirs; a kept call or result keeps its partner (R-004).
    """
    messages = work.messages
    pending_from = first_pending(messages) if params.keep_pending else len(messages)
    head = messages[:pending_from]
    kept = frozenset(
        index
        for index, message in enumerate(head)
        if is_protected(message) or (params.keep_compacted and message.compacted)
    )
    kept = with_partners(head, kept)
    removed = tuple(message for index, message in enumerate(head) if index not in kept)
    if all(message.tag == SUMMARY_TAG for message in removed):
        return Skipped("nothing_to_summarise", "there is nothing to summarise yet")
    return msgspec.structs.replace(
        work,
        messages=tuple(message for index, message in enumerate(head) if index in kept),
        removed=removed,
        pending=messages[pending_from:],
        request=_interrupted_request(head),
    )


def first_pending(messages: Messages) -> int:
    """Return the index from which on only user messages without an answer stand, or the length."""
    index = len(messages)
    while index > 0 and messages[index - 1].role == "user" and messages[index - 1].tag != SUMMARY_TAG:
        index -= 1
    if any(is_typed_by_user(message) for message in messages[index:]):
        return index
    return len(messages)


def is_answering(head: Messages) -> bool:
    """Return whether the model is in the middle of its answer: behind tool results, or asked to go on with a reply.

    What was attached meanwhile stands behind them and changes nothing.
    """
    for message in reversed(head):
        if message.tag == GO_ON_TAG:
            return True
        if message.role != "user" or message.tag in (None, SUMMARY_TAG):
            return message.role == "tool"
    return False


def _interrupted_request(head: Messages) -> str:
    """Return the words of the user that are being answered, "" when nothing is (R-551).

    All that was typed since the last finished reply counts, in order: what steers a loop does not end its request. In
    a loop that has been compacted before the earlier words stand at the end of the last summary.
    """
    if not is_answering(head):
        return ""
    words: list[str] = []
    for message in reversed(head):
        if is_typed_by_user(message):
            words.insert(0, message.text)
        elif message.tag == SUMMARY_TAG:
            words.insert(0, quoted_request(message.text))
            break
        elif message.role == "assistant" and not message.tool_calls and words:
            break
    return "\n\n".join(word for word in words if word)
