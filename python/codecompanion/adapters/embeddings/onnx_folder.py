"""Reads a folder with an embedding model for onnxruntime: its files and their settings (R-239).

Only the files model.onnx and tokenizer.json are required. Other files that sentence-transformers writes are read if
they exist; they contain the maximum text length, the pooling mode and the query prefix.
"""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Literal

import msgspec

from codecompanion.errors import NotConfigured
from codecompanion.formats.outside_text import NOT_READABLE

_MODELS = ("model.onnx", "onnx/model.onnx", "model_quantized.onnx", "onnx/model_quantized.onnx")
_SAMPLE_BYTES = 65_536
_MAX_JSON_BYTES = 64_000_000
DEFAULT_TOKENS = 256
"""Default maximum of tokens in an input. Code is split into chunks of about this size."""
MAX_TOKENS = 512
"""Maximum tokens in an input: cost grows with length, and the start of a chunk matters most for search."""


class OnnxFolder(msgspec.Struct, frozen=True):
    """A model's files and settings. `digest` distinguishes models; it does not change when the folder moves."""

    model: Path
    tokenizer: Path
    digest: str
    max_tokens: int = DEFAULT_TOKENS
    pooling: Literal["mean", "first", "last"] = "mean"
    query_prefix: str = ""
    document_prefix: str = ""


def read_folder(name: str) -> OnnxFolder:
    """Return the model in the folder.

    Raises:
        NotConfigured: the folder contains no model; the message names the expected files.
    """
    try:
        folder = Path(name).expanduser()
        model = next((folder / one for one in _MODELS if (folder / one).is_file()), None)
        tokenizer = folder / "tokenizer.json"
        missing = [
            file for file, is_there in (("model.onnx", model), ("tokenizer.json", tokenizer.is_file())) if not is_there
        ]
        if model is None or missing:
            what = "there is no such folder" if not folder.is_dir() else f"{' and '.join(missing)} missing"
            raise NotConfigured(
                f"embeddings: onnx={name}: {what}; expected a folder with model.onnx and tokenizer.json."
            )
        digest = _digest(model, tokenizer)
        prompts = _json(folder / "config_sentence_transformers.json").get("prompts")
        prompts = prompts if isinstance(prompts, Mapping) else {}
        return OnnxFolder(
            model=model,
            tokenizer=tokenizer,
            digest=digest,
            max_tokens=_max_tokens(folder),
            pooling=_pooling(folder),
            query_prefix=_text(prompts.get("query")),
            document_prefix=_text(prompts.get("document") or prompts.get("passage")),
        )
    except (OSError, RuntimeError) as error:
        reason = getattr(error, "strerror", None) or str(error)
        raise NotConfigured(f"embeddings: onnx={name} cannot be read ({reason.lower()}).") from error


def _digest(model: Path, tokenizer: Path) -> str:
    """Return a digest of the model from its size, its first and last bytes, and its tokenizer."""
    digest = hashlib.sha256()
    for path in (model, tokenizer):
        size = path.stat().st_size
        digest.update(str(size).encode())
        with path.open("rb") as file:
            digest.update(file.read(_SAMPLE_BYTES))
            file.seek(max(0, size - _SAMPLE_BYTES), os.SEEK_SET)
            digest.update(file.read(_SAMPLE_BYTES))
    return digest.hexdigest()[:12]


def _max_tokens(folder: Path) -> int:
    """Return the maximum number of tokens in an input: the model's own limit, at most `MAX_TOKENS`."""
    said = (
        _json(folder / "sentence_bert_config.json").get("max_seq_length"),
        _json(folder / "tokenizer_config.json").get("model_max_length"),
        _json(folder / "config.json").get("max_position_embeddings"),
    )
    # Some tokenizers write 1e30 for "unknown".
    known = [int(one) for one in said if isinstance(one, int | float) and 8 <= one <= 1_000_000]
    return min(min(known, default=DEFAULT_TOKENS), MAX_TOKENS)


def _pooling(folder: Path) -> Literal["mean", "first", "last"]:
    said = _json(folder / "1_Pooling" / "config.json")
    if said.get("pooling_mode_cls_token"):
        return "first"
    return "last" if said.get("pooling_mode_lasttoken") else "mean"


def _json(path: Path) -> Mapping[str, Any]:
    """Return the object in a file, or {} if the file is missing or unreadable: each of these files is optional."""
    try:
        if path.stat().st_size > _MAX_JSON_BYTES:
            return {}
        found = json.loads(path.read_text("utf-8"))
    except (OSError, *NOT_READABLE):
        return {}
    return found if isinstance(found, Mapping) else {}


def _text(value: object) -> str:
    return value if isinstance(value, str) else ""
