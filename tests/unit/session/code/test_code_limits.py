"""Edge cases of the project index and of the document's tiers (R-229, R-231, R-234)."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace

import pytest

from codecompanion.session.code import document_tiers, indexing
from codecompanion.session.code.project_index import ProjectIndex
from codecompanion.session.code.search_code import search_code
from codecompanion.session.code.search_options import NearestChunks, SearchOptions
from tests.unit.session.code import test_project_index
from tests.unit.session.code.test_project_index import write

root, index = test_project_index.root, test_project_index.index


class Nearest:
    """Vectors that rank the chunks of an index in their order, except those of the first files."""

    async def nearest(self, index: ProjectIndex, question: str) -> NearestChunks:
        return lambda k: {chunk: 1.0 - chunk / 100 for chunk in range(4, k + 4)}


@pytest.mark.parametrize("count", [25, 26])
async def test_twenty_five_files_are_indexed_in_the_host_and_more_by_the_worker(
    index: ProjectIndex, root: Path, monkeypatch: pytest.MonkeyPatch, count: int
) -> None:
    builds = []

    async def build() -> None:
        builds.append(count)

    monkeypatch.setattr(index, "build", build)
    await index.refresh()
    for number in range(count):
        write(root, f"more/m{number}.py", "x = 1\n")
    fresh = await index.refresh()
    assert (fresh.written, len(fresh.pending), len(builds)) == ((25, 0, 0) if count == 25 else (0, 26, 1))


def test_a_large_project_is_indexed_from_the_most_recent_files_on(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    paths = [f"{number:03}.py" for number in range(201)]
    commits = [SimpleNamespace(paths=("150.py", "200.py")), SimpleNamespace(paths=("007.py", "150.py"))]
    monkeypatch.setattr(indexing, "recent_commits", lambda root: commits)
    ordered = indexing._latest_first(tmp_path, paths)
    assert ordered[:5] == ("150.py", "200.py", "007.py", "000.py", "001.py")
    assert sorted(ordered) == paths


@pytest.mark.parametrize(("tier", "top_k", "fetched"), [("fts", 3, 6), ("fts", 30, 60), ("hybrid", 3, 20)])
async def test_more_results_are_fetched_than_wanted(
    index: ProjectIndex, monkeypatch: pytest.MonkeyPatch, tier, top_k: int, fetched: int
) -> None:
    """R-229, R-234: more candidates are fetched than returned; the path column counts four times (R-231)."""
    asked = []
    find = document_tiers.find_chunks

    def found(connection, query, columns, k, *more):
        asked.append((columns, k))
        return find(connection, query, columns, k, *more)

    monkeypatch.setattr(document_tiers, "find_chunks", found)
    options = SearchOptions(tier=tier, top_k=top_k)
    await search_code(index, "alpha", options, Nearest())
    assert asked[0] == ((4.0, 1.0, 1.0), fetched)


@pytest.mark.parametrize("tier", ["terms", "vector"])
async def test_the_last_two_tiers_return_five_results(index: ProjectIndex, root: Path, tier) -> None:
    """R-234."""
    for number in range(8):
        write(root, f"more/m{number}.py", f"def voucher_{number}(): pass\n")
    await index.refresh()
    options = SearchOptions(tier=tier, with_common=False)
    assert len((await search_code(index, "voucher", options, Nearest())).results) == 5
