"""Runs git without starting any program that a repository names, and reads a working tree's state (R-351).

Git starts programs that are named in its configuration: monitors, filters, drivers, signature checks, transports. Here,
each call gets a temporary git directory with the repository's HEAD, refs, objects and index, and only those
configuration values that an allow-list permits (`git_runner.toml`). That directory has no hooks, filters, drivers,
remotes or includes from the repository, the user or the system. The repository is found by `git_repository.py` rather
than git, so a folder that only looks like a bare repository does not count.
"""

from __future__ import annotations

import contextlib
import logging
import os
import re
import subprocess
import tempfile
from collections.abc import Callable, Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Any

import msgspec

from codecompanion.formats.find_program import find_program, own_search_path
from codecompanion.formats.package_table import package_table
from codecompanion.workspace.bounded_process import Ended, run_bounded
from codecompanion.workspace.git_config import read_entries
from codecompanion.workspace.git_repository import Repository, find_repository, read_start

_log = logging.getLogger(__name__)

TIME_LIMIT_S = 2.0
MAX_BYTES = 64 * 1024 * 1024
"""Maximum size of git's output in bytes: enough for the names of a million files."""
NO_REPOSITORY = b"not a git repository"
_MAX_HEAD_BYTES = 4_096
_STATUS = ("status", "--porcelain=v1", "--branch", "-z", "--untracked-files=normal", "--ignore-submodules=all")
_ON_NO_COMMIT = "No commits yet on "
_OTHER_HEADS = ("ORIG_HEAD", "FETCH_HEAD", "MERGE_HEAD", "CHERRY_PICK_HEAD", "REVERT_HEAD", "REBASE_HEAD")
_SHARED = ("refs", "packed-refs", "reftable", "shallow")
_OWN_INFO = ("sparse-checkout",)
_SHARED_INFO = ("exclude", "attributes")


class GitStatus(msgspec.Struct, frozen=True):
    """The state of a working tree: `branch` ("" if none), and `changed` as (status code, path below the top folder)."""

    branch: str = ""
    changed: tuple[tuple[str, str], ...] = ()


def read_status(root: Path, time_limit_s: float = TIME_LIMIT_S) -> GitStatus | None:
    """Return the state of the repository that contains `root`; None if there is none, or on a timeout. Blocks."""
    try:
        output = read_git(root, _STATUS, time_limit_s)
    except (OSError, subprocess.SubprocessError) as error:
        _log.info("git status failed: %s", error)
        return None
    return parse_status(output.decode("utf-8", "replace"))


def read_git(
    folder: Path,
    arguments: Sequence[str],
    time_limit_s: float,
    *,
    repository: Repository | None = None,
    index: Path | None = None,
) -> bytes:
    """Return git's output in a folder; git takes no locks, never prompts and runs no repository program. Blocks.

    `repository` and `index` replace the repository that contains the folder and that repository's index.

    Raises: OSError: git or the folder is missing. subprocess.SubprocessError: git fails, as it does outside a
    repository, or reaches a limit.
    """
    ended = run_git(
        folder, arguments, time_limit_s=time_limit_s, max_bytes=MAX_BYTES, repository=repository, index=index
    )
    if ended.stopped == "time":
        raise subprocess.TimeoutExpired(["git", *arguments], time_limit_s)
    if ended.stopped:
        raise subprocess.SubprocessError(f"git printed more than {MAX_BYTES} bytes")
    if ended.status:
        raise subprocess.CalledProcessError(ended.status, ["git", *arguments], ended.output, ended.errors)
    return ended.output


def run_git(
    folder: Path,
    arguments: Sequence[str],
    *,
    time_limit_s: float,
    max_bytes: int,
    check: Callable[[], None] = lambda: None,
    repository: Repository | None = None,
    index: Path | None = None,
) -> Ended:
    """Run git in a folder of a repository, as `read_git` does, and return how it ended. Blocks; `check` may raise.

    Raises: OSError: git or the folder is missing.
    """
    repository = repository or find_repository(folder)
    untrusted = (folder, repository.top) if repository else (folder,)
    program = find_program("git", *untrusted)
    if repository is None:
        return Ended(b"", b"fatal: " + NO_REPOSITORY, 128)
    with tempfile.TemporaryDirectory(prefix="codecompanion-git-") as made:
        environment = {**git_environment(Path(made), *untrusted), **_stand_in(Path(made), repository, index)}
        command = (program, *_table()["arguments"], *arguments)
        return run_bounded(
            command,
            folder=folder,
            environment=environment,
            time_limit_s=time_limit_s,
            max_bytes=max_bytes,
            check=check,
        )


def run_git_outside(folder: Path, arguments: Sequence[str], *, time_limit_s: float, max_bytes: int) -> Ended:
    """Run a git command that needs no repository, in a temporary folder that no repository contains. Blocks.

    Raises: OSError: git is missing.
    """
    environment = {**git_environment(folder, folder), "GIT_DIR": str(folder / "none")}
    command = (find_program("git", folder), *_table()["arguments"], *arguments)
    return run_bounded(command, folder=folder, environment=environment, time_limit_s=time_limit_s, max_bytes=max_bytes)


def git_environment(home: Path, *untrusted: Path) -> dict[str, str]:
    """Return the environment for git, as listed in `git_runner.toml`; `home` replaces the user's home.

    No programs or libraries are loaded from folders below `untrusted` (`formats.find_program`).
    """
    table = _table()
    kept = {name: value for name in table["kept"].split() if (value := os.environ.get(name)) is not None}
    for name in table["search_paths"].split():
        if found := own_search_path(os.environ.get(name, ""), *untrusted):
            kept[name] = found
    return {**kept, **table["environment"], "HOME": str(home), "XDG_CONFIG_HOME": str(home)}


def parse_status(output: str) -> GitStatus:
    """Parse the output of `git status --porcelain=v1 --branch -z`."""
    branch, changed = "", list[tuple[str, str]]()
    records = iter(output.split("\0"))
    for record in records:
        if record.startswith("## "):
            branch = _branch(record[3:])
        elif len(record) > 3:
            code = record[:2].strip()
            changed.append((code, record[3:]))
            if "R" in record[:2] or "C" in record[:2]:
                next(records, "")  # the path before the rename
    return GitStatus(branch, tuple(changed))


def _branch(line: str) -> str:
    """Return the branch named in the status header: `main...origin/main [ahead 1]`, `HEAD (no branch)`."""
    if line.startswith("HEAD (no branch)"):
        return ""
    line = line.removeprefix(_ON_NO_COMMIT)
    return line.split("...")[0].split(" [")[0]


def _stand_in(made: Path, repository: Repository, index: Path | None) -> dict[str, str]:
    """Create a git directory with the repository's content but not its configuration; return git's variables for it.

    Raises: OSError: the repository cannot be read, or has no HEAD.
    """
    own, common = repository.git_dir, repository.common_dir
    git_dir = made / "git"
    (git_dir / "info").mkdir(parents=True)
    (git_dir / "logs").mkdir()
    (git_dir / "config").write_text(_config(repository), "utf-8", "surrogateescape")
    (git_dir / "HEAD").write_bytes(_head(own))
    for name in _OTHER_HEADS:
        with contextlib.suppress(OSError):
            (git_dir / name).write_bytes(read_start(own / name, _MAX_HEAD_BYTES))
    links = {name: common / name for name in _SHARED}
    links |= {f"info/{name}": common / "info" / name for name in _SHARED_INFO}
    links |= {f"info/{name}": own / "info" / name for name in _OWN_INFO}
    links |= {"logs/HEAD": own / "logs" / "HEAD", "logs/refs": common / "logs" / "refs"}
    links |= {path.name: path for path in own.glob("sharedindex.*")}
    for name, target in links.items():
        if target.exists():
            (git_dir / name).symlink_to(target)
    (git_dir / "refs").mkdir(exist_ok=True)  # for refs in another format (reftable)
    return {
        "GIT_DIR": str(git_dir),
        "GIT_WORK_TREE": str(repository.top),
        "GIT_INDEX_FILE": str(index or own / "index"),
        "GIT_OBJECT_DIRECTORY": str(common / "objects"),
    }


def _head(git_dir: Path) -> bytes:
    head = git_dir / "HEAD"
    if head.is_symlink() and (target := str(head.readlink())).startswith("refs/"):  # the format before 2005
        return b"ref: " + os.fsencode(target) + b"\n"
    return read_start(head, _MAX_HEAD_BYTES)


def _config(repository: Repository) -> str:
    """Return git's configuration: the repository's and the user's values that the allow-lists permit."""
    taken = {"core.bare": "false", "core.repositoryformatversion": "0"}
    for file in _files_of_user():
        taken |= _taken(file, "user")
        for entry in read_entries(file):
            if entry.key == "core.excludesfile":
                taken[entry.key] = str(Path(entry.value).expanduser()) if entry.value.startswith(("~/", "/")) else ""
    ignored = Path(taken.get("core.excludesfile") or _folder_of_user() / "ignore")
    taken["core.excludesfile"] = str(ignored) if ignored.is_file() else ""
    for file in (repository.common_dir / "config", repository.git_dir / "config.worktree"):
        taken |= _taken(file, "repository")
    if any(key.startswith("extensions.") for key in taken):
        taken["core.repositoryformatversion"] = "1"
    sections = dict[str, list[str]]()
    for key, value in taken.items():
        section, _, name = key.partition(".")
        sections.setdefault(section, []).append(f"\t{name} = {_quoted(value)}\n")
    return "".join(f"[{section}]\n{''.join(lines)}" for section, lines in sections.items())


def _taken(file: Path, which: str) -> dict[str, str]:
    patterns = _allowed(which)
    return {
        entry.key: entry.value
        for entry in read_entries(file)
        if (pattern := patterns.get(entry.key)) and pattern.fullmatch(entry.value)
    }


def _files_of_user() -> tuple[Path, ...]:
    return (Path("/etc/gitconfig"), _folder_of_user() / "config", Path.home() / ".gitconfig")


def _folder_of_user() -> Path:
    return Path(os.environ.get("XDG_CONFIG_HOME") or Path.home() / ".config") / "git"


def _quoted(value: str) -> str:
    escaped = value.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n").replace("\t", "\\t")
    return f'"{escaped}"'


@cache
def _allowed(which: str) -> Mapping[str, re.Pattern[str]]:
    return {key: re.compile(values) for key, values in _table()[which].items()}


def _table() -> dict[str, Any]:
    return package_table("workspace/git_runner.toml")
