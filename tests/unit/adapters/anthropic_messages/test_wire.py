"""The fields of a Messages request other than the messages."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from codecompanion.adapters.anthropic_messages.options import MessagesOptions, ToolClearing
from codecompanion.adapters.anthropic_messages.parameters import (
    SMALLEST_TRIGGER,
    beta_header,
    drop_mismatched_thinking,
    fit_thinking,
)
from codecompanion.adapters.base import AdapterSettings, ChatRequest
from codecompanion.adapters.errors.error_map import Endpoint, error_from_status
from codecompanion.adapters.registry import make_wire
from codecompanion.errors import ConfigError, NetworkFailed, RequestRejected
from codecompanion.model.messages import Message
from tests.unit.adapters.anthropic_messages.samples import (
    MODEL,
    SIGNED,
    assistant,
    body,
    compaction,
    request,
    result,
    thinking,
    user,
    wire,
)

ENABLED = {"type": "enabled", "budget_tokens": 4096}
LOOP = (user(1), assistant(1, thinking("a"), calls=("c",)), result(1, "c"))


def betas(format_: Any, wanted: ChatRequest) -> list[str]:
    return [name for name in format_.render(wanted).headers.get("anthropic-beta", "").split(",") if name]


@pytest.mark.parametrize(
    ("asked", "settings", "tokens"),
    [
        (500, {"max_output_tokens": 900, "parameters": {"max_tokens": 800}}, 500),
        (0, {"max_output_tokens": 900, "parameters": {"max_tokens": 800}}, 800),
        (0, {"max_output_tokens": 900}, 900),
        (0, {}, 64_000),
    ],
)
def test_max_tokens_is_the_requested_value(asked: int, settings: dict[str, Any], tokens: int) -> None:
    """The value comes from the request, or else from the configuration, or else from the facts about the model."""
    assert body(wire(**settings), request(user(1), max_output_tokens=asked))["max_tokens"] == tokens


def test_max_tokens_stays_within_the_models_limit() -> None:
    """A higher value would be refused."""
    format_ = wire()
    format_.read_models(msgspec.json.encode({"data": [{"id": MODEL, "max_tokens": 32_000}]}))
    assert body(format_, request(user(1)))["max_tokens"] == 32_000
    assert body(format_, request(user(1), max_output_tokens=100_000))["max_tokens"] == 32_000


@pytest.mark.parametrize(
    ("given", "max_tokens", "lacks_start", "fitted"),
    [
        (None, 100, True, None),
        ({"type": "adaptive"}, 100, True, {"type": "adaptive"}),
        (ENABLED, 8000, False, ENABLED),
        (ENABLED, 8000, True, {"type": "disabled"}),
        (ENABLED, 4096, False, {"type": "enabled", "budget_tokens": 2048}),
        (ENABLED, 2000, False, {"type": "disabled"}),
        ("odd", 100, True, "odd"),
    ],
)
def test_the_thinking_budget_is_adjusted(given: Any, max_tokens: int, lacks_start: bool, fitted: Any) -> None:
    """It is kept below the limit with room for an answer; there is no budget if a turn began without thinking."""
    assert fit_thinking(given, max_tokens, lacks_start=lacks_start) == fitted


def test_a_foreign_tool_loop_continues_without_a_budget() -> None:
    """`adaptive` is unaffected; a finished loop does not matter."""
    foreign = (user(1), assistant(1, calls=("c",)), result(1, "c"))
    format_ = wire(parameters={"thinking": ENABLED})
    assert body(format_, request(*foreign))["thinking"] == {"type": "disabled"}
    assert body(format_, request(*LOOP))["thinking"] == ENABLED
    assert body(format_, request(*foreign, assistant(2, "done"), user(2)))["thinking"] == ENABLED


def test_mismatches_can_only_be_dropped_with_thinking_on() -> None:
    """The user's own setting stays."""
    binding = {"block_binding": {"prefix_mismatch_behavior": "drop_block"}}
    assert drop_mismatched_thinking(None) == {"type": "adaptive", **binding}
    assert drop_mismatched_thinking(ENABLED) == {**ENABLED, **binding}
    assert drop_mismatched_thinking({"type": "disabled"}) == {"type": "disabled"}
    own = {"type": "adaptive", "block_binding": {"prefix_mismatch_behavior": "error"}}
    assert drop_mismatched_thinking(own) == own


BOUND = "messages.1.content.0: Invalid `signature` in `thinking` block. The block is bound to a different conversation."


def test_a_bound_model_without_thinking_receives_none() -> None:
    """No field allows dropping mismatches without thinking."""
    format_ = wire(parameters={"thinking": {"type": "disabled"}})
    turn = request(*LOOP, chat_id="")
    assert b'"thinking":"a"' in format_.render(turn).body
    assert format_.learn_refusal(RequestRejected(BOUND), turn)
    assert b'"thinking":"a"' not in format_.render(turn).body
    assert not format_.learn_refusal(RequestRejected(BOUND), turn)


def test_the_binding_control_has_its_beta() -> None:
    """The beta header is learned, and only for the model that reported it."""
    format_ = wire()
    format_.learn_refusal(RequestRejected(BOUND), request(*LOOP))
    assert betas(format_, request(*LOOP)) == ["thinking-binding-controls-2026-08-01"]
    assert betas(format_, request(*LOOP, model="claude-sonnet-5")) == []


def test_threshold_compaction_is_requested_as_configured() -> None:
    """R-536: the threshold is at least the API's minimum, and is sent only for a reply, if the session wants it."""
    format_ = wire()
    edits = body(format_, request(user(1), compact_at=100))["context_management"]["edits"]
    trigger = {"type": "input_tokens", "value": SMALLEST_TRIGGER}
    assert edits == [{"type": "compact_20260112", "trigger": trigger}]
    assert betas(format_, request(user(1), compact_at=100)) == ["compact-2026-01-12", "context-management-2025-06-27"]
    for fields in ({}, {"compact_at": 60_000, "purpose": "summary"}, {"compact_at": 60_000, "model": "gpt-5"}):
        assert "context_management" not in body(format_, request(user(1), **fields))


def test_options_of_context_management() -> None:
    """Clearing comes first, because it may make compaction unnecessary."""
    options = MessagesOptions(
        compaction_instructions="Keep names.",
        pause_after_compaction=True,
        clear_tool_uses=ToolClearing(trigger=80_000, keep=5, clear_at_least=1_000),
    )
    clearing, compacting = body(wire(options), request(user(1), compact_at=70_000))["context_management"]["edits"]
    assert clearing == {
        "type": "clear_tool_uses_20250919",
        "trigger": {"type": "input_tokens", "value": 80_000},
        "keep": {"type": "tool_uses", "value": 5},
        "exclude_tools": ["memory"],
        "clear_at_least": {"type": "input_tokens", "value": 1_000},
    }
    assert (compacting["instructions"], compacting["pause_after_compaction"]) == ("Keep names.", True)
    assert betas(wire(options), request(user(1))) == ["context-management-2025-06-27"]


def test_after_a_signed_compaction_the_server_does_not_compact() -> None:
    """The server refuses to; the block has its own beta header."""
    wanted = request(compaction(SIGNED), user(1), compact_at=60_000)
    assert "context_management" not in body(wire(), wanted)
    assert betas(wire(), wanted) == ["compact-2026-09-04"]


def test_the_users_instructions_follow_a_complete_prompt() -> None:
    """Instructions replace the provider's own prompt entirely."""
    format_ = wire()

    def asked(instructions: str, options: MessagesOptions | None = None) -> dict[str, Any]:
        call = (wire(options) if options else format_).render_compaction(request(user(1)), instructions)
        assert call is not None
        parameter: dict[str, Any] = msgspec.json.decode(call.body)["compaction"]
        return parameter

    assert asked("") == {"type": "summarize"}
    assert asked("names")["instructions"].endswith("in particular:\n\nnames")
    assert asked("", MessagesOptions(compaction_instructions="Mine."))["instructions"] == "Mine."
    assert asked("names", MessagesOptions(compaction_instructions="Mine."))["instructions"] == "Mine.\n\nnames"
    assert len(asked("x" * 20_000)["instructions"]) == 16_384


def test_the_abilities_of_a_model_are_known_without_a_conversation() -> None:
    """The session queries them before it decides."""
    format_ = wire()
    empty = ChatRequest(messages=(), model=MODEL)
    assert format_.render_compaction(empty, "") is not None
    assert format_.render_count(empty) is not None
    assert format_.render_compaction(ChatRequest(messages=(), model="claude-3-5-haiku-latest"), "") is None


def test_refusals_teach_only_their_own_subject() -> None:
    """Nothing is learned from other errors, nor twice."""
    format_ = wire()
    plain, compacting = request(user(1)), request(user(1), compact_at=60_000)
    refusal = RequestRejected("t: claude-x does not support the 'compact_20260112' context management strategy.")
    assert not format_.learn_refusal(NetworkFailed("compact_20260112"), compacting)
    assert not format_.learn_refusal(RequestRejected("something else"), compacting)
    assert not format_.learn_refusal(refusal, plain)
    assert format_.compacts_natively(MODEL)
    assert format_.learn_refusal(refusal, compacting)
    assert not format_.learn_refusal(refusal, compacting)
    assert not format_.compacts_natively(MODEL)


def test_the_users_betas_are_kept() -> None:
    """The case of the header name does not matter."""
    assert beta_header({"Anthropic-Beta": "b, a"}, ["c", "a"]) == {"anthropic-beta": "b,a,c"}
    assert beta_header({}, []) == {}


def test_breakpoints_are_four_at_most_and_keep_their_place() -> None:
    """They are on the tools, the system prompt and the user's last two messages.

    A summary or automatic caching has none.
    """
    system = Message(id="s", role="system", content="You help.")
    marked = wire().render(request(system, *LOOP, assistant(2, "done"), user(2))).body
    assert marked.count(b"cache_control") == 4
    assert b'"content":"contents","cache_control":' in marked
    assert b"cache_control" not in wire().render(request(user(1), purpose="summary")).body
    automatic = wire(parameters={"cache_control": {"type": "ephemeral"}}).render(request(user(1))).body
    assert automatic.count(b"cache_control") == 1


def test_parallel_tool_calls_can_be_disabled() -> None:
    """The user's own choice is kept."""
    choice = body(wire(parallel_tool_calls=False), request(user(1)))["tool_choice"]
    assert choice == {"type": "auto", "disable_parallel_tool_use": True}
    given = wire(parallel_tool_calls=False, parameters={"tool_choice": {"type": "any"}})
    assert body(given, request(user(1)))["tool_choice"] == {"type": "any", "disable_parallel_tool_use": True}
    assert "tool_choice" not in body(given, request(user(1), tools=()))


def test_paths_can_be_set() -> None:
    """The path for counting is below that of the chat."""
    format_ = wire(chat_path="/anthropic/v1/messages")
    assert format_.render(request(user(1))).path == "/anthropic/v1/messages"
    count = format_.render_count(request(user(1)))
    assert count is not None
    assert count.path == "/anthropic/v1/messages/count_tokens"


@pytest.mark.parametrize(("answer", "count"), [(b'{"input_tokens": 7}', 7), (b"{}", None), (b"x", None)])
def test_a_count_is_read(answer: bytes, count: int | None) -> None:
    """The result is None if there is no count."""
    assert wire().read_count(answer) == count


@pytest.mark.parametrize(
    ("fields", "words"),
    [
        ({"options": {"compactoin": True}}, "adapters.http.c.opts"),
        ({"options": {"cache_ttl": "2h"}}, "adapters.http.c.opts.cache_ttl"),
        ({"options": {"clear_tool_uses": {"keep": -1}}}, "adapters.http.c.opts.clear_tool_uses.keep"),
        ({"parameters": {"system": "x"}}, "adapters.http.c.parameters.system"),
    ],
)
def test_a_wrong_option_is_named(fields: dict[str, Any], words: str) -> None:
    """The error comes at setup and names the key."""
    settings = AdapterSettings(name="c", kind="anthropic", base_url="https://api.anthropic.com", **fields)
    with pytest.raises(ConfigError) as caught:
        make_wire(settings, lambda _: b"")
    assert caught.value.key.startswith(words)


@pytest.mark.parametrize("status", [404, 405, 501])
def test_an_endpoint_without_a_count_is_not_asked_again(status: int) -> None:
    """Gateways have no `count_tokens`: one refusal per model is enough."""
    format_ = wire()
    error = error_from_status(status, "", {}, Endpoint(name="x"))
    format_.learn_missing("count", error, "m")
    assert format_.render_count(request(user(1))) is not None
    format_.learn_missing("count", error, request(user(1)).model)
    assert format_.render_count(request(user(1))) is None


def test_errors_during_a_count_teach_nothing() -> None:
    """The next request counts again."""
    format_ = wire()
    format_.learn_missing("count", error_from_status(500, "", {}, Endpoint(name="x")), request(user(1)).model)
    assert format_.render_count(request(user(1))) is not None
