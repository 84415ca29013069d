"""Token counts of the Messages API become a `Usage` without overlaps (R-538)."""

from __future__ import annotations

from typing import Any

import pytest

from codecompanion.adapters.anthropic_messages.usage import (
    Counted,
    merge_usage,
    normalise_usage,
    read_server_edits,
)
from codecompanion.adapters.base import ServerEdit
from codecompanion.model.messages import Usage


def entry(kind: str, fresh: int, output: int, **more: int) -> dict[str, Any]:
    return {"type": kind, "input_tokens": fresh, "output_tokens": output, **more}


def test_the_prompt_is_the_input_plus_both_cache_figures() -> None:
    """In this API, `input_tokens` excludes the cache."""
    counted = normalise_usage(
        {
            "input_tokens": 5,
            "cache_read_input_tokens": 90,
            "cache_creation_input_tokens": 7,
            "output_tokens": 20,
            "output_tokens_details": {"thinking_tokens": 12},
        }
    )
    assert counted.reply == Usage(5, 20, 90, 7, 12)
    assert counted.reply.prompt_tokens == 102
    assert counted.other_passes == ()


def test_the_context_is_the_last_message_entry() -> None:
    """It is never a sum or a compaction; the other entries are billed too."""
    passes = [entry("message", 100, 1), entry("compaction", 180_000, 3_500), entry("message", 23_000, 1_000)]
    counted = normalise_usage({"input_tokens": 23_100, "output_tokens": 1_001, "iterations": passes})
    assert counted.reply == Usage(23_000, 1_000)
    assert counted.other_passes == (Usage(100, 1), Usage(180_000, 3_500))
    assert counted.compactions == (Usage(180_000, 3_500),)


def test_a_compaction_alone_has_no_reply() -> None:
    """For an on-demand compaction, or a pause after one, the top level is zero."""
    counted = normalise_usage({"input_tokens": 0, "output_tokens": 0, "iterations": [entry("compaction", 144, 276)]})
    assert counted == Counted(None, (Usage(144, 276),), (Usage(144, 276),))


def test_a_single_pass_keeps_the_details_of_the_total() -> None:
    """Entries do not report thinking separately."""
    reported = {
        **entry("", 9, 8),
        "iterations": [entry("message", 9, 8, cache_read_input_tokens=3)],
        "output_tokens_details": {"thinking_tokens": 4},
    }
    assert normalise_usage(reported).reply == Usage(9, 8, 3, 0, 4)


@pytest.mark.parametrize(
    "reported",
    [None, [], {}, {"output_tokens": -1}, {"output_tokens": 1.5}, {"input_tokens": True}, {"input_tokens": 10**13}],
)
def test_a_report_without_figures_is_none(reported: object) -> None:
    """The result is None, not zero tokens."""
    assert normalise_usage(reported) == Counted()


@pytest.mark.parametrize("passes", [None, "x", [], [3], [{"type": "message"}], [{"type": "compaction"}]])
def test_odd_iterations_leave_the_top_level(passes: object) -> None:
    """A gateway may send anything."""
    assert normalise_usage({"input_tokens": 3, "output_tokens": 4, "iterations": passes}).reply == Usage(3, 4)


def test_later_figures_replace_earlier_ones() -> None:
    """`message_delta` is cumulative, and omits unknown figures."""
    start = {"input_tokens": 10, "cache_read_input_tokens": 5, "output_tokens": 1}
    assert merge_usage(start, {"output_tokens": 9, "input_tokens": None}) == {**start, "output_tokens": 9}
    assert merge_usage(start, None) == start
    assert merge_usage(None, {"output_tokens": 9}) == {"output_tokens": 9}


def test_applied_edits_are_read() -> None:
    """They are cleared tool uses or cleared turns of thinking."""
    applied = [
        {"type": "clear_tool_uses_20250919", "cleared_input_tokens": 70, "cleared_tool_uses": 3},
        {"type": "clear_thinking_20251015", "cleared_input_tokens": 5, "cleared_thinking_turns": 2},
        "odd",
    ]
    assert read_server_edits({"applied_edits": applied}) == (
        ServerEdit("clear_tool_uses_20250919", 70, 3),
        ServerEdit("clear_thinking_20251015", 5, 2),
    )
    assert read_server_edits(None) == read_server_edits({"applied_edits": None}) == ()
