"""The plugin never runs a program that a model's command could have written."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from codecompanion.formats import find_program as module
from codecompanion.formats.find_program import find_program, own_search_path, written_by_commands


@pytest.fixture(autouse=True)
def _forget(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "_written", set())


def planted(folder: Path, name: str = "git") -> Path:
    """Create a program in a folder and return its path."""
    folder.mkdir(parents=True, exist_ok=True)
    (folder / name).write_text("#!/bin/sh\n")
    (folder / name).chmod(0o755)
    return folder / name


def on_path(*folders: Path) -> str:
    """Return a PATH that consists of these folders."""
    return os.pathsep.join(map(str, folders))


@pytest.mark.skipif(os.geteuid() == 0, reason="root can enter every folder")
def test_an_inaccessible_folder_is_skipped(tmp_path: Path) -> None:
    """A PATH may name the folder of another user."""
    planted(tmp_path / "closed").parent.chmod(0)
    program = planted(tmp_path / "bin")
    assert find_program("git", search_path=on_path(tmp_path / "closed", tmp_path / "bin")) == str(program)
    (tmp_path / "closed").chmod(0o700)


def test_a_program_of_the_workspace_does_not_count(tmp_path: Path) -> None:
    workspace, mine = tmp_path / "ws", planted(tmp_path / "bin")
    evil = planted(workspace / "tools")
    search = on_path(evil.parent, mine.parent)
    assert find_program("git", search_path=search) == str(evil)
    assert find_program("git", workspace, search_path=search) == str(mine)
    (tmp_path / "link").symlink_to(workspace)
    assert find_program("git", workspace, search_path=on_path(tmp_path / "link/tools", mine.parent)) == str(mine)
    assert find_program("git", tmp_path / "link", search_path=search) == str(mine)
    with pytest.raises(FileNotFoundError):
        find_program("git", workspace, search_path=on_path(evil.parent))


def test_a_program_linked_from_or_into_the_workspace_does_not_count(tmp_path: Path) -> None:
    workspace, real = tmp_path / "ws", planted(tmp_path / "bin")
    evil = planted(workspace / "tools")
    for folder, target in ((workspace / "links", real), (tmp_path / "links", evil)):
        folder.mkdir()
        (folder / "git").symlink_to(target)
        with pytest.raises(FileNotFoundError):
            find_program("git", workspace, search_path=on_path(folder))


def test_programs_written_by_commands_count_in_no_workspace(tmp_path: Path) -> None:
    other, mine = planted(tmp_path / "other/bin"), planted(tmp_path / "bin")
    written_by_commands(tmp_path / "other")
    assert find_program("git", search_path=on_path(other.parent, mine.parent)) == str(mine)


@pytest.mark.parametrize("kind", ["repository", "venv", "node_modules", "open"])
def test_a_project_folder_or_a_world_writable_one_does_not_count(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, kind: str
) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    evil, mine = planted(tmp_path / "p/bin"), planted(tmp_path / "bin")
    if kind == "repository":
        (tmp_path / "p/.git").mkdir()
    elif kind == "venv":
        (tmp_path / "p/pyvenv.cfg").touch()
    elif kind == "node_modules":
        evil = planted(tmp_path / "p/node_modules/.bin")
    else:
        evil.parent.chmod(0o777)
    assert find_program("git", search_path=on_path(evil.parent, mine.parent)) == str(mine)


def test_the_home_folder_may_be_a_repository(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    (tmp_path / ".git").mkdir()
    mine = planted(tmp_path / ".local/bin")
    assert find_program("git", search_path=on_path(mine.parent)) == str(mine)


def test_folders_that_depend_on_the_current_one_do_not_count(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    planted(tmp_path / "bin")
    monkeypatch.chdir(tmp_path)
    for search in ("bin", "", "."):
        with pytest.raises(FileNotFoundError):
            find_program("git", search_path=search)


def test_a_program_of_root_is_one_only_root_can_change(tmp_path: Path) -> None:
    assert find_program("env", search_path="/usr/bin:/bin", of_root=True)
    mine = planted(tmp_path / "bin")
    mine.chmod(0o777)
    with pytest.raises(FileNotFoundError):
        find_program("git", search_path=on_path(mine.parent), of_root=True)


@pytest.mark.skipif(os.geteuid() == 0, reason="what root makes is a program of root")
def test_a_program_of_the_user_does_not_count_as_roots(tmp_path: Path) -> None:
    mine = planted(tmp_path / "bin")
    with pytest.raises(FileNotFoundError):
        find_program("git", search_path=on_path(mine.parent), of_root=True)


def test_a_search_path_keeps_the_folders_that_only_the_user_fills(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """An empty entry, as in `:/opt/lib`, is the working folder; libraries are loaded from there just like programs."""
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.chdir(tmp_path)
    workspace, mine, open_one, venv = (tmp_path / name for name in ("ws", "lib", "open", "venv/lib"))
    for folder in (workspace / "lib", mine, open_one, venv):
        folder.mkdir(parents=True)
    open_one.chmod(0o777)
    (venv.parent / "pyvenv.cfg").touch()
    (tmp_path / "link").symlink_to(workspace / "lib")
    bad = ["", ".", "lib", "./lib", str(workspace), str(workspace / "lib"), str(tmp_path / "link"), str(open_one)]
    bad += [str(venv), str(tmp_path / "none"), f"{mine};.", f"{mine}/../ws/lib"]
    for one in bad:
        for search in (one, f"{one}:{mine}", f"{mine}:{one}"):
            assert own_search_path(search, workspace) == (str(mine) if str(mine) in search.split(":") else ""), search
