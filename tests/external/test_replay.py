"""`replay` over recorded sessions under every policy (lessons 21–24)."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest
from samples import ALL, sampled

from codecompanion.context.policy.policy_catalog import load_policy, policy_names
from codecompanion.model.transcript_format import read_bytes
from codecompanion.reports.replay import Figures, read_recording, walk
from tests.patience import PATIENCE_S

DATA = Path(__file__).resolve().parents[3] / "shared" / "data" / "transcripts"
pytestmark = [
    pytest.mark.slow("recorded sessions under every policy"),
    pytest.mark.skipif(not DATA.is_dir(), reason=f"the recorded transcripts in {DATA} are not on this machine"),
]
PYTHON = Path(__file__).resolve().parents[2] / "python"
FILES = sorted(DATA.rglob("*.jsonl")) if DATA.is_dir() else []
SAMPLE = sampled(FILES, 8)
WINDOW = 200_000


@pytest.mark.parametrize("cache", ["5m", "none"])
@pytest.mark.parametrize("path", SAMPLE, ids=[str(path.relative_to(DATA)) for path in SAMPLE])
def test_a_recorded_session_is_replayed_under_every_policy(path: Path, cache: str) -> None:
    recording = read_recording(read_bytes(path.read_bytes().split(b"\n"), str(path)).messages)
    plain = walk(recording, None, WINDOW, cache)  # type: ignore[arg-type]
    assert plain.requests == sum(message.role == "assistant" for message in recording.messages)
    assert (plain.edits, plain.compactions, plain.faults) == (0, 0, 0)
    for name in policy_names():
        figures = walk(recording, load_policy(name), WINDOW, cache)  # type: ignore[arg-type]
        assert (figures.requests, figures.text_edits) == (plain.requests, plain.text_edits), name
        assert figures.overflows == 0, name
        # Where text is read again, that is one request more.
        assert figures.faults or figures.prompt_tokens <= plain.prompt_tokens, name
        assert 0 <= figures.faults <= figures.text_edits, name


@pytest.mark.parametrize("name", [name for name in policy_names() if not load_policy(name).stop_over_limit])
def test_in_a_small_window_everything_still_fits(name: str) -> None:
    """This applies to all policies except those documented to stop instead."""
    for path in FILES if ALL else FILES[::3]:
        recording = read_recording(read_bytes(path.read_bytes().split(b"\n"), str(path)).messages)
        largest = max((message.tokens for message in recording.messages), default=0)
        if largest < 32_000 // 8:
            assert walk(recording, load_policy(name), 32_000, "5m").overflows == 0, path


def test_edits_that_pay_reach_their_goal() -> None:
    """The input cost of the fitting part is well below that without management.

    Faults are rare, and no kind of run costs more.
    """
    plain = paid = Figures()
    for folder in sorted({path.parent for path in FILES}):
        before = after = Figures()
        for path in (path for path in FILES if path.parent == folder):
            recording = read_recording(read_bytes(path.read_bytes().split(b"\n"), str(path)).messages)
            before += walk(recording, None, WINDOW, "5m")
            after += walk(recording, load_policy("adaptive"), WINDOW, "5m")
        assert after.compared_cost <= before.compared_cost, folder
        plain, paid = plain + before, paid + after
    assert paid.compared_cost <= 0.9 * plain.compared_cost
    assert paid.faults <= 0.005 * paid.text_edits


@pytest.mark.parametrize("window", [16_000, 32_000, WINDOW])
def test_a_dialogue_costs_no_more_than_without_management(window: int) -> None:
    """Under `cowork_chat` (R-457), a summary must be worth the loss of the provider's cached prefix."""
    before = after = Figures()
    for path in (path for path in FILES if path.parent.name in ("aider", "tau-airline")):
        recording = read_recording(read_bytes(path.read_bytes().split(b"\n"), str(path)).messages)
        before += walk(recording, None, window, "5m")
        after += walk(recording, load_policy("cowork_chat"), window, "5m")
    assert before.requests > 400
    assert after.compared_cost <= before.compared_cost


def test_the_command_prints_one_table_for_the_files() -> None:
    done = subprocess.run(
        [sys.executable, "-m", "codecompanion", "replay", "--json", *map(str, SAMPLE)],
        capture_output=True, timeout=PATIENCE_S, check=False, env={"PYTHONPATH": str(PYTHON)},
    )  # fmt: skip
    assert (done.returncode, done.stderr) == (0, b"")
    answer = json.loads(done.stdout)
    assert [entry["policy"] for entry in answer["total"]] == ["(none)", *policy_names()]
    assert len(answer["files"]) == len(SAMPLE)
