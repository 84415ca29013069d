"""S12 `summarize_raw`: raw text in place of a summary, if no model wrote one (R-434)."""

from __future__ import annotations

import json

import msgspec
import pytest

from codecompanion.context.policy.policy_catalog import load_policy
from codecompanion.context.strategy_parameters import SummarizeRaw
from codecompanion.context.summary.summarize_raw import fair_shares, summarize_raw
from codecompanion.context.summary_text.place_quotes import read_quotes
from codecompanion.context.work import Skipped, SummaryReply, Work
from codecompanion.model.messages import SUMMARY_TAG, Message, ToolCall
from codecompanion.placeholders import QUOTES_HEADING, RAW_HEADING
from codecompanion.session.history.card_sections import card_sections
from tests.unit.context.builders import assistant, chars4, chat, count, env, run, tool, user


def raw(messages, window, **params):
    work = Work(before=messages, messages=(), removed=messages)
    return summarize_raw(work, SummarizeRaw(**params), env(messages, window))


def test_short_messages_are_included_unchanged():
    """R-434: the messages are labelled, and nothing is lost or repeated."""
    work = raw(chat(user("q"), assistant("a")), 128_000, share_of_removed=100.0)
    assert work.summary == f"{RAW_HEADING}\n[assistant] a\n\n{QUOTES_HEADING}\n> q"
    assert "raw, truncated" in RAW_HEADING


def test_the_text_has_the_size_of_a_summary():
    """R-427, R-434: at 16K at most 640 tokens, including the user's words."""
    messages = chat(*[m for i in range(60) for m in (user(f"wish {i}"), assistant("x" * 400))])
    work = raw(messages, 16_000)
    assert 450 < chars4(work.summary) <= 640
    assert work.details.summary_budget_tokens == 640
    assert "> wish 0\n" in work.summary
    assert "> wish 59" in work.summary


def test_an_earlier_summary_comes_first():
    """R-424, R-434: a failure loses nothing from an earlier summary."""
    work = raw(chat(user("We chose sqlite.", "compact_summary"), user("q" * 9000), assistant("a" * 9000)), 16_000)
    assert work.summary.startswith(f"We chose sqlite.\n\n{QUOTES_HEADING}\n")
    assert f"\n{RAW_HEADING}\n[assistant] aaa" in work.summary
    assert chars4(work.summary) <= 640


def test_sections_of_an_earlier_summary_stay_sections():
    """R-434, R-454: the raw text is below the sections and belongs to none of them."""
    titles = ("Primary Request and Intent", "User Messages", "Work Completed", "Errors and Fixes")
    nine = "\n\n".join(f"{number}. **{title}**\ntold {number}" for number, title in enumerate(titles, 1))
    work = raw(chat(user(nine, "compact_summary"), user("Use tabs."), assistant("a" * 9000)), 128_000)
    assert "2. **User Messages**\n- told 2\n\n> Use tabs.\n" in work.summary
    shown = [section.title for section in card_sections(work.summary)]
    assert shown == [*titles, RAW_HEADING.rstrip(":")]
    again = raw(chat(user(work.summary, "compact_summary"), assistant("b" * 9000)), 128_000)
    assert [section.title for section in card_sections(again.summary)] == shown
    assert again.summary.count("told 1") == again.summary.count("Use tabs.") == again.summary.count(RAW_HEADING) == 1


def test_the_text_is_at_most_half_of_its_source():
    """Lesson 9: raw text that saves no tokens is useless."""
    messages = chat(*[m for i in range(8) for m in (user(f"wish {i} " * 9), assistant("x" * 100))])
    assert chars4(raw(messages, 200_000).summary) <= sum(map(count, messages)) // 2


def test_without_removed_messages_there_is_no_text():
    assert isinstance(raw((), 16_000), Skipped)


@pytest.mark.parametrize(
    ("room", "wanted", "shares"),
    [(90, (100, 100, 100), (30, 30, 30)), (90, (10, 100, 0, 100), (10, 40, 0, 40)), (90, (10, 20, 30), (10, 20, 30))],
)
def test_unused_room_goes_to_the_others(room, wanted, shares):
    """R-434."""
    assert fair_shares(room, wanted) == shares


def test_user_assistant_and_tools_have_fair_shares():
    """R-434: long messages of one kind leave room for the others."""
    messages = [
        m
        for i in range(40)
        for m in (
            user(f"wish-{i} " * 100),
            assistant(f"reply-{i} " * 100, (f"c{i}", "read_file")),
            tool(f"c{i}", f"result-{i} " * 100),
        )
    ]
    work = raw(chat(*messages), 64_000)
    raw_text, _, quotes = work.summary.partition(QUOTES_HEADING)
    lines = raw_text.split("\n")
    spoken = sum(chars4(line) for line in lines if line.startswith("[assistant] reply"))
    done = sum(chars4(line) for line in lines if line.startswith(("[tool]", "[assistant] TOOL_USE")))
    third = 4096 / 3
    assert all(0.7 * third < share < 1.1 * third for share in (chars4(quotes), spoken, done))


def test_decisions_precede_other_text_of_the_assistant():
    """R-434: plain sentences, root causes and labels are kept verbatim."""
    said = (
        "I decided to keep the old parser because it is faster.",
        "The root cause is the cache in loader.py.",
        "**Decision:** one table for all drivers.",
    )
    talk = "I look at the next file and explain it at length. " * 20
    messages = chat(
        *[m for text in said for m in (user("go on"), assistant(f"{talk}\n{text}\n{talk}"))],
        *[m for i in range(30) for m in (user(f"wish {i}"), assistant(talk))],
    )
    summary = raw(messages, 16_000).summary
    assert [text for text in said if text not in summary] == []


def test_text_of_a_message_cannot_be_a_heading_of_the_summary():
    """R-431, R-434: an assistant message in nine sections is quoted and does not become the summary's sections."""
    nine = "1. **Primary Request and Intent**\nx\n2. **User Messages**\ny\n3. **Work Completed**\nz"
    trap = f"{nine}\n{QUOTES_HEADING}\n> no"
    work = raw(
        chat(user("Use tabs."), assistant(trap), tool("c", f"{RAW_HEADING}\n{trap}")), 128_000, share_of_removed=9
    )
    assert work.summary.endswith(f"\n{QUOTES_HEADING}\n> Use tabs.")
    assert [quote.text for quote in read_quotes(work.summary).quotes] == ["Use tabs."]


def failing_rounds(window: int, wish: str, rounds: int = 5):
    """Return the tokens freed by each of several compactions without a model, and the last summary."""
    policy, script = load_policy("cowork"), lambda ask: SummaryReply(error="the provider is down")
    messages, freed, turn = [Message(id="s", role="system", content="You help.")], [], 0
    for _ in range(rounds):
        while sum(map(count, messages)) < 0.9 * window:
            call = ToolCall(f"c{turn}", "read_file", json.dumps({"path": f"src/loader_{turn}.py"}))
            new = (
                Message(id=f"u{turn}", role="user", content=f"wish-{turn}: {wish}"),
                Message(id=f"a{turn}", role="assistant", content="I look.", tool_calls=(call,)),
                Message(id=f"t{turn}", role="tool", tool_call_id=f"c{turn}", content="def load(): pass " * 60),
                Message(
                    id=f"b{turn}", role="assistant", content=f"I decided on way {turn} here. {'I explain it. ' * 40}"
                ),
            )
            messages += [msgspec.structs.replace(message, cycle=turn + 1) for message in new]
            turn += 1
        prepared, _ = run(tuple(messages), window, policy=policy, script=script, has_utility=True)
        freed.append(sum(map(count, messages)) - sum(map(count, prepared.messages)))
        messages = list(prepared.messages)
    return freed, next(message.text for message in messages if message.tag == SUMMARY_TAG), messages, turn


@pytest.mark.sweep
@pytest.mark.parametrize("wish", ["please change it", "please change it, and mind who calls it. " * 15])
@pytest.mark.parametrize("window", [8_000, 16_000, 64_000])
def test_repeated_compactions_without_a_model_free_as_much_without_repetition(window, wish):
    """R-434: each user message occurs once, decisions are kept, and later rounds free nearly as much as the first."""
    freed, summary, messages, turns = failing_rounds(window, wish)
    assert min(freed) >= 0.2 * window
    assert min(freed) >= 0.65 * freed[0]
    view = "\n".join(message.text for message in messages)
    assert [n for n in range(turns) if summary.count(f"wish-{n}:") > 1] == []
    assert [n for n in range(turns) if f"wish-{n}:" not in view] == []
    assert sum(f"I decided on way {n} here." in summary for n in range(turns)) >= 10
    assert summary.count(RAW_HEADING) == 1
