"""A chat with a given history under a policy: its requests and messages after the user types the next message.

The history goes into the log as the messages of an earlier turn; from Enter on, the chat runs normally. Tokens are
counted as in `context --count chars4`, so that thresholds are exact.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any
from unittest.mock import patch

from codecompanion.adapters.base import ChatRequest
from codecompanion.counting.tokens import MessageCounter
from codecompanion.model.history import MessageAdded, ViewChanged
from codecompanion.model.messages import Message
from codecompanion.model.transcript_format import read_objects
from codecompanion.session.session import Session
from codecompanion.session.window import chat_model
from codecompanion.wire.events import Compacted, ContextEdited, PolicyEvent
from tests.unit.session.fakes import Bench, Reply, ScriptedAdapter, calls, says, submit

SYSTEM = "S" * 400
"""The system prompt: 100 tokens."""
ANSWER = "done"
Given = dict[str, Any]
Summariser = Callable[[ChatRequest], Reply]


def reading_files(folder: Path, number: int) -> Callable[[ChatRequest], Reply]:
    """Write `number` files, and return a model that reads them one by one and then is done."""
    for each in range(number):
        (folder / f"f{each}.txt").write_text(f"line of file {each}\n" * 150)
    steps = iter(range(number))

    def reply(request: ChatRequest) -> Reply:
        each = next(steps, None)
        return says(ANSWER) if each is None else calls((f"c{each}", "read_file", f'{{"path": "f{each}.txt"}}'))

    return reply


class Chat:
    """A chat with a scripted model; `asked` are the summary requests, `sent` the requests of the chat."""

    def __init__(self, bench: Bench, session: Session) -> None:
        self.bench, self.session = bench, session

    @property
    def asked(self) -> list[ChatRequest]:
        return [request for request in self.bench.adapter.requests if request.purpose == "summary"]

    @property
    def prompts(self) -> list[str]:
        return [request.messages[-1].text for request in self.asked]

    @property
    def sent(self) -> list[ChatRequest]:
        return [request for request in self.bench.adapter.requests if request.purpose == "chat"]

    @property
    def request(self) -> tuple[Message, ...]:
        """Return the messages of the newest request, without the system prompt."""
        return tuple(self.sent[-1].messages[1:])

    @property
    def texts(self) -> list[str]:
        return [message.text for message in self.request]

    @property
    def tiers(self) -> list[int]:
        return [event.tier for event in self.bench.of(Compacted)]

    @property
    def edits(self) -> list[ContextEdited]:
        return list(self.bench.of(ContextEdited))

    @property
    def changes(self) -> list[ViewChanged]:
        """Return every change of the view in the log."""
        return [e.payload for e in self.bench.store.load_events("chat-1") if isinstance(e.payload, ViewChanged)]

    @property
    def view(self) -> tuple[Message, ...]:
        return self.session.log.view.messages

    def named(self, name: str) -> list[dict[str, Any]]:
        """Return the fields of the policy's events of this name."""
        return [event.fields for event in self.bench.of(PolicyEvent) if event.name == name]

    def tokens(self) -> int:
        """Return the size of the next request."""
        return self.session.control.measured().tokens

    async def say(self, text: str = "now", number: int = 1) -> None:
        """Type a message and wait for the end of the turn."""
        self.session.submit(submit(text, number))
        await self.bench.idle(self.session)

    async def compact(self, instructions: str = "") -> None:
        """Type `/compact` and wait for its end."""
        self.session.compact(instructions)
        await self.bench.idle(self.session)


async def chat_with(
    root: Path,
    policy: str,
    messages: Sequence[Given],
    window: int = 1_000_000,
    *,
    summary: str | Summariser = "",
    replies: Summariser | None = None,
    tools: bool = False,
    chars4: bool = True,
    **settings: Any,
) -> Chat:
    """Return an idle chat whose log has these messages (in the form of `context`).

    `summary`: the summariser's text, "" for an empty reply; `replies` answers the chat's own requests.
    """

    def answer(request: ChatRequest) -> Reply:
        if request.purpose == "summary":
            return summary(request) if callable(summary) else says(summary)
        return replies(request) if replies is not None else says(ANSWER)

    bench = Bench(
        root,
        ScriptedAdapter("model", answer),
        window=window,
        settings={"policy": policy, "system_prompt": SYSTEM, **settings},
        tools={"default_tools": ("full",)} if tools else {"enabled": False},  # in a small window, too
    )
    counter = MessageCounter.chars4() if chars4 else MessageCounter()
    with patch.object(chat_model, "MessageCounter", lambda text: counter):
        session = await bench.open()
    read = read_objects(messages, "given").messages
    if read:
        await session.log.write(*(MessageAdded(message=message) for message in read))
    return Chat(bench, session)


def exchange(number: int, chars: int = 400) -> list[Given]:
    """Return a question and an answer of `chars` characters each."""
    question = f"question {number}: which port does the server of module {number} use? "
    answer = f"answer {number}: the server of module {number} uses port 8089, as its settings say. "
    return [
        {"role": "user", "content": question.ljust(chars, "q")[:chars]},
        {"role": "assistant", "content": answer.ljust(chars, "a")[:chars]},
    ]


BRIEF = (
    "The user asks module by module which port its server uses; every answer so far names port 8089, as the settings "
    "of the module say. Nothing was changed in any module, and no question about a server or a port is open."
)
"""A free-form summary of `talk`, as the policy `codebuddy` requests it."""


def talk(exchanges: int, chars: int = 400) -> list[Given]:
    """Return a chat of `exchanges` exchanges, each of 200 tokens in 400 characters."""
    return [message for number in range(exchanges) for message in exchange(number, chars)]


def tool_step(number: int, result: str, *, arguments: str = '{"p": "x"}', name: str = "run") -> list[Given]:
    """Return a call of a tool and its result."""
    call = {"id": f"c{number}", "type": "function", "function": {"name": name, "arguments": arguments}}
    return [
        {"role": "assistant", "content": "", "tool_calls": [call]},
        {"role": "tool", "tool_call_id": f"c{number}", "content": result},
    ]
