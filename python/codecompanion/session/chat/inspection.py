"""Describes a chat for inspection: the next request and the originals of removed messages (R-516, R-546).

These are projections of the log and the view; nothing is changed.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from codecompanion.context.strategies import STRATEGIES
from codecompanion.context.work import Messages
from codecompanion.errors import InputError
from codecompanion.formats.cutting import without_code
from codecompanion.formats.enclosing_element import without_element
from codecompanion.model.history import LogEvent
from codecompanion.model.messages import (
    GATHERED_TAG,
    MEMORY_TAG,
    RULES_TAG,
    STARTING_TAGS,
    SUMMARY_TAG,
    Message,
    Source,
    ToolSpec,
    is_typed_by_user,
)
from codecompanion.model.provenance import is_cleared, sources_of
from codecompanion.session.codebase.shown_code import title_of_gathered
from codecompanion.session.history.chat_log import ChatLog
from codecompanion.session.history.recorded_title import title_of_call
from codecompanion.session.history.restore_message import find, logged
from codecompanion.session.window.context_control import ContextControl
from codecompanion.session.window.native import UNREADABLE
from codecompanion.session.window.request_shaper import count_shared
from codecompanion.tools.tool_registry import ToolRegistry

PREVIEW_CHARS = 100


def _none(source: Source) -> bool:
    del source
    return False


def inspect(control: ContextControl, log: ChatLog, narrows: Callable[[Source], bool] = _none) -> dict[str, Any]:
    """Return `{rows, total, window, guess, reserve, cost}`, with one row per message of the next request.

    `total` is the meter's value and the sum of the rows; `reserve` is the room for the reply; `guess` is a note if the
    size of the context window is a guess, otherwise "". In each row, `cache` is the expected cache result (`hit`,
    `miss`, "" = none reported), and `cost` the price in US dollars, or None if the price is unknown. `source` is the
    origin of text that is not from the user, the model or the plugin; `narrows` is true if it narrows grants.
    """
    view, shaped = log.view, control.shaper.current()
    total, reasons = shaped.measure.tokens, _reasons(control, view.messages)
    rows = describe_rows(control, (shaped.system, *shaped.messages), shaped.specs, view.cycle, total, narrows)
    for row in rows:
        row["preview"] = " · ".join(filter(None, (reasons.get(row["id"]), row["preview"])))[:PREVIEW_CHARS]
    prices = control.services.prices(control.adapter_name, control.model, total)
    for row, cache in zip(rows, _expected_cache(control, log), strict=True):
        price = None if prices is None else prices.cache_read if cache == "hit" else prices.input
        row["cache"] = cache
        row["cost"] = None if price is None else row["tokens"] * price / 1_000_000
    cost = None if prices is None else sum(row["cost"] for row in rows)
    limits = control.limits
    return {
        "rows": rows, "total": total, "window": limits.context_window, "guess": control.window.guess,
        "reserve": limits.reply_reserve, "cost": cost, "request": 0,
    }  # fmt: skip


def describe_rows(
    control: ContextControl,
    messages: Sequence[Message],
    specs: Sequence[ToolSpec],
    cycle: int,
    total: int,
    narrows: Callable[[Source], bool] = _none,
) -> list[dict[str, Any]]:
    """Return a row for each message: the system prompt first, then the tools, then the others.

    Their tokens add up to `total`.
    """
    system, specs_tokens, *figures = _figures(control, messages, specs, total)
    titles = _titles(control.tools.all(), messages[1:])
    tools = {call.id: call.name for message in messages for call in message.tool_calls}
    rows = [_row(*one, cycle, titles) for one in zip(messages, (system, *figures), strict=True)]
    for row, message in zip(rows, messages, strict=True):
        sources = sources_of(message, tools.get(message.tool_call_id or "", ""))
        told = [source for source in sources if source.kind not in ("user", "model", "plugin")]
        row["source"] = ", ".join(f"{source.kind} {source.name}".rstrip() for source in told)
        row["narrows"] = not is_cleared(message) and any(map(narrows, told))
    schemas = {
        "id": "tools", "role": "tools", "tag": "", "name": f"{len(specs)} tool schemas",
        "tokens": specs_tokens, "cycle": 0, "age": 0, "state": "live", "preview": "", "source": "", "narrows": False,
    }  # fmt: skip
    return [rows[0], schemas, *rows[1:]]


def describe_message(message: Message, tokens: int) -> dict[str, Any]:
    """Return the row of a message that is not part of the chat."""
    return {**_row(message, tokens, 0, {}), "source": "", "narrows": False}


def _titles(tools: ToolRegistry, messages: Sequence[Message]) -> dict[str, str]:
    """Return call id → title of the call, because a result alone shows neither its file nor its command."""
    return {call.id: title_of_call(tools, call) for message in messages for call in message.tool_calls}


def _reasons(control: ContextControl, messages: Messages) -> dict[str, str]:
    """Return message id → why the message was cleared or kept, if the policy's strategies can explain it."""
    steps = (step for stage in control.policy.stages for tier in stage.tiers for step in tier.steps)
    told = ((STRATEGIES[step.use].explain, step.params) for step in steps)
    found = (explain(messages, params, control.shaper.env()) for explain, params in told if explain is not None)
    return next(filter(None, found), {})


def _expected_cache(control: ContextControl, log: ChatLog) -> list[str]:
    """Return the expected cache result for the system prompt, the tools and every message.

    The prefix that is identical to that of the last request stays cached until the cache expires; after a restart the
    prefix is derived from the view alone. A model that has answered without reporting cache use counts as having none.
    """
    now, sent, cache = control.shaper.current(), control.shaper.sent, control.cache_state()
    count, reports_none = len(now.messages), log.last_asked == control.named and control.named not in log.cached
    if cache.lifetime_s <= 0 or reports_none:
        return [""] * (count + 2)
    messages = log.view.messages
    if cache.warm_tokens <= 0:
        return ["miss"] * (count + 2)
    if sent is None:
        newest = max(index for index, message in enumerate(messages) if message.role == "assistant")
        return ["hit"] * (newest + 2) + ["miss"] * (count - newest)
    same = count_shared(sent, now)
    if same < 0:
        return ["miss"] * (count + 2)
    return ["hit"] * (same + 2) + ["miss"] * (count - same)


def _figures(control: ContextControl, messages: Sequence[Message], specs: Sequence[ToolSpec], total: int) -> list[int]:
    """Return the token counts of the system prompt, the tools and each message; their sum is the meter's figure.

    Each message has the number shown below it in the chat. The rest of the provider's count is attributed to the system
    prompt and the tools, because the provider's encoding of them is unknown; if that would make them less than half or
    more than twice their estimate, everything is scaled in proportion.
    """
    meter = control.meter
    fixed = [meter.counter.message(messages[0]), meter.counter.tools(specs)]
    sizes = [meter.scaled(message.tokens) for message in messages[1:]]
    rest, estimate = total - sum(sizes), meter.scaled(sum(fixed))
    if estimate <= 2 * rest <= 4 * estimate:
        return [*scaled(fixed, rest), *sizes]
    return scaled([*fixed, *(message.tokens for message in messages[1:])], total)


def scaled(figures: Sequence[int], total: int) -> list[int]:
    """Return the figures scaled proportionally so that they add up to exactly `total`."""
    whole = sum(figures)
    if whole <= 0:
        return [0 for _ in figures]
    result, given, seen = [], 0, 0
    for figure in figures:
        seen += figure
        share = total * seen // whole - given
        given += share
        result.append(share)
    return result


def _row(message: Message, tokens: int, cycle: int, titles: Mapping[str, str]) -> dict[str, Any]:
    block = message.compaction
    text = message.text if block is None else block.text or UNREADABLE
    text = without_code(text) if is_typed_by_user(message) else text
    text = " ".join((without_element(text) if message.tag in STARTING_TAGS else text).split())
    names = ", ".join(titles.get(call.id, call.name) for call in message.tool_calls)
    names = names or titles.get(message.tool_call_id or "", "")
    if message.tag == GATHERED_TAG:
        names = title_of_gathered(message)
    elif message.mentioned is not None:
        names = message.mentioned.title or message.mentioned.written
    return {
        "id": message.id,
        "role": message.role,
        "tag": message.tag or "",
        "name": message.path or names,
        "tokens": tokens,
        "cycle": message.cycle or 0,
        "age": max(0, cycle - (message.cycle or cycle)),
        "state": state_of(message),
        "preview": text[:PREVIEW_CHARS],
    }


def state_of(message: Message) -> str:
    """Return one word for the state of a message in the view."""
    if message.tag == RULES_TAG:
        return "rules"
    if message.tag == MEMORY_TAG:
        return "memory"
    if message.pinned:
        return "pinned"
    if message.left_out:
        return "cut"
    if message.edited or message.compacted:
        return "cleared"
    return "summary" if message.tag == SUMMARY_TAG else "live"


def original(events: Sequence[LogEvent], view_messages: Sequence[Message], item: str) -> Message:
    """Return a message as it was logged, found by message id or call id.

    Raises:
        InputError: nothing in this chat has that id.
    """
    found = find(logged(events), item) or next((m for m in view_messages if m.id == item), None)
    if found is None:
        raise InputError(f"Nothing in this chat has the id {item!r}")
    return found
