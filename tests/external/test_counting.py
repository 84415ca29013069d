"""The token count before each request in recorded sessions, compared with the provider's report.

Lessons, counting tokens: p50 0.1 %, p95 1 %, p99 4 %. `bench_counting` defines a `sound` request.
"""

from __future__ import annotations

import importlib.util
import sys
from pathlib import Path
from types import ModuleType

import pytest

ROOT = Path(__file__).resolve().parents[2]
TRANSCRIPTS = ROOT.parent / "shared" / "data" / "transcripts"
pytestmark = pytest.mark.skipif(not TRANSCRIPTS.is_dir(), reason="the recorded chats of ../shared are not here")


@pytest.fixture(scope="module")
def bench() -> ModuleType:
    spec = importlib.util.spec_from_file_location("bench_counting", ROOT / "bench" / "bench_counting.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules["bench_counting"] = module
    spec.loader.exec_module(module)
    return module


@pytest.fixture(scope="module")
def everything(bench: ModuleType) -> dict[str, dict[str, float]]:
    return bench.summarise(bench.replay_all(sorted(TRANSCRIPTS.glob("*/*.jsonl")), "claude-3-5-sonnet"))  # type: ignore[no-any-return]


def test_counts_are_accurate_to_a_percent(everything: dict[str, dict[str, float]]) -> None:
    """The counts are far better than the former method: characters / 4 and an estimate of everything."""
    assert everything["sound requests"]["n"] > 600
    for kind, p95, p99 in (("sound requests", 0.6, 2.5), ("as recorded", 1.1, 3.5)):
        found = everything[kind]
        assert (found["p50"] <= 0.1, found["p95"] <= p95, found["p99"] <= p99) == (True, True, True), (kind, found)
    assert everything["- by chars/4"]["p50"] > 20
    assert everything["- estimated, no anchor"]["p50"] > 10 * everything["sound requests"]["p50"]


def test_the_bounds_contain_the_report(everything: dict[str, dict[str, float]]) -> None:
    outside = everything["- beyond the lower bound"]["n"] + everything["- beyond the upper bound"]["n"]
    assert outside <= 0.03 * everything["sound requests"]["n"]


@pytest.mark.parametrize("half", [0, 1])
def test_19_in_20_are_within_their_bounds(bench: ModuleType, half: int) -> None:
    """The bounds apply to both halves of the sessions, so that a fit on one half is valid for the other."""
    paths = sorted(TRANSCRIPTS.glob("*/*.jsonl"))
    rows = bench.summarise(bench.replay_all(paths, "claude-3-5-sonnet", half=half))
    assert rows["as recorded"]["n"] > 100
    assert rows["- of as recorded beyond its bounds"]["n"] <= 0.05 * rows["as recorded"]["n"], rows
    outside = rows["- beyond the lower bound"]["n"] + rows["- beyond the upper bound"]["n"]
    assert outside <= 0.02 * rows["sound requests"]["n"], rows


@pytest.mark.parametrize("half", [0, 1])
def test_19_in_20_are_within_the_bounds_of_a_count_without_reports(bench: ModuleType, half: int) -> None:
    """A chat without any report is counted with the calibration from the model's other chats."""
    paths = sorted(TRANSCRIPTS.glob("*/*.jsonl"))
    rows = bench.summarise(bench.replay_all(paths, "claude-3-5-sonnet", half=half))
    assert rows["- nothing reported in this chat"]["n"] > 80
    assert rows["- of these beyond its bounds"]["n"] <= 0.05 * rows["- nothing reported in this chat"]["n"]


def test_of_all_requests_19_in_20_are_within_their_bounds(everything: dict[str, dict[str, float]]) -> None:
    """This includes requests with gaps in the recording: unrecorded requests in between, or texts not sent as such."""
    assert everything["- of every request beyond its bounds"]["n"] <= 0.05 * everything["every request"]["n"]


def test_an_edit_is_counted_to_the_token_and_a_first_request_to_a_percent(
    everything: dict[str, dict[str, float]],
) -> None:
    """The recordings lack the tool schemas: the calibration of another chat with the same tools replaces them."""
    assert everything["reverted"]["n"] > 100
    assert everything["reverted"]["p95"] <= 0.1
    assert everything["first"]["p50"] <= 1


def test_no_request_is_dropped_silently(bench: ModuleType, everything: dict[str, dict[str, float]]) -> None:
    kinds = ("sound requests", "first", "cold", "between", "rewritten", "impossible", "cut")
    reported = sum(
        message.usage is not None and message.usage.prompt_tokens > 0
        for _, messages in bench.read_sessions(sorted(TRANSCRIPTS.glob("*/*.jsonl")))
        for message in messages
    )
    assert sum(everything[kind]["n"] for kind in kinds) == reported


def test_one_long_session_is_far_below_the_goal(bench: ModuleType) -> None:
    """The pi session has 469 requests of up to 185,000 tokens and two compactions of its own."""
    rows = bench.summarise(bench.replay_all([TRANSCRIPTS / "pi" / "before-compaction.jsonl"], "claude-opus-4-5"))
    sound = rows["sound requests"]
    assert (sound["p50"] <= 0.02, sound["p95"] <= 0.2, sound["p99"] <= 0.6) == (True, True, True), sound
    assert rows["- right after a cut"]["max"] <= 0.1
