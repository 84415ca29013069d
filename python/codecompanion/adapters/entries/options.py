"""Checks an entry's `opts` against `options.toml` and copies them to their settings."""

from __future__ import annotations

import tomllib
from collections.abc import Callable
from difflib import get_close_matches
from functools import cache
from pathlib import Path
from typing import Any

import msgspec

from codecompanion.adapters.entries.draft import Draft
from codecompanion.adapters.entries.lua_values import lua_type, pairs, shown
from codecompanion.counting.token_sizes import TOKEN_FORMS, tokens_of
from codecompanion.formats import typed

_NETWORK = ("openai", "openai_compatible", "openai_responses", "anthropic", "copilot", "chatgpt")
_ALWAYS_ON = ("stream", "tools")


class AdapterOption(msgspec.Struct, frozen=True, kw_only=True):
    """An option, as described at the top of `options.toml`."""

    type: str | tuple[str, ...]
    description: str
    kinds: tuple[str, ...] = ()
    enum: tuple[str, ...] = ()
    min: int = 0
    setting: str = ""
    option: str = ""
    divisor: int = 1
    fields: dict[str, AdapterOption] = {}

    @property
    def types(self) -> tuple[str, ...]:
        """Return the types of valid values."""
        return (self.type,) if isinstance(self.type, str) else self.type

    def is_for(self, kind: str) -> bool:
        """Return whether the option applies to adapters of this kind."""
        return kind in (self.kinds or _NETWORK)


@cache
def adapter_options() -> dict[str, AdapterOption]:
    """Return all options by name."""
    text = Path(__file__).with_name("options.toml").read_text(encoding="utf-8")
    return typed.convert(tomllib.loads(text), dict[str, AdapterOption])


def set_options(draft: Draft) -> None:
    """Apply `opts`; invalid options are skipped."""
    for name, value in pairs(draft.entry.opts):
        option = adapter_options().get(name)
        if option:
            _set(draft, name, option, value)
        elif name not in _ALWAYS_ON:
            known = sorted(other for other, about in adapter_options().items() if about.is_for(draft.kind))
            near = get_close_matches(name, known, n=1)
            advice = f"did you mean `{near[0]}`?" if near else f"expected one of {', '.join(known)}"
            draft.problem(f"opts.{name}", f"unknown key; {advice}")
        elif value is not True:
            draft.problem(f"opts.{name}", "cannot be switched off here")


def _set(draft: Draft, name: str, option: AdapterOption, value: Any) -> None:
    if not option.is_for(draft.kind):
        draft.problem(f"opts.{name}", f"has no effect on an adapter of kind {draft.kind}")
        return
    if not _fits(draft, f"opts.{name}", option, value):
        return
    place = draft.settings if option.setting else draft.settings["options"]
    field = option.setting or option.option or name
    if option.fields and isinstance(value, bool):  # true = with the defaults, false = off
        place.pop(field, None)
        if value:
            place[field] = {}
    elif option.type == "tokens":
        place[field] = tokens_of(value)
    else:
        place[field] = value / option.divisor if option.divisor > 1 else value


def _fits(draft: Draft, at: str, option: AdapterOption, value: Any) -> bool:
    """Return whether a value is valid for the option; if not, record a problem."""
    if not any(_is_of(option, value, kind) for kind in option.types):
        draft.problem(at, f"got {shown(value)}; expected {' or '.join(_expectations(option))}")
        return False
    fits = True
    for key, inner in pairs(value) if option.fields else ():
        field = option.fields.get(key)
        if field is None:
            draft.problem(f"{at}.{key}", f"unknown key; expected one of {', '.join(sorted(option.fields))}")
        fits = field is not None and _fits(draft, f"{at}.{key}", field, inner) and fits
    return fits


_CHECKS: dict[str, Callable[[AdapterOption, Any], bool]] = {
    "integer": lambda option, value: lua_type(value) == "number" and value % 1 == 0 and value >= option.min,
    "number": lambda option, value: lua_type(value) == "number" and value >= option.min,
    "tokens": lambda _, value: tokens_of(value) is not None,
    "strings": lambda _, value: lua_type(value) == "table" and all(isinstance(item, str) for _, item in pairs(value)),
    "string": lambda option, value: isinstance(value, str) and (not option.enum or value in option.enum),
}


def _is_of(option: AdapterOption, value: Any, wanted: str) -> bool:
    check = _CHECKS.get(wanted)
    return check(option, value) if check else lua_type(value) == wanted


def _expectations(option: AdapterOption) -> list[str]:
    words = {
        "integer": f"an integer of {option.min} or more",
        "number": f"a number of {option.min} or more",
        "strings": "a list of strings",
        "tokens": TOKEN_FORMS,
    }
    expected = []
    for wanted in option.types:
        named = list(map(shown, option.enum)) if wanted == "string" else []
        expected += named or [words.get(wanted, wanted)]
    return expected
