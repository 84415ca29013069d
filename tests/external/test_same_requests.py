"""The sent bytes stay the same during a refactoring.

Every recorded session is played under one policy, in turn; `EXTERNAL=all` plays each under all policies. A change with
intended differences rewrites the table (see `same_requests.py`) in the same commit.
"""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from same_requests import DIGESTS, POLICIES, TRANSCRIPTS, digest, name_of, recordings
from samples import ALL

pytestmark = [
    pytest.mark.slow("every request of recorded sessions"),
    pytest.mark.skipif(not TRANSCRIPTS.is_dir(), reason=f"the recorded sessions in {TRANSCRIPTS} are not here"),
    pytest.mark.timeout(300),
]
FILES = recordings()
CASES = [
    (path, policy)
    for number, path in enumerate(FILES)
    for policy in (POLICIES if ALL else [POLICIES[number % len(POLICIES)]])
]
TABLE: dict[str, dict[str, str]] = json.loads(DIGESTS.read_text(encoding="utf-8"))


@pytest.mark.parametrize(("path", "policy"), CASES, ids=[f"{name_of(path)}, {policy}" for path, policy in CASES])
def test_a_recorded_session_sends_the_same_bytes(path: Path, policy: str) -> None:
    assert digest(path, policy) == TABLE[name_of(path)][policy]


def test_the_table_has_every_recording_under_every_policy() -> None:
    assert {name: sorted(row) for name, row in TABLE.items()} == {name_of(path): sorted(POLICIES) for path in FILES}
