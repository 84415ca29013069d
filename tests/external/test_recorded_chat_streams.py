"""Every recorded Chat Completions reply decodes to the official SDK's result, for any split of the bytes."""

from __future__ import annotations

import json
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

from codecompanion.adapters.base import Finished, ReasoningDelta, StreamEvent, TextDelta
from codecompanion.adapters.errors.error_map import Endpoint, error_from_status
from codecompanion.adapters.openai_chat.decode import ChatDecoder
from codecompanion.errors import AdapterError, MalformedReply, ModelNotFound, RateLimited, RequestRejected, StreamCut

WIRE = Path(__file__).resolve().parents[3] / "shared" / "data" / "wire"
pytestmark = pytest.mark.skipif(not WIRE.is_dir(), reason=f"the recorded traffic in {WIRE} is not on this machine")
ENDPOINT = Endpoint(name="test", base_url="https://api.test/v1")


def load(name: str) -> list[dict[str, Any]]:
    path = WIRE / name
    return [json.loads(line) for line in path.read_text(encoding="utf-8").split("\n") if line] if path.is_file() else []


def pair_with_expected() -> list[dict[str, Any]]:
    """Return the recorded chat exchanges, each with its `golden` (None without one).

    Three goldens were made from another recording of the same source: their call ids occur nowhere in the bytes.
    """
    expected = {(entry["source"], entry["i"]): entry.get("golden") for entry in load("expected.jsonl")}
    recorded = [entry for entry in load("recorded.jsonl") if entry["family"] == "chat"]
    for entry in recorded:
        golden = expected.get((entry["source"], entry["i"]))
        ids = [tool["id"] for tool in golden["tools"]] if golden else []
        entry["golden"] = golden if all(call_id in entry["response"] for call_id in ids) else None
    return recorded


RECORDED = pair_with_expected()
STREAMS = [entry for entry in RECORDED if "event-stream" in entry["content_type"]]
WHOLE = [entry for entry in RECORDED if entry["status"] == 200 and "json" in entry["content_type"]]
ERRORS = [entry for entry in RECORDED if entry["status"] >= 400]


def name_of(entry: dict[str, Any]) -> str:
    return f"{Path(entry['source']).stem}-{entry['i']}"


def new_decoder() -> ChatDecoder:
    numbers = iter(range(100))
    return ChatDecoder(ENDPOINT, lambda: f"new_{next(numbers)}")


def decode(body: bytes, *cuts: int) -> tuple[dict[str, Any], AdapterError | None]:
    """Decode the body cut at the given places; neighbouring deltas are joined."""
    decoder = new_decoder()
    events: list[StreamEvent] = []
    for start, end in pairwise([0, *cuts, len(body)]):
        events.extend(decoder.feed(body[start:end]))
    if decoder.problem is None:
        events.extend(decoder.finish())
    return summary(events), decoder.problem


def summary(events: list[StreamEvent]) -> dict[str, Any]:
    finished = events[-1] if events and isinstance(events[-1], Finished) else None
    calls = finished.tool_calls if finished else ()
    usage = finished.usage if finished else None
    return {
        "text": "".join(event.text for event in events if isinstance(event, TextDelta)),
        "reasoning": "".join(event.text for event in events if isinstance(event, ReasoningDelta)),
        "tools": [[call.name, json.loads(call.arguments)] for call in calls],
        "ids": [call.id for call in calls],
        "stop": finished.stop if finished else None,
        "usage": [usage.prompt_tokens, usage.output_tokens] if usage else None,
    }


def check(got: dict[str, Any], golden: dict[str, Any]) -> None:
    assert got["text"] == (golden["text"] or "")
    assert [[name, arguments] for name, arguments in got["tools"]] == [
        [tool["name"], json.loads(tool["arguments"] or "{}")] for tool in golden["tools"]
    ]
    assert got["ids"] == [tool["id"] for tool in golden["tools"]]
    assert got["usage"] == golden["usage"]
    assert got["stop"] == {"content_filter": "filtered"}.get(golden["stop"], golden["stop"])


def test_the_recordings_are_really_checked() -> None:
    """A pairing that finds nothing would make the tests below empty."""
    assert sum(entry["golden"] is not None for entry in STREAMS) >= 8
    assert sum(entry["golden"] is not None for entry in WHOLE) >= 30


@pytest.mark.parametrize("entry", STREAMS, ids=name_of)
def test_a_recorded_stream_decodes_as_the_sdk_decoded_it(entry: dict[str, Any]) -> None:
    """Text, tools and usage match `expected.jsonl`, and the reply is complete."""
    got, problem = decode(entry["response"].encode())
    assert problem is None, problem
    golden = entry["golden"]
    if golden is not None:
        check(got, golden)


@pytest.mark.slow("a stream cut at each of its bytes")
@pytest.mark.parametrize("entry", STREAMS, ids=name_of)
def test_a_recorded_stream_may_be_split_at_every_byte(entry: dict[str, Any]) -> None:
    """The stream is split in two at each position (long ones at a sample), byte by byte, and with CRLF."""
    body = entry["response"].encode()
    whole = decode(body)[0]
    step = max(1, len(body) // 1500)
    for position in range(0, len(body), step):
        assert decode(body, position)[0] == whole, position
    for size in (1, 2, 3, 7, 64):
        assert decode(body, *range(size, len(body), size))[0] == whole, size
    crlf = body.replace(b"\n", b"\r\n")
    assert decode(crlf, *range(1, len(crlf)))[0] == whole
    assert decode(body.replace(b"\n", b"\r"), *range(1, len(body)))[0] == whole


@pytest.mark.parametrize("entry", STREAMS, ids=name_of)
def test_a_recorded_stream_that_breaks_off_is_never_complete(entry: dict[str, Any]) -> None:
    """Lesson 39: the stream ends before the event with the finish reason."""
    body = entry["response"].encode()
    events = body.split(b"\n\n")
    last = next(number for number, event in enumerate(events) if b'"finish_reason":"' in event.replace(b": ", b":"))
    got, problem = decode(b"\n\n".join(events[:last]) + b"\n\n")
    assert isinstance(problem, StreamCut)
    assert got["stop"] is None


@pytest.mark.parametrize("entry", WHOLE, ids=name_of)
def test_a_recorded_whole_reply_decodes_as_the_sdk_decoded_it(entry: dict[str, Any]) -> None:
    """A gateway that does not stream sends the reply as one JSON object."""
    golden = entry["golden"]
    decoder = new_decoder()
    events = decoder.read_json(entry["response"].encode())
    if '"choices"' not in entry["response"]:
        assert decoder.problem is not None
        return
    if decoder.problem is None and golden is not None:
        check(summary(events), golden)
    elif decoder.problem is not None:
        body = json.loads(entry["response"])
        reasons = [choice.get("finish_reason") for choice in body.get("choices") or []]
        assert body.get("error") or not any(reasons) or "error" in reasons, decoder.problem


@pytest.mark.parametrize("entry", ERRORS, ids=name_of)
def test_a_recorded_error_becomes_one_sentence(entry: dict[str, Any]) -> None:
    """The error class follows the status, and the sentence contains the provider's own words."""
    body = json.loads(entry["response"])
    error = error_from_status(entry["status"], body, {}, ENDPOINT)
    classes = {400: RequestRejected, 404: ModelNotFound, 429: RateLimited}
    assert type(error) is classes[entry["status"]]
    assert str(error).startswith("test: ")
    assert "\n" not in str(error)


LONDON_PARIS = [
    ["weather", {"location": "London, UK", "units": "celsius"}],
    ["weather", {"location": "Paris, France", "units": "celsius"}],
]
COPILOT_SAYS = (
    "I need to check the weather for both London and Paris, but I can only call the weather tool once for each"
    " location, and I need to specify temperature units.\n\n"
    "Let me check the weather for London first, and then for Paris:"
)
FIXTURES: dict[str, tuple[str, list[Any], list[int]]] = {
    "openai_streaming.txt": (
        "Dynamic, Flexible. \n\nIs there anything specific you would like to know about Ruby?",
        [],
        [394, 18],
    ),
    "openai_tools_streaming.txt": (
        "",
        [
            ["weather", {"location": "London", "units": "celsius"}],
            ["weather", {"location": "Paris", "units": "celsius"}],
        ],
        [479, 53],
    ),
    "openai_tools_no_params_streaming.txt": (
        "",
        [["weather_with_default", {}], ["weather_with_default", {"location": "Paris", "units": "celsius"}]],
        [479, 53],
    ),
    "deepseek_streaming.txt": ("Elegant simplicity", [], [9, 168]),
    "deepseek_tools_streaming.txt": ("", LONDON_PARIS, [1366, 138]),
    "mistral_streaming.txt": ("Dynamic Language", [], [421, 3]),
    "mistral_tools_streaming.txt": (
        "",
        [LONDON_PARIS[1], ["weather", {"location": "London, United Kingdom", "units": "celsius"}]],
        [1401, 38],
    ),
    "copilot_streaming.txt": (
        "**Elegant simplicity.**\n\nWhat aspects of Ruby would you like me to explain in more detail?",
        [],
        [394, 22],
    ),
    "copilot_tools_streaming.txt": (COPILOT_SAYS, LONDON_PARIS[:1], [422, 48]),
}


@pytest.mark.parametrize("name", FIXTURES)
def test_streams_recorded_by_codecompanion_decode(name: str) -> None:
    """The recorded files have no blank lines between events, and some lack `[DONE]`; they also decode byte by byte."""
    body = (WIRE / "codecompanion" / name).read_bytes()
    text, tools, usage = FIXTURES[name]
    for cuts in ((), range(1, len(body))):
        got, problem = decode(body, *cuts)
        assert problem is None
        assert (got["text"], got["tools"], got["usage"]) == (text, tools, usage)


def test_the_thinking_of_mistral_is_reasoning() -> None:
    """It arrives as parts of `content`; the recording ends before the reply does."""
    got, problem = decode((WIRE / "codecompanion" / "mistral_thinking_streaming.txt").read_bytes())
    assert (got["reasoning"], got["text"]) == ("Okay, that works", "")
    assert isinstance(problem, StreamCut)


@pytest.mark.parametrize(
    ("name", "calls"),
    [
        ("openai_no_streaming.txt", 0),
        ("openai_tools_no_streaming.txt", 2),
        ("deepseek_no_streaming.txt", 0),
        ("deepseek_tools_no_streaming.txt", 2),
        ("mistral_no_streaming.txt", 0),
        ("mistral_tools_no_streaming.txt", 2),
        ("copilot_no_streaming.txt", 0),
        ("copilot_tools_no_streaming.txt", 1),
    ],
)
def test_whole_replies_recorded_by_codecompanion_decode(name: str, calls: int) -> None:
    """Copilot spreads text and calls over several choices without an index."""
    decoder = new_decoder()
    events = decoder.read_json((WIRE / "codecompanion" / name).read_bytes())
    got = summary(events)
    assert decoder.problem is None
    assert len(got["tools"]) == calls
    assert bool(got["text"]) or calls
    assert got["usage"] is not None
    assert got["stop"] == ("tool_calls" if calls else "stop")


@pytest.mark.parametrize("name", ["ollama_streaming.txt", "ollama_tools_streaming.txt", "ollama_no_streaming.txt"])
def test_ollamas_native_format_yields_a_sentence(name: str) -> None:
    """It is another wire format; the error says where the Chat Completions endpoint is."""
    body = (WIRE / "codecompanion" / name).read_bytes()
    decoder = new_decoder()
    if body.startswith(b"data:"):
        decoder.feed(body)
    else:
        decoder.read_json(body)
    assert isinstance(decoder.problem, MalformedReply)
    assert "env.url" in str(decoder.problem) or "cannot be read" in str(decoder.problem)
