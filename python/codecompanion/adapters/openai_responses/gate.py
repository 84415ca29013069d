"""Checks a whole body against the rules of a Responses endpoint: keys, tools, each item, their order.

Stricter than the endpoint where its reference is silent, because a violation is always a bug in this plugin.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from typing import Any, Literal

from codecompanion.adapters.openai_responses.check import OrderCheck, mark_of
from codecompanion.adapters.openai_responses.check_items import check_item
from codecompanion.adapters.openai_responses.options import MIN_OUTPUT_TOKENS
from codecompanion.adapters.request_gate import BodyJudge, out_of_range, wrong_tool_choice
from codecompanion.formats.regex import regex

Endpoint = Literal["responses", "compact", "count"]
MAX_CACHE_KEY_LENGTH = 64
_MIN_THRESHOLD = 1_000
"""Minimum compaction threshold in the API reference; the minimum in `options.py` is higher."""
_HEAD = frozenset(["model", "input", "instructions"])
_OPTIONAL = frozenset(["tools", "tool_choice", "parallel_tool_calls", "reasoning", "text", "truncation"])
_RESPONSES = frozenset(
    [
        *("access_programs", "background", "context_management", "conversation", "image", "include", "metadata"),
        *("max_output_tokens", "max_tool_calls", "moderation", "previous_response_id", "prompt", "prompt_cache_key"),
        *("prompt_cache_options", "prompt_cache_retention", "safety_identifier", "service_tier", "store", "stream"),
        *("stream_options", "temperature", "top_logprobs", "top_p", "user"),
    ]
)
KNOWN_KEYS: dict[Endpoint, frozenset[str]] = {
    "responses": _HEAD | _OPTIONAL | _RESPONSES,
    "compact": _HEAD | {"previous_response_id", "prompt_cache_key", "prompt_cache_options", "service_tier", "image"},
    "count": _HEAD | _OPTIONAL | {"conversation", "previous_response_id", "personality"},
}
_INCLUDES = (
    *("file_search_call.results", "web_search_call.results", "web_search_call.action.sources"),
    *("message.input_image.image_url", "computer_call_output.output.image_url", "code_interpreter_call.outputs"),
    *("reasoning.encrypted_content", "message.output_text.logprobs"),
)
_REASONING_KEYS = frozenset(["effort", "summary", "generate_summary", "context", "mode"])
_NAME = regex(r"[A-Za-z0-9_-]{1,64}")
_TYPES: dict[str, type | tuple[type, ...]] = {
    "stream": bool,
    "store": bool,
    "include": list,
    "parallel_tool_calls": (bool, type(None)),
    "reasoning": (dict, type(None)),
    "tools": (list, type(None)),
    "context_management": (list, type(None)),
    "max_output_tokens": (int, type(None)),
    "background": (bool, type(None)),
    "previous_response_id": (str, type(None)),
    "text": (dict, type(None)),
}
_RANGES = {"temperature": (0, 2), "top_p": (0, 1), "top_logprobs": (0, 20)}
_FORMATS = (None, "text", "json_object", "json_schema")
_VERBOSITY = (None, "low", "medium", "high")


def check_body(body: Mapping[str, Any], endpoint: Endpoint = "responses") -> list[str]:
    """Return one sentence per reason why the endpoint would reject the body, or an empty list."""
    judge = ResponsesJudge(endpoint)
    given = body.get("input")
    for item in given if isinstance(given, list) else ():
        judge.add(item)
    fields = {name: value for name, value in body.items() if name != "input"}
    return judge.finish(fields if isinstance(given, list) else body)


class ResponsesJudge(BodyJudge):
    """Validates one body. `configured`: the user's parameters, which are not checked."""

    def __init__(self, endpoint: Endpoint, *, configured: Collection[str] = ()) -> None:
        super().__init__()
        self._endpoint, self._configured = endpoint, configured
        self._order = OrderCheck()
        self._count = 0
        self._misplaced: list[str] = []

    def add(self, item: Any) -> None:
        """Validate the next item."""
        index, self._count = self._count, self._count + 1
        self.problems += [f"input[{index}] {problem}" for problem in check_item(item)]
        if isinstance(item, Mapping):
            self._misplaced += [f"input[{index}] {problem}" for problem in self._order.add(mark_of(item))]

    def finish(self, fields: Mapping[str, Any]) -> list[str]:
        """Return all problems of the body."""
        unknown = sorted(set(fields) - KNOWN_KEYS[self._endpoint] - set(self._configured))
        problems = [f"unknown key {key!r}" for key in unknown]
        ours = {name: value for name, value in fields.items() if name not in self._configured}
        problems += _check_head(ours)
        tools = fields.get("tools") or ()
        problems += _check_tools(tools)
        names = [str(tool.get("name")) for tool in tools if isinstance(tool, Mapping)]
        if problem := wrong_tool_choice(ours.get("tool_choice"), names):
            problems.append(problem)
        continues, given = bool(fields.get("previous_response_id")), fields.get("input")
        if isinstance(given, str):
            return problems if given else [*problems, "input is empty"]
        if "input" in fields and not (given is None and continues):
            return [*problems, "input is neither text nor a list"]
        # An output may answer a call in the previous response, which is not part of the body.
        return problems + self.problems + ([] if continues else [*self._misplaced, *self._order.finish()])


def _check_head(body: Mapping[str, Any]) -> Iterable[str]:
    if not isinstance(body.get("model"), str) or not body["model"]:
        yield "model is missing"
    instructions = body.get("instructions")
    if instructions is not None and not isinstance(instructions, str):
        yield "`instructions` is not text"
    for key, expected in _TYPES.items():
        if key in body and not (isinstance(body[key], expected) and type(body[key]) in _as_tuple(expected)):
            yield f"{key} is {type(body[key]).__name__}"
            return
    most = body.get("max_output_tokens")
    if most is not None and most < MIN_OUTPUT_TOKENS:
        yield f"max_output_tokens is below {MIN_OUTPUT_TOKENS}"
    cache_key = body.get("prompt_cache_key")
    if cache_key is not None and not (isinstance(cache_key, str) and len(cache_key) <= MAX_CACHE_KEY_LENGTH):
        yield "prompt_cache_key is too long"
    unknown = [name for name in body.get("include") or () if name not in _INCLUDES]
    if unknown:
        yield f"include has {unknown[0]!r}"
    yield from _check_reasoning(body.get("reasoning") or {})
    yield from out_of_range(body, _RANGES)
    text = body.get("text") or {}
    form = text.get("format") or {}
    if not isinstance(form, Mapping) or form.get("type") not in _FORMATS:
        yield "`text.format` is neither text nor JSON"
    if text.get("verbosity") not in _VERBOSITY:
        yield f"`text` has the unknown verbosity {text['verbosity']!r}"
    if body.get("truncation") not in (None, "auto", "disabled"):
        yield '`truncation` must be "auto" or "disabled"'
    yield from _check_context_management(body.get("context_management") or ())


def _check_reasoning(reasoning: Mapping[str, Any]) -> Iterable[str]:
    unknown = sorted(set(reasoning) - _REASONING_KEYS)
    if unknown:
        yield f"reasoning has the unknown key {unknown[0]!r}"
    if reasoning.get("summary") not in (None, "auto", "concise", "detailed"):
        yield f"reasoning has the unknown summary {reasoning['summary']!r}"


def _check_context_management(entries: Iterable[Any]) -> Iterable[str]:
    entries = list(entries)
    if len(entries) > 1:
        yield "context_management has more than one entry"
    for entry in entries:
        fits = isinstance(entry, Mapping) and set(entry) == {"type", "compact_threshold"}
        if not fits or entry["type"] != "compaction" or type(entry["compact_threshold"]) is not int:
            yield "a context_management entry must be a compaction with an integer compact_threshold"
        elif entry["compact_threshold"] < _MIN_THRESHOLD:
            yield f"compact_threshold is below {_MIN_THRESHOLD}"


def _check_tools(tools: Iterable[Any]) -> Iterable[str]:
    names: set[str] = set()
    for index, tool in enumerate(tools):
        if not isinstance(tool, Mapping):
            yield f"tools[{index}] is not an object"
            continue
        if not isinstance(tool.get("type"), str):
            yield f"tools[{index}] has no type"
        if tool.get("type") != "function":
            # This plugin never requests hosted tools or tool search; their form is not checked.
            continue
        unknown = set(tool) - {"type", "name", "description", "parameters", "strict", "defer_loading", "output_schema"}
        if unknown - {"allowed_callers", "async"}:
            yield f"tools[{index}] has unknown keys: {', '.join(sorted(unknown))}"
        name = tool.get("name")
        if not isinstance(name, str) or not _NAME.fullmatch(name) or name in names:
            yield f"tools[{index}] has the name {name!r}, which is invalid or repeated"
        names.add(str(name))
        if not isinstance(tool.get("strict"), bool):
            yield f"tools[{index}] has no boolean `strict`"
        schema = tool.get("parameters")
        if not isinstance(schema, Mapping) or schema.get("type") != "object":
            yield f"tools[{index}] has no schema of type `object`"


def _as_tuple(expected: type | tuple[type, ...]) -> tuple[type, ...]:
    return expected if isinstance(expected, tuple) else (expected,)
