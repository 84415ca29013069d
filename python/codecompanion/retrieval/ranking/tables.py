"""Reads the data for ranking once: weights, question words, file types (TOML files next to the code)."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from typing import Any

import msgspec

from codecompanion.formats import typed
from codecompanion.formats.package_table import package_table


class Weights(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The weight of each signal in the joined score; fitted, see `weights.toml`."""

    chunk: float
    path: float
    prefix: float
    mention: float
    named: float
    symbol: float
    used_by: float
    uses: float
    subject: float
    commits: float
    recency: float
    vector: float
    in_play: float
    document: float
    example: float
    test: float
    asked_test: float


class ChunkOptions(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Settings for computing the `chunk` signal: column weights, weights of a file's best chunks, rows read.

    `cosine`: the weight of the cosine relative to BM25, both scaled to 0..1.
    """

    path_column: float
    symbol_column: float
    text_column: float
    cosine: float
    shares: tuple[float, ...]
    rows: int


class PlaceOptions(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Settings for the parts of a place's score other than its words (best BM25 = 1), in a file with several places.

    `edited`: added for recently changed lines; `edited_like`: added for lines changed by a commit with a subject
    similar to the question. `document`: the factor for places in documents, unless the question asks about documents.
    """

    edited: float
    edited_like: float
    document: float


class Ranking(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The content of `weights.toml`."""

    weights: Weights
    chunk: ChunkOptions
    place: PlaceOptions


@cache
def ranking() -> Ranking:
    """Return the fitted weights."""
    return typed.convert(_table("weights"), Ranking)


@cache
def question_words() -> Mapping[str, frozenset[str]]:
    """Return the words of `question_words.toml` by group."""
    return {name: frozenset(words.split()) for name, words in _table("question_words").items()}


@cache
def file_kinds() -> Mapping[str, frozenset[str]]:
    """Return the words of `file_kinds.toml` by group."""
    return {name: frozenset(words.split()) for name, words in _table("file_kinds").items()}


def _table(name: str) -> dict[str, Any]:
    return package_table(f"retrieval/ranking/{name}.toml")
