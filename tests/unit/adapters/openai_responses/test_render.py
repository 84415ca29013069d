"""Bodies for `/responses`: the head, and rendered messages."""

from __future__ import annotations

import json
from typing import Any

import pytest

from codecompanion.adapters.openai_chat.render import NO_OUTPUT
from codecompanion.adapters.openai_responses.gate import check_body
from codecompanion.adapters.openai_responses.options import ResponsesOptions
from codecompanion.errors import StoreError
from codecompanion.model.messages import (
    CallMark,
    DocumentPart,
    ImagePart,
    Message,
    ReasoningPart,
    TextPart,
    ToolCall,
    ToolSpec,
)
from tests.unit.adapters.openai_responses.conversations import (
    agent_loop,
    body_of,
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


def kinds(items: list[dict[str, Any]]) -> list[str]:
    return [item.get("role") or item["type"] for item in items]


def test_the_head_disables_storing_and_truncation() -> None:
    """The system prompt is `instructions`; reasoning is returned encrypted; the cache key is not the chat's id."""
    body = body_of(request(system("be good"), user(1), chat_id="secret-chat"))
    assert body["stream"] is True
    assert body["store"] is False
    assert body["truncation"] == "disabled"
    assert body["include"] == ["reasoning.encrypted_content"]
    assert body["reasoning"] == {"summary": "auto"}
    assert body["instructions"] == "be good"
    assert body["input"] == [{"type": "message", "role": "user", "content": "hi"}]
    assert "secret" not in body["prompt_cache_key"]
    assert "max_output_tokens" not in body
    assert "context_management" not in body
    assert body["prompt_cache_key"] == body_of(request(user(2), chat_id="secret-chat"))["prompt_cache_key"]
    assert body["prompt_cache_key"] != body_of(request(user(2), chat_id="other"))["prompt_cache_key"]


def test_a_system_summary_stays_in_place() -> None:
    """Pipeline 5.6: a summary is a developer message at its position, after the prompt or between turns (R-129)."""
    summary = Message(id="s", role="system", content="[Conversation Summary]", tag="compact_summary")
    told = {"type": "message", "role": "developer", "content": "[Conversation Summary]"}
    first = body_of(request(system("be good"), summary, user(1)))
    assert first["instructions"] == "be good"
    assert first["input"][0] == told
    later = body_of(request(system("be good"), user(1), summary, user(2)))
    assert [item["role"] for item in later["input"]] == ["user", "developer", "user"]


@pytest.mark.parametrize("model", ["gpt-4.1", "gpt-4o-mini", "openai/gpt-4.1", "gpt-3.5-turbo", "ft:gpt-4o:me"])
def test_a_model_without_reasoning_gets_no_reasoning_fields(model: str) -> None:
    """It answers 400 to `reasoning` and to encrypted reasoning."""
    body = body_of(request(user(1), model=model))
    assert "reasoning" not in body
    assert "include" not in body


def test_the_users_parameters_are_merged() -> None:
    """The user's effort is added to our summary setting, a user's summary replaces ours, and includes are combined."""
    effort = body_of(request(user(1)), wire(parameters={"reasoning": {"effort": "high"}, "temperature": 1}))
    assert effort["reasoning"] == {"effort": "high", "summary": "auto"}
    assert effort["temperature"] == 1
    own = wire(parameters={"reasoning": {"summary": "detailed"}, "include": ["message.output_text.logprobs"]})
    body = body_of(request(user(1)), own)
    assert body["reasoning"] == {"summary": "detailed"}
    assert body["include"] == ["message.output_text.logprobs", "reasoning.encrypted_content"]


def test_limits_are_raised_to_the_endpoints_minimum() -> None:
    """The minimum is 16 output tokens, and 50,000 tokens for a threshold (R-539)."""
    body = body_of(request(user(1), max_output_tokens=3, compact_at=10))
    assert body["max_output_tokens"] == 16
    assert body["context_management"] == [{"type": "compaction", "compact_threshold": 50_000}]
    assert body_of(request(user(1), compact_at=170_000))["context_management"][0]["compact_threshold"] == 170_000
    off = wire(ResponsesOptions(compaction=False))
    assert "context_management" not in body_of(request(user(1), compact_at=170_000), off)


def test_options_disable_single_fields() -> None:
    """The options are for endpoints with an incomplete copy of the format."""
    options = ResponsesOptions(prompt_cache_key=False, reasoning_summary="none", send_reasoning=False)
    body = body_of(request(user(1), reply(1, reasoning("a"), "text"), user(2)), wire(options))
    assert "prompt_cache_key" not in body
    assert "reasoning" not in body
    assert kinds(body["input"]) == ["user", "assistant", "user"]


def test_tools_are_functions_with_adapted_names() -> None:
    """`strict` is false, because our schemas have optional keys; a call in the history keeps the name of its tool."""
    spec = ToolSpec("my.tool", "does it", {"type": "object", "properties": {}})
    calling = Message(id="a", role="assistant", tool_calls=(ToolCall("call_1", "my.tool"),))
    body = body_of(request(user(1), calling, result("call_1"), tools=(spec,)), wire(parallel_tool_calls=False))
    assert body["tools"] == [
        {
            "type": "function",
            "name": "my_tool",
            "description": "does it",
            "parameters": {"type": "object", "properties": {}},
            "strict": False,
        }
    ]
    assert body["input"][1]["name"] == "my_tool"
    assert body["parallel_tool_calls"] is False
    assert "parallel_tool_calls" not in body_of(request(user(1), tools=()), wire(parallel_tool_calls=False))


def test_a_reply_keeps_its_original_order() -> None:
    """Encrypted reasoning directly precedes its item, calls are at their marks, phases kept and item ids omitted."""
    body = body_of(request(*agent_loop()))
    assert check_body(body) == []
    assert kinds(body["input"]) == [
        *("user", "user", "reasoning", "function_call", "reasoning", "function_call"),
        *("function_call_output", "function_call_output", "reasoning", "assistant", "function_call"),
        *("function_call_output", "reasoning", "assistant", "developer", "user"),
    ]
    assert [item["id"] for item in body["input"] if "id" in item] == ["rs_a", "rs_b", "rs_c", "rs_d"]
    assert [item["phase"] for item in body["input"] if "phase" in item] == ["commentary", "final_answer"]
    assert body["input"][11]["output"] == NO_OUTPUT


def test_an_unknown_phase_does_not_block_the_chat() -> None:
    """A server may write a phase newer than our table: it is shown, and not sent back."""
    said = Message(id="a", role="assistant", content=(TextPart("hi", "analysis"),))
    body = body_of(request(user(1), said, user(2)))
    assert check_body(body) == []
    assert [item.get("phase") for item in body["input"]] == [None] * 3


def test_of_consecutive_encrypted_reasoning_the_last_is_sent() -> None:
    """The endpoint sometimes writes such runs and refuses them later."""
    items = items_of(user(1), reply(1, reasoning("a"), reasoning("b"), "text"), user(2))
    assert [item.get("id") for item in items] == [None, "rs_b", None, None]


def test_calls_without_a_mark_come_last() -> None:
    """Replies of other providers have no marks."""
    assert kinds(items_of(user(1), reply(1, "text", calls=("x",)), result("x"))) == [
        *("user", "assistant", "function_call", "function_call_output")
    ]


@pytest.mark.parametrize(
    "parts",
    [
        (TextPart("text"), reasoning("a")),
        (reasoning("a"), CallMark(7), TextPart("")),
        (ReasoningPart("only readable"), TextPart("text")),
        (reasoning("a", "anthropic_messages@api.anthropic.com"), TextPart("text")),
        (reasoning("a", "openai_responses@other.test"), TextPart("text")),
        (ReasoningPart("t", origin="openai_responses@api.openai.com", encrypted="no json"), TextPart("text")),
        (ReasoningPart("t", origin="openai_responses@api.openai.com", encrypted='{"summary": []}'), TextPart("text")),
    ],
)
def test_unusable_reasoning_is_left_out(parts: tuple[Any, ...]) -> None:
    """Reasoning is omitted if it has no following item, is unencrypted, invalid or from another provider (R-542)."""
    items = items_of(user(1), reply(1, *parts), user(2))
    assert "reasoning" not in kinds(items)
    assert "only readable" not in json.dumps(items)


def test_a_request_without_encrypted_parts_has_only_readable_ones() -> None:
    """The session sends such a request after `EncryptedRefused`."""
    messages = [user(1), compaction("k", text="long ago"), reply(1, reasoning("a"), "text"), user(2)]
    items = items_of(*messages, send_encrypted=False)
    assert kinds(items) == ["user", "user", "assistant", "user"]
    assert items[1]["content"] == "<history_summary>\nlong ago\n</history_summary>"


def test_encrypted_items_are_sent_back_without_response_fields() -> None:
    """`created_by` and `status: null` are unknown in a request; the encrypted content is unchanged."""
    item = {"type": "reasoning", "id": "rs_1", "summary": [], "encrypted_content": "s", "status": None, "new": 1}
    part = ReasoningPart("", origin="openai_responses@api.openai.com", encrypted=json.dumps(item))
    assert items_of(user(1), reply(1, part, "text"))[1] == {
        "type": "reasoning",
        "id": "rs_1",
        "summary": [],
        "encrypted_content": "s",
    }


def test_files_are_sent_as_data() -> None:
    """Images are sent with their detail and documents with their name, in results too."""
    picture = ImagePart(sha256="i", mime="image/webp", detail="low")
    document = DocumentPart(sha256="d", path="some/dir/paper")
    messages = [
        Message(
            id="u", role="user", content=(TextPart("look"), picture, document, ImagePart(url="https://x.test/a.png"))
        ),
        reply(1, calls=("call_1",)),
        Message(id="r", role="tool", tool_call_id="call_1", content=(TextPart("shot"), picture)),
    ]
    body = body_of(request(*messages), wire(read_blob=lambda _: b"file"))
    assert check_body(body) == []
    assert body["input"][0]["content"] == [
        {"type": "input_text", "text": "look"},
        {"type": "input_image", "image_url": "data:image/webp;base64,ZmlsZQ==", "detail": "low"},
        {"type": "input_file", "filename": "paper.pdf", "file_data": "data:application/pdf;base64,ZmlsZQ=="},
        {"type": "input_image", "image_url": "https://x.test/a.png", "detail": "auto"},
    ]
    assert [part["type"] for part in body["input"][2]["output"]] == ["input_text", "input_image"]


def test_files_a_model_does_not_accept_become_notes() -> None:
    """A note tells the model about the omitted file; a missing file is replaced in the same way."""
    message = Message(id="u", role="user", content=(ImagePart(sha256="i", path="a.png"), DocumentPart(sha256="d" * 20)))

    def gone(_: str) -> bytes:
        raise StoreError("no such blob")

    off = wire(ResponsesOptions(image_input=False, document_input=False))
    texts = [part["text"] for part in items_of(message, made=off)[0]["content"]]
    assert texts[0] == "[The image a.png was not sent: this model does not accept images.]"
    assert texts[1] == "[The document dddddddddddd.pdf was not sent: this model does not accept PDFs.]"
    texts = [part["text"] for part in items_of(message, made=wire(read_blob=gone))[0]["content"]]
    assert all("cannot be read" in text for text in texts)


def test_broken_arguments_do_not_break_the_chat() -> None:
    """The model still sees what it wrote."""
    calling = Message(id="a", role="assistant", tool_calls=(ToolCall("call_1", "read", '{"p": '),))
    arguments = items_of(user(1), calling, result("call_1"))[1]["arguments"]
    assert json.loads(arguments) == {"invalid_json": '{"p": '}


def test_a_compaction_request_omits_protected_messages() -> None:
    """R-540: they stay in the history verbatim; if sent, they would be returned twice."""
    messages = [*agent_loop(), user(3, "pinned", pinned=True)]
    call = wire().render_compaction(request(*messages), "mind the tests")
    assert call is not None
    assert call.path == "/responses/compact"
    body = json.loads(call.body)
    assert set(body) == {"model", "prompt_cache_key", "instructions", "input"}
    assert body["instructions"] == "be good\n\nmind the tests"
    assert check_body(body, "compact") == []
    sent = json.dumps(body["input"])
    assert "rules: be brief" not in sent
    assert "pinned" not in sent
    assert "developer" not in sent
    assert "sealed-a" in sent


def test_a_count_sends_the_prompt_of_the_request() -> None:
    """A count request contains only the fields that change the prompt; the endpoint refuses other keys."""
    made = wire(parameters={"reasoning": {"effort": "low"}, "service_tier": "flex"})
    call = made.render_count(request(*agent_loop(), compact_at=60_000))
    assert call is not None
    assert call.path == "/responses/input_tokens"
    body = json.loads(call.body)
    assert set(body) == {"model", "instructions", "tools", "reasoning", "input"}
    assert check_body(body, "count") == []
    assert body["input"] == body_of(request(*agent_loop()), made)["input"]
