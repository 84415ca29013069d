"""Gathers the code that is relevant to a question: step 5.4 of "From Enter to the bytes" (`doc/dev/architecture.md`.

R-201).

Nothing here writes to disk, and the network is used only for a model that the user has configured (option `utility`,
R-267).
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping, Sequence
from functools import partial
from typing import Protocol

import msgspec

from codecompanion.model.found_code import SearchOutcome
from codecompanion.model.gathered import Classification, Gathered, QuestionTypes, Selection, Snippet
from codecompanion.retrieval.compose import Composed
from codecompanion.retrieval.distinctive_words import LOOKED_AT, has_hit, own_words, wants_common
from codecompanion.retrieval.gather_pipeline import (
    AppendCommonFiles,
    Classify,
    FindTerms,
    GatherPipeline,
    ReadNamedFiles,
    ReadTexts,
    SearchDefinitions,
    load_pipeline,
)
from codecompanion.retrieval.mentions import asked_words
from codecompanion.retrieval.question_type import types_by_words
from codecompanion.retrieval.search_terms import says_something, simple_terms
from codecompanion.retrieval.team import is_about_team, render_team
from codecompanion.session.code.search_options import SearchOptions, search_options
from codecompanion.session.gather.ask import Ask
from codecompanion.session.gather.choose_code import GatheredParts, budget_of, choose, max_file_bytes, not_sent
from codecompanion.session.gather.classify_question import EvidenceOf, asks_index, classify_question
from codecompanion.session.gather.deadline_work import in_thread
from codecompanion.session.gather.gatherers import (
    MayUse,
    beside,
    beside_search,
    found_snippet,
    read_architecture,
    read_common_files,
    read_memories,
    search_definitions,
    use_all,
)
from codecompanion.session.gather.mentioned_files import ReadFiles, read_mentioned
from codecompanion.session.gather.pinned import ReadPins, read_pinned
from codecompanion.session.gather.project_code import ProjectCode, Stoppable
from codecompanion.session.gather.run_gatherers import Runs
from codecompanion.session.gather.team_text import TeamText
from codecompanion.session.gather.term_files import files_with_terms
from codecompanion.session.gather.utility import Utility
from codecompanion.settings_sections import GatheringSettings
from codecompanion.workspace.project_files import Choice

SHARES = {
    "evidence": 0.25,
    "classification": 0.25,
    "files": 0.25,
    "terms": 0.25,
    "search": 0.4,
    "term files": 0.25,
    "ast": 0.2,
    "common": 0.4,
    "pinned": 0.4,
    "architecture": 0.5,
    "memories": 0.3,
    "team": 0.5,
}
"""The deadline of each gatherer as a share of the total time (R-203)."""
GATHERING_SHARE = 0.85
"""The share of the total time after which all gatherers have ended; the rest is for choosing among their results."""
ENOUGH_SHARE = 0.6
"""Share of its time after which the AST search starts no further file, because a timeout would lose all its results."""


class CodeSearch(EvidenceOf, Protocol):
    """The project's index, callable as a search function."""

    async def __call__(self, question: str, options: SearchOptions, unsaved: Mapping[str, str]) -> SearchOutcome:
        """Return the best places for a question; `unsaved`: path → text of changed buffers."""
        ...


class _CodeFound(msgspec.Struct, frozen=True):
    """The results of the code gatherers: the search terms, the code found, and the state of the index."""

    terms: tuple[str, ...] = ()
    snippets: tuple[Snippet, ...] = ()
    tier: str = ""
    is_partial: bool = False
    notes: tuple[str, ...] = ()


_NO_CODE = _CodeFound()


class GatherResources(msgspec.Struct, frozen=True):
    """The resources for gathering. Without `search` there is no index; without `utility` the words decide."""

    settings: GatheringSettings
    clock: Callable[[], float]
    search: CodeSearch | None = None
    utility: Utility | None = None
    team: TeamText | None = None
    may_use: MayUse = use_all


async def gather(ask: Ask, resources: GatherResources) -> Gathered:
    """Return the code found for a question; `text` is "" if the message must be sent without code.

    Raises:
        asyncio.CancelledError: the gathering was stopped; all work has ended.
    """
    begun, pipeline = resources.clock(), load_pipeline(ask.pipeline)
    runs = Runs(resources.clock, begun + GATHERING_SHARE * resources.settings.timeout_s)
    written, ask = ask.question, msgspec.structs.replace(ask, question=_words_of(ask))
    classification, types = await _classify(ask, resources, runs, pipeline)
    result = partial(_result, written, runs, begun, classification, types)
    if not (ask.files or classification.is_codebase_related):
        return result(budget=budget_of(ask, resources.settings))
    choice = Choice(resources.settings.include_hidden, max_file_bytes(resources.settings))
    code = ProjectCode(ask.root, choice, ask.unsaved)
    active, named_first = "" if ask.only_files else ask.active, pipeline.stage(ReadNamedFiles).active == "last"
    reading = in_thread(partial(read_mentioned, code, ask.files, active, named_first, ask.lines))
    files = await runs.run("files", reading, _limit(resources, "files"), ReadFiles())
    named = any(one.source == "mention" for one in files.snippets)
    if not (named or classification.is_codebase_related):
        budget = budget_of(ask, resources.settings)
        return result(notes=files.notes, budget=budget)
    code_found, texts = _NO_CODE, list[Snippet]()
    if not ask.only_files:
        says_more = ask.always or ask.question == written or says_something(ask.question)
        looks = not named or (resources.settings.supplement_when_files_selected and says_more)
        code_found, texts = await asyncio.gather(
            _find_code(ask, resources, runs, code, types, files, pipeline)
            if looks
            else _only_pinned(ask, resources, runs, code),
            _find_texts(ask, resources, runs, code, types, pipeline),
        )
    everything = (*files.snippets, *code_found.snippets)
    runs.deadline = begun + resources.settings.timeout_s
    given = GatheredParts(snippets=everything, texts=texts, terms=code_found.terms, types=types)
    choosing = in_thread(lambda check: choose(ask, pipeline, resources.settings, Stoppable(code, check), given))
    composed = await runs.run("selection", choosing, resources.settings.timeout_s, None)
    return result(
        terms=code_found.terms,
        found=everything,
        notes=(*files.notes, *code_found.notes, *not_sent(composed, files.large)),
        tier=code_found.tier,
        is_partial=code_found.is_partial,
        composed=composed,
    )


def _words_of(ask: Ask) -> str:
    """Return the words of the question, or the names of the named files if code is requested without further words."""
    words = asked_words(ask.question, ask.files)
    return words or (" ".join(ask.files) if ask.always else "")


async def _only_pinned(ask: Ask, resources: GatherResources, runs: Runs, code: ProjectCode) -> _CodeFound:
    pinned = await runs.run("pinned", _pinned(ask, code), _limit(resources, "pinned"), ReadPins())
    return _CodeFound(snippets=pinned.snippets, notes=pinned.notes)


def _pinned(ask: Ask, code: ProjectCode) -> Awaitable[ReadPins]:
    return in_thread(partial(read_pinned, code, ask.pinned))


def _limit(resources: GatherResources, name: str) -> float:
    return SHARES[name] * resources.settings.timeout_s


async def _classify(
    ask: Ask, resources: GatherResources, runs: Runs, pipeline: GatherPipeline
) -> tuple[Classification, QuestionTypes]:
    """Classify the question and return its types.

    A question that requests code is about the project (R-204, R-212, R-213).
    """
    said, kinds = await _without_model(ask, resources, runs, pipeline.stage(Classify)), types_by_words(ask.question)
    if resources.utility is not None and ask.question.strip():
        limit = _limit(resources, "classification")
        by_model, types_by_model = await asyncio.gather(
            runs.run("classification", resources.utility.classify(ask.question), limit, None),
            runs.run("question type", resources.utility.types(ask.question), limit, None),
        )
        said, kinds = by_model or said, types_by_model or kinds
    if (ask.always or not resources.settings.classify) and not said.is_codebase_related:
        by = said.source if said.source != "forced" else ""
        said = Classification(
            is_codebase_related=bool(ask.question.strip()),
            categories=("general",),
            confidence=said.confidence,
            source="forced",
            likelihood=said.likelihood,
            overruled=by if resources.settings.classify else "",
        )
    return said, msgspec.structs.replace(kinds, is_architectural=kinds.is_architectural or said.is_broad)


async def _without_model(ask: Ask, resources: GatherResources, runs: Runs, stage: Classify) -> Classification:
    evidence = None
    if resources.search is not None and not ask.only_files and asks_index(stage, ask.question):
        reading = resources.search.evidence(ask.question, ask.unsaved)
        evidence = await runs.run("evidence", reading, _limit(resources, "evidence"), None)
    return classify_question(ask.question, stage, evidence)


async def _find_code(
    ask: Ask,
    resources: GatherResources,
    runs: Runs,
    code: ProjectCode,
    types: QuestionTypes,
    files: ReadFiles,
    pipeline: GatherPipeline,
) -> _CodeFound:
    """Return the results of all code gatherers."""
    terms = simple_terms(ask.question)
    if resources.utility is not None and not ask.files:
        by_model = await runs.run("terms", resources.utility.terms(ask.question), _limit(resources, "terms"), ())
        terms = by_model[: pipeline.stage(FindTerms).searched] or terms
    in_play = tuple(one.path for one in files.snippets)
    options = search_options(pipeline, resources.settings.hybrid, in_play=in_play, is_broad=types.is_architectural)
    stage = pipeline.find(SearchDefinitions)
    beside_it = stage if stage is not None and stage.files == "with_terms" else None
    outcome, pinned, elements = await asyncio.gather(
        runs.run("search", _search(ask, resources, options, code), _limit(resources, "search"), None),
        runs.run("pinned", _pinned(ask, code), _limit(resources, "pinned"), ReadPins()),
        _definitions(beside_it, resources, runs, code, terms) if beside_it is not None else _nothing(),
    )
    results = [found_snippet(one) for one in outcome.results] if outcome is not None else []
    searched = [one for one in results if one.source == "search"]
    is_answered = bool(searched) and outcome is not None and not outcome.is_partial
    if stage is not None and beside_it is None and not is_answered:
        elements = await _definitions(stage, resources, runs, code, terms, [one.path for one in searched])
    if stage is not None and searched:
        elements = beside_search(elements, stage.weight)
    common = pipeline.find(AppendCommonFiles)
    if common is not None and not common.beside_hits and has_hit(own_words(ask.question), _pieces(elements)):
        results = searched
    if outcome is None or not (results or elements):
        results += await runs.run(
            "common", _common(ask, code, types, pipeline, elements), _limit(resources, "common"), []
        )
    # If there is a search but no outcome, it was late or failed, which is reported; without a search there is no index
    # yet.
    is_partial = outcome.is_partial if outcome is not None else resources.search is None
    return _CodeFound(
        terms,
        (*pinned.snippets, *results, *elements),
        outcome.tier if outcome is not None else "",
        is_partial,
        pinned.notes,
    )


async def _nothing() -> list[Snippet]:
    return []


async def _definitions(
    stage: SearchDefinitions,
    resources: GatherResources,
    runs: Runs,
    code: ProjectCode,
    terms: Sequence[str],
    first: Sequence[str] = (),
) -> list[Snippet]:
    """Return definitions that contain a term (R-222 … R-224), in the `first` files and all with a term (R-221)."""
    work = in_thread(partial(files_with_terms, code, terms))
    paths = (*first, *await runs.run("term files", work, _limit(resources, "term files"), []))
    until = resources.clock() + ENOUGH_SHARE * min(_limit(resources, "ast"), runs.left())
    is_late = partial(_is_past, resources.clock, until)
    parsed = tuple(dict.fromkeys(paths))[: stage.max_files or None]
    parsing = in_thread(partial(search_definitions, code, terms, parsed, is_late=is_late))
    return await runs.run("ast", parsing, _limit(resources, "ast"), [])


def _is_past(clock: Callable[[], float], time: float) -> bool:
    return clock() > time


async def _search(
    ask: Ask, resources: GatherResources, options: SearchOptions, code: ProjectCode
) -> SearchOutcome | None:
    if resources.search is None or not ask.question.strip():
        return None
    return await resources.search(ask.question, options, code.unsaved)


async def _common(
    ask: Ask, code: ProjectCode, types: QuestionTypes, pipeline: GatherPipeline, found: Sequence[Snippet]
) -> list[Snippet]:
    """Return common project files if no index was searched, by the same rules as the index search (R-236)."""
    stage = pipeline.find(AppendCommonFiles)
    if stage is None or not wants_common(
        ask.question, _pieces(found), is_about_whole=types.is_architectural, beside_hits=stage.beside_hits
    ):
        return []
    return await in_thread(partial(read_common_files, code, stage.every_manifest))


def _pieces(found: Sequence[Snippet]) -> list[str]:
    return [f"{one.path} {one.name} {one.text}" for one in found[:LOOKED_AT]]


async def _find_texts(
    ask: Ask, resources: GatherResources, runs: Runs, code: ProjectCode, types: QuestionTypes, pipeline: GatherPipeline
) -> list[Snippet]:
    """Return text other than code in the order of R-252: architecture, team, memories."""
    works: dict[str, tuple[Awaitable[list[Snippet]], float]] = {}
    stage = pipeline.find(ReadTexts)
    wanted = stage.of if stage is not None else ()
    if "architecture" in wanted and types.is_architectural:
        works["architecture"] = (in_thread(partial(read_architecture, code)), _limit(resources, "architecture"))
    if (
        "team" in wanted
        and resources.team is not None
        and resources.settings.team.enabled
        and is_about_team(ask.question)
    ):
        works["team"] = (_team(resources.team, code), _limit(resources, "team"))
    if "memory" in wanted and resources.settings.memories.enabled and ask.with_memories:
        work = in_thread(partial(read_memories, code, resources.settings.memories, resources.may_use))
        works["memories"] = (work, _limit(resources, "memories"))
    found = await runs.run_all(works, [])
    return [snippet for snippets in found.values() for snippet in snippets]


async def _team(team: TeamText, code: ProjectCode) -> list[Snippet]:
    text = render_team(await team.read(code.root))
    return [beside("team", text)] if text else []


def _result(
    question: str,
    runs: Runs,
    begun: float,
    classification: Classification,
    types: QuestionTypes,
    *,
    terms: tuple[str, ...] = (),
    found: tuple[Snippet, ...] = (),
    notes: tuple[str, ...] = (),
    tier: str = "",
    is_partial: bool = False,
    composed: Composed | None = None,
    budget: int = 0,
) -> Gathered:
    return Gathered(
        question=question,
        classification=classification,
        types=types,
        terms=terms,
        found=found,
        selection=composed.selection if composed is not None else Selection(budget_tokens=budget),
        beside=composed.beside if composed is not None else (),
        text=composed.text if composed is not None else "",
        timed_out=tuple(runs.timed_out),
        failed=dict(runs.failed),
        notes=notes,
        tier=tier,
        is_index_partial=is_partial,
        ms=int((runs.clock() - begun) * 1000),
        ms_by_gatherer=dict(runs.ms),
    )
