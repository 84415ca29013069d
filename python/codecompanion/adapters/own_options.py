"""The options that only one kind of adapter has, read from an entry by the struct that lists them."""

from __future__ import annotations

from typing import TypeVar

import msgspec

from codecompanion.adapters.base import AdapterSettings
from codecompanion.errors import ConfigError

T = TypeVar("T", bound=msgspec.Struct)


def options_of(settings: AdapterSettings, kind: type[T]) -> T:
    """Return the entry's options as the struct of its kind.

    Raises:
        ConfigError: there is another one, or one of another type; names its path and what is known.
    """
    try:
        return msgspec.convert(settings.options, kind)
    except msgspec.ValidationError as error:
        problem, _, place = str(error).partition(" - at ")
        expected = f"the options {', '.join(kind.__struct_fields__)}"
        raise ConfigError(f"adapters.http.{settings.name}.opts{place.strip('`$')}", problem, expected) from None
