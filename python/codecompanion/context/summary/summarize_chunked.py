"""S9 `summarize_chunked`: writes a summary chunk by chunk and merges the parts (R-120, R-121…R-127, R-130).

It is a generator like S8 that yields requests and receives replies. A chunk without a usable summary ends the run
(`Failed`: the policy's next tier runs); if the merge has no usable summary, the parts are joined instead. S6 decides
which messages are kept, S14 where the summary is inserted.
"""

from __future__ import annotations

import math
from collections.abc import Generator, Sequence

import msgspec

from codecompanion import prompts
from codecompanion.context.strategy_parameters import SummarizeChunked
from codecompanion.context.summary.spare_model import earlier_failure
from codecompanion.context.summary.summarize_one import by_code
from codecompanion.context.summary.summary_run import SummaryRun, Texts
from codecompanion.context.transcript.chunk_entries import chunk_entries, chunk_greedily
from codecompanion.context.transcript.chunk_plan import chunk_tokens, is_oversized
from codecompanion.context.transcript.format_transcript import format_labelled, wrap
from codecompanion.context.work import Env, Failed, Messages, Skipped, Steps, SummaryReply, SummaryRequest, Work
from codecompanion.model.messages import Message
from codecompanion.placeholders import OMITTED_MESSAGE

_SEPARATOR = "\n\n---\n\n"
_SMALLEST_ROOM = 64


def summarize_chunked(work: Work, params: SummarizeChunked, env: Env) -> Steps:
    """Return the work with `summary`; `Failed` if a chunk could not be summarised.

    Messages that are too large to summarise are listed after the summary (R-125). `details` records the numbers of
    planned calls and of omitted messages.
    """
    if not work.removed:
        return Skipped("nothing_to_summarise", "nothing to summarise yet")
    if known := earlier_failure(env, asks_unusable=params.asks_unusable):
        return by_code(work, known, env)
    run = _Run(work, params, env)
    chunks, notes = run.plan(work.removed)
    parts = yield from run.summarise_parts(chunks)
    if isinstance(parts, Failed):
        return by_code(work, parts, env) if run.falls_back else parts
    text, said = run.done((yield from run.merge(parts)))
    summary = "\n\n".join(block for block in (text, "\n".join(notes)) if block)
    return msgspec.structs.replace(said.with_details(chunks=len(chunks), omitted_messages=len(notes)), summary=summary)


_Chunk = tuple[Messages, tuple[str, ...]]


class _Run(SummaryRun):
    """One run of S9, and the windows into which it has to fit."""

    def __init__(self, work: Work, params: SummarizeChunked, env: Env) -> None:
        super().__init__(
            work,
            env,
            params.schema,
            params.max_tokens,
            1 / 8,
            spares_below=params.spares_below,
            max_wait_s=params.max_wait_s,
        )
        self.params, self.env = params, env
        notes = f"{prompts.load('summary_part')}\n\n{prompts.load('summary_again')}"
        self.room = self.free_tokens(f"{self.prompt}\n\n{notes}\n\n{wrap(())}")

    def free_tokens(self, prompt: str) -> int:
        """Return how many tokens, by our count, fit into the summariser's window besides the prompt and the reply."""
        return math.floor((self.window - self.output) / self.ratio) - self.count_text(prompt)

    def plan(self, messages: Messages) -> tuple[list[_Chunk], list[str]]:
        """Return the chunks to ask about, and the notes on messages that are left out.

        The average that determines the size of a chunk covers all messages (R-122).
        """
        formula, window = self.params.chunk, self.env.window
        average = sum(map(self.size, messages)) / len(messages)
        limit = chunk_tokens(average, window, self.window, formula, self.ratio)
        chunks: list[_Chunk] = []
        notes: list[str] = []
        for chunk in chunk_greedily(((message, self.size(message)) for message in messages), limit):
            oversized = [is_oversized(self.size(message), window, formula) for message in chunk]
            notes += [self.note(message) for message, left_out in zip(chunk, oversized, strict=True) if left_out]
            fitting = tuple(message for message, left_out in zip(chunk, oversized, strict=True) if not left_out)
            entries = tuple(format_labelled(message, self.params.max_message_chars) for message in fitting)
            # The wrappers of many small messages can be larger than the messages, but the text as sent must fit.
            start = 0
            for part in chunk_entries(entries, max(_SMALLEST_ROOM, self.room), self.count_text):
                chunks.append((fitting[start : start + len(part)], part))
                start += len(part)
        return chunks, notes

    def size(self, message: Message) -> int:
        """Return the token count of the message."""
        return self.env.size((message,))

    def note(self, message: Message) -> str:
        """Return the note that replaces a message too large to be summarised (R-125)."""
        thousands = math.floor(self.size(message) / 1000 + 0.5)
        return OMITTED_MESSAGE.format(role=message.role, thousands=thousands)

    def summarise_parts(self, chunks: list[_Chunk]) -> Texts:
        """Ask for the summaries of all chunks; they may be written in parallel (R-120)."""
        if chunks and self.room < _SMALLEST_ROOM:
            return self.too_small
        return (yield from self.ask(self.about(chunks, self.output)))

    def merge(self, parts: Sequence[str]) -> Generator[SummaryRequest, SummaryReply, str]:
        """Return the parts as one summary (R-130): merged by the model if there are several, joined if that fails."""
        joined = _SEPARATOR.join(parts)
        if len(parts) < 2:
            return joined
        blocks = "\n\n".join(f"[Part {number}]:\n{part}" for number, part in enumerate(parts, 1))
        prompt = f"{self.prompt}\n\n{prompts.load('summary_merge')}\n\n{blocks}"
        if self.free_tokens(prompt) < 0:
            return joined
        question = self.question(prompt, self.count_text(prompt), self.work.removed, self.output)
        texts = yield from self.ask([question])
        return joined if isinstance(texts, Failed) else texts[0]
