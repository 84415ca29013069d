"""`fim`: print the prompt that a code model would receive for a position in a file (`:help codecompanion-cli`).

A stable contract, used by external tests. Without `root`, the output is exactly the document's prompt (R-256 … R-261).
"""

from __future__ import annotations

import argparse
import os
from functools import cache
from pathlib import Path
from typing import Any, TextIO

import msgspec

from codecompanion.cli.arguments import existing_folder
from codecompanion.cli.environment import cache_dir
from codecompanion.cli.index_update import try_to_update_index
from codecompanion.cli.jobs import JOBS_HELP, answer_jobs
from codecompanion.completion.families import family_named, family_of
from codecompanion.completion.imports import imports_outside
from codecompanion.completion.prompt import build_prompt
from codecompanion.completion.prompt_budgets import budgets
from codecompanion.completion.window import cut_window, split_at
from codecompanion.errors import InputError
from codecompanion.model.code import ImportStatement
from codecompanion.session.complete.project_prompt import make_project_prompt
from codecompanion.session.complete.project_view import ProjectReader
from codecompanion.store.code_index.index_tables import index_path
from codecompanion.store.code_index.reader import IndexReader
from codecompanion.workspace.project_files import Choice
from codecompanion.workspace.secret_files import is_secret
from codecompanion.workspace.syntax.languages import language_of
from codecompanion.workspace.syntax.parse import parse

A_JOB = '{"model": …, "path": …, "text": …, "line": 0, "column": 0, "options": {…}}'
MAX_PARSED_CHARS = 500_000
"""Maximum number of characters to parse: a grammar takes 0.2 s and 18 MB for 100,000."""


class Options(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The options of one prompt.

    `root`: the project that provides context. `family`: the model's family; if "" or null, it is derived from the
    model's name.
    """

    root: str | None = None
    family: str | None = None


class Job(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """One line of `--jobs`. `line` and `column` are 0-based; `column` counts UTF-8 bytes."""

    model: str
    path: str
    text: str
    line: int
    column: int
    options: Options | None = None


def add_parser(commands: Any) -> None:
    """Add the subcommand to the command line."""
    parser: argparse.ArgumentParser = commands.add_parser(
        "fim", help="print a code model's prompts for positions in files, as JSON"
    )
    parser.add_argument("--jobs", action="store_true", required=True, help=JOBS_HELP)
    parser.add_argument("file", nargs="?", default="-", metavar="FILE|-", help="the jobs (default: standard input)")
    parser.set_defaults(run=run)


def run(arguments: argparse.Namespace, out: TextIO) -> int:
    """Run the subcommand and return the exit status."""
    return answer_jobs("fim", arguments.file, Job, A_JOB, _answer, out)


def _answer(job: Job) -> dict[str, Any]:
    options = job.options or Options()
    family = family_named(options.family) if options.family else family_of(job.model)
    before, after = split_at(job.text, job.line, job.column)
    if not options.root:
        window = cut_window(before, after)
        imports = imports_outside(job.path, window, _parsed_imports(job) if window.above or window.below else None)
        made = build_prompt(family, imports, window.prefix, window.suffix)
    else:
        reader = _project(options.root)
        path = _path_in(reader.root, job.path)
        made = make_project_prompt(reader, family, path, before, after, budgets().total)
    answer: dict[str, Any] = msgspec.to_builtins(made)
    return answer


def _parsed_imports(job: Job) -> tuple[ImportStatement, ...] | None:
    """Return the imports that a grammar finds (R-257), or None without a grammar or for Python, which has a parser.

    Also return None for a huge file, whose imports are found by pattern.
    """
    language = language_of(job.path)
    if language in ("", "python") or len(job.text) > MAX_PARSED_CHARS:
        return None
    return parse(job.text, language).imports or None


@cache
def _project(root: str) -> ProjectReader:
    """Return the project in a folder; its index is updated once from the files on disk."""
    folder = existing_folder(root, "options.root").resolve()
    path = index_path(cache_dir(), folder)
    try_to_update_index(folder, path, Choice())
    return ProjectReader(folder, IndexReader(path), is_secret)


def _path_in(root: Path, path: str) -> str:
    """Return the path of the job's file relative to the root; a path outside the root is unchanged."""
    if "\0" in path:
        raise InputError("path: it contains a NUL character")
    try:
        whole = Path(os.path.realpath(root / path))
    except ValueError:  # half a surrogate pair
        return path
    return whole.relative_to(root).as_posix() if whole.is_relative_to(root) else path
