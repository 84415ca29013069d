"""The registry: every strategy in the document, with its parameters and their documented values (S1…S21)."""

from __future__ import annotations

import typing

import msgspec
import pytest

from codecompanion.context.policy.policy_catalog import load_policy, policy_names
from codecompanion.context.shape_request import Parts, shape
from codecompanion.context.strategies import SHAPERS, STRATEGIES
from codecompanion.context.strategy_parameters import SchemaName
from codecompanion.context.summary_text.sections import schema_names
from codecompanion.context.thresholds import Room, is_crossed, threshold_tokens
from codecompanion.context.work import Measure, SummaryReply
from codecompanion.formats.deferred import Deferred
from codecompanion.model.invariants import violations
from codecompanion.model.messages import Message
from tests.unit.context.builders import SUMMARISES, assistant, chars4, chat, count, env, run, texts, tool, turns, user

DOCUMENTED = {
    "S2 clear_tool_results": {
        "older_than": {"unit": "cycles", "count": 3}, "min_size": 0, "size_unit": "chars", "tools": [],
        "exclude_tools": [], "include_errors": True, "template": "tool_result_cleared", "stop_when": None,
        "only_if_shorter": True,
    },
    "S3 strip_tool_args": {
        "older_than": {"unit": "messages", "count": 4}, "min_size": 200, "placeholder": '{"_truncated": true}',
    },
    "S4 truncate_tool_results": {
        "max_tokens": 10_000, "document_max": 30_000, "json_aware": True, "array_items": 50,
    },
    "S5 replace_attachments": {"file": "file_cleared", "buffer": "buffer_cleared"},
    "S6 select_window": {
        "keep_first": False, "keep_tags": [], "unit": "messages", "count": 0, "fill": False, "active_path_share": 0.0,
        "half": False, "min_total": 0, "min_older": 0,
    },
    "S7 format_transcript": {
        "style": "xml", "caps": {"user": 0, "assistant": 0, "tool": 0, "call": 0}, "max_chars": 0,
        "previous_summary": "entry",
    },
    "S8 summarize_one": {"schema": "cc_9", "min_tokens": 0, "share_of_available": 0.0},
    "S9 summarize_chunked": {"max_message_chars": 10_000},
    "S10 summarize_artifact": {"overlay": "configured", "overlay_tokens": 2000},
    "S11 describe_plain": {"topics": 10, "topic_chars": 80},
    "S12 summarize_raw": {"max_tokens": 4096, "min_tokens": 500, "share_of_available": 0.08},
    "S13 fit_summary": {"slack_tokens": 2000, "floor_tokens": 200},
    "S14 insert_summary": {
        "role": "user", "place": "last", "tag": "compact_summary", "wrapper": "", "pinned": False, "upsert": False,
        "carry": "in_transcript",
    },
    "S15 trim_to_fit": {"protect": 4},
    "S17 prune_tool_errors": {"markers": ["duplicate", "blocked"]},
    "S18 rolling_chat_window": {
        "window": 16, "trigger_messages": 24, "trigger_tokens": 12_000, "refresh_messages": 8,
    },
    "S19 shape_fragments": {"above": "trigger"},
    "S20 shape_schemas": {"above": "target", "depth": 0, "keep_tools": []},
    "S21 context_packet": {"share": 20, "max_tokens": 2000, "omit_above": "trigger"},
}  # fmt: skip


@pytest.mark.parametrize("entry", DOCUMENTED)
def test_a_strategy_has_the_documents_parameters(entry: str) -> None:
    """S2 S3 S4 S5 S6 S7 S8 S9 S10 S11 S12 S13 S14 S15 S17 S18 S19 S20 S21: name and number are equal.

    Parameters and values are equal, too.
    """
    number, word = entry.split()
    params = SHAPERS[word] if word in SHAPERS else STRATEGIES[word].params
    assert word in SHAPERS or STRATEGIES[word].number == number
    values = msgspec.json.decode(msgspec.json.encode(params()))
    assert {name: values[name] for name in DOCUMENTED[entry]} == DOCUMENTED[entry]


@pytest.mark.parametrize("word", [*STRATEGIES, *SHAPERS])
def test_an_unknown_parameter_is_refused(word: str) -> None:
    """S2…S21: an unknown word in a table is an error, not ignored (lesson 13)."""
    params = SHAPERS[word] if word in SHAPERS else STRATEGIES[word].params
    with pytest.raises(msgspec.ValidationError, match="unknown field"):
        msgspec.convert({"no_such_parameter": 1}, params)


@pytest.mark.parametrize(
    ("name", "stage", "at", "crossed"),
    [
        ("codecompanion", "editing", 65_000, True),
        ("codecompanion", "compaction", 85_000, True),
        ("codebuddy", "compaction", 90_000, False),
        ("kodacode", "history", 80_000, False),
        ("cowork", "proactive", 90_000, True),
        ("cowork", "reactive", 95_000, False),
    ],
)
def test_each_policy_compares_like_its_document(name: str, stage: str, at: int, crossed: bool) -> None:
    """S1, K1, K2: policies differ exactly at the threshold, in a window of 100,000.

    One more token crosses all of them.
    """
    found = load_policy(name).stage(stage)
    assert found is not None
    room = Room(window=100_000)
    assert threshold_tokens(found.trigger, room) == at
    assert is_crossed(found.trigger, Measure(at, at), room) is crossed
    assert is_crossed(found.trigger, Measure(at + 1, at + 1), room)
    assert not is_crossed(found.trigger, Measure(at - 1, at - 1), room)


@pytest.mark.parametrize("name", policy_names())
def test_every_policy_repairs(name: str) -> None:
    """S16: repairing is in no table, but under any policy the final list is valid (R-004)."""
    broken = chat(tool("nobody", "an orphan"), user("go"), assistant("", ("c", "read_file")), user("and?"))
    prepared, _ = run(broken, 1_000_000, policy=load_policy(name))
    assert violations(prepared.messages) == []
    assert prepared.repair.changed


def shaped_for_sending(messages: tuple[Message, ...], window: int) -> tuple[Message, ...]:
    """Return the messages as KodaCode would send them."""
    parts = Parts(
        system=Message(id="system", role="system", content="You help."),
        specs=(),
        fragments=(),
        fixed=lambda system, specs: chars4(system.text),
        packets={},
    )
    return shape(messages, parts, load_policy("kodacode"), env(messages, window), None).messages


def test_pruning_of_the_view_leaks_into_no_history() -> None:
    """Pipeline 5.7, K14: KodaCode's shaping before CodeCompanion's editing leaves the same history as editing alone."""
    messages = chat(*turns(12, 4000), user("and now?"))
    window = int(sum(map(count, messages)) / 0.7)
    alone, _ = run(messages, window, policy=load_policy("codecompanion"))
    sent = shaped_for_sending(messages, window)
    assert any(text.startswith("[older retained output") for text in texts(sent))
    afterwards, _ = run(messages, window, policy=load_policy("codecompanion"))
    assert [report.stage.id for report in afterwards.reports] == ["editing"]
    assert msgspec.json.encode(afterwards.messages) == msgspec.json.encode(alone.messages)
    assert not any("older retained" in text for text in texts(afterwards.messages))


@pytest.mark.parametrize("name", policy_names())
def test_only_one_policy_protects_the_first_message(name: str) -> None:
    """Pipeline 5.7: under the others the first message may be removed; its content is then in the summary (R-416)."""
    messages = chat(*[m for i in range(60) for m in (user(f"question {i} ".ljust(400)), assistant(f"a{i}".ljust(400)))])
    window = int(sum(map(count, messages)) / 0.95)
    prepared, _ = run(messages, window, policy=load_policy(name), script=SUMMARISES)
    assert any(report.event == "context_compacted" and report.outcome == "changed" for report in prepared.reports)
    assert (messages[0] in prepared.messages) == (name == "cowork")


def test_a_policy_without_a_model_asks_none() -> None:
    """Pipeline 5.5: no step of `kodacode` needs a model, and none is configured, so none is asked."""
    messages = chat(*turns(40, 2000))
    for share in (0.85, 1.5, 3.0):
        prepared, asked = run(messages, int(sum(map(count, messages)) / share), policy=load_policy("kodacode"))
        assert any(report.outcome == "changed" for report in prepared.reports)
        assert asked == []


@pytest.mark.parametrize("name", policy_names())
def test_below_its_triggers_a_policy_asks_no_model_and_changes_nothing(name: str) -> None:
    """Pipeline 5.5: the identical list is returned, whatever the model would have answered."""
    messages = chat(*turns(5, 400))
    prepared, asked = run(
        messages, 1_000_000, policy=load_policy(name), script=lambda ask: SummaryReply(text="x", source="caller")
    )
    assert asked == []
    assert prepared.messages == messages
    assert [report for report in prepared.reports if report.outcome == "changed"] == []


def test_every_registered_function_exists_and_takes_its_parameters() -> None:
    """A module is imported at the first call, so a wrong name in the table would only show in a long chat."""
    for name, strategy in STRATEGIES.items():
        for function in filter(None, (strategy.run, strategy.explain)):
            assert isinstance(function, Deferred)
            loaded = function.load()
            assert loaded.__module__ == function.module
            assert typing.get_type_hints(loaded)["params"] is strategy.params, name


def test_the_summary_schema_names_equal_the_table() -> None:
    """The parameters use the names as a type, because reading the table for that would slow every start of a host."""
    assert sorted(typing.get_args(SchemaName)) == list(schema_names())
