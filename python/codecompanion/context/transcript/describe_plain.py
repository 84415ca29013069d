"""S11 `describe_plain`: describes the outline of a conversation by code (R-134, R-135).

It is the last tier, asks no model and cannot fail. The content of an earlier summary is appended, because it exists
nowhere else. Later steps add the user's own words and the ledger, and carry over those of an earlier summary.
"""

from __future__ import annotations

import msgspec

from codecompanion.context.strategy_parameters import DescribePlain
from codecompanion.context.summary_text.recall_keys import without_span
from codecompanion.context.summary_text.strip_additions import as_written
from codecompanion.context.work import Env, Messages, Outcome, Skipped, Work
from codecompanion.formats.cutting import cut_line, cut_middle
from codecompanion.model.messages import LOOKING_TAG, SUMMARY_TAG, is_question_context, is_typed_by_user
from codecompanion.summary_frame import bare_summary

_HEADER = "[Conversation context — {count} earlier messages removed to fit context window]"
_FILES = "Code was shown from: "
_TOPICS = "Topics discussed:"
_EARLIER = "\n\nEarlier summary:\n"
_BEFORE = "Topics before that:"


def describe_plain(work: Work, params: DescribePlain, env: Env) -> Outcome:
    """Return the work with a description of the removed messages as its summary."""
    described = tuple(message for message in work.removed if message.tag != SUMMARY_TAG)
    if not described:
        return Skipped("nothing_to_compact", "nothing to compact: there are no older messages")
    roles = [message.role for message in described if not is_question_context(message) and message.tag != LOOKING_TAG]
    lines = [
        _HEADER.format(count=len(work.removed)),
        f"User messages: {roles.count('user')}, Assistant responses: {roles.count('assistant')},"
        f" Tool calls: {roles.count('tool')}",
    ]
    files = dict.fromkeys(piece.path for message in described for piece in message.gathered if piece.path)
    if files:
        lines.append(_FILES + cut_line(", ".join(files), params.files_chars))
    topics = _topics(described, params)
    if topics:
        lines += [_TOPICS, *(f"- {topic}" for topic in topics)]
    return msgspec.structs.replace(work, summary="\n".join(lines) + _earlier(work.removed, params.earlier_chars))


def _topics(messages: Messages, params: DescribePlain) -> list[str]:
    """Return the first line of each message the user typed, for up to `topics` messages."""
    typed = [message.text.strip() for message in messages if is_typed_by_user(message)]
    firsts = [text.partition("\n")[0].strip() for text in typed if text]
    cut = params.topic_chars - 3
    return [f"{topic[:cut]}..." if len(topic) > params.topic_chars else topic for topic in firsts[: params.topics]]


def _earlier(removed: Messages, max_chars: int) -> str:
    """Return the content of the previous summary without its quotes; a nested description is not repeated."""
    for message in removed:
        if message.tag == SUMMARY_TAG:
            text = as_written(without_span(bare_summary(message.text)))
            kept = cut_middle(_without_counts(text), max_chars)
            return _EARLIER + kept if kept else ""
    return ""


def _without_counts(text: str) -> str:
    """Return the parts of an earlier description to repeat in the next: its summary, then all topics, oldest first.

    Topics are a description's only trace of the user's questions; any other summary stays unchanged.
    """
    if not text.startswith(_HEADER.partition("{")[0]):
        return text
    described, _, summary = text.partition(_EARLIER)
    topics = described.partition(f"{_TOPICS}\n")[2]
    if topics and _BEFORE not in summary:
        topics = f"{_BEFORE}\n{topics}"
    return "\n".join(part for part in (summary, topics) if part)
