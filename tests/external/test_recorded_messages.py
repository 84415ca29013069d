"""Every recorded Messages reply decodes to the official SDK's result, for any split of the bytes."""

from __future__ import annotations

import json
from itertools import groupby, pairwise
from pathlib import Path
from typing import Any

import pytest

from codecompanion.adapters.anthropic_messages.decode import MessagesDecoder
from codecompanion.adapters.anthropic_messages.gate import check_body
from codecompanion.adapters.base import (
    CompactionBegun,
    CompactionDone,
    Finished,
    ReasoningDelta,
    ReasoningDone,
    StreamEvent,
    TextDelta,
    ToolCallStarted,
)
from codecompanion.adapters.errors.error_map import Endpoint, error_from_status
from codecompanion.errors import AdapterError, ModelNotFound, StreamCut
from codecompanion.model.messages import Usage

WIRE = Path(__file__).resolve().parents[3] / "shared" / "data" / "wire"
pytestmark = pytest.mark.skipif(not WIRE.is_dir(), reason=f"the recorded traffic in {WIRE} is not on this machine")
ENDPOINT = Endpoint(name="test", base_url="https://api.test")
ORIGIN = "anthropic@api.test"
STOPS = {"end_turn": "stop", "stop_sequence": "stop", "tool_use": "tool_calls", "max_tokens": "length"}


def load(name: str) -> list[dict[str, Any]]:
    path = WIRE / name
    entries = (
        [json.loads(line) for line in path.read_text(encoding="utf-8").split("\n") if line] if path.is_file() else []
    )
    return [entry for entry in entries if entry["family"] == "messages"]


def pair_with_expected() -> list[dict[str, Any]]:
    """Return the recorded exchanges, each with its `golden`.

    One golden was made from another recording of the same source: its call ids occur nowhere in the bytes.
    """
    expected = {(entry["source"], entry["i"]): entry.get("golden") for entry in load("expected.jsonl")}
    recorded = load("recorded.jsonl")
    for entry in recorded:
        golden = expected.get((entry["source"], entry["i"]))
        ids = [tool["id"] for tool in golden["tools"]] if golden else []
        response = entry["response"]
        entry["bytes"] = (response if isinstance(response, str) else json.dumps(response)).encode()
        entry["golden"] = golden if all(call_id.encode() in entry["bytes"] for call_id in ids) else None
        entry["request"] = json.loads(entry["request"]) if isinstance(entry["request"], str) else entry["request"]
    return recorded


RECORDED = pair_with_expected()
STREAMS = [entry for entry in RECORDED if "event-stream" in entry["content_type"]]
WHOLE = [entry for entry in RECORDED if entry["status"] == 200 and "json" in entry["content_type"]]
FIXTURES = sorted((WIRE / "codecompanion").glob("anthropic_*.txt"))


def name_of(entry: dict[str, Any]) -> str:
    return f"{Path(entry['source']).stem}-{entry['i']}"


def new_decoder() -> MessagesDecoder:
    numbers = iter(range(100))
    return MessagesDecoder(ENDPOINT, ORIGIN, lambda: f"new_{next(numbers)}")


def decode(body: bytes, *cuts: int) -> tuple[dict[str, Any], AdapterError | None]:
    """Decode the body cut at the given places."""
    decoder = new_decoder()
    events: list[StreamEvent] = []
    for start, end in pairwise([0, *cuts, len(body)]):
        events.extend(decoder.feed(body[start:end]))
    if decoder.problem is None:
        events.extend(decoder.finish())
    return summary(events), decoder.problem


def decode_whole(body: bytes) -> tuple[dict[str, Any], AdapterError | None]:
    decoder = new_decoder()
    events = decoder.read_json(body)
    return summary(events), decoder.problem


def summary(events: list[StreamEvent]) -> dict[str, Any]:
    """Return a reply as one value; neighbouring deltas are joined."""
    finished = events[-1] if events and isinstance(events[-1], Finished) else None
    sealed = [json.loads(event.encrypted) for event in events if isinstance(event, ReasoningDone)]
    return {
        "types": [kind for kind, _ in groupby(kinds_of(events))],
        "text": "".join(event.text for event in events if isinstance(event, TextDelta)),
        "reasoning": "".join(event.text for event in events if isinstance(event, ReasoningDelta)),
        "sealed": sealed,
        "compactions": [event.part for event in events if isinstance(event, CompactionDone)],
        "tools": [[call.id, call.name, json.loads(call.arguments)] for call in finished.tool_calls] if finished else [],
        "stop": finished.stop if finished else None,
        "usage": finished.usage if finished else None,
        "other_passes": finished.other_passes if finished else (),
        "model": finished.model if finished else "",
    }


def kinds_of(events: list[StreamEvent]) -> list[str]:
    kinds: list[str] = []
    for event in events:
        match event:
            case TextDelta():
                kinds.append("text")
            case ToolCallStarted():
                kinds.append("tool_use")
            case CompactionBegun():
                kinds.append("compaction")
            case ReasoningDone():
                kinds.append(json.loads(event.encrypted)["type"])
    return kinds


def check(got: dict[str, Any], golden: dict[str, Any]) -> None:
    assert got["types"] == [kind for kind, _ in groupby(golden["types"])]
    assert got["text"] == golden["text"]
    assert got["tools"] == [[tool["id"], tool["name"], json.loads(tool["arguments"])] for tool in golden["tools"]]
    assert got["stop"] == STOPS[golden["stop"]]
    # The golden figures are those of the requested model; ours add up to them, but for compactions and advisors.
    if "advisor_tool_result" in got["types"]:
        return
    passes = [got["usage"], *got["other_passes"]] if not got["compactions"] else [got["usage"]]
    assert [sum(usage.input_tokens for usage in passes), sum(u.output_tokens for u in passes)] == golden["usage"]


def test_the_recordings_are_really_checked() -> None:
    """A pairing that finds nothing would make the tests below empty."""
    assert sum(entry["golden"] is not None for entry in STREAMS) >= 5
    assert sum(entry["golden"] is not None for entry in WHOLE) >= 40
    assert len(FIXTURES) >= 9


@pytest.mark.parametrize("entry", STREAMS, ids=name_of)
def test_a_recorded_stream_decodes_as_the_sdk_decoded_it(entry: dict[str, Any]) -> None:
    """The order of blocks, text, tools, stop reason and usage match `expected.jsonl`."""
    got, problem = decode(entry["bytes"])
    assert problem is None, problem
    check(got, entry["golden"])


@pytest.mark.parametrize("entry", WHOLE, ids=name_of)
def test_a_recorded_whole_reply_decodes_as_the_sdk_decoded_it(entry: dict[str, Any]) -> None:
    """Parts that must be sent back are kept as received, field by field."""
    got, problem = decode_whole(entry["bytes"])
    assert problem is None, problem
    blocks = json.loads(entry["bytes"])["content"]
    kept = [block for block in blocks if block["type"] not in ("text", "tool_use", "compaction")]
    assert got["sealed"] == kept
    compactions = [block for block in blocks if block["type"] == "compaction"]
    assert [json.loads(part.encrypted) for part in got["compactions"]] == [[block] for block in compactions]
    if entry["golden"] is not None:
        check(got, entry["golden"])


def streams() -> list[Any]:
    recorded = [pytest.param(entry["bytes"], id=name_of(entry)) for entry in STREAMS]
    fixtures = [path for path in FIXTURES if "no_streaming" not in path.name]
    return [*recorded, *(pytest.param(path.read_bytes(), id=path.stem) for path in fixtures)]


@pytest.mark.slow("a stream cut at each of its bytes")
@pytest.mark.parametrize("body", streams())
def test_a_recorded_stream_may_be_split_at_every_byte(body: bytes) -> None:
    """The stream is split in two at each position (long ones at a sample), into pieces of equal size, and with CRLF."""
    whole, problem = decode(body)
    assert problem is None
    for position in range(0, len(body), max(1, len(body) // 1500)):
        assert decode(body, position)[0] == whole, position
    for size in (1, 2, 3, 7, 64):
        assert decode(body, *range(size, len(body), size))[0] == whole, size
    crlf = body.replace(b"\n", b"\r\n")
    assert decode(crlf, *range(1, len(crlf)))[0] == whole


@pytest.mark.parametrize("body", streams())
def test_a_recorded_stream_that_breaks_off_is_never_complete(body: bytes) -> None:
    """Lesson 39: a stream that lacks only its end marker is incomplete."""
    end = body.rindex(b"message_stop")
    cut = body[: body.rindex(b"data:", 0, end)].removesuffix(b"event: message_stop\n")
    for length in (len(cut), len(cut) * 2 // 3, len(cut) // 3):
        got, problem = decode(cut[:length])
        assert isinstance(problem, StreamCut)
        assert got["stop"] is None


PASS = Usage(input_tokens=100, output_tokens=1426)


@pytest.mark.parametrize(
    ("name", "types", "usage", "others"),
    [
        ("compaction_streaming", ["compaction", "thinking", "text"], Usage(1808, 69), (PASS,)),
        ("compaction_no_streaming", ["compaction", "text"], Usage(1808, 69), (PASS,)),
        ("streaming", ["text"], None, ()),
        ("no_streaming", ["text"], None, ()),
        ("reasoning_streaming", ["thinking", "text"], None, ()),
        ("reasoning_no_streaming", ["thinking", "text"], None, ()),
        ("tools_streaming", ["text", "tool_use"], None, ()),
        ("tools_no_streaming", ["text", "tool_use"], None, ()),
        ("tools_no_params_streaming", ["text", "tool_use"], None, ()),
    ],
)
def test_a_fixture_of_the_reference_plugin_decodes(
    name: str, types: list[str], usage: Usage | None, others: tuple[Usage, ...]
) -> None:
    """The order of blocks is kept; after a compaction, the context size is that of the last `message` entry (R-538)."""
    body = (WIRE / "codecompanion" / f"anthropic_{name}.txt").read_bytes()
    got, problem = (decode_whole if "no_streaming" in name else decode)(body)
    assert problem is None
    assert got["types"] == types
    assert got["stop"] in ("stop", "tool_calls")
    if usage is not None:
        assert (got["usage"], got["other_passes"]) == (usage, others)
        assert got["compactions"][0].text.startswith("## Session Summary")
    if "tools" in name:
        assert all(isinstance(arguments, dict) for _, _, arguments in got["tools"])


def test_a_call_without_parameters_has_an_empty_object() -> None:
    """The stream contains only an empty delta for it."""
    body = (WIRE / "codecompanion" / "anthropic_tools_no_params_streaming.txt").read_bytes()
    got, _ = decode(body)
    assert got["tools"][0][2] == {}
    assert len(got["tools"]) == 2


def test_a_recorded_error_becomes_one_sentence() -> None:
    """The only recorded error is about a model that does not exist."""
    entry = next(entry for entry in RECORDED if entry["status"] == 404)
    error = error_from_status(404, json.loads(entry["bytes"]), {}, ENDPOINT)
    assert type(error) is ModelNotFound
    assert error.code == "not_found_error"


ACCEPTED = [entry for entry in RECORDED if entry["status"] == 200 and entry["request"]]


@pytest.mark.parametrize("entry", ACCEPTED, ids=name_of)
def test_a_recorded_request_raises_no_false_alarm(entry: dict[str, Any]) -> None:
    """Our check finds no problem in a request that the live endpoint accepted."""
    assert check_body(entry["request"]) == []
