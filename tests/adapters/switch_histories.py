"""Generated histories of chats that changed their provider repeatedly, and each provider's knowledge of them.

They contain everything that the session puts into a view: reasoning of several origins, encrypted and readable, marked
calls, ids that repeat or that no other endpoint accepts, files, cleared results and lone surrogates. Calls have their
results, because the session ensures that; other damage is covered by the property tests of each format.
"""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from typing import Any

from hypothesis import strategies as st

from codecompanion.model.messages import (
    CallMark,
    CompactionPart,
    DocumentPart,
    ImagePart,
    Message,
    Part,
    ReasoningPart,
    TextPart,
    ToolCall,
)
from codecompanion.placeholders import TOOL_RESULT_CLEARED
from tests.adapters.switch_reading import Entry, call_entry
from tests.providers.anthropic.prompt import prompt_of
from tests.providers.anthropic.signing import Binding, demanded_block, redacted_block, thinking_block, threshold_block
from tests.providers.responses.ledger import Issued, Ledger

HOST = "a.test"
ORIGINS = tuple(
    f"{kind}@{host}" for kind in ("openai_responses", "anthropic", "openai_chat") for host in (HOST, "b.test")
)
TEXTS = st.sampled_from(["Hello.", " ", "\U0001f389 \u2028 end", "a\ud800b", "</history_summary>", '{"x": 1}'])
WORDS = st.sampled_from(["Do it.", "And\n\nthen?", "See </x> & <y>."])
RESULTS = st.sampled_from(["out", "", TOOL_RESULT_CLEARED, "a\ud800b"])
FOREIGN_IDS = st.sampled_from(
    ["call_1", "call_1", "call_1_2", "functions.read:0", "x" * 70, "fc|call", "ünï", "123456789"]
)
ARGUMENTS = st.sampled_from(["{}", '{"p": "a\\n"}', "", '{"p": ', "[1]", "null"])
NAMES = st.sampled_from(["read", "read", "fs.read", "y" * 80])
READABLE = st.sampled_from(["reasoning_content", "reasoning", "thinking", "content.thinking", "reasoning_details"])
FILES = st.sampled_from(
    [
        ImagePart(sha256="png", path="a.png", width=8, height=8),
        ImagePart(url="https://host.test/a.png"),
        ImagePart(sha256="gone", path="gone.png"),
        DocumentPart(sha256="pdf", path="doc/a.pdf"),
    ]
)


@dataclass
class History:
    """A generated history. `told` is the text of each message, `boundaries` the lengths at which requests are sent."""

    messages: list[Message] = field(default_factory=list)
    told: list[list[Entry]] = field(default_factory=list)
    boundaries: list[int] = field(default_factory=list)
    seals: dict[str, set[str]] = field(default_factory=dict)
    ledger: Ledger = field(default_factory=lambda: Ledger("salt"))
    _count: int = 0

    def number(self) -> int:
        """Return an unused number."""
        self._count += 1
        return self._count

    def add(self, entries: list[Entry], **fields: Any) -> None:
        """Append a message."""
        self.messages.append(Message(id=f"m{self.number()}", cycle=1, **fields))
        self.told.append(entries)

    def entries(self, length: int) -> list[Entry]:
        """Return the contents of the first `length` messages."""
        return [entry for entries in self.told[:length] for entry in entries]

    def seal(self, origin: str, text: str = "") -> str:
        """Return a seal of this origin: the given one, or a new one."""
        made = text or f"SEAL{self.number():04d}{'x' * 24}"
        self.seals.setdefault(origin, set()).add(made)
        return made

    def block(self, kind: str) -> CompactionPart:
        """Return a compaction by the provider at `HOST` that uses this format."""
        if kind == "responses":
            item = {"type": "compaction", "id": f"cmp_{self.number()}"}
            item["encrypted_content"] = self.seal(f"openai_responses@{HOST}")
            self.ledger.issued[item["id"]] = Issued(item, "m", 10)
            self.ledger._sealed[item["encrypted_content"]] = item["id"]
            return CompactionPart(f"openai_responses@{HOST}", json.dumps([item]))
        signed = kind == "signed"
        empty = prompt_of({"messages": [{"role": "user", "content": "x"}]})
        block = demanded_block("What was.", empty) if signed else threshold_block("What was.", encrypted=True)
        return CompactionPart(f"anthropic@{HOST}", json.dumps([block]), "What was.", on_demand=signed)


@st.composite
def histories(draw: st.DrawFn) -> History:
    """Return a history of one to three turns."""
    history = History()
    for _ in range(draw(st.integers(1, 3))):
        if draw(st.booleans()):
            part = draw(FILES)
            tag = "image" if isinstance(part, ImagePart) else "document"
            history.add(
                [("user", "A file:"), ("file",)],
                role="user",
                content=(TextPart("A file:"), TextPart(""), part),
                tag=tag,
            )
        words = draw(WORDS)
        history.add([("user", words)], role="user", content=words)
        history.boundaries.append(len(history.messages))
        for _ in range(draw(st.integers(0, 2))):
            _add_round(draw, history, calls=draw(st.integers(1, 3)))
        _add_round(draw, history, calls=0)
    return history


def _add_round(draw: st.DrawFn, history: History, calls: int) -> None:
    """Append a reply with its results; without calls it may be empty or contain only thoughts."""
    origin = draw(st.sampled_from(ORIGINS))
    writer = _Writer(draw, history, origin)
    kinds = draw(st.permutations([*["call"] * calls, *draw(st.lists(st.sampled_from(["think", "text"]), max_size=3))]))
    for kind in kinds:
        writer.write(kind)
    if not calls and draw(st.integers(0, 3)):
        writer.write("text")
    history.add(writer.entries(), role="assistant", content=tuple(writer.parts), tool_calls=tuple(writer.calls))
    for call in draw(st.permutations(writer.calls)):
        text = draw(RESULTS)
        content = (TextPart(text), ImagePart(sha256="png", width=8, height=8)) if draw(st.booleans()) and text else text
        name, arguments = call_entry("", call.name, call.arguments)[2:]
        told = ("result", name, arguments, _whole(text) or "(no output)")
        history.add([told], role="tool", content=content, tool_call_id=call.id, is_error=draw(st.booleans()))
    if calls:
        history.boundaries.append(len(history.messages))


class _Writer:
    """One reply in the dialect of its origin, recorded in the ledger of its provider."""

    def __init__(self, draw: st.DrawFn, history: History, origin: str) -> None:
        self._draw, self._history, self._origin = draw, history, origin
        self.parts: list[Part] = []
        self.calls: list[ToolCall] = []
        self._said: list[str] = []
        self._open = ""

    def entries(self) -> list[Entry]:
        """Return the contents of the reply."""
        calls = [call_entry("", call.name, call.arguments)[2:] for call in self.calls]
        return [("said", _whole("".join(self._said))), *(("call", *call) for call in calls)]

    def write(self, kind: str) -> None:
        """Write one more piece."""
        if kind == "think":
            self.parts.append(self._think())
        elif kind == "text":
            text = self._draw(TEXTS)
            self.parts.append(TextPart(text, self._draw(st.sampled_from(["", "commentary"]))))
            self._said.append(text)
            self._follow({"type": "message", "role": "assistant", "content": text})
        else:
            self.parts.append(CallMark(len(self.calls)))
            self.calls.append(self._call())

    def _think(self) -> ReasoningPart:
        history, origin = self._history, self._origin
        if self._draw(st.integers(0, 4)) == 0:
            return ReasoningPart("Hm, readable.", self._draw(READABLE))
        match origin.partition("@")[0]:
            case "openai_responses":
                encrypted = self._reasoning_item()
            case "anthropic" if self._draw(st.booleans()):
                encrypted = redacted_block(history.number(), Binding(("x",)))
                history.seal(origin, encrypted["data"])
            case "anthropic":
                encrypted = thinking_block(f"Hm {history.number()}.", Binding(("x",)))
                history.seal(origin, encrypted["signature"])
            case _:
                entry = {"type": "reasoning.encrypted", "data": history.seal(origin), "index": 0}
                return ReasoningPart("Hm.", "reasoning_details", origin, json.dumps([entry]))
        return ReasoningPart("Hm.", "reasoning_content", origin, json.dumps(encrypted))

    def _reasoning_item(self) -> dict[str, Any]:
        ledger, own = self._history.ledger, f"rs_{self._history.number()}"
        item = {"type": "reasoning", "id": own, "summary": [], "encrypted_content": self._history.seal(self._origin)}
        if self._origin.endswith(HOST):
            ledger.issued[own] = Issued(item, "m", 10)
            ledger._sealed[item["encrypted_content"]] = own
            self._open = own
        return {**item, "status": "completed"}

    def _call(self) -> ToolCall:
        name, arguments = self._draw(NAMES), self._draw(ARGUMENTS)
        taken = {call.id for call in self.calls}
        own = f"call_own{self._history.number()}"
        call_id = own if self._origin.startswith("openai_responses") else self._draw(FOREIGN_IDS)
        call_id = own if call_id in taken else call_id
        self._follow({"type": "function_call", "call_id": call_id})
        if self._origin.startswith("openai_chat") and self._draw(st.booleans()):
            seal = self._history.seal(self._origin)
            encrypted = json.dumps({"google": {"thought_signature": seal}})
            return ToolCall(call_id, name, arguments, self._origin, encrypted)
        return ToolCall(call_id, name, arguments)

    def _follow(self, item: dict[str, Any]) -> None:
        """Record `item` as the follower of the open reasoning."""
        if not self._open:
            return
        ledger, own = self._history.ledger, f"it_{self._history.number()}"
        ledger.issued[own] = Issued(item, "m", 0)
        reasoning = ledger.issued[self._open]
        ledger.issued[self._open] = Issued(reasoning.item, reasoning.model, 10, follower=own)
        self._open = ""


def _whole(text: str) -> str:
    """Return the text with lone surrogates replaced, so that it can be sent."""
    return text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
