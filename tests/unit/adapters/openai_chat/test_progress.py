"""How far llama.cpp's server has read the prompt: asked for and read of that server only."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from codecompanion.adapters.base import AdapterSettings, ChatRequest, Finished, PromptRead, TextDelta
from codecompanion.adapters.openai_chat.wire import OpenAIChat
from codecompanion.model.messages import Message
from tests.unit.adapters.openai_chat.test_decode import data, delta, run


def wire(url: str = "http://127.0.0.1:8080/v1", **fields: Any) -> OpenAIChat:
    """Return the wire format of an entry."""
    entry: dict[str, Any] = {"name": "test", "kind": "openai_compatible", "base_url": url, **fields}
    return OpenAIChat(AdapterSettings(**entry), lambda _: b"")


def sent(format_: OpenAIChat) -> dict[str, Any]:
    """Return the body of a request, which its gate has passed."""
    call = format_.render(ChatRequest(messages=(Message(id="u", role="user", content="Hello"),), model="smol"))
    format_.gate().require_valid(call.chunks, "reply")
    body: dict[str, Any] = msgspec.json.decode(call.body)
    return body


def listing(owner: str) -> bytes:
    """Return a list of models."""
    return msgspec.json.encode({"object": "list", "data": [{"id": "smol", "object": "model", "owned_by": owner}]})


@pytest.mark.parametrize(
    ("owner", "url", "parameters", "asks"),
    [
        ("llamacpp", "http://127.0.0.1:8080/v1", {}, True),
        ("llamacpp", "http://127.0.0.1:8080/v1", {"stream": False}, None),
        ("llamacpp", "https://gateway.example/v1", {}, None),
        ("vllm", "http://127.0.0.1:8080/v1", {}, None),
        ("", "http://127.0.0.1:8080/v1", {}, None),
        ("llamacpp", "http://127.0.0.1:8080/v1", {"return_progress": False}, False),
    ],
)
def test_only_llama_cpp_on_this_machine_is_asked(owner: str, url: str, parameters: Any, asks: bool | None) -> None:
    """Other servers refuse what they do not know; a setting of the user's wins."""
    format_ = wire(url, parameters=parameters)
    if owner:
        format_.read_models(listing(owner))
    assert sent(format_).get("return_progress") is asks


def test_its_progress_comes_before_the_reply() -> None:
    """In tokens; the last report, and one that makes no sense, say nothing."""
    reports = [{"total": 6100, "cache": 0, "processed": 2048, "time_ms": 9}, {"total": 10, "processed": 10}]
    strange: list[Any] = [{"total": "many"}, {"total": -1, "processed": -2}, 7, {"total": 10**12, "processed": 1}]
    chunks = [{**delta(role="assistant", content=None), "prompt_progress": one} for one in reports + strange]
    late = {**delta(content="!"), "prompt_progress": reports[0]}
    events, decoder = run(data(*chunks, delta(content="Hi"), late, delta("stop")) + b"data: [DONE]\n\n")
    assert decoder.problem is None
    assert events == [PromptRead(2048, 6100), TextDelta("Hi!"), Finished("stop", ())]
