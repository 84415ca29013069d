"""Lists and questions with the real host: models, stored chats, the compaction forecast."""

from __future__ import annotations

import pytest

from real_chat import KEY, start_chat
from tests.providers.chat.answers import reply
from tests.providers.chat.thread import ChatServerThread
from tests.summaries import nine_sections


def test_an_unconfigured_adapter_does_not_hide_the_others(nvim_factory, tmp_path):
    """In a fresh installation, `ga` works although most adapters have neither a key nor a URL."""
    with ChatServerThread([reply("hi")], key=KEY) as server:
        chat = start_chat(nvim_factory, tmp_path, server, size=(100, 30))
        chat.nvim.feed("<Esc>ga")
        chat.nvim.wait_screen(r"loop · test-model · 128k · current")
        chat.nvim.feed("/offline<CR><CR>")
        chat.nvim.wait_screen(r"\n (.* · )?offline · ~?\d+ %")
        assert "✗" not in chat.text()


@pytest.mark.parametrize("key", ["y", "c"])
def test_an_idle_chat_is_compacted_and_answered_only_if_configured(nvim_factory, tmp_path, key):
    """R-528, R-533: the question shows token counts, and one key answers it."""
    long = "A long answer about stacks. " * 300
    script = [reply(long), reply(nine_sections("A stack.")), reply("I go on.")]
    with ChatServerThread(script, key=KEY) as server:
        chat = start_chat(nvim_factory, tmp_path, server, size=(100, 30))
        chat.say("Explain stacks")
        chat.send("/compact")
        chat.nvim.wait_screen(r"Compact now\? \S+ → about \S+ +\[y\]es  yes, then \[c\]ontinue  \[n\]o")
        chat.nvim.feed(key)
        chat.nvim.wait_for(lambda: len(server.requests) >= (3 if key == "c" else 2), "the requests")
        chat.nvim.wait_for(lambda: "A stack." in chat.text(), "the card")
        if key == "c":
            chat.nvim.wait_for(lambda: "I go on." in chat.text(), "the answer")
        chat.wait_state("idle")
        assert ("I go on." in chat.text()) is (key == "c")
        assert len(server.requests) == (3 if key == "c" else 2)


def test_a_cleared_chat_shows_the_undo_key_and_it_works(nvim_factory, tmp_path):
    """After `gC`, `u` in the empty input restores the chat."""
    with ChatServerThread([reply("hi")], key=KEY) as server:
        chat = start_chat(nvim_factory, tmp_path, server, size=(100, 30))
        chat.say("Explain stacks")
        before = chat.view().messages
        chat.nvim.feed("gC")
        chat.nvim.wait_screen(r"Chat cleared · u undo")
        assert chat.view().messages == ()
        chat.nvim.feed("Gu")
        chat.nvim.wait_for(lambda: "Explain stacks" in chat.text(), "the chat")
        assert chat.view().messages == before
        assert "Chat cleared" not in chat.text()


def test_a_stored_chat_is_found_by_its_title(nvim_factory, tmp_path):
    """`:CodeCompanionChat Resume` finds it in the list and by name with completion."""
    with ChatServerThread([reply("hi"), reply("ho")], key=KEY) as server:
        chat = start_chat(nvim_factory, tmp_path, server, size=(100, 30))
        chat.say("Explain stacks to me")
        first = chat.id
        chat.nvim.lua("require('codecompanion.chat').close()")
        chat.open()
        chat.nvim.command("CodeCompanionChat Resume")
        chat.nvim.wait_screen(r"\d\d:\d\d +Explain stacks to me · 1 turn")
        chat.nvim.feed("<CR>")
        chat.nvim.wait_for(lambda: chat.id == first, "the chat")
        chat.nvim.lua("require('codecompanion.chat').close()")
        chat.nvim.feed(":CodeCompanionChat Resume Expl<Tab><CR>")
        chat.nvim.wait_for(lambda: chat.id == first, "the chat by its title")
        chat.nvim.wait_screen("Explain stacks to me")


@pytest.mark.parametrize("address", ["localhost:18951", ""])
def test_a_chat_with_a_wrong_address_continues_with_another_adapter(nvim_factory, tmp_path, address):
    """The error appears once, with the configured name; `ga` lists the reason, and another adapter answers."""
    wrong = {"extends": "openai_compatible", "env": {"url": address, "api_key": "LOOP_KEY"}}
    failing = {"extends": "loop", "env": {"api_key": "cmd:false"}}
    options = {
        "adapters": {"http": {"mine": wrong, "broken": failing}},
        "interactions": {"chat": {"adapter": "mine"}},
    }
    with ChatServerThread([reply("hi")], key=KEY) as server:
        chat = start_chat(nvim_factory, tmp_path, server, options=options, size=(120, 40))
        mistake = f'adapters.http.mine.env.url: got "{address}"; expected http://… or https://…'
        chat.nvim.wait_for(lambda: mistake in chat.text(), "what is wrong")
        chat.send("Hello")
        refusal = (
            "mine cannot be used: adapters.http.mine.env.url is invalid. Correct it, or choose another adapter with ga"
        )
        chat.nvim.wait_for(lambda: refusal in chat.text(), "why nothing was sent")
        assert "no longer has this chat open" not in chat.text()
        assert chat.text().count(mistake) == 1
        chat.nvim.feed("<Esc>ga")
        chat.nvim.wait_screen(r"mine · env.url: got")
        chat.nvim.wait_screen(r"broken · the command `false` failed with exit status 1")
        chat.nvim.wait_screen(r"\d+ more adapters need a key, a login or a server")
        chat.nvim.feed("G<CR>")
        chat.nvim.wait_screen(r"openai · needs OPENAI_API_KEY")
        chat.nvim.feed("gg/^broken<CR><CR>")
        chat.nvim.wait_for(
            lambda: "Change adapters.http.broken, or choose another adapter with ga. The adapter" in chat.text(),
            "why",
        )
        chat.nvim.feed("<Esc>ga")
        chat.nvim.wait_screen(r"loop · test-model")
        chat.nvim.feed("/loop · test<CR><CR>")
        chat.nvim.wait_lua("return vim.b.codecompanion_chat.adapter == 'loop'")
        chat.nvim.feed("gr")
        chat.nvim.wait_for(lambda: "## CodeCompanion (Loop · test-model)\nhi" in chat.text(), "the answer")
        chat.wait_state("idle")
        asked = [request.json["messages"][-1] for request in server.requests if request.path.endswith("/completions")]
        assert [message["content"] for message in asked] == ["Hello"]


def test_a_server_that_is_down_is_listed_first_and_asked_again(nvim_factory, tmp_path):
    """The configured server comes first and is marked as current; `<CR>` asks it again and shows what was tried."""
    with ChatServerThread([reply("hi")], key=KEY) as server:
        chat = start_chat(nvim_factory, tmp_path, server, size=(80, 30))
        port = server.port

    def open_list():
        chat.nvim.feed("<Esc>ga")
        chat.nvim.wait_screen("Choose a model")
        return chat.nvim.lua("return vim.api.nvim_buf_get_lines(0, 0, -1, false)")

    tried = f"loop: no connection to http://127.0.0.1:{port} (connection refused). Start the server, or check env.url."
    assert open_list()[0] == f"loop · local server, not running at 127.0.0.1:{port} · current"
    chat.nvim.feed("gg<CR>")
    chat.nvim.wait_for(lambda: tried in chat.text(), "the address and the remedy")
    assert "The adapter was not changed" not in chat.text()
    open_list()
    chat.nvim.feed("/^offline<CR><CR>")
    chat.nvim.wait_screen(r"\n (.* · )?offline · ~?\d+ %")
    assert open_list()[0] == f"loop · local server, not running at 127.0.0.1:{port}"
    server = ChatServerThread([reply("hi")], key=KEY)
    server.port = port
    with server:  # started while the list is open
        chat.nvim.feed("gg<CR>")
        chat.nvim.wait_screen(r"\n (.* · )?test-model · ~?\d+ %")
