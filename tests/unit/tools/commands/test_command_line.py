"""Command lines as simple commands: exactly the words that a shell would start, or None."""

from __future__ import annotations

import shlex
import subprocess

import pytest
from hypothesis import given
from hypothesis import strategies as st

from codecompanion.tools.commands.command_line import simple_commands, words


@pytest.mark.parametrize(
    ("command", "found"),
    [
        ("ls", [("ls",)]),
        ("grep -rn 'a b' src | head -5", [("grep", "-rn", "a b", "src"), ("head", "-5")]),
        ("cd x && make test 2>&1 | tail", [("cd", "x"), ("make", "test"), ("tail",)]),
        ("a; b || c\nd", [("a",), ("b",), ("c",), ("d",)]),
        ("make 2>/dev/null >/dev/null", [("make",)]),
        ('grep "a\\|b$" x', [("grep", "a\\|b$", "x")]),
        (r"find . \( -name a\* \) ! -empty", [("find", ".", "(", "-name", "a*", ")", "!", "-empty")]),
    ],
)
def test_a_line_is_read_as_its_commands(command: str, found: list[tuple[str, ...]]) -> None:
    read = simple_commands(command)
    assert read is not None
    assert [one.words for one in read] == found


@pytest.mark.parametrize(
    "command",
    [
        "a & b", "a > f", "a >> f", "a < f", "a 2> f", "a &> /dev/null", "a |& b", "a $(b)", "a `b`", "a $B", 'a "$B"',
        "a <(b)", "(a)", "{ a; }", "a *", "a [b]", "a ?", "a {b,c}", "A=b c", "a && B=c d", "! a", "a ! b | ! c",
        "a # b", "a ~b", "a \\\nb", "a 'b", "a &&", "a ||", "| a", "a;;b", "a >/dev/nullx", "a \u00a0b", "a\x00", "",
        "''", "a 2>&1x", "a >/dev/null/../../etc/x",
    ],
)  # fmt: skip
def test_a_line_is_not_split_if_a_shell_would_do_more(command: str) -> None:
    assert simple_commands(command) is None


@given(st.text(st.sampled_from(" \t\n\"'\\;&|<>()$`{}*?[]!#~=aAz-./0"), max_size=20))
def test_a_shell_splits_a_simple_command_into_the_same_words(command: str) -> None:
    """A real shell serves as the oracle: in an empty folder it prints its arguments instead of running them."""
    found = words(command)
    if found is None:
        return
    assert tuple(shlex.split(command, comments=False)) == found or "\\" in command
    line = command.strip()
    printed = subprocess.run(
        ["/bin/sh", "-c", f"set -f; for word in {line}\ndo printf '%s\\0' \"$word\"; done"],
        capture_output=True,
        text=True,
        check=True,
        env={},
    ).stdout
    assert tuple(printed.split("\0")[:-1]) == found
