"""Files that something else than the user runs: a change of one of them is always asked about, and says why. Pure.

The rule of the list: a program reads the file and runs what it says, without the user running it by name: version
control, the shell, direnv, the editor, another agent, CI, or the usual build and test commands. Source files are not on
it; they run when somebody runs them. The user adds patterns, and takes some out with `!`, by `guarded_files`.
"""

from __future__ import annotations

import os
import unicodedata
from collections.abc import Iterable, Sequence
from functools import cache
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pathspec import PathSpec
    from pathspec.patterns.gitignore.spec import GitIgnoreSpecPattern

_HOOKS = (
    "applypatch-msg pre-applypatch post-applypatch pre-commit pre-merge-commit prepare-commit-msg commit-msg"
    " post-commit pre-rebase post-checkout post-merge pre-push pre-receive update proc-receive post-receive post-update"
    " reference-transaction push-to-checkout pre-auto-gc post-rewrite sendemail-validate fsmonitor-watchman"
).split()

GROUPS: tuple[tuple[str, tuple[str, ...]], ...] = (
    (
        "version control runs or uses it",
        (
            *".git git~1 .hg .svn .jj .bzr .gitmodules .gitconfig .config/git/ .githooks/ .husky/ .lefthook/".split(),
            *"lefthook.yml .lefthook.yml lefthook.yaml .pre-commit-config.yaml .pre-commit-hooks.yaml".split(),
            ".overcommit.yml",
            *(f"hooks/{name}" for name in _HOOKS),
        ),
    ),
    (
        "entering the folder runs it",
        tuple(
            ".envrc .direnv/ mise.toml .mise.toml mise.*.toml .mise.*.toml .mise/ .config/mise/ .rtx.toml flake.nix"
            " shell.nix default.nix .devcontainer/ .devcontainer.json".split()
        ),
    ),
    (
        "opening the project in an editor runs it",
        tuple(
            ".nvim.lua .nvimrc .exrc _exrc .vimrc _vimrc .gvimrc .lvimrc .local.vimrc .vim/ .nvim/ .config/nvim/"
            " .lazy.lua .neoconf.json .vscode/ *.code-workspace .idea/ .zed/ .fleet/ .dir-locals.el .dir-locals-2.el"
            " .emacs .emacs.d/".split()
        ),
    ),
    (
        "an agent runs it or takes permissions from it",
        tuple(".claude/ .codex/ .cursor/ .gemini/ .opencode/ .mcp.json mcp.json".split()),
    ),
    (
        "a shell or a login runs it",
        tuple(
            ".bashrc .bash_profile .bash_login .bash_logout .bash_aliases .profile .zshrc .zshenv .zprofile .zlogin"
            " .zlogout .kshrc .mkshrc .cshrc .tcshrc .login .logout .inputrc config.fish .config/fish/ .xprofile"
            " .xinitrc .xsession .xsessionrc .pam_environment .ssh/ .config/autostart/ .config/systemd/"
            " .config/environment.d/ .local/bin/ crontab".split()
        ),
    ),
    (
        "CI runs it",
        tuple(
            ".github/workflows/ .github/actions/ action.yml action.yaml .gitlab-ci.yml .gitlab-ci.yaml .gitlab/"
            " .circleci/ .travis.yml appveyor.yml .appveyor.yml azure-pipelines*.yml .azure-pipelines/ Jenkinsfile*"
            " bitbucket-pipelines.yml .buildkite/ .drone.yml .drone.star .woodpecker.yml .woodpecker/ .forgejo/"
            " .gitea/workflows/ .cirrus.yml .cirrus.star .builds/ .build.yml .semaphore/ .teamcity/ cloudbuild.yaml"
            " cloudbuild.yml buildspec.yml wercker.yml netlify.toml vercel.json .ci/".split()
        ),
    ),
    (
        "a build, test or install command runs it",
        tuple(
            "Makefile GNUmakefile Makefile.am Makefile.in Makefile.inc Makefile.local"
            " *.mk *.mak justfile .justfile *.just Taskfile.yml Taskfile.yaml"
            " Taskfile.dist.* Rakefile *.rake Gemfile Guardfile Vagrantfile Procfile* Brewfile Dockerfile* *.Dockerfile"
            " Containerfile* docker-compose*.yml docker-compose*.yaml compose.yml compose.yaml compose.*.yml"
            " compose.*.yaml package.json .npmrc .yarnrc .yarnrc.yml .yarn/ .pnp.* .pnpmfile.* bunfig.toml setup.py"
            " setup.cfg pyproject.toml conftest.py noxfile.py tox.ini pytest.ini fabfile.py sitecustomize.py"
            " usercustomize.py *.pth pip.conf build.rs .cargo/ build.zig CMakeLists.txt *.cmake CMakePresets.json"
            " meson.build SConstruct SConscript wscript configure configure.ac autogen.sh build.gradle*"
            " settings.gradle* gradlew* gradle/wrapper/ init.gradle* mvnw* .mvn/ pom.xml build.sbt build.xml"
            " WORKSPACE.bazel MODULE.bazel BUILD.bazel *.bzl .bazelrc Tiltfile Snakefile magefile.go gulpfile.*"
            " Gruntfile.* composer.json *.gemspec mix.exs rebar.config Package.swift Podfile Fastfile *.csproj"
            " *.targets *.props".split()
        ),
    ),
)
"""Reason → patterns as in a `.gitignore`, in any folder; upper and lower case are the same."""

OWN_PATTERN = "it is listed in tools.opts.guarded_files"


@cache
def _built_in() -> tuple[tuple[str, PathSpec[GitIgnoreSpecPattern]], ...]:
    def anywhere(pattern: str) -> str:
        return f"**/{pattern}" if "/" in pattern.rstrip("/") else pattern

    return tuple((reason, _spec(tuple(map(anywhere, patterns)))) for reason, patterns in GROUPS)


@cache
def _spec(patterns: tuple[str, ...]) -> PathSpec[GitIgnoreSpecPattern]:
    from pathspec import PathSpec  # not needed before a file is changed
    from pathspec.patterns.gitignore.spec import GitIgnoreSpecPattern

    return PathSpec(GitIgnoreSpecPattern(pattern.casefold()) for pattern in patterns)


def why_it_runs_code(paths: Iterable[str], root: str, extra: Sequence[str] = ()) -> str:
    """Return why a change of the file is always asked about, "" when it is a file like any other.

    `paths` are names of the one file: as the model wrote it, and with symbolic links resolved. `extra` are the user's
    patterns; the last one that matches decides, one with `!` in front takes the file out.
    """
    reason = ""
    for path in paths:
        reason = reason or _reason(_comparable(path, root), extra)
    return reason


def _reason(path: str, extra: Sequence[str]) -> str:
    found = next((reason for reason, spec in _built_in() if spec.match_file(path)), "")
    for pattern in extra:
        if pattern.startswith("!"):
            found = "" if _spec((pattern[1:],)).match_file(path) else found
        elif _spec((pattern,)).match_file(path):
            found = OWN_PATTERN
    return found


def _comparable(path: str, root: str) -> str:
    """Return the path relative to the root, without `..` and as file systems that are less exact would read it.

    Some ignore case, characters that do not show (HFS+), or dots and blanks at the end of a name (NTFS).
    """
    absolute = os.path.normpath(path if path.startswith("/") else f"{root}/{path}")
    relative = os.path.relpath(absolute, root)
    if relative.startswith(".."):
        relative = absolute
    parts = [_plain(part) for part in relative.split("/")]
    inside = [_plain(part) for part in root.split("/")]
    if {".git", ".hg", ".svn", ".jj"} & set(inside):
        parts = [".git", *parts]  # the workspace is a part of a repository's own folder
    return "/".join(part for part in parts if part)


def _plain(part: str) -> str:
    shown = "".join(char for char in unicodedata.normalize("NFKC", part) if unicodedata.category(char) != "Cf")
    return shown.casefold().split(":")[0].rstrip(". ") or shown
