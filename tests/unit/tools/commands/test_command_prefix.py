"""Prefixes of commands: word by word, and never where the shell does more than start one program."""

from __future__ import annotations

import pytest

from codecompanion.tools.commands.command_prefix import covers, problem_with


@pytest.mark.parametrize(
    ("prefix", "command"),
    [
        ("git status", "git status"),
        ("git status", "  git   status --short "),
        ("git diff", "git diff HEAD~1 -- 'a file; with a name'"),
        ("git log", 'git log --grep "fix: a & b" HEAD^'),
        ("make test", "make test K=one"),
        ("./run.sh", "./run.sh --all"),
        ("'git' status", "git status"),
        ("python -m pytest", "python -m pytest tests/x.py::test_a#b"),
    ],
)
def test_a_plain_command_that_begins_with_the_words_is_covered(prefix: str, command: str) -> None:
    assert covers(prefix, command)


@pytest.mark.parametrize(
    "tail",
    [
        "x", "; rm -rf ~", "&& rm x", "& rm x", "| sh", "|| sh", " > f", " < f", " >> f", " `rm x`",
        " $(rm x)", " $HOME", ' "$(rm x)"', ' "`rm x`"', "\nrm x", "\rrm x", " <(rm x)", " *", " a?", " [ab]", " {a,b}",
        " 'open", ' "open', " # x", " ~root", "\u00a0x", " \u202ex", " \x1b[2J", " \x00",
        " a\u2028b",
    ],
)  # fmt: skip
def test_a_line_with_other_shell_features_is_not_covered(tail: str) -> None:
    assert not covers("git status", "git status" + tail)


@pytest.mark.parametrize("command", ["A=b git status", "PATH=. git status", "! git status", "", "   ", "'' git status"])
def test_words_before_the_program_count(command: str) -> None:
    assert not covers("git status", command)


@pytest.mark.parametrize(
    "prefix", ["sh", "sh -c", "sudo", "sudo make", "env", "git", "git -c", "find .", "xargs", "make"]
)
def test_a_prefix_that_could_run_anything_is_refused(prefix: str) -> None:
    assert "any program" in problem_with(prefix)
    assert not covers(prefix, prefix + " x")


@pytest.mark.parametrize(
    "prefix",
    [
        *("cp", "mv", "tee", "ln", "install", "dd", "rsync", "truncate", "scp", "/bin/cp -r", "cp evil", "npx cp"),
        *("git mv", "git mv -f", "git mv evil", "/usr/bin/git mv", "git bundle", "git bundle create", "npx git mv"),
        *("git checkout-index", "git checkout-index -f"),
    ],
)
def test_a_prefix_that_could_write_any_file_is_refused(prefix: str) -> None:
    """A guarded file can follow it: `cp evil Makefile`."""
    assert "any file" in problem_with(prefix)
    assert not covers(prefix, prefix + " evil .git/hooks/pre-commit")


@pytest.mark.parametrize(
    "command",
    [
        *(
            "git checkout -- .",
            "git checkout main",
            "git restore src",
            "git reset --hard",
            "git clean -fd",
            "git stash",
        ),
        *("git rm -r src", "/usr/bin/git checkout x", "rm -rf build", "shred x", "npx rm x"),
    ],
)
def test_a_prefix_that_could_destroy_work_is_refused(command: str) -> None:
    """No undo restores uncommitted work: every such command is asked about separately."""
    prefix = " ".join(command.split()[:2])
    assert "destroy work" in problem_with(prefix)
    assert not covers(prefix, command)


@pytest.mark.parametrize(
    ("prefix", "command"),
    [
        ("git switch", "git switch -f main"),
        ("git switch", "git switch --discard-changes main"),
        ("git switch", "git switch -C main HEAD~9"),
        ("git push", "git push --force"),
        ("git push", "git push -fu origin main"),
        ("git push", "git push --force-with-lease"),
        ("git push", "git push origin +main"),
        ("git push", "git push origin :main"),
        ("git push", "git push origin --delete main"),
        ("git push", "git push --mirror"),
        ("git push", "git push --prune origin"),
        ("git switch", "git switch --force-create main"),
        ("git tag", "git tag -d v1"),
        ("git worktree", "git worktree remove -f x"),
        ("git branch", "git branch -D topic"),
        ("git worktree", "git worktree remove --force x"),
    ],
)
def test_options_that_destroy_work_are_asked_about(prefix: str, command: str) -> None:
    assert not covers(prefix, command)
    assert covers(prefix, f"{prefix} topic")


@pytest.mark.parametrize("prefix", ["a;b", "a | b", "A=b", "", "git *", "$X"])
def test_a_prefix_must_be_plain_itself(prefix: str) -> None:
    assert "is not a plain prefix" in problem_with(prefix)


@pytest.mark.parametrize("prefix", ["git -C /x", "make -C d", "git -C /x status", "git --git-dir x"])
def test_options_before_the_subcommand_are_not_a_prefix(prefix):
    """`git -C /x` would cover `git -C /x -c alias.z=!cmd z`."""
    assert problem_with(prefix)
    assert not covers(prefix, f"{prefix} -c alias.z=cmd z")


@pytest.mark.parametrize(
    ("prefix", "command"),
    [
        ("git diff", "git diff --output=.git/hooks/post-commit"),
        ("git diff", "git diff --outp .bashrc"),
        ("git log", "git log -1 --output x"),
        ("git grep", "git grep -nO./evil x"),
        ("git grep", "git grep --open-files=sh x"),
        ("git rebase", "git rebase -x ./evil main"),
        ("git rebase", "git rebase --exec=./evil main"),
        ("git fetch", "git fetch --upload-pack=./evil origin"),
        ("git fetch", "git fetch 'ext::sh -c evil'"),
        ("git push", "git push --receive-pack=./evil"),
        ("git archive", "git archive -o x.tar HEAD"),
        ("git clone", "git clone -c core.sshCommand=evil host:x"),
        ("rg", "rg --pre ./evil x"),
        ("sort", "sort -o .bashrc x"),
        ("sort", "sort --compress-program=./evil x"),
        ("tar xf", "tar xf a.tar --to-command=./evil"),
        ("go test", "go test -exec ./evil ./..."),
        ("go test", "go test --exec=./evil"),
        ("make test", "make test -f evil.mk"),
        ("make test", "make test --eval='x:'"),
        ("make test", "make test SHELL=./evil"),
        ("npm test", "npm test --script-shell=./evil"),
        ("uniq", "uniq in .bashrc"),
        ("mypy", "mypy --python-executable=./evil x"),
    ],
)
def test_arguments_after_the_prefix_do_not_widen_it(prefix: str, command: str) -> None:
    assert not covers(prefix, command)


def test_an_option_within_the_prefix_is_approved() -> None:
    assert covers("git diff --output=a.patch", "git diff --output=a.patch HEAD")
    assert covers("rg", "rg --pretty -o word")
    assert covers("git log", "git log --oneline -n 3 --pretty=x")


@pytest.mark.parametrize("prefix", ["nohup sh", "env git", "timeout 5", "watch ls", "sed p", "vim x", "git config"])
def test_programs_that_start_others_are_not_a_prefix(prefix: str) -> None:
    assert "any program" in problem_with(prefix)


@pytest.mark.parametrize(
    "prefix",
    [
        "python3.11", "/usr/bin/python3.11", "python3.13t", "Python.exe", "pypy3.10", "node20", "nodejs", "lua5.4",
        "ruby3.2", "perl5.36.0", "php8.2", "bash5", "npm", "cargo", "go", "go1.22", "busybox", "busybox ls", "uv",
        "uv run", "uv run python3.11", "uv tool run", "npx tsx", "npm exec", "npm run", "bunx", "pnpm dlx", "bun run",
        "deno run", "go run", "poetry run", "bundle exec", "docker run", "docker compose exec", "nix run", "gcc-12",
        "x86_64-linux-gnu-gcc-12", "python3.11 -m timeit", "python -m", "bash -m -c", "python -m coverage run",
        "uvx python3", "make", "sqlite3", "at", "emacs-29.1", "cargo +nightly",
    ],
)  # fmt: skip
def test_interpreters_of_any_version_and_their_launchers_are_not_a_prefix(prefix: str) -> None:
    assert problem_with(prefix)
    assert not covers(prefix, f"{prefix} src/evil.py")
