"""HTTP chunks are merged, and nothing else about a response changes: h11 is the judge."""

from __future__ import annotations

from itertools import pairwise

import h11
import pytest
from hypothesis import given
from hypothesis import strategies as st

from codecompanion.formats.bounded import LimitHit
from codecompanion.formats.byte_limits import MAX_INTERIM_HEADS
from codecompanion.formats.chunk_merger import ChunkMerger, merge_chunks

HEAD = b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\n\r\n"


def chunked(*chunks: bytes, trailer: bytes = b"") -> bytes:
    return b"".join(b"%x\r\n%s\r\n" % (len(chunk), chunk) for chunk in chunks) + b"0\r\n" + trailer + b"\r\n"


def merge(stream: bytes, *cuts: int) -> bytes:
    merger = ChunkMerger()
    pieces = [merger.feed(stream[start:end]) for start, end in pairwise([0, *cuts, len(stream)])]
    return b"".join(pieces) + merger.finish()


def read_with_h11(stream: bytes) -> tuple[bytes, str]:
    """Return the body h11 reads, and how the response ended."""
    connection = h11.Connection(h11.CLIENT)
    connection.send(h11.Request(method="POST", target="/", headers=[("Host", "x"), ("Content-Length", "0")]))
    connection.send(h11.EndOfMessage())
    connection.receive_data(stream)
    connection.receive_data(b"")
    body = b""
    try:
        while True:
            event = connection.next_event()
            if isinstance(event, h11.Data):
                body += event.data
            elif isinstance(event, h11.EndOfMessage | h11.ConnectionClosed):
                return body, type(event).__name__
    except h11.RemoteProtocolError:
        return body, "broken"


def test_adjacent_chunks_become_one() -> None:
    """One chunk is delivered in place of three, even after an informational head."""
    early = b"HTTP/1.1 103 Early Hints\r\n\r\n"
    assert merge(early + HEAD + chunked(b"a", b"b")) == early + HEAD + b"2\r\nab\r\n0\r\n\r\n"
    assert merge(HEAD + chunked(b"abc", b"de", b"f")) == HEAD + b"6\r\nabcdef\r\n0\r\n\r\n"


@pytest.mark.parametrize(
    "stream",
    [
        HEAD + chunked(b"data: 1\n\n", b"data: 2\r\n\r\n", b"x" * 40),
        HEAD + chunked(b"a", trailer=b"Expires: never\r\n"),
        HEAD + b"5;ext=1\r\nhello\r\n0\r\n\r\n",
        HEAD + b"00A\r\n0123456789\r\n0\r\n\r\n",
        HEAD + chunked(),
        HEAD + chunked(b"abc")[:-5],
        HEAD + b"5\r\nhel",
        HEAD + b"5\r\nhelloXX3\r\nabc\r\n",
        HEAD + b"zz\r\nhello\r\n",
        HEAD + b"-5\r\nhello\r\n",
        HEAD + b"\r\n",
        HEAD + b"5\nhello\r\n0\r\n\r\n",
        b"HTTP/1.1 103 Early Hints\r\nLink: x\r\n\r\n" + HEAD + chunked(b"ab", b"c"),
        b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello",
        b"HTTP/1.1 200 OK\r\n\r\nuntil the end 3\r\nabc\r\n",
        b"HTTP/1.0 200 OK\r\n\r\nhello",
        b"SSH-2.0-OpenSSH\r\n",
        b"HTTP/1.1 200 OK\r\nTransf",
    ],
)
def test_any_response_reads_the_same_for_any_split(stream: bytes) -> None:
    """For complete, truncated and broken responses, h11 sees the same body and the same end."""
    expected = read_with_h11(stream)
    for first in range(len(stream) + 1):
        assert read_with_h11(merge(stream, first)) == expected, first
    assert read_with_h11(merge(stream, *range(1, len(stream)))) == expected


@given(st.lists(st.binary(min_size=1, max_size=300), max_size=20), st.data())
def test_any_body_survives_any_chunks_and_any_splits(chunks: list[bytes], data: st.DataObject) -> None:
    """Property: the body is identical, byte for byte."""
    stream = HEAD + chunked(*chunks)
    cuts = sorted(data.draw(st.lists(st.integers(0, len(stream)), max_size=10)))
    assert read_with_h11(merge(stream, *cuts)) == (b"".join(chunks), "EndOfMessage")


@given(st.binary(max_size=400), st.data())
def test_any_garbage_after_the_head_is_left_to_h11(rubbish: bytes, data: st.DataObject) -> None:
    """Property: it neither hides an error nor causes one."""
    stream = HEAD + rubbish
    cuts = sorted(data.draw(st.lists(st.integers(0, len(stream)), max_size=4)))
    assert read_with_h11(merge(stream, *cuts)) == read_with_h11(stream)


def test_the_next_response_of_a_connection_is_read_again() -> None:
    """With keep-alive, there is a request between the responses."""
    merger = ChunkMerger()
    for _ in range(3):
        merger.begin()
        assert merger.feed(HEAD + chunked(b"a", b"b")) == HEAD + b"2\r\nab\r\n0\r\n\r\n"


def test_a_long_chunk_is_passed_on_as_it_arrives() -> None:
    """It must not be buffered until it is complete."""
    merger = ChunkMerger()
    merger.feed(HEAD)
    assert merger.feed(b"ff\r\n" + b"x" * 10) == b"a\r\n" + b"x" * 10 + b"\r\n"
    assert merger.feed(b"y" * 5) == b"5\r\nyyyyy\r\n"


def test_another_transport_is_unchanged() -> None:
    """The merger is an optimisation: without its hook everything still works."""
    import httpx2

    client = httpx2.AsyncClient(transport=httpx2.MockTransport(lambda _: httpx2.Response(200)))
    merge_chunks(client)
    real = httpx2.AsyncClient()
    merge_chunks(real)
    assert type(real._transport._pool._network_backend).__name__ == "_Backend"  # type: ignore[attr-defined]


def test_informational_heads_have_an_end() -> None:
    """Heads may arrive together or one by one; the count restarts with each response."""
    early = b"HTTP/1.1 103 Early Hints\r\n\r\n"
    merger = ChunkMerger()
    for _ in range(3):
        merger.begin()
        assert merger.feed(early * MAX_INTERIM_HEADS + HEAD + chunked(b"a")).endswith(b"0\r\n\r\n")
    with pytest.raises(LimitHit):
        ChunkMerger().feed(early * 2_000)
    merger = ChunkMerger()
    for _ in range(MAX_INTERIM_HEADS):
        merger.feed(early)
    with pytest.raises(LimitHit):
        merger.feed(early)
