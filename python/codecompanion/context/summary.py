"""S8 `summarize_one`: one model call that writes the summary, chunked when it does not fit (R-525, R-526, lesson 1).

S12 `summarize_ledger` writes it from the log by code; it needs no call and cannot fail the way one does. S8 is a
generator: it yields what to ask and receives what came back, so that it needs no network and can be tested with a
table of strings. It ends after a bounded number of calls.
"""

from __future__ import annotations

import json
import re
from collections.abc import Generator

import msgspec

from codecompanion import prompts
from codecompanion.context.chunking import chunk_entries
from codecompanion.context.ledger import summarise
from codecompanion.context.transcript import escape, wrap
from codecompanion.context.work import Env, Failed, Outcome, Skipped, Steps, SummaryReply, SummaryRequest, Work

_ANALYSIS = re.compile(r"<analysis>.*?</analysis>", re.DOTALL | re.IGNORECASE)
_SUMMARY = re.compile(r"<summary>(.*?)(?:</summary>|\Z)", re.DOTALL | re.IGNORECASE)
_SAFETY = 0.9
_SMALLEST_BUDGET = 200
_INSTRUCTIONS = "The user asks for this in particular:\n\n{instructions}"


class SummarizeOne(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Parameters of S8. `schema` names the prompt `summary_<schema>.md`; `max_tokens` caps the reply (R-526).

    `max_calls` bounds a chunked run, merges and retries included (lesson 18).
    """

    schema: str = "cc_9"
    max_tokens: int = 8000
    max_calls: int = 40


def summarize_one(work: Work, params: SummarizeOne, env: Env) -> Steps:
    """Return the work with `summary`; `Failed` when no usable text came back, and then nothing is changed."""
    if not work.transcript:
        return Skipped("nothing_to_summarise", "there is nothing to summarise yet")
    text = yield from _reduce(work, work.transcript, params, env, _Calls(params.max_calls), depth=0)
    if isinstance(text, Failed):
        return text
    return msgspec.structs.replace(work, summary=text)


class _Calls:
    """How many model calls are left; the only state of a run."""

    def __init__(self, limit: int) -> None:
        self.left = limit


class SummarizeLedger(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Parameters of S12: how long the summary may be, in estimated tokens."""

    max_tokens: int = 4000


def summarize_ledger(work: Work, params: SummarizeLedger, env: Env) -> Outcome:
    """Return the work with a summary written from the log by code: the tier that needs no model (lessons 1, 48)."""
    if not work.removed:
        return Skipped("nothing_to_summarise", "there is nothing to summarise yet")
    text = summarise(work.removed, min(params.max_tokens, max(_SMALLEST_BUDGET, env.window // 8)), env.count_text)
    return msgspec.structs.replace(work, summary=text) if text else Failed("the summary came out empty")


_Reduction = Generator[SummaryRequest, SummaryReply, "str | Failed"]


def _reduce(
    work: Work, entries: tuple[str, ...], params: SummarizeOne, env: Env, calls: _Calls, depth: int
) -> _Reduction:
    """Summarise the entries: at once when they fit, else chunk by chunk and then the parts together."""
    window = env.summariser_window or env.window
    output = min(params.max_tokens, max(1, window // 4))
    prompt = _prompt(params.schema, env.instructions)
    available = int((window - output) * _SAFETY / env.summariser_ratio) - env.count_text(prompt)
    if available < _SMALLEST_BUDGET:
        return Failed(f"the summariser's window of {window} tokens is too small to summarise anything")
    if sum(map(env.count_text, entries)) <= available:
        return (yield from _ask(work, f"{prompt}\n\n{wrap(entries)}", output, window, calls, (1, 1)))
    if depth >= 4:
        return Failed("the history does not get smaller by summarising it in parts")
    chunks = chunk_entries(entries, available - env.count_text(prompts.load("summary_part")), env.count_text)
    if len(chunks) == 1:
        return (yield from _ask(work, f"{prompt}\n\n{wrap(chunks[0])}", output, window, calls, (1, 1)))
    if len(chunks) > calls.left:
        return Failed(f"the history would need {len(chunks)} calls to be summarised, {calls.left} are allowed")
    texts: list[str] = []
    for number, chunk in enumerate(chunks, 1):
        note = prompts.load("summary_part").format(part=number, parts=len(chunks))
        part = yield from _ask(
            work, f"{prompt}\n\n{note}\n\n{wrap(chunk)}", output, window, calls, (number, len(chunks))
        )
        if isinstance(part, Failed):
            return part
        texts.append(part)
    parts = tuple(f'<message role="summary of part {i}">{escape(text)}</message>' for i, text in enumerate(texts, 1))
    return (yield from _reduce(work, parts, params, env, calls, depth + 1))


def _ask(work: Work, prompt: str, output: int, window: int, calls: _Calls, part: tuple[int, int]) -> _Reduction:
    """Ask once; a reply cut by its output limit is asked for once more with twice the room (lesson 15)."""
    for budget in (output, min(2 * output, window // 2)):
        if calls.left <= 0:
            return Failed("summarising needs more model calls than are allowed")
        calls.left -= 1
        reply = yield SummaryRequest(
            prompt=prompt, subject=work.removed, max_output_tokens=budget, part=part[0], parts=part[1]
        )
        if reply.stop != "length" or reply.error or budget <= output // 2:
            break
    return accept_reply(reply)


def _prompt(schema: str, instructions: str) -> str:
    """Return the prompt of the schema, with the user's own wishes when there are any (R-533)."""
    prompt = prompts.load(f"summary_{schema}")
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
