"""Plays back a recorded transcript as the model: the n-th recorded reply answers the n-th request."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from codecompanion.model.invariants import pair_tool_calls
from codecompanion.model.messages import Message, ToolCall
from codecompanion.model.transcript_format import read_bytes


class Playback:
    """A recording. `replies` are its assistant messages and `user_messages` the user's own messages, in order."""

    def __init__(self, messages: Sequence[Message]) -> None:
        self.messages = tuple(messages)
        self._places = [index for index, message in enumerate(self.messages) if message.role == "assistant"]
        self.replies = tuple(self.messages[index] for index in self._places)
        self.user_messages = tuple(message for message in self.messages if message.role == "user")
        self._pairing = pair_tool_calls(self.messages)

    @classmethod
    def read(cls, path: str) -> Playback:
        """Return the recording in a transcript file (JSON Lines).

        Raises:
            InputError: a line is invalid; the message names the file and line.
            OSError: the file cannot be read.
        """
        with Path(path).expanduser().open("rb") as lines:
            return cls(read_bytes(lines, path).messages)

    def calls(self, reply: int) -> tuple[ToolCall, ...]:
        """Return the tool calls in a reply (counted from 0)."""
        return self.replies[reply].tool_calls

    def result_of(self, reply: int, call: int) -> Message | None:
        """Return the recorded result of a call in a reply (both counted from 0), or None if there is none."""
        index = self._pairing.result_of.get((self._places[reply], call))
        return None if index is None else self.messages[index]
