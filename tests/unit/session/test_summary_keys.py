"""The keys in a summary recall the messages it replaced, word for word (R-431, R-516)."""

from __future__ import annotations

import json
import re

import pytest

from codecompanion.context.policy.policy_catalog import policy_names
from codecompanion.model.history import MessageAdded
from codecompanion.model.messages import GO_ON_TAG, SUMMARY_TAG
from tests.unit.session.fakes import Bench, ScriptedAdapter, calls, says, submit

KEYS = re.compile(r"\br(\d+)(?: to r(\d+))?")
NINE = "\n".join(f"{n}. **{title}**\nthe loader" for n, title in enumerate((
    "Primary Request and Intent", "Key Technical Concepts", "Files and Code Sections", "Errors and Fixes",
    "Problem Solving", "All User Messages", "Pending Tasks", "Current Work", "Optional Next Step"), 1))  # fmt: skip


@pytest.mark.slow("several compactions under every policy")
@pytest.mark.parametrize("name", policy_names())
async def test_every_removed_message_is_recalled_by_a_key_in_the_summary(name, tmp_path):
    """This includes several compactions, tools, a call without text, and a summariser that fails every second time."""
    (tmp_path / "a.txt").write_text("zebra " * 300)
    asked, written = 0, 0

    def answer(request):
        nonlocal asked, written
        if request.purpose == "summary":
            written += 1
            return says(NINE if written % 2 else "")
        asked += 1
        if asked % 4 == 2:
            return calls((f"c{asked}", "read_file", json.dumps({"path": "a.txt"})))
        return says(f"answer {asked} " + "some words of an answer. " * 60)

    settings = {"policy": name, "on_compact": "stop"}
    tools = {"default_tools": ("full",)}  # a window this small offers `recall` only to those who choose it
    bench = Bench(tmp_path, ScriptedAdapter("s", answer), window=6_000, settings=settings, tools=tools)
    session = await bench.open()
    for number in range(24):
        session.submit(submit(f"question {number} " + "why is it so? " * (number % 3 * 30), number))
        await bench.idle(session)
        if number in (11, 23):
            session.compact("")
            await bench.idle(session)
    view = session.log.view.messages
    here = {message.id for message in view}
    summary = "\n".join(message.text for message in view if message.tag == SUMMARY_TAG)
    spans = [(int(first), int(last or first)) for first, last in KEYS.findall(summary)]
    gone = [
        event.payload.message
        for event in bench.store.load_events("chat-1")
        if isinstance(event.payload, MessageAdded) and event.payload.message.id not in here
    ]
    assert len(gone) > 20
    for message in gone:
        if message.tag != GO_ON_TAG and (message.text or message.tool_calls):
            key = session.log.keys[message.id]
            assert any(first <= int(key[1:]) <= last for first, last in spans), (key, spans)
            told, text = session.removed.read(key)
            assert told.id == message.id
            assert message.text in text
            assert all(call.arguments in text for call in message.tool_calls)
    assert [m.id for m in (await bench.resume()).log.view.messages] == [m.id for m in view]
