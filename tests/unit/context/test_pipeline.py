"""The pipeline under the default policy: R-501…R-533, R-551."""

from __future__ import annotations

import math

import pytest

from codecompanion.context.pipeline import last_tier
from codecompanion.context.policy.policy_catalog import load_policy
from codecompanion.context.policy.policy_options import with_options
from codecompanion.context.work import SummaryReply
from codecompanion.model.cycles import current_cycle
from codecompanion.model.messages import DocumentPart, ImagePart, Message, TextPart, with_changes
from codecompanion.model.view import View, with_messages
from codecompanion.placeholders import FILE_CLEARED, SUMMARY_PREFIX, TOOL_RESULT_CLEARED, quote_request
from tests.unit.context.builders import (
    SUMMARISES,
    assistant,
    chat,
    count,
    drive,
    env,
    reply_with,
    run,
    system,
    texts,
    tool,
    turns,
    user,
)

OPTIONS = {"compaction": {"min_token_savings": 0}}
POLICY = with_options(load_policy("codecompanion"), OPTIONS, "context_management")


def outcomes(prepared):
    return [(report.stage.id, report.outcome) for report in prepared.reports]


def total(messages):
    return sum(map(count, messages))


@pytest.mark.parametrize(("below", "expected"), [(1, []), (0, [("editing", "changed")])])
def test_editing_starts_exactly_at_its_trigger(below, expected):
    """R-501, R-502: the comparison is >=."""
    messages = chat(*turns(6))
    window = int(total(messages) / 0.65)
    while int(0.65 * window) <= total(messages):
        window += 1
    window -= 1 - below  # floor(0.65 × window) is now equal to the count, or one above it
    prepared, _ = run(messages, window, policy=POLICY)
    assert outcomes(prepared) == expected


def test_editing_is_enough_if_it_gets_below_the_upper_trigger():
    """R-519: edit first, compact only if that was not enough."""
    messages = chat(*turns(10, 4000))
    prepared, asked = run(messages, int(total(messages) / 0.9), policy=POLICY)
    assert outcomes(prepared) == [("editing", "changed")]
    assert asked == []


def test_compaction_follows_if_nothing_can_be_edited():
    """R-519."""
    messages = chat(*[m for i in range(40) for m in (user(f"q{i} " * 140), assistant(f"a{i} " * 140))], user("last"))
    prepared, asked = run(messages, int(total(messages) / 0.9), policy=POLICY)
    assert outcomes(prepared) == [("editing", "skipped"), ("compaction", "changed")]
    assert len(asked) == 1
    assert texts(prepared.messages) == [SUMMARY_PREFIX + "SUMMARY", "last"]


def test_system_prompt_and_rules_survive_and_attachments_become_placeholders():
    """R-521, R-522, R-523: the strings are exact, the order is kept, and the summary comes last."""
    messages = chat(
        system(), user("RULES", "rules", path="AGENTS.md"), user("F" * 900, "file", path="lua/foo.lua"),
        user("B" * 900, "buffer", path="b.lua"), user("I", "image"), user("hello"), assistant("hi " * 200),
    )  # fmt: skip
    prepared, _ = run(messages, 100_000, policy=POLICY, manual=True)
    assert texts(prepared.messages) == [
        "You help.",
        "RULES",
        "<important>File content for `lua/foo.lua` cleared during compaction."
        " Re-read the file if you need it.</important>",
        "<important>Buffer content for `b.lua` cleared during compaction."
        " Request the buffer from the user if you need it.</important>",
        "<important>Image content cleared during compaction."
        " Request the image from the user if you need it.</important>",
        SUMMARY_PREFIX + "SUMMARY",
    ]
    assert [m.role for m in prepared.messages] == ["system", "user", "user", "user", "user", "user"]
    assert prepared.messages[-1].tag == "compact_summary"
    assert prepared.messages[:2] == messages[:2]


def test_an_attachment_without_a_path_is_named_by_its_id():
    """R-523: the placeholder never contains nil or None."""
    messages = chat(user("F" * 900, "file"), user("q"), assistant("a"))
    prepared, _ = run(messages, 100_000, policy=POLICY, manual=True)
    assert "`m0`" in prepared.messages[0].text
    assert "None" not in prepared.messages[0].text


def test_an_image_inside_a_message_leaves_a_placeholder_with_its_path():
    """R-523."""
    content = (TextPart("look " * 200), ImagePart(path="shot.png", url="data:image/png;base64,AAAA"))
    messages = chat(Message(id="", role="user", content=content), assistant("a " * 300))
    prepared, asked = run(messages, 100_000, policy=POLICY, manual=True)
    assert "`shot.png`" in prepared.messages[0].text
    assert "base64" not in asked[0].request.prompt


def test_a_pdf_leaves_the_placeholder_of_a_file():
    """R-523: a document is read again from its path like any other file."""
    content = (TextPart("The document `a.pdf`:"), DocumentPart(sha256="0" * 64, path="a.pdf", pages=3))
    pdf = Message(id="", role="user", content=content, tag="document", path="a.pdf")
    prepared, _ = run(chat(pdf, assistant("a " * 300)), 100_000, policy=POLICY, manual=True)
    assert prepared.messages[0].text == FILE_CLEARED.format(path="a.pdf")


def test_the_next_compaction_replaces_the_last_summary_and_keeps_placeholders():
    """R-522, R-527: at most one live summary; it is part of the summarised messages."""
    messages = chat(user("F" * 900, "file", path="f.py"), user("q"), assistant("a " * 300))
    first, _ = run(messages, 100_000, policy=POLICY, script=reply_with("ONE"), manual=True)
    more = chat(*first.messages, user("again"), assistant("more " * 300))
    second, asked = run(more, 100_000, policy=POLICY, script=reply_with("TWO"), manual=True)
    assert [m.tag for m in second.messages] == ["file", "compact_summary"]
    assert second.messages[-1].text == SUMMARY_PREFIX + "TWO"
    assert "ONE" in asked[0].request.prompt


def test_a_message_without_an_answer_follows_the_summary_verbatim():
    """R-551."""
    messages = chat(*turns(3, 2000), user("see f", "file", path="f.py"), user("and now this"))
    prepared, asked = run(messages, 100_000, policy=POLICY, manual=True)
    assert texts(prepared.messages) == [SUMMARY_PREFIX + "SUMMARY", "see f", "and now this"]
    assert "and now this" not in asked[0].request.prompt


def test_the_running_question_and_the_newest_round_stay_after_the_summary():
    """R-551: the model continues its work; the history before it is summarised."""
    running = (user("fix `foo`\n## now"), assistant("I will read it.", ("x", "read_file")), tool("x", "R" * 900))
    messages = chat(*turns(2, 2000), *running)
    prepared, _ = run(messages, 100_000, policy=POLICY, manual=True)
    summary, *live = prepared.messages
    assert summary.tag == "compact_summary"
    assert "fix `foo`" not in summary.text
    assert tuple(live) == messages[-3:]


def test_of_a_long_running_turn_question_plan_and_newest_rounds_stay():
    """The rounds between them are summarised; the plan stays as text, without its call."""
    rounds = [m for i in range(9) for m in (assistant("", (f"c{i}", "read_file")), tool(f"c{i}", f"r{i} " * 100))]
    plan = assistant("First I read, then I write.", ("p", "read_file"))
    messages = chat(*turns(1), user("do it"), plan, tool("p", "P" * 400), *rounds)
    prepared, _ = run(messages, 1000, policy=POLICY, manual=True)
    summary, question, kept_plan, *live = prepared.messages
    assert (summary.tag, question.text, kept_plan.text) == ("compact_summary", "do it", "First I read, then I write.")
    assert kept_plan.tool_calls == ()
    assert tuple(live) == messages[-6:], "three rounds of 82 tokens are within a quarter of 1,000"


def test_a_request_quoted_by_an_older_version_is_quoted_again():
    """R-551: earlier logs have no live question, only the summary that quotes it."""
    quoted = user(SUMMARY_PREFIX + "ONE" + quote_request("fix `foo`"), tag="compact_summary")
    messages = chat(quoted, assistant("", ("y", "read_file")), tool("y", "R" * 900))
    prepared, _ = run(messages, 100_000, policy=POLICY, script=reply_with("TWO"), manual=True)
    assert prepared.messages[-1].text.startswith(SUMMARY_PREFIX + "TWO")
    assert prepared.messages[-1].text.endswith("fix `foo`")


def test_a_summary_alone_is_not_summarised_again():
    """Lesson 40: there are no new messages, so no model is asked."""
    first, _ = run(chat(*turns(3, 2000)), 100_000, policy=POLICY, manual=True)
    second, asked = run(first.messages, 100_000, policy=POLICY, manual=True)
    assert outcomes(second) == [("compaction", "skipped")]
    assert asked == []


def test_unanswered_calls_keep_everything_unchanged():
    """R-520: the request is still made valid (R-004)."""
    messages = chat(*turns(8, 4000), user("q"), assistant("", ("open", "read_file")))
    prepared, asked = run(messages, 100, policy=POLICY)
    assert prepared.reports == ()
    assert asked == []
    assert prepared.messages[: len(messages)] == messages
    assert prepared.messages[-1].tool_call_id == "open"


def test_old_unanswered_calls_do_not_stop_management():
    """Lesson 49: calls that can no longer be answered are completed, then managed."""
    messages = chat(user("q"), assistant("", ("dead", "read_file")), *turns(8, 4000))
    prepared, _ = run(messages, int(total(messages) / 0.7), policy=POLICY)
    assert outcomes(prepared) == [("editing", "changed")]
    assert prepared.messages[2].tool_call_id == "dead"


def test_savings_below_the_minimum_change_nothing():
    """R-524: the compaction is skipped before a model is asked."""
    messages = chat(*[m for i in range(30) for m in (user(f"q{i} " * 20), assistant(f"a{i} " * 20))])
    policy = with_options(load_policy("codecompanion"), {"compaction.min_token_savings": 10**6}, "k")
    window = math.ceil(total(messages) / 0.9)
    pinned = tuple(with_changes(m, pinned=i > 8) for i, m in enumerate(messages))
    prepared, asked = run(pinned, window, policy=policy)
    assert outcomes(prepared) == [("editing", "skipped"), ("compaction", "skipped")]
    assert prepared.reports[1].reason == "savings_too_small"
    assert prepared.messages == pinned
    assert asked == []


def test_the_minimum_savings_are_a_share_of_a_small_window():
    """R-524: min(10,000, 20 % of the window); a fixed 10,000 could never be reached below about 12k."""
    messages = chat(*[m for i in range(30) for m in (user(f"q{i} " * 190), assistant(f"a{i} " * 190))])
    prepared, asked = run(messages, math.ceil(total(messages) / 0.9), policy=load_policy("codecompanion"))
    assert outcomes(prepared)[-1] == ("compaction", "changed")
    assert len(asked) == 1


def test_manual_compaction_has_no_minimum():
    """R-524, R-533."""
    messages = chat(user("q " * 100), assistant("a " * 100))
    prepared, _ = run(messages, 100_000, manual=True)
    assert outcomes(prepared) == [("compaction", "changed")]


def test_a_manual_compaction_without_a_model_writes_a_summary():
    """Lesson 21: in 51 of 51 recorded chats, only the old tool results used to be cleared."""
    messages = chat(*turns(30, size=2_000))
    view = with_messages(View(cycle=current_cycle(messages)), messages)
    prepared, asked = drive(
        last_tier(view, load_policy("codecompanion"), env(messages, 18_000, manual=True)), SUMMARISES
    )
    assert asked == []
    assert [report.event for report in prepared.changed] == ["context_compacted"]
    assert prepared.measure.tokens < 0.4 * sum(map(count, messages))


def test_with_nothing_to_summarise_nothing_changes():
    """R-524."""
    messages = chat(system(), user("RULES", "rules"))
    prepared, asked = run(messages, 100_000, manual=True)
    assert outcomes(prepared) == [("compaction", "skipped")]
    assert prepared.messages == messages
    assert asked == []


@pytest.mark.parametrize(
    "reply",
    [
        SummaryReply(error="no network"),
        SummaryReply(text=""),
        SummaryReply(text="  \n "),
        SummaryReply(text="cut", stop="length"),
        SummaryReply(text="x", called_tools=True),
        SummaryReply(text="<analysis>only thinking"),
        SummaryReply(text="<analysis>only thinking</analysis>"),
        SummaryReply(text='{"error": {"message": "boom"}}'),
        SummaryReply(text="long " * 100_000),
        SummaryReply(text="x", stop="filtered"),
    ],
)
def test_a_failed_summary_leaves_the_messages_byte_identical(reply):
    """R-526, R-529, R-530, lessons 9, 14, 15: the compaction fails and reports the reason."""
    messages = chat(*turns(8, 4000))
    prepared, _ = run(messages, 10_000, policy=POLICY, script=lambda ask: reply, manual=True)
    assert outcomes(prepared) == [("compaction", "failed")]
    assert prepared.messages == messages
    assert prepared.reports[0].detail


def test_the_private_analysis_is_not_stored():
    """R-526."""
    text = "<analysis>secret thoughts</analysis>\n<summary>\nThe gist.\n</summary>"
    prepared, _ = run(chat(*turns(3, 2000)), 100_000, policy=POLICY, script=reply_with(text), manual=True)
    assert prepared.messages[-1].text == SUMMARY_PREFIX + "The gist."


def test_a_truncated_summary_is_requested_once_more_with_more_room():
    """Lesson 15."""
    replies = iter([SummaryReply(text="cut", stop="length"), SummaryReply(text="whole", source="caller")])
    prepared, asked = run(chat(*turns(3, 2000)), 100_000, policy=POLICY, script=lambda ask: next(replies), manual=True)
    assert [ask.request.max_output_tokens for ask in asked] == [8000, 16000]
    assert prepared.messages[-1].text == SUMMARY_PREFIX + "whole"


def test_the_chat_adapter_is_asked_after_a_failure_only_if_configured():
    """R-529."""

    def script(ask):
        return SummaryReply(text="SAVED", source="caller") if ask.use_chat_adapter else SummaryReply(error="down")

    with_fallback = with_options(POLICY, {"compaction.fallback_to_chat_adapter": True}, "k")
    talk = chat(*turns(3, 2000))
    prepared, asked = run(talk, 100_000, policy=with_fallback, script=script, manual=True, has_utility=True)
    assert [ask.use_chat_adapter for ask in asked] == [False, True]
    assert outcomes(prepared) == [("compaction", "changed")]
    prepared, asked = run(chat(*turns(3, 2000)), 100_000, policy=POLICY, script=script, manual=True)
    assert len(asked) == 1
    assert outcomes(prepared) == [("compaction", "failed")]


def test_a_history_larger_than_the_summarisers_window_is_summarised_in_parts():
    """R-525, lessons 1, 3, 48: one message is larger than the summariser's window."""
    messages = chat(*turns(10, 8000), user("giant"), assistant("G" * 200_000))
    prepared, asked = run(messages, 1_000_000, policy=POLICY, manual=True, summariser_window=8000)
    assert len(asked) > 3
    assert all(count(user(ask.request.prompt)) + ask.request.max_output_tokens <= 8000 for ask in asked)
    assert prepared.messages[-1].text == SUMMARY_PREFIX + "SUMMARY"


def test_the_reserve_for_the_reply_lowers_the_compaction_trigger():
    """R-507."""
    messages = chat(*[m for i in range(40) for m in (user(f"q{i} " * 20), assistant(f"a{i} " * 20))])
    window = int(total(messages) / 0.7)
    prepared, _ = run(messages, window, policy=POLICY)
    assert ("compaction", "changed") not in outcomes(prepared)
    prepared, _ = run(messages, window, policy=POLICY, reserve=int(window * 0.4))
    assert ("compaction", "changed") in outcomes(prepared)


def test_disabled_management_only_repairs():
    policy = with_options(POLICY, {"enabled": False}, "k")
    messages = chat(*turns(8, 4000))
    prepared, _ = run(messages, 100, policy=policy)
    assert prepared.reports == ()
    assert prepared.messages == messages


@pytest.mark.parametrize(("stage", "left"), [("editing", ["compaction"]), ("compaction", ["editing"])])
def test_a_stage_whose_trigger_is_false_does_not_run(stage, left):
    """R-502."""
    policy = with_options(POLICY, {f"{stage}.trigger": False}, "k")
    messages = chat(*turns(8, 4000))
    prepared, _ = run(messages, math.ceil(total(messages) / 0.9), policy=policy)
    assert [report.stage.id for report in prepared.reports] == left


def test_instructions_reach_the_summariser():
    """R-533."""
    _, asked = run(chat(*turns(3, 2000)), 100_000, policy=POLICY, manual=True, instructions="keep every path")
    assert "keep every path" in asked[0].request.prompt


def test_rules_are_not_part_of_the_transcript():
    """R-525, lesson 10: the summariser never sees the rules."""
    messages = chat(user("THE-RULES", "rules"), *turns(3, 2000))
    _, asked = run(messages, 100_000, policy=POLICY, manual=True)
    assert "THE-RULES" not in asked[0].request.prompt


def test_an_edited_result_keeps_its_placeholder_through_later_requests():
    """R-512."""
    messages = chat(*turns(6, 4000))
    first, _ = run(messages, int(total(messages) / 0.7), policy=POLICY)
    full = math.ceil(total(first.messages) / 0.9)
    second, _ = run(first.messages, full, policy=with_options(POLICY, {"compaction.trigger": False}, "k"))
    assert outcomes(second) == [("editing", "skipped")]
    assert texts(second.messages).count(TOOL_RESULT_CLEARED) == 3
