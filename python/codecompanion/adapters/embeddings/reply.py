"""Reads vectors from the response of `/v1/embeddings`, and checks their number, order, sizes and values.

https://platform.openai.com/docs/api-reference/embeddings: `{"data": [{"index", "embedding": [number…] | base64}]}`. The
entries may be in any order; `index` is the position of the input. Servers that omit `index` keep the order of the
inputs.
"""

from __future__ import annotations

import base64
import binascii
import sys
from array import array
from collections.abc import Mapping, Sequence

from codecompanion.adapters.errors.error_body import decode_body
from codecompanion.errors import MalformedReply
from codecompanion.formats.byte_limits import MAX_JSON_VALUES
from codecompanion.model.embedding import Vector, unit_vector


class WrongVectors(MalformedReply):
    """Raised if the response has no vectors for these inputs; its message does not name the endpoint yet."""


def read_vectors(body: bytes, count: int) -> list[Vector]:
    """Return the vectors of `count` inputs, in the order of the inputs; a vector with invalid numbers is empty.

    Raises:
        WrongVectors: the response is invalid.
    """
    reply = decode_body(body, MAX_JSON_VALUES)
    entries = reply.get("data") if isinstance(reply, Mapping) else None
    if not isinstance(entries, list) or not all(isinstance(entry, Mapping) for entry in entries):
        raise WrongVectors("the answer contains no list of vectors; expected the format of /v1/embeddings")
    if len(entries) != count:
        raise WrongVectors(f"{len(entries)} vectors were returned for {count} texts")
    vectors: list[Vector | None] = [None] * count
    for position, entry in enumerate(entries):
        index = entry.get("index", position)
        if not isinstance(index, int) or not 0 <= index < count or vectors[index] is not None:
            raise WrongVectors(f"the index of a vector is invalid or repeated ({str(index)[:20]} of {count})")
        vectors[index] = unit_vector(_numbers(entry.get("embedding")))
    return [vector for vector in vectors if vector is not None]


def _numbers(embedding: object) -> Sequence[float]:
    if isinstance(embedding, str):
        try:
            packed = base64.b64decode(embedding, validate=True)
            numbers = array("f", packed)
        except (binascii.Error, ValueError):
            raise WrongVectors("a vector is neither a list of numbers nor base64-encoded float32") from None
        if sys.byteorder == "big":
            numbers.byteswap()
        return numbers
    if isinstance(embedding, list) and len(embedding) == 1 and isinstance(embedding[0], list):
        # llama.cpp's older route wraps the vector of a pooled model in a list.
        embedding = embedding[0]
    if not isinstance(embedding, list):
        raise WrongVectors("a vector is neither a list of numbers nor base64-encoded float32")
    if embedding and isinstance(embedding[0], list):
        raise WrongVectors("one vector per token was returned; start the server with pooling, such as --pooling mean")
    # servers write null for NaN and infinity
    numbers_or_none = [0.0 if number is None else number for number in embedding]
    if not all(isinstance(number, int | float) for number in numbers_or_none):
        raise WrongVectors("a vector contains a value that is not a number")
    return [] if None in embedding else numbers_or_none
