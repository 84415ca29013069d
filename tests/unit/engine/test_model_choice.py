"""The list of selectable models, and the reasons why others are missing."""

from __future__ import annotations

from pathlib import Path

import msgspec

from codecompanion.adapters.base import AdapterSettings
from codecompanion.adapters.registry import AdapterRegistry
from codecompanion.engine.model_choice import list_models
from tests.unit.session.fakes import Bench, ScriptedAdapter


def settings(name: str, key: str, models: tuple[str, ...]) -> AdapterSettings:
    """Return an adapter whose models are named in the configuration."""
    return AdapterSettings(name=name, kind="openai_compatible", base_url="https://x.test/v1", key=key, models=models)


async def test_models_without_a_key_are_not_offered(tmp_path: Path) -> None:
    """A built-in list of models does not mean that they are usable: the key is checked as well."""
    entries = {name: settings(name, f"{name.upper()}_KEY", ("large", "small")) for name in ("here", "gone")}
    entries["server"] = AdapterSettings(name="server", kind="openai_compatible", base_url="http://u:p@127.0.0.1:1/v1")
    of_vertex = {"kind": "anthropic", "transport": "sdk", "client": "vertex", "key": ""}
    entries["vertex"] = msgspec.structs.replace(entries["here"], name="vertex", **of_vertex)
    entries["cloud"] = msgspec.structs.replace(entries["here"], name="cloud", base_url="nowhere")
    registry = AdapterRegistry(
        entries,
        read_blob=lambda sha: b"",
        summarise=lambda messages, limit: "",
        environ={"HERE_KEY": "planted_01234"},
    )
    bench = Bench(tmp_path, ScriptedAdapter("s", []))
    services = msgspec.structs.replace(bench.services, adapters=registry)
    cloud, gone, here, server, vertex = sorted(await list_models(services, ""), key=lambda one: one["adapter"])
    assert [model["name"] for model in here["models"]] == ["large", "small"]
    assert here["problem"] == ""
    assert gone["models"] == []
    assert gone["brief"] == "GONE_KEY is not set"
    assert server["brief"] == "local server, not running at 127.0.0.1:1"
    assert vertex["brief"] == "opts.region is not set; expected a region here or in CLOUD_ML_REGION"
    assert cloud["brief"] == 'url: got "nowhere"; expected http://… or https://…'
