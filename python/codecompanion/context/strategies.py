"""The registry of strategies: the word used in a policy table → its parameters and its function (pipeline.md 5.4).

Policies name strategies; no strategy names a policy.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

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
from codecompanion.context.grounding.quote_user_messages import QuoteUserMessages, quote_user_messages
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
from codecompanion.context.transcript.describe_plain import DescribePlain, describe_plain
from codecompanion.context.transcript.format_transcript import FormatTranscript, format_transcript
from codecompanion.context.transcript.summarize_raw import SummarizeRaw, summarize_raw
from codecompanion.context.work import Env, Messages, Outcome, Steps, Work


class Strategy(msgspec.Struct, frozen=True):
    """One entry: the pipeline.md number, the parameter struct, the function.

    `summarises`: it writes the summary that stands for what was removed; `asks_model`: it may need a model for that.
    `explain` tells of messages, by id, why they were cleared or are kept.
    """

    number: str
    params: type[msgspec.Struct]
    run: Callable[[Work, Any, Env], Outcome | Steps]
    summarises: bool = False
    asks_model: bool = False
    explain: Callable[[Messages, Any, Env], dict[str, str]] | None = None


STRATEGIES: dict[str, Strategy] = {
    "clear_tool_results": Strategy("S2", ClearToolResults, clear_tool_results),
    "strip_tool_args": Strategy("S3", StripToolArgs, strip_tool_args),
    "truncate_tool_results": Strategy("S4", TruncateToolResults, truncate_tool_results),
    "fit_tool_results": Strategy("R-524", FitToolResults, fit_tool_results),
    "replace_attachments": Strategy("S5", ReplaceAttachments, replace_attachments),
    "select_window": Strategy("S6", SelectWindow, select_window),
    "format_transcript": Strategy("S7", FormatTranscript, format_transcript),
    "summarize_one": Strategy("S8", SummarizeOne, summarize_one, summarises=True, asks_model=True),
    "summarize_artifact": Strategy("S10", SummarizeArtifact, summarize_artifact, summarises=True),
    "summarize_chunked": Strategy("S9", SummarizeChunked, summarize_chunked, summarises=True, asks_model=True),
    "describe_plain": Strategy("S11", DescribePlain, describe_plain, summarises=True),
    "summarize_ledger": Strategy("S12", SummarizeLedger, summarize_ledger, summarises=True),
    "summarize_raw": Strategy("S12", SummarizeRaw, summarize_raw, summarises=True),
    "fit_summary": Strategy("S13", FitSummary, fit_summary),
    "insert_summary": Strategy("S14", InsertSummary, insert_summary),
    "trim_to_fit": Strategy("S15", TrimToFit, trim_to_fit),
    "require_room": Strategy("R-115", RequireRoom, require_room),
    "prune_tool_errors": Strategy("S17", PruneToolErrors, prune_tool_errors),
    "rolling_chat_window": Strategy("S18", RollingChatWindow, rolling_chat_window),
    "quote_user_messages": Strategy("R-431", QuoteUserMessages, quote_user_messages),
    "verify_summary": Strategy("lesson 11", VerifySummary, verify_summary),
    "clear_when_it_pays": Strategy("lesson 22", ClearWhenItPays, clear_when_it_pays, explain=explain_results),
    "append_ledger": Strategy("lesson 21", AppendLedger, append_ledger),
    "summarize_flush": Strategy("R-446", SummarizeFlush, summarize_flush, asks_model=True),
    "require_savings": Strategy("R-524", RequireSavings, require_savings),
    "require_target": Strategy("R-524", RequireTarget, require_target),
}
"""S1 is `budget`, S16 is `repair`: every policy has them, in the pipeline itself."""

SHAPERS: dict[str, type[msgspec.Struct]] = {
    "shape_fragments": ShapeFragments,
    "shape_schemas": ShapeSchemas,
    "context_packet": ContextPacket,
}
"""What a `[[shape]]` step may use besides strategies: the word → its parameters (S19…S21)."""
