"""`search`: find the code in a project that a question is about (`:help codecompanion-cli`; R-227 … R-238).

A stable contract, used by external tests. The project's index, which the editor uses too, is updated first. `ms` is the
time taken by the search itself.
"""

from __future__ import annotations

import argparse
import asyncio
import sys
from typing import Any, TextIO

import msgspec

from codecompanion import settings
from codecompanion.cli.arguments import existing_folder, options_of
from codecompanion.cli.command_indexes import CommandIndexes
from codecompanion.cli.embed_option import CommandVectors, add_embed
from codecompanion.cli.jobs import JOBS_HELP, answer_jobs, print_answer
from codecompanion.cli.pipeline_option import HYBRID, add_pipeline, hybrid_of, pipeline_of
from codecompanion.errors import InputError
from codecompanion.model.found_code import SearchOutcome, WantedTier
from codecompanion.retrieval.gather_pipeline import DEFAULT, DOCUMENT, PipelineName, SearchCascade, load_pipeline
from codecompanion.retrieval.search.fusion import effective_top_k
from codecompanion.session.code.project_index import ProjectIndex
from codecompanion.session.code.search_code import search_code
from codecompanion.session.code.search_options import DEFAULT_TOP_K, SearchOptions, search_options
from codecompanion.workspace.paths import NOT_INDEXED, is_project

A_JOB = (
    '{"query": …, "options": {"root": …, "tier": "auto", "top_k": 10, "embed": …, "pipeline": …, "strict": …,'
    ' "hybrid": …}}'
)
TIERS: tuple[WantedTier, ...] = ("auto", "hybrid", "fts", "vector", "terms")

_BY_WORDS: tuple[WantedTier, ...] = ("fts", "terms")
"""Tiers without vectors: vectors are computed and searched only if these find nothing and the cascade continues
(R-227).
"""


_TOP_K_HELP = (
    "number of files, 1 to 50 (default: 10); common project files may follow; at most 15 files in all,"
    " or N if that is more and the tier is auto"
)


class Options(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Options that override the command's arguments. `top_k` is clamped to 1..50 (R-228)."""

    root: str | None = None
    tier: WantedTier | None = None
    top_k: int | None = None
    embed: str | None = None
    pipeline: str | None = None
    strict: bool | None = None
    hybrid: dict[str, Any] | None = None


class Job(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """One line of `--jobs`."""

    query: str
    options: Options = Options()
    pipeline: str | None = None
    strict: bool | None = None


def add_parser(commands: Any) -> None:
    """Add the subcommand to the command line."""
    parser: argparse.ArgumentParser = commands.add_parser(
        "search", help="find the code of a project for a question, as JSON"
    )
    parser.add_argument("--jobs", action="store_true", help=f"{JOBS_HELP}: {A_JOB}")
    parser.add_argument("--root", metavar="DIR", default=".", help="the project's folder (default: this one)")
    parser.add_argument("--tier", choices=TIERS, default="auto", help="auto (joined ranking, default) or a plain tier")
    parser.add_argument("--top-k", metavar="N", type=int, help=_TOP_K_HELP)
    add_pipeline(parser)
    parser.add_argument("--hybrid", metavar="JSON", help=f"hybrid search options for --pipeline document: {HYBRID}")
    add_embed(parser)
    parser.add_argument("query", nargs="*", metavar="QUERY", help="a question, or words")
    parser.set_defaults(run=run)


def run(arguments: argparse.Namespace, out: TextIO) -> int:
    """Run the subcommand and return the exit status.

    Raises:
        InputError: the folder does not exist, or there is nothing to search for.
    """
    query = " ".join(arguments.query)
    with _Searches(arguments) as searches:
        if arguments.jobs:
            if len(arguments.query) > 1:
                raise InputError(f"with --jobs, the questions come from the jobs; expected no words, found {query!r}")
            return answer_jobs("search", query or "-", Job, A_JOB, searches.answer, out)
        if not query.strip():
            raise InputError("nothing to search for; expected QUERY or --jobs")
        print_answer(searches.answer(Job(query=query)), out)
    return 0


class _Searches:
    """The projects searched so far, each with an open index; jobs may name projects other than the command's."""

    def __init__(self, arguments: argparse.Namespace) -> None:
        self._arguments = arguments
        self._loop = asyncio.Runner()
        self._indexes = CommandIndexes()
        self._vectors = CommandVectors()

    def __enter__(self) -> _Searches:
        return self

    def __exit__(self, *_: object) -> None:
        with self._loop:
            self._loop.run(self._vectors.aclose())
            self._loop.run(self._indexes.close())

    def answer(self, job: Job) -> dict[str, Any]:
        """Return the answer to a job.

        Raises:
            InputError: the folder does not exist or is not a project, or the SPEC of the vectors is invalid.
        """
        options = options_of(job.options, self._arguments)
        spec, tier = options.embed, options.tier or "auto"
        default = DEFAULT if tier == "auto" else DOCUMENT
        asked = _search_options(options, tier, pipeline_of(self._arguments, job.options, job, default=default))
        vectors = None if spec is None else self._vectors.of(spec)
        index = self._index(options.root or ".")
        outcome = None
        if asked.tier in _BY_WORDS:
            outcome = self._loop.run(search_code(index, job.query, asked))
        if outcome is None or (spec is not None and outcome.tier != asked.tier):
            if spec is not None:
                limit_s = settings.load({}).context.timeout_s
                self._loop.run(self._vectors.fill(spec, index.root, index.path, index.choice, limit_s=limit_s))
            outcome = self._loop.run(search_code(index, job.query, asked, vectors))
        if tier not in ("auto", outcome.tier):
            print(f"codecompanion: {'; '.join(outcome.not_used)}", file=sys.stderr)
        return _as_json(outcome)

    def _index(self, name: str) -> ProjectIndex:
        root = existing_folder(name, "root")
        if not is_project(root):
            raise InputError(NOT_INDEXED.format(root=root))
        return self._indexes.of(root)


def _search_options(options: Options, tier: WantedTier, name: PipelineName) -> SearchOptions:
    """Return the search options for a job's pipeline; a tier other than `auto` requires the document's pipeline."""
    pipeline = load_pipeline(name)
    cascade = pipeline.find(SearchCascade)
    if tier != "auto" and cascade is None:
        raise InputError(f"tier is {tier!r}: the pipeline {name} has no tiers; expected pipeline {DOCUMENT}")
    hybrid = hybrid_of(options.hybrid, name)
    top_k = options.top_k
    if top_k is None:
        top_k = DEFAULT_TOP_K if cascade is None else hybrid.top_k
    asked = search_options(pipeline, hybrid)
    first = asked.tier if tier == "auto" else tier
    return msgspec.structs.replace(asked, top_k=effective_top_k(top_k), per_file=1, tier=first)


def _as_json(outcome: SearchOutcome) -> dict[str, Any]:
    results = [
        {
            "path": result.path,
            "start": result.start,
            "end": result.end,
            "score": round(result.score, 4),
            "method": result.method,
            "symbol": result.symbol,
            "text": result.text,
        }
        for result in outcome.results
    ]
    return {"results": results, "tier": outcome.tier, "ms": round(outcome.ms, 1)}
