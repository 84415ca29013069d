"""The header and the triggers use one figure: editing starts at the meter's 65 % (R-501, R-505)."""

from __future__ import annotations

import itertools
import json
from collections.abc import Callable
from pathlib import Path

import pytest

from codecompanion.adapters.base import ChatRequest
from codecompanion.counting.tokens import MessageCounter
from codecompanion.model.messages import Usage
from codecompanion.wire.events import Compacted, ContextEdited, Meter, ReplyFinished
from tests.unit.session.fakes import ALL_TOOLS, Bench, Reply, ScriptedAdapter, calls, says, submit

CLAUDE = 1.3
"""Actual tokens per estimated token, for a provider whose tokenizer is finer than the estimate."""
ANSWER, SUMMARY = "That is what the file says. " * 120, "A short summary of it all."


def reader(reports: bool):
    """Return a model that reads one file per turn and answers; only the file's text is clearable."""
    numbers = itertools.count(1)

    def answer(request: ChatRequest) -> Reply:
        counter = MessageCounter()
        prompt = round(CLAUDE * (counter.count_messages(request.messages) + counter.tools(request.tools)))

        def usage(reply: str) -> Usage | None:
            return Usage(prompt, round(CLAUDE * (counter.text(reply) + 12))) if reports else None

        if request.purpose == "summary":
            return says(SUMMARY, usage(SUMMARY))
        if request.messages[-1].role == "tool":
            return says(ANSWER, usage(ANSWER))
        return calls((f"c{next(numbers)}", "read_file", json.dumps({"path": "a.txt"})), usage=usage("read_file path"))

    return answer


@pytest.mark.parametrize("reports", [False, True])
async def test_edits_and_compactions_start_at_the_marks_of_the_header(tmp_path: Path, reports: bool) -> None:
    """Without a report the bound is 15 % above the count: triggers that used it fired at 57 % of the window."""
    (tmp_path / "a.txt").write_text("\n".join(f"line {number} of the file" for number in range(90)))
    settings = {"context_management": {"compaction": {"min_token_savings": 0}}}
    bench = Bench(tmp_path, ScriptedAdapter("s", reader(reports)), window=20_000, settings=settings)
    session = await bench.open()
    for number in range(24):
        session.submit(submit(f"look at it again, {number}", number + 1))
        await bench.idle(session)
    marks = {(event.edit_at, event.compact_at) for event in bench.of(Meter)}
    assert marks == {(13_000, 17_000)}
    assert bench.of(ContextEdited)
    assert bench.of(Compacted)
    shown = 0
    for event in bench.events:
        match event:
            case Meter():
                shown = event.tokens
            case ContextEdited():
                assert event.tokens_before >= 13_000, "edited below the mark that the header shows"
                assert shown >= 0.9 * 13_000
            case Compacted():
                assert event.tokens_before >= 13_000
            case _:
                pass
    edited = bench.of(ContextEdited)[0]
    assert edited.tokens_before < 13_000 + 1_500, "and not one turn later"


def searcher() -> Callable[[ChatRequest], Reply]:
    """Return a model that searches twice, then answers, and reports exactly the tokens it was sent."""
    numbers = itertools.count(1)

    def answer(request: ChatRequest) -> Reply:
        counter, number = MessageCounter(), next(numbers)
        prompt = round(1.1 * (counter.count_messages(request.messages) + counter.tools(request.tools)))
        if number % 3 == 0:
            return says(ANSWER[:200], Usage(prompt, 50))
        return calls(
            (f"c{number}", "grep_search", json.dumps({"query": "line", "max_results": 100 + number})),
            usage=Usage(prompt, 30),
        )

    return answer


@pytest.mark.sweep
async def test_a_counted_shaped_request_is_not_an_estimate(tmp_path: Path) -> None:
    """R-303: at 8k under kodacode, the meter used to stay at `ctx~` once tool schemas were sent in their short form."""
    (tmp_path / "a.txt").write_text("\n".join(f"line {number} of the file" for number in range(60)))
    adapter = ScriptedAdapter("s", searcher())
    bench = Bench(tmp_path, adapter, window=9_000, settings={"policy": "kodacode"}, tools=ALL_TOOLS)
    session = await bench.open()
    for number in range(6):
        session.submit(submit(f"look at it again, {number}", number + 1))
        await bench.idle(session)
        shown, reported = bench.of(Meter)[-1], bench.of(ReplyFinished)[-1]
        assert shown.exact
        assert shown.tokens == reported.prompt_tokens + reported.output_tokens
    assert session.control.shaper.current().savings.tools
    again = await bench.resume()
    assert again is not None
    assert abs(bench.of(Meter)[-1].tokens - shown.tokens) <= 0.01 * shown.tokens, "and the same after a restart"
