"""The real plugin in a real Neovim with third-party providers: every wire format, directly and through a gateway."""

from __future__ import annotations

import pytest

from codecompanion.model.invariants import violations
from tests.peers.aimock import failure, text, tools, usage
from tests.peers.endpoints import MESSAGES, Endpoint
from tests.peers.tap import Tap


def sent(aimock, index=-1):
    """Return the messages of a request that reached aimock, without the system prompt."""
    return [message for message in aimock.requests()[index]["messages"] if message["role"] != "system"]


def said(messages):
    return [_plain(message["content"]) for message in messages if message["role"] == "user"]


def _plain(content):
    return content if isinstance(content, str) else "".join(part.get("text", "") for part in content)


def test_text_streams_in_and_the_meter_shows_what_was_reported(endpoint, aimock, nvim_factory, tmp_path):
    words = " ".join(f"word{number}" for number in range(30))
    aimock.answer(text("hello", f"{words} the end", usage=usage(900, 12), latency=60, chunkSize=8))
    chat = endpoint.start_chat(nvim_factory, tmp_path)
    chat.send("hello")
    assert "the end" not in chat.nvim.wait_screen("word3")
    chat.nvim.wait_screen("the end")
    chat.wait_state("idle")
    assert chat.view().messages[-1].text == f"{words} the end"
    assert "ctx 912/128.0k" in chat.nvim.screen()
    assert said(sent(aimock)) == ["hello"]
    assert chat.nvim.messages() == ""


def test_tool_calls_are_run_and_their_results_sent_back(endpoint, aimock, nvim_factory, tmp_path):
    """One reply has two calls; the whole turn is sent again with the next message."""
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
    calls = [call["id"] for message in messages for call in message.get("tool_calls") or ()]
    results = {message["tool_call_id"]: _plain(message["content"]) for message in messages if message["role"] == "tool"}
    assert list(results) == calls
    assert [word in result for word, result in zip(["alpha", "beta"], results.values(), strict=True)] == [True, True]
    chat.say("thanks")
    assert sent(aimock)[: len(messages)] == messages
    assert "You are welcome." in chat.text()
    assert violations(chat.view().messages) == []


def test_every_refusal_is_one_sentence_and_leaves_a_usable_chat(endpoint, aimock, nvim_factory, tmp_path):
    """Lessons 37, 38: this covers all error statuses."""
    errors = {
        "limited": (429, "rate_limit_error", r"too many requests \(429\)"),
        "failing": (500, "server_error", r"the provider failed \(500\)"),
        "refused": (400, "invalid_request_error", r"the provider refused the request \(400\)"),
    }
    # First: Messages has no two user turns in a row, so the refused message is part of the one that says "again".
    aimock.answer(text("again", "Here I am."))
    aimock.answer(*(failure(word, status, "Not so.", kind) for word, (status, kind, _) in errors.items()))
    chat = endpoint.start_chat(nvim_factory, tmp_path, opts={"max_retries": 0}, size=(220, 50))
    for number, (word, (*_, sentence)) in enumerate(errors.items(), 1):
        chat.say(f"{word} {number}")
        screen = chat.nvim.wait_screen(f"loop: {sentence}.*Not so")
        assert "Traceback" not in screen
        chat.say(f"again {number}")
        assert chat.text().count("Here I am.") == number
    words = "".join(said(sent(aimock)))
    assert [words.count(f"{word} {n}") for n, word in enumerate(errors, 1)] == [1, 1, 1]
    assert not chat.nvim.blocked()
    assert chat.nvim.messages() == ""


def test_a_wrong_key_is_named_by_its_source(direct, nvim_factory, tmp_path):
    """This does not cover the gateway: without a database, LiteLLM answers unknown keys with 400 "No connected db."."""
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
    """Lesson 39: behind the gateway, the connection ends cleanly."""
    # Slowly: a gateway that has not begun to read when the connection breaks passes nothing on.
    cut = text("hello", "one two " * 20 + "the end", chunkSize=4, truncateAfterChunks=12, latency=100)
    aimock.answer(cut, text("again", "Here I am."))
    chat = endpoint.start_chat(nvim_factory, tmp_path, opts={"max_retries": 0})
    chat.say("hello")
    assert "one two" in chat.text()
    assert "the end" not in chat.text()
    chat.nvim.wait_screen("(?i)cut|ended before|incomplete|lost")
    assert chat.view().messages[-1].cut
    chat.say("again")
    assert "Here I am." in chat.text()
    assert violations(chat.view().messages) == []


def test_a_request_that_is_too_long_is_sent_smaller(endpoint, aimock, nvim_factory, tmp_path):
    """R-535: the gateway wraps the error message in its own (`ContextWindowExceededError`)."""
    too_long = {
        "anthropic": ("prompt is too long: 208310 tokens > 200000 maximum", ""),
        "openai": (
            "This model's maximum context length is 128000 tokens. However, your messages resulted in 131000 tokens.",
            "context_length_exceeded",
        ),
    }
    message, code = too_long["anthropic" if endpoint.wire is MESSAGES else "openai"]
    aimock.answer(
        failure("beta", 400, message, "invalid_request_error", code, match={"sequenceIndex": 0}),
        text("beta", "Here I am."),
        text("alpha", "Alpha. " * 2_000),
    )
    chat = endpoint.start_chat(nvim_factory, tmp_path)
    chat.say("alpha")
    chat.say("beta")
    assert "Here I am." in chat.text()
    refused, taken = [str(request["messages"]) for request in aimock.requests()[-2:]]
    assert len(taken) < len(refused)
    assert "beta" in taken
    assert violations(chat.view().messages) == []


@pytest.mark.parametrize("fault", ["malformedRate", "disconnectRate", "dropRate"])
def test_a_broken_answer_is_one_sentence(direct, aimock, nvim_factory, tmp_path, fault):
    aimock.answer(text("again", "Here I am."), text("hello", "never seen", chaos={fault: 1}))
    chat = direct.start_chat(nvim_factory, tmp_path, opts={"max_retries": 0})
    chat.say("hello")
    assert "Traceback" not in chat.nvim.wait_screen("loop: ")
    chat.say("again")
    assert "Here I am." in chat.text()
    assert chat.nvim.messages() == ""


def test_an_empty_reply_is_not_sent_back(gateway, aimock, nvim_factory, tmp_path):
    """LiteLLM turns an answer it cannot read into a complete reply without any content."""
    aimock.answer(text("again", "Here I am."), text("hello", "never seen", chaos={"malformedRate": 1}))
    chat = gateway.start_chat(nvim_factory, tmp_path, opts={"max_retries": 0})
    chat.say("hello")
    chat.say("again")
    assert "Here I am." in chat.text()
    assert {message["role"] for message in sent(aimock)} == {"user"}


def test_thinking_goes_back_with_the_calls_it_led_to(aimock, nvim_factory, tmp_path):
    """aimock refuses a tool turn that does not begin with its thinking block, as the provider does."""
    aimock.answer(
        tools("compare", ("read_file", {"path": "a.txt"}), reasoning="One file is enough."),
        text("compare", "It is fine.", match={"hasToolResult": True}, reasoning="So it is."),
        text("thanks", "You are welcome."),
    )
    schema = {"model": {"default": "claude-opus-4-5"}, "thinking_budget": {"default": 2_000}}
    with Tap(aimock.url) as tap:
        endpoint = Endpoint(tap.url, MESSAGES, "claude-opus-4-5")
        chat = endpoint.start_chat(nvim_factory, tmp_path, adapter={"schema": schema}, files=[("a.txt", "alpha\n")])
        chat.say("compare")
        chat.say("thanks")
        assert "You are welcome." in chat.text()
        sent_back = tap.exchanges[1].json
        assert sent_back["thinking"]["budget_tokens"] == 2_000
        first = {"type": "thinking", "thinking": "One file is enough.", "signature": "aimock-placeholder-signature"}
        assert sent_back["messages"][1]["content"][0] == first
        assert [exchange.status for exchange in tap.exchanges] == [200, 200, 200]
