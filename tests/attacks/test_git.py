"""Hostile repositories × every feature that uses Git: no program from the repository runs.

A planted program writes a canary file. Controls run plain Git in the same repository to show that the canary works:
each kind of attack names the Git command that runs the program, or the reason why the plugin never runs it.
"""

from __future__ import annotations

import contextlib
import os
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from codecompanion.errors import InputError
from codecompanion.formats import find_program
from codecompanion.formats.find_program import worked_in
from codecompanion.workspace.git import read_status
from codecompanion.workspace.git_config import Entry, names_program, programs_named
from codecompanion.workspace.git_diff import read_diff
from codecompanion.workspace.git_edits import recent_edits
from codecompanion.workspace.git_head import read_head
from codecompanion.workspace.git_history import read_head as read_commit
from codecompanion.workspace.git_history import recent_commits
from codecompanion.workspace.git_listing import files_by_git, names_below, submodules_of
from codecompanion.workspace.git_staged import read_staged
from codecompanion.workspace.merge import merge
from codecompanion.workspace.named_files import files_named
from codecompanion.workspace.project_files import Choice, list_project_files, listed_among
from codecompanion.workspace.text_search import files_with
from tests.attacks.conftest import Tally
from tests.attacks.sizes import FULL

pytestmark = pytest.mark.skipif(shutil.which("git") is None, reason="there is no git here")
REPO = Path(__file__).resolve().parents[2]
CONTROL = ("-c", "protocol.ext.allow=always", "-c", "protocol.file.allow=always")
# Key → the plain git command that starts its program; () if no read-only command does.
KEYS: dict[str, tuple[str, ...]] = {
    "core.fsmonitor": ("status",),
    "core.hooksPath": (),
    "core.pager": (),  # a pager needs a terminal
    "pager.log": (),
    "core.editor": ("commit", "--allow-empty", "--amend"),
    "sequence.editor": (),
    "core.askPass": (),
    "core.sshCommand": ("ls-remote", "ssh://host.invalid/x"),
    "core.gitProxy": ("ls-remote", "git://host.invalid/x"),
    "core.alternateRefsCommand": (),
    "credential.helper": ("credential", "fill"),
    "diff.external": ("diff",),
    "diff.d.command": ("diff",),
    "diff.d.textconv": ("diff",),
    "filter.f.clean": ("diff",),
    "filter.f.process": ("diff",),
    "filter.f.smudge": ("checkout", "--", "f.txt"),
    "merge.m.driver": (),
    "gpg.program": ("log", "--show-signature"),
    "gpg.ssh.program": (),
    "gpg.x509.program": (),
    "interactive.diffFilter": (),
    "uploadpack.packObjectsHook": (),
    "gc.recentObjectsHook": (),
    "difftool.t.cmd": ("difftool", "--no-prompt", "--tool=t"),
    "mergetool.t.cmd": (),
    "browser.b.cmd": (),
    "man.m.cmd": (),
    "imap.tunnel": (),
    "sendemail.sendmailCmd": (),
    "trailer.t.command": (),
    "tar.t.command": ("archive", "--format=t", "HEAD"),
    "alias.x": ("x",),
    "hook.x.command": (),
    "remote.origin.uploadpack": ("ls-remote", "origin"),
    "lfs.customtransfer.x.path": (),
}
ALSO = {
    "diff.d.textconv": {},
    "gpg.program": {"log.showSignature": "true"},
    "gpg.ssh.program": {"log.showSignature": "true", "gpg.format": "ssh"},
    "remote.origin.uploadpack": {"remote.origin.url": "."},
    "filter.f.clean": {"filter.f.required": "true"},
}
SIGNED = b"""\
tree %s
author a <a@b> 1700000000 +0000
committer a <a@b> 1700000000 +0000
gpgsig -----BEGIN PGP SIGNATURE-----
 iQ
 -----END PGP SIGNATURE-----

signed
"""


def git(folder: Path, *arguments: str, check: bool = True, **more: object) -> subprocess.CompletedProcess[bytes]:
    environment = {name: value for name, value in os.environ.items() if not name.startswith("GIT_")}
    environment |= {"GIT_TERMINAL_PROMPT": "0", "GIT_CONFIG_NOSYSTEM": "1"}
    who = ("-c", "user.name=t", "-c", "user.email=t@example.org", "-c", "commit.gpgsign=false")
    options = {"capture_output": True, "stdin": subprocess.DEVNULL, "timeout": 20, "env": environment} | more
    return subprocess.run(["git", *who, *arguments], cwd=folder, check=check, **options)  # type: ignore[call-overload, no-any-return]


class Hostile:
    """A repository with a change, a staged file, attributes for every kind of driver, and a planted program."""

    def __init__(self, folder: Path) -> None:
        """Create it without running the planted program."""
        self.root, self.canary = folder / "repo", folder / "canary"
        self.root.mkdir(parents=True)
        self.program = folder / "program"
        self.program.write_text(f"#!/bin/sh\necho x >> '{self.canary}'\nexit 1\n")
        self.program.chmod(0o755)
        git(self.root, "init", "-q", "-b", "main")
        (self.root / ".gitattributes").write_text("*.txt diff=d filter=f merge=m\n")
        for name in ("f.txt", "g.txt"):
            (self.root / name).write_text("one needle\n")
        git(self.root, "add", ".")
        git(self.root, "commit", "-q", "-m", "first")
        tree = git(self.root, "rev-parse", "HEAD^{tree}").stdout.strip()
        made = subprocess.run(
            ["git", "hash-object", "-t", "commit", "-w", "--stdin"],
            cwd=self.root, input=SIGNED % tree, capture_output=True, check=True,
        )  # fmt: skip
        git(self.root, "update-ref", "refs/heads/main", made.stdout.decode().strip())
        (self.root / "f.txt").write_text("two needle\n")
        (self.root / "new.txt").write_text("a needle\n")
        git(self.root, "add", "new.txt")
        (self.root / "g.txt").write_text("three\n")

    def ran(self) -> bool:
        """Return whether the program ran since the last check."""
        ran = self.canary.exists()
        self.canary.unlink(missing_ok=True)
        return ran


ACTIONS: dict[str, Callable[[Path], object]] = {
    "status": read_status,
    "head": read_head,
    "commit": read_commit,
    "history": recent_commits,
    "edits": recent_edits,
    "listing": lambda root: list(files_by_git(root)),
    "completion": names_below,
    "project files": lambda root: list_project_files(root, Choice()),
    "some files": lambda root: listed_among(root, ["f.txt"], Choice()),
    "named files": lambda root: files_named(root, ["f.txt", "new.txt", "none.txt"]),
    "text search": lambda root: files_with(root, ["needle"]),
    "diff": lambda root: read_diff(root, ""),
    "unstaged": lambda root: read_diff(root, "unstaged"),
    "staged diff": lambda root: read_diff(root, "staged"),
    "branch": lambda root: read_diff(root, "branch"),
    "a commit": lambda root: read_diff(root, "HEAD"),
    "a range": lambda root: read_diff(root, "HEAD..HEAD"),
    "staged": read_staged,
    "merge": lambda root: merge("a\n", "b\n", "c\n", ("x", "y", "z")),
    "programs": programs_named,
}


def attack(hostile: Hostile, folder: Path) -> list[str]:
    """Perform every action in a folder; return the actions that ran the program."""
    ran = []
    for name, action in ACTIONS.items():
        with contextlib.suppress(InputError, OSError):
            action(folder)
        ran += [name] if hostile.ran() else []
    return ran


@pytest.mark.slow("runs git for every key of its configuration")
def test_no_key_of_the_configuration_runs_anything(
    tmp_path: Path, tally: Tally, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each key is tried with each action, in the repository's file and in an included file.

    All keys with ATTACKS=full.
    """
    monkeypatch.setattr("codecompanion.workspace.text_search._ripgrep", no_ripgrep)
    hostile = Hostile(tmp_path)
    config, clean = hostile.root / ".git" / "config", (hostile.root / ".git" / "config").read_text()
    tried, ran, controls = 0, list[str](), list[str]()
    for key, control in KEYS.items():
        if not (control or FULL):
            continue
        lines = "".join(entry(name, value) for name, value in {key: str(hostile.program), **ALSO.get(key, {})}.items())
        if key == "alias.x":
            lines = entry(key, f"!{hostile.program}")
        (hostile.root / ".git" / "more").write_text(lines)
        for text in (clean + lines, clean + "[include]\n\tpath = more\n")[: 2 if FULL else 1]:
            config.write_text(text)
            found = attack(hostile, hostile.root)
            tried += len(ACTIONS)
            ran += [f"{key}: {action}" for action in found]
        assert programs_named(hostile.root), key
        if control:
            git(hostile.root, *CONTROL, *control, check=False, **question_of(control))
            controls += [] if hostile.ran() else [key]
            config.write_text(clean)
            (hostile.root / "f.txt").write_text("two needle\n")
            git(hostile.root, "add", "new.txt", check=False)
    tally("git: keys that name programs × actions", tried=tried, held=tried - len(ran))
    assert not ran, "\n".join(ran)
    assert not controls, f"plain git does not run these, so that they prove nothing: {controls}"


def entry(key: str, value: str) -> str:
    """Return a key in the syntax of a file."""
    section, _, name = key.rpartition(".")
    first, _, second = section.partition(".")
    head = f'[{first} "{second}"]' if second else f"[{first}]"
    return f'{head}\n\t{name} = "{value}"\n'


def no_ripgrep(*_: object) -> None:
    raise FileNotFoundError("rg")


def question_of(control: tuple[str, ...]) -> dict[str, object]:
    """Return the input for a control command; `credential fill` reads a question."""
    if control[0] == "credential":
        return {"input": b"protocol=https\nhost=host.invalid\n\n", "stdin": None}
    return {}


def test_folders_that_look_like_repositories_and_pointers_run_nothing(
    tmp_path: Path, tally: Tally, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A clone is safe even with a bare-like folder, `.git` files, nested repositories and submodules.

    The same applies to hooks, a promisor and GIT_*.
    """
    monkeypatch.setattr("codecompanion.workspace.text_search._ripgrep", no_ripgrep)
    hostile = Hostile(tmp_path)
    evil = entry("core.fsmonitor", str(hostile.program)) + entry("diff.external", str(hostile.program))
    bare = hostile.root / "docs"
    for name in ("objects", "refs"):
        (bare / name).mkdir(parents=True)
    (bare / "HEAD").write_text("ref: refs/heads/main\n")
    (bare / "config").write_text(f"[core]\n\trepositoryformatversion = 0\n\tbare = false\n\tworktree = .\n{evil}")
    git(bare, "status", check=False)
    assert hostile.ran(), "the control did not run"
    pointer, nested = tmp_path / "pointer", hostile.root / "nested"
    pointer.mkdir()
    (pointer / ".git").write_text(f"gitdir: {bare}\n")
    nested.mkdir()
    git(nested, "init", "-q")
    (nested / ".git" / "config").open("a").close()
    config = (nested / ".git" / "config").read_text()
    (nested / ".git" / "config").write_text(config + evil)
    for name in ("pre-commit", "post-checkout", "post-index-change", "fsmonitor-watchman", "reference-transaction"):
        shutil.copy(hostile.program, hostile.root / ".git" / "hooks" / name)
    own = hostile.root / ".git" / "config"
    promisor = (
        entry("remote.origin.url", f"ext::{hostile.program}") + entry("remote.origin.promisor", "true")
        + entry("extensions.partialClone", "origin") + entry("protocol.ext.allow", "always")
    )  # fmt: skip
    own.write_text(own.read_text() + promisor)
    blob = git(hostile.root, "rev-parse", "HEAD:g.txt").stdout.decode().strip()
    (hostile.root / ".git" / "objects" / blob[:2] / blob[2:]).unlink()
    git(hostile.root, "cat-file", "-p", blob, check=False)
    assert hostile.ran(), "the control of the promisor did not run"
    monkeypatch.setenv("GIT_DIR", str(bare))
    monkeypatch.setenv("GIT_EXTERNAL_DIFF", str(hostile.program))
    monkeypatch.setenv("GIT_SSH_COMMAND", str(hostile.program))
    monkeypatch.setenv("GIT_CONFIG_COUNT", "1")
    monkeypatch.setenv("GIT_CONFIG_KEY_0", "core.fsmonitor")
    monkeypatch.setenv("GIT_CONFIG_VALUE_0", str(hostile.program))
    folders = [hostile.root, bare, pointer, nested]
    ran = [f"{folder.name}: {action}" for folder in folders for action in attack(hostile, folder)]
    tally(
        "git: folders, pointers, hooks, promisors, GIT_* × actions",
        tried=4 * len(ACTIONS),
        held=4 * len(ACTIONS) - len(ran),
    )
    assert not ran, "\n".join(ran)


@pytest.mark.slow("runs git in many folders")
@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="LD_LIBRARY_PATH is of Linux")
def test_libraries_and_programs_are_never_loaded_from_the_workspace(
    tmp_path: Path, tally: Tally, monkeypatch: pytest.MonkeyPatch
) -> None:
    """`LD_LIBRARY_PATH=:/opt/lib` includes the working folder; a fake libc there does not keep Git from starting."""
    monkeypatch.setattr("codecompanion.workspace.text_search._ripgrep", no_ripgrep)
    hostile, path, failed = Hostile(tmp_path), os.environ["PATH"], list[str]()
    (hostile.root / "libc.so.6").write_text("not a library")
    shutil.copy(hostile.program, hostile.root / "git")
    monkeypatch.setattr(find_program, "_written", set())
    worked_in(hostile.root)
    paths = ("", ":", ".", "./", ":/opt/lib", "/opt/lib:", f"{hostile.root}", f"{tmp_path}/repo/../repo", "/opt/lib;.")
    for one in paths:
        monkeypatch.setenv("PATH", f"{one}:{path}")
        for libraries in ("", one):
            monkeypatch.setenv("LD_LIBRARY_PATH", libraries)
            status = read_status(hostile.root)
            if status is None or not status.changed or attack(hostile, hostile.root):
                failed.append(f"{one} {libraries}")
    monkeypatch.setenv("LD_LIBRARY_PATH", ":")
    assert git(hostile.root, "status", check=False, env=dict(os.environ)).returncode, "the control found the real libc"
    tally("git: search paths × actions", tried=2 * len(paths), held=2 * len(paths) - len(failed))
    assert not failed


def test_no_part_of_the_configuration_hides_a_program(tmp_path: Path, tally: Tally) -> None:
    """A program is found after a megabyte, after hundreds of includes, in any submodule and in values of known keys."""
    evil, places = entry("core.fsmonitor", "/evil"), dict[str, Path]()

    def repository(name: str) -> Path:
        folder = places[name] = tmp_path / name
        folder.mkdir()
        git(folder, "init", "-q")
        return folder

    def adds(folder: Path, text: str) -> None:
        with (folder / ".git" / "config").open("a") as config:
            config.write(text)

    adds(repository("large"), "# " + "x" * 1_100_000 + "\n" + evil)
    names = [f"i{number}" for number in range(1_200)]
    for name in names:
        includes = places.get("includes") or repository("includes")
        (includes / ".git" / name).write_text(evil if name == names[-1] else "[a]\n\tb = c\n")
    adds(includes, "".join(f"[include]\n\tpath = {name}\n" for name in names))
    for name in ("hooks", "objects", "logs", "refs", "a/objects/b", "modules/refs"):
        module = repository(name.replace("/", "-")) / ".git" / "modules" / name
        module.mkdir(parents=True)
        (module / "HEAD").write_text("ref: refs/heads/main\n")
        (module / "config").write_text(evil)
    many = repository("many-modules") / ".git" / "modules"
    for number in range(1_200):
        (many / f"m{number}").mkdir(parents=True)
        (many / f"m{number}" / "config").write_text(evil if number == 1_199 else "[a]\n\tb = c\n")
    outer = repository("outer")
    for at in ("sub", "deep/er"):
        (outer / at).mkdir(parents=True)
        git(outer / at, "init", "-q")
        git(outer / at, "commit", "-q", "--allow-empty", "-m", "x")
        git(outer, "add", at)
    adds(outer / "deep/er", evil)
    values = {
        "core.pager": ("less -kx", "less -ok", "less -FXk", "less -pX", "less +!evil", "less --lesskey-src=x"),
        "alias.x": (
            "grep -O/evil x",
            "rebase -x /evil HEAD",
            "rebase --exec=/evil",
            "fetch --upload-pack=/evil .",
            "difftool -x /evil",
            "bisect run /evil",
            "submodule foreach /evil",
            "push --exec=/evil .",
            "filter-branch --tree-filter /evil",
            "-c core.pager=/evil log",
            "log --ext-diff",
            "!evil",
            "status; evil",
            "diff --output=/evil",
            "evil",
            "archive --remote=. --exec=/evil",
            "clone -u /evil . x",
            "help --web x",
        ),
        "mergetool.vimdiff.layout": ("LOCAL; !evil",),
        "annex.ssh-options": ("-oProxyCommand=/evil",),
        "remote.o.annex-rsync-transport": ("/evil",),
        "remote.o.annex-externaltype": ("evil",),
    }
    known = [f"{key}={value}" for key, some in values.items() for value in some]
    missed = [name for name, folder in places.items() if not programs_named(folder, submodules_of(folder))]
    missed += [one for one in known if not names_program(Entry(*one.split("=", 1)))]
    tally("git: hidden names of programs", tried=len(places) + len(known), held=len(places) + len(known) - len(missed))
    assert not missed


@pytest.mark.parametrize(
    "line",
    [
        "core.pager=less -FRX",
        "core.pager=less",
        "pager.log=false",
        "alias.st=status -sb",
        "alias.co=checkout",
        "alias.lg=log --graph --oneline --decorate --all",
        "alias.last=log -1 HEAD --stat",
        "alias.ci=commit --amend --no-edit",
        "alias.h=log --pretty=format:'%h %ad | %s%d [%an]' --date=short",
        "alias.unstage=reset HEAD --",
        "alias.b=branch -vv",
        "mergetool.keepBackup=false",
        "diff.tool=vimdiff",
        "credential.helper=store",
        "filter.lfs.process=git-lfs filter-process",
        "remote.origin.url=git@example.org:a/b.git",
        "branch.main.remote=origin",
        "core.fsmonitor=true",
        "core.autocrlf=input",
    ],
)
def test_ordinary_settings_of_a_repository_name_no_program(line: str) -> None:
    """With false alarms users stop reading the question."""
    assert not names_program(Entry(*line.split("=", 1)))


def test_a_large_file_is_not_loaded_into_memory(tmp_path: Path) -> None:
    """A pack of a few kilobytes may contain a gigabyte of text, whose diff would take Git three gigabytes of memory."""
    git(tmp_path, "init", "-q")
    (tmp_path / "large.txt").write_bytes(b"a line of text\n" * 1_500_000)
    git(tmp_path, "add", ".")
    git(tmp_path, "commit", "-q", "-m", "first")
    assert "Binary files /dev/null and b/large.txt differ" in read_diff(tmp_path, "HEAD").text
