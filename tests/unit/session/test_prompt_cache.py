"""The prompt cache state that a session passes to its policy (lesson 22)."""

from __future__ import annotations

import math
from pathlib import Path

import pytest

from codecompanion.adapters.anthropic_messages.options import MessagesOptions
from codecompanion.adapters.anthropic_messages.wire import AnthropicMessages
from codecompanion.adapters.base import AdapterSettings
from codecompanion.context.editing.cache_state import READ_PRICE
from tests.unit.session.fakes import Bench, ScriptedAdapter, says, submit


async def test_the_cache_is_warm_after_a_reply_and_cold_after_its_lifetime(tmp_path: Path) -> None:
    bench = Bench(tmp_path, ScriptedAdapter("first", [says("hi")]))
    session = await bench.open()
    assert session.control.shaper.env().cache.warm_tokens == 0
    session.submit(submit("a question to begin with"))
    await bench.idle(session)
    asked = session.log.view.messages[0].tokens
    assert session.control.shaper.env().cache.warm_tokens == asked > 0
    bench.services.clock = lambda: 1000.0 + bench.adapter.cache_lifetime_s
    assert session.control.shaper.env().cache.warm_tokens == asked
    bench.services.clock = lambda: 1001.0 + bench.adapter.cache_lifetime_s
    assert session.control.shaper.env().cache.warm_tokens == 0


async def test_an_adapter_without_a_cache_charges_the_full_price(tmp_path: Path) -> None:
    adapter = ScriptedAdapter("first", [])
    adapter.cache_lifetime_s = 0.0
    session = await Bench(tmp_path, adapter).open()
    assert (session.control.shaper.env().cache.read_price, session.control.shaper.env().cache.write_price) == (1.0, 1.0)


@pytest.mark.parametrize(
    ("limits_path", "says", "model", "read_price", "lifetime_s"),
    [
        ("/props", None, "scripted-1", 0.0, math.inf),
        ("/props", True, "scripted-1", 0.0, math.inf),
        ("/api/ps", None, "scripted-1", 0.0, 300.0),  # it unloads its model after five idle minutes
        ("/props", False, "scripted-1", 0.1, 300.0),  # a gateway: forwarded requests are billed
        ("/api/ps", None, "qwen3-coder:480b-cloud", 0.1, 300.0),
    ],
)
async def test_a_users_own_server_costs_time_and_its_cache_does_not_expire(
    tmp_path: Path, limits_path: str, says: bool | None, model: str, read_price: float, lifetime_s: float
) -> None:
    adapter = ScriptedAdapter("first", [])
    adapter.default_model, adapter.runs_itself = model, says
    bench = Bench(tmp_path, adapter)
    entry = AdapterSettings(
        name="first", kind="offline", limits_path=limits_path, base_url="http://localhost:8080", local_server=True
    )
    bench.services.adapters.add(adapter, entry)
    session = await bench.open()
    cache = session.control.shaper.env().cache
    assert (cache.read_price, cache.lifetime_s) == (read_price, lifetime_s)


async def test_a_server_at_a_public_address_is_treated_like_a_provider(tmp_path: Path) -> None:
    """An entry for vLLM may point to a hosted server, which charges for tokens."""
    adapter = ScriptedAdapter("first", [])
    bench = Bench(tmp_path, adapter)
    entry = AdapterSettings(name="first", kind="offline", base_url="https://gpu.example.com", local_server=True)
    bench.services.adapters.add(adapter, entry)
    session = await bench.open()
    cache = session.control.shaper.env().cache
    assert (cache.read_price, cache.lifetime_s) == (READ_PRICE, adapter.cache_lifetime_s)


@pytest.mark.parametrize(
    ("options", "lifetime_s"),
    [
        (MessagesOptions(), 300.0),
        (MessagesOptions(cache_ttl="1h"), 3600.0),
        (MessagesOptions(cache=False), 0.0),
    ],
)
def test_the_messages_api_caches_a_prompt_as_long_as_requested(options: MessagesOptions, lifetime_s: float) -> None:
    settings = AdapterSettings(name="anthropic", kind="anthropic")
    assert AnthropicMessages(settings, lambda sha: b"", options).cache_lifetime_s == lifetime_s
