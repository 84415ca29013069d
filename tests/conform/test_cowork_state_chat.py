"""CoWork's chats without tools, and the files kept of a chat (R-456…R-459, R-467…R-477)."""

from __future__ import annotations

import hashlib
import json
from unittest.mock import patch

import pytest

from codecompanion.counting.tokens import MessageCounter
from codecompanion.model.history import MessageAdded
from codecompanion.model.invariants import violations
from codecompanion.model.transcript_format import read_objects
from codecompanion.session.storage.from_checkpoint import restore_chat
from codecompanion.session.window import chat_model
from tests.conform.chat import BRIEF, Chat, chat_with, exchange, tool_step
from tests.conform.cowork import CLOSE, FRAME, TITLES, handoffs, measures, nine, talk
from tests.unit.session.compaction.test_effects import kept
from tests.unit.session.fakes import Bench, ScriptedAdapter, calls, says, submit
from tests.unit.session.storage.test_from_checkpoint import opened

NO_WORTH = {"context_management": {"chat": {"min_tokens": 0}}}


async def without_tools(root, messages, **settings):
    return await chat_with(root, "cowork", messages, 100_000, summary=nine(), **settings)


async def test_a_chat_without_tools_is_a_cached_summary_and_its_newest_messages(tmp_path):
    """R-456, R-457, R-458: the summary is reused until eight more messages have left the window.

    The next one extends it.
    """
    chat = await without_tools(tmp_path, talk(23, 200), **NO_WORTH)
    for number in range(12):
        await chat.say(f"u{number} " + "q" * 800, number)
    lengths = [len(request.messages) for request in chat.sent]
    # System prompt, summary, the 16 newest messages, the current one.
    assert lengths[:6] == [25, 1 + 1 + 16 + 1, 21, 23, 25, 19]
    first, second, *_ = chat.prompts
    assert "<conversation>\n[previous summary]\n" not in first
    assert "<conversation>\n[previous summary]\n1. **Primary Request and Intent**\ntold 1" in second
    cached = [next(m.text for m in request.messages if m.pinned) for request in chat.sent[1:]]
    assert all(text.startswith(FRAME) and text.endswith(CLOSE) for text in cached)
    assert cached[0] == cached[3] != cached[4] == cached[7]
    assert len(set(cached)) == len(chat.asked) == 3
    assert len(handoffs(chat)) == 1


async def test_each_message_is_in_the_request_or_in_a_summary(tmp_path):
    """R-458: the summary is written again before any message would be missing from both."""
    chat = await without_tools(tmp_path, [], **NO_WORTH)
    for number in range(40):
        await chat.say(f"u{number} " + "q" * 800, number)
    told = ""
    for request in chat.bench.adapter.requests:
        if request.purpose == "summary":
            told += request.messages[-1].text
            continue
        texts = "\n".join(message.text for message in request.messages)
        newest = max(i for i in range(40) if f"u{i} q" in texts)
        assert all(f"u{i} q" in texts or f"u{i} q" in told for i in range(newest))
    assert len(chat.asked) > 4


@pytest.mark.parametrize(
    ("chars", "settings", "asked"), [(800, {}, 0), (8_000, {}, 1), (20, NO_WORTH, 0), (800, NO_WORTH, 1)]
)
async def test_a_summary_must_save_enough(tmp_path, chars, settings, asked):
    """R-458: it must save 12,000 tokens while the provider caches the chat, and at least 200 in any case."""
    chat = await without_tools(tmp_path, [], replies=lambda request: says("a" * chars), **settings)
    for number in range(13):
        await chat.say("q" * chars, number)
    assert len(chat.asked) == asked


def written(bench: Bench, kind: str) -> dict:
    """Return the newest checkpoint of a kind, read from its file."""
    found = [one.raw for one in bench.services.keeping.checkpoints.payloads_of("chat-1")]
    return next(raw for raw in found if raw.get("checkpointKind") == kind)


async def kept_chat(root, summary: str, questions: int = 3, **settings):
    """Return the bench and the session of a chat that had several questions and was compacted."""
    adapter = ScriptedAdapter("s", lambda r: says(summary if r.purpose == "summary" else "an answer " * 60))
    tools = {"enabled": False} if settings.pop("bare", False) else None
    bench = kept(root, adapter, settings={"on_compact": "stop", **settings}, tools=tools)
    session = await bench.open()
    for number in range(questions):
        session.submit(submit(f"question {number} " + "of many words " * 60, number))
        await bench.idle(session)
    await session.effects.settled()
    session.compact("")
    await bench.idle(session)
    await session.effects.settled()
    return bench, session


async def test_the_summary_of_a_chat_without_tools_is_in_its_snapshots(tmp_path):
    """R-459."""
    bench, session = await kept_chat(tmp_path, nine(), 12, bare=True, policy="cowork")
    (summary,) = [m.text for m in session.log.view.messages if m.pinned]
    assert summary.startswith(FRAME)
    state = written(bench, "snapshot")["transcript"]
    assert "told 1" in state["explicitChatSummaryBlock"]
    assert state["explicitChatSummaryCreatedAt"] == 1_000_000
    assert state["explicitChatSummarySourceMessageCount"] == 24 - 16


async def test_a_checkpoint_has_a_summary_and_the_exact_words(tmp_path):
    """R-467, R-468: it has the kind, event, strategy, structured summary, evidence with its hash, and reason."""
    bench, _ = await kept_chat(tmp_path, nine("- one thing of"), policy="cowork")
    raw = written(bench, "pre_compaction")
    change = next(e.payload for e in bench.store.load_events("chat-1") if getattr(e.payload, "kind", "") == "compacted")
    assert raw["sourceEventId"] == change.change_id
    assert (raw["sourceTimestamp"], raw["resumeStrategy"]) == (1_000_000, "checkpoint")
    assert raw["sourceMetadata"]["triggerEventType"]
    assert raw["sourceMetadata"]["meaningfulExchangeCount"] == 6
    packet = raw["evidencePacket"]
    assert raw["dedupeHash"] == packet["spanHash"]
    assert packet["spanCount"] == len(packet["spans"]) == len(change.removed)
    assert packet["generatedAt"] == 1_000_000
    parts = []
    for span in packet["spans"]:
        assert span["sourceType"] in ("transcript_span", "task_message")
        assert {"objectId", "taskId", "timestamp", "type", "excerpt", "text", "start", "end"} <= set(span)
        assert len(span["excerpt"]) <= 500 < len(span["text"])
        parts.append(f"{span['objectId']}:{span['timestamp']}:{span['type']}:{span['text']}")
    assert packet["spanHash"] == hashlib.sha256("|".join(parts).encode()).hexdigest()


async def test_a_periodic_checkpoint_has_the_newest_twelve_messages(tmp_path):
    """R-467, R-468."""
    adapter = ScriptedAdapter("s", lambda request: says(f"answer {len(request.messages)}"))
    bench = kept(tmp_path, adapter, settings={"policy": "cowork", "checkpoint_every_messages": 14})
    session = await bench.open()
    for number in range(7):
        session.submit(submit(f"question {number}", number))
        await bench.idle(session)
    await session.effects.settled()
    raw = written(bench, "periodic")
    spans = raw["evidencePacket"]["spans"]
    assert [span["text"] for span in spans] == [m.text for m in session.log.view.messages][-12:]
    assert {span["type"] for span in spans} == {"user_message", "assistant_message"}


LABELLED = (
    "Decisions:\n- use SQLite\n- ports from settings\n\nOpen Loops:\n- the docs of the answer\n\nNext Actions:\n"
    "- write the test of the question\n\nKey Findings:\n- many words are used in each question\n" + BRIEF
)
NINE = "\n\n".join(f"{n}. **{title}**\n- point {n}\n- more of {n}" for n, title in enumerate(TITLES, 1))


@pytest.mark.parametrize(
    ("policy", "summary", "expected"),
    [
        ("cowork", NINE, (["point 6", "more of 6"], ["point 7", "more of 7"], ["point 9", "more of 9"],
                          ["point 4", "more of 4", "point 5", "more of 5"])),
        ("codebuddy", LABELLED, (["use SQLite", "ports from settings"], ["the docs of the answer"],
                                 ["write the test of the question"], ["many words are used in each question"])),
        ("codebuddy", "an answer of many words. " * 40, ([], [], [], [("an answer of many words. " * 40)[:400]])),
    ],
)  # fmt: skip
async def test_the_structured_summary_is_read_from_the_summary(tmp_path, policy, summary, expected):
    """R-471: it is read from nine sections, from labelled lists, or from the first 400 characters as one finding."""
    bench, _ = await kept_chat(tmp_path, summary, 5, policy=policy)
    raw = written(bench, "pre_compaction")
    read = raw["structuredSummary"]
    assert read["source"] == "compaction_summary"
    assert (read["decisions"], read["openLoops"], read["nextActions"], read["keyFindings"]) == expected


async def test_after_a_restore_pairs_are_complete(tmp_path):
    """R-477: pairs are completed before anything else, so that the next request can be sent."""
    call = {"id": "c1", "type": "function", "function": {"name": "read_file", "arguments": "{}"}}
    history = [
        {"role": "user", "content": "look"},
        {"role": "tool", "tool_call_id": "c0", "content": "an orphan"},
        {"role": "assistant", "content": "", "tool_calls": [call, {**call, "id": "c2"}]},
        {"role": "tool", "tool_call_id": "c1", "content": "found"},
        {"role": "user", "content": "and now?"},
    ]
    folder = tmp_path / "state/transcripts/checkpoints"
    folder.mkdir(parents=True)
    (folder / "old.json").write_text(json.dumps({"conversationHistory": history, "checkpointKind": "periodic"}))
    bench = kept(tmp_path, ScriptedAdapter("offline", [says("here")]), settings={"policy": "cowork"})
    restored = await restore_chat(bench.services, "old", "")
    session = await opened(bench, restored["chat"])
    assert violations(session.log.view.messages) == []
    assert [m.tool_call_id for m in session.log.view.messages if m.role == "tool"] == ["c1", "c2"]
    session.submit(submit("go on", 9))
    await bench.idle(session)
    assert session.log.view.messages[-1].text == "here"
    sent = bench.adapter.requests[-1].messages
    assert [m.tool_call_id for m in sent if m.role == "tool"] == ["c1", "c2"]


PARTS = (
    "schema version timestamp messageCount modelId conversationHistory planSummary transcript tooling files loop "
    "recovery queues worker verification usageTotals"
).split()
LOOP = (
    "compactionCount lastCompactionAt lastCompactionTokensBefore lastCompactionTokensAfter lastPreCompactionFlushAt "
    "lastPreCompactionFlushTokenCount"
).split()


async def test_a_snapshot_has_the_state_of_the_chat(tmp_path):
    """R-461, R-462, R-478: the snapshot has the parts of the document's payload, in files only the user can read."""
    bench, session = await kept_chat(tmp_path, nine(), policy="cowork")
    raw = written(bench, "snapshot")
    assert set(PARTS) <= set(raw)
    assert (raw["schema"], raw["version"], raw["timestamp"]) == ("session_runtime_v2", 2, 1_000_000)
    assert set(LOOP) <= set(raw["loop"])
    assert raw["loop"]["compactionCount"] == 1
    assert raw["loop"]["lastCompactionTokensAfter"] < raw["loop"]["lastCompactionTokensBefore"]
    assert raw["messageCount"] == len(raw["conversationHistory"]) == len(session.log.view.messages)
    files = [path for path in (tmp_path / "state/transcripts").rglob("*") if path.is_file()]
    assert {path.relative_to(tmp_path / "state/transcripts").parts[0] for path in files} == {
        "checkpoints", "conversations", "snapshots", "spans",
    }  # fmt: skip
    assert {path.stat().st_mode & 0o777 for path in files} == {0o600}


async def test_texts_in_a_snapshot_are_truncated(tmp_path):
    """R-463: texts are truncated to 50,000 characters, tool results to 10,000."""
    (tmp_path / "long.txt").write_text("a line of the file\n" * 1_500)
    steps = iter([calls(("c1", "read_file", '{"path": "long.txt"}')), says("a" * 300)])
    adapter = ScriptedAdapter("s", lambda request: next(steps))
    bench = kept(tmp_path, adapter, settings={"policy": "cowork"})
    session = await bench.open()
    session.submit(submit("u" * 60_000))
    await bench.idle(session)
    await session.close()
    user, _, result, _ = written(bench, "completion")["conversationHistory"]
    assert 49_000 < len(user["content"]) <= 50_000
    assert 9_000 < len(result["content"]) <= 10_000
    assert len(session.log.view.messages[2].text) > 20_000


@pytest.mark.parametrize(("number", "chars", "asked"), [(8, 2_800, 0), (9, 2_800, 1), (11, 400, 0), (12, 400, 1)])
async def test_the_first_summary_comes_at_24_messages_or_12000_tokens(tmp_path, number, chars, asked):
    """R-457: tokens count only above 16 messages; a summary has at most 1536 tokens; calls and results are excluded."""
    messages = [m for i in range(number) for m in exchange(i, chars)]
    messages[2:2] = tool_step(1, "r" * 400)
    chat = await without_tools(tmp_path, messages, **NO_WORTH)
    await chat.say()
    assert [request.max_output_tokens for request in chat.asked] == [1536] * asked
    if asked:
        assert [m.text for m in chat.request[1:]] == [*[m["content"] for m in messages[-16:]], "now"]
        assert not any(m.tool_calls or m.role == "tool" for m in chat.request)


FLUSHED = "Decisions:\n- keep it\n\nOpen Loops:\n- none\n\nNext Actions:\n- test it\n\nKey Findings:\n- it is slow\n"


async def flushed(root, tokens: int, *, remembers=True, messages=20):
    """Return a chat of 20,000 tokens whose request has exactly `tokens` tokens, and its bench."""
    adapter = ScriptedAdapter("s", lambda r: says(FLUSHED if r.purpose == "summary" else "done"))
    bench = kept(root, adapter, window=20_000, settings={"policy": "cowork"}, remembers=remembers)
    with patch.object(chat_model, "MessageCounter", lambda text: MessageCounter.chars4()):
        session = await bench.open()
    found = read_objects(talk(messages, 16_000 // messages), "given").messages
    await session.log.write(*(MessageAdded(message=message) for message in found))
    chat = Chat(bench, session)
    await measures(chat, tokens)
    await session.effects.settled()
    return chat


@pytest.mark.parametrize(
    ("tokens", "more", "asked"),
    [(17_800, {}, 0), (17_801, {}, 1), (17_801, {"remembers": False}, 0), (17_801, {"messages": 2}, 0)],
)
async def test_the_memory_is_flushed_if_less_than_1200_tokens_are_left(tmp_path, tokens, more, asked):
    """R-409, R-446: it is flushed below window − 5 % even without a compaction.

    It is not flushed if disabled or for fewer than 4 messages.
    """
    chat = await flushed(tmp_path, tokens, **more)
    assert [request.max_output_tokens for request in chat.asked] == [220] * asked
    assert (chat.changes, len(chat.named("memory_flushed"))) == ([], asked)
    if asked:
        for title in ("Decisions", "Open Loops", "Next Actions", "Key Findings"):
            assert title in chat.prompts[0]
        await chat.say("more " * 20, 2)
        assert len(chat.asked) == 1, "within 120 seconds it is not flushed again"


async def test_evidence_covers_everything_removed_within_64_kib(tmp_path):
    """R-469: it has the exact text with its place; over the limit, the oldest tool results are truncated first."""
    adapter = ScriptedAdapter("s", lambda r: says(nine() if r.purpose == "summary" else "done"))
    bench = kept(tmp_path, adapter, settings={"policy": "cowork", "on_compact": "stop"})
    session = await bench.open()
    steps = [*tool_step(1, "o" * 38_000), *tool_step(2, "n" * 30_000)]
    found = read_objects([*talk(16, 20), *steps, *talk(40, 500)], "given").messages
    await session.log.write(*(MessageAdded(message=message) for message in found))
    session.compact("")
    await bench.idle(session)
    await session.effects.settled()
    spans = written(bench, "pre_compaction")["evidencePacket"]["spans"]
    change = next(e.payload for e in bench.store.load_events("chat-1") if getattr(e.payload, "kind", "") == "compacted")
    assert [span["objectId"] for span in spans] == [m.id for m in found if m.id in change.removed]
    assert len(spans) > 12
    words = {message.id: message.text for message in found}
    cut = [span for span in spans if span["truncated"]]
    assert [words[span["objectId"]][0] for span in cut] == ["o"]
    for span in spans:
        if span["type"] != "assistant_message":
            assert span["text"] == words[span["objectId"]][span["start"] : span["end"]]
    assert 60_000 < sum(len(span["text"]) + len(span["excerpt"]) for span in spans) <= 64 * 1024


@pytest.mark.parametrize(("messages", "source"), [(2, 2), (6, 1)])
async def test_an_older_checkpoint_with_fewer_messages_never_wins(tmp_path, messages, source):
    """R-473, R-474: otherwise the document's order applies; both times are reported."""
    for kind, number, ms in (("checkpoints", messages, 5_000), ("snapshots", 4, 9_000)):
        folder = tmp_path / f"state/transcripts/{kind}"
        folder.mkdir(parents=True)
        history = [{"role": "user", "content": f"{kind} {i}"} for i in range(number)]
        payload = {"schema": "session_runtime_v2", "version": 2, "timestamp": ms, "conversationHistory": history}
        (folder / "old.json").write_text(json.dumps(payload))
    bench = kept(tmp_path, ScriptedAdapter("offline", []), settings={"policy": "cowork"})
    restored = await restore_chat(bench.services, "old", "")
    assert restored["source"] == source
    session = await opened(bench, restored["chat"])
    assert session.log.view.messages[0].text == ("checkpoints 0" if source == 1 else "snapshots 0")
    (told,) = [e.payload.fields for e in bench.store.load_events(restored["chat"]) if hasattr(e.payload, "fields")]
    assert (told["source"], told["checkpointAt"], told["snapshotAt"]) == (source, 5_000, 9_000)
