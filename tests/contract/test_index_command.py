"""`python -m codecompanion index`: a stable contract, as seen by an outside caller."""

from __future__ import annotations

import json
import os
import subprocess

import pytest

from codecompanion.store.code_index.build_lock import building
from codecompanion.store.code_index.index_tables import index_path
from tests.contract.command_line import REPO, run
from tests.forked_python import forked_python
from tests.patience import PATIENCE_S


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


def test_one_object_lists_the_indexed_files(root, tmp_path):
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


def test_a_file_that_is_not_searched_is_named_and_one_with_a_long_line_is_searched(root, tmp_path):
    (root / "src" / "minified.js").write_text("var a=1;" * 10_000)
    (root / "src" / "data.py").write_text("x = '" + "y" * 5_000_000 + "'\n")
    (root / "src" / "logo.py").write_text(
        "def before():\n    pass\n\nLOGO = '" + "y" * 90_000 + "'\n\ndef after(): pass\n"
    )
    status, out, err = run("index", "--root", str(root), XDG_CACHE_HOME=str(tmp_path / "cache"))
    assert (status, json.loads(out)["files"]) == (0, 3)
    assert err == "codecompanion: Not searched: 1 too large (src/data.py), 1 generated (src/minified.js).\n"
    status, out, _ = run("search", "--root", str(root), "before after", XDG_CACHE_HOME=str(tmp_path / "cache"))
    found = json.loads(out)["results"]
    assert found[0]["path"] == "src/logo.py"
    assert all(len(one["text"]) < 1_000 for one in found)


def test_a_failure_is_one_line(root, tmp_path):
    status, out, err = run("index", "--root", str(root / "never"))
    assert (status, out) == (2, "")
    assert "no such folder" in err
    (tmp_path / "file").write_text("")
    status, out, err = run("index", "--root", str(root), XDG_CACHE_HOME=str(tmp_path / "file"))
    assert (status, out, err.count("\n")) == (1, "", 1)
    status, _, err = run("index", "--words")
    assert status == 2


@pytest.mark.parametrize(
    ("arguments", "known"),
    [
        (("index",), '"files":2'),
        (("search", "title text"), "README.md"),
        (("gather", "--always", "title text"), "README.md"),
    ],
)
def test_an_index_built_by_another_process_is_awaited(root, tmp_path, arguments, known):
    """Two simultaneous commands on one project yield the same answer; neither uses half an index."""
    command = [forked_python(), "-m", "codecompanion", arguments[0], "--root", str(root), *arguments[1:]]
    environment = {**os.environ, "PYTHONPATH": str(REPO / "python"), "XDG_CACHE_HOME": str(tmp_path)}
    environment.pop("NVIM_APPNAME", None)
    with building(index_path(tmp_path / "nvim" / "codecompanion", root.resolve())) as is_ours:
        assert is_ours
        pipe = subprocess.PIPE
        waiting = subprocess.Popen(command, env=environment, stdout=pipe, stderr=pipe, text=True)
        assert "waiting for it" in waiting.stderr.readline()
    out, _ = waiting.communicate(timeout=PATIENCE_S)
    assert waiting.returncode == 0
    assert known in out
