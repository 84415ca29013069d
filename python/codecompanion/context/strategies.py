"""The registry of strategies: the word used in a policy table → its parameters and its function (pipeline.md 5.4).

Policies name strategies; no strategy names a policy.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Literal

import msgspec

from codecompanion.context.artifact.summarize_artifact import SummarizeArtifact, summarize_artifact
from codecompanion.context.editing.clear_tool_results import ClearToolResults, clear_tool_results
from codecompanion.context.editing.clear_when_it_pays import ClearWhenItPays, clear_when_it_pays, explain_results
from codecompanion.context.editing.fit_tool_results import FitToolResults, fit_tool_results
from codecompanion.context.editing.replace_attachments import ReplaceAttachments, replace_attachments
from codecompanion.context.editing.savings import RequireSavings, RequireTarget, require_savings, require_target
from codecompanion.context.editing.trimming import (
    PruneToolErrors,
    RequireRoom,
    StripToolArgs,
    TrimToFit,
    prune_tool_errors,
    require_room,
    strip_tool_args,
    trim_to_fit,
)
from codecompanion.context.editing.truncate_tool_results import TruncateToolResults, truncate_tool_results
from codecompanion.context.grounding.verify_summary import VerifySummary, verify_summary
from codecompanion.context.ledger.append_ledger import AppendLedger, append_ledger
from codecompanion.context.selection.rolling_chat_window import RollingChatWindow, rolling_chat_window
from codecompanion.context.selection.select_window import SelectWindow, select_window
from codecompanion.context.shaping.context_packet import ContextPacket
from codecompanion.context.shaping.prompt_shape import ShapeFragments, ShapeSchemas
from codecompanion.context.summary.fit_summary import FitSummary, fit_summary
from codecompanion.context.summary.insert_summary import InsertSummary, insert_summary
from codecompanion.context.summary.summarize_chunked import SummarizeChunked, summarize_chunked
from codecompanion.context.summary.summarize_flush import SummarizeFlush, summarize_flush
from codecompanion.context.summary.summarize_one import SummarizeLedger, SummarizeOne, summarize_ledger, summarize_one
from codecompanion.context.summary.summarize_raw import SummarizeRaw, summarize_raw
from codecompanion.context.summary_text.quote_user_messages import QuoteUserMessages, quote_user_messages
from codecompanion.context.transcript.describe_plain import DescribePlain, describe_plain
from codecompanion.context.transcript.format_transcript import FormatTranscript, format_transcript
from codecompanion.context.work import Env, Messages, Outcome, Steps, Work

Product = Literal["", "change", "selection", "transcript", "summary", "inserted", "note"]


class Strategy(msgspec.Struct, frozen=True):
    """One entry: the pipeline.md number, the parameter struct, the function.

    `needs`, `makes`: what it works on and what it leaves for the steps after it, "" = nothing; a `selection` is a
    `change`, too, and a `note` is for the memory. `asks_model`: it may need a model for its summary. `explain` tells of
    messages, by id, why they were cleared or are kept.
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
        """Return whether it writes the summary that stands for what was removed."""
        return self.makes == "summary"


STRATEGIES: dict[str, Strategy] = {
    "clear_tool_results": Strategy("S2", ClearToolResults, clear_tool_results, makes="change"),
    "strip_tool_args": Strategy("S3", StripToolArgs, strip_tool_args, makes="change"),
    "truncate_tool_results": Strategy("S4", TruncateToolResults, truncate_tool_results, makes="change"),
    "fit_tool_results": Strategy("R-524", FitToolResults, fit_tool_results, makes="change"),
    "replace_attachments": Strategy("S5", ReplaceAttachments, replace_attachments, needs="selection"),
    "select_window": Strategy("S6", SelectWindow, select_window, makes="selection"),
    "format_transcript": Strategy("S7", FormatTranscript, format_transcript, needs="selection", makes="transcript"),
    "summarize_one": Strategy("S8", SummarizeOne, summarize_one, needs="transcript", makes="summary", asks_model=True),
    "summarize_artifact": Strategy("S10", SummarizeArtifact, summarize_artifact, needs="selection", makes="summary"),
    "summarize_chunked": Strategy(
        "S9", SummarizeChunked, summarize_chunked, needs="selection", makes="summary", asks_model=True
    ),
    "describe_plain": Strategy("S11", DescribePlain, describe_plain, needs="selection", makes="summary"),
    "summarize_ledger": Strategy("S12", SummarizeLedger, summarize_ledger, needs="selection", makes="summary"),
    "summarize_raw": Strategy("S12", SummarizeRaw, summarize_raw, needs="transcript", makes="summary"),
    "fit_summary": Strategy("S13", FitSummary, fit_summary, needs="inserted"),
    "insert_summary": Strategy("S14", InsertSummary, insert_summary, needs="summary", makes="inserted"),
    "trim_to_fit": Strategy("S15", TrimToFit, trim_to_fit, makes="selection"),
    "require_room": Strategy("R-115", RequireRoom, require_room),
    "prune_tool_errors": Strategy("S17", PruneToolErrors, prune_tool_errors, makes="change"),
    "rolling_chat_window": Strategy("S18", RollingChatWindow, rolling_chat_window, makes="selection"),
    "quote_user_messages": Strategy("R-431", QuoteUserMessages, quote_user_messages, needs="summary"),
    "verify_summary": Strategy("lesson 11", VerifySummary, verify_summary, needs="summary"),
    "clear_when_it_pays": Strategy(
        "lesson 22", ClearWhenItPays, clear_when_it_pays, makes="change", explain=explain_results
    ),
    "append_ledger": Strategy("lesson 21", AppendLedger, append_ledger, needs="summary"),
    "summarize_flush": Strategy("R-446", SummarizeFlush, summarize_flush, makes="note", asks_model=True),
    "require_savings": Strategy("R-524", RequireSavings, require_savings, needs="change"),
    "require_target": Strategy("R-524", RequireTarget, require_target, needs="change"),
}
"""S1 is `budget`, S16 is `repair`: every policy has them, in the pipeline itself."""

SHAPERS: dict[str, type[msgspec.Struct]] = {
    "shape_fragments": ShapeFragments,
    "shape_schemas": ShapeSchemas,
    "context_packet": ContextPacket,
}
"""What a `[[shape]]` step may use besides strategies: the word → its parameters (S19…S21)."""
