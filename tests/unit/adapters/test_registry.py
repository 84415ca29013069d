"""Adapters by name."""

from __future__ import annotations

import os
import subprocess
import sys
from typing import Any

import pytest

from codecompanion.adapters.base import AdapterSettings
from codecompanion.adapters.http.adapter import HttpAdapter
from codecompanion.adapters.offline.adapter import OfflineAdapter
from codecompanion.adapters.registry import OFFLINE_WINDOW, AdapterRegistry, is_out_of_reach, read_settings
from codecompanion.errors import AuthenticationFailed, ConfigError, MissingKey, NetworkFailed, NotConfigured

ENTRIES: dict[str, dict[str, Any]] = {
    "openai": {"kind": "openai", "base_url": "https://api.openai.com/v1", "key": "OPENAI_API_KEY", "model": "gpt-4.1"},
    "local": {"kind": "openai_compatible", "base_url": "http://localhost:11434/v1"},
    "offline": {"kind": "offline"},
}


def registry(**changes: dict[str, Any]) -> AdapterRegistry:
    tables = {name: {**table, **changes.get(name, {})} for name, table in ENTRIES.items()}
    return AdapterRegistry(read_settings(tables), read_blob=lambda _: b"", summarise=lambda messages, limit: "summary")


async def test_an_adapter_is_created_once_and_by_kind() -> None:
    """It owns connections and caches."""
    made = registry()
    assert made.names() == ["local", "offline", "openai"]
    assert isinstance(made.get("openai"), HttpAdapter)
    assert isinstance(made.get("offline"), OfflineAdapter)
    assert made.get("openai") is made.get("openai")
    assert made.get("openai").default_model == "gpt-4.1"
    await made.aclose()


def test_nothing_is_imported_before_the_first_request() -> None:
    """The transport takes 0.1 s; the chat must be open by then."""
    code = (
        "import sys; from codecompanion.adapters.registry import *; import codecompanion.adapters.catalog\n"
        "settings = read_settings({'a': {'kind': 'openai', 'base_url': 'http://x'}})\n"
        "AdapterRegistry(settings, read_blob=None, summarise=None).get('a')\n"
        "print([name for name in ('openai', 'httpx2', 'pydantic', 'genai_prices') if name in sys.modules])"
    )
    environment = {"PYTHONPATH": os.pathsep.join(path for path in sys.path if path)}
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, env=environment)
    assert done.stdout.strip() == "[]"


@pytest.mark.parametrize("kind", ["openai", "openai_responses", "anthropic"])
def test_a_client_is_created_without_the_sdks(kind: str) -> None:
    """Importing openai takes 0.65 s of CPU, anthropic twice that; the first message must not wait for it."""
    code = (
        "import sys; from codecompanion.adapters.base import AdapterSettings\n"
        "from codecompanion.adapters.transport.client import make_client\n"
        f"make_client(AdapterSettings(name='x', kind={kind!r}, base_url='https://127.0.0.1:9'))\n"
        "print([name for name in ('openai', 'anthropic', 'pydantic', 'httpx2') if name in sys.modules])"
    )
    environment = {"PYTHONPATH": os.pathsep.join(path for path in sys.path if path)}
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, env=environment)
    assert done.stdout.strip() == "['httpx2']"


@pytest.mark.parametrize(
    ("name", "words"), [("opnai", "did you mean 'openai'?"), ("zzz", "the adapters are local, offline, openai")]
)
def test_an_unknown_name_is_answered_with_the_closest(name: str, words: str) -> None:
    """The error names the key path."""
    for ask in (registry().get, registry().settings):
        with pytest.raises(ConfigError, match=f"adapters.http.{name}") as caught:
            ask(name)
        assert words in str(caught.value)


@pytest.mark.parametrize(
    ("name", "change", "words"),
    [
        ("openai", {"options": {"send_reasonin": True}}, "adapters.http.openai.opts: .*send_reasonin.*send_reasoning"),
        ("openai", {"options": {"send_reasoning": "yes"}}, "adapters.http.openai.opts.send_reasoning: .*'yes'"),
        ("offline", {"options": {"playbak": "x"}}, "adapters.http.offline.opts: .*playback, delay_ms, chunk_chars"),
        ("openai", {"base_url": "api.openai.com"}, 'adapters.http.openai.url: got "api.openai.com"'),
        (
            "local",
            {"base_url": "AZURE_OPENAI_ENDPOINT/openai/v1", "address_key": "env.url"},
            "adapters.http.local.env.url: AZURE_OPENAI_ENDPOINT is not set$",
        ),
        ("local", {"base_url": "", "address_key": "env.url"}, 'adapters.http.local.env.url: got ""'),
        ("local", {"parameters": {"messages": []}}, "adapters.http.local.parameters.messages: is set by the request"),
        (
            "openai",
            {"kind": "openai_responses", "parameters": {"store": False, "input": []}},
            "adapters.http.openai.parameters.input: is set by the request itself; expected another parameter",
        ),
        (
            "openai",
            {"kind": "anthropic", "parameters": {"top_p": 1, "system": "x"}},
            "adapters.http.openai.parameters.system: is set by the request itself",
        ),
    ],
)
async def test_an_invalid_entry_is_reported_and_refuses_requests(name: str, change: dict[str, Any], words: str) -> None:
    """The error names the key path as the user wrote it.

    Chats still open with this adapter, and the other adapters work.
    """
    made = registry(**{name: change})
    with pytest.raises(ConfigError, match=words) as caught:
        made.check(name)
    adapter = made.get(name)
    assert (adapter.name, adapter.limits("m")) == (name, None)
    with pytest.raises(NotConfigured, match=f"{name} cannot be used: {caught.value.key} is invalid"):
        await adapter.list_models()
    for other in made.names():
        if other != name:
            made.check(other)


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"kind": "openia"}, "adapters.http.openai.kind: Invalid enum value 'openia'"),
        ({"timeout_s": "long"}, "adapters.http.openai.timeout_s: Expected `float`, got `str`"),
        ({"headers": {"a": 1}}, r"adapters.http.openai.headers"),
    ],
)
def test_a_wrong_type_names_the_field(change: dict[str, Any], words: str) -> None:
    """Lua checks types, but the command line does not."""
    with pytest.raises(ConfigError, match=words):
        registry(openai=change)


def test_the_offline_adapter_has_a_window() -> None:
    """The window is configurable, and large by default."""
    assert registry().settings("offline").context_window == OFFLINE_WINDOW
    assert registry(offline={"context_window": 9000}).settings("offline").context_window == 9000


async def test_new_secrets_reach_an_adapter_that_already_has_one() -> None:
    """`ga` sends the results of key functions again."""
    made = registry(openai={"key": "function"})
    made.give_secrets({"openai": "first"})
    adapter = made.get("openai")
    assert isinstance(adapter, HttpAdapter)
    assert (await adapter._connection.endpoint("")).secrets == ("first",)
    made.give_secrets({"openai": "second", "local": "other"})
    assert (await adapter._connection.endpoint("")).secrets == ("second",)


async def test_an_adapter_can_be_inserted() -> None:
    """The demo replays a recording under the name of the offline adapter."""
    made = registry()
    settings = made.settings("offline")
    replay = OfflineAdapter(AdapterSettings(name="replay", kind="offline"), summarise=lambda messages, limit: "")
    made.add(replay, settings)
    assert made.get("replay") is replay
    assert made.settings("replay") is settings


@pytest.mark.parametrize(
    ("entry", "error", "hidden"),
    [
        ({"key": "SOME_KEY"}, MissingKey("x"), True),
        # The function is asked when the adapter is chosen.
        ({"key": "function"}, MissingKey("x"), False),
        ({"base_url": "http://localhost:11434"}, NetworkFailed("x"), True),
        ({"base_url": "https://api.openai.com/v1"}, NetworkFailed("x"), False),
        ({"base_url": "http://localhost:11434"}, TimeoutError(), False),
        ({"key": "SOME_KEY"}, AuthenticationFailed("x"), False),
        ({"base_url": "AZURE_OPENAI_ENDPOINT/openai/v1"}, ConfigError("adapters.http.x.env.url", "no address"), True),
        ({"base_url": "https://x"}, ConfigError("adapters.http.x.parameters", "wrong"), True),
    ],
)
def test_an_unusable_adapter_is_marked_unavailable(entry: dict[str, Any], error: Exception, hidden: bool) -> None:
    """A temporary failure does not hide an adapter from the list of models."""
    settings = AdapterSettings(**{"name": "x", "kind": "openai_compatible", "base_url": "https://x", **entry})
    assert is_out_of_reach(settings, error) is hidden


@pytest.mark.parametrize("address", ["http://[::1", "http://h:99999/v1", "http://h:0/v1", "http://", "http://:8080"])
def test_an_impossible_address_is_named(address: str) -> None:
    """Half of an IPv6 address and an invalid port are mistakes in the configuration, not bugs."""
    with pytest.raises(ConfigError, match=r"adapters\.http\.local\.url: got"):
        registry(local={"kind": "openai_compatible", "base_url": address}).check("local")
