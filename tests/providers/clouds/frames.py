"""AWS event-stream frames as Bedrock sends them, written from the description in AWS's documentation."""

from __future__ import annotations

import base64
import json
import struct
from zlib import crc32


def frame(headers: dict[str, str], payload: bytes) -> bytes:
    """Return one frame: lengths, checksum, headers, payload, checksum."""
    head = b"".join(
        bytes([len(name)]) + name.encode() + b"\x07" + struct.pack("!H", len(value)) + value.encode()
        for name, value in headers.items()
    )
    prelude = struct.pack("!II", len(head) + len(payload) + 16, len(head))
    whole = prelude + struct.pack("!I", crc32(prelude)) + head + payload
    return whole + struct.pack("!I", crc32(whole))


def chunk(event: bytes) -> bytes:
    """Return the frame for one event of a Messages stream, which is given as a server-sent event."""
    data = b"".join(line.removeprefix(b"data: ") for line in event.splitlines() if line.startswith(b"data: "))
    headers = {":event-type": "chunk", ":content-type": "application/json", ":message-type": "event"}
    return frame(headers, json.dumps({"bytes": base64.b64encode(data).decode(), "p": "abcdefgh"}).encode())


def exception(kind: str, message: str) -> bytes:
    """Return the frame of a failure within a reply: `throttlingException`, `modelStreamErrorException`."""
    headers = {":exception-type": kind, ":content-type": "application/json", ":message-type": "exception"}
    return frame(headers, json.dumps({"message": message}).encode())
