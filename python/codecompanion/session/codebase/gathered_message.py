"""Gathered code as a message in the chat, as a log event, and as an event for the editor (R-253, R-268)."""

from __future__ import annotations

from typing import Any

import msgspec

from codecompanion.model.chosen_code import GATHERED_EVENT
from codecompanion.model.gathered import WHOLE_FILES, Dropped, Gathered, Snippet
from codecompanion.model.history import PolicyEvent
from codecompanion.model.mentioned import Reference
from codecompanion.model.messages import GATHERED_TAG, GatheredPiece, Message
from codecompanion.retrieval.snippets_in_view import STILL_ABOVE, STOOD_ABOVE, name_seen
from codecompanion.session.codebase.shown_code import body_of_gathered, size_of_gathered, title_of_gathered
from codecompanion.wire.events import CodeGathered

_MAX_DROPPED = 100
"""Maximum number of dropped snippets in the log."""


def gathered_message(gathered: Gathered, message_id: str) -> Message | None:
    """Return the message with the gathered code, sent before its question, or None without code (R-202)."""
    if not gathered.text.strip():
        return None
    return Message(
        id=message_id,
        role="user",
        tag=GATHERED_TAG,
        content=gathered.text,
        gathered=_pieces(gathered),
        references=_references(gathered),
    )


def _references(gathered: Gathered) -> tuple[Reference, ...]:
    """Return the reference to code still above, if any: its sentence, and its replacement once the code is gone."""
    chosen = gathered.selection
    named = name_seen(chosen.above)
    if not named or not chosen.above_ids or named not in gathered.text:
        return ()
    gone = f"{STOOD_ABOVE}{named.removeprefix(STILL_ABOVE)}"
    return (Reference(chosen.above_ids, named, gone, (len(gone) - len(named)) // 4),)


def _pieces(gathered: Gathered) -> tuple[GatheredPiece, ...]:
    """Return the snippets sent, best first, with the file's line count if truncated, followed by those still above."""
    lines: dict[str, int] = {}
    for whole in gathered.found:
        lines[whole.path] = max(lines.get(whole.path, 0), whole.end)
    shown = (*gathered.selection.snippets, *gathered.beside)
    return (
        *(_piece(one, lines.get(one.path, 0)) for one in shown),
        *(msgspec.structs.replace(_piece(one), is_above=True) for one in gathered.selection.above),
    )


def _piece(snippet: Snippet, lines: int = 0) -> GatheredPiece:
    return GatheredPiece(
        path=snippet.path,
        start=snippet.start,
        end=snippet.end,
        source=snippet.source,
        score=round(snippet.score, 3),
        tokens=snippet.tokens,
        kind=snippet.kind,
        name=snippet.name,
        is_cut=snippet.is_cut,
        of=lines if snippet.is_cut and lines > snippet.end - snippet.start + 1 else 0,
        is_file=snippet.source in WHOLE_FILES and not snippet.is_cut and (snippet.start, snippet.end) == (1, lines),
    )


def gathered_record(gathered: Gathered, message_id: str, turn_id: str) -> PolicyEvent:
    """Return the record for `/trace` (R-268); `message_id` is "" if no code was shown."""
    said, chosen = gathered.classification, gathered.selection
    fields: dict[str, Any] = {
        "message_id": message_id,
        "turn_id": turn_id,
        "duration_ms": gathered.ms,
        "is_codebase_related": said.is_codebase_related,
        "categories": list(said.categories),
        "confidence": said.confidence,
        "classified_by": said.source,
        **({} if said.likelihood is None else {"likelihood": round(said.likelihood, 3)}),
        "type": gathered.types.name,
        "terms": list(gathered.terms),
        "tier": gathered.tier,
        "is_index_partial": gathered.is_index_partial,
        "budget_tokens": chosen.budget_tokens,
        "total_tokens": chosen.total_tokens,
        "found": len(gathered.found),
        "pieces": [msgspec.to_builtins(piece) for piece in _pieces(gathered)],
        "dropped": [_dropped(one) for one in chosen.dropped[:_MAX_DROPPED]],
        "dropped_count": len(chosen.dropped),
        "timed_out": list(gathered.timed_out),
        "failed": dict(gathered.failed),
        "notes": list(gathered.notes),
    }
    return PolicyEvent(name=GATHERED_EVENT, fields=fields)


def _dropped(one: Dropped) -> dict[str, Any]:
    return {**msgspec.to_builtins(_piece(one.snippet)), "why": one.why}


def gathered_event(chat_id: str, message: Message, tokens: int, duration_ms: int) -> CodeGathered:
    """Return the event that tells the editor about a gathered message; `tokens` is the meter's count."""
    return CodeGathered(
        chat=chat_id,
        message_id=message.id,
        title=title_of_gathered(message),
        body=body_of_gathered(message),
        tokens=size_of_gathered(message, tokens),
        duration_ms=duration_ms,
    )
