"""`select`: choose the snippets of given files that fit a budget, as the document does (`:help codecompanion-cli`).

A stable contract (R-219, R-243 … R-251): the command reads only the job, not the disk or an index. The files of a job
are the search results: the files that contain a term or, under `ranked`, their definitions that contain a term. The
stages after the search are the same as in a chat (`choose`). The answer has the selection under its own name, as from
`gather`, and also its fields at the top level beside the code as text, as in the document's `ContextSelectionResult`.
"""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from pathlib import Path
from typing import Any, TextIO

import msgspec

from codecompanion import settings
from codecompanion.cli.arguments import budget_of
from codecompanion.cli.jobs import JOBS_HELP, answer_jobs
from codecompanion.cli.pipeline_option import add_pipeline, pipeline_of
from codecompanion.model.code import ParsedFile
from codecompanion.model.gathered import Selection, Snippet
from codecompanion.retrieval.gather_pipeline import DOCUMENT, GatherPipeline, TakeStructures, load_pipeline
from codecompanion.retrieval.rendering import render_selection
from codecompanion.retrieval.search_terms import simple_terms
from codecompanion.retrieval.smart_snippets import find_elements, split_lines, whole_file
from codecompanion.session.gather.ask import Ask
from codecompanion.session.gather.choose_code import GatheredParts, choose
from codecompanion.session.gather.gatherers import search_definitions
from codecompanion.session.gather.project_code import parse_text

A_JOB = '{"question": "…", "model": "…" or "budget": N, "files": [{"path", "content", "selected"}]}'


class File(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A file; `selected` is true if the user chose it."""

    path: str
    content: str
    selected: bool = False


class Job(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """One line of `--jobs`. `budget` takes precedence over the model's budget; without either, the default applies."""

    question: str
    files: list[File] = []
    model: str | None = None
    budget: int | str | None = None
    pipeline: str | None = None
    strict: bool | None = None


def add_parser(commands: Any) -> None:
    """Add the subcommand to the command line."""
    parser: argparse.ArgumentParser = commands.add_parser(
        "select", help="choose the snippets of given files that fit into a budget"
    )
    add_pipeline(parser, DOCUMENT)
    parser.add_argument("--jobs", action="store_true", required=True, help=f"{JOBS_HELP}: {A_JOB}")
    parser.add_argument("file", nargs="?", default="-", metavar="FILE|-", help="the jobs (default: standard input)")
    parser.set_defaults(run=run)


def run(arguments: argparse.Namespace, out: TextIO) -> int:
    """Run the subcommand and return the exit status."""
    return answer_jobs("select", arguments.file, Job, A_JOB, lambda job: _answer(job, arguments), out)


def _answer(job: Job, given: argparse.Namespace) -> dict[str, Any]:
    pipeline = load_pipeline(pipeline_of(given, job, default=DOCUMENT))
    ask = Ask(question=job.question, root=Path(), model=job.model or "", budget=budget_of(job.budget))
    found, code = _found(job.files, simple_terms(job.question), pipeline), _Code(job.files)
    selection = choose(ask, pipeline, settings.load({}).context, code, GatheredParts(snippets=found)).selection
    fields = selection_as_json(selection)
    return {"selection": fields, **fields, "text": render_selection(selection)}


class _Code:
    """The files of a job."""

    def __init__(self, files: Sequence[File]) -> None:
        self._texts = {file.path: file.content for file in files}

    def read(self, path: str) -> str | None:
        """Return the text of a file, or None if it is not in the job."""
        return self._texts.get(path)

    def parse(self, path: str) -> ParsedFile:
        """Return the definitions in a file."""
        return parse_text(path, self._texts.get(path, ""))


def _found(files: Sequence[File], terms: Sequence[str], pipeline: GatherPipeline) -> list[Snippet]:
    """Return the files that the user chose, and the results of a search for the terms in the others."""
    found = [whole_file(file.path, file.content) for file in files if file.selected]
    others = [file for file in files if not file.selected]
    structures = pipeline.find(TakeStructures)
    if structures is None:
        return found + search_definitions(_Code(others), terms, [file.path for file in others], lambda: None)
    return found + [
        msgspec.structs.replace(whole_file(file.path, file.content), is_selected=False, source="search")
        for file in others
        if _has_any(file.content, terms) or (not terms and _has_elements(file.content, structures))
    ]


def _has_any(text: str, terms: Sequence[str]) -> bool:
    lower = text.lower()
    return any(term in lower for term in terms)


def _has_elements(text: str, structures: TakeStructures) -> bool:
    return bool(find_elements(split_lines(text), indented=structures.indented))


def selection_as_json(selection: Selection) -> dict[str, Any]:
    """Return a selection with the field names of the document (R-249)."""
    return {
        "snippets": [
            {
                "path": one.path,
                "start": one.start,
                "end": one.end,
                "type": one.kind,
                "name": one.name,
                "score": one.score,
                "selected": one.is_selected,
                "tokens": one.tokens,
            }
            for one in selection.snippets
        ],
        "totalTokens": selection.total_tokens,
        "budgetTokens": selection.budget_tokens,
        "wasTruncated": selection.was_truncated,
        "droppedCount": len(selection.dropped),
    }
