"""A local server in the user interface: winbar, notice, list of models, `:checkhealth`."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from pathlib import Path

import pytest

from harness import Nvim
from real_chat import KEY, start_chat
from tests.providers.chat.answers import reply
from tests.providers.chat.counting import LLAMA_CPP as COUNTS
from tests.providers.chat.thread import ChatServerThread
from tests.unit.adapters.test_server_facts import LLAMA_CPP


def test_the_winbar_names_the_model_that_answers(nvim_factory: Callable[..., Nvim], tmp_path: Path) -> None:
    """Routers, and servers with another model loaded, may answer with a different model.

    The winbar names it until the requested model answers or the model is changed.
    """
    replies = [reply("one", model="/models/qwen3-8b.gguf"), reply("two"), reply("three", model="gpt-4o-2024-08-06")]
    with ChatServerThread(replies, key=KEY) as server:
        chat = start_chat(nvim_factory, tmp_path, server, size=(120, 30))
        chat.say("hello")
        chat.nvim.wait_screen(" · test-model → qwen3-8b.gguf · ~")
        chat.say("hello again")
        chat.nvim.wait_screen(" · test-model · ~")
        chat.say("and again")
        chat.nvim.wait_screen(" · test-model → gpt-4o-2024-08-06 · ~")


def test_a_model_whose_id_is_a_path_is_shown_by_its_file_name(
    nvim_factory: Callable[..., Nvim], tmp_path: Path
) -> None:
    """`llama-server -m /srv/models/qwen3-8b.gguf` lists the path as the id of its model; it is sent unchanged."""
    path = "/srv/models/qwen3-8b.gguf"
    with ChatServerThread([reply("one", model=path)], key=KEY, models=(path,)) as server:
        chat = start_chat(nvim_factory, tmp_path, server, model=path, size=(120, 40))
        chat.nvim.wait_screen(r"^ qwen3-8b\.gguf · ")
        chat.say("hello")
        chat.nvim.wait_screen(r"CodeCompanion .Loop · qwen3-8b\.gguf")
        assert [seen.json["model"] for seen in server.requests if seen.method == "POST"] == [path]
        chat.nvim.feed("ga")
        chat.nvim.wait_screen(r"loop · qwen3-8b\.gguf")
        assert "/srv" not in "\n".join(chat.nvim.screen())


@pytest.mark.parametrize("extends", ["openai_compatible", "llama_cpp"])
def test_the_first_answer_of_an_entry_without_a_model_names_it(
    nvim_factory: Callable[..., Nvim], tmp_path: Path, extends: str
) -> None:
    """In the header, the winbar and the requests of `/cost`."""
    gate, name = asyncio.Event(), "qwen3-8b.gguf"
    usage = {"prompt_tokens": 2400, "completion_tokens": 9, "total_tokens": 2409}
    with ChatServerThread([reply("one", gate=gate, model=name, usage=usage)], key=KEY, models=(name,)) as server:
        chat = start_chat(nvim_factory, tmp_path, server, extends=extends, model="", size=(120, 40))
        chat.send("hello")
        chat.nvim.wait_screen(f"CodeCompanion .Loop · {name}")
        server.release(gate)
        chat.nvim.wait_screen(f" hello · {name} · 1 %")
        chat.wait_state("idle")
        chat.send("/cost")
        chat.nvim.wait_screen("(Cost|Usage) of this chat")
        assert name in chat.text()


def test_a_new_chat_names_the_model_that_the_server_reports(nvim_factory: Callable[..., Nvim], tmp_path: Path) -> None:
    """Before the first message."""
    with ChatServerThread(key=KEY, pages={"/props": LLAMA_CPP}) as server:
        start_chat(nvim_factory, tmp_path, server, extends="llama_cpp", model="", size=(120, 30)).nvim.wait_screen(
            " SmolLM2-135M.gguf · ~"
        )


def test_a_model_whose_template_has_no_tools(nvim_factory: Callable[..., Nvim], tmp_path: Path) -> None:
    """No tools are sent to it, and the window is the one its server reports."""
    told = {**LLAMA_CPP, "chat_template_caps": {"supports_tools": False}}
    with ChatServerThread([reply("ok")], key=KEY, pages={"/props": told}) as server:
        options = {"adapters": {"http": {"loop": {"opts": {"context_window": 0}}}}}
        chat = start_chat(nvim_factory, tmp_path, server, extends="llama_cpp", options=options, size=(120, 30))
        chat.nvim.wait_screen("test-model · no tools · ~")
        chat.say("hello")
        chat.nvim.wait_screen("No tools are sent: the chat template of SmolLM2-135M.gguf does not support them.")
        (sent,) = [seen.json for seen in server.requests if seen.method == "POST"]
        assert "tools" not in sent
        assert "SmolLM2-135M.gguf · window of 4,096 tokens · 4 slots · no tools" in chat.health()
        chat.nvim.feed("g?")
        chat.nvim.wait_screen("No tools are sent: the chat template of SmolLM2-135M.gguf does not support them.")
        chat.nvim.feed("q")
        chat.nvim.feed("ga")
        chat.nvim.wait_screen("test-model · 4.1k · no tools · current")


def test_attachments_near_a_limit_are_counted_before_they_are_sent(
    nvim_factory: Callable[..., Nvim], tmp_path: Path
) -> None:
    """The estimate for a file is a few percent off and 85 % is close, so the server counts the tokens, at no cost."""
    told = {**LLAMA_CPP, "default_generation_settings": {"n_ctx": 8192}}
    with ChatServerThread([reply("ok")], key=KEY, pages={"/props": told}, counts=COUNTS) as server:
        options = {"adapters": {"http": {"loop": {"opts": {"context_window": 0}}}}}
        files = [("a.txt", "one two three four\n" * 1_000)]
        chat = start_chat(
            nvim_factory, tmp_path, server, extends="llama_cpp", options=options, files=files, size=(120, 30)
        )
        chat.nvim.wait_screen("test-model · ~")
        chat.send("/file a.txt")
        chat.nvim.wait_for(lambda: any(seen.path == COUNTS for seen in server.requests), "the count")
        chat.nvim.wait_screen(r"test-model · \d")
        assert [seen.path for seen in server.requests if seen.method == "POST"] == [COUNTS]


def test_a_compatible_entry_recognises_the_server(nvim_factory: Callable[..., Nvim], tmp_path: Path) -> None:
    """The window and the missing tools are known as if the entry had named the server."""
    told = {**LLAMA_CPP, "chat_template_caps": {"supports_tools": False}}
    with ChatServerThread([reply("ok")], key=KEY, pages={"/props": told}) as server:
        chat = start_chat(nvim_factory, tmp_path, server, opts={"context_window": 0}, size=(120, 30))
        chat.say("hello")
        chat.nvim.wait_screen("No tools are sent: the chat template of SmolLM2-135M.gguf does not support them.")
        assert "SmolLM2-135M.gguf · window of 4,096 tokens · 4 slots · no tools" in chat.health()
        assert [seen.path for seen in server.requests].count("/props") >= 1


def test_while_no_server_listens_the_chat_shows_how_to_start_it(
    nvim_factory: Callable[..., Nvim], tmp_path: Path
) -> None:
    """In a narrow window, the address has precedence over the command."""
    with ChatServerThread([], key=KEY) as server:
        url = server.url.removesuffix("/v1")
    away = {"adapters": {"http": {"loop": {"env": {"url": url}}}}}
    with ChatServerThread([], key=KEY) as other:
        chat = start_chat(nvim_factory, tmp_path, other, extends="llama_cpp", options=away, size=(110, 30))
    chat.send("hello")
    chat.nvim.wait_screen(r"⋯ no server at \S+ yet, start it with: llama-server -m model.gguf · \d+ s · q to stop")
    chat.nvim.request("nvim_ui_try_resize", 70, 30)
    chat.nvim.wait_screen(r"⋯ no server at \S+ yet · \d+ s · q to stop")
    chat.nvim.feed("q")
    chat.wait_state("idle")
