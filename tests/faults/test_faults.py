"""One table of faults × three wire formats, with the same four checks per row (R-524…R-535; lessons 16, 36…39).

The chat is usable afterwards; nothing shown as sent is lost; everything was sent exactly once; the user saw one
sentence, important half first. Session, adapter, SQLite on disk and HTTP are real; only the clock and the waits are
not.
"""

from __future__ import annotations

import sqlite3
from dataclasses import replace
from pathlib import Path

import pytest

from tests.faults.faults import Row, WireName
from tests.faults.scene import Scene
from tests.faults.table import TABLE
from tests.faults.wires import WIRES

OTHER_WIRE = pytest.mark.slow("each fault in a second and a third wire format")
PLAYED = [
    pytest.param(row, wire, id=f"{row.kind}: {row.name} ({wire})", marks=[OTHER_WIRE] if wire != row.wires[0] else [])
    for row in TABLE
    for wire in row.wires
]


@pytest.mark.parametrize(("row", "wire"), PLAYED)
async def test_a_chat_survives_the_fault(row: Row, wire: WireName, root: Path) -> None:
    """All four checks pass after any fault."""
    await Scene(row, WIRES[wire], root).play()


def named(name: str) -> Row:
    """Return a row by its name."""
    return next(row for row in TABLE if row.name == name)


WRONG = {
    "nothing is said": replace(named("401"), says=""),
    "something else is said": replace(named("401"), says="the provider failed"),
    "it was answered": replace(named("401"), answered=True),
    "it was not answered": replace(named("500 once"), answered=False),
    "it arrived once": replace(named("500 once"), arrives=1),
    "it was sent": replace(named("it turns read-only"), returned=False),
    "it came back": replace(named("401"), returned=True),
    "a part is kept": replace(named("cut in a tool call"), kept=True),
    "no part is kept": replace(named("cut in the text"), kept=False),
}


@pytest.mark.parametrize("row", WRONG.values(), ids=WRONG)
async def test_each_question_can_be_answered_with_no(row: Row, root: Path) -> None:
    """A row with a wrong expectation fails."""
    with pytest.raises(AssertionError):
        await Scene(row, WIRES["chat"], root).play()


class Forgetful(Scene):
    """Loses the second message between closing and opening."""

    def _jump(self, number: int) -> None:
        if number == 2:
            with sqlite3.connect(self.root / "data" / "sessions.db") as connection:
                connection.execute(
                    "DELETE FROM events WHERE CAST(payload AS TEXT) LIKE '%Message two%' AND type = 'message_added'"
                )
            connection.close()


async def test_a_lost_message_is_detected(root: Path) -> None:
    """Lesson 36."""
    with pytest.raises(AssertionError):
        await Forgetful(named("500 once"), WIRES["chat"], root).play()


def test_the_table_describes_the_faults_in_words() -> None:
    """Each row has its own name, and a reason if something is sent more than once."""
    names = [(row.kind, row.name) for row in TABLE]
    assert len(set(names)) == len(names)
    assert all(row.expect and (row.arrives == 1 or row.because) for row in TABLE)
    assert {row.kind for row in TABLE} == {
        "status",
        "stream",
        "tool",
        "server",
        "summary",
        "clock",
        "disk",
        "window",
        "usage",
    }
