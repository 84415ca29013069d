"""`bin/codecompanion`: the command line with the plugin's Python, wherever it is; a wrong Python is reported."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from codecompanion import __version__

REPO = Path(__file__).resolve().parents[3]
PROGRAM = REPO / "bin" / "codecompanion"


def run(data: Path, program: Path = PROGRAM, **environment: str) -> tuple[int, str, str]:
    """Request the version with this data folder; return (exit status, standard output, standard error)."""
    given = {"PATH": os.environ["PATH"], "HOME": str(data), "XDG_DATA_HOME": str(data), **environment}
    done = subprocess.run(
        [str(program), "--version"], cwd=data, env=given, capture_output=True, text=True, timeout=60, check=False
    )
    return done.returncode, done.stdout, done.stderr


def python(path: Path, says: str = "") -> Path:
    """Create a Python at the path: the current one, or one that only prints a message."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(f"#!/bin/sh\necho {says}\n" if says else f'#!/bin/sh\nexec "{sys.executable}" "$@"\n')
    path.chmod(0o755)
    return path


def installed(data: Path, name: str, says: str = "", *, finished: bool = True) -> Path:
    """Create an environment as the installer would."""
    folder = data / "nvim/codecompanion/venv" / name
    found = python(folder / "bin/python", says)
    if finished:
        (folder / "codecompanion-stamp.json").write_text("{}")
    return found


def test_it_runs_with_the_newest_finished_installation(tmp_path: Path) -> None:
    installed(tmp_path, "1795431836438264-1", "older")
    installed(tmp_path, "1795431836438265-2")
    installed(tmp_path, "1795431836438266-3", "half", finished=False)
    assert run(tmp_path) == (0, f"{__version__}\n", "")


def test_the_python_last_used_by_neovim_takes_precedence(tmp_path: Path) -> None:
    """Only Neovim knows `python.host_prog`; if that Python no longer exists, it is skipped."""
    installed(tmp_path, "1795431836438264-1", "private")
    noted = tmp_path / "nvim/codecompanion/python"
    noted.write_text(f"{python(tmp_path / 'own python', 'own')}\n")
    assert run(tmp_path)[1] == "own\n"
    noted.write_text("/gone/python\n")
    assert run(tmp_path)[1] == "private\n"
    assert run(tmp_path, CODECOMPANION_PYTHON=str(tmp_path / "own python"))[1] == "own\n"


def test_a_link_and_another_app_name_find_it_too(tmp_path: Path) -> None:
    installed(tmp_path, "1795431836438264-1")
    (tmp_path / "nvim").rename(tmp_path / "other")
    (tmp_path / "bin").mkdir()
    (tmp_path / "bin/one").symlink_to(PROGRAM)
    (tmp_path / "bin/two").symlink_to("one")
    assert run(tmp_path, tmp_path / "bin/two", NVIM_APPNAME="other") == (0, f"{__version__}\n", "")


def test_without_an_installation_one_line_names_the_remedy(tmp_path: Path) -> None:
    status, out, error = run(tmp_path)
    assert (status, out) == (1, "")
    assert error.startswith("codecompanion: ")
    assert ":CodeCompanion install" in error
    assert error.count("\n") == 1


@pytest.mark.parametrize("arguments", [[], ["sessions", "list"]])
def test_a_python_without_the_packages_names_the_program(tmp_path: Path, arguments: list[str]) -> None:
    """With `-S`, the packages are missing, as in a system Python."""
    done = subprocess.run(
        [sys.executable, "-S", "-m", "codecompanion", *arguments], cwd=tmp_path,
        env={"PYTHONPATH": str(REPO / "python")}, capture_output=True, text=True, timeout=60, check=False,
    )  # fmt: skip
    assert (done.returncode, done.stdout) == (1, "")
    assert f"is missing from {sys.executable}; run {PROGRAM}, which" in done.stderr
    assert done.stderr.count("\n") == 1


def recipe(clone: Path, home: Path) -> str:
    """Return the recipe that a clone prints before any Python is installed for it."""
    given = {"PATH": os.environ["PATH"], "HOME": str(home), "GIT_CONFIG_GLOBAL": "/dev/null"}
    program = [str(clone / "bin/codecompanion"), "recipe"]
    return subprocess.run(program, cwd=home, env=given, capture_output=True, text=True, timeout=60, check=True).stdout


def test_a_clone_prints_the_lines_that_install_it(tmp_path: Path) -> None:
    clone = tmp_path / "src" / "my companion"
    (clone / "bin").mkdir(parents=True)
    shutil.copy(PROGRAM, clone / "bin")
    assert '{ dir = "~/src/my companion", name = "codecompanion", opts = {} },' in recipe(clone, tmp_path)
    assert "no remote address" in recipe(clone, tmp_path)
    git = ["git", "-C", str(clone)]
    subprocess.run([*git, "init", "-q"], check=True)
    subprocess.run([*git, "remote", "add", "origin", "https://me:t0ken@git.example/cc.git"], check=True)
    printed = recipe(clone, tmp_path)
    assert printed.count("https://git.example/cc.git") == 3
    assert printed.startswith("-- Use one of these.")
    assert re.findall(r"-- lazy.nvim with (.*), which (.*) updates", printed) == [
        ("this clone", "git pull"),
        ("a clone of its own", ":Lazy update"),
    ]
    assert "t0ken" not in printed
