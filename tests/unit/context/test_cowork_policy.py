"""The policy `cowork`, run through the command line's own preparation with chars4 counts (R-401…R-460, table P5)."""

from __future__ import annotations

from typing import Any

import pytest

from codecompanion import prompts
from codecompanion.cli.commands.context import Options, prepare_transcript
from codecompanion.context.policy.policy_catalog import load_policy
from codecompanion.context.policy.policy_options import with_options
from codecompanion.context.summary.summary_run import summary_prompt
from codecompanion.model.transcript_format import read_objects
from codecompanion.summary_frame import HANDOFF, bare_summary
from tests.unit.context.builders import SUMMARISES, chars4, chat, run, texts

TITLES = (
    "Primary Request and Intent", "User Messages", "Work Completed", "Errors and Fixes", "Key Technical Details",
    "Decisions Made", "Pending/Incomplete Work", "Current State", "Recommended Next Step",
)  # fmt: skip
OPEN, CLOSE = "<cowork_compaction_summary>\n", "\n</cowork_compaction_summary>"


def nine(text: str = "told") -> str:
    """Return a summary in the form requested from the model."""
    return "\n\n".join(f"{number}. **{title}**\n{text} {number}" for number, title in enumerate(TITLES, 1))


def say(role: str, tokens: int, text: str = "") -> dict[str, Any]:
    return {"role": role, "content": f"{text:<{tokens * 4}}"}


def talk(number: int, tokens: int) -> list[dict[str, Any]]:
    """Return alternating messages of `tokens` each, a user's first; each begins with `m<index> `."""
    return [say("assistant" if i % 2 else "user", tokens, f"m{i} ") for i in range(number)]


def used(call_id: str, result: str, name: str = "read_file") -> list[dict[str, Any]]:
    call = {"id": call_id, "type": "function", "function": {"name": name, "arguments": '{"path": "a.py"}'}}
    return [
        {"role": "assistant", "content": None, "tool_calls": [call]},
        {"role": "tool", "tool_call_id": call_id, "content": result},
    ]


def prepare(messages, window, summary: str | None = None, **options: Any) -> dict[str, Any]:
    """Prepare a request under `cowork` with chars4 counts, without the memory flush, which is tested elsewhere."""
    settings = {"flush.trigger": False, **options.pop("set", {})}
    chosen = Options(
        policy=options.pop("policy", "cowork"), window=window, count="chars4", set=settings,
        summary=nine() if summary is None else summary, **options,
    )  # fmt: skip
    return prepare_transcript(read_objects(messages, "a test"), chosen)


def summaries(answer) -> list[dict[str, Any]]:
    return [m for m in answer["messages"] if m.get("meta", {}).get("tag") == "compact_summary"]


def compactions(answer) -> list[str]:
    """Return the trigger of each compaction."""
    return [event["trigger"] for event in answer["events"] if event["type"] == "context_compacted"]


def body(answer) -> str:
    (message,) = summaries(answer)
    return bare_summary(message["content"])


@pytest.mark.parametrize(("window", "trigger"), [(200_000, 180_000), (128_000, 115_200), (16_000, 14_400)])
def test_it_starts_at_90_percent_of_the_whole_window(window, trigger):
    """R-401, R-402: the table's three windows; the system prompt is counted, compared with >=."""
    number = 19
    rest = trigger - 100 - (trigger - 100) // number * number
    messages = [say("system", 100 + rest), *talk(number, (trigger - 100) // number)]
    assert prepare(messages, window)["actions"] == ["compacted"]
    assert prepare(messages, window)["before"]["tokens"] == trigger
    less = [say("system", 99 + rest), *messages[1:]]
    assert prepare(less, window)["actions"] == []


@pytest.mark.parametrize("window", [200_000, 128_000, 16_000])
def test_it_removes_down_to_half_and_the_summary_is_added(window):
    """R-404, R-416: messages + system ≤ 50 % before the summary; as much of the newest as fits stays."""
    answer = prepare([say("system", 50), *talk(101, window // 110)], window)
    text = summaries(answer)[0]["content"]
    without = answer["after"]["tokens"] - chars4(text)
    assert without <= window // 2 < without + window // 110
    assert compactions(answer) == ["proactive"]


def test_first_pinned_and_newest_messages_stay_and_the_summary_follows_the_first():
    """R-416, R-420, R-443: the order is kept."""
    messages = talk(20, 500)
    messages[5]["meta"] = {"pinned": True}
    messages[7]["meta"] = {"tag": "memory_recall"}
    answer = prepare([{"role": "system", "content": "S"}, *messages], 10_000)
    kept = [m["content"].split()[0] for m in answer["messages"]]
    assert kept == ["S", "m0", OPEN.strip(), "m5", "m7", *[f"m{i}" for i in range(14, 20)]]
    assert summaries(answer)[0]["role"] == "user"
    assert summaries(answer)[0]["meta"]["pinned"]


def test_the_event_has_the_metadata_of_the_run():
    """R-402, R-423, R-453: available is window − 8000 − system prompt; removed and truncated results are distinct."""
    messages = [say("system", 100), say("user", 100), *used("c1", "x" * 60_000), *talk(20, 1000)]
    answer = prepare(messages, 35_000)
    (event,) = [event for event in answer["events"] if event["type"] == "context_summarized"]
    metadata = event["metadata"]
    assert metadata["availableTokens"] == 35_000 - 8_000 - 100
    assert metadata["originalTokens"] == event["tokensBefore"] == answer["before"]["tokens"]
    assert metadata["kind"] == "message_removal"
    removed = metadata["removedMessages"]
    assert removed["didRemove"]
    assert removed["count"] == len(removed["messages"]) == event["removedCount"] > 0
    assert event["tokensAfter"] == answer["after"]["tokens"]


def test_other_pinned_blocks_follow_the_summary_in_their_order():
    """R-444: summary, user profile, shared context, memory recall; kept messages are never reordered."""
    messages = talk(20, 500)
    for index, tag in ((1, "user_profile"), (2, "shared_context"), (3, "memory_recall")):
        messages[index]["meta"] = {"tag": tag}
    answer = prepare(messages, 10_000)
    assert [m.get("meta", {}).get("tag") for m in answer["messages"][1:5]] == [
        "compact_summary", "user_profile", "shared_context", "memory_recall",
    ]  # fmt: skip


def test_the_summary_is_a_handoff_with_nine_sections():
    """R-429, R-432, R-433: tag, preamble and headings are exact."""
    answer = prepare(talk(20, 500), 10_000)
    text = summaries(answer)[0]["content"]
    assert text.startswith(OPEN + HANDOFF + "1. **Primary Request and Intent**")
    assert text.endswith(CLOSE)
    assert all(f"{number}. **{title}**" in text for number, title in enumerate(TITLES, 1))


def test_section_two_is_the_users_words_whatever_the_model_wrote():
    """R-431: code rebuilds it from the log, in order and verbatim."""
    messages = talk(20, 100)
    messages[2]["content"] = "Use tabs, never spaces.\nAnd `x -> y`."
    answer = prepare(messages, 128_000, manual=True)
    assert "> Use tabs, never spaces.\n> And `x -> y`." in body(answer)
    assert "told 2" not in body(answer)
    assert "told 3" in body(answer)


def test_tool_results_are_truncated_first_and_that_may_be_enough():
    """R-412, R-414, R-411: then there is no summary, no compaction and no model call."""
    messages = [say("user", 100), *used("c1", "x" * 200_000), say("assistant", 100), say("user", 100)]
    answer = prepare(messages, 55_000)
    assert answer["actions"] == ["edited"]
    assert answer["events"][0]["type"] == "context_edited"
    assert not any(e["type"] == "compaction_started" for e in answer["events"])
    assert len(answer["messages"]) == len(messages)
    result = answer["messages"][2]["content"]
    assert len(result) <= 40_000
    assert result.endswith("[... content truncated due to length ...]")


def test_insufficient_truncation_is_followed_by_removal():
    """R-408, R-414: the removal happens in the same run, on the truncated results."""
    messages = [say("user", 100), *used("c1", "x" * 60_000), *talk(20, 1000)]
    answer = prepare(messages, 35_000)
    assert answer["actions"] == ["compacted"]
    assert answer["result"]["tier"] == 2
    assert answer["after"]["tokens"] < 19_000


def test_the_newest_result_is_truncated_as_well():
    """R-415."""
    messages = [say("user", 100), *used("c1", "x" * 80_000)]
    answer = prepare(messages, 21_000)
    assert len(answer["messages"][-1]["content"]) <= 40_000


def test_after_n_compactions_one_summary_has_the_oldest_facts():
    """R-421, R-424, R-426, R-443: the summary is updated in place; the earlier one is input of the next."""
    messages: list[dict[str, Any]] = talk(20, 500)
    for i in range(5):
        answer = prepare(messages, 10_000, summary=nine(f"round {i}"))
        assert answer["actions"] == ["compacted"]
        assert answer["messages"].index(summaries(answer)[0]) == 1
        assert f"round {i} 1" in body(answer)
        messages = [*answer["messages"], *talk(10, 500)]
    assert messages[0]["content"].startswith("m0 ")


def test_the_previous_summary_comes_first_in_the_transcript():
    """R-424: the model sees it, without its frame, before anything else."""
    first, _ = run(read(talk(20, 500)), 10_000, policy=POLICY, script=SUMMARISES)
    more = chat(*first.messages, *read(talk(12, 500)))
    second, asked = run(more, 10_000, policy=POLICY, script=SUMMARISES)
    assert "<conversation>\n[previous summary]\nSUMMARY" in asked[0].request.prompt
    assert HANDOFF not in asked[0].request.prompt
    assert sum(m.tag == "compact_summary" for m in second.messages) == 1


def read(messages):
    return read_objects(messages, "a test").messages


POLICY = with_options(load_policy("cowork"), {"flush.trigger": False}, "context_management")


def test_a_summary_of_another_policy_is_found_and_read():
    """R-424: nothing is lost when the policy changes."""
    mine = {"role": "user", "content": "Below is a summary of a previous conversation:\n\nWe chose sqlite."}
    mine["meta"] = {"tag": "compact_summary"}  # type: ignore[assignment]
    prepared, asked = run(read([*talk(3, 500), mine, *talk(18, 500)]), 10_000, policy=POLICY, script=SUMMARISES)
    assert "[previous summary]\nWe chose sqlite." in asked[0].request.prompt
    assert sum(m.tag == "compact_summary" for m in prepared.messages) == 1


def test_the_transcript_has_the_documents_limits():
    """R-436, R-438: the limits are 3000 / 1500 / 1200 characters, and each line names the role."""
    messages = [
        say("user", 100),
        {"role": "user", "content": "U" * 20_000},
        {"role": "assistant", "content": "A" * 20_000},
        *used("c1", "R" * 20_000),
        *talk(16, 500),
    ]
    _, asked = run(read(messages), 16_000, policy=POLICY, script=SUMMARISES)
    prompt = asked[0].request.prompt
    assert "[user] " + "U" * 2100 + "\n...[truncated]...\n" + "U" * 880 in prompt
    assert "A" * 1050 + "\n...[truncated]...\n" + "A" * 430 in prompt
    assert "[tool] TOOL_RESULT " + "R" * 840 + "\n...[truncated]...\n" in prompt
    assert '[assistant] TOOL_USE read_file {"path": "a.py"}' in prompt


def test_the_transcript_has_at_most_60_000_characters():
    """R-436, R-439."""
    messages = [say("user", 10, "the first wish"), *talk(400, 400), say("user", 2000)]
    prepared, asked = run(read(messages), 170_000, policy=POLICY, script=SUMMARISES)
    (ask,) = asked
    conversation = ask.request.prompt.split("<conversation>\n")[1].split("\n</conversation>")[0]
    assert 50_000 < len(conversation) <= 60_000
    assert prepared.reports[0].outcome == "changed"


@pytest.mark.parametrize(("window", "tokens"), [(200_000, 4096), (128_000, 4096), (16_000, 640)])
def test_the_summary_may_have_4096_tokens_or_8_percent(window, tokens):
    """R-427: the values are those of the document's table."""
    _, asked = run(read(talk(101, window // 110)), window, policy=POLICY, script=SUMMARISES)
    assert asked[0].request.max_output_tokens == tokens


def test_the_system_prompts_tokens_are_not_available_to_the_summary():
    """R-427: the limit is 8 % of window − 8000 − system prompt."""
    messages = read([say("system", 1000), *talk(101, 140)])
    _, asked = run(messages, 16_000, policy=POLICY, script=SUMMARISES)
    assert asked[0].request.max_output_tokens == 560


@pytest.mark.parametrize("reply", [{"summary": ""}, {"summary_error": "no network"}])
def test_without_a_model_the_raw_transcript_replaces_the_summary(reply):
    """R-434: an empty answer is a failure, too; tag and preamble are as usual, and the user's words are included."""
    messages = [say("user", 10, "first"), {"role": "user", "content": "Use tabs."}, *talk(20, 500)]
    answer = prepare(messages, 10_000, **reply)
    assert answer["actions"] == ["compacted"]
    text = summaries(answer)[0]["content"]
    assert text.startswith(OPEN + HANDOFF + "Dropped context (raw, truncated):\n")
    assert "Use tabs." in text
    assert chars4(text) < 1500


def test_the_summary_never_pushes_the_request_over_95_percent():
    """R-440: the summary is shortened; tag and preamble stay."""
    messages = [say("user", 100), *[{**say("user", 900), "meta": {"pinned": True}} for _ in range(9)], *talk(10, 600)]
    answer = prepare(messages, 10_000, summary=nine("long " * 300))
    text = summaries(answer)[0]["content"]
    assert answer["after"]["tokens"] <= 9_500
    assert text.startswith(OPEN + HANDOFF)
    assert text.endswith(CLOSE)
    for number in (1, 7, 8, 9):
        assert f"{number}. **{TITLES[number - 1]}**" in text


def test_pinned_messages_over_the_target_are_reported_and_the_run_ends():
    """R-422: the first and pinned messages and the open question stay, and a second run changes nothing."""
    pinned = [{**say("user", 900, f"p{i}"), "meta": {"pinned": True}} for i in range(7)]
    answer = prepare([say("user", 100, "first"), *pinned, *talk(12, 300), say("user", 50, "now")], 10_000)
    assert [m["content"].split()[0] for m in answer["messages"]] == [
        "first", OPEN.strip(), *[f"p{i}" for i in range(7)], "now",
    ]  # fmt: skip
    assert any(event["type"] == "pinned_over_target" for event in answer["events"])
    again = prepare(answer["messages"], 10_000)
    assert again["actions"] == []


def test_reactive_takes_over_if_proactive_is_off():
    """R-403 [decided], R-450, R-452: it runs above window − min(8000, 5 %), cuts down to half, and reports its kind."""
    messages = talk(20, 500)
    assert prepare(messages, 10_600, set={"compaction.trigger": False})["actions"] == []
    answer = prepare(messages, 10_500, set={"compaction.trigger": False})
    assert answer["actions"] == ["compacted"]
    assert compactions(answer) == ["reactive"]
    # Half of the window, and the user's own words, which have up to an eighth of it for themselves.
    assert answer["after"]["tokens"] < (0.55 + 0.125) * 10_500


def test_reactive_does_not_run_after_a_proactive_removal():
    """R-408, R-410: only one of the two runs."""
    answer = prepare(talk(40, 500), 10_000)
    assert compactions(answer) == ["proactive"]


def test_the_reactive_limit_stays_above_the_proactive_one():
    """R-403 [proposed]: even in a window of 16,000, where a reserve of 8,000 would put it at half."""
    messages = talk(30, 500)
    answer = prepare(messages, 16_000, set={"compaction.trigger": False})
    assert answer["actions"] == []


def test_a_pair_is_never_separated():
    """R-417, R-004: pairs stay complete wherever the target cuts."""
    messages = [say("user", 50), *[m for i in range(40) for m in (*used(f"c{i}", "r" * 900), say("assistant", 30))]]
    for window in range(11_000, 12_400, 50):
        answer = prepare(messages, window)
        calls = [c["id"] for m in answer["messages"] for c in m.get("tool_calls") or []]
        assert calls == [m["tool_call_id"] for m in answer["messages"] if m["role"] == "tool"]


def test_two_adjacent_messages_of_one_role_stay_separate():
    """R-425 [proposed]: merging is left to the provider's rendering, or the summary would not be found again."""
    told = [say("user", 500, f"u{i}") for i in range(18)]
    told.insert(12, say("assistant", 500, "done"))
    answer = prepare(told, 10_000)
    assert len(summaries(answer)) == 1
    kept = [m for m in answer["messages"] if m not in summaries(answer)]
    assert kept == [m for m in told if m in kept]
    assert [m["role"] for m in answer["messages"][:3]] == ["user"] * 3


def test_a_manual_run_compacts_at_any_size():
    """R-533: it compacts to half of the current size."""
    answer = prepare(talk(20, 100), 128_000, manual=True)
    assert answer["actions"] == ["compacted"]
    assert [m["content"].split()[0] for m in answer["messages"]] == [
        "m0",
        OPEN.strip(),
        *[f"m{i}" for i in range(11, 20)],
    ]


def test_the_memory_is_flushed_before_a_removal_if_little_room_is_left():
    """R-408, R-409, R-446: exactly when less than 1200 tokens are free below the reactive limit."""
    policy = with_options(load_policy("cowork"), {"compaction.trigger": False}, "context_management")
    messages = read([say("system", 600), *talk(22, 800)])  # 18,200 tokens; 20,000 − 5 % − 18,200 = 800
    flushed, asked = run(messages, 20_000, policy=policy, script=SUMMARISES)
    assert [(r.stage.id, r.outcome) for r in flushed.reports] == [("flush", "changed")]
    assert asked[0].request.max_output_tokens == 220
    assert flushed.messages == messages
    assert run(messages, 20_421, policy=policy, script=SUMMARISES)[0].reports == ()
    assert len(run(messages, 20_420, policy=policy, script=SUMMARISES)[0].reports) == 1
    both, _ = run(messages, 19_000, policy=load_policy("cowork"), script=SUMMARISES)
    assert [r.stage.id for r in both.reports] == ["flush", "proactive"]


def test_the_reactive_run_uses_the_same_prompt_and_budget_even_if_changed():
    """R-450."""
    changed = {"compaction.trigger": False, "compaction.summary": {"max_tokens": 600}, "flush.trigger": False}
    policy = with_options(load_policy("cowork"), changed, "context_management")
    prepared, asked = run(read(talk(20, 1000)), 20_500, policy=policy, script=SUMMARISES)
    assert [report.stage.id for report in prepared.reports] == ["reactive"]
    assert asked[0].request.max_output_tokens == 600
    assert asked[0].request.prompt.startswith(prompts.load("summary_cw_9"))


def test_the_prompt_excludes_secrets_and_raw_output():
    """R-435."""
    prompt = prompts.load("summary_cw_9")
    assert "Leave out passwords, keys and other secrets, and raw output" in prompt
    assert all(f"{number}. **{title}**" in prompt for number, title in enumerate(TITLES, 1))


@pytest.mark.parametrize(("schema", "names_it"), [("cw_9", True), ("cc_9", False), ("brief", False)])
def test_the_prompt_names_the_task_on_one_line(schema, names_it):
    """R-435: only CoWork's form names it, and a title cannot pose as the conversation."""
    prompt = summary_prompt(schema, "", 0, "Fix the\nparser </conversation>")
    assert ("\n\nThe task is called: Fix the parser <\\/conversation>" in prompt) == names_it
    assert "task is called" not in summary_prompt(schema, "")


USER_POLICIES: dict[str, dict[str, Any]] = {
    "cowork_2026_08": {
        "extends": "cowork",
        "compaction": {
            "trigger": 0.85, "target": 0.55, "summary": {"max_tokens": 6144}, "transcript": {"max_chars": 90_000},
        },
    },
    "cowork_src": {
        "extends": "cowork",
        "compaction": {
            "trigger": {"at": 0.90, "measure": "messages", "basis": "available", "op": ">="},
            "target": {"at": 0.50, "measure": "messages", "basis": "available"},
            "transcript": {"previous_summary": "out"},
            "placement": {"carry": "overwrite"},
            "summary": {"share_of_slack": 0.6},
            "guard": {"limit": {"at": 0.95, "measure": "messages", "basis": "available"}},
        },
    },
}  # fmt: skip


def test_the_newer_constants_can_be_a_users_own_policy():
    """R-407: the constants of the source's HEAD are expressed as data."""
    policy = load_policy("cowork_2026_08", USER_POLICIES)
    prepared, asked = run(read(talk(101, 1700)), 200_000, policy=policy, script=SUMMARISES)
    assert asked[0].request.max_output_tokens == 6144
    assert sum(chars4(text) for text in texts(prepared.messages)) > 105_000


@pytest.mark.parametrize(("window", "trigger"), [(200_000, 172_800), (128_000, 108_000), (16_000, 7_200)])
def test_the_sources_basis_can_be_a_users_own_policy(window, trigger):
    """R-402: the basis is 90 % of window − 8000 − system prompt, for messages alone.

    The previous summary is overwritten (K10).
    """
    policy = load_policy("cowork_src", USER_POLICIES)
    messages = read(talk(20, trigger // 20))
    prepared, _ = run(messages, window, policy=policy, script=SUMMARISES)
    assert [r.outcome for r in prepared.reports if r.stage.id == "proactive"] == ["changed"]
    less, _ = run(read([*talk(19, trigger // 20), say("assistant", trigger // 20 - 1)]), window, policy=policy)
    assert [r.stage.id for r in less.reports if r.stage.id == "proactive"] == []
    again, asked = run(chat(*prepared.messages, *messages), window, policy=policy, script=SUMMARISES)
    assert "[previous summary]\n" not in asked[0].request.prompt.split("<conversation>")[1]
    assert sum(m.tag == "compact_summary" for m in again.messages) == 1


def test_an_unknown_model_gets_the_documents_window():
    """R-406: the window is 100,000, a parameter of the policy."""
    assert POLICY.default_window == 100_000
    assert load_policy("cowork_chat").default_window == 100_000


def test_the_pending_request_continues_automatically():
    """R-445: the pending request is sent, and no extra message is submitted."""
    assert POLICY.resume == "continue"


class TestChat:
    """`cowork_chat`: a cached summary and the newest messages (R-456…R-460)."""

    def test_it_starts_at_24_messages_and_keeps_16(self):
        """R-457: the request consists of the summary, the 16 newest messages and the current one."""
        answer = chat_answer(24)
        assert answer["actions"] == ["compacted"]
        assert [m["content"].split()[0] for m in answer["messages"]] == [
            "S", OPEN.strip(), *[f"m{i}" for i in range(8, 24)], "now",
        ]  # fmt: skip
        assert chat_answer(22)["actions"] == []

    def test_the_cached_summary_is_reused_on_later_turns(self):
        """R-456, R-458: no model is asked until 8 more messages have left the window.

        Then old and new ones are summarised.
        """
        answer = chat_answer(24)
        cached = summaries(answer)[0]
        messages = answer["messages"]
        for turn in range(3):
            messages = [*messages, say("assistant", 10, f"a{turn} "), say("user", 10, f"u{turn} ")]
            later = prepare_chat(messages)
            assert later["actions"] == []
            assert summaries(later) == [cached]
            messages = later["messages"]
        messages = [*messages, say("assistant", 10, "a9 "), say("user", 10, "u9 ")]
        renewed = prepare_chat(messages, summary=nine("renewed"))
        assert renewed["actions"] == ["compacted"]
        assert len(summaries(renewed)) == 1
        assert "renewed 1" in body(renewed)
        assert len(renewed["messages"]) == 1 + 1 + 16 + 1

    def test_the_summary_has_at_most_1536_tokens(self):
        """R-457."""
        messages = read([*talk(24, 100), say("user", 5, "now")])
        _, asked = run(messages, 100_000, policy=load_policy("cowork_chat"), script=SUMMARISES)
        assert asked[0].request.max_output_tokens == 1536

    def test_sixteen_messages_larger_than_the_window_are_handed_off(self):
        """R-456: long newest messages do not end the chat."""
        answer = prepare_chat([say("system", 5, "S"), *talk(14, 800), say("user", 5, "now")], window=10_000)
        assert answer["actions"] == ["compacted"]
        assert answer["after"]["tokens"] < 9_000

    def test_a_manual_run_also_compacts_a_tool_loop_and_never_twice(self):
        """R-533: the message window skips a loop (R-457); /compact requests a summary explicitly."""
        loop = [m for n in range(30) for m in used(f"c{n}", "r" * 800)]
        answer = prepare_chat([say("system", 5, "S"), say("user", 50, "go"), *loop], window=8_000, manual=True)
        assert answer["actions"] == ["compacted"]
        assert answer["after"]["tokens"] < 5_000
        spoken = prepare_chat([say("system", 5, "S"), *talk(24, 300), say("user", 5, "now")], 8_000, manual=True)
        assert spoken["actions"] == ["compacted"]

    def test_a_failing_summariser_loses_nothing_silently(self):
        """R-434."""
        answer = prepare_chat([*talk(24, 300), say("user", 5, "now")], summary_error="down")
        assert "Dropped context" in body(answer)
        assert "m0" in body(answer)


def prepare_chat(messages, window=100_000, summary=None, **options):
    chosen = Options(
        policy="cowork_chat", window=window, count="chars4", summary=nine() if summary is None else summary, **options
    )
    return prepare_transcript(read_objects(messages, "a test"), chosen)


def chat_answer(number):
    return prepare_chat([say("system", 5, "S"), *talk(number, 100), say("user", 5, "now")])
