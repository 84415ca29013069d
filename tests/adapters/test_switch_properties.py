"""Every provider gets the whole history in a valid request, whichever model wrote it (R-146, R-542; lessons 22…28).

Generated histories (`switch_histories.py`) are rendered by every format and judged by the fake providers' own rules,
without sockets: growing, with a compaction in front, edited, and without encrypted parts.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from typing import Any

import msgspec
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from codecompanion.adapters import joined_pieces
from codecompanion.adapters.anthropic_messages import conversation
from codecompanion.adapters.anthropic_messages.gate import check_body as check_anthropic
from codecompanion.adapters.base import AdapterSettings, ChatRequest
from codecompanion.adapters.openai_chat.gate import check_body as check_chat
from codecompanion.adapters.openai_responses.gate import check_body as check_responses
from codecompanion.adapters.registry import make_wire
from codecompanion.adapters.wire_format import HttpCall, WireFormat, origin_of
from codecompanion.context.server_side import replace_by_block
from codecompanion.model.messages import SUMMARY_TAG, Message, ToolSpec
from codecompanion.placeholders import SUMMARY_PREFIX, TOOL_RESULT_CLEARED
from tests.adapters.switch_histories import HOST, History, histories
from tests.adapters.switch_provider import PNG
from tests.adapters.switch_reading import Wire, find_loss, read_body
from tests.providers.anthropic.models import SONNET
from tests.providers.anthropic.refusals import Refused as RefusedByAnthropic
from tests.providers.anthropic.rules.request import Memory, Rulebook, check_request
from tests.providers.chat.rules import Extras, refusal_of
from tests.providers.openai.refusal import Refused
from tests.providers.responses.rules import Rules, accept

TOOL = ToolSpec("read", "Reads.", {"type": "object", "properties": {}})
SYSTEM = Message(id="system", role="system", content="Be brief.")
FIELDS = ("reasoning_details", "reasoning_content", "reasoning", "thinking")
FORMATS: dict[str, dict[str, Any]] = {
    "openai": {"kind": "openai", "options": {"document_input": True}},
    "compatible": {"kind": "openai_compatible", "options": {"send_reasoning": "tool_turns"}},
    "mistral": {"kind": "openai_compatible", "options": {"short_call_ids": True}},
    "responses": {"kind": "openai_responses"},
    "anthropic": {"kind": "anthropic", "parameters": {"thinking": {"type": "enabled", "budget_tokens": 1024}}},
    "adaptive": {"kind": "anthropic", "parameters": {"thinking": {"type": "adaptive"}}},
}
WIRES: dict[str, Wire] = {"openai_responses": "responses", "anthropic": "anthropic"}
BLOCKS = {"responses": ["responses"], "anthropic": ["signed", "unsigned"]}


@pytest.fixture(autouse=True, scope="module")
def small_chunks() -> Iterator[None]:
    """Limit a chunk to a few messages, so that bodies have several chunks."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(joined_pieces, "CHUNK_BYTES", 400)
        patch.setattr(conversation, "CHUNK_BYTES", 400)
        yield


def make(name: str) -> WireFormat:
    """Return a format with an empty cache."""
    entry = AdapterSettings(name=name, base_url=f"https://{HOST}", model=SONNET.id, **FORMATS[name])
    return make_wire(entry, {"png": PNG, "pdf": b"%PDF-1.4"}.__getitem__)


def request(messages: Sequence[Message], **fields: Any) -> ChatRequest:
    """Return the request for a view."""
    return ChatRequest(
        **{
            "messages": (SYSTEM, *messages),
            "tools": (TOOL,),
            "model": SONNET.id,
            "chat_id": "c",
            "compact_at": 60_000,
            "max_output_tokens": 4_000,
            **fields,
        }
    )


def wrong_with(wire: Wire, call: HttpCall, history: History) -> list[str]:
    """Return the provider's reason for refusing the request, and the findings of our own check."""
    body = json.loads(call.body)
    if wire == "chat":
        extras = Extras(reasoning_fields=FIELDS, call_fields=("extra_content",))
        refusal = refusal_of(body, models=(), window=0, extras=extras)
        own = [problem for problem in check_chat(body) if "has the call id" not in problem]
        return [*own, *([refusal.message] if refusal else [])]
    try:
        if wire == "responses":
            accept("responses", body, Rules(window=0), history.ledger)
            return check_responses(body)
        betas = frozenset(call.headers.get("anthropic-beta", "").split(",")) - {""}
        check_request(Rulebook((SONNET,), ""), Memory(), body, betas)
        return check_anthropic(body)
    except (Refused, RefusedByAnthropic) as refused:
        return [refused.refusal.message]


def judge(name: str, cached: WireFormat, history: History, view: Sequence[Message], told: int, **fields: Any) -> str:
    """Return the body for the view after checking that nothing is wrong with it; `told` is the length of the chat."""
    wire = WIRES.get(FORMATS[name]["kind"], "chat")
    call = cached.render(request(view, **fields))
    fresh = make(name).render(request(view, **fields))
    assert (call.body, call.headers) == (fresh.body, fresh.headers)
    assert wrong_with(wire, call, history) == []
    reading = read_body(wire, json.loads(call.body))
    assert reading.problems == ()
    assert find_loss(reading, history.entries(told)) == ""
    sent = call.body.decode()
    own = origin_of(cached.origin_name, f"https://{HOST}")
    for origin, seals in history.seals.items():
        assert origin == own or not any(seal in sent for seal in seals)
    return sent


FEW = settings(max_examples=40, deadline=None, suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large])


@pytest.mark.parametrize("name", FORMATS)
@FEW
@given(history=histories(), data=st.data())
def test_every_format_accepts_a_growing_mixed_history(name: str, history: History, data: st.DataObject) -> None:
    """The bytes are identical with and without the cache, even after an edit and our own summary."""
    cached = make(name)
    for length in history.boundaries:
        judge(name, cached, history, history.messages[:length], length)
    results = [k for k, message in enumerate(history.messages) if message.role == "tool"]
    length = history.boundaries[-1]
    if results:
        cleared = data.draw(st.sampled_from(results))
        edited = list(history.messages)
        edited[cleared] = msgspec.structs.replace(edited[cleared], content=TOOL_RESULT_CLEARED)
        judge(name, cached, history, edited[:length], length)
    start = data.draw(st.sampled_from([k for k in history.boundaries if history.messages[k - 1].role == "user"]))
    summary = Message(id="summary", role="user", content=f"{SUMMARY_PREFIX}All.", tag=SUMMARY_TAG)
    judge(name, cached, history, (summary, *history.messages[start - 1 : length]), length)
    bare = judge(name, cached, history, history.messages[:length], length, send_encrypted=False)
    assert not any(seal in bare for seals in history.seals.values() for seal in seals)


@pytest.mark.parametrize("name", ["responses", "anthropic", "adaptive"])
@FEW
@given(history=histories(), data=st.data())
def test_a_provider_accepts_its_own_compaction_before_later_messages(
    name: str, history: History, data: st.DataObject
) -> None:
    """R-537, R-539, R-540: any messages may be replaced, and any provider may have written the later ones."""
    wire = WIRES[FORMATS[name]["kind"]]
    part = history.block(data.draw(st.sampled_from(BLOCKS[wire])))
    cut = data.draw(st.sampled_from(history.boundaries))
    block = Message(id="block", role="assistant", cycle=1)
    head = replace_by_block(tuple(history.messages[:cut]), part, lambda _: 1, block).messages
    cached = make(name)
    for length in history.boundaries:
        # In a loop the block comes within a reply, so that something follows.
        if length > cut or (length == cut and history.messages[cut - 1].role == "user"):
            sent = judge(name, cached, history, (*head, *history.messages[cut:length]), length)
            assert '"compaction"' in sent
