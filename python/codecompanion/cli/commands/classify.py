"""`classify`: decide whether a question is about the project, its topics and its type (`:help codecompanion-cli`).

A stable contract (R-204 … R-212). The network is not used: the project's index decides (without an index, the words of
the question), or a model's replies that are included in a job (`reply`, `type_reply`).
"""

from __future__ import annotations

import argparse
import asyncio
from typing import Any, TextIO

import msgspec

from codecompanion.cli.arguments import existing_folder
from codecompanion.cli.command_indexes import CommandIndexes
from codecompanion.cli.jobs import JOBS_HELP, answer_jobs, print_answer
from codecompanion.cli.pipeline_option import add_pipeline, pipeline_of
from codecompanion.errors import InputError
from codecompanion.model.gathered import Classification, QuestionTypes
from codecompanion.retrieval.classifier import classification_of_reply
from codecompanion.retrieval.gather_pipeline import Classify, load_pipeline
from codecompanion.retrieval.question_type import types_as_json, types_by_words, types_of_reply
from codecompanion.session.code.search_code import evidence_of
from codecompanion.session.gather.classify_question import asks_index, classify_question
from codecompanion.workspace.paths import is_project

A_JOB = '{"text": "…"}'


class Job(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """One line of `--jobs`: a question, and a model's replies about it, if there are any."""

    text: Any
    root: str | None = None
    reply: str | None = None
    type_reply: str | None = None
    pipeline: str | None = None
    strict: bool | None = None


def add_parser(commands: Any) -> None:
    """Add the subcommand to the command line."""
    parser: argparse.ArgumentParser = commands.add_parser(
        "classify", help="say whether a question is about the project, and what kind of question it is"
    )
    root = "the project folder whose index is used (default: this folder, if it is indexed)"
    parser.add_argument("--root", metavar="DIR", help=root)
    add_pipeline(parser)
    parser.add_argument("--jobs", action="store_true", help=f"{JOBS_HELP}: {A_JOB}")
    parser.add_argument("text", nargs="*", metavar="TEXT", help="the question; with --jobs a file, or - (the default)")
    parser.set_defaults(run=run)


def run(arguments: argparse.Namespace, out: TextIO) -> int:
    """Run the subcommand and return the exit status. Bad input raises before anything is printed."""
    with asyncio.Runner() as runner:
        projects = _Projects(runner, arguments)
        try:
            if arguments.jobs:
                if len(arguments.text) > 1:
                    found = arguments.text
                    raise InputError(f"with --jobs, the questions come from the jobs; expected one file, found {found}")
                file = arguments.text[0] if arguments.text else "-"
                return answer_jobs("classify", file, Job, A_JOB, projects.answer, out)
            if not arguments.text:
                raise InputError("no question given; expected TEXT or --jobs")
            print_answer(projects.answer(Job(text=" ".join(arguments.text))), out)
            return 0
        finally:
            projects.close()


class _Projects:
    """The open projects that the questions are about."""

    def __init__(self, runner: asyncio.Runner, given: argparse.Namespace) -> None:
        self._runner, self._given, self._indexes = runner, given, CommandIndexes()

    def answer(self, job: Job) -> dict[str, Any]:
        """Return the answer to one job."""
        stage = load_pipeline(pipeline_of(self._given, job)).stage(Classify)
        said = classification_of_reply(job.reply) if job.reply is not None else None
        kinds = types_of_reply(job.type_reply) if job.type_reply is not None else None
        return as_json(said or self._without_model(job, stage), kinds or types_by_words(job.text))

    def _without_model(self, job: Job, stage: Classify) -> Classification:
        wanted = job.root if job.root is not None else self._given.root
        root = existing_folder(wanted if wanted is not None else ".", "root").absolute()
        evidence = None
        if is_project(root) and asks_index(stage, job.text):
            index = self._indexes.of(root) if wanted is not None else self._indexes.existing(root)
            if index is not None:
                evidence = self._runner.run(evidence_of(index, job.text))
        return classify_question(job.text, stage, evidence)

    def close(self) -> None:
        """Close every index."""
        self._runner.run(self._indexes.close())


def as_json(classification: Classification, types: QuestionTypes) -> dict[str, Any]:
    """Return a classification with the field names of the document."""
    return {
        "isCodebaseRelated": classification.is_codebase_related,
        "categories": list(classification.categories),
        "confidence": classification.confidence,
        "confidenceValue": classification.confidence_value,
        "types": types_as_json(types),
        "type": types.name,
        "source": classification.source,
        **_of_index(classification),
    }


def _of_index(classification: Classification) -> dict[str, Any]:
    """Return the fields that require an index: the likelihood that the question is about the project, and breadth."""
    if classification.likelihood is None:
        return {}
    return {"likelihood": round(classification.likelihood, 3), "isBroad": classification.is_broad}
