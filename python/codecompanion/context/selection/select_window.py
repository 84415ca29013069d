"""S6 `select_window`: decides which messages stay and which are summarised (K7, K8, R-522, R-551).

The kept messages are a union: protected messages, messages named by the parameters, the newest messages, cycles or
turns (R-116, R-309), and as many of the newest as fit the target (`fill_window`, R-416). A call and its results stay or
go together, so the boundary moves back if necessary (R-128, R-417). The live summary never stays: the next summary
always covers it, whatever its position and author.
"""

from __future__ import annotations

from typing import assert_never

import msgspec

from codecompanion.context.selection.fill_window import fill_to_target
from codecompanion.context.selection.running_turn import is_answering, kept_of_running, running_from, without_calls
from codecompanion.context.strategy_parameters import SelectWindow
from codecompanion.context.work import Env, Messages, Outcome, Skipped, Work
from codecompanion.model.cycles import is_aged
from codecompanion.model.invariants import with_partners
from codecompanion.model.messages import (
    GO_ON_TAG,
    STARTING_TAGS,
    SUMMARY_TAG,
    Message,
    is_protected,
    is_system_prompt,
    is_typed_by_user,
)
from codecompanion.placeholders import quoted_request, without_gathered_code

_NOTHING = Skipped("nothing_to_summarise", "nothing to summarise yet")


def select_window(work: Work, params: SelectWindow, env: Env) -> Outcome:
    """Return the work with the kept messages in `messages` and the messages that a summary must cover in `removed`.

    The kept messages keep their order; a kept call or result keeps its partner (R-004).
    """
    messages = work.messages
    pending_from = first_pending(messages) if params.keep_pending else len(messages)
    if params.newest_turn:
        pending_from = max(pending_from, _newest_turn_start(messages))
    running = running_from(messages[: first_pending(messages)]) if params.keep_running else None
    aside_from, live, plan = pending_from, frozenset(range(pending_from, len(messages))), frozenset[int]()
    if running is not None:
        aside_from = running
        live, plan = kept_of_running(messages, running, int(params.keep_running * env.window), env)
    named = _named(messages, params)
    recent = _newest(messages, params, env)
    kept = with_partners(messages, named | recent | live)
    too_few = _too_few(messages, recent, params)
    if too_few is not None:
        return too_few
    if params.fill:
        named_tokens = env.measure(pick(messages, named)).tokens
        if named_tokens > env.target:
            work = work.with_details(pinned_over_target=named_tokens)
        kept = fill_to_target(messages, kept, params.active_path_share, env, spares_below=params.spares_below)
    if params.half:
        kept = _with_newer_half(messages, kept)
    kept -= {index for index in kept if messages[index].tag == SUMMARY_TAG}
    removed = tuple(message for index, message in enumerate(messages) if index not in kept)
    # A pinned request stays in its place and is also quoted, unless there is no room for both.
    staying = frozenset(index for index in kept if params.newest_turn or not is_protected(messages[index]))
    if all(message.tag == SUMMARY_TAG for message in removed):
        return _NOTHING
    stays = {index: messages[index] for index in kept} | {i: without_calls(messages[i], env) for i in plan - kept}
    return msgspec.structs.replace(
        work,
        messages=tuple(stays[index] for index in sorted(stays) if index < aside_from),
        removed=tuple(map(without_gathered_code, removed)),
        pending=tuple(stays[index] for index in sorted(stays) if index >= aside_from),
        request="" if running is not None else _interrupted_request(messages[:pending_from], staying, params),
    )


def pick(messages: Messages, indexes: frozenset[int]) -> Messages:
    """Return the messages at these indexes, in list order."""
    return tuple(messages[index] for index in sorted(indexes))


def _named(messages: Messages, params: SelectWindow) -> frozenset[int]:
    """Return the indexes of messages that stay because of their type, whatever their position."""
    named = {
        index
        for index, message in enumerate(messages)
        if is_protected(message)
        or (params.keep_compacted and message.compacted)
        or (message.tag in params.keep_tags and message.tag != SUMMARY_TAG)
    }
    if params.keep_first:
        counted = _counted(messages)
        named.update([index for index in counted if messages[index].tag is None][:1] or counted[:1])
    return frozenset(named)


def _counted(messages: Messages) -> tuple[int, ...]:
    """Return the indexes of the messages that count: without the system prompt, rules and the live summary."""
    return tuple(
        index
        for index, message in enumerate(messages)
        if not is_system_prompt(message) and message.tag not in (*STARTING_TAGS, SUMMARY_TAG)
    )


def _newest(messages: Messages, params: SelectWindow, env: Env) -> frozenset[int]:
    """Return the indexes of the messages in the newest `count` units."""
    counted = _counted(messages)
    match params.unit:
        case "messages":
            return frozenset(counted[max(0, len(counted) - params.count) :])
        case "cycles":
            return frozenset(i for i in counted if not is_aged(messages[i].cycle, env.cycle, params.count))
        case "turns":
            running = running_turn(messages)
            completed = sorted({messages[i].cycle or 0 for i in counted} - {running})
            staying = {*completed[max(0, len(completed) - params.count) :], running}
            return frozenset(i for i in counted if (messages[i].cycle or 0) in staying)
        case _:
            assert_never(params.unit)


def running_turn(messages: Messages) -> int | None:
    """Return the cycle of the turn without a final reply, or None between turns."""
    spoken = [message for message in messages if message.role != "system" and message.tag in (None, GO_ON_TAG)]
    if not spoken or (spoken[-1].role == "assistant" and not spoken[-1].tool_calls):
        return None
    return spoken[-1].cycle or 0


def _are(count: int) -> str:
    return "1 message is" if count == 1 else f"{count} messages are"


def _too_few(messages: Messages, recent: frozenset[int], params: SelectWindow) -> Skipped | None:
    """Return the reason to leave a short chat unchanged, or None if it is long enough (R-120, R-417)."""
    counted = _counted(messages)
    least = max(params.min_total, 3) if params.fill else params.min_total
    if len(counted) < least:
        return Skipped("too_few_messages", f"{_are(len(counted))} too few to summarise; {least} are needed")
    older = sum(index not in recent for index in counted)
    if older < params.min_older:
        return Skipped("too_few_messages", f"{_are(older)} older than the newest ones; {params.min_older} are needed")
    return None


def _with_newer_half(messages: Messages, kept: frozenset[int]) -> frozenset[int]:
    """Return the kept indexes if only the oldest half (rounded down) of the others is removed (R-131)."""
    older = [index for index in _counted(messages) if index not in kept]
    return with_partners(messages, kept | frozenset(older[len(older) // 2 :]))


def first_pending(messages: Messages) -> int:
    """Return the index from which all messages are unanswered user messages, or the list's length if there are none."""
    index = len(messages)
    while index > 0 and messages[index - 1].role == "user" and messages[index - 1].tag != SUMMARY_TAG:
        index -= 1
    if any(is_typed_by_user(message) for message in messages[index:]):
        return index
    return len(messages)


def _newest_turn_start(messages: Messages) -> int:
    """Return the start of the last message's turn, including its attachments."""
    newest = messages[-1].cycle if messages else None
    index = len(messages)
    while index > 0 and messages[index - 1].cycle == newest:
        index -= 1
    return index


def _interrupted_request(head: Messages, staying: frozenset[int], params: SelectWindow) -> str:
    """Return the user's words that are being answered and would not stay otherwise, or "" (R-551).

    Everything typed since the last finished reply counts, in order: steering a loop does not end its request. In a loop
    that was compacted before, the earlier words are at the end of the last summary.
    """
    if not is_answering(head):
        return ""
    words: list[str] = []
    found: list[Message] = []
    oldest = _newest_turn_start(head) if params.newest_turn else 0
    for index in range(len(head) - 1, -1, -1):
        message = head[index]
        if is_typed_by_user(message) and index < oldest:
            continue
        if is_typed_by_user(message):
            found.append(message)
            words.insert(0, "" if index in staying else message.text)
        elif message.tag == SUMMARY_TAG:
            words.insert(0, quoted_request(message.text))
            break
        elif message.role == "assistant" and not message.tool_calls and found:
            break
    return "\n\n".join(word for word in words if word)
