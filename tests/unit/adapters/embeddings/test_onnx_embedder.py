"""Vectors from a model in a folder: pooling, lengths, missing files (R-239). Tiny models: `tests/onnx_models.py`."""

from __future__ import annotations

import asyncio
import json
import math
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from codecompanion.adapters.embeddings.make import make_embedder
from codecompanion.adapters.embeddings.onnx_embedder import OnnxEmbedder, missing_packages
from codecompanion.adapters.embeddings.onnx_folder import read_folder
from codecompanion.errors import NotConfigured
from codecompanion.model.embedding import EmbeddingSettings
from tests.onnx_models import write_model_folder

WORDS = {"load": [3.0, 0.0, 0.0], "file": [0.0, 4.0, 0.0], "save": [0.0, 0.0, 1.0], "broken": [math.nan, 0.0, 1.0]}
PACKAGE = Path(__file__).parents[4] / "python"
needs_extra = pytest.mark.skipif(bool(missing_packages()), reason=f"not installed: {' '.join(missing_packages())}")


def embedder(folder: Path, **fields: Any) -> OnnxEmbedder:
    return OnnxEmbedder(EmbeddingSettings(onnx=str(folder), **fields), threads=1)


@needs_extra
async def test_a_vector_is_the_mean_of_the_tokens_scaled_to_length_one(tmp_path: Path) -> None:
    """Padding does not count, so texts of other lengths in the batch change nothing."""
    maker = embedder(write_model_folder(tmp_path, WORDS))
    alone = await maker.embed(["load file"])
    among = await maker.embed(["save", "load file", "load load load file save save save save"])
    assert list(alone[0]) == pytest.approx([0.6, 0.8, 0], abs=1e-6)
    assert list(among[1]) == pytest.approx([0.6, 0.8, 0], abs=1e-6)
    assert list(among[0]) == pytest.approx([0, 0, 1])
    assert among[0].typecode == "f"
    await maker.aclose()


@needs_extra
@pytest.mark.parametrize(
    ("mode", "expected"), [("pooling_mode_cls_token", [1, 0, 0]), ("pooling_mode_lasttoken", [0, 0, 1])]
)
async def test_a_model_made_for_another_pooling_gets_it(tmp_path: Path, mode: str, expected: list[float]) -> None:
    folder = write_model_folder(tmp_path, WORDS, **{"1_Pooling__config": {mode: True}})
    _, vector = await embedder(folder).embed(["load", "load file save"])
    assert list(vector) == pytest.approx(expected)


@needs_extra
@pytest.mark.parametrize(
    "inputs",
    [
        ("input_ids",),
        ("input_ids", "attention_mask", "token_type_ids"),
        ("input_ids", "attention_mask", "position_ids"),
    ],
)
async def test_a_model_gets_the_inputs_it_declares(tmp_path: Path, inputs: tuple[str, ...]) -> None:
    folder = write_model_folder(tmp_path, WORDS, inputs=inputs)
    assert list((await embedder(folder).embed(["load save", "file"]))[1]) == pytest.approx([0, 1, 0])


@needs_extra
async def test_unusable_vectors_are_empty_and_counted_and_blank_texts_are_skipped(tmp_path: Path) -> None:
    maker = embedder(write_model_folder(tmp_path, WORDS))
    vectors = await maker.embed(["", "unheard", "broken", "load", " \n"])
    assert [len(vector) for vector in vectors] == [0, 0, 0, 3, 0]
    assert maker.unusable == 2
    assert len(await maker.embed_query("file")) == 3
    assert not await maker.embed_query(" ")


@needs_extra
async def test_a_text_that_is_too_long_is_truncated_and_counted(tmp_path: Path) -> None:
    """The length in the sentence-transformers file takes precedence over that in the tokenizer's file."""
    folder = write_model_folder(tmp_path, WORDS, truncation=2, sentence_bert_config={"max_seq_length": 8})
    maker = embedder(folder)
    kept, cut, far = await maker.embed(["load " * 7 + "save", "load " * 8 + "save", "file " * 9_999])
    assert kept[2] > 0
    assert cut[2] == 0
    assert list(far) == pytest.approx([0, 1, 0])
    assert maker.shortened == 2


@needs_extra
async def test_many_texts_keep_their_order(tmp_path: Path) -> None:
    maker = embedder(write_model_folder(tmp_path, WORDS))
    texts = [("load " * (number % 9) + "file").strip() for number in range(300)]
    vectors = await maker.embed(texts)
    for number, vector in enumerate(vectors):
        assert vector[0] / vector[1] == pytest.approx(3 * (number % 9) / 4, abs=1e-5)


@needs_extra
async def test_cancelling_ends_the_work_between_batches(tmp_path: Path) -> None:
    maker = embedder(write_model_folder(tmp_path, WORDS))
    await maker.embed(["load"])
    task = asyncio.create_task(maker.embed(["load file " * 100] * 5_000))
    await asyncio.sleep(0)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert list((await maker.embed(["file"]))[0]) == pytest.approx([0, 1, 0])


@needs_extra
@pytest.mark.parametrize(("name", "content"), [("model.onnx", b"no model"), ("tokenizer.json", b"{}")])
async def test_an_unusable_file_is_named_by_its_folder(tmp_path: Path, name: str, content: bytes) -> None:
    folder = write_model_folder(tmp_path / "mine", WORDS)
    (folder / name).write_bytes(content)
    with pytest.raises(NotConfigured, match=r"embeddings: the model in .*mine cannot be loaded \("):
        await embedder(folder).embed(["load"])


async def test_a_missing_extra_is_one_sentence_that_names_the_installation(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "onnxruntime", None)
    maker = embedder(write_model_folder(tmp_path, WORDS))
    with pytest.raises(NotConfigured) as caught:
        await maker.embed(["load"])
    said = str(caught.value)
    assert said.startswith("embeddings: a local model needs ")
    assert "onnxruntime" in said
    assert "Run :CodeCompanion install semantic, or pip install onnxruntime tokenizers numpy." in said


@pytest.mark.parametrize(
    ("files", "said"),
    [
        (None, "there is no such folder"),
        ((), "model.onnx and tokenizer.json missing"),
        (("model.onnx",), "tokenizer.json missing"),
        (("tokenizer.json",), "model.onnx missing"),
    ],
)
def test_a_folder_without_a_model_names_the_expected_files(
    tmp_path: Path, files: tuple[str, ...] | None, said: str
) -> None:
    folder = tmp_path / "model"
    for name in files or ():
        folder.mkdir(exist_ok=True)
        (folder / name).write_bytes(b"x")
    if files == ():
        folder.mkdir()
    with pytest.raises(NotConfigured) as caught:
        make_embedder(EmbeddingSettings(onnx=str(folder)), lambda settings: "")
    assert said in str(caught.value)
    assert "expected a folder with model.onnx and tokenizer.json" in str(caught.value)


def test_the_name_follows_the_model_instead_of_the_folder(tmp_path: Path) -> None:
    """A moved folder keeps its vectors; a different model or prefix does not."""
    one = embedder(write_model_folder(tmp_path / "a", WORDS)).name
    assert embedder(write_model_folder(tmp_path / "b", WORDS)).name == one
    assert embedder(write_model_folder(tmp_path / "c", {**WORDS, "load": [1.0, 0.0, 0.0]})).name != one
    assert embedder(tmp_path / "a", document_prefix="code: ").name != one
    assert embedder(tmp_path / "a", query_prefix="find: ").name == one


def test_files_beside_a_model_are_read_and_may_be_damaged(tmp_path: Path) -> None:
    prompts = {"prompts": {"query": "Q: ", "document": "D: "}}
    folder = write_model_folder(tmp_path / "a", WORDS, config_sentence_transformers=prompts)
    found = read_folder(str(folder))
    assert (found.query_prefix, found.document_prefix, found.max_tokens) == ("Q: ", "D: ", 256)
    for name, content in (("config.json", "{"), ("tokenizer_config.json", "[1]"), ("sentence_bert_config.json", "7")):
        (folder / name).write_text(content)
    (folder / "config_sentence_transformers.json").write_text(json.dumps({"prompts": [1]}))
    assert read_folder(str(folder)).max_tokens == 256
    large = write_model_folder(tmp_path / "b", WORDS, tokenizer_config={"model_max_length": 1e30})
    assert read_folder(str(large)).max_tokens == 256
    long = write_model_folder(tmp_path / "c", WORDS, tokenizer_config={"model_max_length": 8192})
    assert read_folder(str(long)).max_tokens == 512


def test_the_extra_is_not_imported_before_the_first_text(tmp_path: Path) -> None:
    folder = write_model_folder(tmp_path, WORDS)
    code = (
        "import sys; from codecompanion.adapters.embeddings.make import make_embedder;"
        "from codecompanion.model.embedding import EmbeddingSettings;"
        f"make_embedder(EmbeddingSettings(onnx={str(folder)!r}), lambda s: '');"
        "print([n for n in ('numpy', 'onnxruntime', 'tokenizers', 'httpx2') if n in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, cwd=PACKAGE)
    assert done.stdout.strip() == "[]"
