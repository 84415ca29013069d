"""Which models run on servers of the user's own: they send no bill, what they cost is time."""

from __future__ import annotations

from codecompanion.adapters.registry import AdapterRegistry
from codecompanion.adapters.speed import NO_SPEED, Speed
from codecompanion.errors import ConfigError


def is_local(adapters: AdapterRegistry, adapter: str, model: str) -> bool:
    """Return whether this machine runs the model, so that a model without a price costs nothing.

    A loopback address is not enough: a gateway (LiteLLM) may pass the request on to a provider that bills. It takes
    a listing in which the server names itself, or an entry written for a server that runs models.
    """
    from codecompanion.adapters.transport.time_limits import is_loopback

    if adapter not in adapters.names() or not is_loopback(adapters.settings(adapter).base_url):
        return False
    return _runs_model(adapters, adapter, model)


def runs_on_own_server(adapters: AdapterRegistry, adapter: str, model: str) -> bool:
    """Return whether a server on the user's machine or network runs the model."""
    from codecompanion.adapters.transport.time_limits import is_own_server

    if adapter not in adapters.names() or not is_own_server(adapters.settings(adapter)):
        return False
    return _runs_model(adapters, adapter, model)


def speed_of(adapters: AdapterRegistry, adapter: str, model: str) -> Speed:
    """Return how fast a server of the user's own was of late."""
    is_asked = adapter in adapters.names() and adapters.is_made(adapter)
    is_timed = is_asked and runs_on_own_server(adapters, adapter, model)
    return adapters.get(adapter).speed(model) if is_timed else NO_SPEED


def _runs_model(adapters: AdapterRegistry, adapter: str, model: str) -> bool:
    """Return whether the server runs the model: by its listing, or else because its entry is for one that does."""
    from codecompanion.adapters.model_list import is_cloud_model

    try:
        told = adapters.get(adapter).runs_model_itself(model)
    except ConfigError:  # said where the adapter is used
        told = None
    runs = adapters.settings(adapter).local_server if told is None else told
    return runs and not is_cloud_model(model)
