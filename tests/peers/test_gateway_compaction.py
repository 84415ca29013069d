"""Anthropic's compaction, performed by LiteLLM's proxy for another model, as the plugin requests and uses it.

R-534…R-538, R-541, R-551. The gateway counts tokens itself, so the texts really are as long as the trigger requires.
"""

from __future__ import annotations

import re

import pytest

from codecompanion.model.history import UsageReported
from codecompanion.model.invariants import violations
from tests.peers.aimock import text, tools, usage
from tests.peers.endpoints import MESSAGES, Endpoint
from tests.peers.tap import Tap

LINES = [f"{number}: the quick brown fox jumps over the lazy dog\n" for number in range(3_300)]
LONG, SHORTER = "".join(LINES), "".join(LINES[:1_000])
"""About 43,000 and 13,000 tokens: together they are above the smallest trigger that both sides accept."""
AT_50_000 = {
    "interactions": {
        "chat": {"opts": {"context_management": {"editing": {"trigger": False}, "compaction": {"trigger": 50_000}}}}
    }
}


def summary(content):
    """Return the fixture for the gateway's summary request."""
    return {"match": {"model": "summariser"}, "response": {"content": content, "usage": usage(61_000, 40)}}


@pytest.fixture
def tap(litellm):
    with Tap(litellm.url) as running:
        yield running


@pytest.fixture
def start(tap, nvim_factory, tmp_path):
    """Return a function that starts a chat in which the gateway compacts from 50,000 tokens on."""
    endpoint = Endpoint(tap.url, MESSAGES, MESSAGES.gateway_model)
    settings = {"options": AT_50_000, "opts": {"compaction": True}, "size": (120, 40)}
    return lambda **more: endpoint.start_chat(nvim_factory, tmp_path, **(settings | more))


def say_long(chat, word, lines):
    """Send a long message that begins with `word`."""
    chat.put(f"{word}\n{lines}\n")
    chat.say("Go.")


def blocks(exchange):
    """Return the compaction blocks of a request, each with its position."""
    return [
        (message_index, index, block)
        for message_index, message in enumerate(exchange.json["messages"])
        if isinstance(message["content"], list)
        for index, block in enumerate(message["content"])
        if block["type"] == "compaction"
    ]


def reported(chat):
    return [event.payload for event in chat.log() if isinstance(event.payload, UsageReported)][-1]


def meter(chat):
    return chat.nvim.lua("return vim.b.codecompanion_chat.meter.tokens")


def test_its_block_replaces_the_history_from_then_on(start, tap, aimock):
    aimock.answer(
        summary("<summary>THE SUMMARY</summary>"),
        text("alpha", "One.", usage=usage(45_000, 3)),
        text("beta", "Two.", usage=usage(12_000, 3)),
        text("gamma", "Three.", usage=usage(12_300, 3)),
    )
    chat = start()
    say_long(chat, "alpha", LONG)
    say_long(chat, "beta", SHORTER)
    asked = tap.exchanges[-1]
    edits = [{"type": "compact_20260112", "trigger": {"type": "input_tokens", "value": 50_000}}]
    assert asked.json["context_management"]["edits"] == edits
    assert {"compact-2026-01-12", "context-management-2025-06-27"} <= set(asked.headers["anthropic-beta"].split(","))
    iterations = [event["usage"]["iterations"] for event in asked.events if event["type"] == "message_delta"]
    assert [step["type"] for step in iterations[0]] == ["compaction", "message"]

    assert "THE SUMMARY" in chat.text()
    assert "left out" not in chat.text()
    assert meter(chat) < 30_000
    usages = reported(chat)
    assert usages.usage.input_tokens == 12_000
    assert [other.input_tokens for other in usages.other_passes] == [61_000]

    chat.say("gamma")
    assert "Three." in chat.text()
    assert blocks(tap.exchanges[-1]) == [(0, 0, {"type": "compaction", "content": "THE SUMMARY"})]
    assert b"alpha" not in tap.exchanges[-1].body
    assert meter(chat) == 12_303
    assert violations(chat.view().messages) == []
    assert chat.nvim.messages() == ""


def test_in_a_tool_loop_the_question_survives(start, tap, aimock):
    """Losses in the gateway (`litellm_proxy.py`) are its own problem; the plugin sends what Anthropic accepts."""
    files = [(f"{name}.txt", LONG) for name in "abcdef"]
    read = [("read_file", {"path": f"{name}.txt"}) for name in "abcdef"]
    aimock.answer(
        summary("<summary>READ SIX FILES</summary>"),
        # The gateway passes on the question alone, as if nothing had been read yet.
        tools("which fox", *read, match={"sequenceIndex": 0}),
        text("which fox", "The brown one."),
        text("thanks", "You are welcome."),
    )
    chat = start(files=files)
    chat.say("which fox jumps?")
    chat.say("thanks")
    assert "You are welcome." in chat.text()
    [(message, block, _)] = blocks(tap.exchanges[-1])
    assert (message, block) == (0, 0)
    assert b"which fox jumps?" in tap.exchanges[-1].body
    assert violations(chat.view().messages) == []


def test_a_summary_it_could_not_make_changes_nothing(start, tap, aimock):
    """Lesson 14: without `<summary>` tags there is no block, only an error among the applied edits."""
    aimock.answer(summary("no tags"), text("alpha", "One."), text("beta", "Two."), text("gamma", "Three."))
    chat = start()
    say_long(chat, "alpha", LONG)
    say_long(chat, "beta", SHORTER)
    assert "Two." in chat.text()
    before = [message.text for message in chat.view().messages]
    chat.say("gamma")
    assert [message.text for message in chat.view().messages] == [*before, "gamma", "Three."]
    assert blocks(tap.exchanges[-1]) == []


def test_results_cleared_by_the_gateway_are_reported(start, aimock):
    """R-536, R-541: this covers `clear_tool_uses_20250919`, which is optional."""
    aimock.answer(
        tools("read all", *[("read_file", {"path": f"{name}.txt"}) for name in "abc"]),
        text("read all", "Read."),
        text("thanks", "You are welcome."),
    )
    files = [(f"{name}.txt", "some words\n" * 300) for name in "abc"]
    chat = start(files=files, opts={"clear_tool_uses": {"trigger": 2_000, "keep": 1}})
    chat.say("read all")
    chat.say("thanks")
    assert "You are welcome." in chat.text()
    upstream = [message["content"] for message in aimock.requests()[-1]["messages"] if message["role"] == "tool"]
    assert [content.startswith("[Cleared") for content in upstream] == [True, True, False]
    assert re.search(r"cleared 2 old tool results on its side \([\d,]+ tokens", chat.text())


def test_on_demand_the_summary_is_ours_if_the_gateway_has_none(start, tap, aimock):
    """R-540: LiteLLM supports only `compact_20260112`."""
    aimock.answer(
        text("nine headings", "OUR SUMMARY"),
        text("OUR SUMMARY", "Going on."),
        text("alpha", "Alpha. " * 2_000),
    )
    chat = start()
    chat.say("alpha")
    chat.nvim.command("CodeCompanionCompact!")
    chat.nvim.wait_screen("Going on.")
    assert ["compaction" in exchange.json for exchange in tap.exchanges] == [False, True, False, False]
    assert blocks(tap.exchanges[-1]) == []
    assert b"Alpha. Alpha." not in tap.exchanges[-1].body
