"""`fim`: the prompt that a code model would get for a position in a file (`:help codecompanion-cli`).

A stable contract: outside tests call it. Without `root` it is exactly the document's prompt (R-256 … R-261).
"""

from __future__ import annotations

import argparse
from typing import Any, TextIO

import msgspec

from codecompanion.cli.jobs import answer_jobs
from codecompanion.completion.families import family_named, family_of
from codecompanion.completion.imports import imports_outside
from codecompanion.completion.prompt import build_prompt
from codecompanion.completion.window import cut_window, split_at
from codecompanion.errors import InputError

A_JOB = '{"model": …, "path": …, "text": …, "line": 0, "column": 0, "options": {…}}'


class Options(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """`root`: the project whose knowledge joins, None = none. `family`: the model's, None = by its name."""

    root: str | None = None
    family: str | None = None


class Job(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """One line of `--jobs`. `line` and `column` are 0-based, `column` in bytes of UTF-8."""

    model: str
    path: str
    text: str
    line: int
    column: int
    options: Options | None = None


def add_parser(commands: Any) -> None:
    """Add the sub-command to the command line."""
    parser: argparse.ArgumentParser = commands.add_parser(
        "fim", help="print the prompt of a code model for positions in files, as JSON"
    )
    parser.add_argument(
        "--jobs", action="store_true", required=True, help="read one job per line, answer one line each"
    )
    parser.add_argument("file", nargs="?", default="-", metavar="FILE|-", help="the jobs (default: standard input)")
    parser.set_defaults(run=run)


def run(arguments: argparse.Namespace, out: TextIO) -> int:
    """Carry the sub-command out; returns the exit status."""
    return answer_jobs("fim", arguments.file, Job, A_JOB, _answer, out)


def _answer(job: Job) -> dict[str, Any]:
    options = job.options or Options()
    if options.root is not None:
        raise InputError("options.root: the project's knowledge cannot be had yet; leave it out")
    family = family_of(job.model) if options.family is None else family_named(options.family)
    window = cut_window(*split_at(job.text, job.line, job.column))
    imports = imports_outside(job.path, window)
    answer: dict[str, Any] = msgspec.to_builtins(build_prompt(family, imports, window.prefix, window.suffix))
    return answer
