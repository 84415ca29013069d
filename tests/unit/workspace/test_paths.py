"""The border of the workspace: nothing outside is ever reached."""

from __future__ import annotations

import os
import tempfile
import unicodedata
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from codecompanion.errors import CodeCompanionError, OutsideWorkspace, ToolError
from codecompanion.workspace.paths import Workspace


@pytest.fixture
def root(tmp_path: Path) -> Path:
    folder = tmp_path / "project"
    (folder / "src").mkdir(parents=True)
    (folder / "src" / "main.py").write_text("")
    (tmp_path / "project-other").mkdir()
    (tmp_path / "secret").write_text("")
    return folder


@pytest.mark.parametrize("path", ["src/main.py", "./src/../src/main.py", "src//main.py", "{root}/src/main.py"])
def test_every_spelling_of_an_inside_path_yields_the_same_file(root: Path, path: str) -> None:
    assert Workspace(root).resolve(path.format(root=root)) == root / "src" / "main.py"


@pytest.mark.parametrize(
    "path",
    [
        "..",
        "../secret",
        "../project-other/x",
        "src/../../secret",
        "{root}/../secret",
        "{root}-other/x",
        "/etc/passwd",
        "~",
        "~/.ssh/id_rsa",
        "/proc/self/root/etc/passwd",
        "/proc/self/fd/0",
        "none/../../secret",
    ],
)
def test_a_path_that_leads_outside_is_refused_by_name(root: Path, path: str) -> None:
    path = path.format(root=root)
    with pytest.raises(OutsideWorkspace) as caught:
        Workspace(root).resolve(path)
    assert path in str(caught.value)
    assert str(root) in str(caught.value)


def test_links_are_resolved_before_the_border_is_checked(root: Path) -> None:
    (root / "out").symlink_to("..")
    (root / "file").symlink_to(root.parent / "secret")
    (root / "dangling").symlink_to(root.parent / "not-there-yet")
    (root / "inside").symlink_to("src")
    workspace = Workspace(root)
    for path in ("out/secret", "file", "dangling", "out/project/../secret", "inside/../../secret"):
        with pytest.raises(OutsideWorkspace):
            workspace.resolve(path)
    assert workspace.resolve("inside/main.py") == root / "src" / "main.py"
    assert workspace.resolve("out/project/src") == root / "src"


def test_a_workspace_that_is_a_link_is_its_target(root: Path) -> None:
    link = root.parent / "link"
    link.symlink_to(root)
    assert Workspace(link).resolve("src/main.py") == root / "src" / "main.py"
    assert Workspace(link).resolve(f"{link}/src") == root / "src"


def test_a_path_that_does_not_exist_is_resolved_for_creation(root: Path) -> None:
    assert Workspace(root).resolve("a/b/c.py") == root / "a" / "b" / "c.py"


def test_home_is_a_workspace_like_any_other(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", str(root))
    assert Workspace(root).resolve("~/src") == root / "src"
    assert Workspace(root).resolve("~") == root
    assert Workspace(root).resolve("~someone") == root / "~someone"


@pytest.mark.parametrize(
    ("path", "why"),
    [("", "empty"), ("  ", "empty"), ("a\0b", "NUL"), ("x" * 5000, "cannot be used"), ("\ud800", "cannot be used")],
)
def test_an_invalid_path_is_an_error_for_the_model(root: Path, path: str, why: str) -> None:
    with pytest.raises(ToolError, match=why) as caught:
        Workspace(root).resolve(path)
    assert len(str(caught.value)) < 400


def test_a_cycle_of_links_is_an_error(root: Path) -> None:
    (root / "a").symlink_to("b")
    (root / "b").symlink_to("a")
    for path in ("a", "a/x"):
        with pytest.raises(ToolError):
            Workspace(root).resolve(path)


def test_another_unicode_form_of_an_existing_name_is_found(root: Path) -> None:
    decomposed = unicodedata.normalize("NFD", "café.py")
    (root / decomposed).write_text("")
    assert Workspace(root).resolve("café.py") == root / decomposed
    assert Workspace(root).resolve("neü.py") == root / "neü.py"


def test_another_spelling_of_the_root_folder_is_the_root(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """On a file system that ignores case `/PROJECT` and `/project` are the same folder."""
    upper = root.parent / "PROJECT"
    upper.mkdir()
    same = Path.samefile
    monkeypatch.setattr(Path, "samefile", lambda self, other: self == upper or same(self, other))
    assert Workspace(root).resolve(f"{upper}/src/main.py") == root / "src" / "main.py"


_PIECES = ["..", ".", "/", "//", "~", "a", "link", "deep", "secret", "proc", "self", "root", "\0", "é", "A", " ", "\\"]


@given(st.lists(st.one_of(st.sampled_from(_PIECES), st.text(max_size=4)), max_size=12), st.booleans())
def test_no_path_resolves_to_something_outside(pieces: list[str], joined: bool) -> None:
    with tempfile.TemporaryDirectory() as folder:
        root = Path(folder).resolve() / "root"
        (root / "deep" / "a").mkdir(parents=True)
        (root / "link").symlink_to("..")
        (root / "deep" / "link").symlink_to("/")
        path = ("/" if joined else "").join(pieces)
        for given_path in (path, f"{root}/{path}"):
            try:
                real = Workspace(root).resolve(given_path)
            except CodeCompanionError:
                continue
            assert real == root or root in real.parents
            assert os.path.realpath(real) == str(real)
