"""The share of a long table of cases that `make ci` runs; `make thorough` runs the rest.

Each row of these tables is a whole chat, an editor or a replayed session, and most rows differ in one value. Every test
function keeps its first case; further cases are selected by name, so that the same cases run each time.
"""

from __future__ import annotations

import zlib
from collections.abc import Sequence

import pytest

SHARES = {
    "tests/adapters/test_adapter_switches.py": 3,
    "tests/external/test_adapter_switches.py": 3,
    "tests/external/test_context_transcripts.py": 3,
    "tests/external/test_replay.py": 3,
    "tests/external/test_same_requests.py": 3,
    "tests/faults/test_faults.py": 3,
    "tests/journeys/test_widths.py": 2,
    "tests/options/test_every_option.py": 2,
    "tests/unit/context/policy/test_strict.py": 3,
    "tests/unit/context/test_long_loops.py": 3,
    "tests/unit/context/test_scripted_summarisers.py": 3,
    "tests/unit/session/test_every_moment.py": 3,
    "tests/unit/session/test_long_loops.py": 3,
    "tests/unit/session/test_lying_usage.py": 3,
    "tests/unit/session/test_scripted_summarisers.py": 3,
}
"""By test file: one case in this many is run."""
_REASON = "a case of a long table: tests/shares.py plays a share of them"


def mark_the_rest(items: Sequence[pytest.Item]) -> None:
    """Mark the cases beyond the share of their file as thorough."""
    seen = set[str]()
    for item in items:
        path, _, name = item.nodeid.partition("::")
        share = SHARES.get(path, 1)
        function = f"{path}::{name.partition('[')[0]}"
        is_first = function not in seen
        seen.add(function)
        if share > 1 and not is_first and zlib.crc32(item.nodeid.encode()) % share:
            item.add_marker(pytest.mark.thorough(_REASON))
