"""Splits a request into layers, fragments and prior turns (R-329, R-330), and counts tokens by its three parts (R-357).

    instructions · tools · summary · history (prior turns) · turn (the running turn)

The order is the order on the wire, stable parts first. Sizes in bytes refer to the readable text (UTF-8); tokens are
the cached, uncalibrated estimates of the messages.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from itertools import takewhile
from typing import Any, Literal

import msgspec

from codecompanion.model.cycles import turn_name
from codecompanion.model.messages import STARTING_TAGS, SUMMARY_TAG, Message, ToolSpec, is_system_prompt

Layer = Literal["instructions", "tools", "summary", "history", "turn"]
LAYERS: tuple[Layer, ...] = ("instructions", "tools", "summary", "history", "turn")
STABILITY: dict[Layer, str] = {
    "instructions": "session",
    "tools": "session",
    "summary": "compaction",
    "history": "append_only",
    "turn": "request",
}


def layer_of(message: Message, turn_id: str) -> Layer:
    """Return the layer of a message; a message without a turn is history."""
    if message.tag == SUMMARY_TAG:
        return "summary"
    if is_system_prompt(message) or message.tag in STARTING_TAGS:
        return "instructions"
    return "turn" if turn_id and message.turn_id == turn_id else "history"


def turn_of(message: Message) -> str:
    """Return the turn's name in placeholders and summaries (R-002), or its name in the log if it has no cycle."""
    return message.turn_id if message.cycle is None else turn_name(message.cycle)


def request_mix(sent: Iterable[Message], tools_tokens: int, count: Callable[[Message], int]) -> dict[str, int]:
    """Return the token count of each part of a request: `prompt`, `conversation` and `tools` (R-357)."""
    mix = {"prompt": 0, "conversation": 0, "tools": tools_tokens}
    for message in sent:
        mix["prompt" if layer_of(message, "") == "instructions" else "conversation"] += message.tokens or count(message)
    return mix


def text_bytes(message: Message) -> int:
    """Return the size of the message's text and tool calls in bytes."""
    said = len(message.text.encode("utf-8", "surrogatepass"))
    return said + sum(
        len(call.name) + len(call.arguments.encode("utf-8", "surrogatepass")) for call in message.tool_calls
    )


def compile_prompt(
    sent: Sequence[Message], tools: Sequence[ToolSpec], turn_id: str, *, compact: bool = False
) -> dict[str, Any]:
    """Return the fields of `prompt_compiled`: the parts of the request, and which of them can be cached."""
    fragments = [*_message_fragments(sent, turn_id), *_tool_fragments(tools)]
    fragments.sort(key=lambda fragment: LAYERS.index(fragment["layer"]))
    layers = [_layer(layer, fragments) for layer in LAYERS]
    instructions = [fragment for fragment in fragments if fragment["layer"] == "instructions"]
    whole = sum(fragment["bytes"] for fragment in fragments)
    prefix = sum(fragment["bytes"] for fragment in takewhile(lambda f: f["layer"] != "turn", fragments))
    code = [
        msgspec.to_builtins(piece) for message in sent if _is_fresh_code(message, turn_id) for piece in message.gathered
    ]
    return {
        **({"gathered": code} if code else {}),
        "shape": "compact" if compact else "full",
        "base_instructions": sum(f["bytes"] for f in instructions if f["kind"] == "system_prompt"),
        "instructions": sum(f["bytes"] for f in instructions),
        "cacheable_prefix": prefix,
        "dynamic_suffix": whole - prefix,
        "layers": layers,
        "fragments": fragments,
    }


def _is_fresh_code(message: Message, turn_id: str) -> bool:
    """Return whether the message is code gathered for this turn and sent unchanged (R-268)."""
    return bool(turn_id) and message.turn_id == turn_id and bool(message.gathered) and not message.edited


def _layer(layer: Layer, fragments: Sequence[dict[str, Any]]) -> dict[str, Any]:
    own = [fragment for fragment in fragments if fragment["layer"] == layer]
    return {
        "name": layer,
        "kind": "tools" if layer == "tools" else "messages",
        "source": "configuration" if layer in ("instructions", "tools") else "log",
        "stability": STABILITY[layer],
        "status": "included" if own else "empty",
        "fragments": len(own),
        "bytes": sum(fragment["bytes"] for fragment in own),
    }


def _message_fragments(sent: Sequence[Message], turn_id: str) -> list[dict[str, Any]]:
    """Return one fragment per instruction and summary, and one per turn for all of its messages."""
    fragments: dict[str, dict[str, Any]] = {}
    for message in sent:
        layer = layer_of(message, turn_id)
        alone = layer in ("instructions", "summary")
        key = message.id if alone else message.turn_id or "attached"
        kind = ("system_prompt" if is_system_prompt(message) else message.tag or layer) if alone else layer
        fragment = fragments.setdefault(
            key,
            {
                "kind": kind,
                "source": message.path or ("configuration" if is_system_prompt(message) else "log"),
                "stability": STABILITY[layer],
                "layer": layer,
                "key": key,
                "label": message.path or (kind.replace("_", " ") if alone else turn_of(message) or "attached"),
                "bytes": 0,
                "tokens": 0,
            },
        )
        fragment["bytes"] += text_bytes(message)
        fragment["tokens"] += message.tokens
    return list(fragments.values())


def _tool_fragments(tools: Sequence[ToolSpec]) -> list[dict[str, Any]]:
    if not tools:
        return []
    size = sum(len(msgspec.json.encode(spec)) for spec in tools)
    return [
        {
            "kind": "tool_schemas",
            "source": "configuration",
            "stability": STABILITY["tools"],
            "layer": "tools",
            "key": "tools",
            "label": f"{len(tools)} tool schemas",
            "bytes": size,
            "tokens": 0,
        }
    ]


class LeftOut(msgspec.Struct, frozen=True):
    """Turns that only the summary covers: their number, their size as logged, and their names."""

    turns: int = 0
    size_bytes: int = 0
    turn_ids: tuple[str, ...] = ()

    @classmethod
    def of(cls, messages: Iterable[Message]) -> LeftOut:
        """Return the figures for the turns of these messages; instructions and summaries do not belong to a turn."""
        gone = [message for message in messages if layer_of(message, "") == "history" and message.turn_id]
        turn_ids = tuple(dict.fromkeys(map(turn_of, gone)))
        return cls(len(turn_ids), sum(map(text_bytes, gone)), turn_ids)


NO_TURNS = LeftOut()


def count_prior_turns(
    raw: Sequence[Message], sent: Sequence[Message], turn_id: str, earlier: LeftOut = NO_TURNS
) -> dict[str, Any]:
    """Return the fields of `context_pruned`: how the turns before the running one are represented.

    `raw` is the conversation as logged, `sent` the request. A turn is sent unchanged (raw), sent with other contents
    (compacted), or covered only by the summary (omitted). `earlier`: omitted turns missing from `raw`.
    """
    replayed = {message.id: message for message in sent}
    turns: dict[str, list[Message]] = {}
    for message in raw:
        if layer_of(message, turn_id) == "history" and message.turn_id:
            turns.setdefault(turn_of(message), []).append(message)
    figures = dict.fromkeys(("raw", "compacted", "omitted"), 0), dict.fromkeys(("raw", "compacted", "omitted"), 0)
    left_out = []
    for turn, messages in turns.items():
        kept = [replayed[message.id] for message in messages if message.id in replayed]
        same = len(kept) == len(messages) and all(a.content == b.content for a, b in zip(messages, kept, strict=True))
        how = "raw" if same else "compacted" if kept else "omitted"
        figures[0][how] += 1
        figures[1][how] += sum(text_bytes(message) for message in (kept or messages))
        if not kept:
            left_out.append(turn)
    counts, sizes = figures
    return {
        "prior_turns": counts["raw"] + counts["compacted"],
        "prior_input_bytes": sizes["raw"] + sizes["compacted"],
        "raw_prior_turns": counts["raw"],
        "raw_input_bytes": sizes["raw"],
        "compacted_prior_turns": counts["compacted"],
        "compacted_input_bytes": sizes["compacted"],
        "omitted_prior_turns": counts["omitted"] + earlier.turns,
        "omitted_input_bytes": sizes["omitted"] + earlier.size_bytes,
        "turn_ids": [*earlier.turn_ids, *left_out],
    }
