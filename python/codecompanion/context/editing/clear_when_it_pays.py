"""`clear_when_it_pays`: clears old tool results in batches if that is cheaper than keeping them (lessons 22, 24).

Clearing a message invalidates the provider's prompt cache from that position on: everything after it is written again.
A message that stays is read again with each future request. So for a cut at message p

    gain(p) = cleared tokens after p × read price × requests to come − kept warm tokens after p × (write − read price)

and the cut with the greatest gain is made, if it saves at least `repay` times its cost and frees enough. The number of
requests until the cache is cold is unknown; in recorded sessions it is about half the number of requests so far, within
bounds. With a cold cache there is nothing to lose: everything is written again anyway, so everything that is not needed
is cleared. Cycles do not matter: a long tool loop is treated like a chat.

A self-hosted server does not read cached tokens again, and its cache does not expire: kept messages cost nothing, and
an edit costs the seconds needed to read the rest again. So the edit waits until the cache has lost the chat (then it is
made if it saves at least `min_seconds`, whatever the size of the chat) or the window gets tight (`repay` 0). The cut is
then the one that frees the most tokens per token read again.

Content likely to be needed is kept: the newest messages, protected messages, results of excluded tools, and the newest
read of each recently used file. The meaning of "recently" depends on later events (`KeepReads`): an old read is needed
least if the file has been edited since, because the edit contains the new text. Other tool results are hardly ever
needed again (measured: doc/dev, `adaptive`). Code gathered for a question stays until the turn of that question ends,
and during any later turn that refers to it.
"""

from __future__ import annotations

from itertools import groupby

import msgspec

from codecompanion.context.editing.age import newest_finished_turn
from codecompanion.context.editing.file_uses import FileUses
from codecompanion.context.editing.needed_reads import why_needed, why_not_needed
from codecompanion.context.editing.old_replies import shorten_calls, without_reasoning
from codecompanion.context.editing.referenced_content import referenced_indexes
from codecompanion.context.strategy_parameters import ClearWhenItPays
from codecompanion.context.work import Env, Messages, Outcome, Skipped, Work
from codecompanion.model.messages import Message, ReasoningPart, is_question_context, with_changes
from codecompanion.placeholders import TEMPLATES, cleared_along

SHORT_LIFETIME_S = 300.0
"""The cache lifetime for which `max_to_come` is defined, in seconds."""


def clear_when_it_pays(work: Work, params: ClearWhenItPays, env: Env) -> Outcome:
    """Return the work with a batch of messages shortened; `Skipped` if keeping them is cheaper or safer.

    Cost does not matter after a manual command, or after a request was refused as too long.
    """
    messages = work.messages
    is_cold = env.cache.is_cold
    if env.manual:
        params = msgspec.structs.replace(params, cache="any", min_tokens=0, repay=0.0)
    if params.cache == ("warm" if is_cold else "cold"):
        return Skipped("other_cache", f"the provider's cache is {'cold' if is_cold else 'warm'}")
    if env.cache.costs_time and not is_cold and params.repay:
        return Skipped("reads_for_nothing", "the server reads the chat from its cache, which costs no time")
    uses = env.folds.get(FileUses).of(messages)
    in_seconds = int(params.min_seconds * env.cache.reads_per_s) if is_cold and not env.manual else 0
    if not in_seconds and uses.before[-1] < params.min_tokens:
        return Skipped("too_small", f"fewer than {params.min_tokens} tokens are not worth an edit")
    found = _find_shorter(messages, uses, params, env)
    if not found:
        return Skipped("nothing_to_clear", "every tool result is still needed")
    cut = _best_cut(found, uses, params, env)
    shorter = {} if cut is None else _from_cut(found, cut.index, uses)
    changed = list(messages)
    for index, one in shorter.items():
        changed[index] = env.recounted(one.message)
    freed = sum(messages[index].tokens - changed[index].tokens for index in shorter)
    if cut is None or freed < max(1, params.min_freed, in_seconds):
        return Skipped("does_not_pay", "clearing old tool results would cost more than it saves")
    cleared = [messages[index] for index in shorter if messages[index].role != "assistant"]
    said = work.with_details(shortened_calls=len(shorter) - len(cleared), cold=is_cold, why=cut.why)
    return msgspec.structs.replace(said, messages=tuple(changed), cleared=(*work.cleared, *cleared))


def explain_results(messages: Messages, params: ClearWhenItPays, env: Env) -> dict[str, str]:
    """Return, by message id, the reason why each large tool result was cleared or is kept, in plain words.

    The result is empty if these parameters do not apply to the current cache state.
    """
    if params.cache == ("warm" if env.cache.is_cold else "cold"):
        return {}
    uses = env.folds.get(FileUses).of(messages)
    tail = _tail_start(uses, params)
    return {
        messages[index].id: _explain(index, tail, uses, params)
        for index in uses.call_of
        if messages[index].edited or messages[index].tokens >= params.min_size
    }


def _explain(index: int, tail: int, uses: FileUses, params: ClearWhenItPays) -> str:
    message, call = uses.messages[index], uses.call_of[index]
    name = uses.messages[call[0]].tool_calls[call[1]].name
    if message.edited:
        return f"cleared: {why_not_needed(index, uses)}"
    if index not in uses.open:
        return "kept: protected"
    if index >= tail:
        return "kept: among the newest messages"
    if name in params.exclude_tools:
        return f"kept: results of {name} are never cleared"
    needed = why_needed(index, uses, params.keep_reads)
    return f"kept: {needed}" if needed else f"kept until clearing pays off: {why_not_needed(index, uses)}"


class _Shorter(msgspec.Struct, frozen=True):
    """A possible replacement for a message, and the estimated number of tokens that it frees.

    `at`: the latest possible cut: the message itself, or the start of the turn whose reasoning is removed as a whole.
    """

    message: Message
    freed: int
    at: int


class _Cut(msgspec.Struct, frozen=True):
    """The position from which messages are shortened, and a short reason why that pays."""

    index: int
    why: str


def _from_cut(found: dict[int, _Shorter], cut: int, uses: FileUses) -> dict[int, _Shorter]:
    """Return the shortened messages from the cut on.

    The newest read of a file is kept as long as an older read is kept, so that the model never has only an outdated
    one.
    """
    older = set[str]()
    for index in uses.open:
        if index >= cut:
            break
        use = uses.of_result.get(index)
        if use is not None and use.access == "read":
            older.add(use.path)
    return {
        index: shorter
        for index, shorter in found.items()
        if shorter.at >= cut and not (uses.is_newest(index) and uses.of_result[index].path in older)
    }


def _find_shorter(messages: Messages, uses: FileUses, params: ClearWhenItPays, env: Env) -> dict[int, _Shorter]:
    """Return replacements, by index, for messages that are unlikely to be needed."""
    tail = _tail_start(uses, params)
    placeholder = TEMPLATES[params.template]
    cost = env.count_text(placeholder)
    found: dict[int, _Shorter] = {}
    in_use = referenced_indexes(messages, env.cycle)
    for index in uses.open:
        if index >= tail:
            break
        message = messages[index]
        if is_question_context(message):
            is_over = message.cycle != env.cycle and index not in in_use
            bare = with_changes(message, content=cleared_along(message), edited=True)
            freed = message.tokens - env.count_text(bare.text)
            if freed >= params.min_size and is_over and message.tag not in params.exclude_tools:
                found[index] = _Shorter(bare, freed, index)
            continue
        is_large = message.role == "tool" and message.tokens - cost >= params.min_size
        if is_large and _is_superfluous(index, uses, params):
            cleared = with_changes(message, content=placeholder, edited=True)
            found[index] = _Shorter(cleared, message.tokens - cost, index)
    thoughts = _old_thoughts(messages, tail, uses, env) if params.reasoning else {}
    for index in (*uses.open, *(index for index in thoughts if index not in uses.open)):
        message = messages[index]
        if index >= tail or message.role != "assistant":
            continue
        at, freed = thoughts.get(index, (index, 0))
        shorter = without_reasoning(message) if freed else message
        shorter = shorten_calls(shorter, index, uses, params.arguments, found)
        freed += sum(len(call.arguments) for call in message.tool_calls) // 4
        freed -= sum(len(call.arguments) for call in shorter.tool_calls) // 4
        if shorter is not message and (freed >= params.min_size or index in thoughts):
            found[index] = _Shorter(shorter, freed, at)
    return dict(sorted(found.items()))


def _old_thoughts(messages: Messages, tail: int, uses: FileUses, env: Env) -> dict[int, tuple[int, int]]:
    """Return (start of the turn's reasoning, tokens) for each reply whose reasoning is removable; whole turns only."""
    newest = newest_finished_turn(messages, env)
    if tail < len(messages):
        newest = min(newest, (messages[tail].cycle or 0) - 1)
    found: dict[int, tuple[int, int]] = {}
    for cycle, replies in uses.thoughts.items():
        if cycle > newest or cycle in uses.bound:
            continue
        sent = {index: size for index, size in replies.items() if _goes_out(messages[index], env)}
        found.update((index, (min(sent), size)) for index, size in sent.items())
    return found


def _goes_out(message: Message, env: Env) -> bool:
    parts = () if isinstance(message.content, str) else message.content
    return any(isinstance(part, ReasoningPart) and env.resends(part) for part in parts)


def _tail_start(uses: FileUses, params: ClearWhenItPays) -> int:
    """Return the index of the first message that is kept because it is new."""
    total = len(uses.messages)
    start = max(0, total - params.keep_messages)
    while start > 0 and uses.before[-1] - uses.before[start] < params.keep_tokens:
        start -= 1
    return start


def _is_superfluous(index: int, uses: FileUses, params: ClearWhenItPays) -> bool:
    """Return whether the result may be cleared and is unlikely to be needed for a future edit."""
    call = uses.call_of[index]
    if uses.messages[call[0]].tool_calls[call[1]].name in params.exclude_tools:
        return False
    return not why_needed(index, uses, params.keep_reads)


def _best_cut(found: dict[int, _Shorter], uses: FileUses, params: ClearWhenItPays, env: Env) -> _Cut | None:
    """Return the cut with the greatest gain, or None when no cut pays."""
    cache, total = env.cache, uses.before[-1]
    loss = max(0.0, cache.write_price - cache.read_price)
    to_come = _requests_to_come(uses, params, env)
    enough = max(params.min_freed, int(params.min_share * total))
    freed = freed_warm = 0
    best: tuple[float, _Cut] | None = None
    for cut, by_place in groupby(sorted(found.items(), key=lambda entry: -entry[1].at), key=lambda entry: entry[1].at):
        for index, shorter in by_place:
            freed += shorter.freed
            # Messages after the warm prefix are written anyway.
            freed_warm += shorter.freed if uses.before[index + 1] <= cache.warm_tokens else 0
        again = max(0, cache.warm_tokens - uses.before[cut] - freed_warm)
        saved, lost = freed * cache.read_price * to_come, again * loss
        most = freed / max(1, again) if cache.costs_time else float(freed)
        gain = saved - lost if params.repay and not cache.costs_time else most
        if freed >= enough and saved >= params.repay * lost and (best is None or gain > best[0]):
            seconds = again / cache.reads_per_s if cache.reads_per_s else 0.0
            best = (gain, _Cut(cut, _why(saved, lost, to_come, params, seconds)))
    return best[1] if best else None


def _why(saved: float, lost: float, to_come: float, params: ClearWhenItPays, seconds: float) -> str:
    if lost <= 0:
        return "nothing was cached any more, so it cost nothing"
    if not params.repay:
        took = f"; the rest takes about {seconds:.0f} s to read again" if seconds >= 1 else ""
        return f"the window is getting full{took}"
    return f"saves {saved / lost:.1f} times the cost of re-caching over about {to_come:.0f} requests"


def _requests_to_come(uses: FileUses, params: ClearWhenItPays, env: Env) -> float:
    """Return the assumed number of requests until the cache goes cold."""
    longest = params.max_to_come * max(1.0, env.cache.lifetime_s / SHORT_LIFETIME_S)
    return max(params.min_to_come, min(longest, uses.replies * params.come_share))
