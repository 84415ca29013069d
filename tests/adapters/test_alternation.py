"""Templates that require alternating roles, as run by llama.cpp, vLLM and Ollama: every request satisfies them.

Tested with generated histories of several providers, and with a chat that has a new message after an interrupted reply.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from codecompanion.adapters.alternation import EARLIER_LEFT_OUT, GO_ON, NO_REPLY
from codecompanion.adapters.base import AdapterSettings
from codecompanion.adapters.openai_chat.render import RenderOptions
from codecompanion.adapters.registry import make_wire
from codecompanion.adapters.wire_format import WireFormat
from codecompanion.errors import RequestRejected
from codecompanion.model.messages import Message, ToolCall
from tests.adapters.conftest import MakeAdapter, collect, request, user
from tests.adapters.switch_histories import HOST, History, histories
from tests.adapters.switch_provider import PNG
from tests.adapters.test_switch_properties import FIELDS
from tests.adapters.test_switch_properties import request as request_of
from tests.providers.chat.alternation import breaks_alternation
from tests.providers.chat.answers import reply
from tests.providers.chat.rules import Extras, refusal_of
from tests.providers.chat.server import ChatServer

FEW = settings(max_examples=40, deadline=None, suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large])
EXTRAS = Extras(reasoning_fields=FIELDS, call_fields=("extra_content",))
OURS = [json.dumps(note) for note in (EARLIER_LEFT_OUT, GO_ON, NO_REPLY)]


def make(kind: str, *, alternates: bool) -> WireFormat:
    """Return a wire format with an empty cache; the Responses format has already learned to alternate roles."""
    options = {"alternate_roles": True} if alternates and kind == "openai_compatible" else {}
    entry = AdapterSettings(name="t", kind=kind, base_url=f"https://{HOST}", model="m", options=options)
    made = make_wire(entry, {"png": PNG, "pdf": b"%PDF-1.4"}.__getitem__)
    if alternates and kind == "openai_responses":
        refused = RequestRejected("t: refused. After the optional system message, conversation roles must alternate.")
        assert made.learn_refusal(refused, request_of((), model="m"))
        assert not made.learn_refusal(refused, request_of((), model="m"))
    return made


def as_messages(body: dict[str, Any]) -> list[dict[str, Any]]:
    """Return the messages that a chat template makes from a body in either format."""
    if "messages" in body:
        return list(body["messages"])
    found: list[dict[str, Any]] = [{"role": "system"}]
    for item in body["input"]:
        role = item.get("role", "tool" if item["type"] == "function_call_output" else "assistant")
        if role != "assistant" or found[-1]["role"] != "assistant":
            found.append({"role": role, "tool_calls": []})
        # Several items of one reply become one message, as llama.cpp does it.
        found[-1]["tool_calls"] += [item] if item["type"] == "function_call" else []
    return found


def words(messages: Sequence[Any]) -> str:
    """Return all the text, without our notes and separators."""
    told = json.dumps(messages)
    for note in OURS:
        told = told.replace(note, '""')
    texts: list[str] = []

    def read(value: Any) -> None:
        match value:
            case {"type": "message" | "text" | "input_text" as kind}:
                read(value["content" if kind == "message" else "text"])
            case dict():
                for key in sorted(value.keys() - {"role", "type"}):
                    read(value[key])
            case list():
                for item in value:
                    read(item)
            case str():
                texts.append("".join(value.split()))

    read(json.loads(told))
    return "".join(texts)


@pytest.mark.parametrize("kind", ["openai_compatible", "openai_responses"])
@FEW
@given(history=histories(), data=st.data())
def test_the_template_accepts_any_history_and_reads_all_of_it(kind: str, history: History, data: st.DataObject) -> None:
    """The text is the same and in order, bytes are equal with and without the cache, and the prefix is unchanged."""
    made, last = make(kind, alternates=True), [{"role": "system", "content": "Be brief."}]
    messages = [m for m in history.messages if data.draw(st.booleans()) or m.role == "tool" or m.tool_calls]
    for length in range(1, len(messages) + 1):
        if messages[length - 1].role == "assistant" or (length < len(messages) and messages[length].role == "tool"):
            continue
        sent = request_of(messages[:length], model="m", tools=())
        body = made.render(sent).body
        assert body == make(kind, alternates=True).render(sent).body
        read = json.loads(body)
        assert breaks_alternation(as_messages(read)) == ""
        plain = json.loads(make(kind, alternates=False).render(sent).body)
        key = "messages" if "messages" in read else "input"
        assert words(read[key]) == words(plain[key])
        if kind == "openai_compatible":
            assert refusal_of(read, models=(), window=0, extras=EXTRAS) is None
            assert read["messages"][: len(last) - 1] == last[:-1]
            now, before = read["messages"][len(last) - 1], last[-1]
            assert words([now]).startswith(words([before]))
            assert (
                type(now["content"]) is not type(before["content"])
                or now["content"][: len(before["content"])] == (before["content"])
            )
            last = read["messages"]


def test_a_history_with_alternating_roles_is_unchanged() -> None:
    """The prompt cache of a chat that never needed alternation stays valid."""
    call = Message(id="a", role="assistant", content="I read.", tool_calls=(ToolCall("c", "read"),))
    result = Message(id="r", role="tool", content="o", tool_call_id="c")
    said = Message(id="s", role="assistant", content="Read.")
    history = (user("Read it."), call, result, said, user("And?"))
    for kind in ("openai_compatible", "openai_responses"):
        sent = request_of(history, model="m", tools=())
        assert make(kind, alternates=True).render(sent) == make(kind, alternates=False).render(sent)


INTERRUPTED = (
    user("Why does it fail?"),
    Message(id="n", role="assistant", content=""),
    user("Or rather: what is it for?"),
)


async def test_a_new_message_after_an_interrupted_reply_joins_the_question(make_adapter: MakeAdapter) -> None:
    """A configuration entry with alternation enabled, like those for local servers, never sends a refused request."""
    async with ChatServer([reply("For this.")], alternates=500) as server:
        adapter = make_adapter(server.url, options=RenderOptions(alternate_roles=True))
        outcome = await collect(adapter, request(*INTERRUPTED))
        assert server.refusals == []
    assert outcome.text == "For this."
    last = server.requests[-1].json["messages"][-1]
    assert last == {"role": "user", "content": "Why does it fail?\n\nOr rather: what is it for?"}


@pytest.mark.parametrize("status", [400, 500])
async def test_an_endpoint_that_requires_alternation_gets_it_after_one_refusal(
    make_adapter: MakeAdapter, status: int
) -> None:
    """Neither vLLM's 400 nor llama.cpp's 500 is retried unchanged.

    After one refusal the model is never refused again.
    """
    async with ChatServer([reply("For this."), reply("Yes.")], alternates=status) as server:
        adapter = make_adapter(server.url)
        outcome = await collect(adapter, request(*INTERRUPTED))
        assert (outcome.text, outcome.retries, len(server.refusals)) == ("For this.", [], 1)
        said = Message(id="b", role="assistant", content="For this.")
        again = await collect(adapter, request(*INTERRUPTED, said, user("Sure?"), user("Really?")))
        assert (again.text, len(server.refusals)) == ("Yes.", 1)
