"""The card of a local server: its model, missing features, and advice."""

from __future__ import annotations

from pathlib import Path

import msgspec
import pytest

from codecompanion.adapters.base import AdapterSettings
from codecompanion.adapters.server_facts import ServerFacts
from codecompanion.adapters.speed import Speed
from codecompanion.engine.model_choice import list_models
from codecompanion.engine.server_card import advise, brief_card, card, server_cards, server_findings
from tests.unit.session.fakes import Bench, ScriptedAdapter

LLAMA_CPP = AdapterSettings(name="l", kind="openai_compatible", limits_path="/props", local_server=True)
FACTS = ServerFacts(window=4096, slots=4, tools=True, images=False, model="smol.gguf", version="b1")


def test_a_card_shows_the_known_facts_in_one_line() -> None:
    """Facts not reported by the server are omitted."""
    assert card(FACTS, "m", 2_700) == (
        "smol.gguf · window of 4,096 tokens · 4 slots · tools take about 2,700 · no images · b1"
    )
    assert card(FACTS, "m", 0, Speed(930.4, 41.2)).endswith(" · no images · reads 930, writes 41 tokens/s · b1")
    sleeping = ServerFacts(state="sleeping", tools=False)
    assert card(sleeping, "m", 0) == "m · sleeping · window unknown until the model is loaded · no tools"
    assert brief_card(sleeping) == "sleeping · no tools"
    assert brief_card(ServerFacts(images=True, tools=True)) == "images"


@pytest.mark.parametrize(
    ("path", "window", "tools", "way"),
    [
        ("/props", 4_096, 2_700, "restart the server with -c 16384"),
        ("/props", 2_048, 2_700, "restart the server with -c 16384"),
        ("/api/ps", 4_096, 2_700, "start Ollama with OLLAMA_CONTEXT_LENGTH=16384"),
        ("/v1/models", 8_192, 30_000, "give the server a window of 131,072 tokens"),
        *[("/props", window, 2_700, "") for window in (0, 16_384, 1_000_000)],
    ],
)
def test_advice_matches_the_server_and_its_window(path: str, window: int, tools: int, way: str) -> None:
    """The advice names the server's own option for a larger window."""
    settings = msgspec.structs.replace(LLAMA_CPP, limits_path=path)
    sizes = f"All tools together take {tools:,} tokens of a window of {window:,}"
    assert advise(ServerFacts(window=window), settings, tools) == (way and f"{sizes}: {way}, or offer fewer tools")


def test_a_window_divided_among_slots_is_explained() -> None:
    """llama.cpp gives each slot a part of `-c`, unless it is started with another option."""
    assert "restart the server with -c 16384 --kv-unified, or" in advise(FACTS, LLAMA_CPP, 2_700)


def test_a_model_without_tools_is_reported_with_the_reason() -> None:
    """A refusal by the server takes precedence over its template."""
    assert "the model's chat template does not support them" in advise(ServerFacts(tools=False), LLAMA_CPP, 0)
    refused = ServerFacts(tools=False, refuses_tools="the server was started without --jinja")
    assert advise(refused, LLAMA_CPP, 0).startswith("No tools are sent: the server was started without --jinja.")


def test_a_configured_window_larger_than_the_servers_is_reported() -> None:
    """The user's setting applies, and every long prompt would be refused."""
    settings = msgspec.structs.replace(LLAMA_CPP, context_window=32_768)
    assert advise(FACTS, settings, 0) == "opts.context_window is 32,768, larger than the server's window: remove it"
    assert advise(FACTS, msgspec.structs.replace(LLAMA_CPP, context_window=2_048), 0) == ""


async def test_the_health_check_and_the_list_of_models_show_it(tmp_path: Path) -> None:
    """The card is shown for servers that have reported facts; no server is asked for it."""
    adapter = ScriptedAdapter("s", [])
    bench = Bench(tmp_path, adapter)
    assert server_findings(bench.services) == []
    bench.services.adapters.add(adapter, msgspec.structs.replace(LLAMA_CPP, name="s"))
    assert server_findings(bench.services) == []
    adapter.told = msgspec.structs.replace(FACTS, window=1_024)
    (finding,) = server_findings(bench.services)
    assert finding.name == "server s"
    assert finding.text.startswith("smol.gguf · window of 1,024 tokens · 4 slots · tools take about ")
    assert "restart the server with -c " in finding.advice
    adapter.told = msgspec.structs.replace(FACTS, tools=False)
    ((found),) = await list_models(bench.services, "s")
    assert found["models"] == [{"name": "scripted-1", "window": 4096, "about": "no tools"}]


async def test_the_list_of_adapters_has_the_cards_of_servers_that_report_something(tmp_path: Path) -> None:
    """The card includes the state of a model that is loading; an adapter that is not configured has none."""
    adapter = ScriptedAdapter("s", [])
    bench = Bench(tmp_path, adapter)
    assert await server_cards(bench.services, ["s", "nobody"]) == []
    adapter.told = ServerFacts(window=4_096, tools=False, state="loading")
    (found,) = await server_cards(bench.services, ["s", "nobody"])
    assert found["adapter"] == "s"
    assert found["text"] == "scripted-1 · loading · window of 4,096 tokens · no tools"
    assert found["advice"].startswith("No tools are sent: ")
