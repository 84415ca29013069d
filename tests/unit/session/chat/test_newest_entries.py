"""The newest blocks read from the end of a log equal those of the whole log."""

from __future__ import annotations

import msgspec
from hypothesis import given
from hypothesis import strategies as st

from codecompanion.model.change_report import ChangeReport
from codecompanion.model.history import (
    ChangeShown,
    ChangeUndone,
    ChatCreated,
    CompactionFailed,
    EventPayload,
    FileChangeEnded,
    FileChangeStarted,
    Insertion,
    LogEvent,
    MessageAdded,
    ModelSet,
    PolicyEvent,
    PolicySet,
    TitleSet,
    ToolRan,
    TurnEnded,
    TurnStarted,
    ViewChanged,
)
from codecompanion.model.messages import GATHERED_TAG, GO_ON_TAG, SUMMARY_TAG, Message, ToolCall
from codecompanion.session.chat.buffer_entries import entries
from codecompanion.session.chat.newest_entries import newest_entries
from codecompanion.store.log.tail_state import MAX_CHOICES, TailState

CREATED = ChatCreated(adapter="s", model="m", policy="", cwd="")
STEPS = ("ask", "go_on", "note", "edit", "compact", "old_compact", "clear", "pin", "regenerate", "restore", "undo",
         "redo", "revert", "model", "policy", "title", "attach", "failed")  # fmt: skip


class Story:
    """Writes a log step by step; `pick` chooses among the possible steps."""

    def __init__(self, pick):
        self.log: list[EventPayload] = [CREATED]
        self.pick, self.number = pick, 0
        self.messages: list[Message] = []
        self.changes: list[ViewChanged] = []
        self.files: list[str] = []

    def name(self, kind):
        self.number += 1
        return f"{kind}{self.number}"

    def add(self, **fields):
        message = Message(id=self.name("m"), **{"content": fields["role"], **fields})
        self.messages.append(message)
        self.log.append(MessageAdded(message=message))
        return message

    def turn(self, kind, turn_id=""):
        turn_id = turn_id or self.name("t")
        self.log.append(TurnStarted(turn_id=turn_id, cycle=self.number))
        if kind == "ask":
            if self.pick((True, False)):
                self.add(role="user", tag=GATHERED_TAG, content="code")
                self.log.append(PolicyEvent(name="code_gathered", fields={"duration_ms": 3}))
            self.add(role="user", turn_id=turn_id, content="question")
        elif kind == "go_on":
            self.add(role="user", turn_id=turn_id, tag=GO_ON_TAG)
        for _ in range(self.pick((0, 1, 2))):
            call = ToolCall(self.name("c"), "write_file", "{}")
            self.add(role="assistant", content="", tool_calls=(call,), turn_id=turn_id)
            result = self.add(role="tool", tool_call_id=call.id, turn_id=turn_id, content="result")
            changed = self.name("f")
            began = FileChangeStarted(change_id=changed, path=f"/{changed}", name=changed, call_id=call.id)
            shown = ChangeShown(change_id=changed, path=changed, added=1, removed=0)
            ran = ToolRan(call_id=call.id, message_id=result.id, name="write_file", title="t", summary="s",
                          status="ok", duration_ms=1, change=shown)  # fmt: skip
            self.log += [began, FileChangeEnded(change_id=changed, state="written"), ran]
            self.files.append(changed)
        if self.pick((True, False)):
            self.add(role="assistant", turn_id=turn_id, content="answer")
        reason = self.pick(("done", "stopped", "failed", "interrupted"))
        self.log.append(TurnEnded(turn_id=turn_id, reason=reason, error="why" if reason == "failed" else ""))

    def change(self, kind, **fields):
        change = ViewChanged(change_id=self.name("v"), kind=kind, **fields)
        self.changes.append(change)
        self.log.append(change)

    def some(self):
        return self.pick(self.messages) if self.messages else None

    def step(self, kind):
        one = self.some()
        match kind:
            case "ask" | "go_on":
                self.turn(kind)
            case "note":
                self.log.append(PolicyEvent(name="told_below_message", fields={"text": "said"}))
            case "edit" if one:
                self.change("edited", replaced=(msgspec.structs.replace(one, edited=True),))
            case "compact" | "old_compact" if one:
                summary = Message(id=self.name("m"), role="user", content="summary", tag=SUMMARY_TAG)
                before = self.pick(("", one.id)) if kind == "compact" else None
                self.change("compacted", removed=(one.id,), inserted=(Insertion(message=summary, after=""),),
                            report=ChangeReport(before=before, summary="summary"))  # fmt: skip
                self.messages.append(summary)
            case "clear":
                self.change("cleared", removed=tuple(message.id for message in self.messages))
            case "pin" if one:
                self.change("pinned", replaced=(msgspec.structs.replace(one, pinned=True),))
            case "regenerate" if one:
                turn = self.name("t")
                self.change("regenerated", removed=(one.id,), report=ChangeReport(turn=turn))
                self.turn("again", turn)
            case "restore" if one:
                self.change("restored", inserted=(Insertion(message=one, after=""),))
            case "undo" | "redo" if self.changes:
                change = self.pick(self.changes).change_id
                self.log.append(ChangeUndone(change_id=change, by_user=True, redone=kind == "redo"))
            case "revert" if self.files:
                reverts, name = (self.pick(self.files),), self.name("f")
                self.log.append(FileChangeStarted(change_id=name, path="/r", name="r", reverts=reverts))
                self.log.append(FileChangeEnded(change_id=name, state="written"))
            case "model":
                self.log.append(ModelSet(adapter=self.name("a"), model="m"))
            case "policy":
                self.log.append(PolicySet(policy=self.name("p")))
            case "title":
                self.log.append(TitleSet(title=self.name("title")))
            case "attach":
                self.add(role="user", tag="file", path="a.txt")
            case "failed":
                self.log.append(CompactionFailed(compaction_id=self.name("v"), reason="no"))
            case _:
                pass

    def events(self):
        return [LogEvent(seq, 1.0, payload) for seq, payload in enumerate(self.log, 1)]


@given(st.data(), st.lists(st.sampled_from(STEPS), max_size=14))
def test_the_end_of_any_log_yields_the_blocks_of_the_whole_log_or_none(data, steps):
    story = Story(lambda among: data.draw(st.sampled_from(list(among))))
    for step in steps:
        story.step(step)
    events = story.events()
    whole, state = entries(events), TailState().after(events)
    for start in range(len(events)):
        for count in (1, 2, 5):
            newest = newest_entries(events[start:], state, count)
            assert newest is None or list(newest) == whole[-count:], (start, count)


def a_log(turns):
    """Return turns of three blocks: a question, its gathered code, an answer."""
    story = Story(lambda among: among[0])
    for _ in range(turns):
        story.step("ask")
    return story.events()


def test_the_end_of_an_ordinary_log_is_enough():
    events = a_log(40)
    state = TailState().after(events)
    newest = newest_entries(events[len(events) // 4 :], state)
    assert newest is not None
    assert list(newest) == entries(events)[-60:]
    assert newest[-1].kind == "reply"


def test_a_log_with_as_many_blocks_as_the_page_is_read_whole():
    events = a_log(20)
    state = TailState().after(events)
    assert newest_entries(events, state) is None
    assert newest_entries(events, state, 58) is not None


def test_blocks_waiting_for_the_first_question_require_more_of_the_log():
    events = a_log(3)
    said = LogEvent(len(events) + 1, 1.0, PolicyEvent(name="told_below_message", fields={"text": "said"}))
    story = Story(lambda among: among[0])
    story.number = 1_000
    for _ in range(2):
        story.step("ask")
    log = [*events, said, *(LogEvent(said.seq + at, 1.0, one) for at, one in enumerate(story.log[1:], 1))]
    start, state = len(events) + 1, TailState().after(log)
    kinds = [entry.kind for entry in entries(log)[-7:]]
    assert kinds == ["user", "gathered", "note", "reply", "user", "gathered", "reply"]
    assert newest_entries(log[start:], state, 5) is None
    assert newest_entries(log[start:], state, 4) == tuple(entries(log)[-4:])


def test_a_card_that_may_be_above_the_omitted_part_requires_more_of_the_log():
    events = a_log(4)
    last = max(at for at, event in enumerate(events) if isinstance(event.payload, TurnStarted))
    questions = [entry.message_id for entry in entries(events) if entry.kind == "user"]
    for above, is_enough in ((questions[0], False), (questions[-1], True), ("", True), (None, False)):
        report = ChangeReport(before=above, summary="summary")
        card = ViewChanged(change_id="v", kind="compacted", report=report)
        log = [*events, LogEvent(len(events) + 1, 1.0, card)]
        newest = newest_entries(log[last:], TailState().after(log), 1)
        assert (newest is not None) == is_enough, above
        assert newest is None or list(newest) == entries(log)[-1:]


def test_a_turn_that_began_earlier_requires_more_of_the_log():
    events = a_log(3)
    inside = next(at for at, event in enumerate(events) if isinstance(event.payload, TurnStarted)) + 2
    assert newest_entries(events[inside:], TailState().after(events), 1) == tuple(entries(events)[-1:])
    last = max(at for at, event in enumerate(events) if isinstance(event.payload, TurnStarted))
    assert newest_entries(events[last + 1 :], TailState().after(events), 1) is None


def test_the_model_before_the_newest_events_is_known_up_to_a_number_of_choices():
    chosen = [ModelSet(adapter="s", model=f"m{number}") for number in range(MAX_CHOICES)]
    events = a_log(3)
    last = max(at for at, event in enumerate(events) if isinstance(event.payload, TurnStarted))
    for more in range(MAX_CHOICES + 1):
        log = [*events, *(LogEvent(len(events) + at, 1.0, one) for at, one in enumerate(chosen[:more], 1))]
        newest = newest_entries(log[last:], TailState().after(log), 1)
        assert (newest is None) == (more == MAX_CHOICES)


def test_the_incremental_state_equals_the_one_read_at_once():
    events = a_log(3)
    events.append(LogEvent(len(events) + 1, 1.0, TitleSet(title="named")))
    state = TailState()
    for event in events:
        state = state.after([event])
    assert state == TailState().after(events)
    assert (state.typed, state.title, state.covers_seq) == (3, "named", len(events))
    assert state.after(events) == state
