"""S19 and S20: shorten the prompt fragments and tool schemas of every request (R-344, R-345, R-348).

The system prompt consists of fragments, each with an optional compact form. A schema keeps everything that decides
which arguments are valid, and loses only explanations. Pure functions; `shape_request` decides when they are used.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import msgspec

from codecompanion.context.strategy_parameters import ShapeSchemas
from codecompanion.model.messages import ToolSpec


class Fragment(msgspec.Struct, frozen=True):
    """A part of the system prompt (R-329). `compact` is "" if it has no short form."""

    key: str
    label: str
    full: str
    compact: str = ""
    source: str = "built_in"


TERSE = Fragment(
    key="response_style",
    label="response style",
    full=(
        "Response style: terse.\n"
        "- Keep ordinary model replies brief and direct.\n"
        "- Do not shorten safety, permission, destructive-action, or ambiguity clarifications."
    ),
)
"""The fragment that asks for terse replies: the exact three lines of R-348."""

_MAPS_OF_SCHEMAS = frozenset({"properties", "patternProperties", "$defs", "definitions", "dependentSchemas"})
_SCHEMAS = frozenset(
    "items additionalItems additionalProperties unevaluatedItems unevaluatedProperties contains propertyNames not if "
    "then else".split()
)
_LISTS_OF_SCHEMAS = frozenset({"anyOf", "oneOf", "allOf", "prefixItems", "items"})


def join_fragments(fragments: Iterable[Fragment], *, compact: bool = False) -> str:
    """Return the system prompt joined from the fragments, in order."""
    texts = ((fragment.compact if compact else "") or fragment.full for fragment in fragments)
    return "\n\n".join(text for text in texts if text.strip())


def shape_specs(specs: Sequence[ToolSpec], params: ShapeSchemas) -> tuple[ToolSpec, ...]:
    """Return the tools without nested descriptions; names, types and validation rules stay (R-345)."""
    return tuple(
        spec
        if spec.name in params.keep_tools
        else msgspec.structs.replace(spec, parameters=_without_descriptions(spec.parameters, params.depth))
        for spec in specs
    )


def _without_descriptions(schema: Any, depth: int, level: int = 0) -> Any:
    """Return the schema without descriptions that are more than `depth` levels of properties below the tool.

    Only keywords that contain schemas are followed: a property may be named `description`, and a default or an enum may
    contain a key of that name.
    """
    if not isinstance(schema, dict):
        return schema
    shaped: dict[str, Any] = {}
    for key, value in schema.items():
        if key == "description" and max(level, 1) > depth and isinstance(value, str):
            continue
        if key in _MAPS_OF_SCHEMAS and isinstance(value, dict):
            shaped[key] = {name: _without_descriptions(inner, depth, level + 1) for name, inner in value.items()}
        elif key in _LISTS_OF_SCHEMAS and isinstance(value, list):
            shaped[key] = [_without_descriptions(inner, depth, level) for inner in value]
        elif key in _SCHEMAS:
            shaped[key] = _without_descriptions(value, depth, level)
        else:
            shaped[key] = value
    return shaped
