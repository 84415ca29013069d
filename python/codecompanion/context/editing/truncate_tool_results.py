"""S4 `truncate_tool_results`: truncates results that are too large on their own, even the newest (R-412…R-415).

A JSON result stays readable: a list keeps its first items, an object the head of its `content`; any other text keeps
its head. Sizes are in tokens of `CHARS_PER_TOKEN` characters, as the rule defines them, so the truncation does not
depend on the token counter.
"""

from __future__ import annotations

import json
from typing import Any

import msgspec

from codecompanion.context.strategy_parameters import TruncateToolResults
from codecompanion.context.work import Env, Outcome, Skipped, Work
from codecompanion.formats.cutting import cut_with_note
from codecompanion.formats.outside_text import NOT_READABLE
from codecompanion.model.messages import Message, is_protected, is_question_context, replaced_text, with_changes
from codecompanion.placeholders import CONTENT_TRUNCATED

CHARS_PER_TOKEN = 4
_CUT_RESERVE_CHARS = 100
_DOCUMENT_RESERVE_TOKENS = 1500
_DOCUMENT_MIN_TOKENS = 4000
_DOCUMENT_KINDS = ("docx", "pdf", "pptx")
_DOCUMENT_KEYS = ("format", "type", "mime", "path", "file_path", "filename", "file")


def truncate_tool_results(work: Work, params: TruncateToolResults, env: Env) -> Outcome:
    """Return the work with every result within its limit; a second run changes nothing.

    `details.tools_truncated`: the number of truncated results, and the request's tokens before and after (R-411).
    """
    messages = list(work.messages)
    cut: list[Message] = []
    for index, message in enumerate(work.messages):
        if (message.role != "tool" and not is_question_context(message)) or is_protected(message):
            continue
        text = shorten_result(message.text, params)
        if text != message.text:
            messages[index] = _with_text(message, text, env)
            cut.append(message)
    if not cut:
        return Skipped("nothing_to_truncate", "no tool result is larger than its limit")
    before, after = env.measure(work.messages).tokens, env.measure(tuple(messages)).tokens
    said = work.with_details(tools_truncated={"count": len(cut), "before": before, "after": after})
    return msgspec.structs.replace(said, messages=tuple(messages), cleared=(*work.cleared, *cut))


def _with_text(message: Message, text: str, env: Env) -> Message:
    """Return the result with its text replaced and its tokens recounted; its images and documents stay."""
    left_out = message.left_out + max(1, len(message.text) - len(text))
    changed = with_changes(message, content=replaced_text(message, text), edited=True, left_out=left_out)
    return env.recounted(changed)


def shorten_result(text: str, params: TruncateToolResults) -> str:
    """Return the text within its limit, truncated according to its type; text that fits is returned as is."""
    limit = params.max_tokens
    if len(text) <= limit * CHARS_PER_TOKEN:
        return text
    value = _parse(text) if params.json_aware else None
    if isinstance(value, list):
        shortened = _first_items(value, params.array_items)
        if len(shortened) <= limit * CHARS_PER_TOKEN:
            return shortened
    if isinstance(value, dict) and isinstance(value.get("content"), str):
        room = limit // 2
        if is_document(value):
            limit = params.document_max
            room = max(_DOCUMENT_MIN_TOKENS, limit - _DOCUMENT_RESERVE_TOKENS)
            if len(text) <= limit * CHARS_PER_TOKEN:
                return text
        shortened = json.dumps({**value, "content": cut_text(value["content"], room)}, ensure_ascii=False)
        if len(shortened) <= limit * CHARS_PER_TOKEN:
            return shortened
    return cut_text(text, limit)


def is_document(value: dict[str, Any]) -> bool:
    """Return whether a JSON result is the text of an office document: one of its fields names the format."""
    return any(str(value.get(key, "")).lower().endswith(_DOCUMENT_KINDS) for key in _DOCUMENT_KEYS)


def cut_text(text: str, max_tokens: int) -> str:
    """Return the head of the text with a truncation note, at most `max_tokens` in total (R-413)."""
    limit = max_tokens * CHARS_PER_TOKEN
    head = cut_with_note(text, limit, max(0, limit - _CUT_RESERVE_CHARS), CONTENT_TRUNCATED)
    return head if len(head) <= limit else text[:limit]


def _parse(text: str) -> Any:
    """Return the text parsed as a JSON list or object, or None for anything else."""
    if text.lstrip()[:1] not in ("[", "{"):
        return None
    try:
        return json.loads(text)
    except NOT_READABLE:
        return None


def _first_items(items: list[Any], count: int) -> str:
    """Return the first items as JSON, with a note on the total number of items."""
    shown = items[:count]
    return json.dumps(shown, ensure_ascii=False) + f"\n\n[... showing {len(shown)} of {len(items)} items ...]"
