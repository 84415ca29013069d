"""S8 `summarize_one`: one model call that writes the summary, chunked when it does not fit (R-525, R-526, lesson 1).

S12 `summarize_ledger` writes it from the log by code; it needs no call and cannot fail the way one does. S8 is a
generator: it yields what to ask and receives what came back, so that it needs no network and can be tested with a
table of strings. It ends after a bounded number of calls.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Generator

import msgspec

from codecompanion import prompts
from codecompanion.context.chunking import chunk_entries, fit_entry
from codecompanion.context.ledger import summarise
from codecompanion.context.sections import load_schema, schema_names
from codecompanion.context.transcript import escape, wrap
from codecompanion.context.work import Env, Failed, Outcome, Skipped, Steps, SummaryReply, SummaryRequest, Work
from codecompanion.messages import is_system_prompt, is_typed_by_user
from codecompanion.sanitise import leave_out_orders

_ANALYSIS = re.compile(r"<analysis>.*?</analysis>", re.DOTALL | re.IGNORECASE)
_SUMMARY = re.compile(r"<summary>(.*?)(?:</summary>|\Z)", re.DOTALL | re.IGNORECASE)
_SAFETY = 0.9
_SMALLEST_BUDGET = 200
_INSTRUCTIONS = "The user asks for this in particular:\n\n{instructions}"
# Three summaries of parts must fit into one request, or putting parts together would never end.
_PARTS_AT_ONCE = 3
_DEEPEST = 5


def _check_schema(name: str) -> None:
    if name not in schema_names():
        raise ValueError(f"there is no summary schema {name!r}; expected one of {', '.join(schema_names())}")


class SummarizeOne(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Parameters of S8. `schema` names a table of `prompts/schemas.toml`; `max_tokens` caps the reply (R-526).

    The cap shrinks to `share_of_available` of what the window leaves beside `available_reserve`, system prompt and
    tools, and to `share_of_slack` of what is still free there when the removed messages are gone; 0 = not looked at. It
    never falls below `min_tokens` (R-427, R-428). `max_calls` bounds a chunked run, merges and retries included
    (lesson 18).
    """

    schema: str = "cc_9"
    max_tokens: int = 8000
    min_tokens: int = 0
    share_of_available: float = 0.0
    share_of_slack: float = 0.0
    available_reserve: int = 8000
    max_calls: int = 40

    def __post_init__(self) -> None:
        _check_schema(self.schema)


class SummarizeLedger(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Parameters of S12: whose headings it writes, and how long the summary may be, in estimated tokens."""

    schema: str = "cc_9"
    max_tokens: int = 4000

    def __post_init__(self) -> None:
        _check_schema(self.schema)


def summarize_one(work: Work, params: SummarizeOne, env: Env) -> Steps:
    """Return the work with `summary`; `Failed` when no usable text came back, and then nothing is changed.

    `details` tell the budget and how many orders to a model were left out of the text (R-433).
    """
    if not work.transcript:
        return Skipped("nothing_to_summarise", "there is nothing to summarise yet")
    budget = summary_budget(work, params, env)
    run = _Run(work, params, env, budget)
    text = yield from run.reduce(work.transcript)
    if isinstance(text, Failed):
        return text
    typed = "\n".join(message.text for message in work.before if is_typed_by_user(message))
    text, orders = leave_out_orders(text, typed)
    details = {**work.details, "schema": params.schema, "summary_budget_tokens": budget, "written_by": "model"}
    if orders:
        details["orders_left_out"] = orders
    return msgspec.structs.replace(work, summary=text, details=details)


def summary_budget(work: Work, params: SummarizeOne, env: Env) -> int:
    """Return how many tokens the summary may have (R-427, R-428)."""
    budget, room = params.max_tokens, env.window - params.available_reserve
    if params.share_of_slack:
        slack = room - env.measure((*work.messages, *work.pending)).tokens
        budget = min(budget, max(params.min_tokens, math.floor(params.share_of_slack * slack)))
    if params.share_of_available:
        prompt = tuple(message for message in work.before if is_system_prompt(message))
        budget = min(budget, math.floor(params.share_of_available * (room - env.measure(prompt).tokens)))
    return max(1, params.min_tokens, budget)


def summarize_ledger(work: Work, params: SummarizeLedger, env: Env) -> Outcome:
    """Return the work with a summary written from the log by code: the tier that needs no model (lessons 1, 48)."""
    if not work.removed:
        return Skipped("nothing_to_summarise", "there is nothing to summarise yet")
    budget = min(params.max_tokens, max(_SMALLEST_BUDGET, env.window // 8))
    text = summarise(work.removed, budget, env.count_text, params.schema)
    if not text:
        return Failed("the summary came out empty")
    tokens = env.count_text(text)
    details = {**work.details, "schema": params.schema, "summary_budget_tokens": budget, "ledger_tokens": tokens}
    details["written_by"] = "code"
    return msgspec.structs.replace(work, summary=text, details=details)


_Reduction = Generator[SummaryRequest, SummaryReply, "str | Failed"]


class _Run:
    """One run of S8: what it may ask, and how many calls are left."""

    def __init__(self, work: Work, params: SummarizeOne, env: Env, budget: int) -> None:
        self.work, self.count_text = work, env.count_text
        self.window = env.summariser_window or env.window
        self.output = min(budget, max(1, self.window // 4))
        self.prompt = summary_prompt(params.schema, env.instructions)
        taken = self.count_text(self.prompt)
        self.available = int((self.window - self.output) * _SAFETY / env.summariser_ratio) - taken
        self.ratio = env.summariser_ratio
        self.calls_left = params.max_calls

    def reduce(self, entries: tuple[str, ...], depth: int = 0) -> _Reduction:
        """Summarise the entries: at once when they fit, else chunk by chunk and then the parts together."""
        if self.available < _SMALLEST_BUDGET:
            return Failed(f"the summariser's window of {self.window} tokens is too small to summarise anything")
        if sum(map(self.count_text, entries)) <= self.available:
            return (yield from self.ask(f"{self.prompt}\n\n{wrap(entries)}", self.output))
        if depth >= _DEEPEST:
            return Failed("the history does not get smaller by summarising it in parts")
        room = self.available - self.count_text(prompts.load("summary_part"))
        chunks = chunk_entries(entries, room, self.count_text)
        if len(chunks) == 1:
            return (yield from self.ask(f"{self.prompt}\n\n{wrap(chunks[0])}", self.output))
        if len(chunks) > self.calls_left:
            return Failed(f"the history would need {len(chunks)} calls to be summarised, {self.calls_left} are allowed")
        parts = yield from self.write_parts(chunks, max(1, min(self.output, room // _PARTS_AT_ONCE)))
        if isinstance(parts, Failed):
            return parts
        return (yield from self.reduce(parts, depth + 1))

    def write_parts(
        self, chunks: tuple[tuple[str, ...], ...], output: int
    ) -> Generator[SummaryRequest, SummaryReply, tuple[str, ...] | Failed]:
        """Summarise each chunk in at most `output` tokens; a summary that is longer all the same is shortened."""
        parts: list[str] = []
        for number, chunk in enumerate(chunks, 1):
            note = prompts.load("summary_part").format(part=number, parts=len(chunks))
            text = yield from self.ask(f"{self.prompt}\n\n{note}\n\n{wrap(chunk)}", output, (number, len(chunks)))
            if isinstance(text, Failed):
                return text
            part = f'<message role="summary of part {number}">{escape(text)}</message>'
            parts.append(fit_entry(part, output, self.count_text)[0])
        return tuple(parts)

    def ask(self, prompt: str, output: int, part: tuple[int, int] = (1, 1)) -> _Reduction:
        """Ask once; a reply cut by its output limit is asked for once more with more room, if there is (lesson 15)."""
        free = self.window - math.ceil(self.count_text(prompt) * self.ratio)
        for budget in (output, min(2 * output, self.window // 2, free)):
            if self.calls_left <= 0:
                return Failed("summarising needs more model calls than are allowed")
            self.calls_left -= 1
            reply = yield SummaryRequest(
                prompt=prompt, subject=self.work.removed, max_output_tokens=budget, part=part[0], parts=part[1]
            )
            if reply.stop != "length" or reply.error or free <= output:
                break
        return accept_reply(reply)


def summary_prompt(schema: str, instructions: str) -> str:
    """Return the prompt of the schema, with the user's own wishes when there are any (R-533)."""
    prompt = prompts.load(load_schema(schema).prompt)
    if instructions.strip():
        prompt += "\n\n" + _INSTRUCTIONS.format(instructions=instructions.strip())
    return prompt


def accept_reply(reply: SummaryReply) -> str | Failed:
    """Return the summary text without its private analysis, or why the reply is not one (R-526, lessons 14, 15)."""
    if reply.error:
        return Failed(reply.error)
    if reply.called_tools:
        return Failed("the summariser called a tool instead of writing a summary")
    if reply.stop == "length":
        return Failed("the summary was cut off by its output limit")
    if reply.stop not in ("stop", ""):
        return Failed(f"the summariser ended early ({reply.stop})")
    text = _ANALYSIS.sub("", reply.text)
    if "<analysis>" in text.lower():
        return Failed("the summariser wrote only its analysis, no summary")
    wrapped = _SUMMARY.search(text)
    text = (wrapped.group(1) if wrapped else text).strip()
    if not text:
        return Failed("the summariser returned an empty summary")
    if _is_error_text(text):
        return Failed("the summariser returned an error text instead of a summary")
    return text


def _is_error_text(text: str) -> bool:
    """Return whether the whole text is an error object of an endpoint."""
    if not text.startswith("{"):
        return False
    try:
        decoded = json.loads(text)
    except ValueError:
        return False
    return isinstance(decoded, dict) and "error" in decoded
