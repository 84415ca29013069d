"""Selects the found snippets to send, within a question's budgets, and notes the others (R-244, R-247, R-248).

Chats, `gather` and `select` share these stages.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import msgspec

from codecompanion.model.gathered import QuestionTypes, Selection, Snippet
from codecompanion.retrieval.budgets import budget_in_window, token_budget
from codecompanion.retrieval.chosen_files import by_path
from codecompanion.retrieval.compose import Composed, Definitions, compose, joined
from codecompanion.retrieval.compose_by_document import compose_by_document
from codecompanion.retrieval.filler_code import demote_repeats
from codecompanion.retrieval.gather_pipeline import (
    AppendCommonFiles,
    Assemble,
    DemoteRepeats,
    FillBudget,
    GatherPipeline,
    JoinPlaces,
    ScoreDensity,
    TakeStructures,
)
from codecompanion.retrieval.overlap import lines_of
from codecompanion.retrieval.search_terms import simple_terms
from codecompanion.retrieval.selection import common_within
from codecompanion.retrieval.shown_lines import seen_in
from codecompanion.retrieval.smart_snippets import score_density, take_structures
from codecompanion.session.gather.ask import Ask
from codecompanion.session.gather.mentioned_files import MAX_READ_BYTES
from codecompanion.session.gather.pinned import places_of
from codecompanion.session.gather.project_code import CodeTexts
from codecompanion.settings_sections import GatheringSettings

_MAX_PLACES = 4
"""Maximum number of line ranges per file that a sentence lists."""


class GatheredParts(msgspec.Struct, frozen=True, kw_only=True):
    """The results of the gatherers: snippets of code, other text, the search terms, the question's types."""

    snippets: Sequence[Snippet]
    texts: Sequence[Snippet] = ()
    terms: Sequence[str] = ()
    types: QuestionTypes = QuestionTypes()


def choose(
    ask: Ask, pipeline: GatherPipeline, settings: GatheringSettings, code: CodeTexts, given: GatheredParts
) -> Composed:
    """Return the selection for the model. Blocks."""
    budget, parts, left_out = budget_of(ask, settings), pipeline.stage(Assemble).parts, places_of(code, ask.left_out)
    taken_out = [one for one in given.snippets if (one.path, one.start) in left_out]
    kept = [one for one in given.snippets if (one.path, one.start) not in left_out]
    found = (*_arranged(kept, pipeline, ask, budget), *taken_out)
    if (fill := pipeline.find(FillBudget)) is not None:
        return compose_by_document(
            given.types,
            found,
            given.texts,
            budget,
            parts,
            max_tokens=ask.max_tokens,
            left_out=left_out,
            cut_named=fill.cut_named,
        )

    definitions: Definitions = lambda path: code.parse(path).definitions  # noqa: E731
    return compose(
        given.types,
        found,
        given.texts,
        definitions,
        budget,
        parts=parts,
        max_tokens=ask.max_tokens,
        left_out=left_out,
        named_tokens=named_budget(ask, settings),
        terms=(*simple_terms(ask.question), *(term.lower() for term in given.terms)),
        cursor=ask.cursor,
        above=seen_in(ask.seen),
        max_file_tokens=max(1, max_file_bytes(settings) // 4),
    )


def _arranged(found: Sequence[Snippet], pipeline: GatherPipeline, ask: Ask, budget: int) -> Sequence[Snippet]:
    """Apply the pipeline's stages between search and budget to the snippets, in the order of its table."""
    keywords = simple_terms(ask.question)
    for stage in pipeline.stages:
        match stage:
            case AppendCommonFiles(share=share) if share < 1:
                found = common_within(found, int(share * budget))
            case JoinPlaces():
                found = joined(found)
            case DemoteRepeats():
                found = demote_repeats(found)
            case ScoreDensity():
                found = score_density(found, keywords)
            case TakeStructures(until_next=until_next, indented=indented):
                found = take_structures(found, keywords, until_next=until_next, indented=indented)
            case _:
                pass
    return found


def max_file_bytes(settings: GatheringSettings) -> int:
    """Return the size limit in bytes of a file that the user did not name (R-216)."""
    return int(settings.max_file_size_mb * 1_000_000)


def budget_of(ask: Ask, settings: GatheringSettings) -> int:
    """Return the question's budget in tokens of code (R-244)."""
    if ask.budget is not None:
        return ask.budget
    window = settings.window or ask.window
    return budget_in_window(token_budget(ask.model, settings.budgets, window), window)


def named_budget(ask: Ask, settings: GatheringSettings) -> int:
    """Return the maximum budget for files that the user named, 0 = no increase.

    A chat knows the free room in its context window (`max_tokens`), and named files may use all of it. A budget that
    the user has configured applies to named files too.
    """
    if ask.budget is not None or settings.budgets:
        return 0
    return budget_in_window(ask.max_tokens, settings.window or ask.window)


def not_sent(composed: Composed | None, large: Mapping[str, tuple[int, int]]) -> list[str]:
    """Return a sentence for each named or pinned file that is not sent, or is sent only in part because it is large.

    `large`: path → bytes and lines of named files that exceed the size limit for other files (R-216).
    """
    selection = composed.selection if composed is not None else Selection()
    missing = [
        f"{one.snippet.path} was not sent: {one.why}."
        for one in selection.dropped
        if one.snippet.source in ("mention", "pinned")
    ]
    sent = by_path([one for one in selection.snippets if one.path in large])
    return missing + [_sent_of(path, *large[path], pieces) for path, pieces in sent.items()]


def _sent_of(path: str, size: int, lines: int, pieces: Sequence[Snippet]) -> str:
    count = sum(map(len, lines_of(pieces).values()))
    places = ", ".join(f"{one.start}-{one.end}" for one in sorted(pieces, key=lambda one: one.start)[:_MAX_PLACES])
    more = ", …" if len(pieces) > _MAX_PLACES else ""
    first = "the first " if size > MAX_READ_BYTES else ""
    return f"Sent {count:,} of {first}{lines:,} lines of {path} ({size / 1_000_000:,.1f} MB): {places}{more}."
