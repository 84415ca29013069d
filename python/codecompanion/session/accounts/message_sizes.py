"""Learns from usage reports how many tokens each message adds to a prompt; part of the ctx meter.

A message is identified by its id and estimate: an edited message counts as new, and undoing the edit restores the old
size. Encrypted reasoning is sent with every request, but many models read only the reasoning of the current turn
(OpenAI's before GPT-5.6, Claude before 4.5): whether a model does so is learned from the first turn after one with
reasoning.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import msgspec

from codecompanion.counting.tokens import MessageCounter
from codecompanion.model.fold import Fold
from codecompanion.model.messages import Message

Key = tuple[str, int]


class Split(msgspec.Struct, frozen=True):
    """Messages split into those with known sizes and `new` ones that no report covers yet.

    `known`: tokens of the known messages, of which `past_thoughts` are reasoning of earlier turns and `thoughts`
    reasoning of the current turn. `estimate` and `marks`: tokens and punctuation count of the new messages.
    `all_tokens` and `non_text_tokens`: estimates for all messages, and for their non-text parts (images, pages,
    reasoning).
    """

    known: float = 0.0
    new: Mapping[Key, Message] = {}
    estimate: int = 0
    marks: int = 0
    all_tokens: int = 0
    non_text_tokens: int = 0
    past_thoughts: float = 0.0
    thoughts: float = 0.0


class MessageSizes:
    """Message sizes learned from one model's reports; sizes of other messages are estimated."""

    def __init__(self, counter: MessageCounter) -> None:
        self._estimate, self.non_text_tokens, self._count_marks = (
            counter.message,
            counter.non_text_tokens,
            counter.marks,
        )
        self._sizes: dict[Key, float] = {}
        self._thoughts: dict[Key, float] = {}
        self._marks: dict[Key, int] = {}
        self.forgets_thoughts = False
        """Whether the model ignores reasoning of earlier turns."""
        self._split = Fold(Split(), self._read_new)

    def key(self, message: Message) -> Key:
        """Return the key that identifies the message."""
        return message.id, message.tokens or self._estimate(message)

    def marks(self, key: Key, message: Message) -> int:
        """Return the punctuation count of a message without a report, cached."""
        if key not in self._marks:
            self._marks[key] = self._count_marks(message)
        return self._marks[key]

    def split(self, messages: Sequence[Message]) -> Split:
        """Split the messages by known and unknown size; if messages were only appended, only the new ones are read."""
        return self._split.of(messages)

    def _read_new(self, split: Split, messages: tuple[Message, ...]) -> Split:
        known, new, past, thoughts = split.known, dict(split.new), split.past_thoughts, split.thoughts
        estimate, marks = split.estimate, split.marks
        everything, non_text = split.all_tokens, split.non_text_tokens
        for message in messages:
            key = self.key(message)
            size = self._sizes.get(key)
            everything += key[1]
            non_text += self.non_text_tokens(message)
            if size is None:
                if key not in new:
                    estimate, marks = estimate + key[1], marks + self.marks(key, message)
                new[key] = message
            else:
                known += size
                thoughts += self._thoughts.get(key, 0.0)
            if message.role == "user" or (message.role == "assistant" and not message.tool_calls):
                # The last reply of a turn: the next message belongs to another turn.
                past, thoughts = past + thoughts, 0.0
        return Split(known, new, estimate, marks, everything, non_text, past, thoughts)

    def read(self, split: Split) -> float:
        """Return how many of the known tokens the model reads."""
        return split.known - split.past_thoughts if self.forgets_thoughts else split.known

    def set(self, message: Message, size: float, thoughts: float = 0.0) -> None:
        """Record the size of a message; `thoughts`: the part of it that is reasoning."""
        key = self.key(message)
        if key in self._sizes or key in self._split.result.new:
            self._split.forget()
        self._sizes[key] = size
        if thoughts:
            self._thoughts[key] = thoughts

    def add(self, message: Message, size: float, thoughts: float = 0.0) -> None:
        """Add to the recorded size of a message."""
        self.set(message, self._sizes.get(self.key(message), 0.0) + size, thoughts)

    def share_out(self, split: Split, sizes: Mapping[Key, float]) -> None:
        """Record the sizes of the messages that were new in the last split."""
        self._sizes.update(sizes)
        self._marks.clear()
        known = split.known + sum(sizes.values())
        self._split.result = msgspec.structs.replace(split, known=known, new={}, estimate=0, marks=0)

    def scale(self, messages: Sequence[Message], factor: float) -> None:
        """Scale the known sizes of these messages."""
        for key in map(self.key, messages):
            if key in self._sizes:
                self._sizes[key] *= factor
                self._thoughts[key] = factor * self._thoughts.get(key, 0.0)
        self._split.forget()

    def learn_forgetting(self, split: Split, read: float, doubt: float) -> None:
        """Learn, at the first request of a turn, whether the model ignores earlier reasoning.

        `read`: the number of known tokens that the report counted. Nothing is learned unless the reasoning of earlier
        turns is larger than `doubt`, the uncertainty of the count.
        """
        if split.past_thoughts > doubt:
            kept, forgotten = abs(read - split.known), abs(read - split.known + split.past_thoughts)
            self.forgets_thoughts = forgotten < kept
