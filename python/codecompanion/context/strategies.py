"""Registers the strategies: maps each name in a policy table to its parameters and its function (pipeline.md 5.4).

Policies name strategies; no strategy names a policy. A strategy's module is imported when it first runs: policies are
read in every session, but most strategies are used only in long chats. `tests/unit/context/test_strategies.py` loads
them all.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Literal

import msgspec

from codecompanion.context.strategy_parameters import (
    AppendLedger,
    ClearToolResults,
    ClearWhenItPays,
    ContextPacket,
    DescribePlain,
    FitSummary,
    FitToolResults,
    FormatTranscript,
    InsertSummary,
    PruneToolErrors,
    QuoteUserMessages,
    ReplaceAttachments,
    RequireRoom,
    RequireSavings,
    RequireTarget,
    RollingChatWindow,
    SelectWindow,
    ShapeFragments,
    ShapeSchemas,
    StripToolArgs,
    SummarizeArtifact,
    SummarizeChunked,
    SummarizeFlush,
    SummarizeLedger,
    SummarizeOne,
    SummarizeRaw,
    TrimToFit,
    TruncateToolResults,
    VerifySummary,
)
from codecompanion.context.work import Env, Messages, Outcome, Steps, Work
from codecompanion.formats.deferred import Deferred

Product = Literal["", "change", "selection", "transcript", "summary", "inserted", "note"]


def _deferred(module: str, name: str) -> Deferred:
    return Deferred(f"codecompanion.context.{module}", name)


class Strategy(msgspec.Struct, frozen=True):
    """A registered strategy: its number in pipeline.md, its parameter struct, and its function.

    `needs`, `makes`: its input, and its product for later steps, or "" for none; a `selection` is also a `change`, and
    a `note` is for the memory. `asks_model`: it may need a model for its summary. `explain` returns, by message id, why
    messages were cleared or are kept.
    """

    number: str
    params: type[msgspec.Struct]
    run: Callable[[Work, Any, Env], Outcome | Steps]
    needs: Product = ""
    makes: Product = ""
    asks_model: bool = False
    explain: Callable[[Messages, Any, Env], dict[str, str]] | None = None

    @property
    def summarises(self) -> bool:
        """Return whether the strategy writes the summary of the removed messages."""
        return self.makes == "summary"


STRATEGIES: dict[str, Strategy] = {
    "clear_tool_results": Strategy(
        "S2", ClearToolResults, _deferred("editing.clear_tool_results", "clear_tool_results"), makes="change"
    ),
    "strip_tool_args": Strategy("S3", StripToolArgs, _deferred("editing.trimming", "strip_tool_args"), makes="change"),
    "truncate_tool_results": Strategy(
        "S4", TruncateToolResults, _deferred("editing.truncate_tool_results", "truncate_tool_results"), makes="change"
    ),
    "fit_tool_results": Strategy(
        "R-524", FitToolResults, _deferred("editing.fit_tool_results", "fit_tool_results"), makes="change"
    ),
    "replace_attachments": Strategy(
        "S5", ReplaceAttachments, _deferred("editing.replace_attachments", "replace_attachments"), needs="selection"
    ),
    "select_window": Strategy(
        "S6", SelectWindow, _deferred("selection.select_window", "select_window"), makes="selection"
    ),
    "format_transcript": Strategy(
        "S7",
        FormatTranscript,
        _deferred("transcript.format_transcript", "format_transcript"),
        needs="selection",
        makes="transcript",
    ),
    "summarize_one": Strategy(
        "S8",
        SummarizeOne,
        _deferred("summary.summarize_one", "summarize_one"),
        needs="transcript",
        makes="summary",
        asks_model=True,
    ),
    "summarize_artifact": Strategy(
        "S10",
        SummarizeArtifact,
        _deferred("artifact.summarize_artifact", "summarize_artifact"),
        needs="selection",
        makes="summary",
    ),
    "summarize_chunked": Strategy(
        "S9",
        SummarizeChunked,
        _deferred("summary.summarize_chunked", "summarize_chunked"),
        needs="selection",
        makes="summary",
        asks_model=True,
    ),
    "describe_plain": Strategy(
        "S11",
        DescribePlain,
        _deferred("transcript.describe_plain", "describe_plain"),
        needs="selection",
        makes="summary",
    ),
    "summarize_ledger": Strategy(
        "S12",
        SummarizeLedger,
        _deferred("summary.summarize_one", "summarize_ledger"),
        needs="selection",
        makes="summary",
    ),
    "summarize_raw": Strategy(
        "S12", SummarizeRaw, _deferred("summary.summarize_raw", "summarize_raw"), needs="selection", makes="summary"
    ),
    "fit_summary": Strategy("S13", FitSummary, _deferred("summary.fit_summary", "fit_summary"), needs="inserted"),
    "insert_summary": Strategy(
        "S14", InsertSummary, _deferred("summary.insert_summary", "insert_summary"), needs="summary", makes="inserted"
    ),
    "trim_to_fit": Strategy("S15", TrimToFit, _deferred("editing.trimming", "trim_to_fit"), makes="selection"),
    "require_room": Strategy("R-115", RequireRoom, _deferred("editing.trimming", "require_room")),
    "prune_tool_errors": Strategy(
        "S17", PruneToolErrors, _deferred("editing.trimming", "prune_tool_errors"), makes="change"
    ),
    "rolling_chat_window": Strategy(
        "S18", RollingChatWindow, _deferred("selection.rolling_chat_window", "rolling_chat_window"), makes="selection"
    ),
    "quote_user_messages": Strategy(
        "R-431",
        QuoteUserMessages,
        _deferred("summary_text.quote_user_messages", "quote_user_messages"),
        needs="summary",
    ),
    "verify_summary": Strategy(
        "lesson 11", VerifySummary, _deferred("grounding.verify_summary", "verify_summary"), needs="summary"
    ),
    "clear_when_it_pays": Strategy(
        "lesson 22",
        ClearWhenItPays,
        _deferred("editing.clear_when_it_pays", "clear_when_it_pays"),
        makes="change",
        explain=_deferred("editing.clear_when_it_pays", "explain_results"),
    ),
    "append_ledger": Strategy(
        "lesson 21", AppendLedger, _deferred("ledger.append_ledger", "append_ledger"), needs="summary"
    ),
    "summarize_flush": Strategy(
        "R-446", SummarizeFlush, _deferred("summary.summarize_flush", "summarize_flush"), makes="note", asks_model=True
    ),
    "require_savings": Strategy(
        "R-524", RequireSavings, _deferred("editing.savings", "require_savings"), needs="change"
    ),
    "require_target": Strategy("R-524", RequireTarget, _deferred("editing.savings", "require_target"), needs="change"),
}
"""The strategies by their name in policy tables; S1 `budget` and S16 `repair` are missing, because the pipeline runs
both under every policy.
"""

SHAPERS: dict[str, type[msgspec.Struct]] = {
    "shape_fragments": ShapeFragments,
    "shape_schemas": ShapeSchemas,
    "context_packet": ContextPacket,
}
"""Names that a `[[shape]]` step accepts besides strategies, with their parameters (S19…S21)."""
