"""The offline adapter: no model, no network, no key, and deterministic answers.

It carries out instructions in plain words through the actual tools (`instructions.py`), plays back a recorded
transcript as the model's side (`playback.py`), writes summaries with the given summariser, and answers everything else
with a list of its abilities. New users see this adapter first, and the demo and tests use it.
"""

from __future__ import annotations

import asyncio
import re
from collections.abc import AsyncGenerator, Awaitable, Callable, Sequence

import msgspec

from codecompanion.adapters.base import (
    Adapter,
    AdapterSettings,
    ChatRequest,
    Finished,
    ReasoningDelta,
    StopReason,
    StreamEvent,
    TextDelta,
    ToolCallStarted,
)
from codecompanion.adapters.offline.instructions import Instruction, Plan, plan
from codecompanion.adapters.offline.playback import Playback
from codecompanion.adapters.offline.report import HELP, report
from codecompanion.errors import AdapterError, InputError, RequestRejected
from codecompanion.model.messages import SUMMARY_TAG, Message, ReasoningPart, ToolCall

_SUMMARY_TOKENS = 3_000
"""Length of a summary in tokens if the request sets no limit; it gives the best recall per token (lesson 21)."""
_MODEL = "offline"
THE_END = "The recorded transcript has ended."
AFTER_COMPACTION = "I have read the summary. Tell me how to continue."


class OfflineOptions(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """The entry's `options`: a transcript to play back, the delay between chunks, the chunk size."""

    playback: str = ""
    delay_ms: float = 0.0
    chunk_chars: int = 24


class OfflineAdapter(Adapter):
    """The offline adapter (see the module). `summarise(messages, max tokens)` writes summaries in a thread."""

    origin = ""
    returns_readable_reasoning = False
    cache_lifetime_s = 0.0

    def __init__(
        self,
        settings: AdapterSettings,
        *,
        summarise: Callable[[Sequence[Message], int], str],
        options: OfflineOptions | None = None,
        playback: Playback | None = None,
        sleep: Callable[[float], Awaitable[None]] = asyncio.sleep,
    ) -> None:
        self.name = settings.name
        self.formatted_name = settings.formatted_name or settings.name
        self.default_model = settings.model or _MODEL
        self._models = settings.models
        self._options = options or OfflineOptions()
        self._summarise = summarise
        self._sleep = sleep
        self._playback = playback
        self._played: dict[str, int] = {}

    @property
    def playback(self) -> Playback | None:
        """Return the recording, for callers that need its tool results; None if there is none or it was not read."""
        return self._playback

    def played(self, chat_id: str) -> int:
        """Return the number of recorded replies that the chat has received."""
        return self._played.get(chat_id, 0)

    def render(self, request: ChatRequest) -> bytes:
        """Return the messages as JSON: the input that a model would receive."""
        return msgspec.json.encode({"model": request.model, "messages": request.messages, "tools": request.tools})

    async def stream(self, request: ChatRequest) -> AsyncGenerator[StreamEvent, None]:
        """Yield the reply in small chunks; the last event is `Finished`."""
        if request.purpose == "summary":
            reply = Message(id="", role="assistant", content=await self._summary(request))
        elif (recording := await self._recording()) is not None:
            reply = self._next_recorded(recording, request.chat_id)
        else:
            reply = _answer(request)
        for part in reply.content if not isinstance(reply.content, str) else ():
            if isinstance(part, ReasoningPart):
                for piece in self._pieces(part.text):
                    await self._pause()
                    yield ReasoningDelta(piece, part.field)
        for piece in self._pieces(reply.text):
            await self._pause()
            yield TextDelta(piece)
        for call in reply.tool_calls:
            await self._pause()
            yield ToolCallStarted(call.name)
        if request.purpose == "chat":
            self._played[request.chat_id] = self.played(request.chat_id) + 1
        stop: StopReason = "tool_calls" if reply.tool_calls else "stop"
        # A recording's usage counted its own requests, not ours: none is reported.
        yield Finished(stop, reply.tool_calls, None, request.model or self.default_model)

    async def list_models(self) -> list[str]:
        """Return the names of the offline models, which all behave alike."""
        return list(self._models) or [self.default_model]

    async def warm_up(self) -> None:
        """Read the recording, if there is one."""
        await self._recording()

    async def _summary(self, request: ChatRequest) -> str:
        subject = request.subject or request.messages
        try:
            return await asyncio.to_thread(self._summarise, subject, request.max_output_tokens or _SUMMARY_TOKENS)
        except Exception as error:
            raise AdapterError(f"{self.name}: the built-in summariser failed ({type(error).__name__}).") from error

    async def _recording(self) -> Playback | None:
        if self._playback is None and self._options.playback:
            path = self._options.playback
            try:
                self._playback = await asyncio.to_thread(Playback.read, path)
            except (InputError, UnicodeDecodeError) as error:
                raise RequestRejected(f"{self.name}: the transcript cannot be played back: {error}") from error
            except OSError as error:
                reason = (error.strerror or "unreadable").lower()
                raise RequestRejected(f"{self.name}: the transcript {path} cannot be read: {reason}.") from error
        return self._playback

    def _next_recorded(self, recording: Playback, chat_id: str) -> Message:
        number = self.played(chat_id)
        if number < len(recording.replies):
            return recording.replies[number]
        return Message(id="", role="assistant", content=THE_END)

    def _pieces(self, text: str) -> list[str]:
        """Split the text at spaces into chunks of about `chunk_chars`; joined, they are the original text."""
        size = max(1, self._options.chunk_chars)
        return re.findall(rf".{{1,{size}}}\S{{0,12}}\s?", text, re.DOTALL) if text else []

    async def _pause(self) -> None:
        await self._sleep(self._options.delay_ms / 1000)


def _answer(request: ChatRequest) -> Message:
    """Return the next step for the last user message: the next round of calls, or the report."""
    place = _last_user_message(request.messages)
    if place is None:
        return Message(id="", role="assistant", content=HELP)
    message = request.messages[place]
    if message.tag == SUMMARY_TAG:
        return Message(id="", role="assistant", content=AFTER_COMPACTION)
    wanted = plan(message.text)
    since = request.messages[place + 1 :]
    rounds_done = sum(1 for later in since if later.tool_calls)
    offered = {tool.name for tool in request.tools}
    rounds = _possible_rounds(wanted, offered)
    if rounds_done < len(rounds):
        return _call_round(rounds[rounds_done], len(request.messages))
    missing = sorted({step.tool for steps in wanted.rounds for step in steps} - offered)
    return Message(id="", role="assistant", content=report(since, wanted.not_understood, missing))


def _last_user_message(messages: Sequence[Message]) -> int | None:
    """Return the index of the user's last message, or of a summary after it, or None if there is neither."""
    for index in range(len(messages) - 1, -1, -1):
        message = messages[index]
        if message.role == "user" and message.tag in (None, SUMMARY_TAG):
            return index
    return None


def _possible_rounds(wanted: Plan, offered: set[str]) -> list[list[Instruction]]:
    rounds = [[step for step in steps if step.tool in offered] for steps in wanted.rounds]
    return [steps for steps in rounds if steps]


def _call_round(steps: Sequence[Instruction], number: int) -> Message:
    calls = tuple(
        ToolCall(f"offline_{number}_{position}", step.tool, msgspec.json.encode(step.arguments).decode())
        for position, step in enumerate(steps)
    )
    return Message(id="", role="assistant", content="", tool_calls=calls)
