"""Commands that destroy work, in any context."""

from __future__ import annotations

import pytest

from codecompanion.tools.commands.destructive_commands import destroys_work


@pytest.mark.parametrize(
    "command",
    [
        "rm -rf build",
        "git checkout -- docs/big.txt",
        "git reset --hard",
        "git -C /x -c a.b=c reset --hard",
        "cd src && rm x",
        "make; git stash",
        "X=1 /bin/rm x",
        "sudo rm x",
        "find . -name a -exec rm {} +",
        "ls | xargs rm",
        "bash -c 'git clean -fd'",
        "echo $(rm x)",
        "echo a\nrm x",
    ],
)
def test_destructive_commands_are_found(command: str) -> None:
    assert destroys_work(command)


@pytest.mark.parametrize(
    "command", ["git status", 'git commit -m "rm checkout"', "echo rm", "make clean", "", "grep rm x", "git"]
)
def test_other_commands_are_not_destructive(command: str) -> None:
    assert not destroys_work(command)
