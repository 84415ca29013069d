"""Edits, compactions, undos, redos, restores, pins and restarts in any order, on a real SQLite file (R-545, R-361).

One of the two models compacts on its own; its summary ends when the chat switches to the other one (R-542).

The rule machine keeps a model: the view before each change, as a stack. The view after an undo is compared with it
byte by byte, followed by the newer messages, and so is the view that a new process reads from the file.
"""

from __future__ import annotations

import asyncio
import tempfile
from pathlib import Path

import msgspec
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from codecompanion.adapters.base import CompactionDone
from codecompanion.errors import InputError
from codecompanion.model.history import ChangeUndone, MessageAdded, ViewChanged
from codecompanion.model.invariants import violations
from codecompanion.model.messages import Message
from codecompanion.model.view import project
from codecompanion.session.history.undo import UNDOABLE, chain_of
from codecompanion.store.opening import open_store
from codecompanion.wire.requests import Pin, RedoChange, Request, RestoreMessage, UndoChange, Unpin
from tests.patience import PATIENCE_S
from tests.unit.session.fakes import Bench, ScriptedAdapter, calls, says
from tests.unit.session.history.test_undo import say
from tests.unit.session.moments import BLOCK

SETTINGS = {
    "context_management": {
        "editing": {"trigger": 300, "keep_cycles": 1},
        "compaction": {"trigger": 0.85, "min_token_savings": 1},
    },
    "on_compact": "stop",
}
CHAT = "chat-1"


def is_offered(change: ViewChanged) -> bool:
    return change.kind in UNDOABLE and not change.report.superseded


def encoded(messages: tuple[Message, ...]) -> bytes:
    return msgspec.json.encode(messages)


class UndoMachine(RuleBasedStateMachine):
    """One chat, its user, and now and then a new process."""

    def __init__(self) -> None:
        super().__init__()
        self.loop = asyncio.new_event_loop()
        self.folder = tempfile.TemporaryDirectory()
        self.root = Path(self.folder.name)
        (self.root / "a.txt").write_text("word " * 150)
        self.undo_stack: list[tuple[str, tuple[Message, ...], int]] = []
        self.redo_stack: list[tuple[str, tuple[Message, ...], int]] = []
        self.ended: set[str] = set()
        """Changes made before a provider's summary ended below them: the state before them no longer exists."""
        self.said = 0

    def run(self, coroutine):
        return self.loop.run_until_complete(asyncio.wait_for(coroutine, PATIENCE_S))

    @initialize()
    def begin(self) -> None:
        self.store = open_store(self.root / "store")
        numbers = iter(range(10_000))

        def answer(request):
            if request.purpose == "summary":
                return says("SUMMARY")
            if request.messages[-1].role == "tool":
                return says("done")
            number = next(numbers)
            wanted = [(f"c{number}-{part}", "read_file", '{"path": "a.txt"}') for part in range(1 + number % 2)]
            if request.compact_at and number % 3 == 0:
                return (CompactionDone(BLOCK), *says("went on"))
            return calls(*wanted)

        self.adapters = (ScriptedAdapter("s", answer, native=True), ScriptedAdapter("other", answer))
        self.bench = self._bench("a")
        self.session = self.run(self.bench.open())
        self.messages = self.joined()

    def _bench(self, prefix: str) -> Bench:
        bench = Bench(self.root, *self.adapters, store=self.store, settings=SETTINGS)
        number = iter(range(100_000))
        bench.services.new_token = lambda: f"{prefix}{self.said}-{next(number)}"
        return bench

    @property
    def view(self) -> tuple[Message, ...]:
        return self.session.log.view.messages

    def joined(self) -> tuple[Message, ...]:
        """Return every message of the log."""
        events = self.store.load_events(CHAT)
        return tuple(e.payload.message for e in events if isinstance(e.payload, MessageAdded))

    def note_changes(self, known: int) -> None:
        """Add new changes to the model: the view at the start of each is the one in the log."""
        events = self.store.load_events(CHAT)
        for place, event in enumerate(events):
            change = event.payload
            if place >= known and isinstance(change, ViewChanged):
                self.redo_stack.clear()
            if place >= known and isinstance(change, ChangeUndone) and not change.by_user:
                self.redo_stack.clear()
                self.undo_stack = [entry for entry in self.undo_stack if entry[0] != change.change_id]
                self.ended |= {entry[0] for entry in self.undo_stack}
            elif place >= known and isinstance(change, ViewChanged) and is_offered(change):
                before = project(events[:place]).messages
                joined = sum(isinstance(e.payload, MessageAdded) for e in events[:place])
                self.undo_stack.append((change.change_id, before, joined))

    def log_size(self) -> int:
        return len(self.store.load_events(CHAT))

    def ask(self, request: Request) -> str:
        """Request a change; "" if it was refused, which changes nothing."""
        before, size = encoded(self.view), self.log_size()
        try:
            answer: str = self.run(self.session.edits.carry_out(request))
        except InputError:
            assert encoded(self.view) == before
            assert self.log_size() == size
            return ""
        return answer

    @rule(number=st.integers(1, 3))
    def talk(self, number: int) -> None:
        known = self.log_size()
        for _ in range(number):
            self.said += 1
            self.run(say(self.bench, self.session, 1, self.said))
        self.note_changes(known)

    @rule()
    def compact(self) -> None:
        known = self.log_size()
        self.run(self._compact())
        self.note_changes(known)

    async def _compact(self) -> None:
        self.session.compact("")
        await self.bench.idle(self.session)

    @rule(data=st.data())
    @precondition(lambda self: bool(self.messages))
    def restore(self, data: st.DataObject) -> None:
        known, message = self.log_size(), data.draw(st.sampled_from(self.messages))
        if self.ask(RestoreMessage(chat=CHAT, item=message.id)):
            back = next(m for m in self.view if m.id == message.id)
            assert back.content == message.content
        self.note_changes(known)

    @rule(data=st.data(), text=st.sampled_from(["", "use tabs"]))
    def pin(self, data: st.DataObject, text: str) -> None:
        known = self.log_size()
        item = "" if text or not self.view else data.draw(st.sampled_from([m.id for m in self.view]))
        self.ask(Pin(chat=CHAT, item=item, text=text))
        self.note_changes(known)

    @rule(number=st.integers(1, 2))
    def unpin(self, number: int) -> None:
        known = self.log_size()
        self.ask(Unpin(chat=CHAT, number=number))
        self.note_changes(known)

    @rule()
    def clear(self) -> None:
        known = self.log_size()
        self.run(self.session.clear())
        self.note_changes(known)

    @rule()
    def undo(self) -> None:
        answer = self.ask(UndoChange(chat=CHAT))
        assert bool(answer) == bool(self.undo_stack), "what is there can be undone, and nothing else"
        if not answer:
            return
        change_id, before, joined = self.undo_stack.pop()
        after = self.view
        self.redo_stack.append((change_id, after, joined))
        if change_id not in self.ended:
            gone = self.superseded_since(change_id)
            expected = (m for m in (*before, *self.joined()[joined:]) if m.id not in gone)
            assert encoded(after) == encoded(tuple(expected))

    @rule()
    @precondition(lambda self: self.redo_stack)
    def undo_and_redo_is_nothing(self) -> None:
        """Redo the last undo, then undo it again; the view is unchanged."""
        before = encoded(self.view)
        if not self.ask(RedoChange(chat=CHAT)):
            assert self.redo_is_foreign()
            return
        assert self.ask(UndoChange(chat=CHAT))
        assert encoded(self.view) == before

    @rule()
    def redo(self) -> None:
        answer = self.ask(RedoChange(chat=CHAT))
        assert bool(answer) == (bool(self.redo_stack) and not self.redo_is_foreign())
        if not answer:
            return
        change_id, _, joined = self.redo_stack.pop()
        events = self.store.load_events(CHAT)
        place = next(n for n, e in enumerate(events) if getattr(e.payload, "change_id", "") == change_id)
        before = project(events[:place]).messages
        self.undo_stack.append((change_id, before, joined))
        assert encoded(self.view) == encoded(project(events).messages)

    def superseded_since(self, change_id: str) -> set[str]:
        """Return the attachments that a newer one of the same file has replaced since a change."""
        changes = [e.payload for e in self.store.load_events(CHAT) if isinstance(e.payload, ViewChanged)]
        place = next(n for n, change in enumerate(changes) if change.change_id == change_id)
        return {id for change in changes[place:] if not is_offered(change) for id in change.removed}

    def redo_is_foreign(self) -> bool:
        """Return whether the redoable change is a summary by a provider that the chat does not use (R-542)."""
        if not self.redo_stack or self.session.adapter_name == "s":
            return False
        changes = [e.payload for e in self.store.load_events(CHAT) if isinstance(e.payload, ViewChanged)]
        change = next(change for change in changes if change.change_id == self.redo_stack[-1][0])
        return any(insertion.message.compaction is not None for insertion in change.inserted)

    @rule(name=st.sampled_from(["s", "other"]))
    def use_model(self, name: str) -> None:
        known = self.log_size()
        self.run(self.session.use_model(name, ""))
        self.note_changes(known)

    @rule(version=st.integers(1, 3))
    def attach(self, version: int) -> None:
        """Attach a newer version of a file; it replaces the older one, which is not a change by the user."""
        known = self.log_size()
        self.said += 1
        content = f"version {version} " * 30
        message = Message(id=f"f{self.said}", role="user", tag="file", path="f.txt", content=content)
        self.run(self.session.attach(message))
        self.note_changes(known)

    @rule()
    def detach(self) -> None:
        known = self.log_size()
        self.run(self.session.detach(tuple(m.id for m in self.view if m.tag == "file")))
        self.note_changes(known)

    @rule()
    def restart(self) -> None:
        """Start a new process, which knows only the file's content."""
        before = encoded(self.view)
        self.store.close()
        self.store = open_store(self.root / "store")
        self.said += 1
        self.bench = self._bench("b")
        session = self.run(self.bench.resume())
        assert session is not None
        self.session = session
        assert encoded(self.view) == before

    @invariant()
    def the_view_is_sound_and_says_what_the_log_says(self) -> None:
        if not hasattr(self, "session"):
            return
        self.messages = self.joined()
        assert violations(self.view) == []
        ids = [message.id for message in self.view]
        assert len(set(ids)) == len(ids)
        events = self.store.load_events(CHAT)
        assert encoded(project(events).messages) == encoded(self.view)
        chain = chain_of(events)
        assert [change.change_id for change in chain.undoable] == [entry[0] for entry in self.undo_stack]
        assert [change.change_id for change in chain.redoable] == [entry[0] for entry in self.redo_stack]
        assert not self.bench.bugs

    def teardown(self) -> None:
        if hasattr(self, "store"):
            self.store.close()
        self.loop.close()
        self.folder.cleanup()


TestUndoMachine = UndoMachine.TestCase
TestUndoMachine.settings = settings(
    max_examples=12, stateful_step_count=20, deadline=None, suppress_health_check=list(HealthCheck)
)
