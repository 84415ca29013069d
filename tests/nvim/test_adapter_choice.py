"""The default adapter without a configuration, in a real Neovim: the choice, the reason, and the notification."""

from __future__ import annotations

import json
import re
import socket
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from harness import NO_PROVIDER, Nvim, lua_string
from real_chat import COUNT_TURNS, RealChat
from tests.forked_python import forked_python
from tests.providers.chat.answers import reply
from tests.providers.chat.server import ChatServer
from tests.providers.chat.thread import ChatServerThread

KEY = "sk-planted-0123456789abcdef"
ORDER = "adapters.http.opts.order"
Start = Callable[..., Nvim]


@pytest.fixture
def openai() -> Iterator[ChatServer]:
    """Return a server that requires the key."""
    with ChatServerThread(key=KEY, models=("gpt-4.1",)) as server:
        yield server


@pytest.fixture
def ollama() -> Iterator[ChatServer]:
    """Return a fake Ollama whose first models cannot chat, or run elsewhere."""
    with ChatServerThread(key="", models=("nomic-embed-text", "gpt-oss:120b-cloud", "qwen3:14b")) as server:
        yield server


def address(server: ChatServer) -> str:
    """Return the URL of a server without a path."""
    return f"http://127.0.0.1:{server.port}"


@pytest.fixture
def start(nvim_factory: Callable[..., Nvim]) -> Start:
    """Return a function that starts a Neovim without a configured chat adapter."""

    def start(http: dict[str, Any] | None = None, *, interactions: dict[str, Any] | None = None, **more: Any) -> Nvim:
        with socket.socket() as probe:
            probe.bind(("127.0.0.1", 0))
            nobody = f"http://127.0.0.1:{probe.getsockname()[1]}"
        elsewhere = {name: {"env": {"url": nobody}} for name in ("llama_cpp", "vllm", "lmstudio")}
        given = http or {}
        options = {
            "python": {"host_prog": forked_python()},
            "adapters": {"http": {**given, "extend": {**elsewhere, **given.get("extend", {})}}},
            "interactions": interactions or {},
            "display": {"chat": {"window": {"layout": "buffer"}}},
        }
        # Lua does not take an empty JSON object for a list.
        made = f"vim.json.decode({lua_string(json.dumps(options))})"
        patient = "require('codecompanion.adapters.local_servers').LIMIT_MS = 10000"  # for a machine under load
        init = f"{NO_PROVIDER}{patient}\nrequire('codecompanion').setup({made})\n{COUNT_TURNS}"
        return nvim_factory(init=init, size=more.pop("size", (100, 30)), **more)

    return start


def at(server: ChatServer) -> dict[str, Any]:
    """Return adapter settings that point OpenAI to a server."""
    return {"extend": {"openai": {"env": {"url": address(server)}}}}


def open_chat(nvim: Nvim, root: Path) -> RealChat:
    """Open a chat and wait until the host has answered."""
    chat = RealChat(nvim, root)
    chat.open()
    return chat


def wait_adapter(nvim: Nvim, expected: str) -> None:
    """Wait until the current chat has this adapter and model."""

    def adapter() -> str:
        return " · ".join(nvim.lua("local c = require('codecompanion.chat').current() return { c.adapter, c.model }"))

    nvim.wait_for(lambda: adapter() != " · ", "the host has opened the chat")
    nvim.wait_for(lambda: adapter() == expected, f"{expected}, not {adapter()}")


def test_a_key_in_the_environment_is_used_and_the_empty_chat_shows_it(start: Start, openai, tmp_path: Path) -> None:
    """Before anything is sent, the chat shows the adapter, the model, the reason, and the key that changes it."""
    nvim = start(at(openai), env={"OPENAI_API_KEY": KEY})
    chat = open_chat(nvim, tmp_path)
    nvim.wait_screen(r"openai · gpt-4\.1 chosen: \$OPENAI_API_KEY is set · ga changes it")
    assert openai.requests == []
    chat.say("hello")
    assert "You said: hello" in chat.text()
    assert "chosen" not in chat.text(), "the empty chat has said it"
    assert KEY not in nvim.screen()


def test_a_chat_that_begins_with_a_question_shows_the_choice_in_the_chat(start: Start, openai, tmp_path: Path) -> None:
    """There was no empty chat to show it; the second chat does not repeat it."""
    nvim = start(at(openai), env={"OPENAI_API_KEY": KEY})
    nvim.command("CodeCompanionChat hello there")
    nvim.wait_screen("You said: hello there")
    assert "openai · gpt-4.1 chosen: $OPENAI_API_KEY is set · ga changes it" in RealChat(nvim, tmp_path).text()
    nvim.command("CodeCompanionChat hello again")
    nvim.wait_screen("You said: hello again")
    assert "chosen" not in RealChat(nvim, tmp_path).text()


@pytest.mark.parametrize(
    ("order", "expected"),
    [
        (None, "openai · gpt-4.1"),
        (["ollama", "openai"], "ollama · qwen3:14b"),
        (["openai", "ollama"], "openai · gpt-4.1"),
        (["anthropic", "mistral"], "offline · offline"),
    ],
)
def test_the_configured_order_decides(start: Start, openai, ollama, tmp_path: Path, order: Any, expected: str) -> None:
    """Neither a key nor a local server takes precedence silently; an adapter without its key is skipped."""
    http = {**at(openai), **({"opts": {"order": order}} if order else {})}
    nvim = start(http, env={"OPENAI_API_KEY": KEY, "OLLAMA_HOST": f"127.0.0.1:{ollama.port}"})
    open_chat(nvim, tmp_path)
    wait_adapter(nvim, expected)
    if expected.startswith("ollama"):
        nvim.wait_screen(rf"chosen: it is running at 127\.0\.0\.1:{ollama.port} · ga changes it")


def test_a_users_own_entry_comes_first_and_its_command_is_not_run(start: Start, openai, tmp_path: Path) -> None:
    """An entry is written to be used; a command that prints a key may ask for a passphrase."""
    ran = tmp_path / "ran"
    gateway = {
        "extends": "openai_compatible",
        "env": {"url": address(openai), "api_key": f"cmd:touch {ran}; echo {KEY}"},
        "schema": {"model": {"default": "gpt-4.1"}},
    }
    nvim = start({"gateway": gateway}, env={"OPENAI_API_KEY": KEY})
    chat = open_chat(nvim, tmp_path)
    nvim.wait_screen("gateway · gpt-4.1 chosen: its key comes from a command")
    assert not ran.exists()
    chat.say("hello")
    assert "You said: hello" in chat.text()


def test_a_server_without_a_local_chat_model_is_not_chosen(start: Start, tmp_path: Path) -> None:
    """Embedding models cannot chat, and a model of Ollama's cloud would send the text off this machine."""
    with ChatServerThread(key="", models=("nomic-embed-text", "gpt-oss:120b-cloud")) as server:
        nvim = start(env={"OLLAMA_HOST": f"127.0.0.1:{server.port}"})
        open_chat(nvim, tmp_path)
        nvim.wait_screen("No model is set up")
        wait_adapter(nvim, "offline · offline")


def test_a_server_started_later_is_chosen_for_the_next_chat(start: Start, ollama, tmp_path: Path) -> None:
    """A missing server is not remembered; a choice is."""
    port = ollama.port
    nvim = start(env={"OLLAMA_HOST": f"127.0.0.1:{port}"})
    nvim.lua("require('codecompanion.adapters.local_servers').ask = function(_, done) done({}, {}) end")
    open_chat(nvim, tmp_path)
    wait_adapter(nvim, "offline · offline")
    nvim.lua("package.loaded['codecompanion.adapters.local_servers'].ask = function(asked, done)"
             " done({ ollama = { 'qwen3:14b' } }, {}) end")  # fmt: skip
    nvim.command("CodeCompanionChat New")
    nvim.wait_screen("ollama · qwen3:14b chosen")
    wait_adapter(nvim, "ollama · qwen3:14b")


SERVERS = """local servers = require('codecompanion.adapters.local_servers')
_G.asked = {}
servers.ask = function(asked, done)
  for name, address in pairs(asked) do _G.asked[#_G.asked + 1] = name .. ' ' .. address.host end
  vim.defer_fn(function() done(_G.models or {}, {}) end, 50)
end"""


def test_a_chat_without_a_model_uses_a_server_started_later(start: Start, ollama, tmp_path: Path) -> None:
    """Two messages sent in a row keep their order, and only this machine is asked again."""
    elsewhere = {"extends": "openai_compatible", "env": {"url": "http://gpu-box:8080"}}
    nvim = start({"box": elsewhere}, env={"OLLAMA_HOST": f"127.0.0.1:{ollama.port}"})
    nvim.lua(SERVERS)
    chat = open_chat(nvim, tmp_path)
    nvim.wait_screen("No model is set up: ga chooses one. A local server is used once it runs.")
    chat.say("hello")
    assert "To set one up, press `ga`" in chat.text()
    nvim.lua("_G.asked, _G.models = {}, { ollama = { 'qwen3:14b' } }")
    chat.type("first")
    nvim.feed("<CR>")
    chat.type("second")
    nvim.feed("<CR>")
    nvim.wait_for(lambda: "You said: first\n\nsecond" in chat.text())
    assert chat.text().count("ollama · qwen3:14b chosen: it is running at") == 1
    assert "ollama 127.0.0.1" in nvim.lua("return _G.asked")
    assert "box gpu-box" not in nvim.lua("return _G.asked")


def test_a_chat_whose_user_chose_offline_is_left_alone(start: Start, ollama, tmp_path: Path) -> None:
    nvim = start(env={"OLLAMA_HOST": f"127.0.0.1:{ollama.port}"})
    nvim.lua(SERVERS)
    chat = open_chat(nvim, tmp_path)
    nvim.lua("local session, chats = require('codecompanion.chat.state.session'), require('codecompanion.chat')\n"
             "session.set_model(chats.current(), 'offline', 'offline')")  # fmt: skip
    nvim.lua("_G.models = { ollama = { 'qwen3:14b' } }")
    chat.say("hello")
    assert "No model answered" in chat.text()


def test_a_resumed_chat_keeps_its_adapter(start: Start, openai, ollama, tmp_path: Path) -> None:
    """The choice is for new chats."""
    host = {"OLLAMA_HOST": f"127.0.0.1:{ollama.port}"}
    first = start(at(openai), env={"OPENAI_API_KEY": KEY})
    open_chat(first, tmp_path).say("hello")
    first.leave()
    again = start({**at(openai), "opts": {"order": ["ollama"]}}, env={"OPENAI_API_KEY": KEY, **host})
    again.command("CodeCompanionChat Resume last")
    again.wait_screen("You said: hello")
    wait_adapter(again, "openai · gpt-4.1")
    assert "chosen" not in again.screen()
    again.command("CodeCompanionChat New")
    again.wait_screen("ollama · qwen3:14b chosen")


def test_edits_command_lines_and_commit_messages_use_it_and_report_it_once(start: Start, tmp_path: Path) -> None:
    """The choice is shown on the command line, because no chat shows it."""
    answers = [reply("```lua\nlocal y = 1\n```"), reply("nohlsearch")]
    with ChatServerThread(answers, key=KEY, models=("gpt-4.1",)) as openai:
        nvim = start(at(openai), env={"OPENAI_API_KEY": KEY})
        (tmp_path / "work" / "a.lua").write_text("local x = 1\n")
        nvim.command("edit a.lua")
        nvim.feed(":1CodeCompanion rename x to y<CR>")
        nvim.wait_for(lambda: "openai · gpt-4.1 chosen: $OPENAI_API_KEY is set" in nvim.messages())
        nvim.wait_lua("return (vim.b.codecompanion_edit or {}).state == 'proposed'")
        nvim.feed("ga")
        nvim.command("CodeCompanionCmd no more highlights")
        nvim.wait_lua("return vim.fn.getcmdline() == 'nohlsearch'")
        nvim.feed("<C-c>")
        assert nvim.messages().count("chosen") == 1
        assert [seen.path for seen in openai.requests].count("/v1/chat/completions") == 2


def test_without_a_model_no_command_line_or_commit_message_is_requested(start: Start, tmp_path: Path) -> None:
    """The offline adapter's text is neither."""
    nvim = start()
    nvim.command("CodeCompanionCmd sort these lines")
    nvim.wait_for(lambda: "No model is set up for the command line: run :CodeCompanion adapter" in nvim.messages())
    assert "Asking" not in nvim.messages()


def test_a_silent_server_does_not_delay_the_first_paint(start: Start, tmp_path: Path) -> None:
    """The chat opens immediately, keys work, and after 0.3 s it continues without that server."""
    with socket.socket() as silent:
        silent.bind(("127.0.0.1", 0))
        silent.listen()
        nvim = start(env={"OLLAMA_HOST": f"127.0.0.1:{silent.getsockname()[1]}"})
        nvim.lua("require('codecompanion.adapters.local_servers').LIMIT_MS = 3000")
        nvim.command("CodeCompanionChat")
        nvim.wait_screen("Welcome to CodeCompanion")
        assert nvim.lua("return require('codecompanion.chat').current().adapter") == ""
        nvim.feed("itext<Esc>")
        nvim.wait_screen("text")
        wait_adapter(nvim, "offline · offline")


def test_a_configured_adapter_is_used_silently(start: Start, openai, ollama, tmp_path: Path) -> None:
    """Nothing is chosen if the user has done so."""
    nvim = start(
        at(openai),
        interactions={"chat": {"adapter": "openai"}},
        env={"OPENAI_API_KEY": KEY, "OLLAMA_HOST": f"127.0.0.1:{ollama.port}"},
    )
    open_chat(nvim, tmp_path)
    wait_adapter(nvim, "openai · gpt-4.1")
    assert "chosen" not in nvim.screen()
    assert ollama.requests == [], "no server is asked"


def test_a_mistyped_name_in_the_order_is_reported_and_skipped(start: Start, openai, tmp_path: Path) -> None:
    """The other names count."""
    nvim = start({**at(openai), "opts": {"order": ["opnai", "openai"]}}, env={"OPENAI_API_KEY": KEY})
    open_chat(nvim, tmp_path)
    wait_adapter(nvim, "openai · gpt-4.1")
    problems = nvim.lua("return require('codecompanion.config').findings().problems")
    assert problems == [f'{ORDER}: there is no adapter "opnai"; did you mean "openai"?']


def test_health_shows_the_adapter_that_would_be_chosen_and_why(start: Start, openai) -> None:
    """The report also covers the case that there is none."""
    nvim = start(at(openai), env={"OPENAI_API_KEY": KEY})
    nvim.command("checkhealth codecompanion")
    report = "\n".join(nvim.lines())
    assert re.search(r"OK Chosen for new chats: openai · gpt-4\.1, because \$OPENAI_API_KEY is set; ", report)
    assert ORDER in report
    nothing = start()
    nothing.command("checkhealth codecompanion")
    assert "New chats have no model: no key, login or local server was found" in "\n".join(nothing.lines())


def test_the_default_order_includes_every_built_in_service(nvim: Nvim) -> None:
    """A new adapter must be added to it."""
    order = nvim.lua(f"return require('codecompanion.config').options.{ORDER}")
    names = set(nvim.lua("return vim.tbl_keys(require('codecompanion.adapters.builtin_adapters'))"))
    # Templates, the embedded one, a second way to the service whose key `openai` takes, and clouds, whose credentials
    # are on many machines for other things.
    assert sorted(order) == sorted(names - {"openai_compatible", "offline", "openai_responses", "bedrock", "vertex"})
