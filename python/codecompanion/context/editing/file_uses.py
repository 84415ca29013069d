"""Tracks which message read, edited or named which file, reading only new messages (lesson 24).

`FileUses` is a fold: given the messages of a chat before each request, it reads only messages after the last one seen.
After an edit of the view, it rebuilds its tables but reads only changed messages again.
"""

from __future__ import annotations

import posixpath

import msgspec

from codecompanion.context.editing.file_reads import FileUse, file_use, names_in
from codecompanion.counting.size_classes import encrypted_tokens
from codecompanion.model.fold import grown_from
from codecompanion.model.invariants import CallPosition
from codecompanion.model.messages import Message, ReasoningPart, is_protected, is_question_context, is_typed_by_user

MIN_LONG_ARGUMENTS = 400
"""Minimum length of call arguments that are worth replacing with a placeholder."""
_MAX_WORDS_CHARS = 20_000
"""Maximum length of a user message that describes the work; a longer message counts as pasted text."""


class _Seen(msgspec.Struct, frozen=True):
    """The facts extracted from one message: the file uses of its calls, and the file names in its text."""

    message: Message
    uses: tuple[FileUse | None, ...]
    names: frozenset[str]


class FileUses:
    """The file uses of a list of messages; numbers are message indexes, paths are normalised, names are base names.

    `before[i]`: tokens before message i; the last entry is the total. `of_result`: the file use of a result.
    `last_read`, `last_edited` (by path), `named_by_user`, `named_by_model` (by name): the newest positions.
    `last_shown`: the newest result that shows the whole file. `last_typed`: the user's newest message, or -1.
    `replies`: the number of model replies. `open`: messages that can be shortened, in order: uncleared results and
    attachments of questions, and replies with long arguments. `thoughts`: by turn, the replies with reasoning and its
    estimated tokens; in `bound` turns the reasoning must stay, because other parts of the turn depend on it.
    """

    def __init__(self) -> None:
        self._seen: dict[str, _Seen] = {}
        self._begin()

    def _begin(self) -> None:
        self.messages: tuple[Message, ...] = ()
        self.before = [0]
        self.of_result: dict[int, FileUse] = {}
        self.call_of: dict[int, CallPosition] = {}
        self.last_read: dict[str, int] = {}
        self.last_edited: dict[str, int] = {}
        self.last_shown: dict[str, int] = {}
        self.named_by_user: dict[str, int] = {}
        self.named_by_model: dict[str, int] = {}
        self.last_typed = -1
        self.replies = 0
        self.open: dict[int, None] = {}
        self.thoughts: dict[int, dict[int, int]] = {}
        self.bound: set[int] = set()
        self._newest: dict[str, dict[str, int]] = {}
        self._waiting: dict[str, list[CallPosition]] = {}

    def of(self, messages: tuple[Message, ...]) -> FileUses:
        """Update the uses to exactly these messages; return `self`."""
        known = grown_from(self.messages, messages)
        if known < len(self.messages):
            kept = {message.id for message in messages}
            self._seen = {name: seen for name, seen in self._seen.items() if name in kept}
            self._begin()
        self.messages = messages
        for index in range(known, len(messages)):
            self._take(index, messages[index])
        return self

    def is_newest(self, index: int) -> bool:
        """Return whether the result shows a file and no later result supersedes it."""
        use = self.of_result.get(index)
        return use is not None and self._newest.get(use.path, {}).get(use.part) == index

    def last_touched(self, index: int) -> int:
        """Return the position at which the file that a result shows was last read, edited or named by the model."""
        use = self.of_result[index]
        name = posixpath.basename(use.path)
        places = (self.last_read.get(use.path), self.last_edited.get(use.path), self.named_by_model.get(name))
        return max([index, *(place for place in places if place is not None)])

    def _take(self, index: int, message: Message) -> None:
        self.before.append(self.before[-1] + message.tokens)
        seen = self._seen.get(message.id)
        if seen is None or seen.message is not message:
            seen = self._seen[message.id] = _read(message)
        if message.role == "user":
            if is_typed_by_user(message):
                self.last_typed = index
                self.named_by_user.update(dict.fromkeys(seen.names, index))
            elif is_question_context(message) and not (message.edited or message.compacted or is_protected(message)):
                self.open[index] = None
        elif message.role == "assistant":
            self.named_by_model.update(dict.fromkeys(seen.names, index))
            self._take_reply(index, message)
        elif message.role == "tool":
            self._take_result(index, message)

    def _take_reply(self, index: int, message: Message) -> None:
        for position, call in enumerate(message.tool_calls):
            self._waiting.setdefault(call.id, []).append((index, position))
        if any(len(call.arguments) > MIN_LONG_ARGUMENTS for call in message.tool_calls):
            self.open[index] = None
        self.replies += 1
        cycle, parts = message.cycle or 0, () if isinstance(message.content, str) else message.content
        thoughts = sum(_guess(part) for part in parts if isinstance(part, ReasoningPart))
        if thoughts and len(parts) + len(message.tool_calls) > 1:  # a reply of reasoning alone would be empty
            self.thoughts.setdefault(cycle, {})[index] = thoughts
        if message.compaction or is_protected(message) or any(call.encrypted for call in message.tool_calls):
            self.bound.add(cycle)

    def _take_result(self, index: int, message: Message) -> None:
        waiting = self._waiting.get(message.tool_call_id or "")
        if not waiting:
            return
        newest = waiting[-1][0]
        at = self.call_of[index] = waiting.pop(next(k for k, place in enumerate(waiting) if place[0] == newest))
        is_whole = not (message.edited or message.compacted)
        if is_whole and not is_protected(message):
            self.open[index] = None
        use = self._seen[self.messages[at[0]].id].uses[at[1]]
        if use is None or message.is_error:
            return
        self.of_result[index] = use
        if use.access == "edited":
            self.last_edited[use.path] = index
            return
        self.last_read[use.path] = index
        if not is_whole:
            return
        if use.part:
            self._newest.setdefault(use.path, {})[use.part] = index
        else:
            self._newest[use.path] = {"": index}
            self.last_shown[use.path] = index


def _read(message: Message) -> _Seen:
    says = message.role == "assistant" or (is_typed_by_user(message) and len(message.text) <= _MAX_WORDS_CHARS)
    names = names_in(message.text) if says else frozenset()
    return _Seen(message, tuple(file_use(call) for call in message.tool_calls), names)


def _guess(part: ReasoningPart) -> int:
    return max(len(part.text) // 4, encrypted_tokens(len(part.encrypted)))
