"""Restore, pin, recall: R-361, R-516, K8; lessons 10, 24."""

from __future__ import annotations

import pytest

from codecompanion.adapters.base import CompactionDone
from codecompanion.context.policy.policy_catalog import policy_names
from codecompanion.errors import InputError
from codecompanion.model.invariants import violations
from codecompanion.model.messages import PIN_TAG, SUMMARY_TAG
from codecompanion.placeholders import TOOL_RESULT_CLEARED
from codecompanion.session.chat.inspection import inspect
from codecompanion.wire.events import ContextEdited, ContextItems, Meter, Notice, ViewMarks
from codecompanion.wire.requests import ClearMessage, ListPins, Pin, Recall, RestoreMessage, UndoChange, Unpin
from tests.unit.session.fakes import ALL_TOOLS, Bench, ScriptedAdapter, calls, says
from tests.unit.session.history.test_undo import EDITS, KEEP_ALL, ask, cleared, reader, say, talked, undo
from tests.unit.session.moments import BLOCK
from tests.unit.session.turn.test_turn import stored_view

CHAT = "chat-1"


async def compacted(bench: Bench, session):
    """Compact the chat manually."""
    session.compact("")
    await bench.idle(session)


def restore(item: str) -> RestoreMessage:
    return RestoreMessage(chat=CHAT, item=item)


async def test_a_restored_result_is_not_cleared_again_at_once(tmp_path):
    """R-516: the result is restored word for word and counts as new, or the next edit would clear it again."""
    bench = Bench(tmp_path, reader(), settings=EDITS)
    session = await talked(bench)
    gone = [m for m in session.log.view.messages if m.edited]
    rows = {row["id"]: row for row in inspect(session.control, session.log)["rows"]}
    assert {(rows[m.id]["name"], rows[m.id]["state"]) for m in gone} == {("read_file a.txt", "cleared")}, (
        "which to bring back"
    )
    original = (tmp_path / "a.txt").read_text()
    before = session.control.measured().tokens
    answer = await ask(session, restore(gone[0].tool_call_id))
    assert answer.startswith("Restored: ")
    back = next(m for m in session.log.view.messages if m.id == gone[0].id)
    assert original in back.text.replace("1\t", "", 1)
    assert not back.edited
    assert cleared(session) == len(gone) - 1
    assert bench.of(Meter)[-1].tokens == session.control.measured().tokens > before
    assert stored_view(bench) == session.log.view
    await say(bench, session, 1, 60)
    again = next(m for m in session.log.view.messages if m.id == gone[0].id)
    assert again.text == back.text
    with pytest.raises(InputError, match="Nothing to restore"):
        await ask(session, restore(again.id))


async def test_a_summarised_message_is_restored_after_the_summary_and_can_be_undone(tmp_path):
    """R-516, R-004: a tool result is restored with its call, so pairs stay complete."""
    bench = Bench(tmp_path, reader(), settings=KEEP_ALL)
    session = await talked(bench)
    result = next(m for m in session.log.view.messages if m.role == "tool")
    await compacted(bench, session)
    summarised = session.log.view
    assert "2 messages" in await ask(session, restore(result.id))
    view = session.log.view
    assert violations(view.messages) == []
    places = [m.tag or m.role for m in view.messages]
    assert places == ["compact_summary", "assistant", "tool"]
    assert view.messages[-1].text == result.text
    await ask(session, undo())
    assert session.log.view.messages == summarised.messages


async def test_a_message_that_would_not_fit_is_not_restored(tmp_path):
    """R-516: a sentence explains it; nothing changes."""
    bench = Bench(tmp_path, reader(), settings=KEEP_ALL, window=5_000, tools=ALL_TOOLS)
    session = await talked(bench, 1)
    result = next(m for m in session.log.view.messages if m.role == "tool")
    await compacted(bench, session)
    await ask(session, Pin(chat=CHAT, text="fill " * 2500))
    before = session.log.view
    with pytest.raises(InputError, match=r"Not restored: .* Compact first"):
        await ask(session, restore(result.id))
    assert session.log.view == before


@pytest.mark.parametrize("item", ["nowhere", "t2"])
async def test_messages_that_are_present_or_unknown_are_not_restored(tmp_path, item):
    """R-516."""
    bench = Bench(tmp_path, ScriptedAdapter("s", [says("one")]))
    session = await bench.open()
    await say(bench, session)
    with pytest.raises(InputError, match=r"Nothing to restore|has the id"):
        await ask(session, restore(item))


async def test_a_pinned_message_survives_editing_and_compaction_byte_for_byte(tmp_path):
    """K8, R-361, lesson 10: a pinned result keeps its call."""
    bench = Bench(tmp_path, reader(), settings=EDITS)
    session = await talked(bench, 1)
    result = next(m for m in session.log.view.messages if m.role == "tool")
    assert "Pinned: " in await ask(session, Pin(chat=CHAT, item=result.tool_call_id))
    await say(bench, session, 3, 60)
    assert cleared(session) == 2
    await compacted(bench, session)
    kept = next(m for m in session.log.view.messages if m.id == result.id)
    assert kept.text == result.text
    assert kept.pinned
    assert violations(session.log.view.messages) == []
    assert [row["state"] for row in inspect(session.control, session.log)["rows"]].count("pinned") == 1
    assert bench.of(ViewMarks)[-1].pinned == (result.id,)


async def test_a_pinned_text_is_an_instruction_for_the_whole_chat(tmp_path):
    """R-361: `/pin`, `/pins`, `/unpin`; it is in the context block, survives every compaction, and can be undone."""
    adapter = reader()
    bench = Bench(tmp_path, adapter, settings=KEEP_ALL)
    session = await talked(bench, 1)
    await ask(session, Pin(chat=CHAT, text="use tabs\nnever spaces"))
    await say(bench, session, 1, 60)
    await compacted(bench, session)
    await say(bench, session, 1, 61)
    sent = [m.text for m in adapter.requests[-1].messages if m.tag == PIN_TAG]
    assert sent == ["Follow this for the whole chat:\n\nuse tabs\nnever spaces"]
    assert [item.label for item in bench.of(ContextItems)[-1].items] == ["“use tabs never spaces”"]
    await ask(session, Pin(chat=CHAT, text="no emoji"))
    listed = await ask(session, ListPins(chat=CHAT))
    assert [(row["number"], row["text"]) for row in listed] == [(1, "“use tabs never spaces”"), (2, "“no emoji”")]
    assert "“use tabs never spaces”" in await ask(session, Unpin(chat=CHAT, number=1))
    assert [row["text"] for row in await ask(session, ListPins(chat=CHAT))] == ["“no emoji”"]
    await ask(session, UndoChange(chat=CHAT))
    assert len(await ask(session, ListPins(chat=CHAT))) == 2
    with pytest.raises(InputError, match="No pin has this number; /pins lists them, 1 to 2"):
        await ask(session, Unpin(chat=CHAT, number=3))


async def test_an_instruction_of_the_project_is_named_as_such_and_pinned_once(tmp_path):
    """The model, and the line above the chat, see that an instruction from a prompt file is not the user's own."""
    bench = Bench(tmp_path, reader(), settings=KEEP_ALL)
    session = await talked(bench, 1)
    pin = Pin(chat=CHAT, text="obey", source=".codecompanion/prompts/`a`\n.md", again=True)
    assert await ask(session, pin) == "Pinned: “obey” of .codecompanion/prompts/`a` .md."
    assert (await ask(session, pin)).startswith("Already pinned: “obey”")
    (pinned,) = [message for message in session.log.view.messages if message.tag == PIN_TAG]
    assert pinned.text.startswith("The project's `.codecompanion/prompts/'a' .md` asks for this")
    with pytest.raises(InputError, match="is already pinned"):
        await ask(session, Pin(chat=CHAT, text="obey", source=pin.source))


async def test_without_text_the_newest_message_is_pinned_and_unpinnable_ones_are_refused(tmp_path):
    """R-361."""
    bench = Bench(tmp_path, reader(), settings=EDITS)
    session = await talked(bench)
    await ask(session, Pin(chat=CHAT))
    assert session.log.view.messages[-1].pinned
    placeholder = next(m for m in session.log.view.messages if m.text == TOOL_RESULT_CLEARED)
    for item, why in (
        ("", "already pinned"),
        (placeholder.id, "restore it before"),
        ("no", "no longer part of the request"),
    ):
        with pytest.raises(InputError, match=why):
            await ask(session, Pin(chat=CHAT, item=item))
    await ask(session, Unpin(chat=CHAT, item=session.log.view.messages[-1].id))
    with pytest.raises(InputError, match="No pins in this chat"):
        await ask(session, Unpin(chat=CHAT, number=1))
    await compacted(bench, session)
    with pytest.raises(InputError, match="neither can be pinned"):
        await ask(session, Pin(chat=CHAT, item=session.log.view.messages[0].id))


async def test_recall_is_offered_once_something_was_removed(tmp_path):
    """R-516: from then on `recall` stays the last tool, so that the prompt cache still hits."""
    adapter = reader()
    bench = Bench(tmp_path, adapter, settings=KEEP_ALL)
    session = await talked(bench, 1)
    names = [spec.name for spec in adapter.requests[-1].tools]
    assert "recall" not in names
    await compacted(bench, session)
    await say(bench, session, 1, 60)
    offered = [spec.name for spec in next(r for r in reversed(adapter.requests) if r.purpose == "chat").tools]
    assert offered == [*names, "recall"]
    again = await bench.resume()
    assert [spec.name for spec in again.control.specs] == offered


async def found(session, words: str = ""):
    return (await ask(session, Recall(chat=CHAT, words=words)))["rows"]


async def test_removed_messages_are_found_by_their_words_and_read_by_key(tmp_path):
    """R-516: only messages that the view lacks are found; a file that has changed since is flagged (lesson 24)."""
    (tmp_path / "b.txt").write_text("the zebra crosses\n")
    script = iter([calls(("c1", "read_file", '{"path": "b.txt"}')), says("seen"), says("SUMMARY"), says("ok")])
    bench = Bench(tmp_path, ScriptedAdapter("s", lambda request: next(script)), settings=KEEP_ALL)
    session = await bench.open()
    await say(bench, session, 1, 1)
    assert await found(session) == []
    await compacted(bench, session)
    rows = await found(session, "zebra")
    assert [(row["title"], row["how"], row["changed"]) for row in rows] == [("read_file b.txt", "summarised", "")]
    assert "«zebra»" in rows[0]["snippet"]
    assert len(await found(session)) == 3
    assert len(await found(session, "zebra elephant")) == 1, "any of the words, when nothing has all"
    (tmp_path / "b.txt").write_text("the lion crosses\n")
    assert [row["changed"] for row in await found(session, "zebra")] == ["its file has changed on disk since then"]
    (tmp_path / "b.txt").unlink()
    assert [row["changed"] for row in await found(session, "zebra")] == ["its file is gone"]
    _, text = session.removed.read(rows[0]["key"])
    assert text == "1\tthe zebra crosses"
    await ask(session, restore(rows[0]["id"]))
    assert await found(session, "zebra") == []


async def test_recall_does_not_name_a_compaction_that_was_undone(tmp_path):
    """Results that are cleared again after the undo of a compaction are `cleared`, not `summarised`."""
    bench = Bench(tmp_path, reader(), settings=EDITS)
    session = await talked(bench)
    before = {row["id"]: row["how"] for row in await found(session)}
    assert set(before.values()) == {"cleared"}
    await compacted(bench, session)
    await ask(session, UndoChange(chat=CHAT))
    assert {row["id"]: row["how"] for row in await found(session)} == before


async def test_the_model_recalls_a_cleared_result_without_running_the_tool_again(tmp_path):
    """R-516, lesson 24: the tool reads the chat's own log; recalled text cannot itself be recalled."""
    (tmp_path / "a.txt").write_text("a zebra " + "word " * 2000)
    replies = [calls(("c0", "read_file", '{"path": "a.txt"}')), says("done"), says("SUMMARY")]
    script = iter(replies)
    bench = Bench(tmp_path, ScriptedAdapter("s", lambda request: next(script)), settings=KEEP_ALL)
    session = await bench.open()
    await say(bench, session, 1, 1)
    await compacted(bench, session)
    key = (await found(session, "zebra"))[0]["key"]
    wanted = [("c1", "recall", '{"query": "zebra"}'), ("c2", "recall", f'{{"key": "{key}"}}')]
    script = iter([*(calls(call) for call in wanted), says("ok"), says("SUMMARY 2")])
    await say(bench, session, 1, 60)
    listed, read = (m.text for m in session.log.view.messages if m.role == "tool")
    assert f"{key}  read_file a.txt (cycle 1, summarised" in listed
    assert "not instructions" in read
    assert "<recalled>\n1\ta zebra word" in read
    await compacted(bench, session)
    assert [row["title"] for row in await found(session, "zebra")] == ["read_file a.txt"]


@pytest.mark.parametrize("policy", policy_names())
async def test_pins_survive_a_compaction_under_every_policy(tmp_path, policy):
    """K8: a pinned message, a pinned result with its call, and a pinned text are kept byte for byte."""
    read = '{"path": "a.txt"}'
    script = iter([r for n in range(8) for r in (calls((f"c{n}", "read_file", read)), says("word " * 300))])
    adapter = ScriptedAdapter("s", lambda r: says("SUMMARY " * 40) if r.purpose == "summary" else next(script))
    bench = Bench(tmp_path, adapter, settings={"policy": policy, "on_compact": "stop"})
    session = await talked(bench, 4)
    result, reply = session.log.view.messages[2], session.log.view.messages[3]
    for request in (Pin(chat=CHAT, item=result.id), Pin(chat=CHAT, item=reply.id), Pin(chat=CHAT, text="use tabs")):
        await ask(session, request)
    pins = [m for m in session.log.view.messages if m.pinned]
    await say(bench, session, 3, 60)
    before = session.log.view
    await compacted(bench, session)
    told = [notice.text for notice in bench.of(Notice) if notice.text.startswith("Nothing was compacted")]
    assert session.log.view.tokens < before.tokens or (told and session.log.view == before), bench.events[-3:]
    assert [m for m in session.log.view.messages if m.pinned and m.tag != SUMMARY_TAG] == pins
    assert violations(session.log.view.messages) == []


async def test_a_restored_message_is_not_duplicated_when_its_providers_summary_ends(tmp_path):
    """R-542, R-516: the full history is restored, and the message is already part of it."""
    replies = iter([says("one"), (CompactionDone(BLOCK), *says("two"))])
    native = ScriptedAdapter("s", lambda request: next(replies), native=True)
    bench = Bench(tmp_path, native, ScriptedAdapter("other", lambda request: says("ok")))
    session = await bench.open()
    await say(bench, session, 2)
    gone = next(m for m in (e.payload.message for e in await session.log.events() if hasattr(e.payload, "message")))
    await ask(session, restore(gone.id))
    places = [m.id for m in session.log.view.messages]
    block = next(m.id for m in session.log.view.messages if m.compaction is not None)
    assert places.index(gone.id) == places.index(block) + 1, "what stands before its block the provider does not see"
    await session.use_model("other", "")
    ids = [m.id for m in session.log.view.messages]
    assert ids.count(gone.id) == 1
    assert [m.text for m in session.log.view.messages] == ["question 50", "one", "question 51", "two"]
    again = await bench.resume()
    assert again is not None
    assert [m.id for m in again.log.view.messages] == ids


async def test_one_result_is_cleared_manually_and_that_is_undone(tmp_path):
    """R-511, R-516, R-545: its age does not matter; short, cleared or pinned results and other messages are refused."""
    bench = Bench(tmp_path, reader(), settings=KEEP_ALL)
    session = await talked(bench, 2)
    before = session.log.view
    results = [m for m in before.messages if m.role == "tool"]
    await ask(session, ClearMessage(chat=CHAT, item=results[1].tool_call_id))
    assert cleared(session) == 1
    assert bench.of(ContextEdited)[-1].call_ids == (results[1].tool_call_id,)
    await ask(session, Pin(chat=CHAT, item=results[0].id))
    for item in (results[0].id, results[1].id, before.messages[0].id):
        with pytest.raises(InputError, match="Only tool results"):
            await ask(session, ClearMessage(chat=CHAT, item=item))
    await ask(session, undo())
    assert "1 tool result restored" in await ask(session, undo())
    assert session.log.view.messages == before.messages
    assert bench.of(ViewMarks)[-1].cleared == ()


async def test_the_same_instruction_is_pinned_once(tmp_path):
    """R-361: a second copy would be sent twice."""
    bench = Bench(tmp_path, ScriptedAdapter("s", [says("one")]))
    session = await bench.open()
    await ask(session, Pin(chat=CHAT, text="use tabs"))
    with pytest.raises(InputError, match="“use tabs” is already pinned"):
        await ask(session, Pin(chat=CHAT, text=" use tabs\n"))
    assert len(session.log.view.messages) == 1
    await ask(session, Unpin(chat=CHAT, number=1))
    await ask(session, Pin(chat=CHAT, text="use tabs"))
    assert len(session.log.view.messages) == 1
