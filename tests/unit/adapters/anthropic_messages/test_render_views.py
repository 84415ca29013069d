"""For any view, the request passes the check and the SDK's types, and is identical with and without the cache."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from codecompanion.adapters.anthropic_messages.gate import check_body
from codecompanion.adapters.anthropic_messages.options import MessagesOptions
from codecompanion.adapters.base import ChatRequest
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
from tests.providers.loopback.wire_schemas import schema_problems
from tests.unit.adapters.anthropic_messages.samples import (
    ORIGIN,
    SIGNED,
    UNSIGNED,
    compaction,
    request,
    thinking,
    wire,
)

TEXTS = st.sampled_from(["", " \n", "hello", "world ", "\ud800 lone", "x\x00id", "</history_summary>"])
CALL_IDS = st.sampled_from(["a", "a", "call.1", "fc|2", "", "toolu_01"])
ARGUMENTS = st.sampled_from(["{}", '{"p": 1}', "", '{"p": ', "[]", "null"])
CALLS = st.builds(ToolCall, CALL_IDS, st.sampled_from(["read", "fs.read", "", "x" * 300]), ARGUMENTS)
REASONING = st.sampled_from(
    [
        thinking("a"),
        thinking("b"),
        ReasoningPart("plain"),
        ReasoningPart("theirs", "x", "openai_responses@api.openai.com", '{"type":"reasoning"}'),
        ReasoningPart("", "x", ORIGIN, '{"type":"redacted_thinking","data":"d"}'),
        ReasoningPart("", "x", ORIGIN, '{"type":"server_tool_use","id":"s","name":"web_search","input":{}}'),
        ReasoningPart("", "x", ORIGIN, "not json"),
    ]
)
MEDIA = st.sampled_from(
    [
        ImagePart(sha256="i"),
        ImagePart(sha256="i", width=3000, height=9),
        ImagePart(url="data:image/png;base64,xxx"),
        ImagePart(url="https://host.test/a.png"),
        DocumentPart(sha256="pdf", path="a]\n.pdf"),
        DocumentPart(sha256="i"),
    ]
)
MARKS = st.builds(CallMark, st.integers(0, 3))
PARTS = st.lists(st.one_of(st.builds(TextPart, TEXTS), REASONING, MARKS), max_size=5).map(tuple)
MESSAGES = st.one_of(
    st.builds(Message, st.just("s"), st.just("system"), TEXTS, tag=st.sampled_from([None, "compact_summary", "tool"])),
    st.builds(Message, st.just("u"), st.just("user"), TEXTS),
    st.builds(Message, st.just("m"), st.just("user"), st.lists(MEDIA, max_size=3).map(tuple)),
    st.builds(Message, st.just("a"), st.just("assistant"), PARTS, st.lists(CALLS, max_size=3).map(tuple)),
    st.builds(Message, st.just("z"), st.just("assistant"), TEXTS, tag=st.just("compact_summary")),
    st.builds(Message, st.just("r"), st.just("tool"), TEXTS, tool_call_id=CALL_IDS, is_error=st.booleans()),
    st.sampled_from([compaction(UNSIGNED), compaction(SIGNED), compaction(origin="x@y")]),
    st.builds(Message, st.just("q"), st.just("assistant"), st.just((CompactionPart(ORIGIN, "[]"), TextPart("reply")))),
)
VIEWS = st.lists(MESSAGES, max_size=12)
THINKING = st.sampled_from(
    [None, {"type": "adaptive"}, {"type": "disabled"}, {"type": "enabled", "budget_tokens": 2048}]
)


def render(format_: Any, wanted: ChatRequest) -> dict[str, Any]:
    decoded: dict[str, Any] = msgspec.json.decode(format_.render(wanted).body)
    return decoded


@pytest.mark.sweep
@given(VIEWS, THINKING, st.booleans(), st.sampled_from([0, 60_000]))
@settings(max_examples=300, deadline=None)
def test_any_request_passes_the_check_and_the_types(
    view: list[Message], thinking_: Any, sealed: bool, compact_at: int
) -> None:
    """A view can contain orphans, foreign reasoning, odd ids, empty texts and two compactions."""
    parameters = {"thinking": thinking_} if thinking_ else {}
    last = Message(id="last", role="user", content="go")
    body = render(
        wire(parameters=parameters), request(*view, last, send_encrypted=sealed, compact_at=compact_at, chat_id="")
    )
    assert check_body(body) == []
    assert schema_problems("anthropic.messages", body) == []
    if not sealed:
        assert b'"signature"' not in msgspec.json.encode(body)


@pytest.mark.sweep
@given(VIEWS, st.lists(MESSAGES, max_size=8), st.booleans())
@settings(max_examples=200, deadline=None)
def test_cached_pieces_change_nothing(view: list[Message], more: list[Message], keeps_first: bool) -> None:
    """The bytes are the same with and without a cache, for appended and for edited views."""
    last = Message(id="last", role="user", content="go")
    kept = wire(MessagesOptions(cache=True))
    views = [[*view, last]]
    for message in more:
        views.append([*(views[-1] if keeps_first else views[-1][1:]), message, last])
    for messages in views:
        wanted = request(*messages, compact_at=60_000)
        assert kept.render(wanted).body == wire(MessagesOptions(cache=True)).render(wanted).body


@pytest.mark.sweep
@given(VIEWS)
@settings(max_examples=150, deadline=None)
def test_counting_and_compacting_pass_the_types(view: list[Message]) -> None:
    """They contain the same messages with different other fields."""
    wanted = request(*view, Message(id="last", role="user", content="go"), compact_at=60_000)
    format_ = wire(parameters={"metadata": {"user_id": "u"}, "output_config": {"effort": "low"}})
    count = format_.render_count(wanted)
    assert count is not None
    assert schema_problems("anthropic.count_tokens", msgspec.json.decode(count.body)) == []
    compact = format_.render_compaction(wanted, "")
    assert compact is not None
    body = msgspec.json.decode(compact.body)
    assert schema_problems("anthropic.messages", body) == []
    assert check_body(body) == []
