"""`classify`: is a question about the project, what about, and what kind of question (`:help codecompanion-cli`).

A stable contract (R-204 … R-212). Nothing is asked over the network: the words decide, or the replies of a model that a
job brings along (`reply`, `type_reply`). Both pipelines classify by the same stage.
"""

from __future__ import annotations

import argparse
from typing import Any, TextIO

import msgspec

from codecompanion.cli.jobs import JOBS_HELP, answer_jobs, print_answer
from codecompanion.cli.pipeline_option import add_pipeline, pipeline_of_job
from codecompanion.errors import InputError
from codecompanion.model.gathered import Classification, QuestionTypes
from codecompanion.retrieval.classifier import classification_of_reply, classify_by_words
from codecompanion.retrieval.question_type import types_as_json, types_by_words, types_of_reply

A_JOB = '{"text": "…"}'


class Job(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """One line of `--jobs`: a question, and what a model said about it, if one was asked."""

    text: Any
    reply: str | None = None
    type_reply: str | None = None
    pipeline: str | None = None
    strict: bool | None = None


def add_parser(commands: Any) -> None:
    """Add the sub-command to the command line."""
    parser: argparse.ArgumentParser = commands.add_parser(
        "classify", help="say whether a question is about the project, and what kind of question it is"
    )
    add_pipeline(parser)
    parser.add_argument("--jobs", action="store_true", help=f"{JOBS_HELP}: {A_JOB}")
    parser.add_argument("text", nargs="*", metavar="TEXT", help="the question; with --jobs a file, or - (the default)")
    parser.set_defaults(run=run)


def run(arguments: argparse.Namespace, out: TextIO) -> int:
    """Carry the sub-command out; returns the exit status. Bad input is raised before anything is printed."""
    if arguments.jobs:
        if len(arguments.text) > 1:
            raise InputError(f"--jobs takes its questions from the jobs; expected one file, found {arguments.text}")
        file = arguments.text[0] if arguments.text else "-"
        return answer_jobs("classify", file, Job, A_JOB, lambda job: _answer(job, arguments), out)
    if not arguments.text:
        raise InputError("no question; expected TEXT, or --jobs")
    print_answer(_answer(Job(text=" ".join(arguments.text)), arguments), out)
    return 0


def _answer(job: Job, given: argparse.Namespace) -> dict[str, Any]:
    pipeline_of_job(job, given)  # refuses a wrong one; both classify alike
    said = classification_of_reply(job.reply) if job.reply is not None else None
    kinds = types_of_reply(job.type_reply) if job.type_reply is not None else None
    return as_json(said or classify_by_words(job.text), kinds or types_by_words(job.text))


def as_json(classification: Classification, types: QuestionTypes) -> dict[str, Any]:
    """Return a classification under the document's names."""
    return {
        "isCodebaseRelated": classification.is_codebase_related,
        "categories": list(classification.categories),
        "confidence": classification.confidence,
        "confidenceValue": classification.confidence_value,
        "types": types_as_json(types),
        "type": types.name,
        "source": classification.source,
    }
