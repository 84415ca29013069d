"""Applies the request parameters in an entry's `schema`: the model, the reply limit, and any others."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from codecompanion.adapters.entries.draft import Draft
from codecompanion.adapters.entries.lua_values import lua_type, pairs, shown
from codecompanion.counting.token_sizes import TOKEN_FORMS, tokens_of

_KEYS = (
    *("choices", "condition", "default", "desc", "enabled", "limits", "mapping", "optional", "order", "subtype"),
    *("subtype_key", "type", "validate"),
)
# Names of the reply limit in the schema → the field it is sent in, "" = the adapter's own.
_CAPS = {"max_tokens": "max_tokens", "max_completion_tokens": "max_completion_tokens", "max_output_tokens": ""}
_MIN_THINKING_TOKENS = 1024


def set_parameters(draft: Draft) -> None:
    """Apply `parameters` and `schema`."""
    draft.settings["parameters"] |= dict(pairs(draft.entry.parameters))
    for name, parameter in pairs(draft.entry.schema):
        if lua_type(parameter) != "table":
            draft.problem(f"schema.{name}", f"got {lua_type(parameter)}; expected {{ default = … }}")
            continue
        fields = dict(pairs(parameter))
        _set_parameter(draft, name, fields)
        if name == "model" and "choices" in fields:
            _set_models(draft, fields["choices"])


def _set_parameter(draft: Draft, name: str, fields: Mapping[str, Any]) -> None:
    at = f"schema.{name}"
    for key in fields:
        if key not in _KEYS:
            draft.problem(f"{at}.{key}", f"unknown key; expected one of {', '.join(_KEYS)}")
    value = fields.get("default")
    if fields.get("enabled") is False or value is None:
        return
    own = _THINKING.get(name) if draft.kind == "anthropic" else None
    if own:
        expected = own(draft, value)
        if expected:
            draft.problem(f"{at}.default", f"got {shown(value)}; expected {expected}")
    elif name == "model":
        if not isinstance(value, str):
            draft.problem(f"{at}.default", f"got {lua_type(value)}; expected the name of a model")
            return
        draft.settings["model"] = value
    elif name in _CAPS:
        limit = tokens_of(value)
        if limit is None:
            draft.problem(f"{at}.default", f"got {shown(value)}; expected {TOKEN_FORMS}")
            return
        draft.settings["max_output_tokens"] = limit
        draft.settings["max_tokens_field"] = _CAPS[name] or draft.settings["max_tokens_field"]
    else:
        _put(draft, name, str(fields.get("mapping", "parameters")), value)


def _set_models(draft: Draft, choices: object) -> None:
    """Apply the model choices; the editor sends each as `{ name = …, context_window = … }`."""
    names = []
    for _, choice in pairs(choices):
        name, window = map(dict(pairs(choice)).get, ("name", "context_window"))
        if not isinstance(name, str):
            draft.problem("schema.model.choices", f"got {shown(name)}; expected names of models")
            continue
        names.append(name)
        tokens = tokens_of(window)
        if tokens:
            draft.windows[name] = tokens
    draft.settings["models"] = names


def _put(draft: Draft, name: str, mapping: str, value: object) -> None:
    """Set a parameter; a name such as `reasoning.effort` is a nested field, and `mapping` is the path of its parent."""
    root, *path = f"{mapping}.{name}".split(".")
    if root != "parameters":
        draft.problem(f"schema.{name}.mapping", f"got {shown(mapping)}; expected parameters or parameters.…")
        return
    place = draft.settings["parameters"]
    for part in path[:-1]:
        inner = place.get(part)
        place[part] = place = dict(inner) if isinstance(inner, dict) else {}
    place[path[-1]] = value


def _extended_thinking(draft: Draft, value: object) -> str:
    """Set the `thinking` field, as codecompanion.nvim does; return "", or the expected value if `value` is invalid."""
    if not isinstance(value, bool):
        return "true or false"
    thinking = draft.settings["parameters"].pop("thinking", {"type": "adaptive"})
    if value:
        draft.settings["parameters"]["thinking"] = thinking
    return ""


def _thinking_budget(draft: Draft, value: object) -> str:
    if not isinstance(value, int) or value < _MIN_THINKING_TOKENS:
        return f"a whole number of tokens, {_MIN_THINKING_TOKENS} or more"
    switch = dict(pairs(dict(pairs(draft.entry.schema)).get("extended_thinking"))).get("default")
    if switch is not False:
        draft.settings["parameters"]["thinking"] = {"type": "enabled", "budget_tokens": value}
    return ""


_THINKING: dict[str, Callable[[Draft, object], str]] = {
    "extended_thinking": _extended_thinking,
    "thinking_budget": _thinking_budget,
}
