"""The real plugin in a real Neovim against providers that others wrote: every wire format, directly and by gateway."""

from __future__ import annotations

import pytest

from codecompanion.invariants import violations
from tests.peers.aimock import failure, text, tools, usage


def sent(aimock, index=-1):
    """Return the messages of a request that reached aimock, without the system prompt."""
    return [message for message in aimock.requests()[index]["messages"] if message["role"] != "system"]


def said(messages):
    return [_plain(message["content"]) for message in messages if message["role"] == "user"]


def _plain(content):
    return content if isinstance(content, str) else "".join(part.get("text", "") for part in content)


def test_text_streams_in_and_the_meter_shows_what_was_reported(endpoint, aimock, nvim_factory, tmp_path):
    words = " ".join(f"word{number}" for number in range(30))
    aimock.answer(text("hello", f"{words} the end", usage=usage(900, 12), latency=40, chunkSize=8))
    chat = endpoint.start_chat(nvim_factory, tmp_path)
    chat.send("hello")
    assert "the end" not in chat.nvim.wait_screen("word3")
    chat.nvim.wait_screen("the end")
    chat.wait_state("idle")
    assert chat.view().messages[-1].text == f"{words} the end"
    assert "ctx 912/128k" in chat.nvim.screen()
    assert said(sent(aimock)) == ["hello"]
    assert chat.nvim.messages() == ""


def test_tool_calls_are_run_and_their_results_sent_back(endpoint, aimock, nvim_factory, tmp_path):
    """Two calls in one reply; then the whole turn is sent once more with the next message."""
    read = [("read_file", {"path": "a.txt"}), ("read_file", {"path": "b.txt"})]
    aimock.answer(
        tools("compare", *read, content="Let me look.", reasoning="Two files."),
        text("compare", "Both are fine.", match={"hasToolResult": True}),
        text("thanks", "You are welcome."),
    )
    chat = endpoint.start_chat(nvim_factory, tmp_path, files=[("a.txt", "alpha\n"), ("b.txt", "beta\n")])
    chat.say("compare a.txt and b.txt")
    assert "read_file b.txt" in chat.text()
    assert "Both are fine." in chat.text()
    messages = sent(aimock)
    assert [message["role"] for message in messages] == ["user", "assistant", "tool", "tool"]
    assert "alpha" in _plain(messages[2]["content"])
    assert "beta" in _plain(messages[3]["content"])
    calls = messages[1]["tool_calls"]
    assert [call["id"] for call in calls] == [message["tool_call_id"] for message in messages[2:]]
    chat.say("thanks")
    assert sent(aimock)[: len(messages)] == messages
    assert "You are welcome." in chat.text()
    assert violations(chat.view().messages) == []


def test_after_every_refusal_comes_one_sentence_and_a_usable_chat(endpoint, aimock, nvim_factory, tmp_path):
    """Lessons 37, 38."""
    errors = {
        "limited": (429, "rate_limit_error", r"too many requests \(429\)"),
        "failing": (500, "server_error", r"the provider failed \(500\)"),
        "refused": (400, "invalid_request_error", r"the provider refused the request \(400\)"),
    }
    aimock.answer(*(failure(word, status, "Not so.", kind) for word, (status, kind, _) in errors.items()))
    aimock.answer(text("again", "Here I am."))
    chat = endpoint.start_chat(nvim_factory, tmp_path, opts={"max_retries": 0}, size=(220, 50))
    for number, (word, (*_, sentence)) in enumerate(errors.items(), 1):
        chat.say(f"{word} {number}")
        screen = chat.nvim.wait_screen(f"loop: {sentence}.*Not so")
        assert "Traceback" not in screen
        chat.say(f"again {number}")
        assert chat.text().count("Here I am.") == number
    assert said(sent(aimock)) == ["limited 1", "again 1", "failing 2", "again 2", "refused 3", "again 3"]
    assert not chat.nvim.blocked()
    assert chat.nvim.messages() == ""


def test_a_wrong_key_is_named_by_where_it_came_from(direct, nvim_factory, tmp_path):
    """Not by the gateway: without a database LiteLLM answers every strange key with 400 "No connected db."."""
    chat = direct.start_chat(nvim_factory, tmp_path, key="wrong-0123456789abcdef", size=(220, 50))
    chat.say("hello")
    screen = chat.nvim.wait_screen("loop: the key in LOOP_KEY was refused")
    assert "wrong-0123456789abcdef" not in screen
    assert chat.nvim.messages() == ""


def test_a_rate_limit_is_shown_waited_for_and_overcome(endpoint, aimock, nvim_factory, tmp_path):
    limit = failure("hello", 429, "Slow down", "rate_limit_error", retryAfter=1, match={"sequenceIndex": 0})
    aimock.answer(limit, text("hello", "made it"))
    chat = endpoint.start_chat(nvim_factory, tmp_path)
    chat.send("hello")
    chat.nvim.wait_screen("(?i)retry|again in")
    chat.nvim.wait_screen("made it")
    assert [said(request["messages"]) for request in aimock.requests()] == [["hello"], ["hello"]]
    assert chat.nvim.messages() == ""


def test_a_stream_cut_in_the_middle_keeps_what_arrived(endpoint, aimock, nvim_factory, tmp_path):
    """Lesson 39; behind the gateway the connection ends cleanly."""
    cut = text("hello", "one two three four five six seven", chunkSize=4, truncateAfterChunks=8, latency=30)
    aimock.answer(cut, text("again", "Here I am."))
    chat = endpoint.start_chat(nvim_factory, tmp_path, opts={"max_retries": 0})
    chat.say("hello")
    assert "one two" in chat.text()
    assert "seven" not in chat.text()
    chat.nvim.wait_screen("(?i)cut|ended before|broke")
    assert chat.view().messages[-1].cut
    chat.say("again")
    assert "Here I am." in chat.text()
    assert violations(chat.view().messages) == []


@pytest.mark.parametrize("fault", ["malformedRate", "disconnectRate", "dropRate"])
def test_a_broken_answer_is_one_sentence(direct, aimock, nvim_factory, tmp_path, fault):
    aimock.answer(text("hello", "never seen", chaos={fault: 1}), text("again", "Here I am."))
    chat = direct.start_chat(nvim_factory, tmp_path, opts={"max_retries": 0})
    chat.say("hello")
    assert "Traceback" not in chat.nvim.wait_screen("loop: ")
    chat.say("again")
    assert "Here I am." in chat.text()
    assert chat.nvim.messages() == ""


def test_an_empty_reply_is_not_sent_back(gateway, aimock, nvim_factory, tmp_path):
    """LiteLLM makes a complete reply without any content of an answer it cannot read."""
    aimock.answer(text("hello", "never seen", chaos={"malformedRate": 1}), text("again", "Here I am."))
    chat = gateway.start_chat(nvim_factory, tmp_path, opts={"max_retries": 0})
    chat.say("hello")
    chat.say("again")
    assert "Here I am." in chat.text()
    assert [message["role"] for message in sent(aimock)] == ["user", "user"]
