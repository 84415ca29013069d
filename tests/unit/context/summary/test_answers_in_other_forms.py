"""If a model answers in a form other than the requested one, quotes are placed by the rules of that form (R-431)."""

from __future__ import annotations

import pytest

from codecompanion.context.policy.policy_catalog import load_policy
from codecompanion.context.summary.fit_summary import level
from codecompanion.context.summary.judge_reply import complete_sections, in_order
from codecompanion.context.summary_text.place_quotes import put_quotes, read_quotes, take_quotes
from codecompanion.context.summary_text.sections import load_schema, parse_sections, schema_names
from codecompanion.context.work import SummaryReply
from codecompanion.placeholders import QUOTES_HEADING
from tests.unit.context.builders import assistant, chars4, chat, count, env, run, system, user

SAID = (
    "Use tabs in every file.", "The timeout stays at 30 seconds.", "I like the old table better.",
    "Rename load_3 to read_3 please.", "What about the windows build?", "Never touch loader_5.py.",
    "Write the docs in plain English.", "Ship it on Friday.", "Keep the parser hand-written.",
)  # fmt: skip


def answer(name: str, words: int) -> str:
    """Return a summary in the named form; `words` is the length of a section."""
    schema = load_schema(name)
    if not schema.section:
        return "The work on loader_0.py goes on. " + "We look at load_0 at length and go on. " * words
    told = "loader_0.py " + "and load_0 is looked at " * words
    return "\n\n".join(f"{schema.heading(number)}\n{told}" for number in range(1, len(schema.section) + 1))


def long_chat(window: int, pad: int):
    reply = "I look at loader_0.py and load_0. " * (window // 170)
    wishes = [f"About point {n} I thought a while, because it matters to us here. " * pad + SAID[n] for n in range(9)]
    return chat(system(), *[m for wish in wishes for m in (user(wish), assistant(reply))], user("and now?"))


@pytest.mark.sweep
@pytest.mark.parametrize("words", [12, 25, 400])
@pytest.mark.parametrize(("window", "pad"), [(8_000, 1), (32_000, 5)])
@pytest.mark.parametrize("answered", schema_names())
@pytest.mark.parametrize("policy", ["adaptive", "codecompanion", "cowork", "cowork_chat"])
def test_no_sentence_of_the_user_is_lost_in_any_form_of_the_answer(policy, answered, window, pad, words):
    """R-431: all nine sentences are kept for every pair of requested and actual form."""
    messages = long_chat(window, pad)
    room = int(sum(map(count, messages)) / 0.93)
    reply = SummaryReply(text=answer(answered, words))
    prepared, _ = run(
        messages, room, policy=load_policy(policy), script=lambda ask: reply, has_utility=True, manual=True
    )
    view = "\n".join(message.text for message in prepared.messages)
    assert [said for said in SAID if said not in view] == []
    refused = (policy, answered) == ("codecompanion", "brief")
    assert any(report.outcome == "changed" for report in prepared.reports) or refused


@pytest.mark.parametrize("name", schema_names())
def test_quotes_are_removed_and_reinserted_where_the_form_has_them(name):
    """R-431: they are in the section of the user's messages, else below the text; an existing list is replaced."""
    text = answer(name, 3)
    quoted = put_quotes(text, "> Use tabs.")
    told, quotes = take_quotes(quoted)
    assert quotes == "> Use tabs."
    assert (QUOTES_HEADING in quoted) == (not load_schema(name).number_of("user_messages"))
    assert put_quotes(told, quotes) == put_quotes(quoted, "> Use tabs.") == quoted
    assert [quote.text for quote in read_quotes(quoted).quotes] == ["Use tabs."]


def test_a_section_on_another_subject_is_not_the_users_messages():
    """R-431: a number alone does not identify a section."""
    text = answer("cw_9", 3).replace("2. **User Messages**", "2. **Files Changed**")
    assert take_quotes(put_quotes(text, "> Use tabs."))[1] == "> Use tabs."
    assert "2. **Files Changed**\nloader_0.py" in put_quotes(text, "> Use tabs.")


@pytest.mark.parametrize("answered", ["cc_9", "cw_9"])
def test_sections_are_ordered_and_truncated_in_their_actual_form(answered):
    """R-430, R-433: the requested form does not matter."""
    schema = load_schema(answered)
    blocks = answer(answered, 3).split("\n\n")
    (asked,) = {"cc_9", "cw_9"} - {answered}
    ordered = in_order("\n\n".join(reversed(blocks)), load_schema(asked))
    assert [part.number for part in parse_sections(ordered, schema).parts] == list(range(1, 10))
    whole = complete_sections("\n\n".join(blocks)[:-20], load_schema(asked))
    assert len(parse_sections(whole, schema).parts) == 8


@pytest.mark.parametrize("tokens", [80, 150, 400])
@pytest.mark.parametrize("name", schema_names())
def test_text_at_another_heading_level_keeps_its_headings_within_its_tokens(name, tokens):
    """R-433, R-441."""
    text = level(answer(name, 60), tokens, env((), 10_000))
    assert chars4(text) <= max(tokens, 120)
    sections = load_schema(name).section
    assert len(parse_sections(text).parts) == (len(sections) if len(sections) >= 3 else 0)
