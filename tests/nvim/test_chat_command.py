"""`:[range]CodeCompanionChat` with options and words: open a chat and send the words."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from codecompanion.model.history import PolicySet
from harness import Nvim
from real_chat import KEY, RealChat, start_chat
from tests.providers.chat.answers import reply
from tests.providers.chat.thread import ChatServerThread

PARSE = "return { require('codecompanion.commands.chat_command').parse(...) }"


@pytest.mark.parametrize(
    ("text", "options", "words"),
    [
        ("why does this fail?", {}, "why does this fail?"),
        ("adapter=openai why?", {"adapter": "openai"}, "why?"),
        ("policy=cowork model=a/b:c adapter=x why?", {"policy": "cowork", "model": "a/b:c", "adapter": "x"}, "why?"),
        ("why adapter=openai?", {}, "why adapter=openai?"),
        ("x=1 is what?", {}, "x=1 is what?"),
        ("-- model=x is what?", {}, "model=x is what?"),
        ("adapter=openai -- Resume the work", {"adapter": "openai"}, "Resume the work"),
    ],
)
def test_options_come_before_the_words(nvim: Nvim, text: str, options: dict[str, str], words: str) -> None:
    """Only words at the start count as options; later ones belong to the question."""
    found = nvim.lua(PARSE, text)
    assert (found[0] or {}) == options
    assert found[1] == words


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("adaptr=openai why?", "did you mean adapter="),
        ("adapter= why?", "adapter= needs a name"),
        ("model=a model=b why?", "model= is given twice"),
    ],
)
def test_a_mistyped_option_sends_nothing(nvim: Nvim, text: str, why: str) -> None:
    """A message is never silently sent to a different model than intended."""
    nvim.command("CodeCompanionChat " + text)
    nvim.wait_for(lambda: why in nvim.messages())
    assert nvim.lua("return #require('codecompanion.chat').list()") == 0


@pytest.fixture
def asking(nvim_factory: Callable[..., Nvim], tmp_path: Path) -> Iterator[tuple[RealChat, ChatServerThread]]:
    """Yield a Neovim with a real host and no open chat yet, and its server."""
    with ChatServerThread(default=lambda received: reply("Because."), key=KEY) as server:
        yield start_chat(nvim_factory, tmp_path, server, opened=False, size=(100, 40)), server


def asked(server: ChatServerThread) -> list[str]:
    """Return the last user message of each request."""
    return [r.json["messages"][-1]["content"] for r in server.requests if r.path.endswith("/chat/completions")]


def test_words_open_a_chat_and_are_sent(asking: tuple[RealChat, ChatServerThread]) -> None:
    """The issue's example; spaces are kept as typed."""
    chat, server = asking
    chat.nvim.command("CodeCompanionChat why does  this fail?")
    chat.nvim.wait_for(lambda: "Because." in chat.text())
    assert asked(server) == ["why does  this fail?"]


def test_a_range_is_attached(asking: tuple[RealChat, ChatServerThread]) -> None:
    """The fenced lines are above the question, with their location; the chosen model is used."""
    chat, server = asking
    chat.nvim.lua("vim.api.nvim_buf_set_lines(0, 0, -1, true, { 'one', '```', 'three' })")
    chat.nvim.command("1,2CodeCompanionChat model=other why?")  # which the server does not know
    chat.nvim.wait_for(lambda: asked(server))
    assert asked(server) == ["(no file):1-2\n````\none\n```\n````\nwhy?"]
    assert server.requests[-1].json["model"] == "other"


def test_a_question_may_begin_with_a_command(asking: tuple[RealChat, ChatServerThread]) -> None:
    """A word that is also a command without arguments counts as a command only on its own."""
    chat, server = asking
    chat.nvim.command("CodeCompanionChat add a test for this")
    chat.nvim.wait_for(lambda: "Because." in chat.text())
    chat.nvim.command("CodeCompanionChat -- Resume the work")
    chat.nvim.wait_for(lambda: len(asked(server)) == 2)
    assert asked(server) == ["add a test for this", "Resume the work"]


def test_an_invalid_choice_keeps_the_words(asking: tuple[RealChat, ChatServerThread]) -> None:
    """With an unknown policy, nothing is sent and the words stay in the input."""
    chat, server = asking
    chat.nvim.command("CodeCompanionChat policy=nonsense why?")
    chat.nvim.wait_for(lambda: "Your message is in the input" in chat.text())
    assert "nonsense" in chat.text()
    assert re.search(r"\w\. Your message is in the input\.", " ".join(chat.text().split()))
    assert chat.draft() == "why?"
    assert not asked(server)


def test_an_unknown_adapter_keeps_the_words(asking: tuple[RealChat, ChatServerThread]) -> None:
    """The chat cannot be opened with it; that is reported and nothing is lost."""
    chat, server = asking
    chat.nvim.command("CodeCompanionChat adapter=nonsense why?")
    chat.nvim.wait_for(lambda: "nonsense" in chat.text() and "why?" in chat.text())
    print(chat.nvim.screen())
    assert not asked(server)


def test_a_policy_option_sets_the_chats_policy(asking: tuple[RealChat, ChatServerThread]) -> None:
    """The policy is set before the question is sent."""
    chat, server = asking
    chat.nvim.command("CodeCompanionChat policy=cowork why?")
    chat.nvim.wait_for(lambda: "Because." in chat.text())
    assert [e.payload.policy for e in chat.log() if isinstance(e.payload, PolicySet)] == ["cowork"]
    assert asked(server) == ["why?"]


def test_add_inserts_the_selection_into_the_last_chat(nvim: Nvim) -> None:
    """It works with a range or a <Cmd> mapping in Visual mode; without either it is an error."""
    input_text = (
        "return require('codecompanion.chat.buffer.chat_text').input_text(require('codecompanion.chat').current())"
    )
    nvim.command("CodeCompanionChat")
    nvim.command("new")
    nvim.lua("vim.api.nvim_buf_set_lines(0, 0, -1, true, { 'one', 'two', 'three' })")
    nvim.command("CodeCompanionChat Add")
    nvim.wait_for(lambda: "Nothing was added" in nvim.messages())
    nvim.lua("_G.work = vim.api.nvim_get_current_win()")
    nvim.command("1CodeCompanionChat Add")
    assert nvim.lua(input_text) == "(no file):1-1\n```\none\n```\n"
    nvim.lua("vim.api.nvim_set_current_win(_G.work)")
    nvim.lua("vim.keymap.set('x', '<Space>a', '<Cmd>CodeCompanionChat Add<CR>')")
    nvim.feed("2GVj<Space>a")
    nvim.wait_for(lambda: "three" in nvim.lua(input_text))
    assert nvim.lua(input_text).endswith("(no file):2-3\n```\ntwo\nthree\n```\n")


def test_only_models_of_the_adapter_are_completed(nvim: Nvim) -> None:
    """Models come from the typed adapter, or else the configured one.

    Other adapters' models could not be used with it.
    """
    nvim.lua("""
      require("codecompanion.config").options.interactions.chat.adapter = { name = "one" }
      local answer = { { adapter = "one", models = { "small", "large" } }, { adapter = "two", models = { "huge" } } }
      require("codecompanion.chat.state.session").request = function(_, _, _, done) done(answer) end
      require("codecompanion.chat.lists.models").list({}, function() end)
    """)
    complete = "return vim.fn.getcompletion('CodeCompanionChat ' .. ..., 'cmdline')"
    assert nvim.lua(complete, "model=") == ["model=large", "model=small"]
    assert nvim.lua(complete, "adapter=two model=") == ["model=huge"]
    assert nvim.lua(complete, "adapter=three model=") == []
