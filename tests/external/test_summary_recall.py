"""The model-free summary of a recorded session: it contains the names needed by the next calls (lesson 21)."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from pathlib import Path

import pytest

from codecompanion.context.grounding.known_names import KnownNames
from codecompanion.context.grounding.verify_summary import mark_unverified
from codecompanion.context.ledger.ledger import summarise
from codecompanion.counting.tokens import estimate_text
from codecompanion.model.transcript_format import read_bytes

TRANSCRIPTS = Path(__file__).resolve().parents[3] / "shared" / "data" / "transcripts"
BENCH = Path(__file__).resolve().parents[2] / "bench" / "bench_summary.py"
pytestmark = [
    pytest.mark.slow("searches the summaries of recorded sessions"),
    pytest.mark.skipif(not TRANSCRIPTS.is_dir(), reason="the recorded chats of ../shared are not here"),
]


def test_four_thousand_tokens_contain_most_names_used_by_the_next_forty_calls() -> None:
    """It contains at least 0.73 of the file names and 0.66 of the identifiers; unseen names count as missed."""
    command = [sys.executable, str(BENCH), "--json", "--every", "20", str(TRANSCRIPTS)]
    table = json.loads(subprocess.run(command, capture_output=True, text=True, check=True).stdout)
    assert table["ALL"]["all_files"] >= 0.73, table
    assert table["ALL"]["all_names"] >= 0.66, table
    assert table["pi"]["tokens"] <= 4000, table


def test_the_ledger_alone_contains_as_much_in_2500_tokens() -> None:
    """Lesson 21: the ledger follows the model's prose, which uses 1500 of the 4000 tokens for facts unknown to code."""
    options = ["--json", "--every", "20", "--form", "below", "--budget", "2500"]
    command = [sys.executable, str(BENCH), *options, str(TRANSCRIPTS)]
    table = json.loads(subprocess.run(command, capture_output=True, text=True, check=True).stdout)
    assert table["ALL"]["all_files"] >= 0.73, table
    assert table["ALL"]["all_names"] >= 0.66, table
    assert table["pi"]["tokens"] <= 2500, table


def test_names_copied_from_real_chats_are_not_marked_and_foreign_ones_are() -> None:
    """Lesson 11: a ledger copies text, so only truncated names are marked in it; another chat's names do not occur."""
    chats = [
        read_bytes(path.read_bytes().split(b"\n"), str(path)).messages for path in sorted(TRANSCRIPTS.rglob("*.jsonl"))
    ]
    ledgers = [summarise(messages, 3000, estimate_text) for messages in chats]
    pairs = zip(ledgers, chats, strict=True)
    own = [mark_unverified(text, KnownNames().of(tuple(messages)))[1:] for text, messages in pairs]
    assert sum(len(missing) for _, missing in own) <= 0.01 * sum(names for names, _ in own), own
    pi = next(text for text, messages in zip(ledgers, chats, strict=True) if len(messages) > 900)
    _, names, missing = mark_unverified(pi, KnownNames().of(tuple(chats[0])))
    assert len(missing) >= 0.75 * names, (names, missing)


def test_no_noise_is_quoted_from_real_chats() -> None:
    """Noise is bare commands, thanks, `null`, modules mistaken for files, and decisions that are mere headings."""
    noise = re.compile(r"> /(?:undo|ex|diff|ls|tok|add|drop|model)\b[^\n]*$|> (?:ok|yo|wow|ls)$", re.MULTILINE)
    nothing = re.compile(
        r"\bnull \((?:edited|read)|(?<=[ /])django\.utils\.html|- said: \"(?:#|[^\"]*:\"$)", re.MULTILINE
    )
    for path in sorted(TRANSCRIPTS.rglob("*.jsonl")):
        messages = read_bytes(path.read_bytes().split(b"\n"), str(path)).messages
        summary = summarise(messages, 4000, estimate_text, "cw_9")
        latest = summary.partition("Latest request:")[2].partition("2. **")[0]
        quoted = [line for line in noise.findall(summary) if "\n" not in line]
        assert not quoted, (path.name, quoted)
        assert not noise.search(latest), (path.name, latest)
        assert not nothing.search(summary), (path.name, nothing.findall(summary))
