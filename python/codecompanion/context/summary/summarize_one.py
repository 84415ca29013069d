"""S8 `summarize_one`: summarises in one model call, or in chunks if one does not fit (R-525, R-526, lesson 1).

In S12 `summarize_ledger`, code writes the summary from the log; this needs no call and cannot fail like one. S8 is a
generator that yields requests and receives replies, so it needs no network and can be tested with a table of strings.
Parts of a long history may be requested in parallel; summarising parts of parts is bounded (R-120).
"""

from __future__ import annotations

import math
from collections.abc import Generator

import msgspec

from codecompanion import prompts
from codecompanion.context.ledger.ledger import summarise
from codecompanion.context.strategy_parameters import SchemaName, SummarizeLedger, SummarizeOne
from codecompanion.context.summary.fit_summary import level
from codecompanion.context.summary.in_place import in_place
from codecompanion.context.summary.judge_reply import inside_form
from codecompanion.context.summary.spare_model import NOT_WORTH_IT, earlier_failure
from codecompanion.context.summary.summary_run import Question, SummaryRun, Texts
from codecompanion.context.transcript.chunk_entries import chunk_entries, fit_entry
from codecompanion.context.transcript.format_transcript import escape
from codecompanion.context.transcript.size import roughly
from codecompanion.context.work import Env, Failed, Outcome, Skipped, Steps, SummaryReply, SummaryRequest, Work
from codecompanion.model.messages import is_system_prompt

_SMALL_WINDOW = 16_000
"""Window size in tokens below which whole user messages soon no longer fit, so that their short facts take precedence
(measured: 13 of 24 survived at 2,048). In larger windows, quotes have 2,000 tokens and more.
"""
_SAFETY = 0.9
_EASILY = 0.7
"""Share of the room up to which a rough token count of a transcript is trusted; above it, every entry is counted."""
_SMALLEST_BUDGET = 200
_MAX_FOR_QUOTES = 16_000
# How many summaries of parts must fit into one request, so that merging comes to an end.
_PARTS_AT_ONCE = 3
_DEEPEST = 5


def summarize_one(work: Work, params: SummarizeOne, env: Env) -> Steps:
    """Return the work with `summary`; `Failed`, without any change, if there was no usable text.

    `details` records the budget, and the number of instructions to a model that were removed from the text (R-433).
    """
    if not work.transcript:
        return Skipped("nothing_to_summarise", "nothing to summarise yet")
    if known := earlier_failure(env, asks_unusable=params.asks_unusable):
        return by_code(work, known, env, params.schema)
    budget = summary_budget(work, params, env)
    run = _Run(work, params, env, budget)
    text = yield from run.reduce(work.transcript)
    if isinstance(text, Failed):
        return by_code(work, text, env, params.schema) if run.falls_back else text
    text, said = run.done(text)
    said = said.with_details(summary_budget_tokens=budget)
    if run.source == "model" and run.schema.section:
        text = inside_form(text, run.schema)
    # A summary longer than half of its history is not a summary, and leaves no room for the user's own words.
    most = min(run.output, max(_SMALLEST_BUDGET, run.count(work.transcript) // 2))
    if run.source == "model" and env.count_text(text) > most:
        said = said.with_details(summary_shortened_from_tokens=env.count_text(text))
        text = level(text, most, env)
    return msgspec.structs.replace(said, summary=text)


def summary_budget(work: Work, params: SummarizeOne, env: Env) -> int:
    """Return the token budget of the summary (R-427, R-428)."""
    budget, room = params.max_tokens, env.window - params.available_reserve
    if params.share_of_slack:
        slack = room - env.measure((*work.messages, *work.pending)).tokens
        budget = min(budget, max(params.min_tokens, math.floor(params.share_of_slack * slack)))
    if params.share_of_available:
        prompt = tuple(message for message in work.before if is_system_prompt(message))
        budget = min(budget, math.floor(params.share_of_available * (room - env.measure(prompt).tokens)))
    return max(1, params.min_tokens, budget)


def by_code(work: Work, failed: Failed, env: Env, schema: SchemaName = "cc_9") -> Outcome:
    """Return the work with a summary written from the log, because a model failed or was not worth asking."""
    made = summarize_ledger(work, SummarizeLedger(schema=schema), env)
    if not isinstance(made, Work) or failed is NOT_WORTH_IT:
        return made
    return made.with_details(summary_source="summarize_ledger", failure=failed.reason)


def summarize_ledger(work: Work, params: SummarizeLedger, env: Env) -> Outcome:
    """Return the work with a summary written from the log by code: the tier that needs no model (lessons 1, 48)."""
    if not work.removed:
        return Skipped("nothing_to_summarise", "nothing to summarise yet")
    budget = min(params.max_tokens, max(_SMALLEST_BUDGET, env.window // 8))
    # Free room goes to the user's words before any of them is shortened; half of it is left for the next steps.
    taken = env.measure((*work.messages, *work.pending)).tokens + budget + env.count_text(work.request)
    own = min(_MAX_FOR_QUOTES, max(0, (env.window - env.reserve - taken) // 2))
    text = summarise(
        work.removed, budget, env.count_text, params.schema, env.key_of, for_quotes=own,
        facts_first=env.window < _SMALL_WINDOW,
    )  # fmt: skip
    if not text:
        return Failed("the summary is empty")
    tokens = env.count_text(text)
    said = work.with_details(
        schema=params.schema, summary_budget_tokens=budget, ledger_tokens=tokens, written_by="code"
    )
    return msgspec.structs.replace(said, summary=text)


_Reduction = Generator[SummaryRequest, SummaryReply, "str | Failed"]


class _Run(SummaryRun):
    """One run of S8, and the sizes into which a request must fit."""

    def __init__(self, work: Work, params: SummarizeOne, env: Env, budget: int) -> None:
        super().__init__(
            work, env, params.schema, budget, 1 / 4, spares_below=params.spares_below, max_wait_s=params.max_wait_s
        )
        self._env = env if params.in_place else None
        self._estimate, self._sizes = env.count_text, dict[int, tuple[tuple[str, ...], int]]()
        taken = self.count_text(self.prompt) + self.count_text(prompts.load("summary_again"))
        self.available = int((self.window - self.output) * _SAFETY / self.ratio) - taken

    def reduce(self, entries: tuple[str, ...], depth: int = 0) -> _Reduction:
        """Summarise the entries: in one request if they fit, otherwise chunk by chunk, and then the parts together."""
        if self.available < _SMALLEST_BUDGET:
            return self.too_small
        if self.count(entries) <= self.available:
            return (yield from self.write_whole(entries))
        if depth >= _DEEPEST:
            return Failed("summarising the history in parts does not make it smaller")
        room = self.available - self.count_text(prompts.load("summary_part"))
        chunks = chunk_entries(entries, room, self.count_text)
        if len(chunks) == 1:
            return (yield from self.write_whole(chunks[0]))
        parts = yield from self.write_parts(chunks, max(1, min(self.output, room // _PARTS_AT_ONCE)))
        if isinstance(parts, Failed):
            return parts
        return (yield from self.reduce(parts, depth + 1))

    def write_whole(self, entries: tuple[str, ...]) -> _Reduction:
        """Request the summary of entries that fit into one request."""
        (question,) = self.about([(self.work.removed, entries)], self.output)
        texts = yield from self.ask([self._in_place(question) if entries is self.work.transcript else question])
        return texts if isinstance(texts, Failed) else texts[0]

    def _in_place(self, question: Question) -> Question:
        """Return the question as asked within the chat if that is cheaper, or else unchanged."""
        if self._env is None:
            return question
        asked = in_place(question.request, self.order, self.work, self._env)
        if asked is None:
            return question
        return msgspec.structs.replace(question, request=asked, otherwise=question.request)

    def write_parts(self, chunks: tuple[tuple[str, ...], ...], output: int) -> Texts:
        """Summarise each chunk in at most `output` tokens; longer summaries are shortened."""
        texts = yield from self.ask(self.about([(self.work.removed, chunk) for chunk in chunks], output))
        if isinstance(texts, Failed):
            return texts
        parts = [
            f'<message role="summary of part {number}">{escape(text)}</message>' for number, text in enumerate(texts, 1)
        ]
        return tuple(fit_entry(part, output, self.count_text)[0] for part in parts)

    def count(self, entries: tuple[str, ...]) -> int:
        """Return the estimated token count of the entries, only roughly if they easily fit."""
        if id(entries) not in self._sizes:
            rough = roughly(entries, self._estimate)
            is_enough = 0 < rough <= _EASILY * self.available
            if rough and entries is self.work.transcript:
                known = zip(entries, self.work.entry_sizes, strict=False)
                self.counts.update((entry, size) for entry, size in known if size)
            # Keyed by identity: hashing 10 MB would delay other chats.
            self._sizes[id(entries)] = entries, rough if is_enough else super().count(entries)
        return self._sizes[id(entries)][1]
