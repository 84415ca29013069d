"""One table of faults × three wire formats, each row asking the same four things (R-524…R-535; lessons 16, 36…39).

The chat is usable afterwards; nothing shown as sent is lost; all was sent exactly once; the user was told one sentence,
useful half first. What is played is real: session, adapter, SQLite on disk, HTTP; only the clock and the waits are not.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.faults.faults import Row, WireName
from tests.faults.scene import Scene
from tests.faults.table import TABLE
from tests.faults.wires import WIRES

PLAYED = [pytest.param(row, wire, id=f"{row.kind}: {row.name} ({wire})") for row in TABLE for wire in row.wires]


@pytest.mark.parametrize(("row", "wire"), PLAYED)
async def test_a_chat_outlives_the_fault(row: Row, wire: WireName, tmp_path: Path) -> None:
    """The four things hold, whatever went wrong."""
    await Scene(row, WIRES[wire], tmp_path).play()


def test_the_table_says_in_words_what_happens() -> None:
    """Each row has a name of its own, and a reason where something is sent more than once."""
    names = [(row.kind, row.name) for row in TABLE]
    assert len(set(names)) == len(names)
    assert all(row.expect and (row.arrives == 1 or row.because) for row in TABLE)
    assert {row.kind for row in TABLE} == {"status", "stream", "tool", "summary", "clock", "disk", "window", "usage"}
