"""Limits of the search in files (R-221)."""

from __future__ import annotations

from pathlib import Path

from codecompanion.workspace.text_search import files_with


def test_every_one_of_several_words_is_searched(tmp_path: Path) -> None:
    for name in ("alpha", "beta", "gamma"):
        (tmp_path / f"{name}.py").write_text(f"{name}\n")
    terms = ["never there", "beta", *(f"filler {n}" for n in range(61)), "gamma", "alpha"]
    assert files_with(tmp_path, terms).paths == ("beta.py", "gamma.py"), "64 of them"
