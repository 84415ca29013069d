"""Tests of behaviour common to all commands: help without arguments, sizes, empty input, progress on a terminal."""

from __future__ import annotations

import json
import os
import pty
import select
import subprocess
import sys
import time

import pytest

from codecompanion.cli.progress import Progress
from codecompanion.formats.json_words import wrong_field
from tests.contract.command_line import REPO, run
from tests.patience import PATIENCE_S

MESSAGE = json.dumps({"role": "user", "content": "hello"})


def test_without_arguments_the_help_is_shown():
    """It is written to standard error, with status 2, so that a script without a command does not continue."""
    status, out, err = run(fork=False)
    assert (status, out) == (2, "")
    assert err.startswith("usage: codecompanion")
    assert "replay" in err


EMPTY = [
    ("context", "-"),
    ("context", "--jobs", "-"),
    ("replay", "-"),
    ("summarize", "-"),
    *(("import", "--from", origin, "-") for origin in ("claude-code", "openai", "anthropic", "swe-agent")),
    ("import", "--from", "codecompanion", "-"),
]


@pytest.mark.parametrize("stdin", ["", "\n", "\n  \n\n"])
@pytest.mark.parametrize("arguments", EMPTY, ids=" ".join)
def test_empty_input_is_bad_input_everywhere(arguments, stdin):
    status, out, err = run(*arguments, stdin=stdin)
    assert (status, out) == (2, "")
    assert err.startswith("codecompanion: standard input")
    assert "expected" in err
    assert len(err.splitlines()) == 1


@pytest.mark.parametrize("size", ["16k", "16K", "16000"])
def test_a_size_means_the_same_in_every_argument(size):
    status, out, err = run("context", "--window", size, "--set", f"editing.trigger={size}", stdin=MESSAGE)
    assert (status, err) == (0, "")
    assert json.loads(out)["window"] == 16_000
    status, out, _ = run("replay", "--json", "--policy", "codecompanion", "--window", size, "-", stdin=MESSAGE)
    assert (status, json.loads(out)["window"]) == (0, 16_000)
    assert run("summarize", "--max-tokens", size, "-", stdin=MESSAGE)[0] == 0
    job = {"messages": [json.loads(MESSAGE)], "options": {"window": size if size[-1:] in "kK" else int(size)}}
    status, out, _ = run("context", "--jobs", "-", stdin=json.dumps(job))
    assert (status, json.loads(out)["window"]) == (0, 16_000)


@pytest.mark.parametrize("size", ["16kb", "1.5k", "k", "-4k", "many"])
@pytest.mark.parametrize(
    "arguments", [("context", "--window"), ("replay", "--window"), ("summarize", "--max-tokens"), ("demo", "--window")]
)
def test_an_invalid_size_is_refused_in_every_argument(arguments, size):
    status, out, err = run(*arguments[:-1], f"{arguments[-1]}={size}", "-", stdin=MESSAGE)
    assert (status, out) == (2, "")
    assert f'expected a number of tokens, such as 16000, "16k" or "1M", found {size!r}' in err


def on_a_terminal(*arguments: str, out_too: bool) -> tuple[str, str]:
    """Run a command with standard error (and output) on a terminal; return (answer, terminal output)."""
    master, slave = pty.openpty()
    process = subprocess.Popen(
        [sys.executable, "-c", SLOW, *arguments],
        stdin=subprocess.DEVNULL,
        stdout=slave if out_too else subprocess.PIPE,
        stderr=slave,
        env={**os.environ, "PYTHONPATH": str(REPO / "python"), "COLUMNS": "40"},
    )
    os.close(slave)
    seen, deadline = b"", time.monotonic() + PATIENCE_S
    while time.monotonic() < deadline and select.select([master], [], [], PATIENCE_S)[0]:
        try:
            piece = os.read(master, 4096)
        except OSError:  # EIO: the command has ended
            break
        seen += piece
    os.close(master)
    answer = process.communicate(timeout=PATIENCE_S)[0] or b""
    return answer.decode(), seen.decode()


SLOW = """
import sys, time
from codecompanion.cli import __main__, progress
from codecompanion.cli.commands import doctor
progress.Progress.__init__.__kwdefaults__["after_s"] = 0.1
progress.EVERY_S = 0.05

def slow(arguments, out):
    print("begun", file=out)
    shown = lambda: progress._current._is_shown
    end = time.monotonic() + 30
    while not shown() and time.monotonic() < end: time.sleep(0.01)
    progress.step("checking " + "x" * 100)
    time.sleep(0.2)
    print("ended", file=out)
    return 0

doctor.run = slow
sys.exit(__main__.main(["doctor"]))
"""


@pytest.mark.parametrize("out_too", [False, True])
def test_long_work_shows_progress_on_the_terminal_and_leaves_nothing_there(out_too):
    answer, seen = on_a_terminal(out_too=out_too)
    assert "codecompanion doctor · 0 s" in seen
    assert "checking xxx" in seen
    lines = seen.replace("\r\n", "\n").split("\n")
    assert all(len(part) < 40 for line in lines for part in line.split("\r\x1b[K"))
    # The remainder of each line after its last erasure is the answer.
    left = "\n".join(line.split("\r\x1b[K")[-1] for line in lines)
    assert (left, answer) == (("begun\nended\n", "") if out_too else ("", "begun\nended\n"))


def test_without_a_terminal_nothing_is_shown(capsys):
    with Progress("long", sys.stderr, after_s=0.0) as progress:
        assert progress.wrap(sys.stdout) is sys.stdout
        assert not progress._thread.is_alive()
    assert capsys.readouterr().err == ""


@pytest.mark.parametrize(
    ("value", "said"),
    [
        (None, '"x" is missing; expected an object'),
        ([1], '"x": expected an object, found a list'),
        ("boss", '"x": expected an object, found "boss"'),
        ("b" * 100, '"x": expected an object, found a string'),
        (True, '"x": expected an object, found true'),
    ],
)
def test_a_wrong_field_is_reported_in_plain_words(value, said):
    assert wrong_field("x", value, "an object") == said
