"""State while converting an entry to `AdapterSettings`: the editor's data, the fields so far, the mistakes."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

import msgspec

from codecompanion.formats.regex import regex

_REFERENCE = regex(r"\$\{(\w+)\}", re.ASCII)


class Entry(msgspec.Struct, frozen=True, kw_only=True):
    """An entry as sent by the editor, with merged layers and evaluated functions.

    `builtin` is the adapter it is based on. `url` is "" for an invalid URL, or None for the built-in one. `env` has the
    required values, never a key; `key` says where the key is, or is None for the built-in source. `headers`,
    `parameters`, `schema` and `opts` are the user's own.
    """

    builtin: str
    formatted_name: str = ""
    url: str | None = None
    key: str | None = None
    env: Any = ()
    headers: Any = ()
    parameters: Any = ()
    schema: Any = ()
    opts: Any = ()


class Draft(msgspec.Struct):
    """An adapter's fields so far (`settings`), and a message with a key path for each mistake.

    `windows`: the context window of each model in tokens, from `schema.model.choices`.
    """

    name: str
    entry: Entry
    settings: dict[str, Any]
    env: Mapping[str, str]
    mistakes: list[str] = []
    windows: dict[str, int] = {}

    @property
    def kind(self) -> str:
        """Return the kind of the adapter."""
        return str(self.settings["kind"])

    def problem(self, key: str, text: str) -> None:
        """Record a mistake; `key` is its key path within the entry."""
        self.mistakes.append(f"adapters.http.{self.name}.{key}: {text}")

    def interpolate(self, template: str, key: str) -> str:
        """Replace references in the text with values from `env`, except `${api_key}`, which the request fills in."""

        def value(reference: re.Match[str]) -> str:
            name = reference[1]
            if name in self.env:
                return self.env[name]
            if name != "api_key":
                self.problem(key, f"{reference[0]} is not in env")
            return reference[0]

        return _REFERENCE.sub(value, template)
