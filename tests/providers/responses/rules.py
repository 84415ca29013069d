"""The rules of OpenAI's Responses endpoints, as a function from a request to its handling.

`accept` checks a body for one of the three endpoints and returns the data needed to answer it, or raises `Refused`.
From the API reference, the SDK's types and recorded or reported error bodies; where those are silent, the rules are
stricter and a comment says so. Features that are not simulated (conversations, prompt templates, background mode,
built-in tools that run) are refused, so that no test can pass because of them.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from tests.providers.loopback.token_count import Prompt
from tests.providers.loopback.wire_schemas import Kind
from tests.providers.openai.refusal import check_schema, expect_length, refuse
from tests.providers.openai.tool_rules import check_function, check_schema_of
from tests.providers.responses.items import Item, ItemWalk, refuse_unknown
from tests.providers.responses.ledger import Ledger
from tests.providers.responses.prompt import lay_out, live_items, pruned_messages

Endpoint = Literal["responses", "responses/compact", "responses/input_tokens"]
_KINDS: dict[str, Kind] = {
    "responses": "openai.responses",
    "responses/compact": "openai.responses.compact",
    "responses/input_tokens": "openai.responses.input_tokens",
}
_NOT_SIMULATED = ("conversation", "prompt", "background")
MIN_OUTPUT_TOKENS = 16
MAX_CACHE_KEY_LENGTH = 64


@dataclass(frozen=True)
class Rules:
    """The variants of a provider.

    models: those that exist; () accepts any. window: limit in tokens for a prompt and its reply; 0 means unlimited.
    reasons: whether the models reason. min_threshold: minimum of `compact_threshold`; the project's facts say 50,000,
    others read 1,000 in the API reference: the stricter value is the default.
    """

    models: tuple[str, ...] = ()
    window: int = 400_000
    reasons: bool = True
    min_threshold: int = 50_000
    several_compactions: bool = False


@dataclass(frozen=True)
class Accepted:
    """An accepted request. `items` is the whole conversation, `live` the items the model still reads."""

    body: Mapping[str, Any]
    items: tuple[Item, ...]
    live: tuple[Item, ...]
    prompt: Prompt
    notes: tuple[str, ...]

    @property
    def wants_compaction(self) -> bool:
        """Return whether the request ends with a compaction trigger."""
        return bool(self.items) and self.items[-1].get("type") == "compaction_trigger"

    @property
    def is_over_threshold(self) -> bool:
        """Return whether the server is to compact before it answers."""
        entries = self.body.get("context_management") or ()
        return any(len(self.prompt) > entry["compact_threshold"] for entry in entries)


def accept(endpoint: Endpoint, body: Any, rules: Rules, ledger: Ledger) -> Accepted:
    """Return the request as the server reads it; raises Refused."""
    if not isinstance(body, dict):
        refuse("We could not parse the JSON body of your request.")
    if endpoint == "responses" and "model" not in body:
        # The types do not require it, because a prompt template may name one; those are not simulated.
        refuse("Missing required parameter: 'model'.", "model", "missing_required_parameter")
    check_schema(_KINDS[endpoint], _without_own_ids(body))
    _check_arguments(body, rules)
    _check_tools(body)
    items = _items_of(body, ledger)
    ItemWalk(ledger, rules.several_compactions).check(items)
    live = live_items(items, ledger)
    prompt = lay_out(body, live, ledger)
    if endpoint != "responses/input_tokens":
        _check_length(body, prompt, rules)
    return Accepted(body, items, live, prompt, tuple(_notes(endpoint, body, items, ledger)))


def _without_own_ids(body: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return the body without the ids that `/responses/compact` gives to user messages, which the types do not know.

    The guide asks clients to send that output back unchanged, so the ids are accepted; whether this server issued them
    is checked later.
    """
    if not isinstance(body.get("input"), list):
        return body

    def stripped(item: Any) -> Any:
        is_input = isinstance(item, Mapping) and item.get("role") in ("user", "system", "developer")
        return {key: value for key, value in item.items() if key != "id"} if is_input else item

    return {**body, "input": [stripped(item) for item in body["input"]]}


def _check_arguments(body: Mapping[str, Any], rules: Rules) -> None:
    model = body.get("model")
    if rules.models and model is not None and model not in rules.models:
        # Recorded as 400; Chat Completions answers 404 in this case.
        refuse(f"The requested model '{model}' does not exist.", "model", "model_not_found")
    for name in _NOT_SIMULATED:
        if body.get(name):
            refuse(f"'{name}' is not simulated by this server.", name, "unsupported_parameter")
    _check_numbers(body)
    if "stream_options" in body and not body.get("stream"):
        refuse("The 'stream_options' parameter is only allowed when 'stream' is enabled.", "stream_options")
    expect_length(body.get("prompt_cache_key") or "", MAX_CACHE_KEY_LENGTH, "prompt_cache_key")
    _check_reasoning_support(body, rules)
    _check_metadata(body.get("metadata") or {})
    _check_context_management(body.get("context_management") or (), rules)


def _check_numbers(body: Mapping[str, Any]) -> None:
    most = body.get("max_output_tokens")
    if most is not None and most < MIN_OUTPUT_TOKENS:
        text = f"integer below minimum value. Expected a value >= {MIN_OUTPUT_TOKENS}, but got {most} instead."
        refuse(f"Invalid 'max_output_tokens': {text}", "max_output_tokens", "integer_below_min_value")
    for name, highest in (("temperature", 2), ("top_p", 1)):
        value = body.get(name)
        if value is not None and not 0 <= value <= highest:
            end = "below_min" if value < 0 else "above_max"
            text = f"decimal {end.replace('_', ' ')}imum value. Expected a value between 0 and {highest}."
            refuse(f"Invalid '{name}': {text}", name, f"decimal_{end}_value")


def _check_reasoning_support(body: Mapping[str, Any], rules: Rules) -> None:
    if rules.reasons:
        # Recorded of some reasoning models; taken to be so of all of them.
        for name in ("temperature", "top_p"):
            if body.get(name) is not None:
                refuse(f"Unsupported parameter: '{name}' is not supported with this model.", name)
        return
    if body.get("reasoning"):
        refuse("Unsupported parameter: 'reasoning.effort' is not supported with this model.", "reasoning.effort")
    if "reasoning.encrypted_content" in (body.get("include") or ()):
        refuse("Encrypted content is not supported with this model.", "include")


def _check_metadata(metadata: Mapping[str, str]) -> None:
    if len(metadata) > 16:
        refuse("Invalid 'metadata': too many properties. Expected at most 16.", "metadata")
    for key, value in metadata.items():
        expect_length(key, 64, "metadata")
        expect_length(value, 512, f"metadata.{key}")


def _check_context_management(entries: Sequence[Mapping[str, Any]], rules: Rules) -> None:
    if len(entries) > 1:
        refuse("Invalid 'context_management': only one compaction entry is accepted.", "context_management")
    for entry in entries:
        param = "context_management[0]"
        if entry["type"] != "compaction":
            refuse(f"Invalid value: '{entry['type']}'. Supported values are: 'compaction'.", f"{param}.type")
        threshold, where = entry.get("compact_threshold"), f"{param}.compact_threshold"
        if threshold is None:
            # The types make it optional; the server's behaviour without it is not documented.
            refuse(f"Missing required parameter: '{where}'.", where, "missing_required_parameter")
        if threshold < rules.min_threshold:
            text = f"Expected a value >= {rules.min_threshold}, but got {threshold} instead."
            refuse(f"Invalid '{where}': integer below minimum value. {text}", where, "integer_below_min_value")


def _check_tools(body: Mapping[str, Any]) -> None:
    taken: set[str] = set()
    for number, tool in enumerate(body.get("tools") or ()):
        if tool["type"] == "function":
            check_function(tool, f"tools[{number}]", taken)
    choice = body.get("tool_choice")
    if choice == "required" and not body.get("tools"):
        refuse("Tool choice 'required' must be specified with 'tools' parameter.", "tool_choice")
    if isinstance(choice, Mapping) and choice.get("type") == "function" and choice["name"] not in taken:
        refuse("Tool choice 'function' not found in 'tools' parameter.", "tool_choice")
    form = (body.get("text") or {}).get("format") or {}
    if form.get("type") == "json_schema":
        check_schema_of(form["name"], form["schema"], "text.format.schema", strict=bool(form.get("strict")))


def _items_of(body: Mapping[str, Any], ledger: Ledger) -> tuple[Item, ...]:
    """Return the items of the conversation: those of a stored response, then the input with references resolved."""
    given, previous = body.get("input"), body.get("previous_response_id")
    if previous is not None and previous not in ledger.stored:
        text = f"Previous response with id '{previous}' not found."
        refuse(text, "previous_response_id", "previous_response_not_found")
    if not given and previous is None:
        text = "One of \"input\" or \"previous_response_id\" or 'prompt' or 'conversation_id' must be provided."
        refuse(text, "input", "missing_required_parameter")
    own = [{"role": "user", "content": given}] if isinstance(given, str) else list(given or ())
    resolved: list[Item] = list(ledger.stored.get(previous or "", ()))
    for item in own:
        if item.get("type") != "item_reference":
            resolved.append(item)
        elif (stored := ledger.find_stored(item["id"])) is None:
            refuse_unknown(item["id"])
        else:
            resolved.append(stored)
    return tuple(resolved)


def _check_length(body: Mapping[str, Any], prompt: Prompt, rules: Rules) -> None:
    # Including the reply: an off-by-one here has deadlocked other tools.
    wanted = len(prompt) + (body.get("max_output_tokens") or 0)
    if rules.window and wanted > rules.window and body.get("truncation") != "auto":
        text = "Your input exceeds the context window of this model. Please adjust your input and try again."
        refuse(text, "input", "context_length_exceeded")


def _notes(endpoint: Endpoint, body: Mapping[str, Any], items: Sequence[Item], ledger: Ledger) -> list[str]:
    """Return notes on content that the provider allows but this project does not want."""
    notes = []
    if endpoint == "responses" and body.get("store") is not False:
        notes.append("store is not false")
    if endpoint == "responses" and body.get("truncation") == "auto":
        notes.append("truncation is auto")
    if pruned_messages(items, ledger):
        notes.append("what /responses/compact returned was pruned")
    foreign = {ledger.issued[item["id"]].model for item in items if item.get("type") == "reasoning"} - {
        body.get("model")
    }
    notes.extend(f"reasoning of another model: {model}" for model in sorted(foreign))
    return notes
