"""Limits of the index's contents."""

from __future__ import annotations

from pathlib import Path

import pytest

from codecompanion.store.code_index.index_writer import IndexWriter, _column
from codecompanion.store.code_index.reader import IndexReader
from codecompanion.store.code_index.search import ReferenceGraph, file_paths
from tests.leftovers import closed_at_end
from tests.unit.store.code_index.test_search import a_file


def test_five_uses_of_a_word_are_kept_per_chunk() -> None:
    assert _column("parse " * 9 + "reply").split() == ["parse"] * 5 + ["reply"]


@pytest.mark.parametrize(("definers", "has_edge"), [(5, True), (6, False)])
def test_a_name_defined_in_six_files_yields_no_edges(tmp_path: Path, definers: int, has_edge: bool) -> None:
    writer = closed_at_end(IndexWriter(tmp_path / "index.db", tmp_path))
    files = [a_file(f"{number}.py", "text", defines=("run_all",)) for number in range(definers)]
    writer.put([a_file("user.py", "text", uses=("run_all",)), *files], 0)
    writer.close()
    reader = closed_at_end(IndexReader(tmp_path / "index.db"))
    with reader.reading() as connection:
        ids = {path: file for file, path in file_paths(connection).items()}
        assert bool(ReferenceGraph().edges_of(connection, [ids["user.py"]])) is has_edge
    reader.close()
