"""Converts a chat's log for readers: messages, tool calls, and removed or summarised content.

The result contains all messages in order; messages that are no longer sent to the model are marked. Every text passes
`clean` here, once, which hides keys and the home folder; the exporter must still escape it.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Sequence

import msgspec

from codecompanion.formats.enclosing_element import without_element
from codecompanion.formats.model_name import model_name
from codecompanion.formats.outside_text import NOT_READABLE
from codecompanion.formats.plural import cleared_words, counted
from codecompanion.model import history
from codecompanion.model.history import LogEvent, MessageAdded, ViewChanged
from codecompanion.model.messages import (
    GO_ON_TAG,
    MEMORY_TAG,
    PIN_TAG,
    RULES_TAG,
    ImagePart,
    Message,
    ReasoningPart,
    is_typed_by_user,
)
from codecompanion.model.view import project
from codecompanion.reports.export.shared_chat import Conversation, ExportedMessage, Note, Picture, ToolUse
from codecompanion.reports.markdown import tokens_text

GONE = {
    "compacted": "summarised",
    "detached": "detached",
    "cleared": "removed by /clear",
    "regenerated": "replaced by a new reply",
    "repaired": "dropped",
    "rules_reread": "read again since",
}
"""Why a message is no longer sent, by the type of change that removed it."""
_EMBEDDED = ("image/png", "image/jpeg", "image/gif", "image/webp")
_NAMES = {
    "compact_summary": "summary",
    "gathered_context": "gathered code",
    MEMORY_TAG: "memory",
    PIN_TAG: "pinned instruction",
}


class Reader(msgspec.Struct, frozen=True):
    """External functions for reading: one cleans text, the other loads images (None leaves images out)."""

    clean: Callable[[str], str]
    image: Callable[[str], bytes | None] | None = None


def read_conversation(events: Sequence[LogEvent], reader: Reader, *, view_only: bool = False) -> Conversation:
    """Return the chat; `view_only`: only messages that would be sent to the model."""
    undone = _undone(events)
    view = {message.id: message for message in project(events).messages}
    if view_only:
        messages, gone = list(view.values()), dict[str, str]()
    else:
        messages = [event.payload.message for event in events if isinstance(event.payload, MessageAdded)]
        gone = _gone(events, undone)
    walk = _Walk(reader, view, gone, messages, events)
    entries = list(walk.of_messages(messages)) if view_only else list(walk.of_log(events, undone))
    stamps = [event.ts for event in events]
    return Conversation(
        title=reader.clean(chat_title(events)) or "Chat",
        models=tuple(reader.clean(name) for name in _models(events)),
        began=min(stamps, default=0.0),
        ended=max(stamps, default=0.0),
        entries=tuple(entries),
    )


def chat_title(events: Sequence[LogEvent]) -> str:
    """Return the title of the chat, or "" for a chat without messages."""
    titles = [event.payload for event in events if isinstance(event.payload, history.TitleSet)]
    given = [title for title in titles if title.by_user]
    return (given or titles)[-1].title if titles else ""


def _models(events: Sequence[LogEvent]) -> list[str]:
    """Return the models of the chat, in order of use."""
    named: dict[str, None] = {}
    for event in events:
        match event.payload:
            case history.ChatCreated(adapter=adapter, model=model) | history.ModelSet(adapter=adapter, model=model):
                named.setdefault(model_name(adapter, model))
            case _:
                pass
    return list(named)


def _undone(events: Sequence[LogEvent]) -> frozenset[str]:
    undone: set[str] = set()
    for event in events:
        if isinstance(event.payload, history.ChangeUndone):
            (undone.discard if event.payload.redone else undone.add)(event.payload.change_id)
    return frozenset(undone)


def _gone(events: Sequence[LogEvent], undone: frozenset[str]) -> dict[str, str]:
    """Map the id of each removed message to the reason for its removal."""
    gone: dict[str, str] = {}
    for event in events:
        change = event.payload
        if isinstance(change, ViewChanged) and change.change_id not in undone:
            gone.update(dict.fromkeys(change.removed, GONE.get(change.kind, "no longer sent")))
    return gone


class _Walk:
    """Converts messages and events to entries."""

    def __init__(
        self,
        reader: Reader,
        view: dict[str, Message],
        gone: dict[str, str],
        messages: Sequence[Message],
        events: Sequence[LogEvent],
    ) -> None:
        self._reader, self._view, self._gone = reader, view, gone
        self._ran = {
            event.payload.message_id: event.payload for event in events if isinstance(event.payload, history.ToolRan)
        }
        self._results = _results(messages)
        self._model = ""

    def of_log(self, events: Sequence[LogEvent], undone: frozenset[str]) -> Iterator[ExportedMessage | Note]:
        """Yield messages and events in order."""
        for event in events:
            match event.payload:
                case MessageAdded(message=message):
                    yield from self._message(message, message.ts or event.ts)
                case ViewChanged() as change:
                    yield from self._changed(change, undone)
                case history.ChatCreated(adapter=adapter, model=model) | history.ModelSet(adapter=adapter, model=model):
                    self._model = model_name(adapter, model)
                case history.TurnEnded(error=error) if error:
                    yield Note(self._clean(f"The turn failed: {error}"))
                case history.TurnEnded(reason="stopped"):
                    yield Note("Stopped by the user.")
                case history.CompactionFailed(reason=reason):
                    yield Note(self._clean(f"Compaction failed: {reason}"))
                case _:
                    pass

    def of_messages(self, messages: Sequence[Message]) -> Iterator[ExportedMessage]:
        """Yield only messages."""
        for message in messages:
            yield from self._message(message, message.ts)

    def _clean(self, text: str) -> str:
        return self._reader.clean(text)

    def _message(self, message: Message, ts: float) -> Iterator[ExportedMessage]:
        if message.role == "tool" or message.tag == GO_ON_TAG:
            return  # a result is shown with its call
        text = message.compaction.text if message.compaction else message.text
        if message.tag == RULES_TAG:
            text = without_element(text)
        yield ExportedMessage(
            who="user" if is_typed_by_user(message) else "model" if message.role == "assistant" else "attached",
            title=self._clean(self._title(message)),
            text=self._clean(text),
            ts=ts,
            tokens=message.tokens,
            state=self._state(message),
            reasoning=self._clean(_reasoning(message)),
            tools=tuple(self._tool(message, at) for at in range(len(message.tool_calls))),
            pictures=tuple(self._picture(image) for image in message.images),
        )

    def _title(self, message: Message) -> str:
        if message.role == "assistant":
            return self._model
        if is_typed_by_user(message):
            return ""
        kind = _NAMES.get(message.tag or "", (message.tag or "system prompt").replace("_", " "))
        return f"{kind}: {message.path}" if message.path else kind

    def _state(self, message: Message) -> str:
        """Return why the message is not sent unchanged, or "" if it is."""
        now = self._view.get(message.id)
        if now is None:
            return self._gone.get(message.id, "no longer sent")
        if now.edited and now.content != message.content:
            return "cut" if now.left_out else "cleared"
        return ""

    def _tool(self, message: Message, at: int) -> ToolUse:
        call, result = message.tool_calls[at], self._results.get((message.id, at))
        ran = self._ran.get(result.id) if result else None
        title = ran.title if ran and ran.title else call.name
        if ran and ran.summary and ran.summary not in ("failed", ran.status):  # the status is shown beside it
            title += f" · {ran.summary}"
        return ToolUse(
            title=self._clean(" ".join(title.split())),
            status=ran.status if ran else "error" if result and result.is_error else "ok" if result else "no result",
            arguments=self._clean(_readable(call.arguments)),
            result=None if result is None else self._clean(result.text),
            diff=self._clean(ran.change.diff) if ran and ran.change else "",
            state=self._state(result) if result else "",
            pictures=tuple(self._picture(image) for image in result.images) if result else (),
        )

    def _picture(self, image: ImagePart) -> Picture:
        label = self._clean(image.path or (image.url if not image.url.startswith("data:") else "") or "image")
        load = self._reader.image
        if load is None or image.mime not in _EMBEDDED or not image.sha256:
            return Picture(label)
        return Picture(label, image.mime, load(image.sha256))

    def _changed(self, change: ViewChanged, undone: frozenset[str]) -> Iterator[Note]:
        report, is_undone = change.report, change.change_id in undone
        sizes = ""
        if change.tokens_before or change.tokens_after:
            sizes = f" · {tokens_text(change.tokens_before)} → {tokens_text(change.tokens_after)} tokens"
        if change.kind == "edited":
            cleared = report.cleared if report.cleared is not None else len(change.replaced)
            yield Note(f"{cleared_words(cleared, report.code)} cleared{sizes}", undone=is_undone)
        elif change.kind == "compacted":
            count = counted(len(change.removed) if report.messages is None else report.messages, "message")
            by = f" · by {self._clean(report.summariser)}" if report.summariser else ""
            text = report.summary or "\n\n".join(put.message.text for put in change.inserted)
            yield Note(f"{count} summarised{sizes}{by}", self._clean(text), is_undone)
        elif change.kind == "cleared":
            yield Note(f"Everything above was removed by /clear{sizes}", undone=is_undone)


def _reasoning(message: Message) -> str:
    if isinstance(message.content, str):
        return ""
    return "\n\n".join(part.text for part in message.content if isinstance(part, ReasoningPart) and part.text)


def _results(messages: Sequence[Message]) -> dict[tuple[str, int], Message]:
    """Return the result of each call by message and position, because call ids may repeat in real chats."""
    found: dict[tuple[str, int], Message] = {}
    waiting: dict[str, tuple[str, int]] = {}
    for message in messages:
        if message.role == "assistant":
            waiting.update({call.id: (message.id, at) for at, call in enumerate(message.tool_calls)})
        elif message.role == "tool" and message.tool_call_id in waiting:
            found.setdefault(waiting.pop(message.tool_call_id), message)
    return found


def _readable(arguments: str) -> str:
    """Return the arguments of a call, one per line, or as the model wrote them if they are not an object."""
    try:
        read = json.loads(arguments)
    except NOT_READABLE:
        return arguments
    if not isinstance(read, dict):
        return arguments
    return "\n".join(
        f"{name}: {value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)}"
        for name, value in read.items()
    )
