"""`clear_when_it_pays`: clear old tool results in batches, when that is cheaper than leaving them (lessons 22, 24).

What is cleared breaks the provider's prompt cache from its place on: everything after it is written once more. What
stays is read again with each request to come. So for a cut at message p

    gain(p) = cleared tokens after p × read price × requests to come − kept warm tokens after p × (write − read price)

and the cut with the greatest gain is made, if it pays `repay` times over and frees enough. How many requests will come
nobody knows; a session that had n is taken to have as many again, within bounds. A cold cache has nothing to lose: all
is written anyway, so all that is not needed goes. Cycles do not matter: one long run of tools is treated like a chat.

What is likely to be needed stays: the newest messages, the newest look at each file in play (edited or named by the
user not long ago, or looked at just now), what is protected, what excluded tools said. Results are cleared, the texts
of edit calls shortened (`old_arguments`); what user and model said stays.
"""

from __future__ import annotations

import posixpath
from typing import Annotated

import msgspec

from codecompanion.context.editing.file_reads import FileUses, find_uses
from codecompanion.context.editing.old_arguments import shorten_edits
from codecompanion.context.work import Env, Messages, Outcome, Skipped, Work
from codecompanion.model.invariants import Pairing, pair_tool_calls
from codecompanion.model.messages import Message, is_protected, with_changes
from codecompanion.placeholders import TEMPLATES

NotNegative = Annotated[int, msgspec.Meta(ge=0)]


class ClearWhenItPays(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Parameters.

    `keep_messages`, `keep_tokens`: the newest messages that stay, whichever keeps more. `read_within`,
    `touched_within`: a file is in play while it was read, or edited or named by the user, within so many of the newest
    messages. Requests of fewer than `min_tokens` are left alone. `min_size`: tokens one message must lose to be worth
    it; `min_freed` tokens and `min_share` (0..1) of the request the whole batch. `repay`: how many times over the gain
    must pay for the lost cache; 0 = at any price. `least_to_come`, `most_to_come`: bounds of how many requests are
    taken to come.
    """

    keep_messages: NotNegative = 16
    keep_tokens: NotNegative = 8000
    read_within: NotNegative = 60
    touched_within: NotNegative = 200
    min_tokens: NotNegative = 32000
    min_size: NotNegative = 100
    min_freed: NotNegative = 2000
    min_share: Annotated[float, msgspec.Meta(ge=0, le=1)] = 0.1
    repay: Annotated[float, msgspec.Meta(ge=0)] = 2.5
    least_to_come: NotNegative = 5
    most_to_come: NotNegative = 100
    exclude_tools: tuple[str, ...] = ("memory",)
    shorten_edits: bool = True
    template: str = "tool_result_cleared"


def clear_when_it_pays(work: Work, params: ClearWhenItPays, env: Env) -> Outcome:
    """Return the work with a batch of messages shortened, `Skipped` when leaving them is cheaper or safer.

    When the user asks for it, or a request was refused as too long, nothing is weighed.
    """
    messages = work.messages
    if env.manual:
        params = msgspec.structs.replace(params, min_tokens=0, repay=0.0)
    if sum(message.tokens for message in messages) < params.min_tokens:
        return Skipped("too_small", f"less than {params.min_tokens} tokens are not worth an edit")
    pairing = pair_tool_calls(messages)
    uses = find_uses(messages, pairing)
    shorter = _find_shorter(messages, pairing, uses, params, env)
    if not shorter:
        return Skipped("nothing_to_clear", "there is no tool result that is not needed any more")
    cut = _best_cut(messages, shorter, params, env)
    chosen = [] if cut is None else _from_cut(messages, shorter, cut, uses)
    if sum(messages[index].tokens - shorter[index].tokens for index in chosen) < max(1, params.min_freed):
        return Skipped("does_not_pay", "clearing old tool results would cost more than it saves")
    changed, cleared = list(messages), list[Message]()
    for index in chosen:
        changed[index] = with_changes(shorter[index], tokens=env.count(shorter[index]))
        cleared.append(messages[index])
    results = tuple(message for message in cleared if message.role == "tool")
    details = {**work.details, "shortened_calls": len(cleared) - len(results), "cold": env.cache.warm_tokens == 0}
    return msgspec.structs.replace(work, messages=tuple(changed), cleared=(*work.cleared, *results), details=details)


def _from_cut(messages: Messages, shorter: dict[int, Message], cut: int, uses: FileUses) -> list[int]:
    """Return what is shortened from the cut on, in order.

    The newest look at a file stays while an older one does: what is out of date must not be all there is.
    """
    older = {
        use.path
        for index, use in uses.of_result.items()
        if index < cut and use.access == "read" and not messages[index].edited
    }
    return [
        index
        for index in sorted(shorter)
        if index >= cut and not (index in uses.newest and uses.of_result[index].path in older)
    ]


def _find_shorter(
    messages: Messages, pairing: Pairing, uses: FileUses, params: ClearWhenItPays, env: Env
) -> dict[int, Message]:
    """Return what may take the place of messages nobody is likely to need, by index; their sizes are guesses."""
    placeholder = TEMPLATES[params.template]
    cost = env.count_text(placeholder)
    found: dict[int, Message] = {}
    for index in range(_tail_start(messages, params)):
        message = messages[index]
        if message.role == "tool":
            if not _is_superfluous(messages, index, pairing, uses, params):
                continue
            shorter = with_changes(message, content=placeholder, edited=True, tokens=cost)
        elif message.tool_calls and params.shorten_edits:
            shorter = shorten_edits(message, index, uses)
            lost = sum(len(call.arguments) for call in message.tool_calls)
            lost -= sum(len(call.arguments) for call in shorter.tool_calls)
            shorter = with_changes(shorter, tokens=max(1, message.tokens - lost // 4))
        else:
            continue
        if message.tokens - shorter.tokens >= params.min_size:
            found[index] = shorter
    return found


def _tail_start(messages: Messages, params: ClearWhenItPays) -> int:
    """Return where the messages begin that stay because they are new."""
    start, tokens = len(messages), 0
    while start > 0 and (len(messages) - start < params.keep_messages or tokens < params.keep_tokens):
        start -= 1
        tokens += messages[start].tokens
    return start


def _is_superfluous(messages: Messages, index: int, pairing: Pairing, uses: FileUses, params: ClearWhenItPays) -> bool:
    """Return whether the result may be cleared, and no edit to come is likely to need it."""
    message, call = messages[index], pairing.call_of.get(index)
    if call is None or message.edited or message.compacted or is_protected(message):
        return False
    if messages[call[0]].tool_calls[call[1]].name in params.exclude_tools:
        return False
    return index not in uses.newest or not _is_in_play(uses.of_result[index].path, uses, len(messages), params)


def _is_in_play(path: str, uses: FileUses, total: int, params: ClearWhenItPays) -> bool:
    """Return whether the file was edited, named or read not long ago."""
    touched = max(uses.last_edited.get(path, -1), uses.last_named.get(posixpath.basename(path), -1))
    if touched >= 0 and touched >= total - params.touched_within:
        return True
    return uses.last_read[path] >= total - params.read_within


def _best_cut(messages: Messages, shorter: dict[int, Message], params: ClearWhenItPays, env: Env) -> int | None:
    """Return the index from which on clearing gains most, None when no cut pays."""
    cache = env.cache
    loss = max(0.0, cache.write_price - cache.read_price)
    to_come = _requests_to_come(messages, params)
    total = place = sum(message.tokens for message in messages)
    least = max(params.min_freed, int(params.min_share * total))
    freed = behind = 0
    best: tuple[float, int] | None = None
    for index in range(len(messages) - 1, -1, -1):
        place -= messages[index].tokens
        left = shorter.get(index, messages[index]).tokens
        # What lies after the warm prefix is written in any case.
        behind += max(0, min(left, cache.warm_tokens - place))
        if index not in shorter:
            continue
        freed += messages[index].tokens - left
        saved, lost = freed * cache.read_price * to_come, behind * loss
        gain = saved - lost if params.repay else float(freed)
        if freed >= least and saved >= params.repay * lost and (best is None or gain > best[0]):
            best = (gain, index)
    return best[1] if best else None


def _requests_to_come(messages: Messages, params: ClearWhenItPays) -> int:
    """Return how many requests are taken to come: as many as there have been, within the bounds."""
    had = sum(message.role == "assistant" for message in messages)
    return max(params.least_to_come, min(params.most_to_come, had))
