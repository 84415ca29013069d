"""Files that contain a word, by ripgrep, git or the walk: the same answer from each (R-221)."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import pytest

from codecompanion.workspace import text_search
from codecompanion.workspace.project_files import Choice
from codecompanion.workspace.text_search import files_with
from tests.ripgrep import RIPGREP, needs_ripgrep
from tests.unit.workspace.test_project_files import git

FILES = {
    "a.py": "def Alpha(): pass\n",
    "b/c.lua": "local beta = 'é alpha'\n",
    "; rm -rf": "gamma (x)\n",
    "-x.py": "alpha\n",
    ".env": "alpha\n",
    "made/out.py": "alpha\n",
    "vendor/v.py": "alpha\n",
    ".gitignore": "made/\n",
}

# Stands for ripgrep where there is none: it understands what we call it with, and nothing else.
STAND_IN = f"""#!{sys.executable}
import os, sys
split = sys.argv.index("--")
options, paths = sys.argv[1:split], sys.argv[split + 1:]
known = ["--files-with-matches", "--null", "--ignore-case", "--fixed-strings", "--no-messages",
         "--no-require-git", "--glob=!.git", "--hidden"]
terms = [one.removeprefix("--regexp=").lower() for one in options if one.startswith("--regexp=")]
if options[0] != "--no-config":
    sys.exit(3)
rest = [one for one in options[1:] if one not in known and not one.startswith(("--regexp=", "--max-filesize="))]
if rest or paths != ["."]:
    sys.exit(2)
found = False
for folder, folders, names in os.walk("."):
    folders[:] = [name for name in folders if name not in ("made", ".git")]
    for name in names:
        text = open(os.path.join(folder, name), errors="replace").read().lower()
        if any(term in text for term in terms):
            found = True
            sys.stdout.write(os.path.join(folder, name) + "\\0")
sys.exit(0 if found else 1)
"""


def no_program(name: str, *_: Path) -> str:
    raise FileNotFoundError(name)


@pytest.fixture
def root(tmp_path: Path) -> Path:
    folder = tmp_path / "project"
    for name, text in FILES.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(text)
    return folder


@pytest.fixture(params=[pytest.param("real ripgrep", marks=needs_ripgrep), "ripgrep", "git", "walk"])
def searcher(request: pytest.FixtureRequest, root: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """Run the test with each of the three searchers."""
    tools = tmp_path / "bin"
    tools.mkdir()
    monkeypatch.setattr(text_search, "find_program", no_program)
    if request.param == "real ripgrep":
        monkeypatch.setattr(text_search, "find_program", lambda name, *_: RIPGREP)
        return "ripgrep"
    if request.param == "ripgrep":
        (tools / "rg").write_text(STAND_IN)
        (tools / "rg").chmod(0o755)
        monkeypatch.setattr(text_search, "find_program", lambda name, *_: str(tools / name))
    elif request.param == "git":
        git(root, "init", "-q")
        git(root, "add", "a.py")
    return str(request.param)


def test_each_searcher_names_the_same_files(searcher: str, root: Path) -> None:
    found = files_with(root, ["ALPHA"])
    assert (found.searcher, found.is_cut) == (searcher, False)
    assert found.paths == ("-x.py", "a.py", "b/c.lua")
    assert files_with(root, ["gamma (", "--help"]).paths == ("; rm -rf",)
    assert files_with(root, ["É"]).paths in (("b/c.lua",), ())  # git folds ASCII alone in some locales
    assert files_with(root, ["nowhere at all"]).paths == ()


def test_without_words_or_folder_nothing_is_found(searcher: str, root: Path) -> None:
    assert files_with(root, ["", " ", "a\nb"]).paths == ()
    assert files_with(root / "never", ["alpha"]).paths == ()


def test_a_stopped_search_is_reported(searcher: str, root: Path) -> None:
    found = files_with(root, ["alpha"], time_limit_s=-1.0)
    assert found.is_cut

    class StoppedError(Exception):
        pass

    def check() -> None:
        raise StoppedError

    with pytest.raises(StoppedError):
        files_with(root, ["alpha"], check=check)


def test_a_failing_program_is_followed_by_the_next(root: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    broken = tmp_path / "rg"
    broken.write_text("#!/bin/sh\nexit 2\n")
    broken.chmod(0o755)
    monkeypatch.setattr(text_search, "find_program", lambda name, *_: str(broken))
    assert files_with(root, ["alpha"]).searcher == "walk"
    git(root, "init", "-q")
    assert files_with(root, ["alpha"]).searcher == "git"


def test_hidden_files_are_searched_on_request(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(text_search, "find_program", no_program)
    (root / ".config").write_text("alpha\n")
    assert ".config" in files_with(root, ["alpha"], Choice(include_hidden=True)).paths
    assert ".config" not in files_with(root, ["alpha"]).paths


def test_the_output_is_limited(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    git(root, "init", "-q")
    monkeypatch.setattr(text_search, "find_program", no_program)
    monkeypatch.setattr(text_search, "MAX_OUTPUT_BYTES", 3)
    assert files_with(root, ["alpha"]).is_cut
    assert os.environ.get("GIT_DIR") is None
