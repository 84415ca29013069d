"""The preview of a compaction (R-546)."""

from __future__ import annotations

from codecompanion.session.actions.preview_compaction import UNWRITTEN, preview
from tests.unit.session.fakes import Bench, ScriptedAdapter, calls, says, submit

READ = ("c1", "read_file", '{"path": "a.txt"}')


async def chat(tmp_path, window, **settings):
    """Return a bench and a chat of five turns, each with one large tool result."""
    (tmp_path / "a.txt").write_text("word " * 2000)
    replies = [reply for i in range(5) for reply in (calls((f"c{i}", *READ[1:])), says("ok"))]
    bench = Bench(tmp_path, ScriptedAdapter("s", replies), window=window, settings=settings)
    session = await bench.open()
    for i in range(5):
        session.submit(submit(f"question {i}", i + 1))
        await bench.idle(session)
    return bench, session


async def test_a_preview_shows_what_compact_would_change_and_changes_nothing(tmp_path):
    bench, session = await chat(tmp_path, 1_000_000)
    before, logged, asked = session.log.view, bench.store.load_events("chat-1"), len(bench.adapter.requests)
    shown = preview(session.control, session.log)
    assert "# Before the next request: nothing changes" in shown["text"]
    assert "# If you run /compact now: compacted" in shown["text"]
    lines = shown["text"].splitlines()
    assert sum(line.startswith("- ") for line in lines) == len(before.messages)
    assert UNWRITTEN in next(line for line in lines if line.startswith("+ "))
    assert session.log.view is before
    assert bench.store.load_events("chat-1") == logged
    assert len(bench.adapter.requests) == asked


async def test_a_preview_shows_which_results_would_be_cleared(tmp_path):
    options = {"editing": {"trigger": False}}
    _, session = await chat(tmp_path, 16_000, context_management={**options, "compaction": {"trigger": False}})
    session.use_overrides({"editing": {"trigger": 0.3}})
    text = preview(session.control, session.log)["text"]
    assert "# Before the next request: cleared, " in text
    changed = [line for line in text.split("# If")[0].splitlines() if line[:2] in ("- ", "+ ")]
    assert len(changed) == 4
    assert all(line[2:6] == "tool" for line in changed)
    assert " cleared " in changed[1]


async def test_a_preview_of_an_empty_chat_explains_why_nothing_changes(tmp_path):
    bench = Bench(tmp_path, ScriptedAdapter("s", []))
    session = await bench.open()
    assert "nothing to summarise" in preview(session.control, session.log)["text"]
