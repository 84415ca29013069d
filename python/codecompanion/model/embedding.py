"""Defines the interface and settings of embedding models (R-232, R-239).

A vector is float32 and of length 1 (so the cosine is a dot product), or empty if the text was blank or the model
returned nothing usable. Vectors of different embedders, distinguished by `Embedder.name`, are never compared.
"""

from __future__ import annotations

import math
from array import array
from collections.abc import Iterable, Sequence
from operator import mul
from typing import TYPE_CHECKING, Protocol

import msgspec

if TYPE_CHECKING:
    Vector = array[float]
else:
    Vector = array


class EmbeddingSettings(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The settings for creating vectors, by an endpoint (`url`, `model`) or by a model on disk (`onnx`).

    No vectors are created without either. `url`: the URL of an OpenAI-compatible endpoint. `key`: the source of the
    key, as in an adapter's entry (`ENV_NAME`, `cmd:…`, `file:…`, or "" for none). `onnx`: a folder with `model.onnx`
    and `tokenizer.json`. `dimensions`: 0 for the model's default. The prefixes precede a question and a code chunk;
    None for those that the model's authors specify.
    """

    url: str = ""
    model: str = ""
    key: str = ""
    onnx: str = ""
    dimensions: int = 0
    query_prefix: str | None = None
    document_prefix: str | None = None

    @property
    def is_set(self) -> bool:
        """Return whether an endpoint or a model on disk is configured."""
        return bool(self.url or self.onnx)


class QuestionEmbedder(Protocol):
    """A model that embeds questions. `name` identifies it in caches; equal names mean comparable vectors."""

    name: str

    async def embed_query(self, text: str) -> Vector:
        """Return the vector of a question, or an empty vector for a blank question.

        Raises:
            AdapterError: the vector could not be created; the message is one sentence for the user.
        """
        ...

    async def aclose(self) -> None:
        """Close connections and release the model."""
        ...


class Embedder(QuestionEmbedder, Protocol):
    """An embedding model that also embeds code chunks.

    `is_paid`: its use may be billed, so a large run is announced. `shortened`: the number of inputs truncated to the
    model's limit; `unusable`: the number of inputs without a usable vector.
    """

    is_paid: bool
    shortened: int
    unusable: int

    @property
    def batch_size(self) -> int:
        """Return how many inputs to send at once; it may shrink while an endpoint's limits are being found."""
        ...

    async def embed(self, texts: Sequence[str]) -> list[Vector]:
        """Return the vectors of code chunks in order, with an empty vector for a blank chunk.

        Raises:
            AdapterError: no vectors could be created for any of the chunks; the message is one sentence for the user.
        """
        ...


def unit_vector(numbers: Iterable[float]) -> Vector:
    """Return the numbers scaled to length 1; empty if there are none, all are 0, or one is not finite (R-232)."""
    try:
        vector = array("f", numbers)
    except OverflowError:
        return array("f")
    length = math.sqrt(sum(map(mul, vector, vector)))
    if not length or not math.isfinite(length):
        return array("f")
    return array("f", [number / length for number in vector])
