"""The story of a chat that changes its provider: turns, the model's replies, calls and results.

A story is independent of providers: the requested provider plays the next step in its own format
(`switch_provider.py`). Stories are read from transcripts or written manually (`DEMANDING`).
"""

from __future__ import annotations

import asyncio
import json
from collections import defaultdict, deque
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from pathlib import Path
from typing import Any, Literal

from codecompanion.adapters.offline.playback import Playback
from codecompanion.errors import ToolInputInvalid
from codecompanion.model.messages import DocumentPart, ImagePart, Message, TextPart, ToolCall, ToolSpec
from codecompanion.tools.tool import Tool, ToolContext, ToolOutput
from codecompanion.tools.tool_provider import GivenTools
from codecompanion.tools.tool_registry import ToolRegistry
from codecompanion.tools.toolbox import Toolbox

Ending = Literal["", "cut", "length", "paused", "stopped", "failed"]
"""How a reply ends early: its stream breaks, it reaches the output limit, the provider pauses it (where supported), the
user stops while its tools run, or no reply arrives at all.
"""


@dataclass(frozen=True)
class StoryCall:
    """A call and its result. `id` is used by providers whose models write ids; "" creates a new one."""

    name: str
    arguments: str = "{}"
    result: str = "done"
    is_error: bool = False
    id: str = ""


@dataclass(frozen=True)
class Step:
    """One reply of the model."""

    text: str = ""
    thinking: str | None = None
    calls: tuple[StoryCall, ...] = ()
    ending: Ending = ""


@dataclass(frozen=True)
class Turn:
    """The user's attachments and message, and the replies up to the next one."""

    words: str
    steps: tuple[Step, ...]
    attached: tuple[Message, ...] = ()


Story = tuple[Turn, ...]


def read_story(path: Path, *, turns: int | None = None, longest: int = 1_000_000) -> Story:
    """Return the story of a transcript: its first `turns`, with every text truncated to `longest` characters.

    Every second reply thinks first. An unanswered user message becomes a turn whose request failed.
    """
    recording = Playback.read(str(path))
    begun: list[tuple[str, list[Step]]] = []
    replies = 0
    for message in recording.messages:
        if message.role == "user":
            begun.append((message.text[:longest], []))
        if message.role != "assistant":
            continue
        calls = [
            _recorded_call(call, recording.result_of(replies, position), longest)
            for position, call in enumerate(message.tool_calls)
        ]
        thinking = f"What does reply {replies} have to say?" if replies % 2 == 0 else None
        replies += 1
        if not begun:
            begun.append(("Begin.", []))
        begun[-1][1].append(Step(message.text[:longest], thinking, tuple(calls)))
    told = [Turn(words or "Go on.", tuple(steps) or (Step(ending="failed"),)) for words, steps in begun]
    return tuple(_distinct(told[:turns]))


def _recorded_call(call: ToolCall, result: Message | None, longest: int) -> StoryCall:
    text, is_error = (result.text[:longest], result.is_error) if result is not None else ("done", False)
    return StoryCall(call.name, call.arguments, text, is_error, call.id)


def _distinct(turns: list[Turn]) -> Iterator[Turn]:
    """Yield the turns, changed so that no two adjacent ones have the same text: the session merges them (lesson 36)."""
    for number, (before, turn) in enumerate(pairwise([Turn("", ()), *turns])):
        yield replace(turn, words=f"{turn.words} ({number})") if turn.words == before.words else turn


def _read(path: str, result: str, **fields: Any) -> StoryCall:
    return StoryCall("read", json.dumps({"path": path}), result, **fields)


IMAGE, PDF = "sha-of-the-image", "sha-of-the-pdf"
_RULES = Message(id="rules", role="user", content="Rules: use tabs.", tag="rules", path="AGENTS.md")
_SHOT = Message(
    id="shot",
    role="user",
    tag="image",
    path="shot.png",
    content=(TextPart("A screenshot:"), ImagePart(sha256=IMAGE, path="shot.png", width=8, height=8)),
)
_PLAN = Message(id="plan", role="user", tag="document", path="plan.pdf", content=(DocumentPart(sha256=PDF, pages=1),))
_FILE = Message(id="file", role="user", tag="file", path="a.py", content="The file a.py:\nprint('ä \u2028 🎉')")

DEMANDING: Story = (
    Turn(
        "What is in there?",
        (
            Step("I look.", "Two at once.", (_read("a", "A"), _read("b", "B"))),
            Step("", "And one more.", (StoryCall("grep", '{"query": "\\u00e9\\n"}', "no match", is_error=True),)),
            Step("It holds A and B.", "Enough."),
        ),
        (_RULES, _SHOT),
    ),
    Turn("Now the plan.", (Step("It says: build."),), (_PLAN, _FILE)),
    Turn(
        "Try the strange ones.",
        (
            Step("", None, (StoryCall("read", '{"path": broken', "never", id="call_1"),)),
            Step(" ", "A name that is none.", (StoryCall("functions.read:0", "{}", "never", id="call_1"),)),
            Step("Sorry.", None, (_read("a", "", id="call_1"), StoryCall("now", "", "noon"))),
            Step("", "I need not say anything."),
        ),
    ),
    Turn("Well?", (Step(""),)),
    Turn("Nothing?", (Step("All done.", ""),)),
    Turn("Write a long text.", (Step("It begins and bre", "Long, then.", ending="cut"),)),
    Turn("Again, please.", (Step("It begins, and then", ending="length"), Step(" it ends.", "On."))),
    Turn("Look for it.", (Step("I search", "Wide.", ending="paused"), Step(" and find."))),
    Turn("Read more.", (Step("", "More.", (_read("a", "A"), _read("b", "B")), "stopped"),)),
    Turn("Are you there?", (Step(ending="failed"),)),
    Turn("Hello?", (Step("Yes.", "Short."),)),
)  # fmt: skip


def long_text(tokens: int) -> str:
    """Return a text of about that many tokens, by any tokenizer."""
    return "\n".join(f"The job {k} was done by the worker in the room" for k in range(int(tokens / 13.5)))


def again(story: Story, number: int) -> Story:
    """Return the story with different words and without attachments."""
    return tuple(replace(turn, words=f"{turn.words} ({number})", attached=()) for turn in story)


@dataclass
class StoryTools:
    """The tools of a story, which return its results. `on_run` is awaited before the first call of a reply runs."""

    story: Story
    on_run: Callable[[], Any] | None = None

    def __post_init__(self) -> None:
        self._results: defaultdict[tuple[str, str], deque[StoryCall]] = defaultdict(deque)
        names = {call.name for turn in self.story for step in turn.steps for call in step.calls}
        tools = [self._tool(name) for name in sorted(names) if name.replace("_", "").isalnum()]
        self.registry, self.toolbox = ToolRegistry(tools), Toolbox([GivenTools("the story", tools)])
        self._first = self.stopping = False

    def expect(self, calls: Sequence[StoryCall]) -> list[str | None]:
        """Prepare for the calls of a reply; return their results, or None for calls that the session itself answers."""
        self._first = True
        results: list[str | None] = []
        for call in calls:
            try:
                arguments = self.registry.validate(call.name, call.arguments)
            except ToolInputInvalid:
                results.append(None)
                continue
            self._results[call.name, _key(arguments)].append(call)
            results.append(call.result or "(no output)")
        return results

    def _tool(self, name: str) -> Tool:
        async def run(arguments: dict[str, Any], context: ToolContext) -> ToolOutput:
            call = self._results[name, _key(arguments)].popleft()
            if self._first and self.on_run is not None:
                self._first = False
                await self.on_run()
            elif self.stopping:
                await asyncio.Event().wait()
            return ToolOutput(text=call.result, is_error=call.is_error)

        spec = ToolSpec(name, f"The tool {name}.", {"type": "object", "properties": {}})
        return Tool(spec=spec, run=run, title=lambda _: name, question=lambda *_: None, effect="read")


def _key(arguments: dict[str, Any]) -> str:
    return json.dumps(arguments, sort_keys=True)
