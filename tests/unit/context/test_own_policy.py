"""A user's own policy, written only with `doc/dev/how-to/policy.md`, works as described."""

from __future__ import annotations

from typing import Any

from codecompanion.context.policy.policy_catalog import load_policy
from codecompanion.context.work import SummaryReply
from codecompanion.model.messages import SUMMARY_TAG
from codecompanion.placeholders import TOOL_RESULT_CLEARED
from tests.unit.context.builders import assistant, chat, count, run, turns, user

# Of a reviewer: results of earlier turns go at once if that frees 500 tokens, at 60,000 tokens all but the newest six
# messages is summarised, and when the window is nearly full all of it, by code.
REVIEWER: dict[str, Any] = {
    "extends": "codecompanion",
    "description": "Forget what earlier turns read; keep the newest words.",
    "steps": {
        "write": [
            {"use": "format_transcript", "max_chars": 40_000},
            {"use": "summarize_one", "schema": "cc_9", "max_tokens": "2k"},
            {"use": "quote_user_messages"},
            {"use": "insert_summary", "place": "history_head"},
        ],
    },
    "stage": [
        {
            "id": "editing",
            "event": "context_edited",
            "trigger": {"always": True},
            "step": [
                {"use": "clear_tool_results", "older_than": {"unit": "turns", "count": 0}},
                {"use": "require_savings", "automatic": 500},
            ],
        },
        {
            "id": "compaction",
            "event": "context_compacted",
            "trigger": {"tokens": "60k"},
            "target": {"at": 0.5},
            "manual": True,
            "tier": [
                {
                    "id": "newest",
                    "accept": "target",
                    "on_fail": ["summarize_raw"],
                    "step": [{"use": "select_window", "count": 6}, {"steps": "write"}],
                },
                {"id": "nothing", "step": [{"use": "select_window"}, {"steps": "write"}]},
            ],
        },
        {"id": "late", "like": "compaction", "trigger": {"at": 0.95, "op": ">"}, "unless": ["compaction"]},
    ],
}
POLICY = load_policy("reviewer", {"reviewer": REVIEWER})


def sessions(turns_: int, size: int) -> Any:
    return chat(*turns(turns_, size), user("and now?"))


def test_results_of_earlier_turns_are_cleared_at_any_size_once_it_pays() -> None:
    little, much = sessions(2, 400), sessions(2, 4000)
    for messages, cleared in ((little, 0), (much, 2)):
        prepared, asked = run(messages, 1_000_000, policy=POLICY)
        assert sum(message.content == TOOL_RESULT_CLEARED for message in prepared.messages) == cleared
        assert not asked


def talk(tokens: int) -> Any:
    """Return a chat without tools of about that many tokens."""
    size = tokens // 40
    words = [m for i in range(20) for m in (user(f"q{i} " + "x" * 4 * size), assistant(f"a{i} " + "y" * 4 * size))]
    return chat(*words, user("and now?"))


def test_the_summary_starts_at_a_fixed_token_count_in_any_window() -> None:
    small, large = talk(59_000), talk(61_000)
    assert sum(map(count, small)) < 60_000 <= sum(map(count, large))
    for window in (100_000, 1_000_000):
        assert run(small, window, policy=POLICY)[0].messages == small
        prepared, asked = run(large, window, policy=POLICY)
        assert [report.stage.id for report in prepared.reports if report.outcome == "changed"] == ["compaction"]
        assert asked[0].request.max_output_tokens <= 2_000
        assert prepared.messages[0].tag == SUMMARY_TAG
        assert prepared.messages[-1].text == "and now?"


def test_after_a_failing_model_the_next_named_one_writes() -> None:
    prepared, _ = run(talk(61_000), 1_000_000, policy=POLICY, script=lambda ask: SummaryReply(error="down"))
    assert [(report.stage.id, report.outcome) for report in prepared.reports][-1] == ("compaction", "changed")


def test_options_of_replaced_stages_are_those_that_still_apply() -> None:
    """`keep_cycles` still belongs to a step; the minimum savings of a compaction are no longer an option."""
    assert set(POLICY.options) == {
        "editing.trigger", "editing.keep_cycles", "editing.exclude_tools", "compaction.trigger"
    }  # fmt: skip
