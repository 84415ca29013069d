"""Defines the values of an exported chat, independent of the output format.

`reading` builds them from the log, `as_html` and `as_markdown` write them.
"""

from __future__ import annotations

from collections.abc import Iterator

import msgspec


class Picture(msgspec.Struct, frozen=True):
    """An image: its content, or None if it was left out or is lost."""

    label: str
    mime: str = ""
    content: bytes | None = None


class ToolUse(msgspec.Struct, frozen=True):
    """A tool call and its result. `state`: why the result is not sent unchanged; `diff`: the diff of a changed file."""

    title: str
    status: str
    arguments: str
    result: str | None
    diff: str = ""
    state: str = ""
    pictures: tuple[Picture, ...] = ()


class ExportedMessage(msgspec.Struct, frozen=True):
    """One message. `who`: `user`, `model`, or the type of attachment; `state` as in `ToolUse`."""

    who: str
    title: str
    text: str
    ts: float = 0.0
    tokens: int = 0
    state: str = ""
    reasoning: str = ""
    tools: tuple[ToolUse, ...] = ()
    pictures: tuple[Picture, ...] = ()


class Note(msgspec.Struct, frozen=True):
    """An event between messages: an edit, a compaction with its summary, an error."""

    text: str
    summary: str = ""
    undone: bool = False


class Conversation(msgspec.Struct, frozen=True):
    """A chat to export."""

    title: str
    models: tuple[str, ...]
    began: float
    ended: float
    entries: tuple[ExportedMessage | Note, ...]

    @property
    def messages(self) -> Iterator[ExportedMessage]:
        """Yield the messages."""
        return (entry for entry in self.entries if isinstance(entry, ExportedMessage))
