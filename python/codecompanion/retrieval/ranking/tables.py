"""The data of ranking, read once: weights, words of questions, kinds of files (TOML beside the code)."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from typing import Any

import msgspec

from codecompanion.formats import typed
from codecompanion.formats.package_table import package_table


class Weights(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """How much each signal counts in the joined score; fitted, see `weights.toml`."""

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
    """How hits become the signal `chunk`: column weights, shares of a file's best chunks, rows read.

    `cosine`: its weight beside BM25, both scaled to 0..1.
    """

    path_column: float
    symbol_column: float
    text_column: float
    cosine: float
    shares: tuple[float, ...]
    rows: int


class PlaceOptions(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """How a place is scored beyond its words (best BM25 = 1), for a file with several places.

    `edited`: its lines were changed recently; `edited_like`: by a commit whose subject is similar to the question.
    `document`: share of its score that a place in a document keeps, unless documents are asked for.
    """

    edited: float
    edited_like: float
    document: float


class Ranking(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """All of `weights.toml`."""

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
