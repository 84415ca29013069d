"""Conversion of entries from the editor to settings; in a real Neovim: `tests/nvim/test_adapter_config.py`."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from codecompanion.adapters.base import AdapterSettings
from codecompanion.adapters.entries.lua_values import shown
from codecompanion.adapters.entries.resolve import Resolved, resolve_adapters
from codecompanion.adapters.registry import AdapterRegistry, read_settings
from codecompanion.engine.hello import _price
from codecompanion.model.messages import Usage
from codecompanion.settings import builtin_adapters


def resolved(environ: dict[str, str] | None = None, **entry: Any) -> Resolved:
    """Return the settings of one entry, `mine`."""
    return resolve_adapters({"mine": {"builtin": "openai", **entry}}, proxy="", environ=environ or {})


def test_the_built_in_adapters_exist_without_an_entry() -> None:
    """A missing URL is a mistake only once the adapter is used."""
    found = resolve_adapters({}, proxy="http://proxy:1", environ={})
    assert set(found.adapters) == set(builtin_adapters())
    assert found.mistakes == []
    assert {name for name, table in found.adapters.items() if table["proxy"]} == {*builtin_adapters()} - {"offline"}
    for name, table in found.adapters.items():
        assert msgspec.convert(table, AdapterSettings).name == name


@pytest.mark.parametrize(
    ("entry", "key"),
    [
        ({"builtin": "openai", "url": ""}, "url"),
        ({"builtin": "openai_compatible", "url": ""}, "url"),
        ({"builtin": "openai", "env": {"url": ""}}, "env.url"),
        ({"builtin": "openai_compatible", "env": {"url": "localhost:18951"}}, "env.url"),
        ({"builtin": "openai_responses", "env": {"url": ""}}, "env.url"),
    ],
)
def test_an_empty_address_is_a_mistake_without_a_fallback(entry: dict[str, Any], key: str) -> None:
    """An example is `url = os.getenv("MY_URL") or ""`: the key is never sent to a URL other than the intended one."""
    found = resolve_adapters({"mine": entry}, proxy="", environ={})
    written = entry.get("url", entry.get("env", {}).get("url"))
    assert found.mistakes == [f'adapters.http.mine.{key}: got "{written}"; expected http://… or https://…']
    assert found.adapters["mine"]["base_url"] == written


def test_two_entries_of_one_adapter_share_nothing() -> None:
    """Parameters of one entry never reach the other."""
    one = {"builtin": "openai", "parameters": {"a": 1}, "schema": {"x.y": {"default": 2}}, "headers": {"H": "1"}}
    found = resolve_adapters({"one": one, "two": {"builtin": "openai"}}, proxy="", environ={})
    assert found.adapters["one"]["parameters"] == {"a": 1, "x": {"y": 2}}
    assert found.adapters["two"]["parameters"] == found.adapters["openai"]["parameters"] == {}
    assert found.adapters["two"]["headers"] == {}
    assert one["parameters"] == {"a": 1}


def test_some_addresses_come_from_the_environment() -> None:
    environ = {"OLLAMA_HOST": "0.0.0.0", "AZURE_OPENAI_ENDPOINT": "https://me.openai.azure.com"}  # noqa: S104
    found = resolve_adapters({}, proxy="", environ=environ).adapters
    assert found["ollama"]["base_url"] == "http://127.0.0.1:11434"
    assert found["azure_openai"]["base_url"] == "https://me.openai.azure.com/openai/v1"


def test_a_price_of_the_user_replaces_the_list_price() -> None:
    """R-359: an omitted cache price is that of plain input."""
    usage = Usage(1_000_000, 200_000, cache_read_tokens=1_000_000, cache_write_tokens=1_000_000)
    for more, usd in (({}, 6.4), ({"cache_read": 0.2}, 4.6), ({"cache_read": 0, "cache_write": 3}, 5.4)):
        found = resolved(opts={"price": {"input": 2, "output": 2, **more}})
        registry = AdapterRegistry(
            read_settings(found.adapters), read_blob=lambda blob: b"", summarise=lambda messages, tokens: ""
        )
        assert found.mistakes == []
        assert _price(registry, "mine", "gpt-4.1", (usage,)) == pytest.approx(usd)
        assert _price(registry, "openai", "gpt-4.1", (usage,)) not in (None, usd)


@pytest.mark.parametrize(
    ("price", "problem"),
    [
        ({"input": -1}, "opts.price.input: got -1; expected a number of 0 or more"),
        ({"in": 1}, "opts.price.in: unknown key; expected one of cache_read, cache_write, input, output"),
        (2, "opts.price: got 2; expected table"),
    ],
)
def test_a_wrong_price_is_reported(price: Any, problem: str) -> None:
    assert resolved(opts={"price": price}).mistakes == [f"adapters.http.mine.{problem}"]


def test_the_first_of_two_windows_of_a_model_counts() -> None:
    models = {"choices": [{"name": "m", "context_window": "16k"}, {"name": "n"}]}
    found = resolved(schema={"model": models})
    assert (found.windows, found.adapters["mine"]["models"]) == ({"m": 16_000}, ["m", "n"])


@pytest.mark.parametrize(
    ("value", "text"),
    [
        ("a", '"a"'),
        (1, "1"),
        (1.5, "1.5"),
        (True, "true"),
        (None, "nil"),
        ([], "{}"),
        ({"a": [1, "b"]}, '{ a = { 1, "b" } }'),
    ],
)
def test_values_are_shown_in_lua_notation(value: Any, text: str) -> None:
    assert shown(value) == text


NAMES = st.sampled_from(["model", "max_tokens", "thinking_budget", "timeout", "clear_tool_uses", "keep", "x", "a.b"])
VALUES = st.recursive(
    st.none() | st.booleans() | st.integers(-5, 2**60) | st.floats(-10, 1e20) | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(NAMES, inner, max_size=3),
    max_leaves=8,
)


@given(
    builtin=st.sampled_from(sorted(builtin_adapters())),
    parts=st.dictionaries(st.sampled_from(["headers", "parameters", "schema", "opts"]), VALUES),
)
def test_any_entry_yields_settings_or_mistakes(builtin: str, parts: dict[str, Any]) -> None:
    """For any content of an entry, the adapter can be created."""
    found = resolved(builtin=builtin, **parts)
    assert msgspec.convert(found.adapters["mine"], AdapterSettings).kind == found.adapters["mine"]["kind"]
    assert all(mistake.startswith("adapters.http.mine.") for mistake in found.mistakes)
