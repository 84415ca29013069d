"""Real servers' answers to a request that is too long are recognised, with their token counts (R-535, R-451).

`overflow_wordings.jsonl` has each answer with its source; rows with `held_out` were collected after the rules had been
written. Rows with `overflow` false sound similar but are about something else.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from codecompanion.adapters.errors.error_map import Endpoint, error_from_payload, error_from_status
from codecompanion.errors import AdapterError, ContextOverflow

ROWS: list[dict[str, Any]] = [
    json.loads(line)
    for line in (Path(__file__).parent / "overflow_wordings.jsonl").read_text(encoding="utf-8").splitlines()
]
LONG = [row for row in ROWS if row["overflow"]]
OTHER = [row for row in ROWS if not row["overflow"]]
ENDPOINT = Endpoint(name="test")


def name(row: dict[str, Any]) -> str:
    return f"{row['who']} {ROWS.index(row)}"


def both_doors(row: dict[str, Any]) -> list[AdapterError]:
    """Return our error for a status with this body, and for that body inside a reply."""
    body = row["body"]
    payload = body.encode() if isinstance(body, str) else json.dumps(body).encode()
    return [error_from_status(row["status"], body, {}, ENDPOINT), error_from_payload(payload, ENDPOINT)]


@pytest.mark.parametrize("row", LONG, ids=name)
def test_a_servers_message_about_a_long_request_is_recognised(row: dict[str, Any]) -> None:
    """The error includes the size and the window, which is the target of the retry."""
    for error in both_doors(row):
        assert isinstance(error, ContextOverflow), error
        assert [error.prompt_tokens, error.limit_tokens] == row["figures"]
        assert len(str(error)) < 420


@pytest.mark.parametrize("row", OTHER, ids=name)
def test_similar_messages_are_not_mistaken_for_it(row: dict[str, Any]) -> None:
    """A limit on the reply, per minute or on an image does not count, because a shorter history would not help."""
    assert not [error for error in both_doors(row) if isinstance(error, ContextOverflow)]


def test_every_row_names_its_source() -> None:
    """The table also has the required size."""
    assert all(row["source"] for row in ROWS)
    assert len(LONG) >= 100
    assert sum(row["held_out"] for row in ROWS) >= 40


def test_the_reason_is_found_after_the_displayed_part() -> None:
    """A message is shortened only for display, not for parsing."""
    error = error_from_status(400, {"error": {"message": "word " * 200 + "prompt is too long"}}, {}, ENDPOINT)
    assert isinstance(error, ContextOverflow)
    assert len(str(error)) < 420


@pytest.mark.parametrize("body", [b"[" * 5000, b'{"error":' * 3000 + b"1" + b"}" * 3000, b'{"error": 1e999}', b"\x00"])
def test_an_unreadable_body_is_still_an_error(body: bytes) -> None:
    """A RecursionError counts as bad input too."""
    assert not isinstance(error_from_payload(body, ENDPOINT), ContextOverflow)


@pytest.mark.parametrize(
    ("sentence", "long"),
    [
        ("Request payload size exceeds the limit: 20971520 bytes.", True),
        ("Value at 'inputText' failed: Member must have length less than or equal to 50000", True),
        ("Value at 'toolSpec.name' failed: Member must have length less than or equal to 64", False),
        ("prompt token count 9000 exceeds model context 8192", True),
        ("invalid params, messages too long", True),
        ("Input length 5000 exceeds max_input_len 4096", True),
        ("The request took too long to process. Try a shorter prompt.", False),
        ("Request timed out: the prompt is too long to finish in 60 s", False),
    ],
)
def test_similar_made_up_messages_are_recognised(sentence: str, long: bool) -> None:
    """They were written from memory of the providers, without public threads as sources."""
    error = error_from_status(400, {"error": {"message": sentence}}, {}, ENDPOINT)
    assert isinstance(error, ContextOverflow) is long
