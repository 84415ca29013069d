"""Creates the adapters of the command line: the built-in entries with their defaults, and keys from the environment."""

from __future__ import annotations

from codecompanion import settings
from codecompanion.adapters.registry import AdapterRegistry, read_settings
from codecompanion.cli.environment import user_environment
from codecompanion.context.ledger.ledger import summarise
from codecompanion.counting import tokens
from codecompanion.errors import InputError


def make_registry() -> AdapterRegistry:
    """Return a registry with the default settings; its adapters cannot read the images of stored chats."""
    return AdapterRegistry(
        read_settings(settings.load({}).adapters),
        read_blob=_no_blob,
        summarise=lambda messages, limit: summarise(messages, limit, tokens.estimate_text),
        environ=user_environment(),
    )


def _no_blob(sha256: str) -> bytes:
    raise InputError(f"the image {sha256} is not stored here")
