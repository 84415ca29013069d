"""Answers jobs in JSON Lines format: one line per job, in order; the answer to an invalid line is `{"error": …}`."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable
from typing import Any, TextIO, TypeVar

import msgspec

from codecompanion.cli import progress
from codecompanion.cli.arguments import read_input, source_of
from codecompanion.cli.json_lines import json_line
from codecompanion.errors import CodeCompanionError, InputError
from codecompanion.formats import typed
from codecompanion.model.transcript_format import decode_line, split_lines

Job = TypeVar("Job", bound=msgspec.Struct)

JOBS_HELP = "read one job per line and print one answer per line; jobs with unknown fields are refused"


def answer_jobs(
    command: str, name: str, kind: type[Job], example: str, answer: Callable[[Job], dict[str, Any]], out: TextIO
) -> int:
    """Answer each job of a file or of standard input (`-`); return the exit status, 2 if a job was invalid.

    `kind`: the type of a line; `example`: an example line, for messages.

    Raises:
        InputError: the input cannot be read, or contains no job.
    """
    status = number = 0
    lines: Iterable[bytes] = read_input(name, "jobs in JSON Lines")
    for number, (line, where) in enumerate(split_lines(lines, source_of(name)), 1):
        progress.step(f"codecompanion {command}: job {number}")
        try:
            found = answer(_read(line, where, kind, example))
        except CodeCompanionError as error:
            found, status = {"error": str(error) if where in str(error) else f"{where}: {error}"}, 2
            print(found["error"], file=sys.stderr)
        except Exception as error:  # an error in this job must not stop the next ones
            found, status = {"error": f"{where}: {str(error) or type(error).__name__}"}, 2
            print(found["error"], file=sys.stderr)
        print_answer(found, out)
    if number == 0:
        raise InputError(f"{source_of(name)}: no jobs in it; expected at least one, {example} per line")
    return status


def print_answer(answer: dict[str, Any], out: TextIO) -> None:
    """Print an answer on one line; a lone surrogate, which UTF-8 cannot encode, is written as its escape."""
    text = json_line(answer)
    print(text.encode("utf-8", "backslashreplace").decode("utf-8"), file=out, flush=True)


def _read(line: bytes, where: str, kind: type[Job], example: str) -> Job:
    value = decode_line(line, where, example)
    try:
        return typed.convert(value, kind)
    except msgspec.ValidationError as error:
        raise InputError(f"{where}: {error}; expected {example}") from error
