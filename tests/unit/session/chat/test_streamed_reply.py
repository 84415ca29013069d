"""A reply becomes one message in its own order (R-537, R-539; lessons 26, 39)."""

from __future__ import annotations

from codecompanion.adapters.base import Finished, ReasoningDone
from codecompanion.model.messages import CallMark, ReasoningPart, TextPart, ToolCall
from codecompanion.session.chat.streamed_reply import ReplySoFar

SEALED = ReasoningDone("o", "{}")
TWO_CALLS = Finished("tool_calls", (ToolCall("a", "t"), ToolCall("b", "t")))


def reply(*steps, finished=None):
    made = ReplySoFar()
    for step in steps:
        match step:
            case ("text", text):
                made.add_text(text)
            case ("phase", text, phase):
                made.add_text(text, phase)
            case ("think", text):
                made.add_reasoning(text, "f")
            case "call":
                made.start_call()
            case ReasoningDone():
                made.end_reasoning(step)
    made.finished = finished
    return made


def test_text_alone_is_a_string():
    assert reply(("text", "a"), ("text", "b")).content() == "ab"
    assert reply().content() == ""


def test_alternating_plain_reasoning_and_text_stay_one_part_each():
    steps = [("think", "x"), ("text", "a"), ("think", "y"), ("text", "b")]
    assert reply(*steps).content() == (ReasoningPart("xy", "f"), TextPart("ab"))


def test_encrypted_blocks_and_calls_keep_their_order():
    """The order reasoning, call, reasoning, call of the Responses API is kept."""
    steps = [("think", "x"), SEALED, "call", ("think", "y"), SEALED, "call"]
    wanted = (ReasoningPart("x", "f", "o", "{}"), CallMark(0), ReasoningPart("y", "f", "o", "{}"))
    assert reply(*steps, finished=TWO_CALLS).content() == wanted


def test_a_block_without_readable_text_is_kept():
    """Anthropic's redacted thinking is kept in the message."""
    content = reply(SEALED, ("text", "a"), finished=Finished("stop")).content()
    assert content == (ReasoningPart("", origin="o", encrypted="{}"), TextPart("a"))


def test_text_before_an_encrypted_block_stays_before_it():
    content = reply(("text", "a"), ("think", "x"), SEALED, ("text", "b"), finished=Finished("stop")).content()
    assert content == (TextPart("a"), ReasoningPart("x", "f", "o", "{}"), TextPart("b"))


def test_an_incomplete_reply_keeps_no_encrypted_block_and_no_call():
    """Lessons 26, 39: the part it belonged to may be missing."""
    assert reply(("think", "x"), SEALED, "call", ("text", "a")).content() == (ReasoningPart("x", "f"), TextPart("a"))


def test_markers_of_missing_calls_are_dropped():
    """A limit truncated the second call, so only the first one keeps its marker."""
    one = Finished("length", (ToolCall("a", "t"),))
    assert reply("call", ("text", "a"), "call", ("text", "b"), finished=one).content() == (
        CallMark(0),
        TextPart("a"),
        TextPart("b"),
    )


def test_phases_are_separate_parts():
    content = reply(("phase", "hm", "commentary"), ("phase", "done", "final_answer")).content()
    assert content == (TextPart("hm", "commentary"), TextPart("done", "final_answer"))
