"""The limits on data from servers, pages and processes, with reasons.

They protect memory and the event loop. The context window has separate limits, so these are equal for windows of 2k and
of 1M tokens, and each allows the largest honest case, a reply of a million tokens. A megabyte is 1,000,000 bytes.
"""

from __future__ import annotations

import msgspec

MB = 1_000_000


class ByteLimits(msgspec.Struct, frozen=True, kw_only=True):
    """The limits of one kind of body. `what` names it in sentences.

    `wire_bytes` count the bytes as received, `decoded_bytes` those after decompression. Their `ratio` is checked after
    `RATIO_GRACE` bytes. `total_s` is the time from the response head to the end of its body, None = unlimited. With
    `cut` the start of the body is used and the rest is not read, instead of an error.
    """

    what: str
    wire_bytes: int
    decoded_bytes: int
    ratio: int = 200
    total_s: float | None = None
    cut: bool = False


RATIO_GRACE = MB
"""Bytes allowed at any ratio. Event streams are repetitive, so 30 to 60 times is normal; a body of zeros reaches 1,032
with deflate.
"""
SLICE = 16_384
"""Bytes passed on at a time: 16 kB of an event stream with the smallest events take 5 ms to decode."""
TURN_S = 0.008
"""Seconds of work without a pause before the loop gets a turn: a keystroke is drawn within 20 ms."""
ASIDE_BYTES = 256 * 1024
"""Bytes of a request from which a thread walks through it, to keep the loop free."""

REPLY = ByteLimits(what="the reply", wire_bytes=600 * MB, decoded_bytes=600 * MB)
"""An event stream of a million tokens, with an event per token and 300 bytes per event: 300 MB. Only the text is kept
(`MAX_REPLY_CHARS`), so the limit costs no memory.
"""
WHOLE_REPLY = ByteLimits(what="the reply", wire_bytes=16 * MB, decoded_bytes=16 * MB, total_s=600.0)
"""A reply in one JSON object, such as a compaction. A million tokens are 4 MB of text, or 9 MB of escaped Chinese."""
ERROR_BODY = ByteLimits(
    what="the error", wire_bytes=262_144, decoded_bytes=262_144, ratio=2_000, total_s=10.0, cut=True
)
"""An error is a sentence; a proxy's error page is 100 kB. The rest is never shown."""
LISTING = ByteLimits(what="the list of models", wire_bytes=16 * MB, decoded_bytes=16 * MB, total_s=30.0)
"""OpenRouter's list is 0.7 MB."""
SMALL_ANSWER = ByteLimits(what="the answer", wire_bytes=MB, decoded_bytes=MB, total_s=20.0)
"""Logins, tokens, token counts: a few kilobytes."""
CODE = ByteLimits(what="the answer", wire_bytes=MB, decoded_bytes=MB, total_s=60.0)
"""A completion is a few lines."""
VECTORS = ByteLimits(what="the answer", wire_bytes=16 * MB, decoded_bytes=16 * MB, total_s=300.0)
"""32 vectors of 4,096 numbers with 22 characters each: 3 MB."""
PAGE = ByteLimits(what="the page", wire_bytes=10 * MB, decoded_bytes=10 * MB, ratio=1_100)
"""A page is later cut to the window; images and PDF files are the largest."""
MCP_REPLY = ByteLimits(what="the answer", wire_bytes=16 * MB, decoded_bytes=16 * MB, total_s=300.0)
"""One JSON-RPC message; a screenshot in base64 is 1 to 8 MB."""
MCP_EVENTS = ByteLimits(what="the event stream", wire_bytes=600 * MB, decoded_bytes=600 * MB)
"""A stream stays open as long as the chat and carries many messages."""

MAX_EVENT_BYTES = 16 * MB
"""One event, or one unfinished line: the last event of Responses repeats the whole reply."""
MAX_EVENTS = 8_000_000
"""Maximum number of events in a reply: a million tokens, and the events around each."""
MAX_REPLY_CHARS = 16 * MB
"""Stored characters of a reply: text, reasoning, arguments, encrypted parts. A million tokens are 4 million characters.
"""
MAX_TOOL_CALLS = 500
"""Tool calls in one reply. Models write up to about 100; each is stored, drawn, approved and sent back."""
MAX_ITEMS = 10_000
"""Content blocks and items of one reply, including tool calls; also the parts of one of them."""
MAX_PASSES = 1_000
"""Entries in a usage report: the passes of one reply, and the items that the provider left out."""
VALUE_BYTES = 64
"""Memory of a list, an object or one of their entries, in addition to its text."""
MAX_MEMBERS = 1_000
"""Gzip members in one body, beyond one per slice of decoded output: some servers close a member after each event."""
MAX_JSON_VALUES = 400_000
"""Values in one JSON text: an empty list takes 2 bytes on the wire and 64 in memory. 32 vectors have 131,072 numbers,
the longest list of models 50,000 values.
"""
MAX_MESSAGE_VALUES = 100_000
"""Values in one message of an MCP server; the SDK turns each into objects of 2 kB: 100,000 parts took 208 MB and a
second.
"""
FEW_JSON_VALUES = 20_000
"""Values in an error, a completion or a login response: about a hundred."""
MAX_INTERIM_HEADS = 32
"""Informational responses (103 Early Hints) before the final one; servers send one or two."""
KEEP_ALIVE_S = 3_600.0
"""Seconds of keep-alives (comments, pings, empty events) without reply text: a provider's queue, or hidden reasoning.
"""
