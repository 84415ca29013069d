"""Inline edits under the faults of the table: each edit ends once, and a failed one never counts as a proposal."""

from __future__ import annotations

from pathlib import Path

import msgspec
import pytest

from codecompanion.session.state import State
from codecompanion.wire.events import EditEnded
from codecompanion.wire.requests import EditTarget
from tests.faults.scene import Scene
from tests.faults.table import TABLE
from tests.faults.wires import WIRES
from tests.unit.session.fakes import submit

TARGET = EditTarget(path="a.py", first=1, region=("x = 1", "y = 2"), filetype="python")
# Refusals that name the size of a request mean one with tools, which an edit has not.
PLAYED = [
    row
    for row in TABLE
    if row.kind in ("status", "stream") and "chat" in row.wires and not row.name.startswith("too long")
]


class EditScene(Scene):
    """A scene whose messages are instructions for an inline edit; the replies are prose."""

    async def _ask(self, host, session, text, *, then=""):
        if then:
            return await super()._ask(host, session, text, then=then)
        self._numbers += 1
        before = len(host.of(EditEnded))
        session.submit(msgspec.structs.replace(submit(text, self._numbers), edit=TARGET))
        await host.until(lambda: session.state is State.IDLE and session.task is None)
        ended = host.of(EditEnded)[before:]
        assert len(ended) == 1, f"the edit ended {len(ended)} times"
        assert ended[0].outcome in ("answer", "failed")
        assert ended[0].outcome == "answer" or ended[0].error
        return None


@pytest.mark.parametrize("row", PLAYED, ids=lambda row: row.name)
async def test_an_edit_survives_the_fault(row, root: Path) -> None:
    await EditScene(row, WIRES["chat"], root).play()
