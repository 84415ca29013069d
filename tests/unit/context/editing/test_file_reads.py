"""Which results show a file, and which edits they may be needed for."""

from __future__ import annotations

import json

import pytest

from codecompanion.context.editing.file_reads import FileUse, file_use, find_uses
from codecompanion.context.editing.old_arguments import shorten_edits
from codecompanion.model.invariants import pair_tool_calls
from codecompanion.model.messages import Message, ReasoningPart, ToolCall, with_changes


def call(name: str, **arguments: object) -> ToolCall:
    return ToolCall("c", name, json.dumps(arguments))


@pytest.mark.parametrize(
    ("made", "use"),
    [
        (call("read", path="./a/b.py"), FileUse("a/b.py", "read")),
        (call("read", path="a.py", offset=10, limit=5), FileUse("a.py", "read", "limit=5 offset=10")),
        (call("str_replace_editor", command="view", path="a.py", view_range=None), FileUse("a.py", "read", "")),
        (call("str_replace_editor", command="str_replace", path="a.py", old_str="x", new_str=""),
         FileUse("a.py", "edited")),
        (call("Write", file_path="a.py", content="x"), FileUse("a.py", "edited")),
        (call("bash", command="cd src && cat a.py"), FileUse("a.py", "read")),
        (call("bash", command="cat a.py | head -5"), FileUse("a.py", "read", "cat a.py")),
        (call("bash", command="sed -n '1,5p' a.py"), FileUse("a.py", "read", "sed -n '1,5p' a.py")),
        (call("bash", command="make test | head -80"), None),
        (call("search", query="a.py"), None),
        (ToolCall("c", "odd", "not json"), None),
        (ToolCall("c", "odd", "[1]"), None),
    ],
)  # fmt: skip
def test_what_a_call_does_with_a_file(made: ToolCall, use: FileUse | None) -> None:
    assert file_use(made) == use


def story(*calls: tuple[str, ToolCall]) -> tuple[Message, ...]:
    messages: list[Message] = []
    for number, (text, made) in enumerate(calls):
        made = ToolCall(f"c{number}", made.name, made.arguments)
        messages.append(Message(id=f"a{number}", role="assistant", tool_calls=(made,)))
        messages.append(Message(id=f"t{number}", role="tool", tool_call_id=f"c{number}", content=text))
    return tuple(messages)


def test_a_read_of_the_whole_file_makes_earlier_ones_superfluous_a_part_only_the_same_part() -> None:
    part, whole = call("read", path="a.py", offset=5), call("read", path="a.py")
    messages = story(("1", part), ("2", whole), ("3", part), ("4", part), ("5", call("read", path="b.py")))
    uses = find_uses(messages, pair_tool_calls(messages))
    assert {messages[index].text for index in uses.newest} == {"2", "4", "5"}
    assert messages[uses.last_shown["a.py"]].text == "2"


def test_a_failed_read_shows_nothing() -> None:
    whole = call("read", path="a.py")
    messages = story(("1", whole), ("no such file", whole))
    messages = (*messages[:3], with_changes(messages[3], is_error=True))
    uses = find_uses(messages, pair_tool_calls(messages))
    assert {messages[index].text for index in uses.newest} == {"1"}


def shortened(message: Message, index: int, *later: Message) -> Message:
    messages = (message, Message(id="t", role="tool", tool_call_id=message.tool_calls[0].id), *later)
    return shorten_edits(message, index, find_uses(messages, pair_tool_calls(messages)))


EDIT = Message(id="a", role="assistant", tool_calls=(call("edit", path="a.py", edits=[
    {"oldText": "o" * 400, "newText": "n" * 400}]),))  # fmt: skip


def test_the_replaced_text_goes_the_written_text_stays_while_it_is_the_newest() -> None:
    arguments = json.loads(shortened(EDIT, 0).tool_calls[0].arguments)
    assert arguments == {"path": "a.py", "edits": [{"oldText": "[cleared to save context]", "newText": "n" * 400}]}


def test_the_written_text_goes_when_the_whole_file_is_shown_behind_it() -> None:
    arguments = json.loads(shortened(EDIT, 0, *story(("all", call("read", path="a.py")))).tool_calls[0].arguments)
    assert arguments["edits"] == [{"oldText": "[cleared to save context]", "newText": "[cleared to save context]"}]


def test_pinned_and_sealed_replies_and_other_calls_are_left_alone() -> None:
    """Lesson 26: never edit signed text."""
    sealed = with_changes(EDIT, content=(ReasoningPart("why", origin="anthropic", encrypted="{}"),))
    other = Message(id="a", role="assistant", tool_calls=(call("run", command="x" * 900),))
    for message in (with_changes(EDIT, pinned=True), sealed, other):
        assert shortened(message, 0) is message
