"""A real embedding model: all-MiniLM-L6-v2 under .cache/semantic, installed by `make test-semantic`.

`make test` runs these tests if the model is already there, and otherwise skips them with an explanation.
"""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from codecompanion.adapters.embeddings.onnx_embedder import missing_packages

REPO = Path(__file__).parents[2]
FOLDER = REPO / ".cache" / "semantic" / "minilm"


@pytest.fixture(scope="session")
def minilm() -> Path:
    """Return the folder of the model."""
    missing = missing_packages()
    sentence = f"not installed: {', '.join(missing)}" if missing else ""
    if not (FOLDER / "installed.lock").exists():
        sentence = "all-MiniLM-L6-v2 is not in .cache/semantic: run make test-semantic"
    if sentence:
        pytest.fail(sentence, pytrace=False) if os.environ.get("SEMANTIC") == "required" else pytest.skip(sentence)
    return FOLDER
