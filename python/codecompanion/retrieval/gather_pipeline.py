"""Reads the gather pipelines: the stages that lead from a question to its code.

They are `gather_pipelines/document.toml` and `ranked.toml`.

The first table is the document's pipeline (R-201 … R-252); the second is the default. A stage is a name (`use`) with
parameters. The tables mark our additions to the document: `ours = "…"` in an added stage, `ours = { parameter = "…" }`
for a changed parameter of one of the document's stages. `document = { parameter = … }` gives the document's value of
that parameter, so that `document.toml` also yields the third pipeline, `document strict`.
`session/gather/gather_code.py` runs the stages.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import cache
from typing import Any, Literal, TypeVar

import msgspec

from codecompanion.deviation import Deviation
from codecompanion.errors import ConfigError
from codecompanion.formats import typed
from codecompanion.formats.package_table import package_table
from codecompanion.model.found_code import SearchTier

PipelineName = Literal["ranked", "document", "document strict"]
DEFAULT: PipelineName = "ranked"
DOCUMENT: PipelineName = "document"
STRICT: PipelineName = "document strict"
"""The document's pipeline without our additions."""
NAMES: tuple[PipelineName, ...] = (DEFAULT, DOCUMENT)
"""Valid values of `context.pipeline` and `--pipeline`; `strict` is a separate option."""
Part = Literal["code", "map", "architecture", "team", "memory", "format"]


class Stage(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, tag_field="use"):
    """The fields of every stage. `ours`: why the stage is not in the document, or parameter → why its value differs.

    `document`: the document's values for our parameters; `instead`: the document's stages that this stage replaces.
    """

    ours: str | dict[str, str] = ""
    document: dict[str, Any] = {}
    instead: tuple[str, ...] = ()


class Classify(Stage, frozen=True, tag="classify"):
    """Decides whether the question is about the project. `by`: the method used without a model.

    `with_exceptions`: how words are compared; see `retrieval/classifier.py`.
    """

    by: Literal["words", "index"]
    with_exceptions: bool


class ReadNamedFiles(Stage, frozen=True, tag="read_named_files"):
    """Reads the files the user named, and the active file, which comes first or last (`active`)."""

    active: Literal["first", "last"]


class FindTerms(Stage, frozen=True, tag="find_terms"):
    """Finds the search terms. `searched`: how many of a model's terms to use."""

    searched: int


class SearchDefinitions(Stage, frozen=True, tag="search_definitions"):
    """Finds definitions that contain a search term, in files that contain one.

    `files`: "unanswered" = search only if the index is incomplete or finds nothing, starting with the files that the
    index found. `max_files`: 0 = all files; `weight`: the weight of these scores relative to those of the index search.
    """

    files: Literal["with_terms", "unanswered"]
    max_files: int
    weight: float = 1.0


class SearchCascade(Stage, frozen=True, tag="search_cascade"):
    """Runs the document's search tiers, starting with `first`.

    If a tier fails or finds nothing, the next one is tried.
    """

    first: SearchTier


class SearchRanked(Stage, frozen=True, tag="search_ranked"):
    """Runs the joined ranking, returning at most `max_files` files with at most `per_file` places each."""

    max_files: int
    per_file: int


class AppendCommonFiles(Stage, frozen=True, tag="append_common_files"):
    """Appends common project files, up to `share` of the budget. `beside_hits`: even if the search found something.

    `every_manifest`: include manifests that the document does not name.
    """

    share: float
    beside_hits: bool
    every_manifest: bool


class KeepFirstOfFile(Stage, frozen=True, tag="keep_first_of_file"):
    """Keeps only the first result of each file, and at most `most` results."""

    most: int


class ReadTexts(Stage, frozen=True, tag="read_texts"):
    """Reads text other than code, from the sources in `of`."""

    of: tuple[Literal["architecture", "team", "memory"], ...]


class JoinPlaces(Stage, frozen=True, tag="join_places"):
    """Merges snippets of the same place that were found by two gatherers."""


class DemoteRepeats(Stage, frozen=True, tag="demote_repeats"):
    """Lowers the score of code that repeats other code in its file."""


class ScoreDensity(Stage, frozen=True, tag="score_density"):
    """Scores snippets by keyword density."""


class TakeStructures(Stage, frozen=True, tag="take_structures"):
    """Extracts the structures that patterns find in the search results.

    `until_next`: a structure ends before the next one, not only after 30 lines; `indented`: lines may be indented.
    """

    until_next: bool
    indented: bool


class FillBudget(Stage, frozen=True, tag="fill_budget"):
    """Fills the budget with the document's greedy selection.

    `cut_named`: truncate a named file that does not fit instead of dropping it.
    """

    cut_named: bool


class FillBudgetOnce(Stage, frozen=True, tag="fill_budget_once"):
    """Fills the budget with a greedy selection that never shows a line twice."""


class Assemble(Stage, frozen=True, tag="assemble"):
    """Assembles the context block that precedes the question from these parts, in order."""

    parts: tuple[Part, ...]


AnyStage = (
    Classify
    | ReadNamedFiles
    | FindTerms
    | SearchDefinitions
    | SearchCascade
    | SearchRanked
    | AppendCommonFiles
    | KeepFirstOfFile
    | ReadTexts
    | JoinPlaces
    | DemoteRepeats
    | ScoreDensity
    | TakeStructures
    | FillBudget
    | FillBudgetOnce
    | Assemble
)
S = TypeVar("S", bound=Stage)
_PHASES: tuple[tuple[type[Stage], ...], ...] = (
    (Classify,),
    (ReadNamedFiles,),
    (FindTerms,),
    (SearchDefinitions, SearchCascade, SearchRanked),
    (AppendCommonFiles,),
    (KeepFirstOfFile,),
    (ReadTexts,),
    (JoinPlaces, DemoteRepeats, ScoreDensity, TakeStructures),
    (FillBudget, FillBudgetOnce),
    (Assemble,),
)
"""The allowed order of stages. Stages of one row keep the table's order; searches run concurrently."""
_ONE_OF: tuple[tuple[type[Stage], ...], ...] = (
    *((Classify,), (ReadNamedFiles,), (FindTerms,), (SearchCascade, SearchRanked)),
    *((FillBudget, FillBudgetOnce), (Assemble,)),
)
"""Groups of stages; a pipeline must have exactly one stage of each group."""


class _Table(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    description: str
    stage: tuple[AnyStage, ...]


class GatherPipeline(msgspec.Struct, frozen=True):
    """A gather pipeline: a sequence of stages, each of which occurs at most once."""

    name: str
    description: str
    stages: tuple[AnyStage, ...]

    def find(self, kind: type[S]) -> S | None:
        """Return the stage of the given type, or None if the pipeline does not have it."""
        return next((stage for stage in self.stages if isinstance(stage, kind)), None)

    def stage(self, kind: type[S]) -> S:
        """Return the stage of the given type, which every pipeline has."""
        found = self.find(kind)
        assert found is not None, f"{self.name} without {kind.__name__}"  # noqa: S101  checked when it was read
        return found

    def deviations(self) -> tuple[Deviation, ...]:
        """Return the pipeline's deviations from the document, in the order of the table."""
        return tuple(self._deviations())

    def _deviations(self) -> Iterator[Deviation]:
        for stage in self.stages:
            name = word_of(stage)
            if isinstance(stage.ours, str):
                yield from [Deviation(name, stage.ours)] if stage.ours else []
            else:
                document = load_pipeline(STRICT).stage(type(stage))
                for parameter, why in stage.ours.items():
                    values = (getattr(one, parameter) for one in (stage, document))
                    yield Deviation(f"{name}.{parameter}", why, *values)


@cache
def load_pipeline(name: PipelineName) -> GatherPipeline:
    """Return a built-in gather pipeline by name."""
    if name == STRICT:
        return pipeline_from_table(_without_ours(_table_of(DOCUMENT)), name)
    return pipeline_from_table(_table_of(name), name)


def _table_of(name: PipelineName) -> Mapping[str, Any]:
    return package_table(f"retrieval/gather_pipelines/{name}.toml")


def _without_ours(table: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return the document's table without our stages, and with the document's values instead of our own."""
    stages = []
    for stage in table["stage"]:
        kept = {name: value for name, value in stage.items() if name not in ("ours", "document")}
        stages += [] if isinstance(stage.get("ours"), str) else [{**kept, **stage.get("document", {})}]
    return {**table, "stage": stages}


def pipeline_from_table(table: Mapping[str, Any], name: str) -> GatherPipeline:
    """Return the pipeline that a table describes.

    Raises:
        ConfigError: an unknown stage or key, a wrong type, or an invalid order; the error names the key.
    """
    try:
        read = typed.convert(table, _Table)
    except msgspec.ValidationError as error:
        problem, _, place = str(error).partition(" - at `$")
        raise ConfigError(f"{name}{place.rstrip('`')}", problem, f"a stage: one of {', '.join(_WORDS)}") from error
    _check(read.stage, f"{name}.stage")
    return GatherPipeline(name, read.description, read.stage)


def _check(stages: tuple[AnyStage, ...], key: str) -> None:
    phase, seen = 0, set[type[Stage]]()
    for number, stage in enumerate(stages):
        where, word = f"{key}[{number}]", word_of(stage)
        of_stage = next(place for place, kinds in enumerate(_PHASES) if type(stage) in kinds)
        if type(stage) in seen:
            raise ConfigError(f"{where}.use", f"{word} appears twice", "each stage only once")
        if of_stage < phase:
            raise ConfigError(f"{where}.use", f"{word} comes too late", f"it before {word_of(stages[number - 1])}")
        for mark, marked in (("ours", stage.ours), ("document", stage.document)):
            for parameter in marked if isinstance(marked, dict) else ():
                if parameter not in parameters_of(stage):
                    expected = ", ".join(parameters_of(stage))
                    raise ConfigError(f"{where}.{mark}.{parameter}", f"{word} has no such parameter", expected)
        phase = of_stage
        seen.add(type(stage))
    for kinds in _ONE_OF:
        if len(seen.intersection(kinds)) != 1:
            raise ConfigError(key, "a stage is missing or duplicated", f"exactly one of {', '.join(map(_word, kinds))}")


def parameters_of(stage: Stage) -> tuple[str, ...]:
    """Return the names of a stage's parameters."""
    return tuple(name for name in stage.__struct_fields__ if name not in Stage.__struct_fields__)


def word_of(stage: Stage) -> str:
    """Return the name of a stage as written in the tables (`use`)."""
    return _word(type(stage))


def _word(kind: type[Stage]) -> str:
    tag = kind.__struct_config__.tag
    assert isinstance(tag, str)  # noqa: S101  each is written above
    return tag


_WORDS = tuple(_word(kind) for kinds in _PHASES for kind in kinds)
