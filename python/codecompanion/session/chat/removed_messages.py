"""Finds and reads messages removed from a chat's view, for the user and the model (R-516).

The log still has all of them; messages that are unchanged in the view are not listed. Keys are positions in the log:
short, and stable across restarts.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import msgspec

from codecompanion.model.history import LogEvent, MessageAdded, ToolRan, ViewChanged
from codecompanion.model.messages import GATHERED_TAG, GO_ON_TAG, STARTING_TAGS, Message, Source, ToolCall
from codecompanion.model.provenance import sources_of, union
from codecompanion.model.view import View
from codecompanion.session.attachments.pins import title_of
from codecompanion.session.attachments.staleness import changed_since
from codecompanion.session.history.chat_log import ChatLog, recall_key
from codecompanion.session.history.recorded_title import recorded_title
from codecompanion.session.history.undo import undone_ids
from codecompanion.store.search.parsed_question import has_words
from codecompanion.store.store import Store
from codecompanion.tools.builtin import RECALL_NAME as RECALL_TOOL
from codecompanion.tools.tool import RemovedMessage

MAX_LISTED = 200
_HOW = {
    "edited": "cleared",
    "compacted": "summarised",
    "detached": "detached",
    "cleared": "removed by /clear",
    "regenerated": "replaced by a new reply",
}


class _FoundMessage(msgspec.Struct, frozen=True):
    """A removed message, its position in the log, the call it answers, that call's title, and how it was removed."""

    seq: int
    message: Message
    call: ToolCall | None
    call_title: str
    how: str

    @property
    def title(self) -> str:
        """Return the title shown in a list; it is computed on demand, because most messages are never listed."""
        return self.call_title if self.call_title or self.call is not None else _title(self.message)

    @property
    def key(self) -> str:
        return recall_key(self.seq)

    @property
    def same_as(self) -> object:
        """Return a value shared by equal results of the same call, unique for any other message."""
        if self.call is None:
            return self.seq
        return self.call.name, self.title, self.message.blob or self.message.text


class Removed:
    """The messages removed from one chat's view.

    `find` and `read` access the store and the disk: call them in a thread.
    """

    def __init__(self, store: Store, log: ChatLog, root: Callable[[], Path]) -> None:
        self._store, self._log, self._root = store, log, root

    def find(self, words: str) -> Sequence[RemovedMessage]:
        """Return the removed messages that match a question or some words, best first.

        Without words, return all, newest first. Equal results of the same call are listed once, as the newest.
        """
        # A call without text is read by its key, which is in the summary; in the list it would hide its result.
        taken = {one.seq: one for one in self._found() if one.message.text}
        groups: dict[object, list[_FoundMessage]] = {}
        for one in taken.values():
            groups.setdefault(one.same_as, []).append(one)
        if not has_words(words):
            newest = sorted(groups.values(), key=lambda group: -group[-1].seq)[:MAX_LISTED]
            return [self._listed(group[-1], times=len(group)) for group in newest]
        hits = self._store.search(
            words, self._log.chat_id, MAX_LISTED, seqs={group[-1].seq for group in groups.values()}
        )
        found = [(groups[taken[hit.seq].same_as], hit.snippet) for hit in hits]
        return [self._listed(group[-1], snippet, times=len(group)) for group, snippet in found]

    def read(self, key: str) -> tuple[RemovedMessage, str]:
        """Return a removed message and its whole text; raises `KeyError` if the key is unknown.

        The id of a tool call is also accepted as the key of its result.
        """
        taken = self._found()
        one = next((one for one in taken if one.key == key), None)
        one = one or next((one for one in taken if one.call is not None and one.call.id == key), None)
        if one is None:
            raise KeyError(key)
        return self._listed(one), self._text(one.message)

    def sources_of_stored(self, sha256: str) -> tuple[Source, ...]:
        """Return the sources of a long result's stored text. Blocks."""
        events = self._store.load_events(self._log.chat_id)
        added = (event.payload.message for event in events if isinstance(event.payload, MessageAdded))
        found = [message for message in added if message.blob == sha256]
        return union(*(sources_of(message) for message in found))

    async def listed(self, words: str) -> dict[str, Any]:
        """Return the matching messages as `{rows, total}` for the editor."""
        found = await asyncio.to_thread(self.find, words)
        return {"rows": [msgspec.to_builtins(message) for message in found], "total": len(found)}

    def _found(self) -> list[_FoundMessage]:
        return list(find_removed(self._store.load_events(self._log.chat_id), self._log.view))

    def _listed(self, one: _FoundMessage, snippet: str = "", times: int = 1) -> RemovedMessage:
        message = one.message
        return RemovedMessage(
            key=one.key,
            id=message.id,
            title=one.title,
            cycle=message.cycle or 0,
            tokens=message.tokens,
            how=one.how,
            changed=changed_since(message, one.call, self._text(message), self._root()),
            snippet=snippet,
            times=times,
            sources=sources_of(message, one.call.name if one.call else ""),
        )

    def _text(self, message: Message) -> str:
        if not message.blob:
            return text_with_calls(message)
        return self._store.read_blob(message.blob).decode("utf-8", "surrogatepass")


def find_removed(events: Sequence[LogEvent], view: View) -> Iterator[_FoundMessage]:
    """Yield the chat's messages that are not in the view word for word, in the order of the log.

    The following are excluded: rules (their files still contain them), the plugin's own messages, messages without
    text, and `recall` results.
    """
    here = {message.id: text_with_calls(message) for message in view.messages}
    how = _removal_kinds(events)
    titles = {e.payload.message_id: e.payload.title for e in events if isinstance(e.payload, ToolRan)}
    calls: dict[str, ToolCall] = {}
    for event in events:
        if not isinstance(event.payload, MessageAdded):
            continue
        message = event.payload.message
        calls.update({call.id: call for call in message.tool_calls})
        call = calls.get(message.tool_call_id or "") if message.role == "tool" else None
        if message.tag in (*STARTING_TAGS, GO_ON_TAG) or not (message.tool_calls or message.text):
            continue
        if message.id in here and here[message.id] == text_with_calls(message):
            continue
        if call is not None and call.name == RECALL_TOOL:
            continue
        title = titles.get(message.id) or (recorded_title(call) if call else "")
        yield _FoundMessage(event.seq, message, call, title, how.get(message.id, "removed"))


def text_with_calls(message: Message) -> str:
    """Return the text of a message, followed by its tool calls."""
    calls = [f"{call.name}({call.arguments})" for call in message.tool_calls]
    return "\n".join([message.text, *calls] if message.text else calls)


def _removal_kinds(events: Sequence[LogEvent]) -> dict[str, str]:
    """Return message id → how the message was removed by the newest change that is not undone."""
    how: dict[str, str] = {}
    undone = frozenset(undone_ids(events))
    for event in events:
        if isinstance(event.payload, ViewChanged) and event.payload.kind in _HOW:
            change = event.payload
            if change.change_id in undone:
                continue
            how |= dict.fromkeys(change.removed, _HOW[change.kind])
            for message in change.replaced:
                how[message.id] = "cut" if message.left_out else _HOW[change.kind]
    return how


def _title(message: Message) -> str:
    if message.tag == GATHERED_TAG:
        return f"code: {title_of(message)}"
    if message.mentioned is not None:
        return title_of(message)
    if message.tag:
        return f"{message.tag} {message.path or title_of(message)}"
    return f"{'you' if message.role == 'user' else 'reply'}: {title_of(message)}"
