"""Chats to export: one with everything in it, and ones with texts that try to break out."""

from __future__ import annotations

from codecompanion.model import history
from codecompanion.model.change_report import ChangeReport
from codecompanion.model.history import EventPayload, LogEvent
from codecompanion.model.messages import ImagePart, Message, ReasoningPart, TextPart, ToolCall, with_changes

NOON = 1_800_000_000.0


def log_of(*payloads: EventPayload) -> list[LogEvent]:
    created = history.ChatCreated(adapter="openai", model="gpt-5", policy="codecompanion", cwd="/w")
    return [LogEvent(number, NOON + 60 * number, payload) for number, payload in enumerate((created, *payloads), 1)]


def added(message: Message) -> history.MessageAdded:
    return history.MessageAdded(message=message)


def full_chat(text: str = "Why is `pop()` **red**?") -> list[LogEvent]:
    """Return a chat with everything: attachment, reasoning, tool, changed file, edit, compaction, undo, image."""
    call = ToolCall(
        "c1",
        "insert_edit",
        '{"path": "src/stack.py", "code": "'
        + text.replace("\\", "\\\\").replace('"', '\\"')[:200].encode("unicode_escape").decode()
        + '"}',
    )
    file = Message(id="f", role="user", tag="file", path="src/stack.py", content=text, tokens=40)
    user = Message(id="u", role="user", content=text, cycle=1)
    thought = (
        ReasoningPart("Let me look. " + text),
        TextPart("I look.\n\n```python\ndef pop(self): ...\n```\n" + text),
    )
    model = Message(id="a", role="assistant", content=thought, tool_calls=(call,), cycle=1)
    result = Message(id="t", role="tool", tool_call_id="c1", content="done\n" + text, cycle=1, tokens=900)
    shown = history.ChangeShown(change_id="x", path="src/stack.py", added=1, removed=1, diff="-old\n+new " + text)
    ran = history.ToolRan(
        call_id="c1", message_id="t", name="insert_edit", title="insert_edit src/stack.py", summary="+1 −1 " + text,
        status="ok", duration_ms=9, change=shown,
    )  # fmt: skip
    picture = Message(id="i", role="user", content=(TextPart("See"), ImagePart(sha256="abc", path="shot.png")), cycle=2)
    cleared = with_changes(result, content="[cleared]", edited=True)
    edit = history.ViewChanged(
        change_id="e", kind="edited", replaced=(cleared,), tokens_before=48_200, tokens_after=21_700,
        report=ChangeReport(cleared=1),
    )  # fmt: skip
    summary = Message(id="s", role="user", tag="compact_summary", content="Below is a summary")
    compaction = history.ViewChanged(
        change_id="k", kind="compacted", removed=("u", "a", "t"), inserted=(history.Insertion(summary, "f"),),
        tokens_before=21_700, tokens_after=4_000,
        report=ChangeReport(messages=3, summariser="gpt-5-mini", summary="# 1. Request\n" + text),
    )  # fmt: skip
    return log_of(
        history.TitleSet(title="Why is pop red? " + text),
        added(file),
        added(user),
        added(model),
        added(result),
        ran,
        edit,
        history.ChangeUndone(change_id="e", by_user=True),
        compaction,
        added(picture),
        history.TurnEnded(turn_id="2", reason="failed", error="The endpoint refused: " + text),
    )
