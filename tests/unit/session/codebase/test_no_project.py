"""Folders that are not searched as a whole."""

from __future__ import annotations

from pathlib import Path

import pytest

from codecompanion.workspace import paths


@pytest.mark.parametrize(
    ("folder", "is_project"),
    [("users/me", False), ("users", False), ("/", False), ("users/me/code", True), ("users/other", True)],
)
def test_a_home_directory_and_its_parents_are_not_projects(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, folder: str, is_project: bool
) -> None:
    """R-266: a question in `/home` reads no user's files."""
    monkeypatch.setattr(Path, "home", lambda: tmp_path / "users/me")
    assert paths.is_project(tmp_path / folder) is is_project
