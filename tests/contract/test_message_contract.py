"""Invariants of every message and every run, tested through `context`: R-001, R-515, R-517, R-545, R-548, R-551."""

from __future__ import annotations

import msgspec
import pytest

from codecompanion.context.change import view_change
from codecompanion.context.policy.policy_catalog import load_policy
from codecompanion.context.policy.policy_options import with_options
from codecompanion.context.work import SummaryReply
from codecompanion.model.history import ChangeUndone, LogEvent, MessageAdded
from codecompanion.model.messages import TAGS, Message
from codecompanion.model.view import project
from codecompanion.placeholders import SUMMARY_PREFIX
from tests.contract.test_context_command import call, chat, jobs
from tests.unit.context import builders


def test_a_message_has_the_fields_of_the_model():
    """R-001: a message cannot be changed in place."""
    wanted = (
        "id role content tool_calls tool_call_id cycle turn_id tag pinned is_error edited compacted visible ts tokens"
    )
    assert set(wanted.split()) <= set(Message.__struct_fields__)
    with pytest.raises(AttributeError):
        Message(id="a", role="user").content = "b"


def test_the_tags_are_those_of_the_reference():
    """R-548."""
    assert {"buffer", "compact_summary", "file", "image", "rules", "tool_system_prompt", "viewport"} <= TAGS
    assert len(TAGS) == 17


def test_a_manual_run_compacts_and_does_not_edit():
    """R-515: editing has no manual command."""
    options = {"manual": True, "window": 10**6, "summary": "", "count": "chars4", "set": {"editing.trigger": 2}}
    _, [answer], _ = jobs({"messages": chat(6), "options": options})
    assert answer["actions"] == []
    assert answer["messages"] == chat(6)


def test_item_ids_and_call_ids_share_one_id_space():
    """R-517: a result whose id differs from that of its call is dropped, and the call gets a substitute result."""
    messages = [{"role": "user", "content": "q"},
                {"role": "assistant", "content": None, "tool_calls": [call("call_1")]},
                {"role": "tool", "tool_call_id": "fc_1", "content": "r"}]  # fmt: skip
    _, [answer], _ = jobs({"messages": messages})
    assert [m.get("tool_call_id") for m in answer["messages"]] == [None, None, "call_1"]


def test_a_logged_compaction_can_be_undone_and_redone():
    """R-545, R-003: the log keeps the originals."""
    messages = builders.chat(*(Message(id="", role=r, content="word " * 99) for r in ("user", "assistant") * 3))
    policy = with_options(load_policy("codecompanion"), {"compaction.min_token_savings": 0}, "k")
    prepared, _ = builders.run(
        messages, 10**6, policy=policy, script=lambda ask: SummaryReply(text="S", source="caller"), manual=True
    )
    report = prepared.reports[-1]
    events = [LogEvent(i, 0.0, MessageAdded(message=m)) for i, m in enumerate(messages, 1)]
    events.append(LogEvent(90, 0.0, view_change(report, report.work, messages, "c1")))
    assert project(events).messages == prepared.messages
    events.append(LogEvent(91, 0.0, ChangeUndone(change_id="c1")))
    assert project(events).messages == messages
    events.append(LogEvent(92, 0.0, ChangeUndone(change_id="c1", redone=True)))
    assert msgspec.json.encode(project(events).messages) == msgspec.json.encode(prepared.messages)


def test_messages_typed_into_a_running_loop_stay_after_the_summary():
    """R-551: they stay live; steering a loop does not push out the loop's first request."""
    loop = chat(2)[:-1]
    loop.insert(-2, {"role": "user", "content": "but in Lua"})
    _, [answer], _ = jobs({"messages": loop, "options": {"manual": True, "summary": "S", "count": "chars4"}})
    summary = next(i for i, m in enumerate(answer["messages"]) if m["content"] == SUMMARY_PREFIX + "S")
    live = answer["messages"][summary + 1 :]
    assert [m["content"] for m in live if m["role"] == "user"] == ["q1", "but in Lua"]
