"""Determines a file's type by its path: source, document, test, example."""

from __future__ import annotations

from functools import lru_cache

import msgspec

from codecompanion.retrieval.ranking.tables import file_kinds


class FileKind(msgspec.Struct, frozen=True):
    """The types of a file; it may have several. None of them = the program's own source code."""

    is_document: bool = False
    is_test: bool = False
    is_example: bool = False


@lru_cache(maxsize=50_000)
def kind_of(path: str) -> FileKind:
    """Return the types of the file that `path` names, without reading it."""
    kinds = file_kinds()
    *folders, name = path.lower().split("/")
    stem, _, ending = name.rpartition(".")
    return FileKind(
        is_document=ending in kinds["document_endings"] or not stem,
        is_test=not kinds["test_folders"].isdisjoint(folders)
        or stem.startswith("test_")
        or stem.endswith(("_test", "_spec", ".test", ".spec")),
        is_example=not kinds["example_folders"].isdisjoint(folders),
    )
