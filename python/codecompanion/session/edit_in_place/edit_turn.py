"""One edit in place: the turn of a chat whose reply is also read as code for a place in a buffer.

The turn is like any other: logged, counted, cancelled, gathered for, priced. Here its events are listened to, and what
they mean for the buffer is told besides.
"""

from __future__ import annotations

import msgspec

from codecompanion.edit_in_place.place import Place
from codecompanion.edit_in_place.reply import ReplyReader, read_reply
from codecompanion.edit_in_place.request import chars_around, compose
from codecompanion.wire.events import (
    EditEnded,
    EditText,
    Event,
    ReplyFinished,
    ReplyStarted,
    Text,
    TurnFinished,
)
from codecompanion.wire.requests import EditTarget, Submit

CUT = "The reply ended before it was complete; nothing was changed."
_GOES_ON = ("length", "window", "paused")


class EditTurn:
    """Reads the reply of one turn. `instruction` is what code is gathered for."""

    def __init__(self, chat_id: str, instruction: str, target: EditTarget) -> None:
        self.instruction, self._chat_id = instruction, chat_id
        self._place = Place(
            region=target.region,
            before=target.before,
            after=target.after,
            filetype=target.filetype,
            tabs=target.tabs,
            width=target.width,
        )
        self._reader, self._stop = ReplyReader(), ""
        self.is_over = False

    def take(self, event: Event) -> tuple[Event, ...]:
        """Return what an event of the chat means for the buffer."""
        match event:
            case ReplyStarted() if self._stop in _GOES_ON:
                self._reader.go_on()
            case ReplyStarted():
                self._reader = ReplyReader()
            case Text(text=text):
                lines = self._reader.feed(text)
                if lines:
                    placement = self._reader.placement or "replace"
                    return (EditText(chat=self._chat_id, lines=lines, placement=placement),)
            case ReplyFinished(stop=stop):
                self._stop = stop
            case TurnFinished(reason="done"):
                return self._ended()
            case TurnFinished(reason=reason, error=error):
                return self._failed("" if reason == "stopped" else error)
            case _:
                pass
        return ()

    def give_up(self, error: str) -> tuple[Event, ...]:
        """Return the end of an edit whose turn ended without saying so."""
        return () if self.is_over else self._failed(error)

    def _failed(self, error: str) -> tuple[Event, ...]:
        self.is_over = True
        return (EditEnded(chat=self._chat_id, outcome="failed", error=error),)

    def _ended(self) -> tuple[Event, ...]:
        if self._stop not in ("stop", "tool_calls"):
            return self._failed(CUT)
        self.is_over = True
        reading = read_reply(self._reader.text, self._place)
        if reading.placement == "chat":
            return (EditEnded(chat=self._chat_id, outcome="answer", placement="chat"),)
        return (
            EditEnded(
                chat=self._chat_id,
                outcome="proposal",
                placement=reading.placement,
                lines=reading.lines,
                language=reading.language,
                note=reading.note,
            ),
        )


def composed(request: Submit, target: EditTarget, room_tokens: int) -> Submit:
    """Return the submit with the message that the instruction and its lines make."""
    place = Place(region=target.region, before=target.before, after=target.after, filetype=target.filetype)
    text = compose(
        request.text,
        place,
        path=target.path,
        first=target.first,
        around=chars_around(room_tokens),
        is_follow_up=target.is_follow_up,
    )
    return msgspec.structs.replace(request, text=text)
