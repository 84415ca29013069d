"""`recall`: find the messages in a transcript that answer a question (`:help codecompanion-cli`; R-516).

The ranking is the same as for the `recall` tool, `:CodeCompanionRecall` and `sessions search`. `--jobs` is a stable
contract: one answer per line, in order; the answer to an unreadable job is `{"error": …}`, and the exit status is then
2.
"""

from __future__ import annotations

import argparse
import contextlib
import sys
from collections.abc import Iterable
from typing import Any, TextIO

import msgspec

from codecompanion.cli import progress
from codecompanion.cli.arguments import read_input, read_transcript, report_no_results, source_of
from codecompanion.cli.jobs import JOBS_HELP
from codecompanion.cli.json_lines import json_line
from codecompanion.errors import CodeCompanionError, InputError
from codecompanion.formats import typed
from codecompanion.formats.json_words import kind
from codecompanion.model.transcript_format import decode_line, read_objects, split_lines
from codecompanion.store.search.chat_index import ChatIndex
from codecompanion.store.search.parsed_question import has_words

MAX_RESULTS = 20
A_JOB = '{"messages": […], "queries": ["…"]}'


class Job(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """One line of `--jobs`."""

    messages: list[Any]
    queries: list[Any]


def add_parser(commands: Any) -> None:
    """Add the subcommand to the command line."""
    parser: argparse.ArgumentParser = commands.add_parser(
        "recall", help="find the messages of a transcript that answer a question, best first"
    )
    parser.add_argument("--jobs", action="store_true", help=f"{JOBS_HELP}: {A_JOB}")
    parser.add_argument("file", nargs="?", default="-", metavar="FILE|-", help="transcript (default: standard input)")
    parser.add_argument("words", nargs="*", metavar="WORDS", help="a question, or words")
    parser.set_defaults(run=run)


def run(arguments: argparse.Namespace, out: TextIO) -> int:
    """Run the subcommand and return the exit status. Bad input raises before anything is printed."""
    words = " ".join(arguments.words)
    if arguments.jobs:
        if words:
            raise InputError(f"with --jobs, the questions come from the jobs; expected no words, found {words!r}")
        return _run_jobs(read_input(arguments.file, "jobs in JSON Lines"), source_of(arguments.file), out)
    if not has_words(words):
        raise InputError(f"{words!r} contains no searchable word; expected FILE and a question, or --jobs")
    messages = read_transcript(arguments.file).messages
    with contextlib.closing(ChatIndex(messages)) as index:
        places = index.find(words, MAX_RESULTS)
        for place, snippet in zip(places, index.snippets(words, places), strict=True):
            text = f"{place:6}  {messages[place].role:9}  {' '.join(snippet.split())}"
            print(text.encode("utf-8", "backslashreplace").decode("utf-8"), file=out)
    if not places:
        report_no_results(words)
    return 0


def _run_jobs(lines: Iterable[bytes], source: str, out: TextIO) -> int:
    status = number = 0
    for number, (line, where) in enumerate(split_lines(lines, source), 1):
        progress.step(f"codecompanion recall: job {number}")
        answer: dict[str, Any]
        try:
            answer = {"results": _answer(_job(line, where), where)}
        except CodeCompanionError as error:
            answer, status = {"error": f"{error}"}, 2
            print(answer["error"], file=sys.stderr)
        text = json_line(answer)
        print(text.encode("utf-8", "backslashreplace").decode("utf-8"), file=out)
    if number == 0:
        raise InputError(f"{source}: no jobs in it; expected at least one, {A_JOB} per line")
    return status


def _job(line: bytes, where: str) -> Job:
    try:
        job = typed.convert(decode_line(line, where, A_JOB), Job)
    except msgspec.ValidationError as error:
        raise InputError(f"{where}: {error}; expected {A_JOB}") from error
    for number, query in enumerate(job.queries):
        if not isinstance(query, str):
            raise InputError(f"{where}: queries[{number}]: expected a string, found {kind(query)}")
    return job


def _answer(job: Job, where: str) -> list[list[int]]:
    """Return the positions of the matches for each query, best first; [] for a query without words."""
    messages = read_objects(job.messages, f"{where}: messages").messages
    with contextlib.closing(ChatIndex(messages)) as index:
        return [index.find(query, MAX_RESULTS) for query in job.queries]
