"""A module rewritten by one worker is found by the imports of the others."""

from __future__ import annotations

from pathlib import Path

import pytest
from _pytest.assertion import rewrite

from tests.rewritten import rewrite_files


def test_a_rewritten_module_is_found_and_an_invalid_one_ignored(pytestconfig: pytest.Config, tmp_path: Path) -> None:
    """The cache equals the one that pytest itself would write."""
    good, wrong = tmp_path / "test_good.py", tmp_path / "test_wrong.py"
    good.write_text("def test_one():\n    assert 1 == 1\n")
    wrong.write_text("def test_two(:\n")
    rewrite_files(pytestconfig, [good, wrong, tmp_path / "test_gone.py"])
    kept = rewrite.get_cache_dir(good) / f"test_good{rewrite.PYC_TAIL}"
    found = rewrite._read_pyc(good, kept)
    _, made = rewrite._rewrite_test(good, pytestconfig)
    assert found == made
    assert [path.name for path in kept.parent.iterdir()] == [kept.name]
