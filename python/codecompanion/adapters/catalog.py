"""Looks up context windows and prices of models in the data of the package genai-prices.

Importing the package takes 0.36 s of CPU; answers are cached, on disk too for later hosts (`found_models`). The
network is never used. Models on this machine or network are deliberately ignored: a local server's loaded window
(Ollama's `num_ctx`) is not the model's maximum, and trusting the table would let the server truncate prompts silently
(lesson 30). Only the context windows in providers' documents apply everywhere: a model has the same window through a
local proxy.
"""

from __future__ import annotations

import ipaddress
import logging
from functools import cache
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from codecompanion.adapters.found_models import FoundModels, ModelFacts, read_found
from codecompanion.counting.model_windows import ModelLimits, documented_window, find_window
from codecompanion.model.messages import Usage

_log = logging.getLogger(__name__)
_SAME_HOST = {"api.together.ai": "https://api.together.xyz"}
"""Host → the older URL under which the table lists it."""
_COPILOT = ".githubcopilot.com"
"""Domain of Copilot's hosts. Business and Enterprise have their own hosts, with the same models and windows."""
_NO_PRICES = frozenset(["api.tokenfactory.nebius.com"])
"""Hosts of open models whose prices are missing from the table; another host's prices would be wrong."""

_found = FoundModels("")
_file: Path | None = None


def keep_in(folder: Path) -> None:
    """Store lookup results in this folder for later hosts, and load the existing ones from one file."""
    global _found, _file
    _file = folder / "models.json"
    _found = read_found(_file)
    lookup.cache_clear()


def price_usd(facts: ModelFacts, *passes: Usage) -> float | None:
    """Return the total cost of calls with these usages in US dollars, or None if the table lacks a price."""
    prices = [_price(facts.provider, facts.model, usage) for usage in passes]
    return None if None in prices else sum(price for price in prices if price is not None)


@cache
def lookup(provider_hint: str, model: str) -> ModelFacts | None:
    """Return the facts about a model. `provider_hint` is the endpoint's URL, or "".

    If the table does not contain the URL (a gateway), the model is looked up by name.
    """
    if not model or _is_local(provider_hint):
        return None
    known = _found.get(provider_hint, model)
    return known[0] if known else _look_up(provider_hint, model)


def keep(address: str, model: str) -> None:
    """Store the lookup result for a model for later hosts."""
    if _file is not None and model and not _is_local(address):
        _found.add(_file, address, model, lookup(address, model))


def _look_up(provider_hint: str, model: str) -> ModelFacts | None:
    host = urlsplit(provider_hint).hostname or ""
    known_as = "https://api" + _COPILOT if host.endswith(_COPILOT) else _SAME_HOST.get(host, provider_hint)
    if host.startswith("bedrock-mantle."):
        known_as = "https://bedrock-runtime.us-east-1.amazonaws.com"  # the same models at another address
    found = _find(known_as or None, model)
    if found is None and provider_hint:
        found = _find(None, model)
    if found is None and "/" in model:
        # Gateways put the vendor before the name.
        found = _find(None, model.rpartition("/")[2])
    if found is None:
        return None
    provider, info = found
    priced_by = "" if host in _NO_PRICES else provider.id
    # Some of the table's own names do not match their entry (all of Fireworks).
    named = info.id if _find(None, info.id, provider.id) else model
    return ModelFacts(provider=priced_by, model=named, context_window=info.context_window or 0)


def limits_of(address: str, model: str) -> ModelLimits | None:
    """Return the documented limits of a model at a URL, else those in the table (R-104…R-106).

    Documented limits do not depend on the URL; a server's own report takes precedence (`resolve_limits`). The table has
    rounded values: 1,000,000 for Gemini 2.0, where the documents (and Google) have 1,048,576.
    """
    window = documented_window(model)
    if not window and model and not _is_local(address):
        facts = lookup(address, model)
        window = (facts.context_window if facts else 0) or find_window(model)
    return ModelLimits(window) if window else None


def table_name() -> str:
    """Return the name and version of the price table."""
    from importlib.metadata import version

    return f"genai-prices {version('genai-prices')}"


def _find(address: str | None, model: str, provider: str | None = None) -> tuple[Any, Any] | None:
    from genai_prices.data_snapshot import get_snapshot

    try:
        return get_snapshot().find_provider_model(model, None, provider, address)
    except LookupError:
        return None


def _price(provider: str, model: str, usage: Usage) -> float | None:
    if not provider:
        return None
    import genai_prices

    counts = genai_prices.Usage(
        input_tokens=usage.prompt_tokens,
        output_tokens=usage.output_tokens,
        cache_read_tokens=usage.cache_read_tokens,
        cache_write_tokens=usage.cache_write_tokens,
    )
    try:
        return float(genai_prices.calc_price(counts, model, provider_id=provider).total_price)
    except (LookupError, ValueError) as error:
        _log.debug("no price for %s/%s: %s", provider, model, error)
        return None


def _is_local(address: str) -> bool:
    host = urlsplit(address).hostname or ""
    if host == "localhost" or host.endswith((".localhost", ".local", ".internal", ".lan")):
        return True
    try:
        ip = ipaddress.ip_address(host)
    except ValueError:
        return False
    return ip.is_private or ip.is_loopback
