"""Checks a whole body against the rules of Chat Completions endpoints: arguments, tools, each message, their order."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from typing import Any, Literal

from codecompanion.adapters.openai_chat.body_check import FUNCTION_NAME, check_message
from codecompanion.adapters.openai_chat.call_ids import MAX_ID_LENGTH
from codecompanion.adapters.request_gate import BodyJudge, out_of_range, wrong_tool_choice

_TYPES: dict[str, tuple[type, ...]] = {
    "model": (str,),
    "stream": (bool,),
    "stream_options": (dict,),
    "parallel_tool_calls": (bool,),
    "max_tokens": (int,),
    "max_completion_tokens": (int,),
    "temperature": (int, float),
    "top_p": (int, float),
}
_OPENAI_TYPES: dict[str, tuple[type, ...]] = {
    **dict.fromkeys(("seed", "n", "top_logprobs"), (int,)),
    **dict.fromkeys(("user", "service_tier", "reasoning_effort", "verbosity"), (str,)),
    **dict.fromkeys(("store", "logprobs"), (bool,)),
    **dict.fromkeys(("metadata", "response_format", "prediction", "logit_bias"), (dict,)),
    "stop": (str, list),
}
_RANGES = {
    "temperature": (0, 2),
    "top_p": (0, 1),
    "n": (1, 128),
    "presence_penalty": (-2, 2),
    "frequency_penalty": (-2, 2),
    "top_logprobs": (0, 20),
}
_FORMATS = ("text", "json_object", "json_schema")
_MAX_STOPS = 4
_MAX_TOOLS = 128
Strictness = Literal["strict", "openai", "compatible"]
_LET_PASS: dict[Strictness, tuple[str, ...]] = {
    "strict": (),
    "openai": ("has the call id",),
    "compatible": ("has the call id", "has the unknown key", "has a file", "is empty beside its calls"),
}
"""Prefixes of the message problems that each strictness level tolerates."""
KNOWN_KEYS = frozenset(
    [
        *("model", "messages", "tools", "tool_choice", "parallel_tool_calls", "stream", "stream_options", "metadata"),
        *("max_tokens", "max_completion_tokens", "temperature", "top_p", "n", "stop", "seed", "user", "modalities"),
        *("presence_penalty", "frequency_penalty", "logit_bias", "logprobs", "top_logprobs", "response_format"),
        *("reasoning_effort", "verbosity", "store", "service_tier", "prediction", "prompt_cache_key", "audio"),
        *("safety_identifier", "web_search_options", "prompt_cache_retention", "prompt_cache_options", "moderation"),
    ]
)


def check_body(body: Mapping[str, Any], extras: Collection[str] = ()) -> list[str]:
    """Return one sentence per reason why the endpoint would reject the body, or an empty list.

    `extras` are the arguments that a compatible endpoint accepts besides OpenAI's.
    """
    judge = ChatJudge(configured=extras)
    messages = body.get("messages")
    for message in messages if isinstance(messages, list) else ():
        judge.add(message)
    fields = {name: value for name, value in body.items() if name != "messages"}
    return judge.finish(fields if isinstance(messages, list) else body)


class ChatJudge(BodyJudge):
    """Validates one body.

    strictness: "strict" rejects everything that OpenAI rejects, "openai" tolerates repeated call ids (a history may
    contain them), "compatible" also tolerates extensions of messages and tools. configured: the user's arguments, which
    are not checked. max_id_length, own_keys: as in `check_message`.
    """

    def __init__(
        self,
        strictness: Strictness = "strict",
        *,
        configured: Collection[str] = (),
        max_id_length: int = MAX_ID_LENGTH,
        own_keys: Collection[str] = (),
    ) -> None:
        super().__init__()
        self._strictness, self._configured = strictness, configured
        self._max_id_length, self._own_keys = max_id_length, own_keys
        self._count = 0
        self._waiting: list[str] = []

    def add(self, item: Any) -> None:
        """Validate the next message."""
        index, self._count = self._count, self._count + 1
        for problem in check_message(item, self._max_id_length, self._own_keys):
            if not problem.startswith(_LET_PASS[self._strictness]):
                self.problems.append(f"messages[{index}] {problem}")
        if not self.problems:
            self._take_place(index, item)

    def finish(self, fields: Mapping[str, Any]) -> list[str]:
        """Return all problems of the body."""
        unknown = sorted(set(fields) - KNOWN_KEYS - set(self._configured))
        problems = [f"unknown argument {key!r}" for key in unknown]
        problems += [*_check_arguments(fields, self._configured)]
        problems += _check_tools(fields.get("tools"), is_compatible=self._strictness == "compatible")
        if self._strictness != "compatible" and not problems:
            problems += _check_of_openai({key: fields[key] for key in fields if key not in self._configured}, fields)
        if not self._count:
            return [*problems, "`messages` is empty or not a list"]
        waiting = [f"the call {call_id!r} has no result" for call_id in self._waiting]
        return problems + (self.problems or waiting)

    def _take_place(self, index: int, message: Mapping[str, Any]) -> None:
        if message["role"] == "tool":
            if message["tool_call_id"] in self._waiting:
                self._waiting.remove(message["tool_call_id"])
            else:
                self.problems.append(
                    f"messages[{index}] answers {message['tool_call_id']!r}, which is not a pending call"
                )
            return
        for call_id in self._waiting:
            self.problems.append(f"messages[{index}] comes before the result of {call_id!r}")
        self._waiting = [call["id"] for call in message.get("tool_calls") or ()]


def _check_arguments(body: Mapping[str, Any], configured: Collection[str]) -> Iterator[str]:
    if not body.get("model"):
        yield "model is missing"
    for name, expected in _TYPES.items():
        value = body.get(name)
        if value is not None and name not in configured and type(value) not in expected:
            yield f"{name} is {type(value).__name__}"
    limits = [name for name in ("max_tokens", "max_completion_tokens") if name in body]
    if len(limits) > 1 and not set(limits) & set(configured):
        yield "both max_tokens and max_completion_tokens are set"
    for name in limits:
        if name not in configured and type(body[name]) is int and body[name] < 1:
            yield f"{name} is below 1"
    if body.get("stream_options") is not None and body.get("stream") is not True:
        yield "stream_options is set without stream"
    if "parallel_tool_calls" in body and "tools" not in body:
        yield "parallel_tool_calls is set without tools"


def _check_of_openai(body: Mapping[str, Any], whole: Mapping[str, Any]) -> Iterator[str]:
    """Yield violations of OpenAI's reference that compatible endpoints tolerate, except in the user's arguments."""
    for name, expected in _OPENAI_TYPES.items():
        if body.get(name) is not None and type(body[name]) not in expected:
            yield f"{name} is {type(body[name]).__name__}"
    yield from out_of_range(body, _RANGES)
    if isinstance(stop := body.get("stop"), list) and len(stop) > _MAX_STOPS:
        yield f"stop has more than {_MAX_STOPS} entries"
    form = body.get("response_format")
    if isinstance(form, dict) and form.get("type") not in _FORMATS:
        yield f"response_format has the unknown type {form.get('type')!r}"
    tools = whole.get("tools") or ()
    if "tools" in body and len(tools) > _MAX_TOOLS:
        yield f"there are more than {_MAX_TOOLS} tools"
    if body.get("tool_choice") is not None and not tools:
        yield "tool_choice is set without tools"
    elif problem := wrong_tool_choice(body.get("tool_choice"), [tool["function"]["name"] for tool in tools]):
        yield problem


def _check_tools(tools: object, *, is_compatible: bool) -> Iterator[str]:
    if tools is None:
        return
    if not isinstance(tools, list) or not (tools or is_compatible):
        yield "`tools` is empty or not a list"
        return
    names: set[str] = set()
    for index, tool in enumerate(tools):
        function = tool.get("function") if isinstance(tool, Mapping) else None
        if is_compatible and isinstance(tool, Mapping) and (function is None or tool.get("type") != "function"):
            continue  # a tool that the endpoint runs
        if not isinstance(function, Mapping) or tool.get("type") != "function":
            yield f"tools[{index}] is not a function"
            continue
        unknown = set(function) - {"name", "description", "parameters", "strict"} | set(tool) - {"type", "function"}
        unknown = set() if is_compatible else unknown
        name, schema = function.get("name"), function.get("parameters")
        if unknown:
            yield f"tools[{index}] has the unknown keys {', '.join(sorted(unknown))}"
        if not isinstance(name, str) or not FUNCTION_NAME.fullmatch(name) or name in names:
            yield f"tools[{index}] has the name {name!r}, which is invalid or repeated"
        names.add(str(name))
        if not isinstance(schema, Mapping) or schema.get("type") != "object":
            yield f"tools[{index}] has no schema of type `object`"
        if not isinstance(function.get("strict"), bool | None) or not isinstance(function.get("description", ""), str):
            yield f"tools[{index}] has a `description` or `strict` of the wrong type"
