"""Messages as sent to the Messages API."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from codecompanion.adapters.anthropic_messages.options import MessagesOptions
from codecompanion.errors import RequestRejected
from codecompanion.model.messages import (
    CallMark,
    CompactionPart,
    DocumentPart,
    ImagePart,
    Message,
    ReasoningPart,
    TextPart,
    ToolCall,
)
from tests.unit.adapters.anthropic_messages.samples import (
    MODEL,
    ORIGIN,
    PDF,
    READ,
    SIGNED,
    UNSIGNED,
    assistant,
    body,
    compaction,
    request,
    result,
    sent,
    thinking,
    user,
    wire,
)

SYSTEM = Message(id="s", role="system", content="You help.")


def kinds(message: dict[str, Any]) -> list[str]:
    return [block["type"] for block in message["content"]]


def test_only_the_fields_of_the_wire_are_sent() -> None:
    """Internal keys would be refused, and are private."""
    typed = Message(*("u", "user", "text"), cycle=3, tag="file", path="x", pinned=True, edited=True, ts=1.0, tokens=5)
    assert sent(typed) == [{"role": "user", "content": [{"type": "text", "text": "text"}]}]


def test_the_system_prompt_has_its_own_field() -> None:
    """The API has no system messages in its list; later system messages are labelled (K5)."""
    note = Message(id="n", role="system", content="Be short.", tag="tool_system_prompt")
    summary = Message(id="z", role="system", content="Earlier: x.", tag="compact_summary")
    rendered = body(wire(MessagesOptions(cache=False)), request(SYSTEM, user(1), note, summary, user(2)))
    assert [block["text"] for block in rendered["system"]] == [
        "You help.",
        "<tool_system_prompt>\nBe short.\n</tool_system_prompt>",
        "<history_summary>\nEarlier: x.\n</history_summary>",
    ]
    assert [message["role"] for message in rendered["messages"]] == ["user"]


def test_adjacent_messages_of_one_role_are_merged() -> None:
    """R-425: they are merged here and nowhere else."""
    first, second = sent(user(1, "rules", tag="rules"), user(2, "do it"), assistant(1, "yes"), assistant(2, "done"))[:2]
    assert [block["text"] for block in first["content"]] == ["rules", "do it"]
    assert [block["text"] for block in second["content"]] == ["yes", "done"]


def test_results_come_first_after_their_calls() -> None:
    """Messages typed in between follow them in the same message."""
    messages = (user(1), assistant(1, "look", calls=("c1", "c2")), result(1, "c1"), result(2, "c2"), user(2, "and?"))
    _, reply, answer = sent(*messages)
    assert kinds(reply) == ["text", "tool_use", "tool_use"]
    assert kinds(answer) == ["tool_result", "tool_result", "text"]
    assert [block["tool_use_id"] for block in answer["content"][:2]] == ["c1", "c2"]


def test_a_mark_sets_the_place_of_a_call() -> None:
    """A call without a mark comes after all parts."""
    reply = assistant(1, "a", CallMark(1), "b", calls=("c0", "c1"))
    _, rendered, _ = sent(user(1), reply, result(1, "c0"), result(2, "c1"))
    assert [block.get("id") or block["text"] for block in rendered["content"]] == ["a", "c1", "b", "c0"]


@pytest.mark.parametrize("text", ["", " \n", "\t"])
def test_blank_text_is_left_out(text: str) -> None:
    """The API refuses empty and white-space text blocks."""
    rendered = sent(user(1), assistant(1, text, calls=("c",)), result(1, "c", text), user(2, text))
    assert kinds(rendered[1]) == ["tool_use"]
    assert rendered[2]["content"] == [{"type": "tool_result", "tool_use_id": "c", "content": "(no output)"}]


def test_a_failed_result_is_marked() -> None:
    """`is_error` is sent only if it is true."""
    failed = Message(id="r", role="tool", content="no such file", tool_call_id="c", is_error=True)
    block = sent(user(1), assistant(1, calls=("c",)), failed)[-1]["content"][0]
    assert block["is_error"] is True


def test_unsupported_ids_are_translated_with_their_results() -> None:
    """This covers other providers' ids and ids used twice in a real history; the translation is deterministic."""
    messages = (
        *(user(1), assistant(1, calls=("call.1",)), result(1, "call.1")),
        *(assistant(2, calls=("call.1", "call_1")), result(2, "call.1"), result(3, "call_1")),
    )
    rendered = sent(*messages)
    called = [block["id"] for message in rendered for block in message["content"] if block["type"] == "tool_use"]
    answered = [b["tool_use_id"] for message in rendered for b in message["content"] if b["type"] == "tool_result"]
    assert called == answered == ["call_1", "call_1_2", "call_1_3"]


@pytest.mark.parametrize("arguments", ['{"p": ', "[1]", "text", '"x"'])
def test_invalid_arguments_stay_readable(arguments: str) -> None:
    """`input` must be an object; the model still sees what it wrote."""
    reply = Message(id="a", role="assistant", tool_calls=(ToolCall("c", "read", arguments),))
    block = sent(user(1), reply, result(1, "c"))[1]["content"][0]
    assert block["input"] == {"invalid_json": arguments}


def test_arguments_cannot_escape_their_place() -> None:
    """The id is inserted later, but text in arguments or results that looks like its placeholder stays text."""
    reply = Message(id="a", role="assistant", tool_calls=(ToolCall("c", "read", '{"x":"\\u0000id","y":"\\u0000id"}'),))
    rendered = sent(user(1), reply, result(1, "c", "\x00id"))
    assert rendered[1]["content"][0]["input"] == {"x": "\x00id", "y": "\x00id"}
    assert rendered[2]["content"][0]["content"] == "\x00id"


def test_names_of_called_tools_are_adapted() -> None:
    """Other providers allow dots in names."""
    reply = Message(id="a", role="assistant", tool_calls=(ToolCall("c", "fs.read file"),))
    assert sent(user(1), reply, result(1, "c"))[1]["content"][0]["name"] == "fs_read_file"


def test_a_conversation_that_begins_with_the_model_gets_a_user_message_first() -> None:
    """The list must begin with a user message; a summary counts as one."""
    rendered = sent(assistant(1, "hello"), user(1))
    assert rendered[0]["role"] == "user"
    assert "left out" in rendered[0]["content"][0]["text"]
    summary = Message(id="z", role="assistant", content="We did x. </history_summary>", tag="compact_summary")
    text = sent(summary, user(1, "go on"))[0]["content"][0]["text"]
    assert text == "<history_summary>\nWe did x. < /history_summary>\n</history_summary>"


def test_a_request_never_ends_with_an_assistant_message() -> None:
    """Newer models refuse to continue from an assistant message; its text stays unchanged (thinking is bound to it)."""
    rendered = sent(user(1), assistant(1, "It is 4 "))
    assert rendered[1]["content"][0]["text"] == "It is 4 "
    assert rendered[2]["role"] == "user"


def test_images_and_documents_are_sent_as_base64() -> None:
    """The media type is that of the bytes, because a wrong one is refused."""
    parts = (
        TextPart("look"),
        ImagePart(sha256="img", mime="image/jpeg", path="a.png"),
        DocumentPart(sha256="pdf", path="docs/a.pdf"),
    )
    blocks = sent(Message(id="u", role="user", content=parts))[0]["content"]
    assert [block["type"] for block in blocks] == ["text", "image", "document"]
    assert blocks[1]["source"]["media_type"] == "image/png"
    assert blocks[2]["title"] == "docs/a.pdf"
    assert blocks[2]["source"]["media_type"] == "application/pdf"


def test_content_a_model_does_not_accept_becomes_a_note() -> None:
    """The note tells the model that something is missing."""
    parts = (ImagePart(sha256="i", path="a.png"), DocumentPart(sha256="pdf", path="b.pdf"))
    options = MessagesOptions(image_input=False, document_input=False, cache=False)
    blocks = body(wire(options), request(Message(id="u", role="user", content=parts)))["messages"][0]["content"]
    assert [block["type"] for block in blocks] == ["text", "text"]
    assert "a.png" in blocks[0]["text"]
    assert "b.pdf" in blocks[1]["text"]


def test_too_many_images_drop_the_oldest_in_steps() -> None:
    """The limit is 100; dropping one more image per request would change the prompt's prefix every time (lesson 22)."""

    def images(count: int) -> list[str]:
        messages = [Message(id=f"u{k}", role="user", content=(ImagePart(sha256="i"),)) for k in range(count)]
        return [block["type"] for message in sent(*messages) for block in message["content"]]

    assert images(100).count("image") == 100
    assert images(101).count("image") == images(150).count("image") - 49 == 51
    assert images(101)[:50] == ["text"] * 50


def test_large_images_are_dropped_beside_many_others() -> None:
    """If a request has more than 20 images, they may have at most 2,000 pixels."""
    big = Message(id="b", role="user", content=(ImagePart(sha256="i", width=3000, height=10),))
    few = [Message(id=f"u{k}", role="user", content=(ImagePart(sha256="i"),)) for k in range(19)]
    more = Message(id="m", role="user", content=(ImagePart(sha256="i"),))
    assert [block["type"] for block in sent(big, *few)[0]["content"]] == ["image"] * 20
    assert [block["type"] for block in sent(big, *few, more)[0]["content"]] == ["text", *["image"] * 20]


def test_thinking_is_sent_back_unchanged_in_its_place() -> None:
    """Signed text is never edited (lesson 26)."""
    hidden = ReasoningPart("", "thinking", ORIGIN, '{"type":"redacted_thinking","data":"x","new":1}')
    reply = assistant(1, thinking("a"), hidden, "so", calls=("c",))
    block = sent(user(1), reply, result(1, "c"))[1]["content"]
    assert block[:2] == [
        {"type": "thinking", "thinking": "a", "signature": "signed a"},
        {"type": "redacted_thinking", "data": "x", "new": 1},
    ]
    assert [one["type"] for one in block[2:]] == ["text", "tool_use"]


@pytest.mark.parametrize(
    "lost",
    [
        ReasoningPart("plain"),
        ReasoningPart("not sealed", origin=ORIGIN),
        ReasoningPart("broken", "thinking", ORIGIN, '{"type":"thinking","thinking":"broken"}'),
        thinking("theirs", origin="anthropic@other.host"),
    ],
)
def test_a_turn_sends_all_its_thinking_or_none(lost: ReasoningPart) -> None:
    """Reasoning of another provider or of a truncated reply cannot be sent back.

    Then none of that turn's reasoning is.
    """
    turn = (
        *(user(2), assistant(2, thinking("b"), calls=("c2",)), result(2, "c2")),
        *(assistant(3, lost, calls=("c3",)), result(3, "c3")),
    )
    rendered = sent(user(1), assistant(1, thinking("a"), "one"), *turn)
    assert [kinds(message) for message in rendered if message["role"] == "assistant"] == [
        ["thinking", "text"],
        ["tool_use"],
        ["tool_use"],
    ]


def test_messages_typed_in_a_tool_loop_do_not_end_its_turn() -> None:
    """The API sees them after the results, in the same turn."""
    messages = (
        *(user(1), assistant(1, thinking("a"), calls=("c1",)), result(1, "c1"), user(2, "hurry")),
        *(assistant(2, ReasoningPart("plain"), calls=("c2",)), result(2, "c2")),
    )
    assert not [k for message in sent(*messages) for k in kinds(message) if k == "thinking"]


def test_nothing_encrypted_is_sent_after_the_providers_refusal() -> None:
    """With `send_encrypted` false, neither thinking nor compaction is sent."""
    messages = (compaction(SIGNED), user(1), assistant(1, thinking("a"), "one"), user(2))
    rendered = sent(*messages, send_encrypted=False)
    assert rendered[0]["content"][0]["text"].startswith("<history_summary>")
    assert {k for message in rendered for k in kinds(message)} == {"text"}


def test_a_turn_never_ends_with_thinking() -> None:
    """A reply that consists only of thinking has no content."""
    rendered = sent(user(1), assistant(1, thinking("a")), user(2))
    assert [message["role"] for message in rendered] == ["user"]


def test_server_tool_blocks_are_sent_back_in_place() -> None:
    """A paused reply is sent back in full, and is continued automatically."""
    tool = ReasoningPart("", "x", ORIGIN, '{"type":"server_tool_use","id":"s","name":"web_search","input":{}}')
    rendered = sent(user(1), assistant(1, thinking("a"), "searching", tool))
    assert kinds(rendered[-1]) == ["thinking", "text", "server_tool_use"]
    assert rendered[-1]["role"] == "assistant"


def test_the_compaction_comes_first_and_protected_messages_follow() -> None:
    """Messages before an unsigned block are not read (R-537); rules come after it, byte-identical."""
    rules = user(9, "RULES", tag="rules")
    rendered = sent(SYSTEM, rules, compaction(), user(1, "and now?"), compact_at=60_000)
    assert rendered[0] == {"role": "assistant", "content": [UNSIGNED]}
    assert [block["text"] for block in rendered[1]["content"]] == ["RULES", "and now?"]


def test_the_reply_of_a_compaction_follows_it_in_one_message() -> None:
    """The order is exactly as sent by the server."""
    rendered = sent(compaction(), assistant(1, thinking("a"), "one"), user(1), compact_at=60_000)
    assert kinds(rendered[0]) == ["compaction", "thinking", "text"]


def test_only_the_newest_compaction_is_sent() -> None:
    """Two compactions are an error (R-537)."""
    rendered = sent(compaction(), compaction({**UNSIGNED, "content": "newer"}, number=1), user(1), compact_at=60_000)
    found = [block for message in rendered for block in message["content"] if block["type"] == "compaction"]
    assert [block["content"] for block in found] == ["newer"]


def test_another_providers_compaction_is_never_sent() -> None:
    """Its text is sent instead, as the last line of defence (R-542)."""
    foreign = compaction(origin="openai_responses@api.openai.com")
    silent = Message(id="q", role="assistant", content=(CompactionPart("x@y", "[]"),), tag="compact_summary")
    first = sent(foreign, silent, user(1), compact_at=60_000)[0]
    assert first["content"][0]["text"] == "<history_summary>\nwhat was said\n</history_summary>"
    assert len(first["content"]) == 2


def test_a_compaction_by_the_server_needs_the_edit_that_made_it() -> None:
    """Without `compact_at` it can only be sent as text."""
    assert kinds(sent(compaction(), user(1))[0]) == ["text", "text"]
    assert kinds(sent(compaction(SIGNED), user(1))[0]) == ["compaction"]


def test_a_call_without_its_result_is_repaired_and_reported(caplog: pytest.LogCaptureFixture) -> None:
    """A bug elsewhere must not make a chat unusable."""
    rendered = sent(user(1), assistant(1, calls=("c",)), user(2))
    assert kinds(rendered[2]) == ["tool_result", "text"]
    assert "repaired before sending" in caplog.text


def test_an_irreparable_history_is_not_sent() -> None:
    """The error says that nothing was lost."""
    with pytest.raises(RequestRejected, match=r"refuse it .*The chat is unchanged; please report"):
        wire().render(request(SYSTEM))


def test_calls_need_tools() -> None:
    """A request without tools declares the tools that were called and forbids calling them."""
    messages = (user(1), assistant(1, calls=("c",)), result(1, "c"))
    rendered = body(wire(), request(*messages, tools=()))
    assert [tool["name"] for tool in rendered["tools"]] == ["read"]
    assert rendered["tool_choice"] == {"type": "none"}
    assert "tools" not in body(wire(), request(user(1), tools=()))


def test_schemas_are_objects_without_choices_at_the_top() -> None:
    """The API refuses `anyOf` at the top level."""
    odd = msgspec.structs.replace(READ, parameters={"anyOf": [{}], "properties": {}})
    assert body(wire(), request(user(1), tools=(odd,)))["tools"][0]["input_schema"] == {
        "properties": {},
        "type": "object",
    }


def test_the_requests_model_is_used() -> None:
    """The model of the adapter entry is not used."""
    assert body(wire(model="other"), request(user(1)))["model"] == MODEL
    assert PDF.startswith(b"%PDF")


@pytest.mark.parametrize("messages", [(), (user(1), assistant(1, "a"), user(2))])
def test_a_count_may_have_a_thinking_budget(messages: tuple[Message, ...]) -> None:
    """A count has no `max_tokens` that the budget could exceed.

    A count without messages only shows that counting works.
    """
    adapter = wire(parameters={"thinking": {"type": "enabled", "budget_tokens": 2_000}})
    call = adapter.render_count(request(*messages))
    assert call is not None
    assert msgspec.json.decode(call.body)["thinking"] == {"type": "enabled", "budget_tokens": 2_000}
