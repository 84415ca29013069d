"""Reads `--pipeline`, `--strict` and `--hybrid` for code search commands, and the matching job fields."""

from __future__ import annotations

import argparse
from typing import Any, Protocol

import msgspec

from codecompanion import settings
from codecompanion.errors import InputError
from codecompanion.formats import typed
from codecompanion.formats.outside_text import NOT_READABLE
from codecompanion.retrieval.gather_pipeline import (
    DEFAULT,
    DOCUMENT,
    NAMES,
    STRICT,
    PipelineName,
    SearchCascade,
    load_pipeline,
)
from codecompanion.settings_sections import HybridSettings

HYBRID = (
    '{"vector_weight", "text_weight", "top_k", "mmr": {"enabled", "lambda"}, "decay": {"enabled", "half_life_days"}}'
)


class _Asking(Protocol):
    """A job, or its options, with the fields `pipeline` and `strict`."""

    @property
    def pipeline(self) -> str | None: ...

    @property
    def strict(self) -> bool | None: ...


def add_pipeline(parser: argparse.ArgumentParser, default: PipelineName = DEFAULT) -> None:
    """Add the options `--pipeline` and `--strict` to a parser."""
    help_text = f"how code is found and chosen: {' or '.join(NAMES)} (default: {default})"
    parser.add_argument("--pipeline", choices=NAMES, help=help_text)
    parser.add_argument("--strict", action="store_true", help=f"use --pipeline {DOCUMENT} without our additions")


def pipeline_of(
    arguments: argparse.Namespace, *asking: _Asking | None, default: PipelineName = DEFAULT
) -> PipelineName:
    """Return the pipeline named by a job, or else by the command-line arguments.

    `asking`: objects that may set the fields; each field is taken from the first object that sets it.

    Raises:
        InputError: the pipeline does not exist, or `strict` is combined with a pipeline other than the document's.
    """
    places = (*filter(None, asking), arguments)
    pipeline: str | None = next((one.pipeline for one in places if one.pipeline is not None), None)
    strict = next(one.strict for one in places if one.strict is not None)
    if pipeline is not None and pipeline not in NAMES:
        raise InputError(f"pipeline is {pipeline!r}; expected {' or '.join(NAMES)}")
    if strict:
        if pipeline not in (None, DOCUMENT):
            raise InputError(f"strict needs the pipeline {DOCUMENT}, but pipeline is {pipeline!r}")
        return STRICT
    return next((name for name in NAMES if name == pipeline), default)


def hybrid_of(given: dict[str, Any] | str | None, pipeline: PipelineName) -> HybridSettings:
    """Return the hybrid search settings, with defaults for missing keys (R-228).

    Raises:
        InputError: a key or value is invalid, or the pipeline has no hybrid search.
    """
    default = settings.load({}).context.hybrid
    if given is None:
        return default
    if load_pipeline(pipeline).find(SearchCascade) is None:
        raise InputError(f"hybrid: has no effect under pipeline {pipeline}; expected pipeline {DOCUMENT}")
    try:
        asked = typed.read_json(given, type=dict[str, Any]) if isinstance(given, str) else given
        return typed.convert(_merged(msgspec.to_builtins(default), asked), HybridSettings)
    except NOT_READABLE as error:
        raise InputError(f"hybrid: {error}; expected {HYBRID}") from error


def _merged(default: dict[str, Any], given: dict[str, Any]) -> dict[str, Any]:
    both = {name: (default.get(name), value) for name, value in given.items()}
    nested = {
        name: _merged(old, new) for name, (old, new) in both.items() if isinstance(old, dict) and isinstance(new, dict)
    }
    return {**default, **given, **nested}
