"""Limits on data from servers, pages and processes, with reasons.

They protect memory and the event loop. The context window has separate limits, so these are the same for a 2k and a
1M window; each is large enough for the largest legitimate case, a million-token reply. A megabyte is 1,000,000 bytes.
"""

from __future__ import annotations

import msgspec

MB = 1_000_000


class ByteLimits(msgspec.Struct, frozen=True, kw_only=True):
    """The limits of one type of body. `what` names it in messages.

    `wire_bytes` limits the bytes as received, `decoded_bytes` those after decompression. Their `ratio` is checked after
    `RATIO_GRACE` bytes. `total_s` limits the time from the response head to the end of its body; None means no limit.
    With `cut`, a body over the limit is not an error: its start is used and the rest is not read.
    """

    what: str
    wire_bytes: int
    decoded_bytes: int
    ratio: int = 200
    total_s: float | None = None
    cut: bool = False


RATIO_GRACE = MB
"""Bytes allowed at any compression ratio. Event streams are repetitive, so a ratio of 30 to 60 is normal; a deflated
body of zeros reaches 1,032.
"""
SLICE = 16_384
"""Bytes passed on at a time: 16 kB of the smallest events take 5 ms to decode."""
TURN_S = 0.008
"""Seconds of uninterrupted work before the event loop may run, so that a keystroke is drawn within 20 ms."""
ASIDE_BYTES = 256 * 1024
"""Size in bytes from which a request is processed in a thread, to keep the event loop free."""

REPLY = ByteLimits(what="the reply", wire_bytes=600 * MB, decoded_bytes=600 * MB)
"""Limits of a streamed reply. A million tokens, with an event per token and 300 bytes per event, are 300 MB. Only the
text is kept (`MAX_REPLY_CHARS`), so the limit costs no memory.
"""
WHOLE_REPLY = ByteLimits(what="the reply", wire_bytes=16 * MB, decoded_bytes=16 * MB, total_s=600.0)
"""Limits of a reply in one JSON object, such as a compaction. A million tokens are 4 MB of text, or 9 MB of escaped
Chinese."""
ERROR_BODY = ByteLimits(
    what="the error", wire_bytes=262_144, decoded_bytes=262_144, ratio=2_000, total_s=10.0, cut=True
)
"""Limits of an error. It is usually a sentence; a proxy's error page is 100 kB. The rest is never shown."""
MODEL_LIST = ByteLimits(what="the list of models", wire_bytes=16 * MB, decoded_bytes=16 * MB, total_s=30.0)
"""Limits of a list of models. OpenRouter's is 0.7 MB."""
SMALL_ANSWER = ByteLimits(what="the answer", wire_bytes=MB, decoded_bytes=MB, total_s=20.0)
"""Limits of logins, tokens and token counts, which are a few kilobytes."""
CODE = ByteLimits(what="the answer", wire_bytes=MB, decoded_bytes=MB, total_s=60.0)
"""Limits of a completion, which is a few lines."""
VECTORS = ByteLimits(what="the answer", wire_bytes=16 * MB, decoded_bytes=16 * MB, total_s=300.0)
"""Limits of embeddings: 32 vectors of 4,096 numbers with 22 characters each are 3 MB."""
PAGE = ByteLimits(what="the page", wire_bytes=10 * MB, decoded_bytes=10 * MB, ratio=1_100)
"""Limits of a web page, which is later cut to the context window; images and PDF files are the largest."""
MCP_REPLY = ByteLimits(what="the answer", wire_bytes=16 * MB, decoded_bytes=16 * MB, total_s=300.0)
"""Limits of one JSON-RPC message; a screenshot in base64 is 1 to 8 MB."""
MCP_EVENTS = ByteLimits(what="the event stream", wire_bytes=600 * MB, decoded_bytes=600 * MB)
"""Limits of an MCP event stream, which stays open as long as the chat and carries many messages."""

MAX_EVENT_BYTES = 16 * MB
"""Maximum size of one event or unfinished line; the last event of the Responses API repeats the whole reply."""
MAX_EVENTS = 8_000_000
"""Maximum number of events in a reply, for a million tokens with additional events around each."""
MAX_REPLY_CHARS = 16 * MB
"""Maximum stored characters of a reply: text, reasoning, arguments, encrypted parts. A million tokens are 4 million
characters.
"""
MAX_TOOL_CALLS = 500
"""Maximum number of tool calls in one reply. Models write up to about 100; each is stored, drawn, approved and sent
back."""
MAX_ITEMS = 10_000
"""Maximum number of content blocks and items in one reply, including tool calls, and of the parts of each."""
MAX_PASSES = 1_000
"""Maximum number of entries in a usage report: the passes of one reply, and the items that the provider left out."""
VALUE_BYTES = 64
"""Bytes of memory that a list, an object or an entry takes in addition to its text."""
MAX_MEMBERS = 1_000
"""Maximum number of gzip members in one body, beyond one per slice of decoded output: some servers close a member after
each event."""
MAX_JSON_VALUES = 400_000
"""Maximum number of values in one JSON document: an empty list takes 2 bytes on the wire and 64 in memory. 32 vectors
have 131,072 numbers, the longest list of models 50,000 values.
"""
MAX_MESSAGE_VALUES = 100_000
"""Maximum number of values in one message of an MCP server; the SDK turns each into objects of 2 kB: 100,000 parts took
208 MB and a second.
"""
FEW_JSON_VALUES = 20_000
"""Maximum number of values in an error, a completion or a login response; they have about a hundred."""
MAX_INTERIM_HEADS = 32
"""Maximum number of informational responses (103 Early Hints) before the final one; servers send one or two."""
KEEP_ALIVE_S = 3_600.0
"""Maximum seconds of keep-alives (comments, pings, empty events) without reply text, e.g. during reasoning."""
