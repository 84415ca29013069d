"""Edges of what the index keeps (issue 11, section 1)."""

from __future__ import annotations

from pathlib import Path

import pytest

from codecompanion.store.code_index.index_writer import IndexWriter, _column
from codecompanion.store.code_index.reader import IndexReader
from codecompanion.store.code_index.search import ReferenceGraph, file_paths
from tests.leftovers import closed_at_end
from tests.unit.store.code_index.test_search import a_file


def test_of_one_word_five_are_kept_in_a_piece() -> None:
    assert _column("parse " * 9 + "reply").split() == ["parse"] * 5 + ["reply"]


@pytest.mark.parametrize(("definers", "has_edge"), [(5, True), (6, False)])
def test_a_name_that_six_files_define_says_nothing_of_who_uses_whom(
    tmp_path: Path, definers: int, has_edge: bool
) -> None:
    writer = closed_at_end(IndexWriter(tmp_path / "index.db", tmp_path))
    files = [a_file(f"{number}.py", "text", defines=("run_all",)) for number in range(definers)]
    writer.put([a_file("user.py", "text", uses=("run_all",)), *files], 0)
    writer.close()
    reader = closed_at_end(IndexReader(tmp_path / "index.db"))
    with reader.reading() as connection:
        ids = {path: file for file, path in file_paths(connection).items()}
        assert bool(ReferenceGraph().edges_of(connection, [ids["user.py"]])) is has_edge
    reader.close()
