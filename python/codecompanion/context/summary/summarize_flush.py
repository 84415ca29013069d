"""`summarize_flush`: writes a note to the memory while all messages are still in the view (R-446).

Its stage triggers when little room is left. It does not change the view; the summary is passed to the effects. The next
flush waits until time has passed and new messages have arrived.
"""

from __future__ import annotations

import msgspec

from codecompanion.context.strategy_parameters import FormatTranscript, SummarizeFlush, SummarizeOne
from codecompanion.context.summary.spare_model import earlier_failure
from codecompanion.context.summary.summarize_one import summarize_one
from codecompanion.context.transcript.format_transcript import format_transcript
from codecompanion.context.work import Env, Outcome, Skipped, Steps, Work
from codecompanion.model.messages import STARTING_TAGS, Message, is_system_prompt


def summarize_flush(work: Work, params: SummarizeFlush, env: Env) -> Steps:
    """Return the work with a short summary of its newest messages; the messages stay unchanged."""
    chosen = _select(work, params, env)
    if not isinstance(chosen, Work):
        return chosen
    read = format_transcript(chosen, FormatTranscript(max_entry_chars=params.max_entry_chars), env)
    if not isinstance(read, Work):
        return read
    summary = SummarizeOne(schema="flush", max_tokens=params.max_tokens, max_wait_s=params.max_wait_s)
    written = yield from summarize_one(read, summary, env)
    if isinstance(written, Work) and written.details.summary_source == "summarize_ledger":
        return Skipped("slow_writer", written.details.failure or "")
    return written


def _select(work: Work, params: SummarizeFlush, env: Env) -> Outcome:
    """Return the work with the messages to summarise, or `Skipped` if no flush is due."""
    last = env.last_flush
    if last.is_off:
        return Skipped("memory_off", "the memory is switched off")
    if env.window < params.spares_below:
        return Skipped("small_window", "the window is too small for a separate memory summary")
    if known := earlier_failure(env, asks_unusable=params.asks_unusable):
        return Skipped("unusable_writer", known.reason)
    said = [message for message in work.messages if not is_system_prompt(message) and message.tag not in STARTING_TAGS]
    if len(said) < params.min_messages:
        return Skipped("not_enough_messages", f"not enough messages to remember (minimum {params.min_messages})")
    if last.at and env.now - last.at < params.cooldown_s:
        return Skipped("flushed_recently", "the memory was just written")
    tokens = env.measure(work.messages).tokens
    # After a compaction the request may be smaller than at the last flush; then all of it counts as new.
    fresh = tokens - last.tokens if tokens >= last.tokens else tokens
    if fresh < params.min_new_tokens:
        return Skipped("nothing_new", "there is nothing new to remember")
    return msgspec.structs.replace(work, removed=_newest(said, params))


def _newest(said: list[Message], params: SummarizeFlush) -> tuple[Message, ...]:
    """Return the newest messages that fit; the last message always does."""
    room, first = params.max_chars, len(said) - 1
    for index in range(len(said) - 1, -1, -1):
        room -= min(len(said[index].text), params.max_entry_chars)
        if room < 0:
            break
        first = index
    return tuple(said[first:])
