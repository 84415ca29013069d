"""Prompt progress of llama.cpp's server: requested from that server only, and read from its stream."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from codecompanion.adapters.base import AdapterSettings, ChatRequest, Finished, PromptRead, TextDelta
from codecompanion.adapters.openai_chat.wire import OpenAIChat
from codecompanion.errors import RequestRejected
from codecompanion.model.messages import Message
from tests.unit.adapters.openai_chat.test_decode import data, delta, run


def wire(url: str = "http://127.0.0.1:8080/v1", **fields: Any) -> OpenAIChat:
    """Return the wire format of an entry."""
    entry: dict[str, Any] = {"name": "test", "kind": "openai_compatible", "base_url": url, **fields}
    return OpenAIChat(AdapterSettings(**entry), lambda _: b"")


def sent(format_: OpenAIChat) -> dict[str, Any]:
    """Return the validated body of a request."""
    call = format_.render(ChatRequest(messages=(Message(id="u", role="user", content="Hello"),), model="smol"))
    format_.gate().require_valid(call.chunks, "reply")
    body: dict[str, Any] = msgspec.json.decode(call.body)
    return body


def model_list(owner: str) -> bytes:
    """Return a model listing whose model belongs to this owner."""
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
def test_only_a_local_llama_cpp_is_asked(owner: str, url: str, parameters: Any, asks: bool | None) -> None:
    """Other servers refuse unknown fields; the user's setting takes precedence."""
    format_ = wire(url, parameters=parameters)
    if owner:
        format_.read_models(model_list(owner))
    assert sent(format_).get("return_progress") is asks


@pytest.mark.parametrize("parameters", [{}, {"return_progress": True}])
def test_a_server_that_refuses_it_is_not_asked_again(parameters: Any) -> None:
    """The field is dropped even if the user has set it; a gateway may use llama.cpp's former port."""
    format_ = wire(parameters=parameters)
    format_.read_models(model_list("llamacpp"))
    assert sent(format_)["return_progress"] is True
    asked = ChatRequest(messages=(), model="smol")
    refused = RequestRejected("test: Unrecognized request argument supplied: return_progress")
    assert format_.learn_refusal(refused, asked)
    assert "return_progress" not in sent(format_)
    assert not format_.learn_refusal(refused, asked)


def test_the_listing_of_a_former_server_is_forgotten() -> None:
    """Progress is no longer requested, and the reported facts about its models are discarded."""
    format_ = wire()
    format_.read_models(model_list("llamacpp"))
    format_.learn_refusal(
        RequestRejected("test: Unsupported parameter: 'stream_options'"), ChatRequest(messages=(), model="smol")
    )
    assert "return_progress" in sent(format_)
    format_.forget_models()
    assert "return_progress" not in sent(format_)
    assert format_.runs_model_itself("smol") is None


def test_the_progress_comes_before_the_reply() -> None:
    """Progress is reported in tokens; invalid reports, and those after the reply has begun, are ignored."""
    reports = [{"total": 6300, "cache": 200, "processed": 2248, "time_ms": 9}, {"total": 10, "processed": 10}]
    strange: list[Any] = [{"total": 9, "processed": 5, "cache": "all"}, {"total": "many"}]
    strange += [{"total": -1, "processed": -2}, 7, {"total": 10**12, "processed": 1}]
    chunks = [{**delta(role="assistant", content=None), "prompt_progress": one} for one in reports + strange]
    late = {**delta(content="!"), "prompt_progress": reports[0]}
    events, decoder = run(data(*chunks, delta(content="Hi"), late, delta("stop")) + b"data: [DONE]\n\n")
    assert decoder.problem is None
    assert events == [PromptRead(2048, 6100), TextDelta("Hi!"), Finished("stop", ())]
