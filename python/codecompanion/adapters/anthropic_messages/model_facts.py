"""Facts about Claude models: limits and abilities, from the model list, from refusals, or from the name alone.

The model list (`/v1/models`, SDK type `BetaModelInfo`) takes precedence. Names decide only facts that are otherwise
unknown; the tables are from the provider's pages "Models overview" and "Compaction on demand" (2026-11).
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, Literal

import msgspec

from codecompanion.counting.model_windows import ModelLimits
from codecompanion.formats import typed
from codecompanion.formats.outside_text import NOT_READABLE
from codecompanion.formats.regex import regex

Ability = Literal["threshold", "on_demand"]
"""The two forms of compaction: during a request (`compact_20260112`), and on demand (`compaction`)."""
Quirk = Literal["threshold", "on_demand", "cache", "mismatch"]
"""Facts learned from a refusal: the model lacks an ability or support for cache breakpoints, or it requires a field
that allows thinking from a changed conversation to be dropped ("preserved thinking").
"""

_NAME = regex(r"claude-(opus|sonnet|haiku|fable|mythos)-(\d{1,2}(?!\d)|preview)(?:[-.](\d{1,2})(?!\d))?")
_OLD_NAME = regex(r"claude-(\d)(?:[-.](\d))?-(?:opus|sonnet|haiku)")
_FIRST_WITH_COMPACTION = {"opus": (4, 6), "sonnet": (4, 6), "haiku": (5, 5), "fable": (5, 0), "mythos": (0, 0)}
# The default of `max_tokens`. Models before 4.5 refuse prompt + max_tokens above the context window; later ones stop
# when it is full, so their default can be large.
_UNKNOWN_OUTPUT = 8_192
_OLD_OUTPUT = {(3, 0): 4_096, (3, 5): 8_192, (3, 7): 16_384}
_BEFORE_4_5_OUTPUT = 16_384
_OUTPUT = 64_000
_DATE = regex(r"-\d{8}$")


class ModelFacts:
    """The facts about the models of one endpoint."""

    def __init__(self) -> None:
        self._listed: dict[str, _ModelEntry] = {}
        self._quirks: set[tuple[str, Quirk]] = set()

    def read_model_list(self, body: bytes) -> None:
        """Read the response of the Models endpoint; ignore a body that is not a list of models."""
        try:
            model_list = typed.read_json(body, type=_ModelList)
        except NOT_READABLE:
            return
        for entry in model_list.data:
            self._listed[entry.id] = entry
            # An alias without a date refers to the newest model of that name.
            self._listed.setdefault(_DATE.sub("", entry.id), entry)

    def limits(self, model: str) -> ModelLimits | None:
        """Return the model's limits as reported by the endpoint."""
        entry = self._listed.get(model)
        if entry is None or not (entry.max_input_tokens or entry.max_tokens):
            return None
        return ModelLimits(entry.max_input_tokens or 0, entry.max_tokens or 0)

    def learn(self, model: str, quirk: Quirk) -> bool:
        """Record a quirk; return whether it was new."""
        is_news = (model, quirk) not in self._quirks
        self._quirks.add((model, quirk))
        return is_news

    def has_quirk(self, model: str, quirk: Quirk) -> bool:
        """Return whether a refusal has revealed this quirk."""
        return (model, quirk) in self._quirks

    def compacts(self, model: str, ability: Ability) -> bool | None:
        """Return whether the model compacts this way, or None if the list, refusals and name leave it open."""
        if (model, ability) in self._quirks:
            return False
        entry = self._listed.get(model)
        told = entry.supports(ability) if entry is not None else None
        return _new_enough(model) if told is None else told

    def output_limit(self, model: str) -> int:
        """Return `max_tokens` for a request without one."""
        by_name = _output_by_name(model)
        entry = self._listed.get(model)
        told = (entry.max_tokens or 0) if entry is not None else 0
        if by_name and by_name < _OUTPUT:
            return min(by_name, told or by_name)
        return told or by_name or _UNKNOWN_OUTPUT

    def largest_output(self, model: str) -> int:
        """Return the largest `max_tokens` that the endpoint reported for the model, or 0 if it is unknown."""
        entry = self._listed.get(model)
        return (entry.max_tokens or 0) if entry is not None else 0


class _ModelEntry(msgspec.Struct):
    """One model in a list. Fields that a gateway omits stay unknown."""

    id: str
    max_input_tokens: int | None = None
    max_tokens: int | None = None
    capabilities: Any = None

    def supports(self, ability: Ability) -> bool | None:
        if ability == "on_demand":
            return _supported(self.capabilities, "compaction", "summarize")
        return _supported(self.capabilities, "context_management", "compact_20260112")


class _ModelList(msgspec.Struct):
    data: list[_ModelEntry]


def _supported(capabilities: Any, *path: str) -> bool | None:
    """Return whether a capability is supported; if a parent is unsupported, so are its children."""
    at = capabilities
    told: bool | None = None
    for name in path:
        at = at.get(name) if isinstance(at, Mapping) else None
        if not isinstance(at, Mapping) or not isinstance(at.get("supported"), bool):
            return told if told is False else None
        told = at["supported"]
        if not told:
            return False
    return told


def _new_enough(model: str) -> bool | None:
    found = _NAME.search(model)
    if found is None:
        return False if _OLD_NAME.search(model) else None
    return _version(found) >= _FIRST_WITH_COMPACTION[found[1]]


def _output_by_name(model: str) -> int:
    found = _NAME.search(model)
    if found is not None:
        return _OUTPUT if found[2] == "preview" or _version(found) >= (4, 5) else _BEFORE_4_5_OUTPUT
    old = _OLD_NAME.search(model)
    return _OLD_OUTPUT.get((int(old[1]), int(old[2] or 0)), 4_096) if old is not None else 0


def _version(found: re.Match[str]) -> tuple[int, int]:
    return (int(found[2]) if found[2].isdigit() else 0, int(found[3] or 0))
