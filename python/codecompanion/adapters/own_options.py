"""Checks the parts of an entry that depend on the kind of adapter: its options, and reserved parameters."""

from __future__ import annotations

from collections.abc import Set
from typing import TypeVar

import msgspec

from codecompanion.adapters.base import AdapterSettings
from codecompanion.errors import ConfigError
from codecompanion.formats import typed

T = TypeVar("T", bound=msgspec.Struct)


def options_of(settings: AdapterSettings, kind: type[T]) -> T:
    """Convert the entry's options to the struct for its kind.

    Raises:
        ConfigError: an option is unknown or has the wrong type; the message names its path and the known options.
    """
    try:
        return typed.convert(settings.options, kind)
    except msgspec.ValidationError as error:
        problem, _, place = str(error).partition(" - at ")
        expected = f"the options {', '.join(kind.__struct_fields__)}"
        raise ConfigError(f"adapters.http.{settings.name}.opts{place.strip('`$')}", problem, expected) from None


def refuse_reserved(settings: AdapterSettings, reserved: Set[str]) -> None:
    """Refuse an entry whose `parameters` include one that the request itself sets.

    Raises:
        ConfigError: there is such a parameter; the message names the first.
    """
    for name in sorted(reserved & set(settings.parameters)):
        path = f"adapters.http.{settings.name}.parameters.{name}"
        raise ConfigError(path, "is set by the request itself", "another parameter")
