"""Files that something runs are found, however their name is written; files like any other are left alone."""

from __future__ import annotations

import pytest

from codecompanion.tools.files.code_files import OWN_PATTERN, groups, why_it_runs_code

ROOT = "/home/me/project"


def _why(path: str, *extra: str) -> str:
    return why_it_runs_code((path,), ROOT, extra)


@pytest.mark.parametrize(
    ("path", "reason"),
    [
        (".git/hooks/pre-commit", "version control"),
        (".git/config", "version control"),
        ("sub/module/.git", "version control"),
        ("templates/hooks/post-merge", "version control"),
        (".husky/pre-push", "version control"),
        (".envrc", "entering the folder runs it"),
        ("sub/.nvim.lua", "opening the project"),
        (".exrc", "opening the project"),
        (".vscode/tasks.json", "opening the project"),
        (".claude/settings.json", "an agent"),
        (".bashrc", "a shell"),
        (".config/fish/conf.d/x.fish", "a shell"),
        (".github/workflows/ci.yml", "CI"),
        ("packages/a/.github/workflows/ci.yml", "CI"),
        (".gitlab-ci.yml", "CI"),
        ("Makefile", "a build"),
        ("lib/rules.mk", "a build"),
        ("justfile", "a build"),
        ("web/package.json", "a build"),
        ("Dockerfile.dev", "a build"),
        ("tests/conftest.py", "a build"),
        # other spellings of the same
        ("src/../.git/config", "version control"),
        ("./a/.././Makefile", "a build"),
        (".GIT/hooks/pre-commit", "version control"),
        ("makeFILE", "a build"),
        (".g\u200cit/config", "version control"),
        (".git./config", "version control"),
        (".git /config", "version control"),
        ("GIT~1/config", "version control"),
        (".ｇit/config", "version control"),
        (".bashrc::$DATA", "a shell"),
        ("/home/me/.ssh/authorized_keys", "a shell"),
        ("/home/me/project/Makefile", "a build"),
    ],
)
def test_a_file_that_something_runs_is_found(path: str, reason: str) -> None:
    assert _why(path).startswith(reason)


@pytest.mark.parametrize(
    "path",
    [
        "src/main.py", "README.md", "src/workspace/files.py", "build/out.txt", "src/hooks/useThing.ts",
        "docs/makefile.md", "github/workflows/ci.yml", "src/git/config.py", "hooks/post-list.ts", ".gitignore",
        "tests/test_x.py", "lua/init.lua", "src/shell.py",
    ],
)  # fmt: skip
def test_an_ordinary_file_is_not(path: str) -> None:
    assert _why(path) == ""


def test_a_link_is_checked_under_both_names() -> None:
    assert why_it_runs_code(("/home/me/project/scripts/x", ".git/hooks/pre-push"), ROOT)
    assert why_it_runs_code(("/home/me/project/.git/hooks/pre-push", "harmless.txt"), ROOT)


def test_a_workspace_inside_a_repository_is_guarded_as_a_whole() -> None:
    assert why_it_runs_code(("pre-commit",), "/home/me/project/.git/hooks")


def test_the_user_adds_patterns_and_excludes_files_and_the_last_one_decides() -> None:
    assert _why("deploy/prod.yml", "deploy/") == OWN_PATTERN
    assert _why("Makefile", "!Makefile") == ""
    assert _why("package.json", "!Makefile")
    assert _why("Makefile", "!Makefile", "make*") == OWN_PATTERN
    assert _why(".git/config", "!*") == ""


def test_every_pattern_matches_something() -> None:
    """No pattern in the list is dead: each matches a path made from it."""
    for reason, patterns in groups():
        for pattern in patterns:
            path = "deep/" + pattern.replace("*", "x") + ("file" if pattern.endswith("/") else "")
            assert _why(path), (reason, pattern)


@pytest.mark.parametrize(
    "path",
    "githooks/pre-commit .latexmkrc latexmkrc nodemon.json ecosystem.config.js sub/.rgignore"
    " .ignore dev-requirements.txt .gitconfig.local".split(),
)
def test_files_an_attacker_found_unguarded_are_guarded(path: str) -> None:
    assert _why(path)
