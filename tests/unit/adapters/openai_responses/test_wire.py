"""Abilities of the endpoint, and how they are learned from its refusals."""

from __future__ import annotations

import json

import pytest

from codecompanion.adapters.errors.error_map import Endpoint, error_from_status
from codecompanion.adapters.openai_responses.options import ResponsesOptions
from codecompanion.adapters.openai_responses.wire import OpenAIResponses
from codecompanion.adapters.registry import AdapterRegistry, make_wire, read_settings
from codecompanion.errors import AdapterError, ConfigError, MalformedReply
from tests.unit.adapters.openai_responses.conversations import BASE_URL, ORIGIN, body_of, request, user, wire

ENDPOINT = Endpoint(name="t", base_url=BASE_URL, model="gpt-5")


def refusal(message: str, status: int = 400, code: str | None = None) -> AdapterError:
    return error_from_status(status, {"error": {"message": message, "code": code}}, {}, ENDPOINT)


def entry(**fields: object) -> dict[str, dict[str, object]]:
    return {"t": {"kind": "openai_responses", "base_url": BASE_URL, **fields}}


def test_the_registry_creates_it() -> None:
    """The wire format has the entry's options, and an origin that names the format and the host (R-542)."""
    settings = read_settings(entry(options={"compaction": False}))
    made = make_wire(settings["t"], lambda _: b"")
    assert isinstance(made, OpenAIResponses)
    assert not made.compacts_natively("gpt-5")
    registry = AdapterRegistry(settings, read_blob=lambda _: b"", summarise=lambda messages, most: "")
    assert registry.get("t").origin == ORIGIN


@pytest.mark.parametrize(
    ("fields", "words"),
    [
        ({"options": {"compactoin": True}}, "adapters.http.t.opts"),
        ({"options": {"reasoning_summary": "long"}}, "adapters.http.t.opts.reasoning_summary"),
        ({"parameters": {"store": True}}, "adapters.http.t.parameters.store"),
        ({"parameters": {"previous_response_id": "x"}}, "adapters.http.t.parameters.previous_response_id"),
    ],
)
def test_a_wrong_option_or_parameter_is_named(fields: dict[str, object], words: str) -> None:
    """The error is raised when the wire format is created, not at its first use."""
    with pytest.raises(ConfigError, match=words):
        make_wire(read_settings(entry(**fields))["t"], lambda _: b"")


@pytest.mark.parametrize(
    ("message", "gone"),
    [
        ("Unknown parameter: 'context_management'.", "context_management"),
        ("Unsupported parameter: 'context_management' is not supported with this model.", "context_management"),
        ("Unknown parameter: 'prompt_cache_key'.", "prompt_cache_key"),
        ("prompt_cache_key: Extra inputs are not permitted", "prompt_cache_key"),
        ("Encrypted content is not supported with this model.", "include"),
        ("Unsupported parameter: 'reasoning.effort' is not supported with this model.", "reasoning"),
        ("Your organization must be verified to generate reasoning summaries.", "reasoning"),
        ("Unsupported value: 'reasoning.summary' does not support 'auto' with this model.", "reasoning"),
    ],
)
def test_an_unsupported_field_is_left_out_from_then_on(message: str, gone: str) -> None:
    """The request is sent again without the field, once per model; other models keep it."""
    made, asked = wire(), request(user(1), compact_at=60_000)
    assert gone in body_of(asked, made)
    assert made.learn_refusal(refusal(message), asked)
    assert gone not in body_of(asked, made)
    assert not made.learn_refusal(refusal(message), asked)
    assert made.compacts_natively("gpt-5") == (gone != "context_management")
    assert gone in body_of(request(user(1), compact_at=60_000, model="gpt-6"), made)


@pytest.mark.parametrize(
    "error",
    [
        refusal("Invalid 'input[3].content': please include a text."),
        refusal("The encrypted content gAAA could not be verified.", code="invalid_encrypted_content"),
        refusal("Unknown parameter: 'frobnicate'."),
        refusal("Rate limit reached.", 429),
        refusal("This model's maximum context length is 10 tokens; unknown truncation."),
    ],
)
def test_other_refusals_teach_nothing(error: AdapterError) -> None:
    """They would be refused again."""
    assert not wire().learn_refusal(error, request(user(1), compact_at=60_000))


def test_a_field_set_by_the_user_is_not_left_out() -> None:
    """An invalid `reasoning.summary` set by the user is reported."""
    made = wire(parameters={"reasoning": {"summary": "detailed"}})
    assert not made.learn_refusal(refusal("Unsupported parameter: 'reasoning.summary'."), request(user(1)))
    assert body_of(request(user(1)), made)["reasoning"] == {"summary": "detailed"}


@pytest.mark.parametrize(
    ("error", "gone"),
    [
        (refusal("", 404), True),
        (refusal("Invalid URL (POST /v1/responses/compact)", 404), True),
        (refusal("Compaction is not supported with this model."), True),
        (refusal("Invalid 'input[0]'."), False),
        (refusal("slow down", 429), False),
        (refusal("no", 500), False),
    ],
)
def test_a_missing_endpoint_is_asked_once(error: AdapterError, gone: bool) -> None:
    """Gateways have `/responses` without its subpaths."""
    made, asked = wire(), request(user(1))
    made.learn_missing("compaction", error, "gpt-5")
    assert (made.render_compaction(asked, "") is None) == gone
    assert made.render_count(asked) is not None
    made.learn_missing("count", error, "gpt-5")
    assert (made.render_count(asked) is None) == gone


def test_paths_are_below_the_entrys_path() -> None:
    """Azure has a query after its path."""
    made = wire(chat_path="/openai/responses?api-version=preview")
    asked = request(user(1))
    compact, count = made.render_compaction(asked, ""), made.render_count(asked)
    assert made.render(asked).path == "/openai/responses?api-version=preview"
    assert compact is not None
    assert compact.path == "/openai/responses/compact?api-version=preview"
    assert count is not None
    assert count.path == "/openai/responses/input_tokens?api-version=preview"


def test_a_compaction_is_kept_with_all_its_items() -> None:
    """Kept messages are part of it: the guide says not to prune them. Other replies are not compactions."""
    items = [{"type": "message", "role": "user", "content": []}, {"type": "compaction", "encrypted_content": "p"}]
    usage = {"input_tokens": 90, "output_tokens": 7}
    done = wire().read_compaction(json.dumps({"output": items, "usage": usage}).encode(), ENDPOINT)
    assert done.part is not None
    assert (done.part.origin, done.part.tokens, json.loads(done.part.encrypted)) == (ORIGIN, 7, items)
    for body in (b'{"output": []}', b'{"output": [{"type": "message"}]}', b"{}", b"<html>"):
        with pytest.raises(MalformedReply):
            wire().read_compaction(body, ENDPOINT)


@pytest.mark.parametrize(
    ("body", "count"),
    [(b'{"input_tokens": 51}', 51), (b"{}", None), (b"[]", None), (b"x", None), (b'{"input_tokens": true}', None)],
)
def test_a_count_is_read(body: bytes, count: int | None) -> None:
    """The result is None if the answer does not contain a count."""
    assert wire().read_count(body) == count


def test_disabled_compaction_is_off_in_every_form() -> None:
    """R-534: then the client compacts."""
    made = wire(ResponsesOptions(compaction=False))
    assert not made.compacts_natively("gpt-5")
    assert made.render_compaction(request(user(1)), "") is None
