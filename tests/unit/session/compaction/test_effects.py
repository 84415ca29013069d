"""Checkpoints, snapshots and memories of a running chat: R-408, R-409, R-446, R-447, R-449, R-463…R-472."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path

import msgspec
import pytest

from codecompanion.adapters.keys.redact import redact
from codecompanion.context.policy.policy import Effects
from codecompanion.context.policy.policy_catalog import policy_names
from codecompanion.errors import StoreUnavailable
from codecompanion.model import checkpoint as payloads
from codecompanion.model.checkpoint import Checkpoint, read
from codecompanion.model.history import PolicyEvent, RequestSent, ViewChanged
from codecompanion.model.messages import Message
from codecompanion.session.checkpoint_files import throttle
from codecompanion.session.checkpoint_files.state_writer import StateWriter
from codecompanion.session.checkpoint_files.throttle import AT_LEISURE, AWAITED, MAX_REST_S, Throttle
from codecompanion.session.services import Keeping
from codecompanion.session.trust.folders import folder_of
from codecompanion.store.files.checkpoints import CheckpointFiles
from codecompanion.store.files.memory_files import MemoryFiles, compile_exclusions
from codecompanion.store.files.memory_places import mark_of
from codecompanion.wire.events import Compacted, Notice
from codecompanion.wire.events import PolicyEvent as Told
from tests.unit.session.fakes import Bench, ScriptedAdapter, calls, says, submit
from tests.unit.session.turn.test_turn import long_chat, talk

ALL_EFFECTS = Effects(before=("checkpoint",), after=("memory_flush", "daily_log", "snapshot"))
SUMMARY = "6. **Decisions Made**\n- use SQLite\n7. **Pending/Incomplete Work**\n- the docs\n"
STOP = {"on_compact": "stop"}


def kept(tmp_path: Path, *adapters, exclude=(), remembers=True, **options) -> Bench:
    bench = Bench(tmp_path, *adapters, **options)
    state = tmp_path / "state"
    exclusions = compile_exclusions(exclude, "key")
    memories = MemoryFiles(tmp_path / "memories", state)
    bench.services.keeping = Keeping(CheckpointFiles(state), memories, redact, remembers, exclusions)
    return bench


def remembered(bench: Bench):
    """Return the summary files."""
    mark = mark_of(folder_of(bench.root))
    found = bench.services.keeping.memories.places.find(mark, bench.root)
    return [one for one in found if one.origin == "compaction" and not one.is_log]


async def open_with(bench: Bench, effects: Effects = ALL_EFFECTS):
    session = await bench.open()
    stages = [msgspec.structs.replace(stage, effects=effects) for stage in session.control.policy.stages]
    session.control.policy = msgspec.structs.replace(session.control.policy, stages=tuple(stages))
    return session


def checkpoints(bench: Bench, chat: str = "chat-1") -> list[Checkpoint]:
    """Return the kept checkpoints, oldest first, then the newest of any kind."""
    files = bench.services.keeping.checkpoints
    stored = [one.raw for one in files.payloads_of(chat) if one.kind == "checkpoint"]
    newest, *earlier = [read(raw, Checkpoint, "f") for raw in stored]
    return [*reversed(earlier), newest]


def told(bench: Bench, name: str) -> list[Told]:
    return [event for event in bench.of(Told) if event.name == name]


async def compacted(bench: Bench, session, questions: int = 3) -> None:
    await talk(bench, session, questions)
    await session.effects.settled()
    session.compact("")
    await bench.idle(session)
    await session.effects.settled()


async def test_a_checkpoint_is_on_disk_before_the_first_message_is_removed(tmp_path, monkeypatch):
    """R-408, R-464, R-469, R-472: written and flushed before the change is logged, with every removed message."""
    bench = kept(tmp_path, long_chat(says(SUMMARY)), settings=STOP)
    session = await open_with(bench)
    seen = []
    append = bench.store.append

    def watched(chat_id, payloads):
        batch = tuple(payloads)
        for payload in batch:
            if isinstance(payload, ViewChanged) and payload.kind == "compacted":
                seen.extend((payload, [one.checkpoint_kind for one in checkpoints(bench)]))
        return append(chat_id, batch)

    monkeypatch.setattr(bench.store, "append", watched)
    await compacted(bench, session)
    change, kinds = seen
    assert kinds[-1] == "pre_compaction"
    (before,) = [one for one in checkpoints(bench)[:-1] if one.checkpoint_kind == "pre_compaction"]
    assert {span.object_id for span in before.evidence_packet.spans} == set(change.removed)
    assert before.source_event_id == change.change_id
    assert before.structured_summary.source == "compaction_summary"
    assert before.structured_summary.decisions == ("use SQLite",)
    assert before.structured_summary.open_loops == ("the docs",)
    assert [entry["role"] for entry in before.conversation_history] == ["user", "assistant"] * 3
    spans = bench.services.keeping.checkpoints.load_spans("chat-1")
    assert set(change.removed) <= {span["objectId"] for span in spans}


async def test_a_snapshot_follows_a_compaction(tmp_path):
    """R-461, R-463: the snapshot has the newest state, and its event has the size."""
    bench = kept(tmp_path, long_chat(says(SUMMARY)), settings=STOP)
    session = await open_with(bench)
    await compacted(bench, session)
    newest = checkpoints(bench)[-1]
    assert newest.checkpoint_kind == "snapshot"
    assert newest.message_count == len(session.log.view.messages)
    assert newest.loop.compaction_count == 1
    events = told(bench, "conversation_snapshot")
    assert [event.fields["checkpointKind"] for event in events] == ["pre_compaction", "snapshot"]
    assert events[-1].fields["schema"] == "session_runtime_v2"
    size = (tmp_path / "state/transcripts/snapshots/chat-1.json").stat().st_size
    said = sum(len(payloads.encode(message)) for message in newest.conversation_history)
    assert events[-1].fields["estimatedSizeBytes"] == size + said


async def test_a_failed_write_does_not_stop_the_compaction(tmp_path, monkeypatch):
    """R-472: one named event and one sentence report the failure, and the summary is in the view."""
    bench = kept(tmp_path, long_chat(says(SUMMARY)), settings={**STOP, "checkpoint_every_messages": 0})
    session = await open_with(bench, Effects(before=("checkpoint",), after=("snapshot",)))

    def full(*arguments, **rest):
        raise StoreUnavailable("cannot use state: the disk is full")

    monkeypatch.setattr(bench.services.keeping.checkpoints, "save_snapshot", full)
    await compacted(bench, session)
    assert bench.of(Compacted)
    assert [event.fields["reason"] for event in told(bench, "checkpoint_failed")] == [
        "cannot use state: the disk is full"
    ] * 2
    notices = [notice.text for notice in bench.of(Notice) if "heckpoint" in notice.text]
    assert notices == [
        "Checkpoint not written: cannot use state: the disk is full. The chat continues; its history is in the"
        " database."
    ]
    names = [e.payload.name for e in bench.store.load_events("chat-1") if isinstance(e.payload, PolicyEvent)]
    assert names == ["checkpoint_failed", "checkpoint_failed"]


async def test_nothing_is_written_before_a_compaction_that_changes_nothing(tmp_path):
    """R-409: a checkpoint is written only when something is about to be removed."""
    bench = kept(tmp_path, long_chat(says("")), settings={**STOP, "checkpoint_every_messages": 0})
    session = await open_with(bench)
    await compacted(bench, session)
    assert not bench.of(Compacted)
    assert bench.services.keeping.checkpoints.list_checkpoints() == []


async def test_a_checkpoint_is_kept_every_n_messages(tmp_path):
    """R-464, R-465: messages of the user and the model count; a turn between two checkpoints saves a snapshot."""
    bench = kept(tmp_path, long_chat(says("")), settings={"checkpoint_every_messages": 4})
    session = await bench.open()
    for number in range(1, 5):
        session.submit(submit(f"question {number}", number))
        await bench.idle(session)
        await session.effects.settled()
    periodic = [one for one in checkpoints(bench)[:-1] if one.checkpoint_kind == "periodic"]
    assert [one.source_metadata.meaningful_exchange_count for one in periodic] == [4, 8]
    assert [one.evidence_packet.span_count for one in periodic] == [4, 8]
    assert [one.evidence_packet.spans[-1].text[:5] for one in periodic] == ["word ", "word "]


@pytest.mark.slow("chats of 1,000 messages")
@pytest.mark.parametrize("files_read", [0, 400])
async def test_a_turns_writes_do_not_grow_with_the_chat(tmp_path, monkeypatch, files_read):
    """Lesson 31: a turn scans and encodes only the new messages of 1,000, and its files stay small."""
    looked_through = []

    def hide(text):
        looked_through.append(text)
        return text

    path = "x" * 100
    script = [calls((f"c{n}", "read_file", json.dumps({"path": f"{path}{n}"}))) for n in range(files_read)]
    replies = iter([*script, *[says("ok")] * 20])
    settings = {"checkpoint_every_messages": 1000, "max_provider_requests_per_turn": 1000}
    bench = kept(tmp_path, ScriptedAdapter("s", lambda request: next(replies)), settings=settings, window=10**7)
    keeping = bench.services.keeping
    bench.services.keeping = Keeping(keeping.checkpoints, keeping.memories, hide)
    for number in range(files_read):
        (tmp_path / f"{path}{number}").write_text("words")
    session = await bench.open()
    for number in range(1000):
        await session.attach(Message(id=f"f{number}", role="user", tag="file", path=f"{number}", content="words"))
    await talk(bench, session, 1)
    await session.effects.settled()
    conversation = tmp_path / "state/transcripts/conversations/chat-1/1.jsonl"
    assert conversation.stat().st_size > 100_000
    for _ in range(6):
        before = conversation.stat().st_size
        looked_through.clear()
        await talk(bench, session, 1)
        await session.effects.settled()
        assert looked_through.count("words") == 0
        assert len(looked_through) < 500, "what is not the conversation is looked through again"
        assert 0 < conversation.stat().st_size - before < 1000
        written = [tmp_path / f"state/transcripts/{kind}/chat-1.json" for kind in ("snapshots", "checkpoints")]
        assert all(file.stat().st_size < 20_000 for file in written)
    assert len(checkpoints(bench)[-1].conversation_history) == len(session.log.view.messages)
    assert len(checkpoints(bench)[-1].files.read) == files_read


async def test_awaited_writes_run_at_full_speed(tmp_path, monkeypatch):
    """R-472: a write after a turn is paced; one before a removal, or when a chat is closed, is not."""
    waits = []
    real = StateWriter.save

    def watched(writer, wanted):
        waits.append((wanted.kind, writer.is_awaited))
        return real(writer, wanted)

    monkeypatch.setattr(StateWriter, "save", watched)
    bench = kept(tmp_path, long_chat(says(SUMMARY)), settings=STOP)
    session = await open_with(bench)
    await compacted(bench, session)
    await session.close()
    assert set(waits) == {("snapshot", False), ("pre_compaction", True), ("completion", True)}


@pytest.mark.parametrize(("is_awaited", "rest"), [(False, AT_LEISURE), (True, AWAITED)])
def test_long_work_yields_the_processor(monkeypatch, is_awaited, rest):
    """Other work gets the processor most of the time, unless someone waits for this work."""
    clock, slept = iter([0.0, 0.001, 0.004, 0.0, 0.001]), []
    monkeypatch.setattr(throttle.time, "perf_counter", lambda: next(clock))
    monkeypatch.setattr(throttle.time, "sleep", slept.append)
    work = Throttle(lambda: is_awaited)
    for _ in range(3):
        work()
    assert slept == [0.004 * rest]


def test_work_that_becomes_awaited_continues_soon(monkeypatch):
    """A slow slice on a busy machine is not followed by a long pause: someone may be waiting by then."""
    clock, slept = iter([0.0, 3.0, 3.0]), []
    monkeypatch.setattr(throttle.time, "perf_counter", lambda: next(clock))
    monkeypatch.setattr(throttle.time, "sleep", slept.append)
    Throttle()()
    assert slept == [MAX_REST_S]


async def test_a_kept_checkpoint_outlives_the_compaction_after_it(tmp_path):
    """R-408, R-473: the removed messages are in an older part, or in an older file, of the conversation."""
    bench = kept(tmp_path, long_chat(says(SUMMARY)), settings=STOP)
    session = await open_with(bench)
    for _ in range(3):
        await compacted(bench, session)
    before = [one for one in checkpoints(bench)[:-1] if one.checkpoint_kind == "pre_compaction"]
    assert [len(one.conversation_history) for one in before] == [6, 7, 7]
    assert [len(one.conversation_history) for one in checkpoints(bench)[-1:]] == [len(session.log.view.messages)]
    again = await bench.resume()
    again.submit(submit("and on", 99))
    await bench.idle(again)
    await again.effects.settled()
    assert len(checkpoints(bench)[-1].conversation_history) == len(again.log.view.messages)
    assert [one for one in checkpoints(bench)[:-1] if one.checkpoint_kind == "pre_compaction"] == before


MINE = {
    "extends": "codecompanion",
    "stage": [
        {
            "id": "compaction",
            "event": "context_compacted",
            "trigger": 0.85,
            "manual": True,
            "step": [{"use": "select_window"}, {"use": "summarize_ledger"}, {"use": "insert_summary"}],
        }
    ],
}


@pytest.mark.slow("every policy through whole chats")
@pytest.mark.parametrize("name", ["mine", *policy_names()])
@pytest.mark.parametrize("wish", [12, 0])
async def test_checkpoints_are_an_option_and_always_on_for_cowork(tmp_path, name, wish):
    """R-464, R-472: when on, every policy has them, also a user's own; when off, only CoWork's are left."""
    asks = name in ("cowork", "cowork_chat")
    settings = {**STOP, "checkpoint_every_messages": wish, "policy": name, "policies": {"mine": MINE}}
    bench = kept(tmp_path, long_chat(says(SUMMARY)), settings=settings)
    session = await bench.open()
    await compacted(bench, session, 9)
    assert bench.of(Compacted)
    told_kinds = [event.fields["checkpointKind"] for event in told(bench, "conversation_snapshot")]
    assert ("pre_compaction" in told_kinds) == ("snapshot" in told_kinds) == (asks or wish > 0)
    assert ("periodic" in told_kinds) == (wish > 0)


async def test_disabled_checkpoints_write_nothing(tmp_path):
    """Lesson 13: with checkpoints off, not even the state folder is created."""
    bench = kept(tmp_path, long_chat(says("")), settings={"checkpoint_every_messages": 0})
    session = await bench.open()
    await talk(bench, session, 4)
    await session.close()
    assert not (tmp_path / "state").exists()


async def test_an_identical_checkpoint_is_not_written_twice(tmp_path):
    """R-470: if the hash equals that of the latest periodic checkpoint, nothing is written; also after a restart."""
    bench = kept(tmp_path, long_chat(says("")), settings={"checkpoint_every_messages": 2})
    session = await bench.open()
    await talk(bench, session, 1)
    await session.effects.settled()
    before = [one.id for one in checkpoints(bench)]
    for runner in (session.effects, (await bench.resume()).effects):
        await runner._save(runner._wanted("periodic", "message_added"))
    assert [one.id for one in checkpoints(bench)] == before


async def test_a_resumed_chat_continues_its_message_count(tmp_path):
    """R-465: messages from before do not count as new."""
    bench = kept(tmp_path, long_chat(says("")), settings={"checkpoint_every_messages": 4})
    session = await bench.open()
    for number in range(3):
        session.submit(submit(f"question {number}", number))
        await bench.idle(session)
        await session.effects.settled()
    await session.close()
    again = await bench.resume()
    again.submit(submit("more", 9))
    await bench.idle(again)
    await again.effects.settled()
    periodic = [one for one in checkpoints(bench)[:-1] if one.checkpoint_kind == "periodic"]
    assert [one.source_metadata.meaningful_exchange_count for one in periodic] == [4, 8]


async def test_the_log_is_read_for_checkpoints_only_when_one_may_be_due(tmp_path, monkeypatch):
    """The log is read neither during the awaited first request of a stored chat nor at every step of a tool loop."""
    read: list[str] = []
    catch_up = StateWriter.catch_up
    monkeypatch.setattr(StateWriter, "catch_up", lambda writer: read.append(writer.chat_id) or catch_up(writer))
    steps = [calls((f"c{number}", "read_file", f'{{"path": "{number}.txt"}}')) for number in range(10)]
    asked: list[int] = []
    replies = iter([says("One."), *steps[:5], says("Two."), *steps[5:], says("Three.")])

    def reply(request):
        asked.append(len(read))
        return next(replies)

    bench = kept(tmp_path, ScriptedAdapter("s", reply), settings={"checkpoint_every_messages": 50})
    session = await bench.open()
    await talk(bench, session, 1)
    await session.effects.settled()
    await session.close()
    again = await bench.resume()
    for number in (8, 9):
        read.clear()
        asked.clear()
        again.submit(submit("more", number))
        await bench.idle(again)
        await again.effects.settled()
        assert asked[0] == 0
        assert len(asked) == 6
        assert 0 < len(read) <= 4, "at the end of the turn, and once when a stored chat is read"


@pytest.mark.parametrize(("answer", "completes"), [("word " * 40, True), ("short", False)])
async def test_a_chat_that_did_something_is_completed(tmp_path, answer, completes):
    """R-466: a long last answer completes a chat; a chat that is only reopened and closed is not completed twice."""
    bench = kept(tmp_path, ScriptedAdapter("s", lambda request: says(answer)))
    session = await bench.open()
    await talk(bench, session, 1)
    await session.close()
    await session.close()
    kinds = [one.checkpoint_kind for one in checkpoints(bench)[:-1]]
    assert kinds == (["completion"] if completes else [])
    if completes:
        assert checkpoints(bench)[-1].structured_summary.source == "completion"
        again = await bench.resume()
        await again.close()
        assert [one.checkpoint_kind for one in checkpoints(bench)[:-1]] == ["completion"]


async def test_a_chat_that_edited_a_file_is_completed(tmp_path):
    """R-466: one successful edit is enough."""
    made = calls(("c1", "create_file", '{"path": "new.txt", "content": "x"}'))
    bench = kept(tmp_path, ScriptedAdapter("s", [made, says("done")]))
    session = await bench.open()
    await talk(bench, session, 1)
    await session.close()
    assert [one.checkpoint_kind for one in checkpoints(bench)[:-1]] == ["completion"]


async def test_queued_messages_are_in_the_snapshot(tmp_path):
    """R-462: queues."""
    gate = asyncio.Event()
    bench = kept(tmp_path, ScriptedAdapter("s", [says("one"), (gate, *says("two"))]))
    session = await bench.open()
    await talk(bench, session, 1)
    session.submit(submit("second", 2))
    await bench.until(lambda: len(bench.adapter.requests) == 2)
    session.submit(submit("third", 3))
    await session.effects._save(session.effects._wanted("snapshot", "test"))
    assert checkpoints(bench)[-1].queues.pending_follow_ups == ("third",)
    session.cancel()
    gate.set()
    await bench.idle(session)


async def test_no_key_is_written(tmp_path):
    """Lesson 44: possible keys are redacted in every file, evidence included, and hashes are of the redacted text."""
    key = "sk-proj-abcdefghijklmnop"
    answer = calls(("c1", "read_file", json.dumps({"path": f"{key}.txt"})), text=f"reading with {key}")
    bench = kept(tmp_path, ScriptedAdapter("s", [answer, says(f"it is {key} " + "x" * 200)]))
    session = await bench.open()
    session.submit(submit(f"my key is {key}"))
    await bench.idle(session)
    await session.close()
    written = [path for path in (tmp_path / "state").rglob("*") if path.is_file()]
    assert len(written) == 5
    for path in written:
        assert "abcdefghijkl" not in path.read_text(), path
        assert "[hidden]" in path.read_text(), path


async def test_a_key_that_becomes_known_later_is_redacted_from_then_on(tmp_path):
    """Lesson 44: text that was already scanned is scanned again."""
    known = []

    def hide(text):
        for secret in known:
            text = text.replace(secret, "[hidden]")
        return text

    bench = kept(tmp_path, ScriptedAdapter("s", lambda request: says("fine")))
    keeping = bench.services.keeping
    bench.services.keeping = Keeping(keeping.checkpoints, keeping.memories, hide, keys_known=lambda: len(known))
    session = await bench.open()
    session.submit(submit("the word is plain-secret"))
    await bench.idle(session)
    await session.effects.settled()
    known.append("plain-secret")
    await session.effects._save(session.effects._wanted("snapshot", "test"))
    assert checkpoints(bench)[-1].conversation_history[0]["content"] == "the word is [hidden]"


async def test_a_compaction_summary_goes_to_memory_and_daily_log(tmp_path):
    """R-447, R-448: both, with an event that reports it."""
    bench = kept(tmp_path, long_chat(says(SUMMARY)), settings=STOP)
    session = await open_with(bench)
    await compacted(bench, session)
    (memory,) = remembered(bench)
    assert memory.path.read_text().startswith("# question 0\n")
    assert "use SQLite" in memory.path.read_text()
    (log,) = (tmp_path / "state/daily").rglob("*.md")
    assert "## Decisions\n- [flush " in log.read_text()
    assert [event.fields for event in told(bench, "memory_flushed")] == [
        {"kind": "compaction", "targets": ["memory", "daily_log"], "characters": len(SUMMARY.strip())}
    ]


@pytest.mark.parametrize("options", [{"remembers": False}, {"exclude": ["sqlite"]}, {"exclude": ["question 1"]}])
async def test_excluded_summaries_are_not_remembered(tmp_path, options):
    """R-446, R-449: the memory is off, or a pattern matches the summary or the user's own words."""
    bench = kept(tmp_path, long_chat(says(SUMMARY)), settings=STOP, **options)
    session = await open_with(bench)
    await compacted(bench, session)
    assert bench.of(Compacted)
    assert remembered(bench) == []
    assert not told(bench, "memory_flushed")
    assert not (tmp_path / "state/daily").exists()


async def test_a_directive_of_the_user_keeps_a_chat_out_of_the_memory(tmp_path):
    """R-449: the directive applies even if the summariser dropped it."""
    bench = kept(tmp_path, long_chat(says(SUMMARY)), settings=STOP)
    session = await open_with(bench)
    session.submit(submit("<no-memory> secret plan", 50))
    await bench.idle(session)
    await compacted(bench, session, 2)
    assert remembered(bench) == []


async def test_an_unwritable_memory_is_reported_once_and_the_compaction_succeeds(tmp_path):
    """R-449: the memory is optional."""
    (tmp_path / "memories").write_text("a file")
    bench = kept(tmp_path, long_chat(says(SUMMARY)), settings=STOP)
    session = await open_with(bench)
    await compacted(bench, session)
    await compacted(bench, session, 2)
    assert len(bench.of(Compacted)) == 2
    (told,) = [notice.text for notice in bench.of(Notice) if "Memory" in notice.text]
    assert told.startswith("Memory not written: File exists (cannot use ")
    assert told.endswith("memories). The chat keeps the summary.")


async def test_a_failing_effect_never_reaches_the_turn(tmp_path, monkeypatch):
    """Effects never block the editor or the turn: a broken folder costs one sentence, and the chat continues."""
    (tmp_path / "state").write_text("a file")
    bench = kept(tmp_path, long_chat(says("")), settings={"checkpoint_every_messages": 1})
    session = await bench.open()
    await talk(bench, session, 4)
    await session.close()
    assert len(session.log.view.messages) == 8
    assert len([notice for notice in bench.of(Notice) if "Checkpoint not written" in notice.text]) == 1
    assert not bench.bugs


async def test_a_turn_does_not_wait_for_its_snapshot(tmp_path, monkeypatch):
    """The next message can be sent during the write; nothing is lost."""
    bench = kept(tmp_path, long_chat(says("")))
    session = await bench.open()
    gate = asyncio.Event()

    async def slow(function, *arguments):
        await gate.wait()
        return function(*arguments)

    await bench.idle(session)
    writer = session.effects._writer
    real = type(writer).save
    monkeypatch.setattr(asyncio, "to_thread", _only_for(writer, slow, asyncio.to_thread))
    await talk(bench, session, 2)
    assert len(session.log.view.messages) == 4
    assert bench.services.keeping.checkpoints.list_checkpoints() == []
    gate.set()
    await session.effects.settled()
    assert checkpoints(bench)[-1].message_count == 4
    assert type(writer).save is real


def _only_for(writer, slow, real):
    async def to_thread(function, *arguments, **named):
        if getattr(function, "__self__", None) is writer:
            return await slow(function, *arguments)
        return await real(function, *arguments, **named)

    return to_thread


def cowork_adapter(flush="Decisions:\n- keep it\n"):
    """Return long answers; a flush (four labels) gets `flush`, a compaction (nine sections) gets a summary."""

    def reply(request):
        if request.purpose == "summary":
            prompt = str(request.messages[-1].content)
            return says(flush if "four labels" in prompt else SUMMARY)
        return says("word " * 1500)

    return ScriptedAdapter("s", reply)


async def test_the_memory_is_flushed_before_anything_is_removed(tmp_path, monkeypatch):
    """R-408, R-409, R-446, R-448: with little slack, it is written and reported before the compaction is logged."""
    bench = kept(tmp_path, cowork_adapter(), window=9_000, settings={"policy": "cowork", "on_compact": "stop"})
    session = await bench.open()
    written = []
    append = bench.store.append

    def watched(chat_id, payloads):
        batch = tuple(payloads)
        for payload in batch:
            if isinstance(payload, ViewChanged) and payload.kind == "compacted":
                written.append([one.path.name for one in remembered(bench)])
        return append(chat_id, batch)

    monkeypatch.setattr(bench.store, "append", watched)
    for number in range(12):
        session.submit(submit(f"question {number}", number))
        await bench.idle(session)
        await session.effects.settled()
        if written:
            break
    assert bench.of(Compacted)
    assert any("-flush-" in path for path in written[0])
    kinds = [event.fields["kind"] for event in told(bench, "memory_flushed")]
    assert kinds[0] == "pre_compaction"
    assert "compaction" in kinds
    (log,) = (tmp_path / "state/daily").rglob("*.md")
    assert "keep it" in log.read_text()
    assert session.effects.last_flush.tokens > 0
    newest = checkpoints(bench)[-1]
    assert newest.loop.last_pre_compaction_flush_at == 1_000_000


async def test_the_checkpoint_precedes_the_flush_and_the_removal(tmp_path):
    """R-408 [decided]: both happen in the document's order, before the first message is removed."""
    bench = kept(tmp_path, cowork_adapter(), window=9_000, settings={"policy": "cowork", "on_compact": "stop"})
    session = await bench.open()
    for number in range(12):
        session.submit(submit(f"question {number}", number))
        await bench.idle(session)
        await session.effects.settled()
        if bench.of(Compacted):
            break
    done = []
    for event in bench.store.load_events("chat-1"):
        payload = event.payload
        if isinstance(payload, PolicyEvent) and payload.name == "conversation_snapshot":
            done.append(payload.fields["checkpointKind"])
        elif isinstance(payload, PolicyEvent) and payload.name == "memory_flushed":
            done.append(f"flush {payload.fields['kind']}")
        elif isinstance(payload, ViewChanged) and payload.removed:
            done.append("removal")
    removal = done.index("removal")
    assert done[removal - 2 : removal] == ["pre_compaction", "flush pre_compaction"], done
    assert done.count("flush pre_compaction") == 1


async def test_a_private_memory_never_reaches_the_daily_log(tmp_path):
    """R-447, R-449: the log may be in the workspace, where it is committed sooner or later."""
    secret = SUMMARY + "\n- the password of the test server is hunter2\n"
    bench = kept(tmp_path, long_chat(says(secret)), settings=STOP)
    session = await open_with(bench)
    await compacted(bench, session)
    (memory,) = remembered(bench)
    assert memory.is_private
    assert not list(tmp_path.rglob("daily/**/*.md"))
    (fields,) = [event.fields for event in told(bench, "memory_flushed")]
    assert fields["targets"] == ["memory"]


async def test_a_flush_that_fails_does_not_stop_the_compaction(tmp_path):
    """R-446, R-449: the model returns nothing to remember; the chat is compacted anyway."""
    options = {"policy": "cowork", "on_compact": "stop"}
    bench = kept(tmp_path, cowork_adapter(flush=""), window=9_000, settings=options)
    session = await bench.open()
    for number in range(12):
        session.submit(submit(f"question {number}", number))
        await bench.idle(session)
        await session.effects.settled()
        if bench.of(Compacted):
            break
    assert bench.of(Compacted)
    assert not [event for event in told(bench, "memory_flushed") if event.fields["kind"] == "pre_compaction"]
    # The cooldown starts with the attempt, and the user is notified once.
    assert session.effects.last_flush.at > 0
    asked = [r for r in bench.adapter.requests if r.purpose == "summary" and "four labels" in r.messages[0].text]
    assert 1 <= len(asked) <= 2, "one attempt, asked for once more"
    sent = [e.payload for e in bench.store.load_events("chat-1") if isinstance(e.payload, RequestSent)]
    assert [one.asked for one in sent].count("memory entry") == len(asked)
    assert len([n for n in bench.of(Notice) if n.text.startswith("Memory not updated: ")]) == 1
    assert not bench.bugs
