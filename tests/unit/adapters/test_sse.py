"""Server-sent events, split anywhere."""

from __future__ import annotations

import json
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from codecompanion.adapters.sse import ErrorData, SseDecoder
from codecompanion.formats.bounded import LimitHit

PAYLOADS = ['{"a":"ü🎉"}', '{"b":{"c":[1,2]}}', "[DONE]"]


def decode(body: bytes, *cuts: int) -> list[bytes]:
    decoder = SseDecoder()
    payloads = [payload for start, end in pairwise([0, *cuts, len(body)]) for payload in decoder.feed(body[start:end])]
    return payloads + decoder.finish()


def stream(line_end: str, blank: bool = True) -> bytes:
    gap = line_end if blank else ""
    return "".join(f"data: {payload}{line_end}{gap}" for payload in PAYLOADS).encode()


@pytest.mark.parametrize("line_end", ["\n", "\r\n", "\r"])
@pytest.mark.parametrize("blank", [True, False])
def test_every_pair_of_splits_yields_the_same_payloads(line_end: str, blank: bool) -> None:
    """Splits may be inside a character or inside CRLF, and blank lines between the events may be missing."""
    body = stream(line_end, blank)
    expected = [payload.encode() for payload in PAYLOADS]
    for first in range(len(body) + 1):
        for second in range(first, len(body) + 1):
            assert decode(body, first, second) == expected, (first, second)


def test_mixed_line_ends_each_count_as_one() -> None:
    """A gateway may insert its own events into an upstream's stream; the result is the same for every split."""
    body = b'data: {"a":1}\r\rdata: {"b":2}\n\ndata: {"c":3}\r\n\r\ndata: {\rdata: "d":4\ndata: }\r\n\n'
    expected = [{"a": 1}, {"b": 2}, {"c": 3}, {"d": 4}]
    for first in range(len(body) + 1):
        for second in range(first, len(body) + 1):
            assert [json.loads(payload) for payload in decode(body, first, second)] == expected, (first, second)
    assert [json.loads(payload) for payload in decode(body, *range(1, len(body)))] == expected


def test_an_event_is_delivered_at_its_blank_line() -> None:
    """No chunk waits for the next one."""
    decoder = SseDecoder()
    assert decoder.feed(b'data: {"a":1}\n\n') == [b'{"a":1}']


def test_a_server_without_blank_lines_is_not_delayed_by_one_chunk() -> None:
    """The line end after a whole JSON object is enough."""
    decoder = SseDecoder()
    assert decoder.feed(b'data: {"a":1}\n') == [b'{"a":1}']
    assert decoder.feed(b'data: {"a":2}\ndata: {"a":3}\n') == [b'{"a":2}', b'{"a":3}']
    assert decoder.feed(b"\n\n") == []


def test_data_over_several_lines_is_joined() -> None:
    """The standard allows it; some servers pretty-print."""
    body = b'data: {\ndata:   "a": {"b": 1},\ndata:   "c": 2\ndata: }\n\n'
    for cut in range(len(body)):
        (payload,) = decode(body, cut)
        assert json.loads(payload) == {"a": {"b": 1}, "c": 2}


def test_a_pretty_printed_object_that_looks_complete_half_way_is_not_split() -> None:
    """A line that ends with a brace is not the end of the object."""
    body = b'data: {"a": {"b": 1}\ndata: , "c": 2}\n\n'
    for cut in range(len(body)):
        (payload,) = decode(body, cut)
        assert json.loads(payload) == {"a": {"b": 1}, "c": 2}


def test_comments_names_and_unknown_fields_are_not_payloads() -> None:
    """Keep-alives and a byte order mark at the start of the stream are not payloads, either."""
    body = b"\xef\xbb\xbf: hello\n\nevent: message\nid: 4\nretry: 10\ndata:{}\n\ndata\n\nfoo: bar\n\n"
    assert decode(body) == [b"{}"]


def test_an_event_named_error_is_marked() -> None:
    """The `error:` line of llama.cpp is marked as well."""
    payloads = decode(b'event: error\ndata: {"message":"x"}\n\ndata: {}\n\nerror: {"code":500}\n\n')
    assert [type(payload) for payload in payloads] == [ErrorData, bytes, ErrorData]
    assert payloads == [b'{"message":"x"}', b"{}", b'{"code":500}']


def test_text_that_is_not_an_event_stream_is_kept_for_the_error() -> None:
    """Only its beginning is kept."""
    decoder = SseDecoder()
    assert decoder.feed(b"<html>\n" + b"x" * 10_000 + b"\n" + b"y" * 10_000) == []
    assert decoder.finish() == []
    assert decoder.stray.startswith(b"<html>")
    assert len(decoder.stray) <= 2_001


def test_a_very_long_line_in_many_pieces_takes_linear_time() -> None:
    """10 MB in 64 KB pieces are collected, not joined each time."""
    decoder = SseDecoder()
    piece = b"x" * 65_536
    decoder.feed(b'data: {"a":"')
    for _ in range(160):
        assert decoder.feed(piece) == []
    assert len(decoder._held) > 100
    (payload,) = decoder.feed(b'"}\n\n')
    assert len(payload) == 160 * 65_536 + 8


@given(st.lists(st.dictionaries(st.text(), st.text() | st.integers(), min_size=1), max_size=6), st.data())
def test_any_json_objects_survive_any_splits(objects: list[dict[str, object]], data: st.DataObject) -> None:
    """Property: the parsed objects equal the sent ones."""
    line_end = data.draw(st.sampled_from(["\n", "\r\n", "\r"]))
    space = data.draw(st.sampled_from([" ", ""]))
    body = "".join(
        f"data:{space}{json.dumps(value, ensure_ascii=False)}{line_end}{line_end}" for value in objects
    ).encode("utf-8", "replace")
    cuts = sorted(data.draw(st.lists(st.integers(0, len(body)), max_size=8)))
    expected = [json.loads(json.dumps(value, ensure_ascii=False).encode("utf-8", "replace")) for value in objects]
    assert [json.loads(payload) for payload in decode(body, *cuts)] == expected


@pytest.mark.parametrize("unit", [b"data:\n", b"data: }\n"])
def test_lines_without_text_count_towards_the_limit(unit: bytes) -> None:
    """An event of empty lines would become millions of list entries, and joining them would allocate a buffer each."""
    decoder = SseDecoder()
    for _ in range(20):
        decoder.feed(unit * 10_000)
    with pytest.raises(LimitHit, match="one event of the reply is larger"):
        decoder.feed(unit * 60_000)
