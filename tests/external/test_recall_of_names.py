"""Recall in coding chats: earlier text is found by a later message that describes it in other words (R-516)."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

TRANSCRIPTS = Path(__file__).resolve().parents[3] / "shared" / "data" / "transcripts"
BENCH = Path(__file__).resolve().parents[2] / "bench" / "bench_recall.py"
pytestmark = pytest.mark.skipif(not TRANSCRIPTS.is_dir(), reason="the recorded chats of ../shared are not here")


def test_a_sentence_finds_the_files_and_names_it_refers_to() -> None:
    """The names are split into words, and only text before the sentence is searched."""
    command = [sys.executable, str(BENCH), "--json", "--coding", str(TRANSCRIPTS)]
    table = json.loads(subprocess.run(command, capture_output=True, text=True, check=True).stdout)
    assert table["asked"] >= 60, table
    first, ten = table["ours"]
    assert first >= 0.6, table
    assert ten >= 0.92, table
    assert first > table["plain"][0], table
