"""Stories of chats that can be interrupted at every step and at every write.

Threads and the store answer immediately here, so that a story takes the same steps each time it is played.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from concurrent.futures import Future
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import msgspec

from codecompanion.adapters.base import (
    ChatRequest,
    CompactionBegun,
    CompactionDone,
    Finished,
    ReasoningDelta,
    ReasoningDone,
    TextDelta,
)
from codecompanion.context.server_side import live_blocks
from codecompanion.errors import ContextOverflow, EncryptedRefused, Overloaded, StoreUnavailable, StreamCut
from codecompanion.model import history
from codecompanion.model.history import (
    EventPayload,
    LogEvent,
    MessageAdded,
    ViewChanged,
)
from codecompanion.model.invariants import violations
from codecompanion.model.messages import AttachedFile, CompactionPart, Message, Usage
from codecompanion.model.view import project
from codecompanion.session.attachments.attached import text_attachment
from codecompanion.session.services import Keeping
from codecompanion.session.session import Session
from codecompanion.session.state import State
from codecompanion.store.files.checkpoints import CheckpointFiles
from codecompanion.store.files.memory_files import MemoryFiles
from codecompanion.store.store import Store
from codecompanion.wire.events import Compacted, CompactionFailed, CompactionStarted, SubmitFailed
from codecompanion.wire.requests import EditorItem, EditorText, EditTarget
from tests.unit.session.fakes import Bench, Reply, ScriptedAdapter, calls, says, submit

MAX_STEPS = 2000
LONG = "words and more words " * 400
BLOCK = CompactionPart(origin="scripted@s", encrypted='[{"type":"compaction","content":"S"}]', text="S", tokens=50)
LARGE = Usage(input_tokens=90_000, output_tokens=5)
SEALED: Reply = (ReasoningDelta("hm", ""), ReasoningDone("scripted@s", "{}"), TextDelta("one"), Finished("stop"))
COMPACTS: Reply = (CompactionBegun(), CompactionDone(BLOCK), TextDelta("two"), Finished("stop"))
TOO_LONG: Reply = (ContextOverflow("s: the request is too long for the model."),)
READ = calls(("c1", "read_file", '{"path": "a.txt"}'))


@dataclass
class Story:
    """The model's replies, and the user's actions."""

    replies: Sequence[Reply]
    act: Callable[[Session], None]
    questions: int = 1
    """How many questions are asked and answered before the interrupted part."""
    native: bool = False
    compactions: Sequence[CompactionDone | Exception] = ()
    settings: dict[str, Any] = field(default_factory=dict)
    keeps: bool = False
    """Whether checkpoints are written beside the database."""
    is_over: bool = False
    """Whether the model answers only "THE END" from now on."""

    def adapter(self) -> ScriptedAdapter:
        """Return the model of the story; after its last reply it answers "the end"."""
        replies = iter(self.replies)

        def answer(request: ChatRequest) -> Reply:
            return says("THE END") if self.is_over else next(replies, says("THE END"))

        return ScriptedAdapter("s", answer, native=self.native, compactions=self.compactions)


def asks(text: str = "the question") -> Callable[[Session], None]:
    """Return the action of sending a message."""
    return lambda session: session.submit(submit(text, 77))


def compacts(session: Session) -> None:
    """Request a compaction."""
    session.compact("")


def goes_on(session: Session) -> None:
    """Request the continuation of the last reply."""
    session.continue_reply(session.snapshot)


def asks_then_compacts(session: Session) -> None:
    """Request a compaction while the question is being answered."""
    session.submit(submit("the question", 77))
    session.compact("")


def mentions(session: Session) -> None:
    """Send a message with the text of a buffer and of a file read by the host; refer to text already sent."""
    text = EditorText("x = 1 # so long that it is named where it stands\n" * 20, path="b.py", first=1, whole=True)
    items = (
        EditorItem("#{buffer}", "buffer", texts=(text,)),
        EditorItem("#{file:a.txt}", "file", "a.txt", comes="by_host"),
        EditorItem("#{buffer:b.py}", "buffer", texts=(text,)),
    )
    session.submit(msgspec.structs.replace(submit("the question", 77), items=items))


def attaches_a_live_file(session: Session) -> None:
    """Attach a file that changes before the message is sent."""
    file = AttachedFile(sha256="0" * 64, live=True)
    message = text_attachment("file", "a.txt", "older content", "attached", file)
    _attaching.append(asyncio.ensure_future(session.attach(message)))
    session.submit(submit("the question", 77))


def edits_in_place(session: Session) -> None:
    """Request a change of lines in a file."""
    target = EditTarget(path="a.py", first=3, region=("x = 1", "y = 2"), before=("import os",), filetype="python")
    session.submit(msgspec.structs.replace(submit("the question", 77), edit=target))


_attaching: list[asyncio.Task[None]] = []
"""References to the running tasks, so that they are not garbage-collected."""

PAUSED: Reply = (CompactionBegun(), CompactionDone(BLOCK), Finished("compacted"))
EDIT: Reply = says("placement: replace\n```python\nx = 3\ny = 2\n```\n")
HALF: Reply = (TextDelta("half"), Finished("length"))
FULL: Reply = (TextDelta("half"), Finished("window"))
NO_BLOCK: Reply = (CompactionBegun(), CompactionDone(None), TextDelta("two"), Finished("stop"))
CUT: Reply = (CompactionBegun(), StreamCut("cut"))
CUT_LATER: Reply = (CompactionDone(BLOCK), TextDelta("tw"), StreamCut("cut"))
REFUSED: Reply = (EncryptedRefused("s: signature invalid."),)
STOP = {"on_compact": "stop"}
DONE = CompactionDone(BLOCK, Usage(input_tokens=400, output_tokens=20))

STORIES: dict[str, Story] = {
    "in a reply": Story([says("one"), COMPACTS], asks(), native=True),
    "in a tool loop": Story([says("one"), READ, COMPACTS], asks(), native=True),
    "no block": Story([says("one"), NO_BLOCK], asks(), native=True),
    "cut before its end": Story([says("one"), CUT], asks(), native=True),
    "cut after its end": Story([says("one"), CUT_LATER], asks(), native=True),
    "with a pause": Story([says("one"), PAUSED], asks(), native=True),
    "on demand": Story([says("one"), says("went on")], compacts, native=True, compactions=[DONE]),
    "on demand, and stop": Story([says("one")], compacts, native=True, compactions=[DONE], settings=STOP),
    "on demand refused": Story([says("one")], compacts, native=True, compactions=[Overloaded("s: overloaded")]),
    "on demand in a turn": Story([says("one"), READ], asks_then_compacts, native=True, compactions=[DONE]),
    "our own in a turn": Story([says(LONG), READ, says("SUMMARY")], asks_then_compacts),
    "our own with checkpoints": Story([says(LONG), READ, says("SUMMARY")], asks_then_compacts, keeps=True),
    **{
        f"under {name}": Story(
            [says(LONG), READ, says("SUMMARY " * 40)], asks_then_compacts, settings={"policy": name}, keeps=True
        )
        for name in ("adaptive", "codebuddy", "cowork", "kodacode")
    },
    "the provider's with checkpoints": Story([says("one"), COMPACTS], asks(), native=True, keeps=True),
    "too long": Story([says(LONG), TOO_LONG, says("SUMMARY")], asks()),
    "too long for the summariser": Story([says(LONG), TOO_LONG, TOO_LONG], asks()),
    "too long after a block": Story([says(LONG), COMPACTS, TOO_LONG, says("SUMMARY")], asks(), 2, native=True),
    "a block refused": Story([says("one"), COMPACTS, REFUSED], asks(), 2, native=True),
    "reasoning refused": Story([SEALED, REFUSED], asks()),
    "half a reply": Story([says("one"), HALF], asks()),
    "a full window": Story([says(LONG), FULL, says("SUMMARY")], asks()),
    "with mentions": Story([says("one"), READ, says("two")], mentions),
    "with mentions and a compaction": Story([says(LONG), TOO_LONG, says("SUMMARY")], mentions),
    "with a live file": Story([says("one"), READ, says("two")], attaches_a_live_file),
    "an edit in place": Story([says("one"), EDIT], edits_in_place),
    "with a choice of tools": Story([says("one"), says("two")], asks("@{none} the question")),
    "go on": Story([HALF, says("more"), says("and more")], goes_on),
    "go on refused": Story([(TextDelta("half"), StreamCut("cut")), (Overloaded("s: overloaded"),)], goes_on),
}


class Stage:
    """A story being played."""

    def __init__(self, story: Story, root: Path, monkeypatch: Any) -> None:
        (root / "a.txt").write_text("content")
        self.story = replace(story)
        self.bench = Bench(root, self.story.adapter(), settings=story.settings)
        self.writes: list[tuple[EventPayload, ...]] = []
        self.full_from = -1
        """The number of the write from which on the disk is full; -1 = never."""
        if story.keeps:
            state = root / "state"
            memories = MemoryFiles(root / "memories", state)
            self.bench.services.keeping = Keeping(CheckpointFiles(state), memories, lambda text: text)
            monkeypatch.setattr("os.fsync", lambda descriptor: None)
        _answer_at_once(monkeypatch)
        self._write = self.bench.store.append
        self.bench.store.append = self._append  # type: ignore[method-assign]

    async def begin(self) -> Session:
        """Open the chat and play the setup of the interesting part."""
        self.session = session = await self.bench.open()
        for number in range(self.story.questions):
            session.submit(submit(f"question {number}", number))
            await self.ends()
        self.writes.clear()
        self.bench.events.clear()
        return session

    def _append(self, chat_id: str, payloads: Sequence[EventPayload]) -> Future[list[LogEvent]]:
        done: Future[list[LogEvent]] = Future()
        if 0 <= self.full_from <= len(self.writes):
            done.set_exception(StoreUnavailable("the disk is full"))
            return done
        self.writes.append(tuple(payloads))
        try:
            done.set_result(self._write(chat_id, payloads).result())
        except Exception as error:
            done.set_exception(error)
        return done

    async def ends(self) -> None:
        """Wait until control is back with the user."""
        session = self.session
        await steps_until(lambda: session.state is State.IDLE and session.task is None and not session.effects._running)

    def check(self, *, wrote: bool = True) -> None:
        """Assert the invariants after any interruption. `wrote`: everything sent to the editor could be stored."""
        bench, session = self.bench, self.session
        assert not bench.bugs, bench.bugs
        assert session.state is State.IDLE
        view = session.log.view
        assert project(bench.store.load_events("chat-1")).messages == view.messages
        assert len(live_blocks(view.messages)) <= 1
        self._check_told()
        if wrote:
            assert violations(view.messages) == []
            check_log(bench.store)
        self._check_words()
        if self.story.keeps:
            self._check_files()

    def _check_files(self) -> None:
        """Assert that every file is complete, and that messages removed by a compaction were on disk first (R-472)."""
        keeping = self.bench.services.keeping
        assert keeping is not None
        stored = keeping.checkpoints.payloads_of("chat-1")
        assert not any(one.problem for one in stored)
        before = {one.raw["sourceEventId"]: one.raw for one in stored if one.raw and "sourceEventId" in one.raw}
        for event in self.bench.store.load_events("chat-1"):
            if isinstance(event.payload, ViewChanged) and event.payload.kind == "compacted":
                spans = before[event.payload.change_id]["evidencePacket"]["spans"]
                assert {span["objectId"] for span in spans} == set(event.payload.removed)

    def _check_told(self) -> None:
        running = ""
        for event in self.bench.events:
            match event:
                case CompactionStarted():
                    assert not running, "two at once"
                    running = event.compaction_id
                case Compacted() | CompactionFailed():
                    assert event.compaction_id == running, f"an end without a start: {event}"
                    running = ""
        assert not running, "a start without an end"

    def _check_words(self) -> None:
        """Assert that no typed text is lost: it is in the log, or was returned as a draft."""
        if self.story.act in (compacts, goes_on):
            return
        logged = [m for m in _messages(self.bench.store) if m.text.endswith("the question")]
        assert len(logged) + len(self.bench.of(SubmitFailed)) == 1


async def steps_until(found: Callable[[], bool]) -> None:
    """Let all tasks run until the predicate is true; tasks wait only for steps here."""
    for _ in range(MAX_STEPS):
        if found():
            return
        await asyncio.sleep(0)
    raise AssertionError("it does not come to an end")


def check_log(store: Store) -> None:
    """Assert that every compaction in the log has one start and one end."""
    began: list[str] = []
    ended: list[str] = []
    for event in store.load_events("chat-1"):
        match event.payload:
            case history.CompactionStarted(compaction_id=id):
                began.append(id)
            case history.CompactionFailed(compaction_id=id):
                ended.append(id)
            case ViewChanged(kind="compacted", change_id=id):
                ended.append(id)
    assert sorted(began) == sorted(ended)
    assert len(set(began)) == len(began)


def _messages(store: Store) -> list[Message]:
    return [e.payload.message for e in store.load_events("chat-1") if isinstance(e.payload, MessageAdded)]


def _answer_at_once(monkeypatch: Any) -> None:
    async def to_thread(function: Callable[..., Any], *args: Any) -> Any:
        await asyncio.sleep(0)
        return function(*args)

    monkeypatch.setattr(asyncio, "to_thread", to_thread)
