"""The signatures of the fake Messages server, by which it detects whether a block was sent back unchanged.

A seal is base64 of JSON and its HMAC: opaque to a client, readable by every server of this kind (the secret is a
constant), so a session can continue after a restart. The seal of a thinking block contains its text, the preceding
conversation and the previous thinking block ("preserved thinking"); the seal of a compaction block contains its text,
its tool changes and the conversation it replaces.
"""

from __future__ import annotations

import base64
import binascii
import hashlib
import hmac
import json
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from tests.providers.anthropic.prompt import THINKING_KINDS, Block, Placed, Prompt, canonical

_SECRET = b"the loopback provider's secret"


def sealed(content: Mapping[str, Any]) -> str:
    """Return the signed and encoded content."""
    text = json.dumps(content, sort_keys=True).encode()
    return base64.b64encode(hmac.digest(_SECRET, text, "sha256") + text).decode()


def unsealed(seal: object) -> dict[str, Any] | None:
    """Return the sealed content, or None if it is forged or was changed."""
    try:
        raw = base64.b64decode(str(seal), validate=True)
        if not hmac.compare_digest(hmac.digest(_SECRET, raw[32:], "sha256"), raw[:32]):
            return None
        content = json.loads(raw[32:])
    except (binascii.Error, ValueError):
        return None
    return content if isinstance(content, dict) else None


def digest(text: str) -> str:
    """Return a short digest of a text."""
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()[:32]


def thinking_block(text: str, binding: Binding) -> dict[str, Any]:
    """Return a signed thinking block for this place in the conversation."""
    seal = sealed({"thinking": digest(text), "before": binding.prefixes[0], "previous": binding.previous})
    return {"type": "thinking", "thinking": text, "signature": seal}


def redacted_block(number: int, binding: Binding) -> dict[str, Any]:
    """Return a redacted thinking block for this place in the conversation."""
    seal = sealed({"redacted": number, "before": binding.prefixes[0], "previous": binding.previous})
    return {"type": "redacted_thinking", "data": seal}


def threshold_block(summary: str, *, encrypted: bool) -> dict[str, Any]:
    """Return a compaction block as threshold compaction makes it: without a signature (recorded traffic)."""
    block: dict[str, Any] = {"type": "compaction", "content": summary}
    return block | {"encrypted_content": sealed({"summary": digest(summary)})} if encrypted else block


def demanded_block(summary: str, prompt: Prompt) -> dict[str, Any]:
    """Return a signed compaction block, as on-demand compaction creates it for this prompt."""
    stands_for = {"start": start_of(prompt), "stands_for": list(binding_at_end(prompt).prefixes)}
    seal = sealed({"summary": digest(summary), "tool_changes": digest("null"), **stands_for})
    return {"type": "compaction", "content": summary, "signature": seal}


def thinking_seal(block: Block) -> dict[str, Any] | None:
    """Return the content of a thinking block's seal if it matches the block."""
    if block["type"] == "redacted_thinking":
        content = unsealed(block["data"])
        return content if content and "redacted" in content else None
    content = unsealed(block["signature"])
    return content if content and content.get("thinking") == digest(block["thinking"]) else None


def thinking_id(block: Block) -> str:
    """Return the identifier of a thinking block."""
    return digest(str(block.get("signature") or block.get("data")))


@dataclass(frozen=True)
class Binding:
    """A position in a conversation: digests of everything before it, and the id of the previous thinking block.

    More than one prefix is valid after a signed compaction block: the conversation may begin with it, or include the
    replaced messages (the turns kept after it were written before the compaction) as long as the system prompt and
    tools are those with which the block was created.
    """

    prefixes: tuple[str, ...]
    previous: str = ""

    def after(self, placed: Placed, start: str) -> Binding:
        """Return the binding after one more block."""
        if placed.kind in THINKING_KINDS:
            return Binding(self.prefixes, thinking_id(placed.block))
        text = f"{placed.role} {canonical(placed.block)}"
        if placed.is_summary:
            seal = unsealed(placed.block.get("signature")) or {}
            older = seal.get("stands_for", ()) if seal.get("start") == start else ()
            return Binding((digest(f"{start}\n{text}"), *older))
        if placed.kind == "compaction":
            return self
        return Binding(tuple(digest(f"{prefix}\n{text}") for prefix in self.prefixes), self.previous)


def start_of(prompt: Prompt) -> str:
    """Return the digest of the part before all messages."""
    return digest(canonical([prompt.tools, prompt.system]))


def bindings(prompt: Prompt) -> Iterator[tuple[Placed, Binding]]:
    """Yield every block with the binding before it."""
    start = start_of(prompt)
    binding = Binding((start,))
    for placed in prompt.blocks:
        yield placed, binding
        binding = binding.after(placed, start)


def binding_at_end(prompt: Prompt, further: Iterable[Placed] = ()) -> Binding:
    """Return the binding after a prompt and the messages added since."""
    start = start_of(prompt)
    binding = Binding((start,))
    for placed in (*prompt.blocks, *further):
        binding = binding.after(placed, start)
    return binding
