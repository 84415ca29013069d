"""`gather`: print the code that would be sent with a question, and why (`:help codecompanion-cli`; R-201 … R-253).

A stable contract. No code is sent anywhere, except to an embedder named by `--embed`. The project's index is updated
first; without a usable index, the files are searched as text.
"""

from __future__ import annotations

import argparse
import asyncio
import time
from pathlib import Path
from typing import Any, TextIO

import msgspec

from codecompanion import settings
from codecompanion.cli.arguments import budget_of, existing_folder, options_of, token_count
from codecompanion.cli.command_indexes import CommandIndexes
from codecompanion.cli.commands.classify import as_json
from codecompanion.cli.commands.select import selection_as_json
from codecompanion.cli.embed_option import CommandVectors, add_embed
from codecompanion.cli.jobs import JOBS_HELP, answer_jobs, print_answer
from codecompanion.cli.pipeline_option import HYBRID, add_pipeline, hybrid_of, pipeline_of
from codecompanion.errors import InputError
from codecompanion.formats.plural import counted
from codecompanion.model.gathered import Gathered, Snippet
from codecompanion.retrieval.gather_pipeline import PipelineName
from codecompanion.retrieval.mentions import mentions_in
from codecompanion.session.gather.ask import Ask
from codecompanion.session.gather.gather_code import GatherResources, gather
from codecompanion.session.gather.index_search import IndexSearch
from codecompanion.workspace.paths import is_project

A_JOB = (
    '{"question": "…", "options": {"root", "files", "active", "model", "budget", "embed", "always", "pipeline",'
    ' "strict", "hybrid"}}'
)


class Options(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The options of one question; missing or null options are taken from the command line."""

    root: str | None = None
    files: tuple[str, ...] | None = None
    active: str | None = None
    model: str | None = None
    budget: int | str | None = None
    embed: str | None = None
    always: bool | None = None
    pipeline: str | None = None
    strict: bool | None = None
    hybrid: dict[str, Any] | None = None


class Job(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """One line of `--jobs`."""

    question: str
    options: Options = Options()
    pipeline: str | None = None
    strict: bool | None = None


def add_parser(commands: Any) -> None:
    """Add the subcommand to the command line."""
    parser: argparse.ArgumentParser = commands.add_parser(
        "gather", help="find the code that would be sent with a question, and explain why"
    )
    parser.add_argument("--root", metavar="DIR", default=".", help="the project's folder (default: this one)")
    parser.add_argument(
        "--file", metavar="PATH", dest="files", action="append", default=[], help="a file to include whole"
    )
    parser.add_argument("--active", metavar="PATH", default="", help="the current file")
    parser.add_argument("--model", metavar="NAME", default="", help="the model whose token budget applies")
    parser.add_argument("--budget", metavar="N", type=token_count, help="the token budget")
    add_embed(parser)
    add_pipeline(parser)
    parser.add_argument("--hybrid", metavar="JSON", help=f"hybrid search options for --pipeline document: {HYBRID}")
    parser.add_argument("--always", action="store_true", help="gather code even for questions not about the project")
    parser.add_argument("--jobs", action="store_true", help=f"{JOBS_HELP}: {A_JOB}")
    parser.add_argument("question", nargs="*", metavar="QUESTION", help="question; with --jobs a file or - (default)")
    parser.set_defaults(run=run)


def run(arguments: argparse.Namespace, out: TextIO) -> int:
    """Run the subcommand and return the exit status. Bad input raises before anything is printed."""
    with asyncio.Runner() as runner:
        projects = _Projects(runner, arguments)
        try:
            if arguments.jobs:
                file = arguments.question[0] if arguments.question else "-"
                return answer_jobs("gather", file, Job, A_JOB, projects.answer, out)
            if not arguments.question:
                raise InputError("no question given; expected QUESTION or --jobs")
            print_answer(projects.answer(Job(" ".join(arguments.question))), out)
            return 0
        finally:
            projects.close()


class _Projects:
    """The open projects of the jobs."""

    def __init__(self, runner: asyncio.Runner, given: argparse.Namespace) -> None:
        self._runner, self._given = runner, given
        self._indexes = CommandIndexes()
        self._vectors = CommandVectors()

    def answer(self, job: Job) -> dict[str, Any]:
        """Return the answer to one job."""
        pipeline, options = pipeline_of(self._given, job.options, job), options_of(job.options, self._given)
        root = existing_folder(options.root or ".", "root").absolute()
        return self._runner.run(self._answer(job.question, root, options, pipeline))

    async def _answer(self, question: str, root: Path, options: Options, pipeline: PipelineName) -> dict[str, Any]:
        context = settings.load({}).context
        context = msgspec.structs.replace(context, hybrid=hybrid_of(options.hybrid, pipeline))
        vectors = self._vectors.of(options.embed) if options.embed else None
        index = self._indexes.of(root)
        if options.embed and is_project(root):
            await self._vectors.fill(options.embed, index.root, index.path, index.choice, limit_s=context.timeout_s)
        mentions, files = mentions_in(question), options.files or ()
        ask = Ask(
            question=question,
            root=root,
            files=tuple(dict.fromkeys((*files, *mentions.files))),
            lines=tuple(one for one in mentions.lines if one.name not in files),
            active=options.active or "",
            model=options.model or "",
            budget=budget_of(options.budget),
            always=options.always or mentions.codebase,
            only_files=not is_project(root),
            pipeline=pipeline,
        )
        search = IndexSearch(index, vectors)
        return as_answer(await gather(ask, GatherResources(context, time.monotonic, search)))

    def close(self) -> None:
        """Close every index, and the embedders."""
        self._runner.run(self._vectors.aclose())
        self._runner.run(self._indexes.close())


def as_answer(gathered: Gathered) -> dict[str, Any]:
    """Return the gathered code with the contract's field names; `notes` and `failed` explain missing parts."""
    return {
        "classification": as_json(gathered.classification, gathered.types),
        "terms": list(gathered.terms),
        "gathered": [_piece(one) for one in (*gathered.found, *gathered.beside)],
        "selection": selection_as_json(gathered.selection),
        "text": gathered.text,
        "timed_out": list(gathered.timed_out),
        "failed": gathered.failed,
        "notes": [*gathered.notes, *_why_no_text(gathered)],
        "ms": gathered.ms,
    }


def _why_no_text(gathered: Gathered) -> list[str]:
    """Return an explanatory sentence if the message would be sent without code, else []."""
    if gathered.text:
        return []
    if gathered.found or gathered.beside:
        budget = gathered.selection.budget_tokens
        return [f"None of the code found fits the budget of {counted(budget, 'token')}; the text is empty."]
    if not gathered.classification.is_codebase_related:
        return ["The question is not about the project, so no code was searched (--always forces a search)."]
    return ["No relevant code context found; the text is empty."]


def _piece(snippet: Snippet) -> dict[str, Any]:
    return {
        "source": snippet.source,
        "path": snippet.path,
        "start": snippet.start,
        "end": snippet.end,
        "score": round(snippet.score, 4),
        "tokens": snippet.tokens,
    }
