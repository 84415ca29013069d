"""What a Responses endpoint refuses in a request body; pure, and a fold over the items, so that new ones cost O(new).

Rules: each call is answered once, after it and before anybody else speaks; call ids and encrypted items occur once;
reasoning is followed by what it led to, which is an item of the model and no more reasoning (not encrypted reasoning of
compatible endpoints may stand in a row); at most one compaction stands in the request (a provider may write it as
several items in a row), and only messages before it; ids, keys, content and sizes as in `check_items.py`. Stricter than
the endpoint where that is silent: what breaks a rule here is a mistake of ours in any case.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, Literal

import msgspec

from codecompanion.adapters.openai_responses.check_items import HOSTED_CALLS, Item, check_item, type_of
from codecompanion.adapters.openai_responses.options import MIN_OUTPUT_TOKENS
from codecompanion.formats.regex import regex

Endpoint = Literal["responses", "compact", "count"]
MAX_IMAGES = 500
MAX_ATTACHED_CHARS = 50 * 1024 * 1024
"""Of images and files in one request (guides “Images and vision”, “File inputs”)."""
MAX_CACHE_KEY_LENGTH = 64
_MIN_THRESHOLD = 1_000
"""What the API reference says; `options.py` keeps to more."""
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
}

Kind = Literal[
    "input", "assistant", "reasoning", "encrypted", "call", "output", "hosted", "compaction", "trigger", "other"
]
_FOLLOWERS: dict[Kind | None, tuple[Kind, ...]] = {
    "encrypted": ("assistant", "call", "hosted"),
    "reasoning": ("reasoning", "assistant", "call", "hosted"),
}


class Mark(msgspec.Struct, frozen=True):
    """What the order of items depends on. `names`: what may occur only once. `attached`: size of images and files."""

    kind: Kind
    call_id: str = ""
    names: tuple[str, ...] = ()
    images: int = 0
    attached: int = 0


class OrderCheck:
    """The fold: give it the marks of all items in order, then `finish`."""

    def __init__(self) -> None:
        self._names: set[str] = set()
        self._calls: set[str] = set()
        self._open: dict[str, None] = {}
        self._last: Kind | None = None
        self._compacted = self._conversed = False
        self._images = self._attached = 0

    def add(self, mark: Mark) -> list[str]:
        """Take in the next item; return what is wrong with its place, as the ends of sentences."""
        problems = [f"repeats {name}" for name in mark.names if name in self._names]
        self._names.update(mark.names)
        if self._last in _FOLLOWERS and mark.kind not in _FOLLOWERS[self._last]:
            problems.append("follows reasoning, in the place of what the model wrote after it")
        if self._last == "trigger":
            problems.append("follows a compaction trigger, which has to be the last item")
        match mark.kind:
            case "call":
                problems += [f"repeats the call {mark.call_id}"] if mark.call_id in self._calls else []
                self._calls.add(mark.call_id)
                self._open[mark.call_id] = None
            case "output":
                if mark.call_id not in self._open:
                    problems.append(f"answers {mark.call_id}, which no call before it waits for")
                self._open.pop(mark.call_id, None)
            case "input":
                problems += [f"comes before the output of {call_id}" for call_id in self._open]
                self._open.clear()
            case "compaction":
                problems += self._add_compaction()
        self._conversed |= mark.kind not in ("input", "assistant", "compaction")
        self._last = mark.kind
        return problems + self._add_attachments(mark)

    def finish(self) -> list[str]:
        """Return what is wrong with the end."""
        problems = [f"the call {call_id} has no output" for call_id in self._open]
        if self._last in _FOLLOWERS:
            problems.append("reasoning stands at the end")
        if self._last is None:
            problems.append("input is empty")
        return problems

    def _add_compaction(self) -> list[str]:
        problems = [f"stands between {call_id} and its output" for call_id in self._open]
        if self._compacted and self._last != "compaction":
            problems.append("is a second compaction")
        elif self._conversed:
            problems.append("is a compaction after items it stands for")
        self._compacted = True
        return problems

    def _add_attachments(self, mark: Mark) -> list[str]:
        before = self._images <= MAX_IMAGES and self._attached <= MAX_ATTACHED_CHARS
        self._images += mark.images
        self._attached += mark.attached
        if before and self._images > MAX_IMAGES:
            return [f"has image number {self._images}; {MAX_IMAGES} fit into a request"]
        if before and self._attached > MAX_ATTACHED_CHARS:
            return [f"takes images and files above {MAX_ATTACHED_CHARS // (1024 * 1024)} MB"]
        return []


def mark_of(item: Item) -> Mark:
    """Return what the order depends on."""
    kind = type_of(item)
    names = tuple(str(item[key]) for key in ("id", "encrypted_content") if item.get(key))
    match kind:
        case "message":
            role: Kind = "assistant" if item.get("role") == "assistant" else "input"
            return Mark(role, "", names, *_attachments(item.get("content")))
        case "function_call":
            return Mark("call", str(item.get("call_id")), names)
        case "function_call_output":
            return Mark("output", str(item.get("call_id")), names, *_attachments(item.get("output")))
        case "reasoning":
            return Mark("encrypted" if item.get("encrypted_content") else "reasoning", "", names)
        case "compaction":
            return Mark("compaction", "", names)
        case "compaction_trigger":
            return Mark("trigger")
        case _:
            return Mark("hosted" if kind in HOSTED_CALLS else "other", "", names)


def check_body(body: Mapping[str, Any], endpoint: Endpoint = "responses") -> list[str]:
    """Return one sentence per reason for which the endpoint would refuse the body; empty when there is none."""
    problems = [f"unknown key {key!r}" for key in sorted(set(body) - KNOWN_KEYS[endpoint])]
    problems += [*_check_head(body), *_check_tools(body.get("tools") or ())]
    given = body.get("input")
    if isinstance(given, str):
        return problems if given else [*problems, "input is empty"]
    if given is None and body.get("previous_response_id"):
        return problems
    if not isinstance(given, list):
        return [*problems, "input is neither text nor a list"]
    if not given and body.get("previous_response_id"):
        return problems
    order = OrderCheck()
    for index, item in enumerate(given):
        wrong = check_item(item)
        # An output may answer a call of the response this one continues, which is not in the body.
        wrong += order.add(mark_of(item)) if isinstance(item, Mapping) and not body.get("previous_response_id") else []
        problems += [f"input[{index}] {problem}" for problem in wrong]
    return problems + ([] if body.get("previous_response_id") else order.finish())


def _check_head(body: Mapping[str, Any]) -> Iterable[str]:
    if not isinstance(body.get("model"), str) or not body["model"]:
        yield "model is missing"
    instructions = body.get("instructions")
    if instructions is not None and not isinstance(instructions, str):
        yield "instructions are no text"
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
    if body.get("truncation") not in (None, "auto", "disabled"):
        yield "truncation is neither auto nor disabled"
    yield from _check_context_management(body.get("context_management") or ())


def _check_reasoning(reasoning: Mapping[str, Any]) -> Iterable[str]:
    unknown = sorted(set(reasoning) - _REASONING_KEYS)
    if unknown:
        yield f"reasoning has the unknown key {unknown[0]!r}"
    if reasoning.get("summary") not in (None, "auto", "concise", "detailed"):
        yield f"reasoning has the summary {reasoning['summary']!r}"


def _check_context_management(entries: Iterable[Any]) -> Iterable[str]:
    entries = list(entries)
    if len(entries) > 1:
        yield "context_management has more than one entry"
    for entry in entries:
        fits = isinstance(entry, Mapping) and set(entry) == {"type", "compact_threshold"}
        if not fits or entry["type"] != "compaction" or type(entry["compact_threshold"]) is not int:
            yield "context_management has an entry that is no compaction with a threshold"
        elif entry["compact_threshold"] < _MIN_THRESHOLD:
            yield f"compact_threshold is below {_MIN_THRESHOLD}"


def _check_tools(tools: Iterable[Any]) -> Iterable[str]:
    names: set[str] = set()
    for index, tool in enumerate(tools):
        if not isinstance(tool, Mapping):
            yield f"tools[{index}] is no object"
            continue
        if not isinstance(tool.get("type"), str):
            yield f"tools[{index}] has no type"
        if tool.get("type") != "function":
            # Hosted tools and tool search are never asked for here; what they look like is their business.
            continue
        unknown = set(tool) - {"type", "name", "description", "parameters", "strict", "defer_loading", "output_schema"}
        if unknown - {"allowed_callers", "async"}:
            yield f"tools[{index}] has unknown keys: {', '.join(sorted(unknown))}"
        name = tool.get("name")
        if not isinstance(name, str) or not _NAME.fullmatch(name) or name in names:
            yield f"tools[{index}] has the name {name!r}, which is not valid or repeated"
        names.add(str(name))
        if not isinstance(tool.get("strict"), bool):
            yield f"tools[{index}] does not say whether it is strict"
        schema = tool.get("parameters")
        if not isinstance(schema, Mapping) or schema.get("type") != "object":
            yield f"tools[{index}] has no schema of type object"


def _attachments(content: object) -> tuple[int, int]:
    """Return (number of images, characters of images and files) of a content list."""
    parts = [part for part in content if isinstance(part, Mapping)] if isinstance(content, list) else []
    images = [part for part in parts if part.get("type") == "input_image"]
    return len(images), sum(len(str(part.get(key) or "")) for part in parts for key in ("image_url", "file_data"))


def _as_tuple(expected: type | tuple[type, ...]) -> tuple[type, ...]:
    return expected if isinstance(expected, tuple) else (expected,)
