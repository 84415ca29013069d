"""`git_config` parses a repository's configuration as git does, without git."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from codecompanion.workspace.git_config import Entry, names_program, parse_config, programs_named
from tests.unit.workspace.test_git import git

pytestmark = pytest.mark.skipif(shutil.which("git") is None, reason="there is no git here")


@pytest.fixture
def repository(tmp_path: Path) -> Path:
    root = tmp_path / "repo"
    root.mkdir()
    git(root, "init", "--quiet", "--initial-branch=main")
    return root


def by_git(file: Path) -> list[tuple[str, str]] | None:
    """Return the entries that git itself reads from a file, or None if git rejects it."""
    done = subprocess.run(["git", "config", "--file", file, "--list", "-z"], capture_output=True, check=False)
    if done.returncode:
        return None
    records = done.stdout.decode("utf-8", "surrogateescape").split("\0")[:-1]
    return [(key, value if has_value else "true") for key, has_value, value in (row.partition("\n") for row in records)]


PIECES = st.sampled_from(
    [
        *("[core]\n", '[diff "a b"]\n', '[Filter "X.\\"y"]', "[a.B]\n", "pager", " = ", "=", "\n", "\t", " "),
        *("./run me", '"quoted # no comment"', " # comment", ";", "\\\n", "\\t", "\\n", '\\"', "\\\\", "key-2", "\r\n"),
    ]
)


@settings(max_examples=120, deadline=None)
@given(pieces=st.lists(PIECES, max_size=12))
def test_entries_are_parsed_as_git_parses_them(pieces: list[str], tmp_path_factory: pytest.TempPathFactory) -> None:
    """Each file that git accepts has the same entries here. Older gits replace each tab within a value with a space."""
    file = tmp_path_factory.getbasetemp() / "config"
    text = "[core]\n" + "".join(pieces)
    file.write_bytes(text.encode())
    expected = by_git(file)
    if expected is not None:
        own = [(entry.key, entry.value.replace("\t", " ")) for entry in parse_config(text)]
        assert own == [(key, value.replace("\t", " ")) for key, value in expected], text


def test_includes_worktrees_and_submodules_are_read(repository: Path, tmp_path: Path) -> None:
    git(repository, "commit", "--quiet", "--allow-empty", "--message=first")
    git(repository, "worktree", "add", "--quiet", str(tmp_path / "tree"))
    config = repository / ".git" / "config"
    config.write_text(
        f"{config.read_text()}"
        '[include]\n\tpath = ../team.inc\n[includeIf "onbranch:nowhere"]\n\tpath = deep.inc\n[include]\npath = config\n'
    )
    (repository / "team.inc").write_text("[diff]\n\texternal = ./a\n")
    (repository / ".git" / "deep.inc").write_text("[core]\n\tfsmonitor = ./b\n")
    (repository / ".git" / "worktrees" / "tree" / "config.worktree").write_text("[core]\n\tpager = ./c\n")
    (repository / ".git" / "modules" / "one").mkdir(parents=True)
    (repository / ".git" / "modules" / "one" / "config").write_text('[filter "x"]\n\tclean = ./d\n')
    inside = tmp_path / "tree" / "src"
    inside.mkdir()
    assert {(found.file.name, found.key, found.value) for found in programs_named(inside)} == {
        ("team.inc", "diff.external", "./a"),
        ("deep.inc", "core.fsmonitor", "./b"),
        ("config.worktree", "core.pager", "./c"),
        ("config", "filter.x.clean", "./d"),
    }
    assert {found.key for found in programs_named(repository)} == {"diff.external", "core.fsmonitor", "filter.x.clean"}


def test_a_folder_that_looks_like_a_bare_repository_is_read(repository: Path) -> None:
    docs = repository / "docs"
    for name in ("objects", "refs"):
        (docs / name).mkdir(parents=True)
    (docs / "HEAD").write_text("ref: refs/heads/main\n")
    (docs / "config").write_text("[core]\nfsmonitor = ./run\n")
    assert [(found.file, found.value) for found in programs_named(docs)] == [((docs / "config").resolve(), "./run")]
    assert programs_named(repository) == ()


def test_an_ordinary_clone_names_no_program(repository: Path, tmp_path: Path) -> None:
    """The configuration that git, git-lfs and hosting services write causes no question."""
    git(repository, "commit", "--quiet", "--allow-empty", "--message=first")
    git(tmp_path, "clone", "--quiet", str(repository), "clone")
    clone = tmp_path / "clone"
    for key, value in {
        "remote.upstream.url": "git@github.com:a/b.git",
        "filter.lfs.clean": "git-lfs clean -- %f",
        "filter.lfs.smudge": "git-lfs smudge -- %f",
        "filter.lfs.process": "git-lfs filter-process",
        "filter.lfs.required": "true",
        "credential.helper": "osxkeychain",
        "core.fsmonitor": "true",
        "pager.log": "false",
        "alias.st": "status --short",
        "submodule.one.update": "rebase",
        "branch.main.merge": "refs/heads/main",
        "protocol.file.allow": "always",
        "user.email": "a@example.org",
        "pull.rebase": "true",
    }.items():
        git(clone, "config", key, value)
    assert programs_named(clone) == ()


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("core.fsmonitor", "./run"),
        ("filter.lfs.clean", "./git-lfs clean -- %f"),
        ("filter.a\nb.clean", "x"),
        ("credential.https://example.org.helper", "!./run"),
        ("credential.helper", "./store"),
        ("alias.st", "!./run"),
        ("remote.origin.url", "ext::sh -c ./run"),
        ("url.ext::sh -c ./run.insteadof", "https://"),
        ("submodule.x.update", "!./run"),
        ("sendemail.smtpserver", "/tmp/run"),
        ("gpg.ssh.program", "./run"),
        ("diff.external", ""),
    ],
)
def test_a_key_that_names_a_program_is_found(key: str, value: str) -> None:
    assert names_program(Entry(key, value))


def test_unreadable_files_are_skipped(repository: Path) -> None:
    """A pipe, circular includes, a broken file or a missing folder causes no error and no waiting."""
    config = repository / ".git" / "config"
    os.mkfifo(repository / "pipe")
    paths = ("../pipe", "/proc/self/mem", "~nobody-of-this-name/x", "\0")
    config.write_text("[include]\n" + "".join(f"path = {path}\n" for path in paths) + "[cor\n= x")
    assert programs_named(repository) == ()
    assert programs_named(repository / "missing" / "deep") == ()
    (repository / "deep").mkdir()
    (repository / "deep" / ".git").write_text("gitdir: \0nowhere\n")
    assert programs_named(repository / "deep") == ()
