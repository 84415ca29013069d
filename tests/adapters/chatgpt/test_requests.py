"""Requests paid for by a plan: the fields sent, the models, the tools, and OpenAI's refusals."""

from __future__ import annotations

import json
from typing import Any

import pytest

from codecompanion import errors
from codecompanion.adapters.base import ReasoningDone
from codecompanion.errors import ConfigError, ModelNotFound, Overloaded, RateLimited, RequestRejected
from codecompanion.model.messages import Message, ReasoningPart, TextPart, ToolSpec
from tests.adapters.chatgpt.conftest import Maker, ask, sent
from tests.adapters.conftest import WEATHER, user
from tests.providers.chatgpt.server import ChatGPTServer, model
from tests.providers.loopback.answers import Answer, failure, json_answer
from tests.providers.responses.answers import Call, Failing, Reply, Text, Thought

SYSTEM = Message(id="s", role="system", content="Be brief.")
USAGE_PAGE = "https://chatgpt.com/settings/usage"


async def test_only_fields_a_plan_accepts_are_sent(
    make: Maker, openai: ChatGPTServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Nothing is stored or capped; environment variables about an API account are ignored."""
    monkeypatch.setenv("OPENAI_ORG_ID", "org-mine")
    monkeypatch.setenv("OPENAI_PROJECT_ID", "proj-mine")
    monkeypatch.setenv("OPENAI_CUSTOM_HEADERS", "Authorization: Bearer sk-mine")
    monkeypatch.setenv("OPENAI_API_KEY", "sk-mine")
    adapter = await make.logged_in()
    note = Message(id="n", role="system", content="A summary stands here.")
    outcome = await ask(adapter, SYSTEM, user(), note, max_output_tokens=500, purpose="summary", compact_at=60_000)
    assert outcome.error is None, outcome.error
    request = sent(openai)[-1]
    body = request.json
    assert (body["store"], body["stream"], body["instructions"]) == (False, True, "Be brief.")
    assert set(body) == {"model", "store", "stream", "instructions", "input", "include", "reasoning"}
    assert [item["role"] for item in body["input"]] == ["user", "developer"]
    assert request.headers["authorization"].startswith("Bearer at_")
    assert "mine" not in str(request.headers)
    assert not openai.refusals


async def test_tools_are_at_the_front_of_the_input(make: Maker, openai: ChatGPTServer) -> None:
    """The tools precede a call, its result and the answer; the prompt prefix never changes, so it stays cached."""
    openai.script = [
        Reply((Thought(("Where?",)), Text("Looking.", "commentary"), Call("weather", '{"city":"Oslo"}'))),
        Reply((Text("It rains.", "final_answer"),)),
    ]
    adapter = await make.logged_in()
    first = await ask(adapter, SYSTEM, user(), tools=(WEATHER,), chat_id="c")
    call = first.finished.tool_calls[0]
    assert (first.finished.stop, call.name, call.arguments) == ("tool_calls", "weather", '{"city":"Oslo"}')
    done = next(event for event in first.events if isinstance(event, ReasoningDone))
    assert done.origin == adapter.origin
    said = Message(
        id="a",
        role="assistant",
        content=(
            ReasoningPart("Where?", origin=done.origin, encrypted=done.encrypted),
            TextPart("Looking.", "commentary"),
        ),
        tool_calls=(call,),
    )
    result = Message(id="t", role="tool", content="rain", tool_call_id=call.id)
    second = await ask(adapter, SYSTEM, user(), said, result, tools=(WEATHER,), chat_id="c")
    assert second.text == "It rains."
    one, two = (request.json for request in sent(openai))
    assert "tools" not in one
    assert one["input"][0] == {
        "type": "additional_tools",
        "role": "developer",
        "tools": [
            {
                "type": "function",
                "name": "weather",
                "description": "Tell the weather",
                "parameters": WEATHER.parameters,
                "strict": False,
            }
        ],
    }
    assert two["input"][: len(one["input"])] == one["input"]
    assert [item["type"] for item in two["input"][2:]] == [
        *("reasoning", "message", "function_call", "function_call_output"),
    ]
    assert not openai.refusals


@pytest.mark.parametrize("tells_output", [False, True])
async def test_a_reply_is_parsed_from_its_events(make: Maker, openai: ChatGPTServer, tells_output: bool) -> None:
    """The last event may repeat everything or nothing."""
    openai.tells_output = tells_output
    openai.script = [Reply((Thought(), Text("One."), Call("weather", "{}"), Call("weather", "{}")))]
    outcome = await ask(await make.logged_in(), tools=(WEATHER,))
    assert outcome.text == "One."
    assert len(outcome.finished.tool_calls) == 2
    assert len([event for event in outcome.events if isinstance(event, ReasoningDone)]) == 1
    assert outcome.finished.usage is not None


async def test_the_stream_needs_no_content_type(make: Maker, openai: ChatGPTServer) -> None:
    """A stream without a content type is read; OpenAI's own kit sends such streams."""
    whole = openai._give(Reply((Text("Hello."),)), openai._accept("responses", _request()))
    openai.failures = [Answer(parts=whole.parts, content_type="")]
    assert (await ask(await make.logged_in())).text == "Hello."


def _request() -> Any:
    from tests.providers.loopback.server import Received

    body = {"model": "gpt-6-sol", "store": False, "stream": True, "input": [{"role": "user", "content": "x"}]}
    return Received("POST", "/v1/responses", {}, json.dumps(body).encode())


async def test_the_plans_models_are_listed(make: Maker, openai: ChatGPTServer) -> None:
    """Those marked as visible, in OpenAI's order, with their windows; the first is the default."""
    openai.models = [model("gpt-6-sol"), model("gpt-6-luna", context_window=128_000), model("b", visibility="hide")]
    openai.models += [{"slug": ""}, {"visibility": "list"}, {"slug": 5, "visibility": "list"}]
    openai.models.append(model("a", context_window="many"))
    adapter = await make.logged_in()
    assert await adapter.list_models() == ["gpt-6-sol", "gpt-6-luna", "a"]
    told = {name: adapter.limits(name) for name in ("", "gpt-6-luna", "b", "a", "c")}
    windows = {name: limits.context_window if limits else 0 for name, limits in told.items()}
    assert windows == {"": 272_000, "gpt-6-luna": 128_000, "b": 272_000, "a": 0, "c": 0}
    assert (await ask(adapter, model="")).text
    assert sent(openai)[0].json["model"] == "gpt-6-sol"
    assert {(seen.method, seen.path) for seen in openai.requests if seen.path.startswith("/v1")} == {
        ("GET", "/v1/models"),
        ("POST", "/v1/responses"),
    }


@pytest.mark.parametrize("body", [{"models": []}, {"data": [{"id": "gpt-6-sol"}]}, [], "x", {"models": {"slug": "a"}}])
async def test_without_a_model_list_one_has_to_be_chosen(make: Maker, openai: ChatGPTServer, body: Any) -> None:
    """A list of another shape does not count; a named model is still used."""
    openai.model_list = body
    adapter = await make.logged_in()
    outcome = await ask(adapter, model="")
    assert isinstance(outcome.error, ModelNotFound)
    assert "Choose one with ga." in str(outcome.error)
    assert (await ask(adapter)).text == "You said: Hello"


async def test_nothing_else_is_requested_from_openai(make: Maker) -> None:
    """The adapter offers neither token counts nor compactions: a plan has only two endpoints."""
    adapter = await make.logged_in()
    assert not adapter.counts_tokens("gpt-6-sol")
    assert not adapter.compacts_natively("gpt-6-sol")
    assert not adapter.compacts_on_demand("gpt-6-sol")


@pytest.mark.parametrize(
    ("settings", "told"),
    [
        ({"parameters": {"temperature": 1}}, "chatgpt.parameters.temperature: OpenAI does not accept it for a ChatGPT"),
        ({"parameters": {"truncation": "auto"}}, "chatgpt.parameters.truncation: OpenAI does not accept it"),
        ({"parameters": {"store": True}}, "chatgpt.parameters.store: is set by the request itself"),
        (
            {"max_output_tokens": 100},
            "chatgpt.schema.max_tokens: OpenAI does not accept a reply limit for a ChatGPT plan",
        ),
        ({"options": {"reasoning_summary": "loud"}}, "chatgpt.opts.reasoning_summary: Invalid enum value 'loud'"),
        ({"options": {"compaction": True}}, "chatgpt.opts: Object contains unknown field `compaction`"),
    ],
)
def test_unsupported_parameters_are_reported_before_sending(make: Maker, settings: dict[str, Any], told: str) -> None:
    """No user setting is silently dropped."""
    with pytest.raises(ConfigError, match=told):
        make(**settings)


async def test_other_parameters_are_sent(make: Maker, openai: ChatGPTServer) -> None:
    """Reasoning effort and verbosity are sent."""
    adapter = await make.logged_in(
        parameters={"reasoning": {"effort": "high"}, "text": {"verbosity": "low"}}, parallel_tool_calls=False
    )
    assert (await ask(adapter, tools=(WEATHER,))).error is None
    body = sent(openai)[0].json
    assert body["reasoning"] == {"effort": "high", "summary": "auto"}
    assert (body["text"], body["parallel_tool_calls"]) == ({"verbosity": "low"}, False)


LIMIT = "subscription_sharing_usage_limit_exceeded"
CODES: dict[str, tuple[type[errors.AdapterError], str]] = {
    LIMIT: (RateLimited, f"has been reached. See {USAGE_PAGE}, or choose another adapter with ga."),
    "subscription_sharing_user_not_eligible": (errors.AuthenticationFailed, f"See {USAGE_PAGE}, or choose another"),
    "subscription_sharing_route_not_supported": (RequestRejected, "does not accept this request for a ChatGPT plan"),
    "subscription_sharing_unsupported_capability": (RequestRejected, "does not accept this request for a ChatGPT plan"),
    "subscription_sharing_invalid_user": (errors.AuthenticationFailed, "Log in again with :CodeCompanion login"),
    "chatpass_v2_scope_not_authorized": (errors.AuthenticationFailed, "Log in again with :CodeCompanion login"),
    "chatpass_v2_blocked_region": (errors.AuthenticationFailed, "(chatpass_v2_blocked_region)"),
}
SHAPES = ("error", "detail", "detail of words", "failed", "event")


def refusal(shape: str, code: str, status: int = 403) -> Answer | Reply:
    """Return a refusal in the given shape."""
    match shape:
        case "error":
            return failure(status, "No.", code=code)
        case "detail":
            return json_answer({"detail": {"code": code, "message": "No."}}, status=status)
        case "detail of words":
            return json_answer({"detail": f"Refused: {code}."}, status=status)
        case _:
            return Reply((), failing=Failing(code, "No.", as_event=shape == "event", after=2))


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("code", CODES)
async def test_a_refusal_by_the_plan_is_one_sentence(make: Maker, openai: ChatGPTServer, code: str, shape: str) -> None:
    """The refusal is reported in every shape, before or during the stream.

    The request is sent once, whatever the status.
    """
    kind, told = CODES[code]
    for status in (403, 429, 503):
        answer = refusal(shape, code, status)
        openai.failures, openai.script = ([answer], []) if isinstance(answer, Answer) else ([], [answer])
        adapter = await make.logged_in(max_retries=3)
        asked = len(sent(openai))
        outcome = await ask(adapter)
        assert isinstance(outcome.error, kind), outcome.error
        assert told in str(outcome.error)
        assert str(outcome.error).startswith("chatgpt: ")
        assert not outcome.error.retryable
        assert outcome.retries == []
        assert len(sent(openai)) == asked + 1


@pytest.mark.parametrize("shape", SHAPES)
async def test_unavailable_usage_is_retried(make: Maker, openai: ChatGPTServer, shape: str) -> None:
    """The error is retryable if no part of a reply has arrived; otherwise it is only reported."""
    code = "subscription_sharing_usage_unavailable"
    adapter = await make.logged_in(max_retries=0)
    answer = refusal(shape, code, 503)
    openai.failures, openai.script = ([answer], []) if isinstance(answer, Answer) else ([], [answer])
    outcome = await ask(adapter)
    assert isinstance(outcome.error, Overloaded)
    assert outcome.error.retryable
    assert "OpenAI cannot report the usage of your ChatGPT plan at the moment" in str(outcome.error)


async def test_common_errors_are_reported_as_usual(make: Maker, openai: ChatGPTServer) -> None:
    """An overlong request, unknown model and list instead of a string raise the same errors as with other adapters."""
    adapter = await make.logged_in()
    openai.failures = [failure(400, "Your input exceeds the context window", code="context_length_exceeded")]
    assert isinstance((await ask(adapter)).error, errors.ContextOverflow)
    assert isinstance((await ask(adapter, model="gpt-1")).error, ModelNotFound)
    openai.failures = [json_answer({"detail": [{"loc": ["body"], "type": "list_type", "msg": "no"}]}, status=422)]
    assert isinstance((await ask(adapter)).error, RequestRejected)


async def test_fifty_tools_with_every_letter_are_accepted(make: Maker, openai: ChatGPTServer) -> None:
    """Tool names are adapted as for every other endpoint."""
    tools = tuple(ToolSpec(f"tool.ä-{n}", "…", {"type": "object", "properties": {}}) for n in range(50))
    outcome = await ask(await make.logged_in(), tools=tools)
    assert outcome.error is None, outcome.error
    assert len(sent(openai)[0].json["input"][0]["tools"]) == 50
