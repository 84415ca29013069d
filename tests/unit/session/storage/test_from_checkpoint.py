"""Restoring a chat from its files: R-473…R-478, with and without the database."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from codecompanion.errors import InputError, StoreCorrupt, StoreUnavailable
from codecompanion.model.history import MessageAdded, PolicyEvent
from codecompanion.model.invariants import violations
from codecompanion.model.messages import Usage
from codecompanion.session.storage.from_checkpoint import restore_chat
from codecompanion.session.storage.open_stored import open_stored
from codecompanion.wire.events import PolicyEvent as Told
from codecompanion.wire.events import Restored
from codecompanion.wire.requests import OpenChat, Snapshot
from tests.unit.session.compaction.test_effects import checkpoints, kept
from tests.unit.session.fakes import ScriptedAdapter, calls, says, submit
from tests.unit.session.turn.test_turn import long_chat, talk

LEGACY = Path(__file__).parents[2] / "context" / "checkpoints" / "legacy"
READ = calls(("c1", "read_file", '{"path": "a.txt"}'), text="looking")


async def chat_with_files(tmp_path, *replies, **options):
    """Return a bench with a closed chat, and the messages of its view."""
    (tmp_path / "a.txt").write_text("content")
    answer = says("answer " * 40, Usage(input_tokens=30, output_tokens=5))
    bench = kept(tmp_path, ScriptedAdapter("s", [READ, answer, *replies]), **options)
    session = await bench.open()
    await talk(bench, session, 1)
    await session.close()
    bench.store.release("chat-1").result()
    return bench, session.log.view.messages


async def opened(bench, chat):
    request = OpenChat(chat=chat, snapshot=Snapshot(), resume=chat)
    return await open_stored(bench.services, request)


def said(messages):
    return [(m.role, m.text, m.tool_calls, m.tool_call_id) for m in messages]


def legacy(tmp_path, name, kind="checkpoints"):
    folder = tmp_path / f"state/transcripts/{kind}"
    folder.mkdir(parents=True)
    (folder / "old.json").write_bytes((LEGACY / f"{name}.json").read_bytes())
    return folder / "old.json"


async def test_a_restored_chat_is_a_new_chat(tmp_path):
    """R-473: source 1; the old chat is unchanged, and the note names the new one's origin."""
    bench, before = await chat_with_files(tmp_path)
    events = bench.store.load_events("chat-1")
    restored = await restore_chat(bench.services, "chat-1", "")
    assert restored["chat"] != "chat-1"
    assert restored["source"] == 1
    assert restored["note"].startswith("Restored chat chat-1 from the newest checkpoint (completion), source 1 of 5, ")
    assert restored["note"].endswith(" 4 messages.")
    session = await opened(bench, restored["chat"])
    assert said(session.log.view.messages) == said(before)
    assert bench.store.load_events("chat-1") == events
    shown = [entry for event in bench.of(Restored) for entry in event.entries]
    assert [entry.kind for entry in shown] == ["user", "reply", "tool", "reply", "note"]
    assert shown[-1].text == restored["note"]
    fields = next(
        e.payload.fields for e in bench.store.load_events(restored["chat"]) if isinstance(e.payload, PolicyEvent)
    )
    assert (fields["source"], fields["chat"], fields["upgraded"]) == (1, "chat-1", False)
    assert fields["checkpointAt"] == fields["snapshotAt"] == 1_000_000


async def test_a_restored_chat_continues_like_any_other(tmp_path):
    """It can be answered, is listed with its title, and gets its own checkpoints."""
    bench, before = await chat_with_files(tmp_path, says("went on"))
    restored = await restore_chat(bench.services, "chat-1", "")
    session = await opened(bench, restored["chat"])
    session.submit(submit("and now?", 9))
    await bench.idle(session)
    await session.close()
    assert said(bench.adapter.requests[-1].messages)[1:-1] == said(before)
    assert session.log.view.messages[-1].text == "went on"
    assert bench.store.find_session(restored["chat"]).title == "question 0"
    assert checkpoints(bench, restored["chat"])[-1].message_count == 6


async def test_a_chosen_checkpoint_is_restored(tmp_path):
    """A checkpoint is chosen by its id; if it is missing, the next one is used, and that is reported."""
    bench, _ = await chat_with_files(tmp_path)
    chosen = [one.id for one in bench.services.keeping.checkpoints.list_checkpoints()]
    assert [one.partition("/")[0] for one in chosen] == ["chat-1"]
    files = list((tmp_path / "state/transcripts/checkpoints/chat-1").iterdir())
    restored = await restore_chat(bench.services, f"chat-1/{files[0].stem}", "")
    assert restored["source"] == 1
    gone = await restore_chat(bench.services, "chat-1/gone", "")
    assert gone["source"] == 1
    assert "(cannot use " in gone["note"]


async def test_without_the_database_the_chat_reuses_its_id(tmp_path):
    """R-478: the files are sufficient; the database is new and empty."""
    _, before = await chat_with_files(tmp_path)
    again = kept(tmp_path, ScriptedAdapter("s", [says("still here")]))
    restored = await restore_chat(again.services, "chat-1", "/work")
    assert restored["chat"] == "chat-1"
    session = await opened(again, "chat-1")
    assert said(session.log.view.messages) == said(before)
    session.submit(submit("there?", 5))
    await again.idle(session)
    assert session.log.view.messages[-1].text == "still here"


async def test_a_damaged_database_does_not_prevent_a_restore(tmp_path, monkeypatch):
    """R-478: unreadable rows are not needed."""
    bench, before = await chat_with_files(tmp_path)

    def damaged(*arguments):
        raise StoreCorrupt("the database is damaged")

    with monkeypatch.context() as patched:
        patched.setattr(bench.store, "load_events", damaged)
        again = kept(tmp_path, ScriptedAdapter("offline", []))
        monkeypatch.setattr(again.store, "find_session", damaged)
        patched.setattr(again.store, "load_events", damaged)
        restored = await restore_chat(again.services, "chat-1", "")
    assert restored["source"] == 1
    assert said((await opened(again, "chat-1")).log.view.messages) == said(before)


async def test_a_damaged_checkpoint_falls_through_to_the_snapshot(tmp_path):
    """R-474: the chat is restored from source 2, with the reason."""
    bench, before = await chat_with_files(tmp_path)
    for path in (tmp_path / "state/transcripts/checkpoints").rglob("*.json"):
        path.write_bytes(path.read_bytes()[:100])
    restored = await restore_chat(bench.services, "chat-1", "")
    assert restored["source"] == 2
    assert "source 2 of 5" in restored["note"]
    assert "Skipped: " in restored["note"]
    assert said((await opened(bench, restored["chat"])).log.view.messages) == said(before)


async def test_without_files_the_chat_is_rebuilt_from_its_events(tmp_path):
    """R-475: the chat is restored from source 5, the log."""
    bench = kept(tmp_path, ScriptedAdapter("offline", [says("the answer")]), settings={"checkpoint_every_messages": 0})
    session = await bench.open()
    await talk(bench, session, 1)
    await session.close()
    bench.store.release("chat-1").result()
    restored = await restore_chat(bench.services, "chat-1", "")
    assert restored["source"] == 5
    told = (await opened(bench, restored["chat"])).log.view.messages
    assert "User: question 0\nAssistant: the answer" in told[0].text


async def test_the_evidence_alone_is_enough(tmp_path):
    """R-475, R-478: no database, checkpoint or snapshot; only the evidence is left."""
    await chat_with_files(tmp_path)
    for kind in ("checkpoints", "snapshots"):
        for path in (tmp_path / f"state/transcripts/{kind}").rglob("*.json"):
            path.unlink()
    again = kept(tmp_path, ScriptedAdapter("offline", []))
    restored = await restore_chat(again.services, "chat-1", "")
    assert restored["source"] == 5
    assert "User: question 0" in (await opened(again, "chat-1")).log.view.messages[0].text


async def test_an_impossible_restore_is_reported(tmp_path):
    """One sentence."""
    bench = kept(tmp_path, ScriptedAdapter("offline", []))
    with pytest.raises(InputError, match=r'^No stored chat or checkpoint is called "nope"; nothing was restored\.$'):
        await restore_chat(bench.services, "nope", "")
    bench.services.keeping = None
    with pytest.raises(InputError, match="No checkpoints: the state folder"):
        await restore_chat(bench.services, "nope", "")


@pytest.mark.parametrize(
    ("name", "kind", "source"),
    [
        ("checkpoint_blocks", "checkpoints", 3),
        ("checkpoint_strings", "checkpoints", 3),
        ("snapshot_usage", "snapshots", 4),
    ],
)
async def test_an_older_format_is_upgraded(tmp_path, name, kind, source):
    """R-476: once restored it is V2; the next checkpoint keeps that, with the same messages and unknown keys."""
    path = legacy(tmp_path, name, kind)
    raw = json.loads(path.read_text())
    bench = kept(tmp_path, ScriptedAdapter("offline", [says("done " * 50)]))
    restored = await restore_chat(bench.services, "old", "")
    assert (restored["chat"], restored["source"]) == ("old", source)
    assert "It was upgraded to the current format." in restored["note"]
    session = await opened(bench, "old")
    before = session.log.view.messages
    assert violations(before) == []
    stored = bench.services.keeping.checkpoints.newest("old")
    assert (stored["schema"], stored["version"]) == ("session_runtime_v2", 2)
    assert stored["trackerState"] == raw["trackerState"]
    session.submit(submit("go on", 1))
    await bench.idle(session)
    await session.close()
    stored = bench.services.keeping.checkpoints.newest("old")
    assert (stored["schema"], stored["version"], stored["checkpointKind"]) == ("session_runtime_v2", 2, "completion")
    assert stored["trackerState"] == raw["trackerState"]
    again = await restore_chat(bench.services, "old", "")
    assert again["source"] == 1
    reopened = (await opened(bench, again["chat"])).log.view.messages
    assert said(reopened)[: len(before)] == said(before)


async def test_totals_of_an_older_format_come_from_the_events(tmp_path):
    """R-475: the payload has zero totals, so the real ones are taken from the log."""
    bench, _ = await chat_with_files(tmp_path)
    raw = json.loads((LEGACY / "snapshot_usage.json").read_text())
    for path in (tmp_path / "state/transcripts").rglob("*.json"):
        path.unlink()
    bench.services.keeping.checkpoints.save_snapshot("chat-1", raw)
    restored = await restore_chat(bench.services, "chat-1", "")
    assert restored["source"] == 4
    assert bench.services.keeping.checkpoints.newest(restored["chat"])["usageTotals"]["inputTokens"] == 30


async def test_a_summary_in_the_view_is_shown(tmp_path):
    """The user sees the model's view: the summary is a card above the later messages."""
    bench = kept(tmp_path, long_chat(says("THE SUMMARY")), settings={"on_compact": "stop"})
    session = await bench.open()
    await talk(bench, session, 2)
    session.compact("")
    await bench.idle(session)
    await session.close()
    bench.store.release("chat-1").result()
    bench.events.clear()
    restored = await restore_chat(bench.services, "chat-1", "")
    await opened(bench, restored["chat"])
    shown = [entry for event in bench.of(Restored) for entry in event.entries]
    assert [entry.text for entry in shown if entry.kind == "compacted"] == ["THE SUMMARY"]
    # The keys of the old log would name other messages in the new one.
    stored = bench.store.load_events(restored["chat"])
    assert not [e for e in stored if isinstance(e.payload, MessageAdded) and "recall r" in e.payload.message.text]


async def test_queued_messages_become_a_draft_again(tmp_path):
    """R-462: no typed text in the queues is lost."""
    bench, _ = await chat_with_files(tmp_path)
    raw = bench.services.keeping.checkpoints.newest("chat-1")
    raw["queues"] = {"pendingFollowUps": ["first", "second"]}
    bench.services.keeping.checkpoints.save_checkpoint("chat-1", raw, keep=False)
    restored = await restore_chat(bench.services, "chat-1", "")
    assert bench.store.load_draft(restored["chat"]) == "first\n\nsecond"


async def test_unwritable_files_do_not_prevent_a_restore(tmp_path, monkeypatch):
    """The restored chat is in the database; its files are written with the next turn."""
    bench, before = await chat_with_files(tmp_path)

    def full(*arguments, **rest):
        raise StoreUnavailable("full")

    monkeypatch.setattr(bench.services.keeping.checkpoints, "save_snapshot", full)
    restored = await restore_chat(bench.services, "chat-1", "")
    assert said((await opened(bench, restored["chat"])).log.view.messages) == said(before)


async def test_a_restore_leaves_another_neovims_files_alone(tmp_path, monkeypatch):
    """Two Neovims: an older format is upgraded in place only if no other host owns the chat."""
    path = legacy(tmp_path, "checkpoint_strings")
    before = path.read_bytes()
    bench = kept(tmp_path, ScriptedAdapter("offline", []))
    await bench.open("old")
    monkeypatch.setattr(bench.store, "foreign_lease", lambda chat: "another" if chat == "old" else None)
    restored = await restore_chat(bench.services, "old", "")
    assert restored["chat"] != "old"
    assert path.read_bytes() == before
    assert bench.services.keeping.checkpoints.newest(restored["chat"])["version"] == 2
    assert not bench.of(Told)
