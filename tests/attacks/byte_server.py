"""A server that sends malformed and oversized data: `python -m tests.attacks.byte_server` prints its port.

The first request below a URL path `/ATTACK.FORMAT.ENCODING.NUMBER` gets the attack, later ones an honest answer. The
server is a separate process, so that its memory and CPU time do not count as the plugin's.
"""

from __future__ import annotations

import contextlib
import gzip
import itertools
import json
import socket
import sys
import threading
import time
import zlib
from collections.abc import Iterator
from typing import Any
from urllib.parse import unquote

HONEST = "all is well"
BOMB = 60_000_000
Pieces = Iterator[bytes]
TEXTS = 1000


def event(payload: Any, kind: str = "") -> bytes:
    name = f"event: {kind}\n".encode() if kind else b""
    return name + b"data: " + json.dumps(payload, separators=(",", ":")).encode() + b"\n\n"


def chunk(delta: Any, finish: str | None = None) -> bytes:
    return event({"model": "m", "choices": [{"index": 0, "delta": delta, "finish_reason": finish}]})


class Chat:
    begin, ping = b"", b": keep-alive\n\n"
    end = chunk({}, "stop") + b"data: [DONE]\n\n"

    def text(self, text: str) -> bytes:
        return chunk({"content": text})

    def call(self, number: int, piece: str = "{}") -> bytes:
        told = {"name": "read_file", "arguments": piece}
        return chunk({"tool_calls": [{"index": number, "id": f"c{number}", "function": told}]})

    def whole(self, text: str) -> Any:
        return {"model": "m", "choices": [{"index": 0, "message": {"content": text}, "finish_reason": "stop"}]}


class Messages:
    ping = event({"type": "ping"}, "ping")
    begin = event({"type": "message_start", "message": {"model": "m", "usage": {"input_tokens": 1}}}) + event(
        {"type": "content_block_start", "index": 0, "content_block": {"type": "text", "text": ""}}
    )
    end = event({"type": "message_delta", "delta": {"stop_reason": "end_turn"}}) + event({"type": "message_stop"})

    def text(self, text: str) -> bytes:
        return event({"type": "content_block_delta", "index": 0, "delta": {"type": "text_delta", "text": text}})

    def call(self, number: int, piece: str = "{}") -> bytes:
        block = {"type": "tool_use", "id": f"c{number}", "name": "read_file", "input": {}}
        delta = {"type": "input_json_delta", "partial_json": piece}
        place = {"index": number + 1}
        return event({"type": "content_block_start", **place, "content_block": block}) + event(
            {"type": "content_block_delta", **place, "delta": delta}
        )

    def whole(self, text: str) -> Any:
        return {"type": "message", "content": [{"type": "text", "text": text}], "stop_reason": "end_turn"}


class Responses:
    begin, ping = b"", event({"type": "keepalive"})
    end = event({"type": "response.completed", "response": {"status": "completed", "output": []}})

    def text(self, text: str) -> bytes:
        return event({"type": "response.output_text.delta", "output_index": 0, "delta": text})

    def call(self, number: int, piece: str = "{}") -> bytes:
        item = {"type": "function_call", "id": f"i{number}", "call_id": f"c{number}", "name": "read_file"}
        place = {"output_index": number + 1}
        return event({"type": "response.output_item.added", **place, "item": item}) + event(
            {"type": "response.function_call_arguments.delta", **place, "delta": piece}
        )

    def whole(self, text: str) -> Any:
        content = [{"type": "output_text", "text": text}]
        item = {"type": "message", "id": "i", "role": "assistant", "content": content}
        return {"status": "completed", "output": [item]}


FORMATS: dict[str, Any] = {"chat": Chat(), "messages": Messages(), "responses": Responses()}
PLAIN: dict[str, Any] = {
    "models": {"data": [{"id": "m"}]},
    "vectors": {"data": [{"index": 0, "embedding": [1.0, 0.0]}]},
    "code": {"content": HONEST, "stop": True, "stop_type": "eos"},
    "json": {"a": HONEST},
    "page": HONEST,
    "error": {"error": {"message": HONEST}},
    "mcp": {"jsonrpc": "2.0", "id": 1, "result": {}},
}


def streams(attack: str, form: Any) -> Pieces:
    """Yield the body of a hostile event stream."""
    yield form.begin
    match attack:
        case "bomb" | "late bomb":
            yield from itertools.repeat(form.text("0" * 100_000), 9_000)
        case "endless events":
            yield from itertools.repeat(form.text("abc") * 200)
        case "endless empty events":
            yield from itertools.repeat(b"data: {}\n\n" * 500 if form is FORMATS["chat"] else form.ping * 500)
        case "endless line":
            yield b"data: "
            yield from itertools.repeat(b"a" * 65_536)
        case "endless lines":
            yield from itertools.repeat(b"data: ,{}\n" * 500)
        case "endless pings":
            yield from itertools.repeat(form.ping * 500)
        case "dripping pings":
            while True:
                yield form.ping
                time.sleep(0.02)
        case _ if attack.endswith(" deltas") and attack[0].isdigit():
            yield from itertools.repeat(form.text("x"), int(attack.split()[0]))
        case "40,000 calls":
            yield form.text(HONEST)
            yield from (form.call(number) for number in range(40_000))
        case "calls of 1 MB":
            yield from (form.call(number, '{"a":"' + "a" * 1_000_000 + '"}') for number in range(400))
        case "repeated deltas":
            yield from (form.call(0, "{},{}" if number else '{"a":[') for number in range(20_000))
        case "deep":
            yield form.text(HONEST)
            yield b"data: " + b'{"choices":[' + b"[" * 500_000 + b"\n\n"
        case "wide":
            yield form.text(HONEST)
            yield b'data: {"usage":[' + b"[]," * 4_000_000 + b"[]]}\n\n"
        case "numbers":
            yield form.text(HONEST)
            yield b'data: {"usage":' + b"9" * 1_000_000 + b"}\n\n"
    yield form.end


def bodies(attack: str, kind: str) -> Pieces:
    """Yield the body of a hostile JSON answer or page."""
    match attack:
        case "bomb":
            yield b'{"a":"'
            yield from itertools.repeat(b"0" * 100_000, BOMB // 100_000)
            yield b'"}'
        case "endless line":
            yield b'{"a":"'
            yield from itertools.repeat(b"a" * 65_536)
        case "deep":
            yield b"[" * 900_000
        case "wide":
            yield b'{"data":[' + b"[]," * 280_000 + b"[]]}"
        case "numbers":
            yield b'{"data":' + b"9" * 900_000 + b"}"
        case "nothing":
            yield b""


def encoded(pieces: Pieces, encoding: str) -> Pieces:
    """Yield the pieces compressed with the given encoding."""
    if encoding in ("gzip", "deflate", "raw deflate"):
        bits = {"gzip": 31, "deflate": 15, "raw deflate": -15}[encoding]
        packer = zlib.compressobj(6, zlib.DEFLATED, bits)
        for piece in pieces:
            yield packer.compress(piece)
        yield packer.flush()
    elif encoding == "gzip twice":
        yield gzip.compress(b"".join(encoded(pieces, "gzip")))
    else:
        yield from pieces


CODINGS = {"gzip": "gzip", "deflate": "deflate", "raw deflate": "deflate", "gzip twice": "gzip, gzip"}
CODINGS |= {"brotli": "br", "zstd": "zstd", "unknown": "a" * 9_000}


class Server:
    """A server that handles each connection in a thread."""

    def __init__(self) -> None:
        self._seen = set[str]()
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.port = self._listener.getsockname()[1]

    def run(self) -> None:
        while True:
            client, _ = self._listener.accept()
            threading.Thread(target=self._serve, args=(client,), daemon=True).start()

    def _serve(self, client: socket.socket) -> None:
        with contextlib.suppress(OSError, ValueError), client:
            buffer = b""
            while True:
                while b"\r\n\r\n" not in buffer:
                    got = client.recv(65_536)
                    if not got:
                        return
                    buffer += got
                head, _, buffer = buffer.partition(b"\r\n\r\n")
                length = int(
                    next(
                        (
                            line.split(b":")[1]
                            for line in head.lower().split(b"\r\n")
                            if line.startswith(b"content-length")
                        ),
                        0,
                    )
                )
                while len(buffer) < length:
                    buffer += client.recv(65_536)
                body, buffer = buffer[:length], buffer[length:]
                key = head.split(b" ")[1].decode().split("/")[1]
                if not self._answer(client, unquote(key), body):
                    return

    def _answer(self, client: socket.socket, key: str, body: bytes) -> bool:
        """Send an answer; return whether the connection stays open."""
        attack, kind, encoding, _ = key.split(".")
        first = key not in self._seen
        self._seen.add(key)
        if not first:
            self._honest(client, kind)
            return True
        streamed = kind in FORMATS
        status = b"500 No" if kind == "error" else b"200 OK"
        content = b"text/event-stream" if streamed else b"text/plain" if kind == "page" else b"application/json"
        head = b"Content-Type: " + content + b"\r\n"
        match attack:
            case "header flood":
                client.sendall(b"HTTP/1.1 " + status + b"\r\n")
                while True:
                    client.sendall(b"X-Flood: " + b"a" * 4_000 + b"\r\n")
            case "dripping head":
                client.sendall(b"HTTP/1.1 " + status + b"\r\nX-Drip: ")
                while True:
                    client.sendall(b"a")
                    time.sleep(0.02)
            case "interim flood":
                while True:
                    client.sendall(b"HTTP/1.1 103 Early Hints\r\nLink: </a>\r\n\r\n" * 500)
            case "redirects":
                client.sendall(
                    b"HTTP/1.1 302 Found\r\nContent-Length: 0\r\nLocation: /redirects.%s.plain.x\r\n\r\n"
                    % kind.encode()
                )
                self._seen.discard("redirects." + kind + ".plain.x")
                return True
            case "short of its length":
                client.sendall(b"HTTP/1.1 " + status + b"\r\n" + head + b"Content-Length: 9999999999\r\n\r\n{}")
                client.shutdown(socket.SHUT_WR)
                return False
            case "beyond its length":
                client.sendall(b"HTTP/1.1 " + status + b"\r\n" + head + b"Content-Length: 2\r\n\r\n{}" + b"a" * 900_000)
                return False
            case "tiny chunks":
                client.sendall(b"HTTP/1.1 " + status + b"\r\n" + head + b"Transfer-Encoding: chunked\r\n\r\n")
                while True:
                    client.sendall(b"1;" + b"e" * 40 + b"\r\n \r\n" + b"1\r\n \r\n" * 5_000)
        if coding := CODINGS.get(encoding):
            head += f"Content-Encoding: {coding}\r\n".encode()
        pieces = encoded(streams(attack, FORMATS[kind]) if streamed else bodies(attack, kind), encoding)
        if encoding == "old http":
            client.sendall(b"HTTP/1.0 " + status + b"\r\n" + head + b"\r\n")
            for piece in pieces:
                client.sendall(piece)
            return False
        client.sendall(b"HTTP/1.1 " + status + b"\r\n" + head + b"Transfer-Encoding: chunked\r\n\r\n")
        for piece in pieces:
            if piece:
                client.sendall(b"%x\r\n%s\r\n" % (len(piece), piece))
        client.sendall(b"0\r\n\r\n")
        return True

    def _honest(self, client: socket.socket, kind: str) -> None:
        if kind in FORMATS:
            form = FORMATS[kind]
            content, body = "text/event-stream", form.begin + form.text(HONEST) + form.end
        elif kind.startswith("whole "):
            content, body = "application/json", json.dumps(FORMATS[kind.removeprefix("whole ")].whole(HONEST)).encode()
        else:
            content, body = "application/json", json.dumps(PLAIN[kind]).encode()
            content = "text/plain" if kind == "page" else content
        head = f"HTTP/1.1 200 OK\r\nContent-Type: {content}\r\nContent-Length: {len(body)}\r\n\r\n"
        client.sendall(head.encode() + body)


if __name__ == "__main__":
    server = Server()
    sys.stdout.write(f"{server.port}\n")
    sys.stdout.flush()
    server.run()
