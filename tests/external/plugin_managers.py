"""Shared by the tests of plugin managers: a Git repository to install from, a fake uv, and a Neovim with a clean home.

The repository is made from the files in the working tree (nothing has to be committed) and served by a bare clone under
a `file://` URL. The fake uv creates an "environment" whose Python is the one that runs the tests, so that the host
really starts; the real uv is tested in `test_real_environment.py`.
"""

from __future__ import annotations

import atexit
import os
import shutil
import subprocess
import tempfile
from functools import cache
from pathlib import Path

import pytest

from harness import REPO, Nvim, find_nvim, other_nvims

EVERY_NVIM = [find_nvim() or "nvim", *other_nvims()]
"""The Neovim that is tested and those from $NVIM_BINS."""

COMMANDS = ["", "Chat", "Restore", "Compact", "Undo", "Redo", "Recall", "Cost", "Trace"]

NEEDED = ["build.lua", "lazy.lua", "requirements.lock", "doc", "ftplugin", "lua", "plugin", "python", "rplugin"]


NOT_RUN = {"assets", "docs", "media", "test", "tests"}


def git(folder: Path, *arguments: str) -> str:
    """Run git in `folder` with a test identity and return its output."""
    who = ["-c", "user.name=t", "-c", "user.email=t@t", "-c", "init.defaultBranch=main"]
    done = subprocess.run(["git", "-C", str(folder), *who, *arguments], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout.strip()


class Origin:
    """The URL that a user would install from, and the publisher's working copy."""

    def __init__(self, root: Path) -> None:
        """Publish the plugin's files as the first version."""
        self.work, self.bare = root / "publisher", root / "codecompanion.git"
        self.url = f"file://{self.bare}"
        shutil.copytree(first_version(), self.bare)
        git(root, "clone", "-q", str(self.bare), str(self.work))

    def publish(self, path: str, text: str) -> None:
        """Publish a version with `text` appended to the file `path`."""
        with (self.work / path).open("a", encoding="utf-8") as file:
            file.write(text)
        git(self.work, "commit", "-q", "-a", "-m", f"fix: change {path}")
        git(self.work, "push", "-q", "origin", "HEAD")


@cache
def first_version() -> Path:
    """Return a repository with the current files of the plugin, created once per process for all tests to copy."""
    root = Path(tempfile.mkdtemp(prefix="first-version-"))
    atexit.register(shutil.rmtree, root, ignore_errors=True)
    work, bare = root / "work", root / "bare"
    for name in tracked_files():
        target = work / name
        target.parent.mkdir(parents=True, exist_ok=True)
        shutil.copy2(REPO / name, target)
    git(work, "init", "-q")
    git(work, "add", "-A", "-f")
    git(work, "commit", "-q", "-m", "feat: first version")
    git(root, "clone", "-q", "--bare", str(work), str(bare))
    git(bare, "repack", "-q", "-a", "-d")
    git(bare, "config", "uploadpack.allowFilter", "true")  # as the big hosts have it
    git(bare, "remote", "remove", "origin")
    return bare


def tracked_files() -> list[str]:
    """Return the plugin's files that Git tracks or would add; without Git, all files that belong to it."""
    command = ["git", "-C", str(REPO), "ls-files", "-co", "--exclude-standard", *NEEDED]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    names = done.stdout.split("\n") if done.returncode == 0 else []
    if not any(names):
        found = [path for name in NEEDED for path in [REPO / name, *(REPO / name).rglob("*")]]
        names = [str(path.relative_to(REPO)) for path in found if "__pycache__" not in path.parts]
    return [name for name in names if name and (REPO / name).is_file()]


def clone_of(variable: str, mirrored: str, target: Path, version: str = "HEAD") -> Path:
    """Clone a plugin to `target`, or skip the test and name the places searched for a clone."""
    source = Path(os.environ.get(variable, f"/work/.mirror/{mirrored}/repo"))
    if not source.exists():
        pytest.skip(f"no clone of {mirrored.replace('+', '/')} at {source}; set {variable} to a clone of it")
    git(target.parent, "clone", "-q", "--shared", "--no-checkout", str(source), str(target))
    # A mirror may lack the largest files, which tests and pictures of a plugin are: they are not checked out.
    folders = git(target, "ls-tree", "--name-only", version).split("\n")
    git(target, "checkout", "-q", version, "--", *(name for name in folders if name not in NOT_RUN))
    return target


def missing_commands(nvim: Nvim) -> list[str]:
    """Return the plugin's commands that do not exist."""
    return [name for name in COMMANDS if nvim.lua("return vim.fn.exists(...)", f":CodeCompanion{name}") != 2]


def loaded_modules(nvim: Nvim) -> list[str]:
    """Return the plugin's loaded modules, except the one that contains `setup`."""
    names = nvim.lua("return vim.tbl_keys(package.loaded)")
    return sorted(name for name in names if name.startswith("codecompanion."))


def environments(nvim: Nvim) -> list[Path]:
    """Return the complete environments in the data folder."""
    folder = Path(nvim.lua("return vim.fn.stdpath('data')")) / "codecompanion" / "venv"
    return sorted(path.parent for path in folder.glob("*/codecompanion-stamp.json"))


def talk(nvim: Nvim, text: str = "hello there") -> None:
    """Open a chat, send `text` to the offline adapter and wait for its answer."""
    nvim.command("CodeCompanionChat")
    nvim.wait_lua("return vim.b.codecompanion_chat and vim.b.codecompanion_chat.meter ~= nil")
    nvim.feed("Gi" + text + "<Esc><CR>")
    nvim.wait_for(lambda: answered(nvim), "the answer")


def answered(nvim: Nvim) -> bool:
    """Return whether the visible chat has an answer and is idle."""
    idle = nvim.lua("return (vim.b.codecompanion_chat or {}).state == 'idle'")
    return bool(idle) and any(line.startswith("## CodeCompanion") for line in nvim.lines())


def health(nvim: Nvim) -> str:
    """Return the report of `:checkhealth codecompanion` as one line, and close its window."""
    nvim.command("checkhealth codecompanion")
    text = " ".join(" ".join(nvim.lines()).split())
    nvim.command("bwipeout!")
    assert "Failed to run healthcheck" not in text
    return text
