"""Recorded Chat Completions requests: our check raises no false alarm on accepted ones and catches mutations."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from codecompanion.adapters.openai_chat.gate import check_body
from tests.adapters.chat_mutations import mutants
from tests.providers.chat.rules import refusal_of

RECORDED = Path(__file__).resolve().parents[3] / "shared" / "data" / "wire" / "recorded.jsonl"
pytestmark = pytest.mark.skipif(not RECORDED.is_file(), reason=f"{RECORDED} is not on this machine")


def load() -> list[dict[str, Any]]:
    lines = RECORDED.read_text(encoding="utf-8").split("\n") if RECORDED.is_file() else []
    entries = [json.loads(line) for line in lines if line]
    return [
        entry
        for entry in entries
        if entry["family"] == "chat"
        and entry["status"] == 200
        and isinstance(entry["request"], dict)
        # Compatible endpoints have arguments and tools of their own.
        and entry["host"] == "api.openai.com"
    ]


ACCEPTED = load()


def test_the_recordings_are_really_checked() -> None:
    """A selection that finds nothing would make the tests below empty."""
    assert len(ACCEPTED) >= 50


@pytest.mark.parametrize("entry", ACCEPTED, ids=lambda entry: f"{Path(entry['source']).stem}-{entry['i']}")
def test_a_recorded_request_that_was_accepted_has_no_problem(entry: dict[str, Any]) -> None:
    """A false alarm would hide a real one."""
    assert check_body(entry["request"]) == []


def test_mutants_of_recorded_requests_are_caught() -> None:
    """The check catches them as it does for our own bodies (`tests/adapters/test_chat_mutations.py`)."""
    missed: list[str] = []
    refused = 0
    for entry in ACCEPTED:
        if refusal_of(entry["request"], models=(), window=0) is not None:
            continue
        for name, mutant in mutants(entry["request"]):
            try:
                found = refusal_of(mutant, models=(), window=0)
                why = found.message if found else None
            except (TypeError, KeyError, AttributeError) as error:
                why = f"it cannot be read: {error!r}"
            if why is not None:
                refused += 1
                if not check_body(mutant):
                    missed.append(f"{entry['source']}: {name}: {why}")
    assert refused > 3000
    assert len(missed) <= 0.03 * refused, "\n".join(missed)
