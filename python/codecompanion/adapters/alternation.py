"""User and assistant by turns, for chat templates that insist on it: "conversation roles must alternate".

The templates of Mistral's and Gemma's models raise an error for two user messages in a row, and for a user directly
after a tool's result (huggingface.co/mistralai, `chat_template.jinja`; vLLM answers 400, llama.cpp and Ollama 500). A
chat has both: what is attached stands before its question, and after an interrupted turn a new message stands next to
the old one. The log and the view keep each message (R-425); only the bytes of a request are joined here, and what was
joined stays so as the chat grows.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Literal, NamedTuple

from codecompanion.errors import AdapterError, Overloaded, RequestRejected
from codecompanion.formats.regex import regex

Speaker = Literal["system", "user", "assistant", "calls", "tool"]
"""Who speaks in a piece; `calls` is an assistant that called tools, which templates do not count as its turn."""
NO_REPLY = "[No reply: the user went on.]"
"""Stands for the assistant between a tool's result and the user's next words."""
GO_ON = "[Go on.]"
"""Stands for the user between two replies of an assistant."""
EARLIER_LEFT_OUT = "[The conversation before this point was left out.]"
"""Stands for the user where a request begins with an assistant."""
_BETWEEN = b"\\n\\n"
_WANTED = regex(r"roles must alternate|successive user or assistant", re.IGNORECASE)


class UserForm(NamedTuple):
    """How a wire format writes what the user says: `head` + content + `}`; content is a JSON string or a list of parts.

    `text_part`: a part of text, up to its string.
    """

    head: bytes
    text_part: bytes
    no_reply: bytes
    go_on: bytes
    earlier: bytes

    def joined(self, pieces: list[bytes]) -> bytes:
        """Return several user messages as one; only text stays a string, which is all that some templates take."""
        if len(pieces) == 1:
            return pieces[0]
        contents = [piece[len(self.head) : -1] for piece in pieces]
        if all(content.startswith(b'"') for content in contents):
            return self.head + b'"' + _BETWEEN.join(content[1:-1] for content in contents) + b'"}'
        parts = [content[1:-1] if content.startswith(b"[") else self.text_part + content + b"}" for content in contents]
        return self.head + b"[" + b",".join(parts) + b"]}"


def user_form(text_type: str, message: str = "") -> UserForm:
    """Return the form of a format whose text parts have this type; `message` is what its messages begin with."""
    start = b"{" + message.encode() + b'"role":'
    return UserForm(
        head=start + b'"user","content":',
        text_part=b'{"type":"' + text_type.encode() + b'","text":',
        no_reply=start + b'"assistant","content":"' + NO_REPLY.encode() + b'"}',
        go_on=start + b'"user","content":"' + GO_ON.encode() + b'"}',
        earlier=start + b'"user","content":"' + EARLIER_LEFT_OUT.encode() + b'"}',
    )


def wants_alternation(said: str) -> bool:
    """Return whether an endpoint refuses a request in these words because of whose turn it was."""
    return _WANTED.search(said) is not None


def is_refusal(error: AdapterError) -> bool:
    """Return whether an error is a refusal to learn from; a template that raises is a failure (500) of llama.cpp's."""
    return isinstance(error, RequestRejected) or (isinstance(error, Overloaded) and wants_alternation(str(error)))


def alternate(spoken: Iterable[tuple[Speaker, bytes]], form: UserForm) -> list[bytes]:
    """Return the pieces of a request so that user and assistant speak by turns, tools in between; empty ones are gone.

    Each piece is one message, apart from an assistant's, which may be several items. A request that is longer by new
    messages begins with the same bytes, but for the end of a user message that goes on.
    """
    done: list[bytes] = []
    said: list[bytes] = []
    turn: Literal["", "user", "assistant"] = ""
    for speaker, piece in spoken:
        if not piece:
            continue
        if speaker == "user":
            if turn == "assistant" and not said:
                done.append(form.no_reply)
            said.append(piece)
            turn = "assistant"
            continue
        if said:
            done.append(form.joined(said))
            said = []
        if speaker in ("assistant", "calls"):
            if turn != "assistant":
                done.append(form.go_on if turn else form.earlier)
            turn = "user" if speaker == "assistant" else "assistant"
        done.append(piece)
    return [*done, form.joined(said)] if said else done
