"""A request as parsed by the fake Messages server: content blocks in order, merged turns, and its own token count.

The count is bytes / 3.6 plus a small overhead per block, and images count by size. No tokenizer is used, so the count
is the same everywhere and independent of the plugin's.
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

from tests.providers.anthropic.images import image_tokens

Block = Mapping[str, Any]

BYTES_PER_TOKEN = 3.6
BLOCK_TOKENS = 4
"""Token overhead of a block in addition to its text."""
TOOL_SYSTEM_TOKENS = 346
"""Tokens of the prompt that the provider adds if there are tools."""
THINKING_KINDS = ("thinking", "redacted_thinking")


@dataclass(frozen=True)
class Placed:
    """A content block and its position in the request; `message` and `index` are 0-based."""

    role: str
    message: int
    index: int
    block: Block

    @property
    def kind(self) -> str:
        """Return the block's type."""
        return str(self.block["type"])

    @property
    def path(self) -> str:
        """Return the block's position in the notation used by error messages."""
        return f"messages.{self.message}.content.{self.index}"

    @property
    def is_summary(self) -> bool:
        """Return whether this is a compaction block that did not fail; blocks before it are ignored."""
        return self.kind == "compaction" and self.block.get("content") is not None

    @property
    def inner(self) -> tuple[Block, ...]:
        """Return the blocks inside a tool result."""
        content = self.block.get("content")
        return tuple(content) if self.kind == "tool_result" and isinstance(content, list) else ()


@dataclass(frozen=True)
class Turn:
    """Consecutive messages of one role, as the provider merges them."""

    role: str
    blocks: tuple[Placed, ...]

    @property
    def message(self) -> int:
        """Return the index of the turn's last message."""
        return self.blocks[-1].message


def place_blocks(messages: Sequence[Mapping[str, Any]]) -> tuple[Placed, ...]:
    """Return all content blocks; a string is one text block."""
    placed: list[Placed] = []
    for number, message in enumerate(messages):
        content = message.get("content", ())
        blocks = [{"type": "text", "text": content}] if isinstance(content, str) else content
        placed.extend(Placed(message["role"], number, index, block) for index, block in enumerate(blocks))
    return tuple(placed)


def merge_turns(placed: Iterable[Placed]) -> list[Turn]:
    """Return the turns: consecutive blocks of the same role."""
    turns: list[Turn] = []
    for block in placed:
        if turns and turns[-1].role == block.role:
            turns[-1] = replace(turns[-1], blocks=(*turns[-1].blocks, block))
        else:
            turns.append(Turn(block.role, (block,)))
    return turns


@dataclass(frozen=True)
class Prompt:
    """The model's input, in this order: `tools`, `system`, `blocks`. `salt` changes the cache key of the messages."""

    tools: tuple[Block, ...]
    system: tuple[Block, ...]
    blocks: tuple[Placed, ...]
    salt: str = ""
    automatic: Block | None = None
    """The top-level `cache_control`: a breakpoint at the last block that can have one."""

    @cached_property
    def tokens(self) -> int:
        """Return the server's own count."""
        tools = sum(_text_tokens(canonical(tool)) for tool in self.tools)
        system = sum(block_tokens(block) for block in self.system)
        extra = TOOL_SYSTEM_TOKENS if self.tools else 0
        return tools + system + extra + sum(block_tokens(placed.block) for placed in self.blocks)

    def from_last_summary(self) -> Prompt:
        """Return the prompt from its last compaction block on."""
        starts = [number for number, placed in enumerate(self.blocks) if placed.is_summary]
        return replace(self, blocks=self.blocks[starts[-1] :]) if starts else self


def prompt_of(body: Mapping[str, Any]) -> Prompt:
    """Return the complete prompt of a request."""
    system = body.get("system", ())
    blocks = place_blocks(body["messages"])
    salt = canonical({key: body[key] for key in ("tool_choice", "thinking") if key in body})
    has_images = any(placed.kind == "image" or any(b["type"] == "image" for b in placed.inner) for placed in blocks)
    return Prompt(
        tools=tuple(body.get("tools", ())),
        system=({"type": "text", "text": system},) if isinstance(system, str) else tuple(system),
        blocks=blocks,
        salt=f"{salt} images={has_images}",
        automatic=body.get("cache_control"),
    )


def block_tokens(block: Block) -> int:
    """Return the token cost of a content block; a failed compaction block costs nothing."""
    match block["type"]:
        case "image":
            return BLOCK_TOKENS + image_tokens(block["source"])
        case "tool_result" if isinstance(block.get("content"), list):
            return BLOCK_TOKENS + sum(block_tokens(inner) for inner in block["content"])
        case "tool_result":
            text = block.get("content") or ""
        case "tool_use":
            text = block["name"] + canonical(block["input"])
        case "compaction":
            text = block.get("content") or ""
            return BLOCK_TOKENS + _text_tokens(text) if text else 0
        case "text" | "thinking" as kind:
            text = block[kind]
        case _:
            text = canonical(block)
    return BLOCK_TOKENS + _text_tokens(text)


def text_tokens(text: str) -> int:
    """Return the number of output tokens of a text."""
    return _text_tokens(text)


def canonical(value: Any) -> str:
    """Return the JSON of a value with sorted keys and without `cache_control`, which changes nothing in a prompt."""
    return json.dumps(_without_markers(value), sort_keys=True, ensure_ascii=False, separators=(",", ":"))


def _without_markers(value: Any) -> Any:
    if isinstance(value, Mapping):
        return {key: _without_markers(item) for key, item in value.items() if key != "cache_control"}
    return [_without_markers(item) for item in value] if isinstance(value, list | tuple) else value


def _text_tokens(text: str) -> int:
    return math.ceil(len(text.encode("utf-8", "surrogatepass")) / BYTES_PER_TOKEN)
