"""Parsing and validating the answer of `/v1/embeddings` (R-232, R-239)."""

from __future__ import annotations

import base64
import json
import math
from array import array
from typing import Any

import pytest

from codecompanion.adapters.embeddings.prefixes import prefixes_of
from codecompanion.adapters.embeddings.reply import WrongVectors, read_vectors
from codecompanion.model.embedding import EmbeddingSettings, unit_vector


def body(*entries: Any) -> bytes:
    return json.dumps({"object": "list", "data": list(entries)}).encode()


def entry(index: int, embedding: Any) -> dict[str, Any]:
    return {"object": "embedding", "index": index, "embedding": embedding}


def test_vectors_are_in_the_order_of_the_texts_and_have_length_one() -> None:
    first, second = read_vectors(body(entry(1, [0, 5]), entry(0, [3, 4])), 2)
    assert list(first) == pytest.approx([0.6, 0.8])
    assert list(second) == [0, 1]
    assert first.typecode == "f"


def test_an_unnumbered_answer_is_in_order() -> None:
    first, second = read_vectors(body({"embedding": [1.0, 0.0]}, {"embedding": [0.0, 1.0]}), 2)
    assert (list(first), list(second)) == ([1, 0], [0, 1])


def test_base64_of_float32_is_read() -> None:
    packed = base64.b64encode(array("f", [3, 4]).tobytes()).decode()
    assert list(read_vectors(body(entry(0, packed)), 1)[0]) == pytest.approx([0.6, 0.8])


def test_a_vector_in_a_list_of_one_token_is_read() -> None:
    assert list(read_vectors(body(entry(0, [[3, 4]])), 1)[0]) == pytest.approx([0.6, 0.8])


@pytest.mark.parametrize(
    "numbers", ["[0.0, 0.0]", "[]", "[NaN, 1.0]", "[Infinity, 1.0]", "[null, 1.0]", "[1e300, 1.0]"]
)
def test_unusable_numbers_yield_an_empty_vector(numbers: str) -> None:
    """R-232: a vector with zero norm yields none; llama.cpp and Ollama write NaN when a model overflows."""
    payload = f'{{"data": [{{"index": 0, "embedding": {numbers}}}]}}'.encode()
    assert list(read_vectors(payload, 1)[0]) == []


@pytest.mark.parametrize(
    ("payload", "said"),
    [
        (b"<html>Log in</html>", "no list of vectors"),
        (b'{"embeddings": [[1.0]]}', "no list of vectors"),
        (b"[]", "no list of vectors"),
        (body(entry(0, [1.0])), "1 vectors were returned for 2 texts"),
        (body(entry(0, [1.0]), entry(0, [1.0])), "invalid or repeated (0 of 2)"),
        (body(entry(0, [1.0]), entry(7, [1.0])), "the index of a vector is invalid or repeated (7 of 2)"),
        (body(entry(0, [1.0]), entry(-1, [1.0])), "invalid or repeated (-1 of 2)"),
        (body(entry(0, "!!"), entry(1, [1.0])), "neither a list of numbers nor base64"),
        (body(entry(0, base64.b64encode(b"abc").decode()), entry(1, [1.0])), "neither a list of numbers nor base64"),
        (body(entry(0, None), entry(1, [1.0])), "neither a list of numbers nor base64"),
        (body(entry(0, ["x"]), entry(1, [1.0])), "a value that is not a number"),
        (body(entry(0, [[1.0], [2.0]]), entry(1, [1.0])), "--pooling mean"),
    ],
)
def test_an_answer_that_does_not_match_the_texts_is_refused(payload: bytes, said: str) -> None:
    with pytest.raises(WrongVectors) as caught:
        read_vectors(payload, 2)
    assert said in str(caught.value)


def test_a_unit_vector_has_length_one() -> None:
    assert math.hypot(*unit_vector(range(1, 400))) == pytest.approx(1, abs=1e-5)
    assert not unit_vector([10**400])


def test_the_makers_prefixes_are_known_and_the_users_take_precedence() -> None:
    settings = EmbeddingSettings(url="http://a.test", model="nomic-embed-text:v1.5")
    assert prefixes_of(settings, settings.model) == ("search_query: ", "search_document: ")
    assert prefixes_of(settings, "all-minilm") == ("", "")
    own = EmbeddingSettings(url="http://a.test", model="nomic-embed-text", query_prefix="")
    assert prefixes_of(own, own.model) == ("", "search_document: ")
