"""The `fill` option of S6: keeps as many of the newest messages as fit the target (R-416…R-419, R-422).

Order: messages that must stay; messages that the next reply answers; older messages that name the files in use, oldest
first, up to a share of the target; then the newest messages, backwards until the first that does not fit. This module
works only on indexes.
"""

from __future__ import annotations

from codecompanion.context.work import Env, Messages
from codecompanion.formats.regex import regex
from codecompanion.model.invariants import pair_tool_calls, with_partners
from codecompanion.model.messages import GATHERED_TAG, SUMMARY_TAG, Message, is_system_prompt, is_typed_by_user

ACTIVE_MESSAGES = 4
"""Number of newest messages whose files are in use (R-416)."""
_WORD = regex(r"[\w./@+~-]+")
_MAX_PATH_LENGTH = 400


def fill_to_target(
    messages: Messages, kept: frozenset[int], path_share: float, env: Env, *, spares_below: int = 0
) -> frozenset[int]:
    """Return the kept indexes, and the indexes of further messages that fit.

    A call and its results count as one message. Messages that the next reply answers stay even if they do not fit
    (R-422). In a window of fewer than `spares_below` tokens, half of the room for messages is left for the summary.
    """
    target = _target(messages, env, env.window < spares_below)
    kept = with_partners(messages, kept | unanswered_messages(messages))
    if path_share > 0:
        kept |= _naming_active_files(messages, kept, int(target * path_share), env)
    cuts = [cut for cut in legal_cuts(messages) if cut < len(messages)]
    # A longer tail is never smaller, so a binary search finds the longest that fits.
    low, high = 0, len(cuts)
    while low < high:
        middle = (low + high) // 2
        if env.measure(_selected(messages, kept, cuts[middle])).tokens <= target:
            high = middle
        else:
            low = middle + 1
    start = cuts[low] if low < len(cuts) else len(messages)
    tail = {index for index in range(start, len(messages)) if messages[index].tag != SUMMARY_TAG}
    return kept | tail


def _target(messages: Messages, env: Env, spares: bool) -> int:
    """Return the size to reach; a manual run uses a share of the current size, to remove at least something (R-533)."""
    target = env.target
    if spares:
        fixed = env.measure(tuple(filter(is_system_prompt, messages))).tokens
        target = min(target, (fixed + target) // 2)
    if not env.manual:
        return target
    return min(target, target * env.measure(messages).tokens // max(1, env.window))


def _selected(messages: Messages, kept: frozenset[int], start: int) -> Messages:
    return tuple(
        message
        for index, message in enumerate(messages)
        if index in kept or (index >= start and message.tag != SUMMARY_TAG)
    )


def legal_cuts(messages: Messages) -> tuple[int, ...]:
    """Return the indexes, ascending, where the list can be split without separating a call from its result."""
    illegal: set[int] = set()
    for result, (assistant, _) in pair_tool_calls(messages).call_of.items():
        illegal.update(range(assistant + 1, result + 1))
    return tuple(index for index in range(len(messages) + 1) if index not in illegal)


def unanswered_messages(messages: Messages) -> frozenset[int]:
    """Return the newest results and calls that no reply has followed yet, and the request they serve."""
    last = next((i for i in range(len(messages) - 1, -1, -1) if messages[i].role in ("tool", "assistant")), None)
    if last is None or (messages[last].role == "assistant" and not messages[last].tool_calls):
        return frozenset()
    newest = with_partners(messages, frozenset([last]))
    typed = [index for index, message in enumerate(messages) if is_typed_by_user(message)]
    return newest | frozenset(typed[-1:])


def _naming_active_files(messages: Messages, kept: frozenset[int], budget: int, env: Env) -> frozenset[int]:
    """Return the older messages that name a file from the newest, oldest first, within `budget` tokens (R-416).

    A message that belongs to a call is kept with the whole pair or not at all (R-418). Code gathered for an older
    question is excluded: it is gathered again if a question needs it.
    """
    active: set[str] = set()
    for message in messages[-ACTIVE_MESSAGES:]:
        active |= named_paths(message, env)
    found: set[int] = set()
    used = 0
    for index in range(max(0, len(messages) - ACTIVE_MESSAGES)):
        message = messages[index]
        if not active or index in kept or index in found or message.tag in (SUMMARY_TAG, GATHERED_TAG):
            continue
        if active.isdisjoint(_words(message)):
            continue
        group = with_partners(messages, frozenset([index])) - kept - found
        size = env.size(messages[member] for member in group)
        if used + size <= budget:
            used += size
            found |= group
    return frozenset(found)


def named_paths(message: Message, env: Env) -> set[str]:
    """Return the paths a message names: absolute paths of two or more parts, and relative paths that exist (R-419)."""
    return {word for word in _words(message) if _is_absolute_path(word) or _is_existing_path(word, env)}


def _words(message: Message) -> set[str]:
    """Return the words in the text and the arguments of the message that may be paths."""
    text = "\n".join((message.text, message.path or "", *(call.arguments for call in message.tool_calls)))
    return {word.rstrip(".") for word in _WORD.findall(text)}


def _is_absolute_path(word: str) -> bool:
    parts = word[1:].split("/")
    return word.startswith("/") and len(parts) >= 2 and all(parts)


def _is_existing_path(word: str, env: Env) -> bool:
    if word.startswith("/") or not ("/" in word or "." in word) or len(word) > _MAX_PATH_LENGTH:
        return False
    return env.exists(word)
