"""Every summarised message has a key in the view by which it can be recalled (R-431, R-516)."""

from __future__ import annotations

import re

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from codecompanion.context.policy.policy_catalog import load_policy, policy_names
from codecompanion.context.summary_text.recall_keys import Span, put_span, read_span, without_keys, without_span
from codecompanion.context.summary_text.sections import load_schema, parse_sections
from codecompanion.context.work import SummaryReply
from codecompanion.model.messages import RULES_TAG, SUMMARY_TAG, is_system_prompt
from codecompanion.placeholders import LEDGER_HEADING, OMITTED_MESSAGE, QUOTES_HEADING
from tests.summaries import nine_sections
from tests.unit.context.builders import assistant, chat, count, run, tool, user
from tests.unit.context.summary_text.test_quote_user_messages import written

KEYS = re.compile(r"\br(\d+)(?: to r(\d+))?")
FREE = "The loader was changed and its tests were run; they pass. " * 6
FORMS = {
    "cc_9": written("cc_9", users="None"),
    "cw_9": written("cw_9", users="> use tabs"),
    "points": "Compaction Summary:\n\n## Goal\n- a parser\n\n## Relevant Files\n- a.py",
    "free": FREE,
    "quotes": f"{FREE}\n\n{QUOTES_HEADING}\n> use tabs",
    "notes": FREE + "\n\n" + OMITTED_MESSAGE.format(role="user", thousands=9),
    "ledger": f"{written('cc_9')}\n\n{LEDGER_HEADING}\nFiles:\n- src/ a.py (read)",
}


@pytest.mark.parametrize("text", FORMS.values(), ids=FORMS)
def test_the_line_is_inside_the_form_and_unique(text):
    """There is no text after or outside the form; a second line replaces the first."""
    once = put_span(text, Span(3, 57))
    again = put_span(once, Span(3, 90))
    assert read_span(once) == Span(3, 57)
    assert read_span(again) == Span(3, 90)
    assert again.count("recall r") == 1
    assert without_span(again).split() == re.sub(r"\bNone\b", "", text).split() or without_span(again) == text
    last = [line for line in text.split("\n") if line][-1]
    assert again.rstrip().split("\n")[-1] == (
        Span(3, 90).line if text in (FREE, FORMS["points"], FORMS["quotes"]) else last
    )
    for name in ("cc_9", "cw_9"):
        if text == FORMS[name]:
            schema = load_schema(name)
            assert Span(3, 90).line in parse_sections(again, schema).body(schema.number_of("user_messages"))


def test_a_reader_of_another_log_sees_no_keys():
    """R-447: a memory of this chat is read in other chats."""
    text = put_span(
        written(users="- be quick… (recall r7)\n- […] 3 older messages are not listed: recall r1 to r5"), Span(1, 9)
    )
    assert not KEYS.search(without_keys(text))
    assert "- be quick…" in without_keys(text)


TURN = st.tuples(
    st.sampled_from(["short", "long", "noise"]), st.integers(0, 2), st.integers(20, 3000), st.integers(20, 1500)
)
REPLIES = st.sampled_from(["good", "fails", "junk", "long"])


def answered(kind):
    def answer(ask):
        if kind == "fails":
            return SummaryReply(error="the server is gone")
        if kind == "junk":
            return SummaryReply(text="ok")
        return SummaryReply(text=nine_sections(FREE * (12 if kind == "long" else 1)), source="model")

    return answer


def keys_in(messages):
    """Return the positions named by the summaries in a view."""
    text = "\n".join(message.text for message in messages if message.tag == SUMMARY_TAG)
    return [(int(first), int(last or first)) for first, last in KEYS.findall(text)]


def new_turn(place, kind, calls, size, words):
    said = {"short": f"wish {place}", "long": f"wish {place} " + "word " * (words // 5), "noise": "/exit"}[kind]
    made = [user(said)]
    for n in range(calls):
        made += [assistant("", (f"c{place}-{n}", "read_file")), tool(f"c{place}-{n}", "x " * (size // 2))]
    return [*made, assistant(f"answer {place} " + "y " * (words // 2))]


@pytest.mark.parametrize("name", policy_names())
@settings(max_examples=12, deadline=None)
@given(
    st.lists(st.lists(TURN, min_size=1, max_size=8), min_size=1, max_size=4), st.lists(REPLIES, min_size=4, max_size=4)
)
def test_removed_messages_can_be_read_by_a_key_in_the_view(name, rounds, replies):
    """This applies to every policy, to several compactions, to any author of the summaries and to any failure."""
    view, log = (), []
    for round_number, turns in enumerate(rounds):
        made = [m for place, turn in enumerate(turns) for m in new_turn(round_number * 100 + place, *turn)]
        fresh = chat(*[user("start"), *made])[1:] if not log else chat(*made)
        fresh = [m.__class__(**{f: getattr(m, f) for f in m.__struct_fields__} | {"id": f"m{len(log) + i}"})
                 for i, m in enumerate(fresh)]  # fmt: skip
        log += fresh
        view = (*view, *fresh)
        places = {message.id: 3 * place + 1 for place, message in enumerate(log)}
        window = max(2000, int(sum(map(count, view)) / 0.95))
        prepared, _ = run(
            view,
            window,
            policy=load_policy(name),
            script=answered(replies[round_number]),
            manual=round_number % 2 == 1,
            key_of=lambda message_id: f"r{places[message_id]}" if message_id in places else "",  # noqa: B023
            has_utility=True,
        )
        view = prepared.messages
        here, keys = {message.id for message in view}, keys_in(view)
        for message in log:
            if message.id not in here and not is_system_prompt(message) and message.tag != RULES_TAG:
                place = places[message.id]
                assert any(first <= place <= last for first, last in keys), (message.id, place, keys)


def test_the_line_of_keys_is_removed_with_the_empty_lines_before_it():
    """Each empty line of a gap would search the rest of the gap: with this many that would take hours."""
    line = "- Word for word in the log: recall r1 to r4"
    assert without_span(f"a\n\n{line}\n\n{line}\nb") == "a\nb"
    gap = "\n" * 1_000_000
    assert without_span(f"a{gap}b\n{line}") == f"a{gap}b"
