"""Lists the models that the user may choose (`ga`): the configured ones, else those that each endpoint lists."""

from __future__ import annotations

import asyncio
from typing import Any
from urllib.parse import urlsplit

from codecompanion.adapters.base import AdapterSettings
from codecompanion.adapters.registry import is_out_of_reach
from codecompanion.engine.server_card import brief_card
from codecompanion.errors import AdapterError, CodeCompanionError, ConfigError, NetworkFailed
from codecompanion.session.services import Services


async def list_models(services: Services, adapter: str) -> list[dict[str, Any]]:
    """Return `[{adapter, models: [{name, window, about}], problem, brief}]`, even for adapters that do not respond.

    `about`: a local server's facts about the model, in a few words.
    """
    names = [adapter] if adapter else services.adapters.names()
    return list(await asyncio.gather(*(_models_of(services, name) for name in names)))


async def _models_of(services: Services, name: str) -> dict[str, Any]:
    registry = services.adapters
    entry = registry.settings(name)
    problem, known = "", list(entry.models)
    try:
        registry.check(name)
        async with asyncio.timeout(5):
            if known:
                await registry.get(name).require_key()  # the configured list is useless without a key
            else:
                known = await registry.get(name).list_models()
    except (CodeCompanionError, TimeoutError) as error:
        problem = str(error) or f"{name} did not answer within 5 s"
        if is_out_of_reach(entry, error):
            return {"adapter": name, "models": [], "problem": problem, "brief": _brief(entry, error)}
    default = entry.model
    if default and default not in known:
        known.insert(0, default)
    return {
        "adapter": name,
        "models": [_row(services, name, model) for model in known],
        "problem": problem,
        "brief": "",
    }


def _row(services: Services, name: str, model: str) -> dict[str, Any]:
    window, adapter = services.limits(name, model, 0).context_window, services.adapters.get(name)
    return {"name": model, "window": window, "about": brief_card(adapter.facts(model))}


def _brief(entry: AdapterSettings, error: BaseException) -> str:
    """Return a short reason why an adapter cannot be used, for display in a list."""
    if isinstance(error, NetworkFailed) and error.nobody_listens:
        return f"local server, not running at {urlsplit(entry.base_url).netloc.rpartition('@')[2]}"
    if isinstance(error, AdapterError):
        return error.brief
    if isinstance(error, ConfigError):
        advice = f"; expected {error.expected}" if error.expected else ""
        colon = "" if error.problem.startswith("is ") else ":"
        return f"{error.key.removeprefix(f'adapters.http.{entry.name}.')}{colon} {error.problem}{advice}"
    return str(error)
