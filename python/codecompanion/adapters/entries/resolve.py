"""Converts the entries sent by the editor to tables of `AdapterSettings` fields."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import msgspec

from codecompanion.adapters.clouds import WHOSE, address_of, project_of, region_of
from codecompanion.adapters.entries.address import ollama_address, set_address
from codecompanion.adapters.entries.draft import Draft, Entry
from codecompanion.adapters.entries.lua_values import lua_type, pairs
from codecompanion.adapters.entries.options import set_options
from codecompanion.adapters.entries.parameters import set_parameters
from codecompanion.formats import typed
from codecompanion.settings import builtin_adapters, builtin_entry


class Resolved(msgspec.Struct):
    """The adapters by name, as `AdapterSettings` fields; the models' context windows; a message for each mistake."""

    adapters: dict[str, dict[str, Any]] = {}
    windows: dict[str, int] = {}
    mistakes: list[str] = []


def resolve_adapters(told: Mapping[str, Any], *, proxy: str, environ: Mapping[str, str]) -> Resolved:
    """Return the built-in adapters and those of the user's entries, without invalid parts.

    `told`: the entries by name (`draft.Entry`); `environ`: the user's environment variables.
    """
    result = Resolved()
    for name in sorted({*builtin_adapters(), *told}):
        draft = _start(name, typed.convert(told.get(name, {"builtin": name}), Entry), environ)
        _set_cloud(draft, environ)
        for take in (set_address, _set_headers, set_parameters, set_options):
            take(draft)
        if draft.kind != "offline":
            draft.settings["proxy"] = proxy
        result.adapters[name] = draft.settings
        result.mistakes += draft.mistakes if name in told else ()  # a built-in one without an address: not configured
        result.windows = {**draft.windows, **result.windows}
    return result


def _start(name: str, entry: Entry, environ: Mapping[str, str]) -> Draft:
    """Return a draft of the built-in entry with values from the environment, before the user's own are applied."""
    settings = builtin_entry(entry.builtin)
    about = builtin_adapters()[entry.builtin]
    below = about.get("entry", {})
    named = {key: environ.get(variable, variable) for key, variable in below.get("env", {}).items()}
    env = {**named, **{key: str(value) for key, value in pairs(entry.env)}}
    settings["name"] = name
    settings["formatted_name"] = entry.formatted_name or builtin_adapters().get(name, {}).get("formatted_name", name)
    if entry.key is not None:
        settings["key"] = entry.key
    if environ.get(about.get("address_variable", "")):
        settings["base_url"] = ollama_address(environ[about["address_variable"]])
    if entry.url is None:
        entry = msgspec.structs.replace(entry, url=below.get("url"))
    return Draft(name, entry, settings, env)


def _set_cloud(draft: Draft, environ: Mapping[str, str]) -> None:
    """Set missing fields of a cloud's entry: region and project from the environment, and the resulting URL."""
    settings, told = draft.settings, dict(pairs(draft.entry.opts))
    client = str(told.get("client", settings["client"]))
    if client not in WHOSE:
        return
    settings["client"] = client
    region = told.get("region") or region_of(client, environ)
    settings["region"] = region if isinstance(region, str) else ""
    if client == "vertex":
        settings["project_id"] = project_of(environ)
    settings["base_url"] = address_of(client, settings["region"], environ) or settings["base_url"]
    if settings["key"] == builtin_entry(draft.entry.builtin)["key"]:
        settings["key"] = ""  # a key of the provider's own address does not apply to a cloud


def _set_headers(draft: Draft) -> None:
    """Apply headers, except those that the host sets; a header whose value is the bare key becomes the key's header."""
    headers = dict(pairs(draft.entry.headers))
    has_bearer = any(name.lower() == "authorization" for name in headers)
    for name, value in headers.items():
        if not isinstance(value, str):
            draft.problem(f"headers.{name}", f"got {lua_type(value)}; expected a string")
        elif draft.kind != "offline" and _is_made_here(name.lower(), value):
            draft.settings["headers"].pop(name, None)
        elif value == "${api_key}" and not has_bearer:
            draft.settings["key_header"] = name
        else:
            draft.settings["headers"][name] = draft.interpolate(value, f"headers.{name}")


def _is_made_here(name: str, value: str) -> bool:
    with_key = {"authorization": "Bearer ${api_key}", "x-api-key": "${api_key}"}
    return name == "content-type" or with_key.get(name) == value
