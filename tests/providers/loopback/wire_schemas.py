"""Validators of request bodies, generated from the SDKs' request types: an unknown key is a problem.

The providers answer 400 to an unknown key at any depth; the SDKs send whatever they are given. So the types published
by the SDKs (`TypedDict`s) are turned into strict validators: every object forbids other keys, `Iterable` means a list,
values that exist only in Python (open files, response models) are excluded, and nothing is converted. Problems have the
form of Anthropic's (`messages.0.content.1.text.foo: Extra inputs are not permitted`), whose API validates in the same
way.

A validator is built and cached on first use, which also imports the SDK. Rules outside the types (pairing, limits,
betas) are not checked here: see `tests.providers.anthropic.rules`, `chat/rules.py`.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable, Iterable, Mapping
from functools import cache
from typing import Any, Literal

from pydantic import TypeAdapter
from pydantic_core import SchemaValidator, ValidationError

Kind = Literal[
    "anthropic.messages",
    "anthropic.count_tokens",
    "openai.responses",
    "openai.responses.compact",
    "openai.responses.input_tokens",
    "openai.chat",
    "openai.embeddings",
]
_ANTHROPIC_HEADERS = ("betas", "user_profile_id", "workspace_id")
"""Parameters of the SDK's methods that become headers; in a body they are unknown keys."""
_TYPES: dict[str, tuple[str, str, str]] = {
    "anthropic.messages": ("anthropic.types.beta.message_create_params", "MessageCreateParams", "stream"),
    "anthropic.count_tokens": ("anthropic.types.beta.message_count_tokens_params", "MessageCountTokensParams", ""),
    "openai.responses": ("openai.types.responses.response_create_params", "ResponseCreateParams", "stream"),
    "openai.responses.compact": ("openai.types.responses.response_compact_params", "ResponseCompactParams", ""),
    "openai.responses.input_tokens": ("openai.types.responses.input_token_count_params", "InputTokenCountParams", ""),
    "openai.chat": ("openai.types.chat.completion_create_params", "CompletionCreateParams", "stream"),
    "openai.embeddings": ("openai.types.embedding_create_params", "EmbeddingCreateParams", ""),
}
"""Module, type, and the key that chooses between its variants `…Streaming` and `…NonStreaming`."""
_PYTHON_ONLY = ("model", "lax-or-strict", "is-instance", "function-plain", "function-after")
_TAG_KEYS = ("type", "role")
_CHOICE = "?"
"""Prefix of the labels of choices in an untagged union, used to recognise the problems of the matching choice."""
_SILENT = "@"
"""Prefix of tags that are omitted from a problem's path: Anthropic's paths contain a block's type, but not a message's
role.
"""

Schema = dict[str, Any]


def schema_problems(kind: Kind, body: Mapping[str, Any], limit: int = 5) -> list[str]:
    """Return up to `limit` problems of a request body as `path: problem`; empty if it matches the SDK's type."""
    streams = bool(body.get("stream")) if isinstance(body, Mapping) else False
    try:
        _validator(kind, streams and _TYPES[kind][2] == "stream").validate_python(body, strict=True)
    except ValidationError as error:
        found = [(tuple(map(str, item["loc"])), _plain(item["msg"])) for item in error.errors(include_url=False)]
        return [f"{'.'.join(path) or 'body'}: {text}" for path, text in _of_fitting_choices(found)][:limit]
    return []


def build_validators(*kinds: Kind) -> None:
    """Build the validators of these kinds now and import the SDK; this takes a few seconds once per process."""
    for kind in kinds:
        for streams in (False, True) if _TYPES[kind][2] else (False,):
            _validator(kind, streams)


@cache
def _validator(kind: Kind, streams: bool) -> SchemaValidator:
    module_name, name, variants = _TYPES[kind]
    if variants:
        name += "Streaming" if streams else "NonStreaming"
    module = importlib.import_module(module_name)
    schema = TypeAdapter(getattr(module, name)).core_schema
    definitions = {entry["ref"]: entry for entry in schema.get("definitions", ())}
    strict = _Strict(definitions).rewrite(schema["schema"] if schema["type"] == "definitions" else schema)  # type: ignore[arg-type]
    for header in _ANTHROPIC_HEADERS if kind.startswith("anthropic.") else ():
        strict["fields"].pop(header, None)
    used = _Strict(definitions)
    rewritten = [
        used.rewrite(entry) | {"ref": ref} for ref, entry in definitions.items() if not used.is_python_only(entry)
    ]
    return SchemaValidator({"type": "definitions", "schema": strict, "definitions": rewritten})


class _Strict:
    """Rewrites pydantic's core schema of a `TypedDict` into one that accepts only its exact JSON form."""

    def __init__(self, definitions: Mapping[str, Schema]) -> None:
        self._definitions = definitions

    def is_python_only(self, schema: Schema) -> bool:
        """Return whether the schema matches no JSON value."""
        return str(self._resolve(schema)["type"]) in _PYTHON_ONLY

    def rewrite(self, schema: Schema) -> Schema:
        """Return the strict form of a schema."""
        match schema["type"]:
            case "typed-dict":
                fields = {
                    name: {"type": "typed-dict-field", "required": field.get("required", False)}
                    | {"schema": self.rewrite(field["schema"])}
                    for name, field in schema["fields"].items()
                }
                return {"type": "typed-dict", "fields": fields, "extra_behavior": "forbid", "total": False}
            case "generator" | "list":
                return {"type": "list", "items_schema": self.rewrite(schema["items_schema"])}
            case "json-or-python":
                return self.rewrite(schema["json_schema"])
            case "nullable":
                return {"type": "nullable", "schema": self.rewrite(schema["schema"])}
            case "union":
                return self._rewrite_union(
                    [choice[0] if isinstance(choice, tuple) else choice for choice in schema["choices"]]
                )
            case "dict":
                parts: Schema = {"type": "dict"}
                for key in {"keys_schema", "values_schema"} & set(schema):
                    parts[key] = self.rewrite(schema[key])
                return parts
            case "definition-ref":
                return {"type": "definition-ref", "schema_ref": schema["schema_ref"]}
            case "literal":
                return {"type": "literal", "expected": schema["expected"]}
            case "str" | "int" | "float" | "bool" | "any" | "none":
                return {"type": schema["type"]}
            case other:
                raise NotImplementedError(f"a core schema of type {other!r}: say here what it means in JSON")

    def _rewrite_union(self, choices: list[Schema]) -> Schema:
        flat = [inner for choice in choices for inner in self._choices_of(choice)]
        kept = [choice for choice in flat if not self.is_python_only(choice)]
        objects = [choice for choice in kept if self._resolve(choice)["type"] == "typed-dict"]
        others = [choice for choice in kept if not any(choice is one for one in objects)]
        tagged = self._tagged(objects) if len(objects) > 1 else None
        parts = [*([tagged] if tagged else map(self.rewrite, objects)), *map(self.rewrite, others)]
        return parts[0] if len(parts) == 1 else _untagged(parts)

    def _choices_of(self, choice: Schema) -> Iterable[Schema]:
        resolved = self._resolve(choice)
        if resolved["type"] != "union":
            return (choice,)
        inner = (one[0] if isinstance(one, tuple) else one for one in resolved["choices"])
        return [deepest for one in inner for deepest in self._choices_of(one)]

    def _tagged(self, objects: list[Schema]) -> Schema | None:
        """Return a union discriminated by `type` or `role`, or None if its objects cannot be distinguished that way."""
        for key in _TAG_KEYS:
            fields = [self._resolve(choice)["fields"].get(key) for choice in objects]
            tags = [_literals(field["schema"]) if field else () for field in fields]
            if not all(tags):
                continue
            groups: dict[str, list[Schema]] = {}
            default = ""
            for choice, field, values in zip(objects, fields, tags, strict=True):
                for value in values:
                    groups.setdefault(_tag(key, value), []).append(self.rewrite(choice))
                if not field.get("required", False):
                    default = default or _tag(key, values[0])
            choices = {tag: group[0] if len(group) == 1 else _untagged(group) for tag, group in groups.items()}
            return {"type": "tagged-union", "choices": choices, "discriminator": _discriminator(key, default)}
        return None

    def _resolve(self, schema: Schema) -> Schema:
        while schema["type"] == "definition-ref":
            schema = self._definitions[schema["schema_ref"]]
        return schema


def _plain(text: str) -> str:
    """Return pydantic's message as it would be if tags were fields.

    Here they are determined by functions, which it names.
    """
    for key in _TAG_KEYS:
        text = text.replace(f"using {key}()", f"using '{key}'").replace(
            f"discriminator {key}()", f"discriminator '{key}'"
        )
    return text.replace(f"'{_SILENT}", "'")


def _untagged(parts: list[Schema]) -> Schema:
    return {"type": "union", "choices": [(part, f"{_CHOICE}{number}") for number, part in enumerate(parts)]}


def _literals(schema: Schema) -> tuple[str, ...]:
    if schema["type"] == "nullable":
        return _literals(schema["schema"])
    return tuple(schema["expected"]) if schema["type"] == "literal" else ()


def _tag(key: str, value: str) -> str:
    return value if key == "type" else _SILENT + value


def _discriminator(key: str, default: str) -> Callable[[Any], str | None]:
    def tag_of(value: Any) -> str | None:
        given = value.get(key) if isinstance(value, Mapping) else None
        if given is None:
            return default or None
        return _tag(key, given) if isinstance(given, str) else None

    tag_of.__name__ = key
    return tag_of


def _of_fitting_choices(found: list[tuple[tuple[str, ...], str]]) -> list[tuple[tuple[str, ...], str]]:
    """Return the problems of the intended union choices only, without the labels of choices."""
    labelled = [path for path, _ in found if any(step.startswith(_CHOICE) for step in path)]
    if not labelled:
        return [(tuple(step for step in path if not step.startswith(_SILENT)), text) for path, text in found]
    at = min(next(k for k, step in enumerate(path) if step.startswith(_CHOICE)) for path in labelled)
    prefix = next(path[:at] for path in labelled if path[at].startswith(_CHOICE))
    inside = [(path, text) for path, text in found if path[:at] == prefix and len(path) > at]
    by_choice: dict[str, list[tuple[tuple[str, ...], str]]] = {}
    for path, text in inside:
        by_choice.setdefault(path[at], []).append((path, text))
    # Meant is the choice that got furthest: not refused as a whole, and with the fewest problems.
    meant = min(by_choice.values(), key=lambda group: (any(len(path) == at + 1 for path, _ in group), len(group)))
    chosen = [(path[:at] + path[at + 1 :], text) for path, text in meant]
    first = found.index(inside[0])
    rest = [entry for entry in found if entry not in inside]
    return _of_fitting_choices([*rest[:first], *chosen, *rest[first:]])
