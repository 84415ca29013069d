"""Alternates user and assistant for chat templates that require it: "conversation roles must alternate".

The templates of Mistral's and Gemma's models raise an error for two consecutive user messages, and for a user message
directly after a tool's result (huggingface.co/mistralai, `chat_template.jinja`; vLLM answers 400, llama.cpp and Ollama
500). A chat has both: attachments precede their question, and after an interrupted turn a new message follows the old
one. The log and the view keep each message (R-425); only the bytes of a request are joined here, and joined messages
stay joined as the chat grows.
"""

from __future__ import annotations

import re
from typing import Literal, NamedTuple

from codecompanion.errors import AdapterError, Overloaded, RequestRejected
from codecompanion.formats.regex import regex

Speaker = Literal["system", "user", "assistant", "calls", "tool"]
"""The role of a piece; `calls` is an assistant message with tool calls, which templates do not count as its turn."""
NO_REPLY = "[No reply: the user continued.]"
"""Placeholder assistant message between a tool result and the user's next message."""
GO_ON = "[Go on.]"
"""Placeholder user message between two assistant replies."""
EARLIER_LEFT_OUT = "[The conversation before this point was left out.]"
"""Placeholder user message for a request that would otherwise begin with the assistant."""
_BETWEEN = b"\\n\\n"
_WANTED = regex(r"roles must alternate|successive user or assistant", re.IGNORECASE)


class UserForm(NamedTuple):
    """The JSON of user messages in a wire format: `head` + content + `}`, where content is a string or a list of parts.

    `text_part`: the start of a text part, up to its string value.
    """

    head: bytes
    text_part: bytes
    no_reply: bytes
    go_on: bytes
    earlier: bytes

    def joined(self, pieces: list[bytes]) -> bytes:
        """Join user messages into one; text alone remains a string, the only form that some templates accept."""
        if len(pieces) == 1:
            return pieces[0]
        contents = [piece[len(self.head) : -1] for piece in pieces]
        if all(content.startswith(b'"') for content in contents):
            return self.head + b'"' + _BETWEEN.join(content[1:-1] for content in contents) + b'"}'
        parts = [content[1:-1] if content.startswith(b"[") else self.text_part + content + b"}" for content in contents]
        return self.head + b"[" + b",".join(parts) + b"]}"


def user_form(text_type: str, message: str = "") -> UserForm:
    """Return the form for a wire format whose text parts have type `text_type`; `message` begins each message."""
    start = b"{" + message.encode() + b'"role":'
    return UserForm(
        head=start + b'"user","content":',
        text_part=b'{"type":"' + text_type.encode() + b'","text":',
        no_reply=start + b'"assistant","content":"' + NO_REPLY.encode() + b'"}',
        go_on=start + b'"user","content":"' + GO_ON.encode() + b'"}',
        earlier=start + b'"user","content":"' + EARLIER_LEFT_OUT.encode() + b'"}',
    )


def wants_alternation(said: str) -> bool:
    """Return whether an endpoint's error message reports that the order of roles was refused."""
    return _WANTED.search(said) is not None


def is_refusal(error: AdapterError) -> bool:
    """Return whether the error means that the request was refused; llama.cpp reports a template error as a 500."""
    return isinstance(error, RequestRejected) or (isinstance(error, Overloaded) and wants_alternation(str(error)))


class Alternation:
    """Makes user and assistant messages alternate, with tool results between them, as pieces are appended to the chat.

    Each piece is one message, except that an assistant piece may be several items. When messages are added, a request
    begins with the same bytes as before, except for the end of a user message that continues.
    """

    def __init__(self, form: UserForm) -> None:
        self._form = form
        self._said: list[bytes] = []
        self._turn: Literal["", "user", "assistant"] = ""

    def add(self, speaker: Speaker, piece: bytes) -> list[bytes]:
        """Append a non-empty piece; return the pieces that are final."""
        done: list[bytes] = []
        if speaker == "user":
            if self._turn == "assistant" and not self._said:
                done.append(self._form.no_reply)
            self._said.append(piece)
            self._turn = "assistant"
            return done
        if self._said:
            done.append(self._form.joined(self._said))
            self._said = []
        if speaker in ("assistant", "calls"):
            if self._turn != "assistant":
                done.append(self._form.go_on if self._turn else self._form.earlier)
            self._turn = "user" if speaker == "assistant" else "assistant"
        done.append(piece)
        return done

    def open_piece(self) -> bytes:
        """Return the trailing user message, which the next piece may extend; empty if there is none."""
        return self._form.joined(self._said) if self._said else b""
