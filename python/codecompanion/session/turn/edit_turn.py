"""Implements an edit in place: a chat turn whose reply is also parsed as code for a region of a buffer.

The turn is like any other: logged, counted, cancellable, priced, and with gathered code. This module listens to its
events and turns the reply into text for the buffer.
"""

from __future__ import annotations

from codecompanion.edit_in_place.indent_arriving_code import ArrivingCode
from codecompanion.edit_in_place.read_reply import ReplyReader, read_reply
from codecompanion.wire.events import (
    EditEnded,
    EditText,
    Event,
    ReplyFinished,
    ReplyStarted,
    Text,
    TurnFinished,
)
from codecompanion.wire.requests import EditTarget

CUT = "The reply was incomplete."
NOTHING = "No edit was produced; see :CodeCompanion log."
_GOES_ON = ("length", "window", "paused")


class EditTurn:
    """Converts the reply of one turn into an edit."""

    def __init__(self, chat_id: str, target: EditTarget, instruction: str) -> None:
        self._chat_id, self._target, self._instruction = chat_id, target, instruction
        self._reader, self._code, self._stop = ReplyReader(), ArrivingCode(target, instruction), ""
        self._outcome: EditEnded | None = None

    def take(self, event: Event) -> EditText | None:
        """Handle an event of the chat; return the new buffer text, if any."""
        if self._outcome is not None:
            return None  # belongs to the next turn
        match event:
            case ReplyStarted() if self._stop in _GOES_ON:
                self._reader.expect_continuation()
            case ReplyStarted():
                self._reader, self._code = ReplyReader(), ArrivingCode(self._target, self._instruction)
            case Text(text=text):
                lines = self._reader.feed(text)
                placement = self._reader.placement or "replace"
                news = self._code.take(lines, placement) if lines else None
                if news is not None:
                    return EditText(chat=self._chat_id, kept=news.kept, lines=news.lines, placement=placement)
            case ReplyFinished(stop=stop):
                self._stop = stop
            case TurnFinished(reason="done"):
                self._outcome = self._read()
            case TurnFinished(reason=reason, error=error):
                self._outcome = self._failed("" if reason == "stopped" else error)
            case _:
                pass
        return None

    def end(self) -> EditEnded:
        """Return the outcome once the chat is idle; the next edit may follow immediately."""
        return self._outcome or self._failed(NOTHING)

    def _failed(self, error: str) -> EditEnded:
        return EditEnded(chat=self._chat_id, outcome="failed", error=error)

    def _read(self) -> EditEnded:
        if self._stop not in ("stop", "tool_calls"):
            return self._failed(CUT)
        reading = read_reply(self._reader.text, self._target, self._instruction)
        if reading.placement == "chat":
            return EditEnded(chat=self._chat_id, outcome="answer", placement="chat", note=reading.note)
        return EditEnded(
            chat=self._chat_id,
            outcome="proposal",
            placement=reading.placement,
            lines=reading.lines,
            language=reading.language,
            note=reading.note,
        )
