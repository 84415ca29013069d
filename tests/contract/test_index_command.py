"""`python -m codecompanion index`: a stable contract, as an outside caller sees it (issue 11, section 4)."""

from __future__ import annotations

import json

import pytest

from tests.contract.command_line import run


@pytest.fixture
def root(tmp_path):
    folder = tmp_path / "project"
    (folder / "src").mkdir(parents=True)
    (folder / "src" / "a.py").write_text("class A:\n    def b(self):\n        return 1\n")
    (folder / "README.md").write_text("# Title\ntext\n")
    (folder / ".env").write_text("KEY=secret\n")
    return folder


def answer(tmp_path, *arguments):
    status, out, err = run("index", *arguments, XDG_CACHE_HOME=str(tmp_path / "cache"))
    assert (status, err) == (0, "")
    return json.loads(out)


def test_one_object_says_what_is_indexed(root, tmp_path):
    first = answer(tmp_path, "--root", str(root))
    assert list(first) == ["files", "chunks", "symbols", "vectors", "seconds", "bytes"]
    assert (first["files"], first["chunks"], first["symbols"], first["vectors"]) == (2, 2, 3, 0)
    assert first["bytes"] > 0
    (root / "src" / "a.py").write_text("def c():\n    pass\n")
    again = answer(tmp_path, "--root", str(root))
    assert (again["files"], again["symbols"]) == (2, 2)
    rebuilt = answer(tmp_path, "--root", str(root), "--rebuild")
    assert (rebuilt["files"], rebuilt["symbols"]) == (2, 2)


def test_an_empty_folder_has_an_empty_index(tmp_path):
    (tmp_path / "empty").mkdir()
    found = answer(tmp_path, "--root", str(tmp_path / "empty"))
    assert (found["files"], found["chunks"]) == (0, 0)


def test_what_goes_wrong_is_one_line(root, tmp_path):
    status, out, err = run("index", "--root", str(root / "never"))
    assert (status, out) == (2, "")
    assert "no such folder" in err
    (tmp_path / "file").write_text("")
    status, out, err = run("index", "--root", str(root), XDG_CACHE_HOME=str(tmp_path / "file"))
    assert (status, out, err.count("\n")) == (1, "", 1)
    status, _, err = run("index", "--words")
    assert status == 2
