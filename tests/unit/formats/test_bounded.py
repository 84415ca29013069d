"""Bodies are decoded in slices and end at their limits."""

from __future__ import annotations

import asyncio
import gzip
import json
import tracemalloc
import zlib
from collections.abc import AsyncIterator
from itertools import pairwise

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from codecompanion.formats.bounded import (
    ByteCount,
    LimitHit,
    Unreadable,
    ValueCount,
    bounded_pieces,
    has_too_many_values,
)
from codecompanion.formats.byte_limits import ERROR_BODY, MAX_JSON_VALUES, MB, SLICE, ByteLimits

LIMITS = ByteLimits(what="the reply", wire_bytes=2 * MB, decoded_bytes=2 * MB)
PACKERS = {
    "": lambda data: data,
    "identity": lambda data: data,
    "gzip": gzip.compress,
    "x-gzip": gzip.compress,
    "deflate": zlib.compress,
    "DEFLATE": lambda data: zlib.compress(data, wbits=-15),
}


def decoded(data: bytes, *cuts: int, encoding: str = "", limits: ByteLimits = LIMITS) -> list[bytes]:
    count = ByteCount(limits, encoding)
    places = [0, *sorted(cut % (len(data) + 1) for cut in cuts), len(data)]
    return [piece for start, end in pairwise(places) for piece in count.feed(data[start:end])]


@given(st.binary(max_size=100_000), st.lists(st.integers(0, 100_000), max_size=5), st.sampled_from(list(PACKERS)))
def test_every_encoding_yields_the_body_in_slices(data: bytes, cuts: list[int], encoding: str) -> None:
    pieces = decoded(PACKERS[encoding](data), *cuts, encoding=encoding)
    assert b"".join(pieces) == data
    assert max(map(len, pieces), default=0) <= SLICE


@pytest.mark.parametrize("encoding", ["br", "zstd", "gzip, gzip", "identity, gzip, deflate", "\x1b[31m"])
def test_an_encoding_that_was_not_requested_is_refused_by_name(encoding: str) -> None:
    with pytest.raises(Unreadable, match="not requested") as caught:
        ByteCount(LIMITS, encoding)
    assert str(caught.value).isprintable()


@pytest.mark.parametrize("encoding", ["gzip", "deflate", "DEFLATE"])
def test_a_bomb_ends_at_the_limit(encoding: str) -> None:
    bomb = PACKERS[encoding](bytes(20 * MB))
    with pytest.raises(LimitHit, match=r"larger than 2 MB|compressed more than 200 times"):
        decoded(bomb, encoding=encoding)


def test_repetition_within_a_megabyte_is_not_a_bomb() -> None:
    assert sum(map(len, decoded(gzip.compress(bytes(MB)), encoding="gzip"))) == MB


def test_the_beginning_of_a_long_error_is_used() -> None:
    taken = decoded(gzip.compress(b"no " * MB), encoding="gzip", limits=ERROR_BODY)
    assert sum(map(len, taken)) == ERROR_BODY.decoded_bytes


async def test_other_tasks_run_between_the_slices() -> None:
    turns = 0

    async def other() -> None:
        nonlocal turns
        while True:
            turns += 1
            await asyncio.sleep(0)

    async def raw() -> AsyncIterator[bytes]:
        yield zlib.compress(bytes(100 * MB))

    limits = msgspec.structs.replace(LIMITS, decoded_bytes=200 * MB, ratio=2_000)
    task = asyncio.create_task(other())
    assert sum([len(piece) async for piece in bounded_pieces(raw(), limits, "deflate")]) == 100 * MB
    task.cancel()
    assert turns > 1


async def test_a_dripping_body_ends_with_its_time() -> None:
    async def raw() -> AsyncIterator[bytes]:
        while True:
            yield b" "
            await asyncio.sleep(0)

    with pytest.raises(LimitHit, match="did not end within"):
        async for _ in bounded_pieces(raw(), msgspec.structs.replace(LIMITS, total_s=0.01)):
            pass
    cut = msgspec.structs.replace(ERROR_BODY, total_s=0.01)
    assert [piece async for piece in bounded_pieces(raw(), cut)]


def test_values_are_counted_outside_strings() -> None:
    text = json.dumps([", [ {" * MAX_JSON_VALUES, '\\"']).encode()
    assert not has_too_many_values(text)
    assert has_too_many_values(b"[" + b"[]," * MAX_JSON_VALUES + b"[]]")


@given(st.recursive(st.text() | st.integers(), st.lists, max_leaves=40), st.lists(st.integers(0, 400), max_size=6))
def test_values_in_slices_equal_those_of_the_whole(value: object, cuts: list[int]) -> None:
    text = json.dumps(value, ensure_ascii=False).encode()
    whole, sliced = ValueCount(of_events=False), ValueCount(of_events=False)
    whole.take(text + b" ")
    for start, end in pairwise([0, *sorted(cut % (len(text) + 1) for cut in cuts), len(text)]):
        sliced.take(text[start:end])
    sliced.take(b" ")
    assert sliced._values == whole._values


def test_each_event_of_a_stream_has_its_own_count() -> None:
    half = b"data: [" + b"1," * (MAX_JSON_VALUES // 2) + b'"]\\"]'
    count = ValueCount(of_events=True)
    for _ in range(4):
        count.take(half)
        count.take(b"\r\n\r\n")
    count.take(half)
    with pytest.raises(LimitHit):
        count.take(b'"' + half)


def fed(count: ByteCount, body: bytes, size: int = 65_536) -> bytes:
    return b"".join(piece for at in range(0, len(body), size) for piece in count.feed(body[at : at + size]))


@pytest.mark.parametrize("size", [1, 7, 65_536])
def test_every_member_of_a_gzip_body_is_read(size: int) -> None:
    """RFC 1952: a body may have several members; the bytes after the last one are ignored."""
    body = b"".join(gzip.compress(text) for text in (b"one ", b"", b"two ", b"three"))
    assert fed(ByteCount(LIMITS, "gzip"), body, size) == b"one two three"
    assert fed(ByteCount(LIMITS, "gzip"), body + b"\0" * 99, size) == b"one two three"
    assert fed(ByteCount(LIMITS, "gzip"), body + b"no gzip" + body, size) == b"one two three"


@pytest.mark.parametrize("encoding", ["gzip", "deflate"])
def test_bytes_after_a_compressed_body_are_neither_kept_nor_copied(encoding: str) -> None:
    packed = gzip.compress(b"a") if encoding == "gzip" else zlib.compress(b"a")
    count = ByteCount(msgspec.structs.replace(LIMITS, wire_bytes=60 * MB), encoding)
    list(count.feed(packed))
    rest = b"x" * 65_536
    tracemalloc.start()
    for _ in range(400):
        list(count.feed(rest))
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < MB


def test_endless_members_are_refused() -> None:
    with pytest.raises(LimitHit, match="compressed in more than 1,000 parts"):
        fed(ByteCount(LIMITS, "gzip"), gzip.compress(b"") * 2_000)


async def test_a_requested_beginning_is_kept_if_the_connection_breaks() -> None:
    async def raw() -> AsyncIterator[bytes]:
        yield b"why"
        raise ConnectionResetError

    assert [piece async for piece in bounded_pieces(raw(), ERROR_BODY)] == [b"why"]
    with pytest.raises(ConnectionResetError):
        assert [piece async for piece in bounded_pieces(raw(), LIMITS)]
