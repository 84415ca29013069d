"""The policy `codebuddy`, tested end to end through the command line's own entry point (R-107…R-119, R-128…R-137).

R-145 and R-254 are included. Counts are chars4, so that every threshold is exact; the strategies have their own tests.
"""

from __future__ import annotations

import json

import pytest

from codecompanion.cli.commands.context import Options, prepare_transcript
from codecompanion.context.named_events import Occasion, applies
from codecompanion.context.policy.policy_catalog import load_policy
from codecompanion.context.policy.table import policy_from_table
from codecompanion.context.work import SummaryReply
from codecompanion.errors import ConfigError
from codecompanion.model.transcript_format import read_objects
from codecompanion.placeholders import QUOTES_HEADING
from tests.unit.context.builders import run
from tests.unit.context.policy.written import policy_to_table

SUMMARY = "The port is 8089."
HEADER = "[Conversation Summary \u2014 {} earlier messages compacted]\n\n"
PARTIAL_HEADER = "[Earlier conversation summary \u2014 {} messages compacted]\n\n"


def prepare(messages, window, **options):
    """Return the answer of `context --policy codebuddy --count chars4`."""
    given = {"policy": "codebuddy", "count": "chars4", "window": window, "summary": SUMMARY, **options}
    return prepare_transcript(read_objects(messages, "test"), Options(**given))


def system(chars=400):
    return {"role": "system", "content": "S" * chars}


def exchange(number, chars=400):
    """Return a question and an answer of `chars` characters each."""
    return [
        {"role": "user", "content": f"question {number} ".ljust(chars, "q")},
        {"role": "assistant", "content": f"answer {number} ".ljust(chars, "a")},
    ]


def talk(exchanges, chars=400):
    return [message for number in range(exchanges) for message in exchange(number, chars)]


def tool_step(number, result_chars, argument_chars=20):
    arguments = '{"p": "' + "x" * (argument_chars - 9) + '"}'
    call = {"id": f"c{number}", "type": "function", "function": {"name": "run", "arguments": arguments}}
    return [
        {"role": "assistant", "content": "", "tool_calls": [call]},
        {"role": "tool", "tool_call_id": f"c{number}", "content": "r" * result_chars},
    ]


def tokens(messages):
    """Return the total chars4 count of the messages."""
    total = 0
    for message in messages:
        total += -(-len(message["content"]) // 4)
        for call in message.get("tool_calls", ()):
            total += -(-len(call["function"]["name"] + call["function"]["arguments"]) // 4)
    return total


def budget(window, system_tokens):
    """Return the budget of the source, including its margin, which is off unless configured (R-107)."""
    return int((window - system_tokens - 4096) / 1.2)


def room(window, system_tokens):
    """Return the room for messages by R-107 [decided]: the whole request takes at most 90 % of the window."""
    return int(0.9 * window) - system_tokens


def window_at(messages, usage):
    """Return the window of which these messages fill the share `usage`."""
    return int(tokens(messages) / usage)


@pytest.mark.parametrize(("window", "compacted"), [(20_000, False), (19_999, True)])
def test_compaction_starts_above_90_percent(window, compacted):
    """R-108: usage > 0.90 is strict, so 18,000 of 20,000 is not above it.

    R-138: the counts and tokens are then equal.
    """
    messages = [system(), *talk(89), {"role": "user", "content": "x" * 400}]
    assert tokens(messages) == 18_000
    result = prepare(messages, window)["result"]
    assert result["compacted"] is compacted
    if not compacted:
        assert result == {
            "compacted": False, "originalCount": 180, "finalCount": 180, "originalTokens": 18_000,
            "finalTokens": 18_000, "tier": 0, "warningLevel": "critical",
        }  # fmt: skip


@pytest.mark.parametrize(
    ("window", "level"), [(22_501, "none"), (22_500, "warning"), (20_001, "warning"), (20_000, "critical")]
)
def test_the_warning_level_is_that_of_the_state_before(window, level):
    """R-110: >= 0.80 and >= 0.90 of the window, system prompt included, whether or not anything was compacted."""
    messages = [system(), *talk(89), {"role": "user", "content": "x" * 400}]
    assert prepare(messages, window)["result"]["warningLevel"] == level


def test_a_compacted_chat_still_reports_its_former_level():
    """R-110: the level is computed before compaction."""
    messages = [system(), *talk(100)]
    result = prepare(messages, window_at(messages, 0.95))["result"]
    assert (result["compacted"], result["warningLevel"]) == (True, "critical")


def test_tier_1_strips_results_and_arguments_except_in_the_newest_four():
    """R-114, R-116, R-117: the text is exact, the call id stays, and no model is asked; the field `tier` is 1."""
    messages = [system(), {"role": "user", "content": "go"}]
    for number in range(20):
        messages += tool_step(number, 4000, 300 if number % 2 else 200)
    answer = prepare(messages, window_at(messages, 0.95), summary_error="nobody must ask")
    assert answer["result"]["tier"] == 1
    assert answer["result"]["finalCount"] == len(messages)
    results = [m for m in answer["messages"] if m["role"] == "tool"]
    assert [m["content"] for m in results] == ["[Tool result truncated \u2014 originally 4000 chars]"] * 18 + [
        "r" * 4000
    ] * 2
    assert [m["tool_call_id"] for m in results] == [f"c{i}" for i in range(20)]
    arguments = [m["tool_calls"][0]["function"]["arguments"] for m in answer["messages"] if m.get("tool_calls")]
    assert [json.loads(text) == {"_truncated": True} for text in arguments] == [
        i % 2 == 1 and i < 18 for i in range(20)
    ]
    assert not any(event["type"] == "compaction_started" for event in answer["events"])


def test_stripping_arguments_alone_can_be_enough():
    """R-117: no result is long, the arguments are counted (R-112) and stripped."""
    messages = [{"role": "user", "content": "go"}, *[m for i in range(20) for m in tool_step(i, 100, 4000)]]
    answer = prepare(messages, window_at(messages, 0.95))
    assert answer["result"]["tier"] == 1
    assert answer["result"]["originalTokens"] > 20_000
    assert answer["result"]["finalTokens"] < 4_000


def test_tier_2_summarises_all_but_the_newest_four():
    """R-128, R-129: the result is `[summary] + last 4`.

    The system summary follows the system prompt and states the message count.
    """
    messages = [system(), *talk(60)]
    answer = prepare(messages, window_at(messages, 0.95))
    assert answer["result"]["tier"] == 2
    assert answer["messages"][0] == messages[0]
    summary = answer["messages"][1]
    assert (summary["role"], summary["content"]) == ("system", HEADER.format(116) + SUMMARY)
    assert answer["messages"][2:] == messages[-4:]
    assert answer["result"]["finalCount"] == 6


def test_the_last_four_grow_if_the_boundary_would_split_a_pair():
    """R-128 [proposed], R-004: the boundary moves to the older side."""
    tail = [*tool_step(1, 40), *exchange(1000, 40), {"role": "user", "content": "now"}]
    answer = prepare([*talk(60), *tail], 12_500)
    assert answer["result"]["tier"] == 2
    assert answer["messages"][0]["content"] == HEADER.format(120) + SUMMARY
    assert answer["messages"][1:] == tail


def scripted(messages, window, *replies, policy="codebuddy"):
    """Return the outcome and the requests; the summariser gives these replies in turn, then repeats the last."""
    given = iter(replies)
    last = replies[-1]
    read = read_objects(messages, "test").messages
    return run(read, window, policy=load_policy(policy), script=lambda ask: next(given, last))


DOWN = SummaryReply(error="down")
HALF = 58
"""Half of the 117 messages older than the newest four (116 without the pending one)."""


def by_tier_3(messages, window, text):
    """Return the outcome and the requests for the older half; tier 2 fails because its summary exceeds the target."""
    too_large = SummaryReply(text="s" * 4 * room(window, 100), source="caller")

    def script(ask):
        is_half = ask.request.prompt.count("<message ") == HALF
        return SummaryReply(text=text, source="caller") if is_half else too_large

    read = read_objects(messages, "test").messages
    prepared, asked = run(read, window, policy=load_policy("codebuddy"), script=script)
    return prepared, [ask for ask in asked if ask.request.prompt.count("<message ") == HALF]


def test_tier_2_works_on_the_result_of_tier_1():
    """R-119: the summariser reads a placeholder in place of the long result."""
    messages = [{"role": "user", "content": "go"}, *tool_step(0, 4000), *talk(60)]
    window = window_at(messages, 1.05)
    assert tokens(messages) - 1000 > room(window, 0)  # tier 1 alone is not enough
    prepared, asked = scripted(messages, window, SummaryReply(text=SUMMARY, source="caller"))
    assert [report.tier for report in prepared.reports] == [2]
    prompts = [ask.request.prompt for ask in asked]
    assert "[Tool result truncated \u2014 originally 4000 chars]" in prompts[0]
    assert not any("r" * 300 in prompt for prompt in prompts)


def test_tier_3_summarises_the_oldest_half_in_one_call():
    """R-131: these are floor(k / 2) of the k messages older than the newest four.

    The header is its own, and the rest stays.
    """
    messages = [system(), *talk(60), {"role": "user", "content": "now"}]
    prepared, asked = by_tier_3(messages, window_at(messages, 0.95), SUMMARY)
    assert [report.tier for report in prepared.reports] == [3]
    assert len(asked) == 1
    # 121 messages that count, 117 older than the newest four, 58 of them are the half.
    kept = [message.text for message in prepared.messages]
    assert kept[0] == messages[0]["content"]
    assert kept[1] == PARTIAL_HEADER.format(58) + SUMMARY
    assert kept[2:] == [message["content"] for message in messages[59:]]


def test_tier_3_drops_the_oldest_of_the_rest_until_it_fits():
    """R-133: messages after the summary are dropped, as few as needed, never the newest four."""
    messages = [system(), *talk(60)]
    window = window_at(messages, 0.95)
    fit = room(window, 100)
    long = "s" * 4 * (fit - 2_500)
    prepared, _ = by_tier_3(messages, window, long)
    assert [report.tier for report in prepared.reports] == [3]
    kept = [message.text for message in prepared.messages]
    assert kept[2:] == [message["content"] for message in messages[-(len(kept) - 2) :]]
    body = sum(-(-len(text) // 4) for text in kept[1:])
    assert fit - 100 < body <= fit
    assert prepared.reports[0].work.details.trimmed == 58 - (len(kept) - 2 - 4)


def test_a_summary_too_large_for_the_budget_escalates_to_the_last_tier():
    """R-115 [proposed], R-133 [proposed]: tiers 2 and 3 must fit the budget."""
    messages = [system(), *talk(60)]
    window = window_at(messages, 0.95)
    prepared, _ = scripted(messages, window, SummaryReply(text="s" * 4 * room(window, 100)))
    assert [report.tier for report in prepared.reports] == [4]
    assert [problem.partition(":")[0] for problem in prepared.reports[0].problems] == [
        "tool_strip", "multi_chunk", "partial",
    ]  # fmt: skip


def test_no_model_is_asked_if_the_newest_four_exceed_the_budget_themselves():
    """R-115: no summary could fit; the last tier answers immediately, and R-136 reports it."""
    messages = [system(), *talk(60), *talk(2, 400_000)]
    prepared, asked = scripted(messages, window_at(messages, 0.95), SummaryReply(text=SUMMARY, source="caller"))
    assert [report.tier for report in prepared.reports] == [4]
    assert asked == []


def test_a_result_still_over_the_budget_is_used_and_reported():
    """R-136 [proposed]: the request is sent; the event `context_still_over_budget` is due."""
    messages = [system(), *talk(60), *talk(2, 400_000)]
    prepared, _ = scripted(messages, window_at(messages, 0.95), DOWN)
    report = prepared.reports[0]
    assert (report.tier, report.outcome) == (4, "changed")
    assert "context_still_over_budget" in report.stage.emits.changed
    limit = room(window_at(messages, 0.95), 100)
    assert sum(-(-len(message.text) // 4) for message in prepared.messages[1:]) > limit
    assert applies("context_still_over_budget", Occasion(report=report, target_tokens=limit + 100))


def test_without_a_model_the_shape_of_the_conversation_is_described():
    """R-134, R-120: a failing summariser escalates to tier 4, which cannot fail; the newest four stay."""
    messages = [system(), *talk(60)]
    answer = prepare(messages, window_at(messages, 0.95), summary_error="no network")
    assert answer["result"]["tier"] == 4
    assert answer["messages"][0] == messages[0]
    description = answer["messages"][1]
    assert description["role"] == "system"
    document, _, ours = description["content"].partition(f"\n\n{QUOTES_HEADING}\n")
    lines = document.split("\n")
    assert lines[:3] == [
        "[Conversation context \u2014 116 earlier messages removed to fit context window]",
        "User messages: 58, Assistant responses: 58, Tool calls: 0",
        "Topics discussed:",
    ]
    assert len(lines) == 13
    assert lines[3] == "- " + "question 0 ".ljust(77, "q") + "..."
    assert "> question 57 q" in ours, "the user's own words, the newest whole"
    assert answer["messages"][2:] == messages[-4:]


def test_an_empty_summary_escalates_too():
    """R-120."""
    messages = [system(), *talk(60)]
    assert prepare(messages, window_at(messages, 0.95), summary="")["result"]["tier"] == 4


EMPTY = SummaryReply(text="")


@pytest.mark.parametrize("name", ["codebuddy", "codebuddy strict"])
@pytest.mark.parametrize(
    ("replies", "tier", "calls"),
    [
        ([EMPTY, EMPTY, SummaryReply(text=SUMMARY, source="caller")], 3, 3),
        ([EMPTY], 4, 4),
        ([SummaryReply(error="down")], 4, 1),
    ],
)
def test_tier_3_asks_if_the_replies_to_tier_2_are_empty(name, replies, tier, calls):
    """R-115, R-120: each tier may ask once more (R-526); after a failed call, no model is asked (lesson 18)."""
    messages = [system(), *talk(60)]
    prepared, asked = scripted(messages, window_at(messages, 0.95), *replies, policy=name)
    assert [report.tier for report in prepared.reports] == [tier]
    assert len(asked) == calls
    if calls > 1:
        assert asked[2].request.prompt.count("<message ") == HALF


def test_tiers_2_and_3_write_messages_in_the_same_form():
    """R-126, R-127: labels in a frame that no content can close; at most 10,000 characters, with the number omitted."""
    first = [
        {"role": "user", "content": "Why? </message></conversation>"},
        {"role": "assistant", "content": "a" * 10_500},
    ]
    messages = [system(), *first, *tool_step(0, 100), *talk(60)]
    _, asked = scripted(messages, window_at(messages, 0.95), EMPTY)
    assert len(asked) == 4
    for prompt in (asked[0].request.prompt, asked[2].request.prompt):
        start = prompt.index("<conversation>\n")
        assert prompt[start:].startswith(
            '<conversation>\n<message role="User">\nUser: Why? <\\/message><\\/conversation>\n</message>\n'
            '<message role="Assistant">\nAssistant: ' + "a" * 10_000 + "\n[... 500 chars truncated]\n</message>\n"
            '<message role="Assistant">\nAssistant: run({"p": "xxxxxxxxxxx"})\n</message>\n'
            '<message role="Tool">\nTool: ' + "r" * 100 + "\n</message>\n"
        )


def test_with_nothing_older_than_the_newest_four_nothing_is_compacted():
    """R-118, R-135 [proposed]: `compacted` is false, `tier` is 0, and the level and the messages are unchanged."""
    messages = [system(), *talk(2, 4000)]
    answer = prepare(messages, 4100)
    assert answer["result"]["compacted"] is False
    assert answer["result"]["tier"] == 0
    assert answer["result"]["warningLevel"] == "critical"
    assert answer["messages"] == messages
    skipped = [event for event in answer["events"] if event["type"] == "compaction_skipped"]
    assert [event["reason"] for event in skipped] == ["nothing_to_compact"]


def test_five_messages_are_too_few_for_a_model_but_not_for_a_description():
    """R-120: fewer than six messages, or two older ones, escalate past tiers 2 and 3."""
    messages = [system(), {"role": "user", "content": "q" * 4000}, *talk(2, 400)]
    answer = prepare(messages, window_at(messages, 0.95), summary=SUMMARY)
    assert answer["result"]["tier"] == 4
    assert answer["messages"][2:] == messages[-4:]


WITH_A_RESULT = [system(), {"role": "user", "content": "go"}, *tool_step(0, 9_000), *talk(20)]


@pytest.mark.parametrize("messages", [talk(60), WITH_A_RESULT])
def test_the_tier_never_gets_worse_as_the_window_grows(messages):
    """R-107, R-109, R-115 [decided]: windows from 4k to 128k in steps of 500.

    Tier 0 is best, and no window needs tier 4.
    """
    tiers = []
    for window in range(4_000, 128_001, 500):
        size = "s" * 4 * (window // 20)
        tiers.append(prepare(messages, window, summary=size)["result"]["tier"])
    assert tiers == sorted(tiers, reverse=True)
    assert tiers[-1] == 0
    assert 4 not in tiers


@pytest.mark.parametrize(("extra", "tier"), [(0, 1), (1, 2)])
def test_tier_1_wins_exactly_when_its_result_is_within_the_budget(extra, tier):
    """R-107, R-115 [decided]: the budget is 90 % of the window for the whole request."""
    window = 30_000
    fit = room(window, 100)
    assert fit == 26_900
    tail = talk(2)
    stripped = -(-len("[Tool result truncated \u2014 originally 40000 chars]") // 4)
    call = tokens(tool_step(0, 0))
    filler = fit + extra - tokens(tail) - stripped - call
    messages = [system(), {"role": "user", "content": "f" * filler * 4}, *tool_step(0, 40_000), *tail]
    assert prepare(messages, window)["result"]["tier"] == tier


def test_a_manual_run_works_below_the_trigger_and_writes_a_summary():
    """R-145: the result of tier 1 alone is not a summary; the other tiers work on it (R-119)."""
    messages = [system(), {"role": "user", "content": "go"}, *tool_step(0, 4000), *talk(3)]
    answer = prepare(messages, 100_000, manual=True)
    assert (answer["result"]["tier"], answer["result"]["warningLevel"]) == (2, "none")
    failed = prepare(messages, 100_000, manual=True, summary_error="no model")
    assert failed["result"]["tier"] == 4
    talked = prepare([system(), *talk(10)], 100_000, manual=True)
    assert talked["result"]["tier"] == 2


def test_a_manual_summary_is_written_from_stripped_results():
    """R-119, R-145: a long result is not sent to the model."""
    messages = [system(), {"role": "user", "content": "go"}, *tool_step(0, 4000), *talk(3)]
    _, asked = run(read_objects(messages, "test").messages, 100_000, policy=load_policy("codebuddy"), manual=True)
    assert "originally 4000 chars" in asked[0].request.prompt


@pytest.mark.parametrize(("count", "compacted"), [(5, False), (6, True)])
def test_a_manual_run_needs_six_messages(count, compacted):
    """R-145: the system prompt does not count; the message is the document's."""
    answer = prepare([system(), *talk(3)[:count]], 100_000, manual=True)
    assert answer["result"]["compacted"] is compacted
    if not compacted:
        skipped = next(event for event in answer["events"] if event["type"] == "compaction_skipped")
        assert skipped["reason"] == "not_enough_messages"
        assert skipped["detail"] == "not enough messages (minimum 6)"


def test_the_system_prompt_counts_against_the_budget_and_stays():
    """R-111: the actual tokens of the system prompt count in the trigger and in the budget."""
    messages = [system(4 * 10_000), *talk(60)]
    window = window_at(messages, 0.95)
    answer = prepare(messages, window, summary="s" * 4 * (room(window, 10_000) - 450))
    assert answer["result"]["tier"] == 2
    assert answer["messages"][0] == messages[0]
    assert prepare(messages, window, summary="s" * 4 * (room(window, 10_000) + 1))["result"]["tier"] == 4


def test_an_old_summary_is_read_by_the_next_one_and_replaced():
    """R-129, K10: at most one summary lives."""
    messages = [system(), *talk(60)]
    first = prepare(messages, window_at(messages, 0.95))["messages"]
    again = [*first, *talk(60)]
    answer = prepare(again, window_at(again, 0.95), summary="Second.")
    summaries = [m for m in answer["messages"] if m.get("meta", {}).get("tag") == "compact_summary"]
    assert [m["content"] for m in summaries] == [HEADER.format(121) + "Second."]


def test_a_plain_description_keeps_the_content_of_the_old_summary():
    """Lesson 14: without a model the facts of the last summary are not lost."""
    messages = [system(), *talk(60)]
    first = prepare(messages, window_at(messages, 0.95))["messages"]
    again = [*first, *talk(60)]
    answer = prepare(again, window_at(again, 0.95), summary_error="down")
    assert answer["result"]["tier"] == 4
    assert f"\n\nEarlier summary:\n{SUMMARY}\n\n{QUOTES_HEADING}\n" in answer["messages"][1]["content"]


def test_the_trigger_can_be_the_budget_as_in_the_source():
    """R-108: `trigger_rule = budget` is expressed by our trigger table; in this chat it fires at 71 %."""
    messages = [system(), *talk(95)]
    assert tokens(messages[1:]) == 19_000
    options = {"compaction.trigger": {"at": 1.0, "measure": "messages", "basis": "budget", "op": ">"}}
    assert [budget(window, 100) for window in (26_996, 26_995)] == [19_000, 18_999]
    assert prepare(messages, 26_995)["result"]["compacted"] is False
    assert prepare(messages, 26_996, set=options)["result"]["compacted"] is False
    assert prepare(messages, 26_995, set=options)["result"]["compacted"] is True


def test_the_options_of_the_policy_reach_their_strategies():
    """The number of kept messages, and the size of a large result."""
    messages = [system(), *talk(60)]
    kept = prepare(messages, window_at(messages, 0.95), set={"compaction.keep_messages": 6})["messages"]
    assert kept[2:] == messages[-6:]
    stripped = [{"role": "user", "content": "go"}, *[m for i in range(40) for m in tool_step(i, 400)]]
    options = {"tool_strip.min_size": 400}
    assert prepare(stripped, window_at(stripped, 0.95), set=options)["result"]["tier"] != 1


def test_a_users_own_policy_can_extend_it():
    """R-108: the source's rule can be a policy, and single values of nested tables can be changed."""
    rule = {"at": 1.0, "measure": "messages", "basis": "budget", "op": ">"}
    own = {"mine": {"extends": "codebuddy", "compaction.trigger": rule, "compaction.chunk": {"max_tokens": 9000}}}
    policy = load_policy("mine", own, "policies")
    (stage,) = policy.stages
    assert (stage.trigger.basis, stage.trigger.op) == ("budget", ">")
    chunk = next(step.params.chunk for step in stage.tiers[1].steps if step.use == "summarize_chunked")
    assert (chunk.max_tokens, chunk.ratio) == (9000, 0.4)


def test_a_step_can_be_optional():
    """An error names the key; the policy converts back to the same table."""
    table = policy_to_table(load_policy("codebuddy"))
    tiers = table["stage"][0]["tier"]
    assert [step.get("optional", False) for step in tiers[0]["step"]] == [True, True]
    assert not any(step.get("optional", False) for step in tiers[1]["step"])
    tiers[0]["step"][0]["optional"] = "perhaps"
    with pytest.raises(ConfigError, match=r"tier\[1\]\.step\[1\]\.optional"):
        policy_from_table(table, "policies.mine")
