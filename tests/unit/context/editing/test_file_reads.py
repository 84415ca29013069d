"""Results that show a file, and the edits that may need them."""

from __future__ import annotations

import json

import pytest

from codecompanion.context.editing import file_uses
from codecompanion.context.editing.file_reads import FileUse, file_use
from codecompanion.context.editing.file_uses import FileUses
from codecompanion.context.editing.old_replies import shorten_calls, without_reasoning
from codecompanion.context.strategy_parameters import Arguments
from codecompanion.model.messages import Message, ReasoningPart, TextPart, ToolCall, with_changes


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
        (call("Grep", pattern="def x", path="a.py"), None),
        (ToolCall("c", "odd", "not json"), None),
        (ToolCall("c", "odd", "[1]"), None),
    ],
)  # fmt: skip
def test_the_effect_of_a_call_on_a_file_is_classified(made: ToolCall, use: FileUse | None) -> None:
    assert file_use(made) == use


def story(*calls: tuple[str, ToolCall]) -> tuple[Message, ...]:
    messages: list[Message] = []
    for number, (text, made) in enumerate(calls):
        made = ToolCall(f"c{number}", made.name, made.arguments)
        messages.append(Message(id=f"a{number}", role="assistant", tool_calls=(made,)))
        messages.append(Message(id=f"t{number}", role="tool", tool_call_id=f"c{number}", content=text))
    return tuple(messages)


def test_a_read_of_the_whole_file_supersedes_earlier_ones_a_partial_one_only_the_same_part() -> None:
    part, whole = call("read", path="a.py", offset=5), call("read", path="a.py")
    messages = story(("1", part), ("2", whole), ("3", part), ("4", part), ("5", call("read", path="b.py")))
    uses = FileUses().of(messages)
    assert {message.text for index, message in enumerate(messages) if uses.is_newest(index)} == {"2", "4", "5"}
    assert messages[uses.last_shown["a.py"]].text == "2"


def test_a_failed_read_shows_nothing() -> None:
    whole = call("read", path="a.py")
    messages = story(("1", whole), ("no such file", whole))
    messages = (*messages[:3], with_changes(messages[3], is_error=True))
    uses = FileUses().of(messages)
    assert {message.text for index, message in enumerate(messages) if uses.is_newest(index)} == {"1"}


def shortened(message: Message, index: int, *after: Message, what: Arguments = ("replaced", "written")) -> Message:
    messages = (message, Message(id="t", role="tool", tool_call_id=message.tool_calls[0].id), *after)
    return shorten_calls(message, index, FileUses().of(messages), what)


EDIT = Message(id="a", role="assistant", tool_calls=(call("edit", path="a.py", edits=[
    {"oldText": "o" * 400, "newText": "n" * 400}]),))  # fmt: skip


def test_the_replaced_text_is_cleared_and_the_newest_written_text_kept() -> None:
    arguments = json.loads(shortened(EDIT, 0).tool_calls[0].arguments)
    assert arguments == {"path": "a.py", "edits": [{"oldText": "[cleared to save context]", "newText": "n" * 400}]}


def test_the_written_text_is_cleared_once_the_whole_file_is_shown_after_it() -> None:
    arguments = json.loads(shortened(EDIT, 0, *story(("all", call("read", path="a.py")))).tool_calls[0].arguments)
    assert arguments["edits"] == [{"oldText": "[cleared to save context]", "newText": "[cleared to save context]"}]


def test_pinned_and_encrypted_replies_and_other_calls_are_kept() -> None:
    """Lesson 26: never edit signed text."""
    sealed = with_changes(EDIT, content=(ReasoningPart("why", origin="anthropic", encrypted="{}"),))
    other = Message(id="a", role="assistant", tool_calls=(call("run", command="x" * 900),))
    for message in (with_changes(EDIT, pinned=True), sealed, other):
        assert shortened(message, 0) is message


def test_a_script_of_an_old_call_is_cleared_if_configured() -> None:
    other = Message(id="a", role="assistant", tool_calls=(call("run", command="x" * 900, folder="src"),))
    arguments = json.loads(shortened(other, 0, what=("replaced", "other")).tool_calls[0].arguments)
    assert arguments == {"command": "[cleared to save context]", "folder": "src"}


def test_the_written_text_stays_if_the_read_that_shows_it_is_cleared() -> None:
    messages = (EDIT, Message(id="t", role="tool", tool_call_id="c"), *story(("all", call("read", path="a.py"))))
    uses = FileUses().of(messages)
    kept = shorten_calls(EDIT, 0, uses, ("written",), cleared={3})
    assert (uses.last_shown, kept) == ({"a.py": 3}, EDIT)


def test_reasoning_is_cleared_as_a_whole_and_text_kept() -> None:
    parts = (ReasoningPart("why", origin="anthropic", encrypted="{}"), TextPart("so"), ReasoningPart("more"))
    assert without_reasoning(with_changes(EDIT, content=parts)).content == (TextPart("so"),)


def test_tracking_files_costs_only_the_new_messages(monkeypatch: pytest.MonkeyPatch) -> None:
    """A request reads only new messages; after an edit of the view, only the changed ones."""
    read: list[str] = []

    def counting(message: Message) -> object:
        read.append(message.id)
        return original(message)

    original = file_uses._read
    monkeypatch.setattr(file_uses, "_read", counting)
    messages = story(*((str(number), call("read", path=f"{number}.py")) for number in range(50)))
    uses = FileUses()
    uses.of(messages[:80])
    read.clear()
    uses.of(messages)
    assert len(read) == 20
    read.clear()
    changed = (*messages[:5], with_changes(messages[5], content="cleared", edited=True), *messages[6:])
    uses.of(changed)
    assert read == [messages[5].id]
    fresh = FileUses().of(changed)
    for name in ("before", "of_result", "call_of", "last_read", "last_edited", "last_shown", "open", "_newest"):
        assert getattr(uses, name) == getattr(fresh, name), name
