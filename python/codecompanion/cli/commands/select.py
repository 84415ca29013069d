"""`select`: which snippets of given files fit into a budget, exactly as the document says (`:help codecompanion-cli`).

A stable contract (R-219, R-243 … R-251): it reads the job only, no disk and no index. It chooses as the document does,
unless a job asks for the pipeline `ranked`. The answer has the selection
under its name, as `gather` gives it, and its fields beside the text, as the document's `ContextSelectionResult`.
"""

from __future__ import annotations

import argparse
from typing import Any, TextIO

import msgspec

from codecompanion.cli.arguments import budget_of
from codecompanion.cli.jobs import JOBS_HELP, answer_jobs
from codecompanion.cli.pipeline_option import add_pipeline, pipeline_of_job
from codecompanion.model.gathered import Selection, Snippet
from codecompanion.retrieval.budgets import token_budget
from codecompanion.retrieval.gather_pipeline import DOCUMENT, FillBudget, load_pipeline
from codecompanion.retrieval.overlap import select_once
from codecompanion.retrieval.rendering import render_selection
from codecompanion.retrieval.search_terms import simple_terms
from codecompanion.retrieval.selection import select_snippets
from codecompanion.retrieval.smart_snippets import extract_smart_snippets, whole_file
from codecompanion.retrieval.worth_showing import demote_repeats

A_JOB = '{"question": "…", "model": "…" or "budget": N, "files": [{"path", "content", "selected"}]}'


class File(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A file; `selected`: the user chose it."""

    path: str
    content: str
    selected: bool = False


class Job(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """One line of `--jobs`. A budget goes before the model's; with neither, the default one counts."""

    question: str
    files: list[File] = []
    model: str | None = None
    budget: int | str | None = None
    pipeline: str | None = None
    strict: bool | None = None


def add_parser(commands: Any) -> None:
    """Add the sub-command to the command line."""
    parser: argparse.ArgumentParser = commands.add_parser(
        "select", help="choose the snippets of given files that fit into a budget"
    )
    add_pipeline(parser, DOCUMENT)
    parser.add_argument("--jobs", action="store_true", required=True, help=f"{JOBS_HELP}: {A_JOB}")
    parser.add_argument("file", nargs="?", default="-", metavar="FILE|-", help="the jobs (default: standard input)")
    parser.set_defaults(run=run)


def run(arguments: argparse.Namespace, out: TextIO) -> int:
    """Carry the sub-command out; returns the exit status."""
    return answer_jobs("select", arguments.file, Job, A_JOB, lambda job: _answer(job, arguments), out)


def _answer(job: Job, given: argparse.Namespace) -> dict[str, Any]:
    pipeline = load_pipeline(pipeline_of_job(job, given, DOCUMENT))
    own = budget_of(job.budget)
    budget = token_budget(job.model or "") if own is None else own
    terms = simple_terms(job.question)
    candidates = list[Snippet]()
    for file in job.files:
        if file.selected:
            candidates.append(whole_file(file.path, file.content))
        else:
            candidates += extract_smart_snippets(file.path, file.content, terms)
    if pipeline.find(FillBudget) is not None:
        selection = select_snippets(candidates, budget)
    else:
        selection = select_once(demote_repeats(candidates), budget, terms)
    fields = selection_as_json(selection)
    return {"selection": fields, **fields, "text": render_selection(selection)}


def selection_as_json(selection: Selection) -> dict[str, Any]:
    """Return a selection under the document's names (R-249)."""
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
