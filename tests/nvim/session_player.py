"""The model's side of a replayed session, in the wire format of each adapter, on its strict server.

The servers judge every request as their provider would; this module supplies the answers (the recorded replies, with
our own reasoning, and summaries on request) and keeps a small record of each request instead of its megabytes: the
server's own count, the new part of the request, and whether it contains the rules and the user's words.
"""

from __future__ import annotations

import asyncio
import json
import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass, field, replace
from typing import Any, Literal
from unittest import mock

from codecompanion import prompts
from recorded_session import RecordedReply, RecordedTurn
from tests.providers.anthropic import answers as anthropic_answers
from tests.providers.anthropic import prompt as anthropic_prompt
from tests.providers.anthropic.models import SONNET
from tests.providers.anthropic.prompt import block_tokens, place_blocks
from tests.providers.anthropic.rules.request import Checked
from tests.providers.anthropic.server import AnthropicServer
from tests.providers.anthropic.thread import AnthropicServerThread
from tests.providers.chat import answers as chat_answers
from tests.providers.chat.prompt import lay_out as lay_out_chat
from tests.providers.chat.thread import ChatServerThread
from tests.providers.loopback.server import LoopbackServer, Received
from tests.providers.loopback.token_count import REPLY_TOKENS, count
from tests.providers.responses import answers as responses_answers
from tests.providers.responses.ledger import Ledger
from tests.providers.responses.prompt import lay_out as lay_out_items
from tests.providers.responses.rules import Accepted, Rules
from tests.providers.responses.server import ResponsesServerThread

MAX_OUTPUT = 8_000
RULES_MARK = "«001» is its mark"
CHUNK_CHARS = 600
_SUMMARY_MARK = prompts.load("summary_cc_9").partition("\n")[0][:60]
Texts = Sequence[tuple[str, str]]
"""Role and text of a request's messages, without tool results."""


@dataclass(frozen=True)
class Seen:
    """The server's record of one request.

    tokens: its own count of the prompt. tail_tokens: its count of the text after the last reply. compacts: the server
    compacts before it answers. missing: numbers of the user messages that the request does not contain verbatim.
    """

    purpose: Literal["chat", "summary", "compaction"]
    tokens: int
    tail_tokens: int
    compacts: bool
    missing: frozenset[int]
    rules: tuple[str, ...]


@dataclass
class Player:
    """Answers requests with the replies of the current turn. `typed` lists the user's messages so far."""

    typed: list[str] = field(default_factory=list)
    seen: list[Seen] = field(default_factory=list)
    hangs: bool = False
    """Whether the next reply begins and never ends."""
    _left: list[RecordedReply] = field(default_factory=list)
    _replies: int = 0

    def begin(self, turn: RecordedTurn) -> None:
        """Play this turn from now on."""
        self.typed.append(turn.text)
        self._left = list(turn.replies)

    def next_reply(self) -> tuple[RecordedReply, str]:
        """Return the next reply and its reasoning ("" for none), or a farewell if the recording has no more replies."""
        reasons = self._replies % 3 == 0
        self._replies += 1
        reply = self._left.pop(0) if self._left else RecordedReply("That is as far as it went.")
        words = f"Step {self._replies}: what was found so far says where to look next, and what to leave alone. "
        return reply, words * (2 + self._replies % 5) if reasons else ""

    def faults(self) -> dict[str, Any]:
        """Return the faults of the next reply."""
        if not self.hangs:
            return {}
        self.hangs = False
        return {"gate": asyncio.Event(), "gate_after": 4}

    def see(self, purpose: Any, tokens: int, tail_tokens: int, texts: Texts, *, compacts: bool = False) -> None:
        """Keep the record of a request."""
        said = {text for role, text in texts if role == "user"}
        missing = frozenset(
            number
            for number, typed in enumerate(self.typed)
            if typed not in said and not any(typed in text for text in said)
        )
        rules = tuple(text for _, text in texts if RULES_MARK in text)
        self.seen.append(Seen(purpose, tokens, tail_tokens, compacts, missing, rules))

    def summary(self) -> str:
        """Return a good summary: its nine headings with the user's own words."""
        words = "\n".join(f"- {text[:300]}" for text in self.typed)
        sections = {
            "Primary Request and Intent": "Untangle the run modes of the agent and share what they have in common.",
            "Key Technical Concepts": "TypeScript, sessions, compaction, terminal user interfaces.",
            "Files and Code Sections": "- src/main.ts: the entry\n- src/agent-session.ts: what all modes share",
            "Errors and Fixes": "- `npm run check` failed on unused imports; they were removed.",
            "Problem Solving": "The modes differ in input and output only.",
            "All User Messages": words,
            "Pending Tasks": "- What the user asks for next.",
            "Current Work": f"{self._replies} replies so far.",
            "Optional Next Step": "None",
        }
        parts = (f"{number}. **{title}**\n{text}" for number, (title, text) in enumerate(sections.items(), 1))
        return "\n\n".join(parts)


CLAUDE_RATIO, CLAUDE_MARKS = 1.10, 0.225
"""Claude's tokens per OpenAI token and per punctuation mark: a least-squares fit to the reports of recorded sessions.
"""
_MARK = re.compile(r"[!-/:-@\[-`{-~]")


def claude_tokens(text: str) -> int:
    """Return an estimate of Claude's token count for a text; the fake's own bytes / 3.6 is too inaccurate."""
    return round(CLAUDE_RATIO * count(text) + CLAUDE_MARKS * len(_MARK.findall(text)))


class ChatVoice:
    """Chat Completions."""

    adapter, model, can_compact = "openai", "gpt-4.1", False

    def __init__(self, player: Player) -> None:
        self._player = player

    def server(self, window: int, key: str) -> AbstractContextManager[LoopbackServer]:
        """Serve."""
        return ChatServerThread(key=key, models=(self.model,), window=window, default=self.answer)

    def parameters(self) -> dict[str, Any]:
        """Return the adapter's `schema` values besides the model."""
        return {}

    def answer(self, request: Received) -> Any:
        """Answer one request, in the server's thread."""
        body, player = request.json, self._player
        texts = [(message["role"], text) for message in body["messages"] for text in _texts(message.get("content"))]
        tail = _behind(body["messages"], lambda message: message["role"] == "assistant")
        tail_tokens = len(lay_out_chat({"messages": tail})) - REPLY_TOKENS
        asks_summary = any(_SUMMARY_MARK in text for _, text in texts)
        player.see("summary" if asks_summary else "chat", len(lay_out_chat(body)), tail_tokens, texts)
        if asks_summary:
            return chat_answers.counted(f"<summary>\n{player.summary()}\n</summary>", chunk_chars=CHUNK_CHARS)
        reply, reasoning = player.next_reply()
        calls = [chat_answers.Call("run_command", _arguments(call.command), id=call.id) for call in reply.calls]
        return chat_answers.counted(
            reply.text, calls=calls, reasoning=reasoning, chunk_chars=CHUNK_CHARS, **player.faults()
        )


class AnthropicVoice:
    """Anthropic Messages; `pauses`: the provider stops after its compaction and expects another request."""

    adapter, model, can_compact = "anthropic", SONNET.id, True

    def __init__(self, player: Player) -> None:
        self._player = player

    @contextmanager
    def server(self, window: int, key: str) -> Iterator[AnthropicServer]:
        """Serve."""
        models = (replace(SONNET, window=window),)
        counts = mock.patch.object(anthropic_prompt, "_text_tokens", claude_tokens)
        with counts, AnthropicServerThread(key=key, models=models, default=self.answer) as server:
            yield server

    def parameters(self) -> dict[str, Any]:
        """Return the adapter's `schema` values besides the model."""
        return {"thinking_budget": {"default": 2_000}}

    def answer(self, checked: Checked) -> Any:
        """Answer one request, in the server's thread."""
        player, plan = self._player, checked.plan
        placed = place_blocks(checked.body["messages"])
        texts = [(one.role, one.block["text"]) for one in placed if one.kind == "text"]
        last = max((one.message for one in placed if one.role == "assistant"), default=-1)
        tail_tokens = sum(block_tokens(one.block) for one in placed if one.message > last)
        asks_summary = any(_SUMMARY_MARK in text for _, text in texts)
        on_demand = checked.body.get("compaction") is not None
        purpose = "compaction" if on_demand else "summary" if asks_summary else "chat"
        player.see(purpose, plan.prompt.tokens, tail_tokens, texts, compacts=plan.compaction is not None)
        if asks_summary:
            return anthropic_answers.reply(f"<summary>\n{player.summary()}\n</summary>", chunk_chars=CHUNK_CHARS)
        if on_demand or (plan.compaction or {}).get("pause_after_compaction"):
            return anthropic_answers.reply(summary=player.summary(), chunk_chars=CHUNK_CHARS)
        reply, reasoning = player.next_reply()
        return anthropic_answers.reply(
            reply.text,
            thinking=reasoning or None,
            calls=[anthropic_answers.Call("run_command", _arguments(c.command), c.id) for c in reply.calls],
            summary=player.summary(),
            chunk_chars=CHUNK_CHARS,
            **player.faults(),
        )


class ResponsesVoice:
    """OpenAI Responses; `tells_rest`: the usage of a reply that compacted counts the remainder, not the input."""

    adapter, model, can_compact = "openai_responses", "gpt-5.1", True

    def __init__(self, player: Player, *, tells_rest: bool = False) -> None:
        self._player, self._tells_rest = player, tells_rest
        self._ledger = Ledger()

    def server(self, window: int, key: str) -> AbstractContextManager[LoopbackServer]:
        """Serve."""
        return ResponsesServerThread(
            key=key,
            rules=Rules((self.model,), window),
            ledger=self._ledger,
            default=self.answer,
            reports_compacted_size=self._tells_rest,
        )

    def parameters(self) -> dict[str, Any]:
        """Return the adapter's `schema` values besides the model."""
        return {}

    def answer(self, accepted: Accepted) -> Any:
        """Answer one request, in the server's thread."""
        player, items = self._player, accepted.items
        texts = [(item["role"], text) for item in items if "role" in item for text in _texts(item["content"])]
        tail = _behind(items, lambda item: item.get("type") != "function_call_output" and item.get("role") != "user")
        tail_tokens = len(lay_out_items({}, tail, self._ledger)) - REPLY_TOKENS
        asks_summary = any(_SUMMARY_MARK in text for _, text in texts)
        purpose = "summary" if asks_summary else "chat"
        player.see(purpose, len(accepted.prompt), tail_tokens, texts, compacts=accepted.is_over_threshold)
        if asks_summary:
            return responses_answers.reply(f"<summary>\n{player.summary()}\n</summary>", chunk_chars=CHUNK_CHARS)
        reply, reasoning = player.next_reply()
        parts: list[responses_answers.Item] = []
        if reasoning:
            parts.append(responses_answers.Thought((reasoning,), tokens=len(reasoning) // 3))
        if reply.text:
            parts.append(responses_answers.Text(reply.text))
        parts.extend(responses_answers.Call("run_command", _arguments(c.command), c.id) for c in reply.calls)
        return responses_answers.reply(items=parts, chunk_chars=CHUNK_CHARS, **player.faults())


Voice = ChatVoice | AnthropicVoice | ResponsesVoice
VOICES: tuple[type[Voice], ...] = (ChatVoice, AnthropicVoice, ResponsesVoice)


def _arguments(command: str) -> str:
    return json.dumps({"command": command}, ensure_ascii=False)


def _texts(content: Any) -> Iterable[str]:
    if isinstance(content, str):
        return [content]
    return [part["text"] for part in content or () if "text" in part]


def _behind(entries: Sequence[Any], is_reply: Callable[[Any], bool]) -> Sequence[Any]:
    """Return the entries after the last one that is part of a reply."""
    last = max((number for number, entry in enumerate(entries) if is_reply(entry)), default=-1)
    return entries[last + 1 :]
