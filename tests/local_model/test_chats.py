"""The real plugin in a real Neovim with a real local model: the experience of a llama.cpp user."""

from __future__ import annotations

import shutil
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from codecompanion.adapters.http.server_reader import NEAR_FRESH_S
from codecompanion.model.history import ViewChanged
from codecompanion.model.invariants import violations
from harness import Nvim
from real_chat import RealChat, start_chat
from tests.local_model.llama_server import LlamaServer
from tests.peers.endpoints import WIRES, Endpoint
from tests.peers.tap import Tap

Start = Callable[..., Nvim]


def chat_with(
    llama: LlamaServer, nvim_factory: Start, root: Path, *, url: str = "", policy: str = "codecompanion", **options: Any
) -> RealChat:
    """Start a chat with the built-in adapter for llama.cpp and default options, short replies."""
    entry = {
        "extends": "llama_cpp",
        "env": {"url": url or llama.url},
        "schema": {"max_tokens": {"default": 48}, "temperature": {"default": 0}},
    }
    chosen = {"adapters": {"http": {"local": entry}}, "interactions": {"chat": {"adapter": "local"}}}
    chosen["interactions"]["chat"]["opts"] = {"policy": policy}
    return start_chat(nvim_factory, root, llama, options=chosen, **options)


def answered(chat: RealChat) -> bool:
    """Return whether the last message is a reply."""
    last = chat.view().messages[-1:]
    return bool(last) and last[0].role == "assistant" and bool(last[0].text.strip())


def compactions(chat: RealChat) -> int:
    """Return how many times a summary replaced messages."""
    payloads = [event.payload for event in chat.log()]
    return sum(isinstance(one, ViewChanged) and one.kind == "compacted" for one in payloads)


def wait_for_window(chat: RealChat, tokens: int) -> None:
    """Wait until the chat's meter uses this window."""
    chat.nvim.wait_lua("return vim.b.codecompanion_chat.meter.window == ...", tokens)


def test_the_first_chat_at_4k_is_answered_and_its_window_is_known(llama, nvim_factory, tmp_path):
    llama.start(4096)
    chat = chat_with(llama, nvim_factory, tmp_path)
    chat.say("hello")
    assert answered(chat)
    wait_for_window(chat, 4096)
    assert chat.nvim.messages() == ""


def test_tools_that_the_template_cannot_show_are_not_sent(llama, nvim_factory, tmp_path):
    """SmolLM2's template does not support tools: they would take over half of the window without reaching the model."""
    llama.start(4096)
    with Tap(llama.url) as tap:
        chat = chat_with(llama, nvim_factory, tmp_path, url=tap.url)
        chat.say("hello")
        chat.say("and again")
        assert answered(chat)
        sent = [one.json for one in tap.exchanges if one.path.endswith("/chat/completions")]
    assert [body.get("tools") for body in sent] == [None, None]
    assert "too few tokens" not in chat.text() + chat.nvim.messages()


def test_a_first_message_at_2k_is_answered(llama, nvim_factory, tmp_path):
    llama.start(2048)
    chat = chat_with(llama, nvim_factory, tmp_path)
    chat.say("hello")
    assert answered(chat)


def test_another_window_after_a_restart_is_seen_in_old_and_new_chats(llama, nvim_factory, tmp_path):
    llama.start(8192)
    chat = chat_with(llama, nvim_factory, tmp_path)
    chat.say("hello")
    wait_for_window(chat, 8192)
    llama.start(4096)
    time.sleep(NEAR_FRESH_S)
    chat.say("are you there?")
    assert answered(chat)
    wait_for_window(chat, 4096)
    chat.open()
    chat.say("hello")
    wait_for_window(chat, 4096)


def test_a_message_waits_for_a_server_that_is_just_starting(llama, nvim_factory, tmp_path):
    chat = chat_with(llama, nvim_factory, tmp_path)
    chat.send("hello")
    chat.nvim.wait_screen(r"no server at .* yet")
    llama.start(4096)
    chat.nvim.wait_for(lambda: answered(chat), "the reply")


def test_a_stopped_reply_leaves_a_usable_chat(llama, nvim_factory, tmp_path):
    llama.start(4096)
    chat = chat_with(llama, nvim_factory, tmp_path)
    chat.send("Count from one to one hundred, in words.")
    chat.wait_state("streaming")
    chat.nvim.feed("q")
    chat.wait_state("idle")
    chat.say("Name one colour.")
    assert answered(chat)
    assert violations(chat.view().messages) == []


def test_a_server_killed_in_the_middle_costs_one_sentence(llama, nvim_factory, tmp_path):
    """A message that the server received is not sent again automatically (section 2)."""
    llama.start(4096)
    with Tap(llama.url) as tap:
        chat = chat_with(llama, nvim_factory, tmp_path, url=tap.url)
        chat.send("Count from one to one hundred, in words.")
        chat.wait_state("streaming")
        llama.stop()
        chat.wait_state("idle")
        sent = [one for one in tap.exchanges if one.path.endswith("/chat/completions")]
        assert len(sent) == 1
        llama.start(4096)
        chat.say("Name one colour.")
        assert answered(chat)
    assert violations(chat.view().messages) == []


def test_a_message_larger_than_the_window_is_given_back_with_one_sentence(llama, nvim_factory, tmp_path):
    llama.start(2048)
    with Tap(llama.url) as tap:
        chat = chat_with(llama, nvim_factory, tmp_path, url=tap.url)
        chat.say("hello")
        sent = len(tap.exchanges)
        chat.put("word " * 6000)
        chat.say("Go.")
        assert [one for one in tap.exchanges[sent:] if "word word" in one.body.decode()] == []
        assert "word word" in chat.draft()
        chat.put("Name one colour.")
        chat.say("")
        assert answered(chat)
    assert violations(chat.view().messages) == []


def test_two_chats_share_a_slot(llama, nvim_factory, tmp_path):
    llama.start(4096)
    chat = chat_with(llama, nvim_factory, tmp_path)
    chat.say("My dog is called Rex.")
    chat.open()
    chat.say("My cat is called Tom.")
    assert answered(chat)
    assert "Rex" not in str(chat.view())


def test_a_message_sent_while_a_reply_streams_waits_in_the_queue(llama, nvim_factory, tmp_path):
    llama.start(4096)
    chat = chat_with(llama, nvim_factory, tmp_path)
    chat.send("Count from one to one hundred, in words.")
    chat.wait_state("streaming")
    chat.send("Name one colour.")

    def is_answered() -> bool:
        roles = [(message.role, message.text) for message in chat.view().messages]
        asked = [place for place, (role, text) in enumerate(roles) if role == "user" and "Name one colour." in text]
        return bool(asked) and roles[-1][0] == "assistant" and len(roles) > asked[-1] + 1 and chat.state() == "idle"

    chat.nvim.wait_for(is_answered, "the second reply", 200)
    assert violations(chat.view().messages) == []


def test_compact_writes_a_summary_that_the_next_request_has(llama, nvim_factory, tmp_path):
    """The user's words are kept whether the model or code writes the summary."""
    llama.start(4096)
    with Tap(llama.url) as tap:
        chat = chat_with(llama, nvim_factory, tmp_path, url=tap.url)
        chat.say("The deploy code is Ka-4711. What is a queue?")
        chat.say("Say a word about tests.")
        chat.send("/compact")
        chat.nvim.wait_screen("Compact now")
        chat.nvim.feed("y")
        chat.nvim.wait_for(lambda: compactions(chat) == 1, "the compaction", 400)
        chat.say("Name one colour.")
        assert answered(chat)
        assert "Ka-4711" in tap.exchanges[-1].body.decode()


def test_a_router_shows_the_model_and_its_window(llama, nvim_factory, tmp_path):
    models = tmp_path / "models"
    models.mkdir()
    shutil.copy(llama.model, models / "smollm2.gguf")
    llama.start(4096, "--models-dir", str(models))
    chat = chat_with(llama, nvim_factory, tmp_path)
    chat.say("hello")
    assert answered(chat)
    wait_for_window(chat, 4096)
    assert "smollm2" in chat.nvim.screen()


@pytest.mark.parametrize("policy", ["codecompanion", "adaptive", "codebuddy", "kodacode", "cowork", "cowork_chat"])
def test_ten_turns_at_2k_stay_alive_with_automatic_compaction(llama, nvim_factory, tmp_path, policy):
    llama.start(2048)
    chat = chat_with(llama, nvim_factory, tmp_path, policy=policy)
    for number in range(10):
        chat.say(f"Note: port {number} is {4700 + number}. " + "Say a word about tests. " * 8)
        assert answered(chat)
    assert violations(chat.view().messages) == []


@pytest.mark.parametrize("wire", WIRES, ids=lambda wire: wire.adapter)
def test_a_gateway_passes_each_wire_format_on(llama, litellm, nvim_factory, tmp_path, wire):
    chat = Endpoint(litellm.url, wire, wire.gateway_model).start_chat(nvim_factory, tmp_path)
    chat.say("hello")
    assert answered(chat)
    assert violations(chat.view().messages) == []
