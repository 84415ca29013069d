"""A truncated result in log, buffer, list, recall and undo: marked, with its size, and fully available (R-524)."""

from __future__ import annotations

import json

from codecompanion.session.chat.inspection import inspect, original
from codecompanion.session.chat.removed_messages import find_removed
from codecompanion.wire.events import ContextEdited, Restored, ViewMarks
from codecompanion.wire.requests import UndoChange
from tests.unit.session.fakes import Bench, ScriptedAdapter, calls, says
from tests.unit.session.test_native_compaction import talk


async def test_a_truncated_result_is_marked_everywhere(tmp_path):
    """A row used to say "cleared" about a result of which a fifth was sent, and lost its mark after the next change."""
    whole = "".join(f"line {number} of the file\n" for number in range(1_500))
    (tmp_path / "a.txt").write_text(whole)
    read = calls(("c1", "read_file", json.dumps({"path": "a.txt"})))
    bench = Bench(tmp_path, ScriptedAdapter("s", [read, says("done")]), window=6_000)
    session = await bench.open()
    await talk(bench, session, 1)
    edited = bench.of(ContextEdited)[-1]
    [(message_id, percent)] = edited.cut.items()
    assert (edited.cleared, edited.changed, edited.call_ids) == (0, (message_id,), ("c1",))
    assert 10 < percent < 60
    [row] = [row for row in inspect(session.control, session.log)["rows"] if row["id"] == message_id]
    assert row["state"] == "cut"
    session.context.show_marks()
    marks = bench.of(ViewMarks)[-1]
    assert (marks.cleared, marks.cut) == ((message_id,), {message_id: percent})
    events = bench.store.load_events("chat-1")
    assert [one.how for one in find_removed(events, session.log.view)] == ["cut"]
    assert "line 1499 of the file" in original(events, session.log.view.messages, message_id).text
    await session.close()
    again = await bench.resume()
    assert again is not None
    shown = {entry.kind: entry for event in bench.of(Restored) for entry in event.entries}
    assert (shown["tool"].cleared, shown["tool"].kept_percent) == (True, (percent,))
    assert (shown["edited"].messages, shown["edited"].kept_percent) == (0, (percent,))
    answer = await again.edits.carry_out(UndoChange(chat="chat-1", change_id=edited.change_id))
    assert answer == "Undone: 1 tool result restored."
    assert bench.of(ViewMarks)[-1].cut == {}
