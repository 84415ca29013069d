"""Stored payloads of schema session_runtime_v2: reading, writing, unknown keys."""

from __future__ import annotations

import json

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from codecompanion.errors import StoreCorrupt
from codecompanion.model import checkpoint as payloads
from codecompanion.model.checkpoint import Checkpoint, LoopState, Snapshot

JSON = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**50), 2**50) | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=8,
)
UNKNOWN = st.dictionaries(st.text(min_size=1, max_size=6).map(lambda name: f"x_{name}"), JSON, max_size=4)


def test_a_snapshot_has_the_documented_schema_and_groups():
    """R-461: the payload has the schema, its version, and every group under its documented name."""
    raw = payloads.write(Snapshot())
    assert raw["schema"] == "session_runtime_v2"
    assert raw["version"] == 2
    groups = "transcript tooling files loop recovery queues worker verification usageTotals".split()
    assert set(groups) <= raw.keys()
    assert {"timestamp", "messageCount", "modelId", "conversationHistory", "planSummary"} <= raw.keys()
    assert payloads.SNAPSHOT_EVENT == "conversation_snapshot"
    assert {"inputTokens", "outputTokens", "cost"} == raw["usageTotals"].keys()
    loop = "compactionCount lastCompactionAt lastCompactionTokensBefore lastCompactionTokensAfter"
    assert set(loop.split()) <= raw["loop"].keys()
    assert {"lastPreCompactionFlushAt", "lastPreCompactionFlushTokenCount"} <= raw["loop"].keys()
    assert "pendingFollowUps" in raw["queues"]


def test_a_chat_keeps_the_data_of_a_cached_summary():
    """R-459: block, time and number of messages are persisted in snapshots."""
    names = "explicitChatSummaryBlock explicitChatSummaryCreatedAt explicitChatSummarySourceMessageCount"
    assert set(names.split()) <= payloads.write(Snapshot())["transcript"].keys()


def test_a_checkpoint_adds_summary_evidence_and_provenance():
    """R-467: the fields a checkpoint has beyond a snapshot."""
    raw = payloads.write(Checkpoint(checkpoint_kind="pre_compaction"))
    names = "checkpointKind sourceEventId sourceTimestamp resumeStrategy structuredSummary evidencePacket dedupeHash"
    assert set(names.split()) <= raw.keys()
    assert raw["resumeStrategy"] == "checkpoint"
    assert {"source", "rawText", "decisions", "openLoops", "nextActions", "keyFindings"} == raw[
        "structuredSummary"
    ].keys()
    assert {"triggerEventType", "meaningfulExchangeCount"} == raw["sourceMetadata"].keys()
    assert {"generatedAt", "spanHash", "spanCount", "spans"} == raw["evidencePacket"].keys()


@given(UNKNOWN, UNKNOWN, st.integers(0, 99))
def test_unknown_keys_survive_a_rewrite(outside, inside, compactions):
    """R-462: data of another version stays, at the top level and inside the groups, after any rewrite."""
    stored = {**payloads.write(Snapshot(title="old")), **outside}
    stored["loop"] = {**stored["loop"], **inside}
    stored = payloads.decode(payloads.encode(stored), "file")
    read = payloads.read(stored, Snapshot, "file")
    changed = msgspec.structs.replace(read, title="new", loop=LoopState(compaction_count=compactions))
    raw = payloads.decode(payloads.encode(payloads.write(changed, stored)), "file")
    assert {key: raw[key] for key in outside} == outside
    assert {key: raw["loop"][key] for key in inside} == inside
    assert payloads.read(raw, Snapshot, "file") == changed


@pytest.mark.parametrize(
    ("raw", "form"),
    [
        ({"schema": "session_runtime_v2", "version": 2}, "v2"),
        ({"schema": "session_runtime_v2", "version": 3, "conversationHistory": []}, "legacy"),
        ({"schema": "session_runtime_v2", "version": 3}, None),
        ({"conversationHistory": []}, "legacy"),
        ({"conversationHistory": "no list"}, None),
        ({}, None),
        ([], None),
    ],
)
def test_formats_are_distinguished(raw, form):
    """R-474: V2 has the schema and version 2; a legacy payload has an array `conversationHistory`."""
    assert payloads.form_of(raw) == form


@pytest.mark.parametrize("stored", [b"", b"{", b"[1]", b"\xff\xfe", b'{"a":' * 100_000])
def test_damage_is_reported_with_the_file(stored):
    """R-474: a file that is not a JSON object is named, and nothing else happens."""
    with pytest.raises(StoreCorrupt, match="the/file"):
        payloads.decode(stored, "the/file")


def test_a_wrong_type_is_reported_with_its_key():
    """R-474: the error makes the restore try the next candidate."""
    with pytest.raises(StoreCorrupt, match="messageCount"):
        payloads.read({"schema": payloads.SCHEMA, "version": 2, "messageCount": "ten"}, Snapshot, "f")


def test_null_counts_as_missing():
    """Other writers represent a missing value as null."""
    assert (
        payloads.read({"title": None, "loop": None, "transcript": {"lastUserMessage": None}}, Snapshot, "f")
        == Snapshot()
    )


def test_lone_surrogates_survive():
    """A file name with invalid UTF-8 must not make a checkpoint unreadable."""
    raw = payloads.write(Snapshot(title="a\ud800b"))
    assert payloads.read(json.loads(payloads.encode(raw)), Snapshot, "f").title == "a\ud800b"


TRICKY = st.sampled_from(["", '"', ',"",', '{"a":"",', "},", "\\", "\ud800", "é", "],["])
TEXTS = st.lists(TRICKY, max_size=4).map("".join)
OBJECTS = st.dictionaries(TEXTS, TEXTS | JSON | st.lists(TEXTS, max_size=4), max_size=4)


@settings(max_examples=200, deadline=None)
@given(st.lists(OBJECTS, max_size=12), OBJECTS, st.integers(1, 4))
def test_encoding_in_slices_yields_the_same(objects, other, at_once):
    raw = {**other, "group": {"spans": objects, **other}, "list": [objects, *objects]}
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(payloads, "_AT_ONCE", at_once)
        written = json.dumps(raw, separators=(",", ":")).encode()
        assert payloads.encode_in_slices(raw) == payloads.encode(raw) == written
        assert payloads.encode_each(objects) == [payloads.encode(one) for one in objects]
