"""Determines which models run on the user's own servers, where they cost time instead of money."""

from __future__ import annotations

from codecompanion.adapters.registry import AdapterRegistry
from codecompanion.adapters.speed import NO_SPEED, Speed
from codecompanion.errors import ConfigError


def runs_on_own_server(adapters: AdapterRegistry, adapter: str, model: str) -> bool:
    """Return whether a server on the user's machine or network runs the model, so that it costs time instead of money.

    A local address is not enough, because a gateway (LiteLLM) may pass the request on to a provider that charges for
    it: the server must also name itself in its model list, be recognised, or have an adapter entry for servers that run
    models.
    """
    from codecompanion.adapters.model_list import is_cloud_model
    from codecompanion.adapters.transport.time_limits import is_loopback, is_own_server

    if adapter not in adapters.names():
        return False
    settings = adapters.settings(adapter)
    if not is_own_server(settings) and not is_loopback(settings.base_url):
        return False
    try:
        told = adapters.get(adapter).runs_model_itself(model)
    except ConfigError:  # reported where the adapter is used
        told = None
    runs = settings.local_server if told is None else told
    return runs and not is_cloud_model(model)


def speed_of(adapters: AdapterRegistry, adapter: str, model: str) -> Speed:
    """Return the recent speed of a model on the user's own server."""
    is_asked = adapter in adapters.names() and adapters.is_made(adapter)
    is_timed = is_asked and runs_on_own_server(adapters, adapter, model)
    return adapters.get(adapter).speed(model) if is_timed else NO_SPEED
