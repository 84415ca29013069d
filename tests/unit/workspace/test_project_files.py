"""A project's own text files (R-216, R-239, R-266), with git and without, and on a hostile disk."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest

from codecompanion.workspace.project_files import Choice, belongs, list_project_files, listed_among, read_project_file
from codecompanion.workspace.secret_files import is_secret

NAMES = (
    "src/a.py",
    "README.md",
    "; rm -rf",
    "new\nline.py",
    "with space/é.lua",
    ".github/run.yml",
    ".env",
    "config/.env.local",
    "keys/server.pem",
    "node_modules/x/index.js",
    "vendor/lib.go",
    "app.min.js",
    "api_pb2.py",
    "logo.png",
    "kept/ignored.log",
)


def git(folder: Path, *arguments: str) -> None:
    environment = {**os.environ, "GIT_CONFIG_GLOBAL": "/dev/null", "GIT_CONFIG_SYSTEM": "/dev/null"}
    identity = ("-c", "user.name=A", "-c", "user.email=a@b.c", "-c", "protocol.file.allow=always")
    subprocess.run(["git", *identity, *arguments], cwd=folder, check=True, capture_output=True, env=environment)


def fill(root: Path, *names: str) -> None:
    for name in names:
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("text = 1\n")


@pytest.fixture
def root(tmp_path: Path) -> Path:
    folder = tmp_path / "project"
    folder.mkdir()
    fill(folder, *NAMES)
    (folder / ".gitignore").write_text("*.log\n")
    return folder


OWN = ("; rm -rf", "README.md", "new\nline.py", "src/a.py", "with space/é.lua")


@pytest.mark.parametrize("has_git", [True, False])
def test_the_projects_own_files_are_listed(root: Path, has_git: bool) -> None:
    if has_git:
        git(root, "init", "-q")
        git(root, "add", "src")
    listed = list_project_files(root, Choice())
    assert listed.paths == OWN
    assert listed.source == ("git" if has_git else "walk")
    assert listed.left_out["secret"] == 3
    assert listed.left_out["binary"] == 1
    assert listed.left_out["generated"] == 2
    assert listed.left_out["hidden"] >= 1
    assert set(listed.folders) == {"", "src", "with space"}


def test_build_output_is_excluded_even_if_git_does_not_ignore_it(root: Path) -> None:
    """The rules apply to untracked files, too; a folder with tracked files belongs to the project (R-266)."""
    fill(root, "dist/app.js", "web/build/deep/page.js", "bin/tool.py", "htpasswd", "deploy/users.htpasswd")
    git(root, "init", "-q")
    git(root, "add", "src", "bin")
    fill(root, "bin/fresh.py")
    listed = list_project_files(root, Choice())
    assert set(listed.paths) == {*OWN, "bin/tool.py", "bin/fresh.py"}
    assert listed.left_out_by_name["vendored"].count == 4
    assert listed.left_out_by_name["vendored"].names == ["dist/", "node_modules/", "vendor/"]
    assert listed.left_out["secret"] == 5
    git(root, "add", "-f", "dist/app.js")
    assert "dist/app.js" in list_project_files(root, Choice()).paths


def test_checking_a_few_paths_agrees_with_the_list(root: Path) -> None:
    """A file written by the editor belongs to the project only if git does not ignore it."""
    asked = [
        "src/a.py",
        "kept/ignored.log",
        ".env",
        "; rm -rf",
        "with space/é.lua",
        "gone.py",
        "dist/app.js",
    ]
    fill(root, "dist/app.js")
    assert listed_among(root, asked, Choice()) == {*asked} - {".env"}, "without git, names decide"
    git(root, "init", "-q")
    assert listed_among(root, asked, Choice()) == {"src/a.py", "; rm -rf", "with space/é.lua"}
    assert listed_among(root / "src", ["a.py"], Choice()) == {"a.py"}
    assert listed_among(root, ["../x", ":(glob)**"], Choice()) == set()


def test_hidden_files_are_listed_on_request_and_secrets_never(root: Path) -> None:
    listed = list_project_files(root, Choice(include_hidden=True))
    assert ".github/run.yml" in listed.paths
    assert not [path for path in listed.paths if ".env" in path or path.endswith(".pem")]


def test_nested_repositories_and_submodules_are_queried_separately(root: Path, tmp_path: Path) -> None:
    other = tmp_path / "other"
    other.mkdir()
    fill(other, "lib.py", "skip.log")
    (other / ".gitignore").write_text("*.log\n")
    git(other, "init", "-q")
    git(other, "add", ".")
    git(other, "commit", "-qm", "one")
    git(root, "init", "-q")
    git(root, "submodule", "add", "-q", str(other), "sub.mod")
    git(root, "clone", "-q", str(other), "inner")
    paths = list_project_files(root, Choice()).paths
    assert {"sub.mod/lib.py", "inner/lib.py"} <= set(paths)
    assert not [path for path in paths if path.endswith(".log")]


def test_internal_files_of_a_bare_repository_are_not_code(root: Path, tmp_path: Path) -> None:
    """Its configuration may contain an address with a key (R-266); other files there are listed."""
    bare = tmp_path / "bare.git"
    git(tmp_path, "init", "-q", "--bare", str(bare))
    fill(bare, "tree/a.py")
    listed = list_project_files(bare, Choice(include_hidden=True))
    assert (listed.paths, listed.source) == (("tree/a.py",), "walk")


def test_links_are_not_followed(root: Path, tmp_path: Path) -> None:
    (root / "loop").symlink_to(root)
    (root / "src" / "up").symlink_to("..")
    (tmp_path / "outside.py").write_text("secret = 1\n")
    (root / "link.py").symlink_to(tmp_path / "outside.py")
    assert list_project_files(root, Choice()).paths == OWN
    git(root, "init", "-q")
    git(root, "add", ".")
    paths = list_project_files(root, Choice()).paths
    assert [path for path in paths if not read_project_file(root, path, Choice()).why_not] == list(OWN)


def test_an_explicitly_requested_ignored_folder_is_walked(root: Path) -> None:
    git(root, "init", "-q")
    (root / ".gitignore").write_text("scratch/\n")
    fill(root, "scratch/one.py")
    listed = list_project_files(root / "scratch", Choice())
    assert (listed.paths, listed.source) == (("one.py",), "walk")


def test_a_name_that_is_not_text_is_left_out(root: Path) -> None:
    try:
        Path(os.fsdecode(os.fsencode(root) + b"/bad\xff.py")).write_text("x")
    except OSError:
        pytest.skip("this file system has only names that are text")
    assert list_project_files(root, Choice()).left_out["name"] == 1


def test_without_git_the_walk_is_used(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    git(root, "init", "-q")
    monkeypatch.setenv("PATH", "")
    assert list_project_files(root, Choice()).source == "walk"


@pytest.mark.parametrize(
    ("content", "why_not"),
    [
        (b"x = 1\n", ""),
        (b"", ""),
        (b"\xff\xfe\x00\x01", ""),  # UTF-16
        (b"abc\0def", "binary"),
        ("é".encode("latin-1") * 20, ""),
        (b"// Code generated by protoc. DO NOT EDIT.\n", "generated"),
        (b"x" * 5_000_000, "too large"),
        (b"var a=1;" * 10_000, "generated"),
        (b"line\n" * 10_000 + b"y" * 6_000, ""),
        (b"import x\n\ndef a():\n    pass\n\nIMAGE = '" + b"y" * 90_000 + b"'\n\ndef b():\n    pass\n", ""),
        (b"/*! license */\n" + b"f(1);" * 90_000 + b"\n//# sourceMappingURL=a.map\n", "generated"),
    ],
)
def test_the_content_of_a_file_shows_whether_it_is_text(tmp_path: Path, content: bytes, why_not: str) -> None:
    (tmp_path / "a.js").write_bytes(content)
    read = read_project_file(tmp_path, "a.js", Choice())
    assert read.why_not == why_not
    assert read.size == len(content)


def test_the_maximum_size_is_configurable_and_data_has_its_own(tmp_path: Path) -> None:
    fill(tmp_path, "a.py", "a.json")
    assert read_project_file(tmp_path, "a.py", Choice(max_bytes=5)).why_not == "too large"
    (tmp_path / "a.json").write_bytes(b"[\n" * 100_000)
    assert read_project_file(tmp_path, "a.json", Choice()).why_not == "too large"


def test_unreadable_files_are_reported(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    (tmp_path / "folder.py").mkdir()
    assert read_project_file(tmp_path, "pipe", Choice()).why_not == "not a regular file"
    assert read_project_file(tmp_path, "folder.py", Choice()).why_not == "not a regular file"
    assert read_project_file(tmp_path, "never.py", Choice()).why_not == "gone"


@pytest.mark.skipif(os.geteuid() == 0, reason="root may read any file")
def test_a_file_without_permission_is_unreadable(tmp_path: Path) -> None:
    fill(tmp_path, "shut.py")
    (tmp_path / "shut.py").chmod(0)
    assert read_project_file(tmp_path, "shut.py", Choice()).why_not == "unreadable"


@pytest.mark.parametrize(
    ("path", "secret"),
    [
        *(
            (name, True)
            for name in (".env", "a/.env.local", "prod.env", "id_rsa", "ID_ED25519", "x.pem", ".ssh/config")
        ),
        *(
            (name, True)
            for name in ("secrets.yaml", "db-secret.json", "credentials.json", ".aws/credentials", ".netrc")
        ),
        *((name, False) for name in ("secrets.py", "src/id_generator.py", "environment.py", "Keys.java", "docs/a.md")),
    ],
)
def test_secret_files_are_recognised_by_name(path: str, secret: bool) -> None:
    assert is_secret(path) is secret
    if secret:
        assert not belongs(path, Choice(include_hidden=True))
