"""Recorded conversations that change their provider at every turn, for every ordered pair: R-542; issue 3, proof 4."""

from __future__ import annotations

from itertools import permutations
from pathlib import Path

import pytest

from tests.adapters.switch_story import read_story
from tests.adapters.test_adapter_switches import play

TRANSCRIPTS = Path(__file__).resolve().parents[3] / "shared" / "data" / "transcripts"
PROVIDERS = ("openai", "mistral", "gemini", "responses", "anthropic")
LONGEST = 2_000
"""Texts are cut to this: what is long is the business of `test_long_session.py`, here it is the form that counts."""


def recordings() -> list[Path]:
    """Return three transcripts of different origin: many short turns, a dialogue, a long coding session."""
    found = (TRANSCRIPTS / "tau-airline", TRANSCRIPTS / "aider", TRANSCRIPTS / "pi")
    return [max(folder.glob("*.jsonl"), key=lambda path: path.stat().st_size) for folder in found if folder.is_dir()]


@pytest.mark.skipif(not TRANSCRIPTS.is_dir(), reason="needs ../shared/data/transcripts")
@pytest.mark.parametrize(("first", "other"), list(permutations(PROVIDERS, 2)))
@pytest.mark.parametrize("recording", recordings(), ids=lambda path: f"{path.parent.name}/{path.stem[:20]}")
async def test_a_recorded_chat_may_change_its_provider_at_every_turn(
    tmp_path: Path, recording: Path, first: str, other: str
) -> None:
    """No request is refused, nothing is lost, nothing sealed reaches another provider (`switch_chat.py` checks)."""
    story = read_story(recording, turns=10, longest=LONGEST)
    chat = await play(tmp_path, (first, other), story)
    assert chat.switches == len(story) - 1 > 3
