"""The items of a request from cached pieces, and requests that must be repaired first."""

from __future__ import annotations

import json
import logging

import pytest
from hypothesis import given
from hypothesis import strategies as st

import codecompanion.adapters.openai_responses.items as items_module
from codecompanion.adapters.openai_responses.check import MAX_IMAGES
from codecompanion.adapters.openai_responses.gate import check_body
from codecompanion.errors import AdapterError, ContextOverflow
from codecompanion.model.messages import ImagePart, Message, ToolCall, with_changes
from codecompanion.placeholders import INTERRUPTED
from tests.unit.adapters.openai_responses.conversations import (
    agent_loop,
    body_of,
    chats,
    compaction,
    items_of,
    reasoning,
    reply,
    request,
    result,
    system,
    user,
    wire,
)


@given(chats(), st.data())
def test_bytes_are_the_same_with_and_without_cached_pieces(messages: list[Message], data: st.DataObject) -> None:
    """One renderer gives the same bytes as a new one while the chat grows, is edited or compacted.

    This also applies when the chat is sent without encrypted parts.
    """
    made = wire()
    for _ in range(data.draw(st.integers(1, 4))):
        step = data.draw(st.sampled_from(["grow", "edit", "cut", "compact", "encrypted"]))
        end = data.draw(st.integers(0, len(messages)))
        if step == "grow":
            messages = [*messages, user(100 + len(messages))]
        elif step == "edit":
            messages = [with_changes(m, content="cleared") if m.role == "tool" else m for m in messages]
        elif step == "cut":
            messages = messages[end:]
        elif step == "compact":
            messages = [*messages[:end], compaction("n", kept=("kept",)), *messages[end:], user(99)]
        asked = request(*messages, send_encrypted=step != "encrypted")
        try:
            fresh = wire().render(asked).body
        except AdapterError as error:
            with pytest.raises(type(error)):
                made.render(asked)
            continue
        assert made.render(asked).body == fresh


@given(chats())
def test_every_rendered_view_passes_the_check(messages: list[Message]) -> None:
    """No generated view violates the check, even with a compaction at any position."""
    assert check_body(body_of(request(*messages))) == []
    for place in range(len(messages)):
        view = [*messages[:place], compaction("n"), *messages[place:]]
        if not any(message.role == "tool" for message in messages[place : place + 1]):
            assert check_body(body_of(request(*view))) == []


def test_only_new_messages_are_rendered(monkeypatch: pytest.MonkeyPatch) -> None:
    """A request costs O(new messages)."""
    made, messages = wire(), agent_loop()
    made.render(request(*messages))
    rendered: list[str] = []
    render = items_module.ItemRenderer.render

    def watched(self: items_module.ItemRenderer, message: Message, *args: object, **more: object) -> object:
        rendered.append(message.id)
        return render(self, message, *args, **more)  # type: ignore[arg-type]

    monkeypatch.setattr(items_module.ItemRenderer, "render", watched)
    made.render(request(*messages, reply(9, "ok"), user(9)))
    assert rendered == ["a9", "u9"]
    rendered.clear()
    edited = [with_changes(m, content="cleared") if m.id == "r-call_1" else m for m in messages]
    made.render(request(*edited, reply(9, "ok"), user(9)))
    assert rendered[0] == "r-call_1"
    assert len(rendered) == 3


def test_before_the_newest_compaction_only_protected_messages_are_sent() -> None:
    """R-539: the compaction is sent first, then the protected messages verbatim, then the later messages."""
    messages = [
        system(),
        user(1, "rules", tag="rules"),
        user(2, "old words"),
        reply(2, "old answer", calls=("call_1",)),
        result("call_1", "old result"),
        user(3, "pinned words", pinned=True),
        compaction("one"),
        reply(4, reasoning("b"), "between"),
        compaction("two", kept=("kept words",)),
        user(5, "new words"),
    ]
    items = items_of(*messages)
    assert [item["type"] for item in items] == ["message", "compaction", "message", "message", "message"]
    assert items[1]["encrypted_content"] == "packed-two"
    assert [item["content"] for item in items[2:]] == ["rules", "pinned words", "new words"]
    assert items[0]["id"] == "msg_two0"
    assert body_of(request(*messages))["instructions"] == "be good"


def test_a_pinned_result_keeps_its_call_after_a_compaction() -> None:
    """A result without its call would be refused."""
    pinned = with_changes(result("call_1"), pinned=True)
    items = items_of(user(1), reply(1, calls=("call_1",)), pinned, compaction("k"), user(2))
    assert [item["type"] for item in items] == ["compaction", "function_call", "function_call_output", "message"]


def test_another_providers_compaction_is_never_sent() -> None:
    """R-542: only its readable text is sent; the rest of the view is unchanged."""
    foreign = compaction("x", origin="anthropic_messages@api.anthropic.com", text="they talked")
    items = items_of(user(1, "old"), foreign, user(2))
    assert [item["content"] for item in items] == ["old", "<history_summary>\nthey talked\n</history_summary>", "hi"]
    assert items_of(user(1), compaction("x", origin="openai_responses@other.test"), user(2)) == items_of(
        user(1), user(2)
    )


def test_ids_of_other_providers_are_translated_with_their_results() -> None:
    """R-517: ids that are too long, repeated or contain other characters get the same translation in every request."""
    long = "toolu_" + "y" * 80
    messages = [user(1)]
    for number in range(3):
        messages += [reply(number, calls=("same", long)), result("same"), result(long), user(number)]
    items = items_of(*messages)
    calls = [item["call_id"] for item in items if item["type"] == "function_call"]
    assert len(set(calls)) == 6
    assert all(len(call_id) <= 64 for call_id in calls)
    assert [item["call_id"] for item in items if item["type"] == "function_call_output"] == calls
    assert calls[::2] == ["same", "same_2", "same_3"]
    assert items_of(*messages[:5]) == items[: len(items_of(*messages[:5]))]


def test_an_id_that_looks_translated_is_not_used_twice() -> None:
    """If the history contains `a_2`, the second use of `a` gets a different id."""
    messages = [user(1)]
    for number, call_id in enumerate(["a", "a_2", "a", "a"]):
        messages += [reply(number, calls=(call_id,)), result(call_id)]
    body = body_of(request(*messages))
    assert check_body(body) == []


def test_a_broken_view_is_repaired_and_logged(caplog: pytest.LogCaptureFixture) -> None:
    """A bug elsewhere must not make a chat unusable; cached pieces do not hide it from the next request."""
    messages = [user(1), reply(1, calls=("call_1", "call_2")), user(2), result("call_2"), result("ghost")]
    made = wire()
    with caplog.at_level(logging.WARNING):
        items = items_of(*messages, made=made)
    assert [item.get("call_id") for item in items] == [None, "call_1", "call_2", "call_1", "call_2", None]
    assert items[3]["output"] == INTERRUPTED
    assert "repaired before sending" in caplog.text
    assert items_of(*messages, made=made) == items
    mended = [user(1), reply(1, calls=("call_1",)), result("call_1"), user(2)]
    assert items_of(*mended, made=made) == items_of(*mended)


def test_a_message_without_content_is_not_a_problem(caplog: pytest.LogCaptureFixture) -> None:
    """Reasoning alone (a truncated reply), empty text and a call in a user message are omitted, without a warning."""
    strange = Message(id="x", role="user", content="calls", tool_calls=(ToolCall("c", "read"),))
    items = items_of(user(1), reply(1, reasoning("a")), user(2, ""), strange)
    assert [item["content"] for item in items] == ["hi", "calls"]
    assert not caplog.records


def test_more_images_than_fit_are_an_overflow() -> None:
    """The session then removes the oldest, as after status 413 (lesson 27)."""
    images = tuple(ImagePart(url="https://x.test/a.png") for _ in range(MAX_IMAGES + 1))
    with pytest.raises(ContextOverflow, match="fit into a request"):
        body_of(request(Message(id="u", role="user", content=images)))


def test_a_summary_caches_nothing() -> None:
    """Its messages are not those of the chat."""
    made, messages = wire(), agent_loop()
    first = made.render(request(*messages)).body
    made.render(request(user(7), purpose="summary"))
    assert made.render(request(*messages)).body == first
    assert json.loads(first)["input"] == items_of(*messages)
