"""Derives the schema of a plain function's arguments, and converts a call's arguments for the function.

pydantic reads the type hints and validates calls; the docstring describes the arguments. A parameter named `context` is
not set by the model: it receives a `CallContext`.
"""

from __future__ import annotations

import inspect
import json
import typing
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Annotated, Any, NotRequired, cast

import msgspec
from pydantic import ConfigDict, Field, PydanticInvalidForJsonSchema, PydanticUserError, TypeAdapter, ValidationError
from typing_extensions import TypedDict

from codecompanion.errors import ConfigError, ToolInputInvalid
from codecompanion.tools.own.docstring import read_docstring

CONTEXT = "context"
_MAX_PROBLEMS = 8
_MAX_INLINED = 200


class CallContext(msgspec.Struct, frozen=True):
    """The context of a call, for its function: the folder that tools work in, the editor's folder and the chat."""

    root: Path
    cwd: Path
    chat: str


class Signature(msgspec.Struct, frozen=True):
    """The description of a function for the model, with a validator for the arguments of calls."""

    description: str
    parameters: dict[str, Any]
    adapter: TypeAdapter[dict[str, Any]]
    wants_context: bool

    def arguments(self, given: Mapping[str, Any]) -> dict[str, Any]:
        """Return the arguments converted to the function's types.

        Raises:
            ToolInputInvalid: the arguments do not match; the message says how to correct them.
        """
        try:
            return dict(self.adapter.validate_python(dict(given)))
        except ValidationError as error:
            problems = [
                f"`{'.'.join(map(str, one['loc']))}`: {one['msg']}" if one["loc"] else one["msg"]
                for one in error.errors(include_url=False, include_context=False, include_input=False)
            ]
            told = "; ".join(problems[:_MAX_PROBLEMS])
            more = f"; and {len(problems) - _MAX_PROBLEMS} more" if len(problems) > _MAX_PROBLEMS else ""
            raise ToolInputInvalid(f"Wrong arguments: {told}{more}.") from error


def read_signature(function: Callable[..., Any], key: str) -> Signature:
    """Derive the signature from a function's type hints and docstring.

    Raises:
        ConfigError: no schema can be derived; `key` names the option.
    """
    described = read_docstring(function.__doc__)
    try:
        hints = typing.get_type_hints(function, include_extras=True)
        parameters = inspect.signature(function).parameters
    except Exception as error:  # hints are the user's expressions: any error is possible
        raise ConfigError(key, f"the type hints cannot be read: {type(error).__name__}: {error}") from error
    fields: dict[str, Any] = {}
    for name, parameter in parameters.items():
        if name == CONTEXT or parameter.kind is parameter.VAR_KEYWORD:
            continue
        if parameter.kind in (parameter.POSITIONAL_ONLY, parameter.VAR_POSITIONAL):
            raise ConfigError(key, f"`{name}` cannot be passed by name", "parameters without `/` and `*`")
        fields[name] = _field(hints.get(name, Any), parameter.default, described.arguments.get(name))
    try:
        shape = cast(Any, TypedDict)("Arguments", fields)
        shape.__pydantic_config__ = ConfigDict(extra="forbid", arbitrary_types_allowed=False)
        adapter: TypeAdapter[dict[str, Any]] = TypeAdapter(shape)
        schema = adapter.json_schema()
    except (PydanticUserError, PydanticInvalidForJsonSchema, TypeError, ValueError) as error:
        sentence = str(error).partition("\n")[0]
        raise ConfigError(key, f"no schema can be generated from the type hints: {sentence}") from error
    return Signature(described.text, _tidy(schema), adapter, CONTEXT in parameters)


def _field(hint: Any, default: object, description: str | None) -> Any:
    if default is inspect.Parameter.empty:
        return Annotated[hint, Field(description=description)] if description else hint
    told: dict[str, Any] = {}
    try:
        json.dumps(default)
        told = {"default": default} if default is not None else {}
    except (TypeError, ValueError):
        pass  # the function uses its default
    return NotRequired[Annotated[hint, Field(description=description, json_schema_extra=told)]]


def _tidy(schema: dict[str, Any]) -> dict[str, Any]:
    """Return the schema without titles and, unless it is recursive, without references."""
    definitions = schema.pop("$defs", {})
    inlined = 0

    def tidied(node: Any, inside: tuple[str, ...]) -> Any:
        nonlocal inlined
        if isinstance(node, list):
            return [tidied(one, inside) for one in node]
        if not isinstance(node, dict):
            return node
        name = str(node.get("$ref", "")).removeprefix("#/$defs/")
        if name in definitions:
            inlined += 1
            if name in inside or inlined > _MAX_INLINED:
                return {"type": "object"}  # a recursive type, checked by the function's type hints
            beside = {key: value for key, value in node.items() if key != "$ref"}
            return {**tidied(definitions[name], (*inside, name)), **tidied(beside, inside)}
        kept = {}
        for key, value in node.items():
            if key == "title" and isinstance(value, str):
                continue
            is_named = key == "properties" and isinstance(value, dict)
            kept[key] = {k: tidied(v, inside) for k, v in value.items()} if is_named else tidied(value, inside)
        return kept

    tidy: dict[str, Any] = tidied(schema, ())
    tidy.setdefault("properties", {})
    return tidy
