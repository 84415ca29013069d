"""How much may arrive from a server, a page or a process: every limit, with its reason (issue 20).

The limits protect memory and the loop, not the context window: what a model is shown is cut elsewhere, to the window.
So they are the same at a window of 2k and of 1M tokens, and each leaves room for the largest honest case, a reply of a
million tokens. A megabyte is 1,000,000 bytes.
"""

from __future__ import annotations

import msgspec

MB = 1_000_000


class ByteLimits(msgspec.Struct, frozen=True, kw_only=True):
    """The limits of one kind of body. `what` names it in sentences.

    `wire_bytes` are counted as they arrive, `decoded_bytes` after decompression. `ratio` of the two is checked after
    `RATIO_GRACE` bytes. `total_s` is the time from the head of the response to the end of its body, None = any. With
    `cut` the beginning is taken and the rest left unread, instead of an error.
    """

    what: str
    wire_bytes: int
    decoded_bytes: int
    ratio: int = 200
    total_s: float | None = None
    cut: bool = False


RATIO_GRACE = MB
"""A body may be this large whatever its ratio. Event streams repeat themselves: 30 to 60 times is ordinary, and deflate
reaches 1,032 with nothing but zeros."""
SLICE = 16_384
"""Bytes that are handed on at a time: an event stream of the smallest events in 16 kB takes 5 ms to decode."""
TURN_S = 0.008
"""After this long without a pause the loop gets a turn: a keystroke is drawn within 20 ms."""

REPLY = ByteLimits(what="the reply", wire_bytes=600 * MB, decoded_bytes=600 * MB)
"""An event stream. One event a token, 300 bytes an event, a million tokens: 300 MB. Nothing of it is kept but the
text (`MAX_REPLY_CHARS`), so the limit costs no memory."""
WHOLE_REPLY = ByteLimits(what="the reply", wire_bytes=16 * MB, decoded_bytes=16 * MB, total_s=600.0)
"""A reply in one JSON object, a compaction. A million tokens are 4 MB of text, 9 MB of escaped Chinese."""
ERROR_BODY = ByteLimits(
    what="the error", wire_bytes=262_144, decoded_bytes=262_144, ratio=2_000, total_s=10.0, cut=True
)
"""An error is a sentence; a proxy's page is 100 kB. What is beyond is never shown."""
LISTING = ByteLimits(what="the list of models", wire_bytes=16 * MB, decoded_bytes=16 * MB, total_s=30.0)
"""OpenRouter's is 0.7 MB."""
SMALL_ANSWER = ByteLimits(what="the answer", wire_bytes=MB, decoded_bytes=MB, total_s=20.0)
"""Logins, tokens, counts: a few kilobytes."""
CODE = ByteLimits(what="the answer", wire_bytes=MB, decoded_bytes=MB, total_s=60.0)
"""A completion is a few lines."""
VECTORS = ByteLimits(what="the answer", wire_bytes=16 * MB, decoded_bytes=16 * MB, total_s=300.0)
"""32 vectors of 4,096 numbers of 22 characters: 3 MB."""
PAGE = ByteLimits(what="the page", wire_bytes=10 * MB, decoded_bytes=10 * MB, ratio=1_100)
"""A page is cut to the window later; images and PDF files are the large ones."""
MCP_REPLY = ByteLimits(what="the answer", wire_bytes=16 * MB, decoded_bytes=16 * MB, total_s=300.0)
"""One JSON-RPC message; a screenshot in base64 is 1 to 8 MB."""
MCP_EVENTS = ByteLimits(what="the event stream", wire_bytes=600 * MB, decoded_bytes=600 * MB)
"""A stream stays open for as long as the chat and carries many messages."""

MAX_EVENT_BYTES = 16 * MB
"""One event, or one line without an end: the last event of Responses repeats the whole reply."""
MAX_EVENTS = 8_000_000
"""Of one reply: a million tokens, each with the events around it."""
MAX_REPLY_CHARS = 16 * MB
"""What is kept of a reply: text, reasoning, arguments, encrypted parts. A million tokens are 4 million characters."""
MAX_TOOL_CALLS = 500
"""In one reply. Models write up to about 100; each is stored, drawn, approved and sent back."""
MAX_ITEMS = 10_000
"""Content blocks and items of one reply, tool calls included; also the parts of one of them."""
MAX_PASSES = 1_000
"""What a usage lists: the passes of one reply, and what the provider left out of it."""
VALUE_BYTES = 64
"""What a list, an object or an entry of one takes in memory beside its text."""
MAX_MEMBERS = 1_000
"""Gzip bodies in one, beyond one for each slice of what they decode to: a server that closes one with each event."""
MAX_JSON_VALUES = 400_000
"""Of one JSON text: an empty list takes 2 bytes on the wire and 64 in memory. 32 vectors have 131,072 numbers, the
longest list of models 50,000 values."""
MAX_MESSAGE_VALUES = 100_000
"""Of one message of an MCP server, which becomes objects of 2 kB in the SDK: 100,000 parts took 208 MB and a second."""
FEW_JSON_VALUES = 20_000
"""Of an error, a completion, a login's answer: a hundred."""
MAX_INTERIM_HEADS = 32
"""Informational responses (103 Early Hints) before the real one; servers send one or two."""
KEEP_ALIVE_S = 3_600.0
"""Keep-alives (comments, pings, empty events) without a word of the reply: a provider's queue, or hidden reasoning."""
