"""Questions to the editor: answered, late, or never."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from codecompanion.session.files.editor_client import EditorClient
from codecompanion.tools.files.open_files import Changed, OpenFile
from codecompanion.wire.events import Ask
from codecompanion.wire.requests import Answer

FILE = OpenFile(path="/w/a", buffer=3, tick=7, modified=False)


class Editor:
    """Answers questions as configured by the test."""

    def __init__(self, answer=None, limit_s: float = 5.0) -> None:
        self.asked: list[Ask] = []
        self._answer = answer
        self.client = EditorClient(self.take, lambda: 100.0, limit_s, limit_s)

    def take(self, ask: Ask) -> None:
        self.asked.append(ask)
        if self._answer is not None:
            answer = Answer(ask_id=ask.ask_id, **self._answer)
            asyncio.get_running_loop().call_soon(self.client.take, answer)


async def test_open_files_are_returned_with_their_state() -> None:
    file = {"path": "/w/a", "buffer": 3, "tick": 7, "modified": True, "text": "x\n"}
    editor = Editor({"ok": True, "result": {"files": [file]}})
    opened = await editor.client.look([Path("/w/a")])
    found = opened.at(Path("/w/a"))
    assert found is not None
    assert (found.text, found.modified, opened.silent) == ("x\n", True, False)
    assert editor.asked[0].until_ms == 105_000


@pytest.mark.parametrize("answer", [None, {"ok": False, "error": "no"}])
async def test_without_an_answer_the_file_on_disk_counts(answer) -> None:
    assert (await Editor(answer, limit_s=0.01).client.look(None)).silent


async def test_an_unanswered_change_is_unknown_and_a_failed_one_is_refused() -> None:
    assert (await Editor(limit_s=0.01).client.change(FILE, "y")).state == "unknown"
    refused = await Editor({"ok": False, "error": "E21"}).client.change(FILE, "y")
    assert refused == Changed(state="refused", reason="/w/a was not changed: E21")


async def test_a_late_answer_is_dropped() -> None:
    editor = Editor(limit_s=0.01)
    assert (await editor.client.look(None)).silent
    editor.client.take(Answer(ask_id=editor.asked[0].ask_id, ok=True, result={"files": []}))
    editor.client.take(Answer(ask_id=99, ok=True))


async def test_reloading_expects_no_answer() -> None:
    editor = Editor()
    await editor.client.reload(Path("/w/gone"))
    assert (editor.asked[0].ask_id, editor.asked[0].fields) == (0, {"deleted": "/w/gone"})
