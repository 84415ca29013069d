"""The list of adapters with their requirements, in a real Neovim: detection and choice."""

from __future__ import annotations

import re
import socket
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from harness import NO_PROVIDER, Nvim
from real_chat import COUNT_TURNS, RealChat, start_chat
from tests.forked_python import forked_python
from tests.providers.chat.answers import reply
from tests.providers.chat.server import ChatServer
from tests.providers.chat.thread import ChatServerThread
from tests.providers.chatgpt.browser import come_back
from tests.providers.chatgpt.thread import ChatGPTServerThread
from tests.providers.github.thread import GitHubServerThread
from tests.unit.adapters.test_server_facts import LLAMA_CPP

Start = Callable[..., Nvim]
KEYS = ("ANTHROPIC", "OPENAI", "GROQ", "GEMINI", "OPENROUTER", "DEEPSEEK", "MISTRAL", "AZURE_OPENAI")
NO_KEYS = {f"{name}_API_KEY": "" for name in KEYS}


def unused_port() -> int:
    """Return an unused port."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


@pytest.fixture
def ollama() -> Iterator[ChatServer]:
    """Run a fake Ollama server with two models."""
    with ChatServerThread(key="", models=("qwen3:14b", "llama3.3")) as server:
        yield server


@pytest.fixture
def start(nvim_factory: Callable[..., Nvim], tmp_path: Path) -> Start:
    """Return a function that starts a Neovim without any API key, where the usual server ports are free."""

    def start(setup: str = "{}", *, ollama: str = "", env: dict[str, str] | None = None, **options: Any) -> Nvim:
        elsewhere = "".join(
            f"{name} = {{ env = {{ url = 'http://127.0.0.1:{unused_port()}' }} }},"
            for name in ("llama_cpp", "vllm", "lmstudio")
        )
        init = (
            f"{NO_PROVIDER}require('codecompanion').setup(vim.tbl_deep_extend('force', {{"
            f" python = {{ host_prog = '{forked_python()}' }},"
            f" adapters = {{ http = {{ extend = {{ {elsewhere} }} }} }},"
            " display = { chat = { window = { layout = 'buffer' } } } }, " + setup + "))\n" + COUNT_TURNS
        )
        host = ollama or f"127.0.0.1:{unused_port()}"
        size = options.pop("size", (100, 44))
        return nvim_factory(init=init, env={**NO_KEYS, "OLLAMA_HOST": host, **(env or {})}, size=size, **options)

    return start


def list_lines(nvim: Nvim) -> list[str]:
    """Return the lines of the focused list."""
    return [line.rstrip() for line in nvim.lua("return vim.api.nvim_buf_get_lines(0, 0, -1, false)")]


def open_list(nvim: Nvim, command: str = "CodeCompanion adapter") -> list[str]:
    """Open the list and return its lines."""
    nvim.command(command)
    nvim.wait_screen("Choose an adapter")
    return list_lines(nvim)


def line_of(lines: list[str], name: str) -> str:
    """Return the line of an adapter."""
    [line] = [line for line in lines if line.startswith(f"  {name} ")]
    return " ".join(line.split())


def choose(nvim: Nvim, name: str) -> None:
    """Go to the line of an adapter and choose it."""
    nvim.feed(f"gg/^  {name} <CR><CR>")


def test_a_newcomer_finds_ollama_and_gets_an_answer(start: Start, ollama: ChatServer, tmp_path: Path) -> None:
    """No key or configuration is needed: one command, one key and a message lead to an answer."""
    nvim = start(ollama=f"127.0.0.1:{ollama.port}")
    lines = open_list(nvim)
    assert "Ready" in lines
    assert line_of(lines, "ollama") == "ollama running: qwen3:14b, llama3.3"
    assert nvim.lua("return vim.api.nvim_get_current_line()").startswith("  ollama "), "the cursor is on what works"
    nvim.feed("y")
    line = nvim.lua("return vim.fn.getreg('\"')")
    assert line == 'interactions = { chat = { adapter = { name = "ollama", model = "qwen3:14b" } } },'
    nvim.feed("<CR>")
    nvim.wait_lua("return vim.b.codecompanion_chat and vim.b.codecompanion_chat.meter ~= nil")
    nvim.wait_lua("return vim.b.codecompanion_chat.adapter == 'ollama'")
    assert line_of(open_list(nvim), "ollama") == "ollama running: qwen3:14b, llama3.3 · current"
    nvim.feed("q")
    chat = RealChat(nvim, tmp_path)
    chat.say("hello")
    assert "You said: hello" in chat.text()
    assert "/v1/chat/completions" in [seen.path for seen in ollama.requests]
    assert "Using ollama · qwen3:14b, also in new chats" in nvim.messages()
    assert "## CodeCompanion (ollama · qwen3:14b)" in chat.text(), "who answers is named"


def test_the_first_chat_reports_that_no_model_is_configured(start: Start, ollama: ChatServer, tmp_path: Path) -> None:
    """A notice below the empty input names the key that helps; it disappears once an adapter is usable."""
    elsewhere = f"ollama = {{ env = {{ url = 'http://127.0.0.1:{ollama.port}' }} }}"
    http = f"opts = {{ order = {{}} }}, extend = {{ {elsewhere} }}"
    nvim = start(f"{{ adapters = {{ http = {{ {http} }} }} }}")
    chat = RealChat(nvim, tmp_path)
    chat.open()
    nvim.wait_screen("No model is set up: ga chooses one.")
    of_next = "require('codecompanion.adapters.default_adapter').for_new_chat"

    def of_next_chat() -> str:
        return nvim.lua(f"return ({of_next}(require('codecompanion.config').options))")

    nvim.lua(
        "local session = require('codecompanion.chat.state.session'); _G.real = session.request\n"
        "session.request = function(chat, verb, payload, ...)\n"
        "  _G.real(chat, verb, vim.tbl_extend('force', payload, { adapter = 'nowhere' }), ...) end"
    )
    open_list(nvim)
    choose(nvim, "ollama")
    nvim.wait_for(lambda: "nowhere" in chat.text() or "nowhere" in nvim.screen())
    assert of_next_chat() == "offline", "one that the host refused is not kept"
    nvim.lua("require('codecompanion.chat.state.session').request = _G.real")
    open_list(nvim)
    choose(nvim, "ollama")
    nvim.wait_for(lambda: "No model is set up" not in nvim.screen())
    nvim.wait_for(lambda: of_next_chat() == "ollama", "the choice is also that of the next chat")
    groq, key = "{ interactions = { chat = { adapter = 'groq' } } }", "planted_0123456789"
    keyed = start(groq, env={"ANTHROPIC_API_KEY": key, "GROQ_API_KEY": key})
    keyed.command("CodeCompanionChat")
    keyed.wait_screen("Welcome to CodeCompanion")
    assert "No model is set up" not in keyed.screen()
    keyed.wait_lua("return require('codecompanion.chat').current().adapter == 'groq'")
    open_list(keyed)
    assert keyed.lua("return vim.api.nvim_get_current_line()").startswith("  groq "), "the current one"
    keyless = start(groq)
    keyless.command("CodeCompanionChat")
    keyless.wait_screen("groq: needs GROQ_API_KEY · ga chooses another one")


def test_each_adapter_lists_its_requirements(start: Start) -> None:
    """The list shows the missing variable, where to get a key, that a server is not running, and a missing login.

    It also shows how to add any other server.
    """
    nvim = start(env={"GROQ_API_KEY": "gsk_planted_0123456789", "AZURE_OPENAI_API_KEY": "planted_0123456789"})
    lines = open_list(nvim)
    usable, other = (nvim.highlight_at(nvim.row(f"  {name} "), 8).get("foreground") for name in ("groq", "openai"))
    assert usable != other, "what cannot be used yet is dim, before any chat was opened, too"
    assert line_of(lines, "groq") == "groq key in GROQ_API_KEY"
    assert line_of(lines, "openai") == "openai needs OPENAI_API_KEY · https://platform.openai.com/api-keys"
    assert line_of(lines, "azure_openai").startswith("azure_openai needs AZURE_OPENAI_ENDPOINT")
    assert line_of(lines, "copilot") == "copilot log in to GitHub"
    assert line_of(lines, "chatgpt") == "chatgpt log in with your ChatGPT plan"
    assert "not running at 127.0.0.1:" in line_of(lines, "ollama")
    assert line_of(lines, "offline") == "offline no model, for testing"
    assert line_of(lines, "openai_compatible") == "openai_compatible any other server: set its url in setup()"
    choose(nvim, "openai_compatible")
    nvim.wait_for(lambda: "y copies an entry for setup()" in nvim.messages())
    nvim.feed("y")
    line = nvim.lua("return vim.fn.getreg('\"')")
    assert 'my_server = { extends = "openai_compatible", env = { url = "http://localhost:8080" } }' in line
    entry = nvim.lua("return loadstring('return {' .. ... .. '}')().adapters.http.my_server.env.url", line)
    assert entry == "http://localhost:8080"
    headings = [line for line in lines if line and not line.startswith(" ")]
    assert headings == ["Current and configured", "Ready", "Popular", "More"]
    popular = lines[lines.index("Popular") + 1 : lines.index("More") - 1]
    names = "chatgpt copilot anthropic openai gemini openrouter ollama"
    assert [line.split()[0] for line in popular] == names.split()
    assert "planted" not in nvim.screen()
    assert "planted" not in "\n".join(lines)


def test_clouds_report_whether_there_are_credentials(start: Start, tmp_path: Path) -> None:
    """They are detected by files and variables, without reading them.

    Choosing a cloud names the Python packages it needs.
    """
    home = tmp_path / "home"
    (home / ".aws").mkdir(parents=True)
    (home / ".aws" / "config").write_text("[default]")
    azure = "adapters = { http = { azure_openai = { opts = { transport = 'sdk', client = 'azure' } } } }"
    nvim = start(f"{{ {azure} }}", env={"HOME": str(home), "AZURE_OPENAI_ENDPOINT": "https://mine.openai.azure.com"})
    lines = open_list(nvim)
    assert line_of(lines, "bedrock") == "bedrock AWS credentials"
    assert lines.index(next(line for line in lines if line.startswith("  bedrock"))) < lines.index("Popular")
    needed = "vertex needs Google credentials: gcloud auth application-default login"
    assert line_of(lines, "vertex") == needed
    assert line_of(lines, "azure_openai") == "azure_openai needs an Entra ID login: az login"
    choose(nvim, "vertex")
    nvim.wait_screen("vertex: needs Google credentials")


def test_a_choice_with_missing_requirements_names_them(start: Start) -> None:
    """The list stays open, nothing else opens and no prompt waits for a key; the remedy is visible at any width."""
    for columns, said in (
        (130, "Set OPENAI_API_KEY in your shell, then restart Neovim; get a key at https://platform.openai"),
        (80, "Set OPENAI_API_KEY, then restart Neovim; o gets a key"),
        (40, "Set OPENAI_API_KEY …"),
    ):
        nvim = start(size=(columns, 44))
        open_list(nvim)
        choose(nvim, "openai")
        nvim.wait_for(lambda nvim=nvim, said=said: said in nvim.messages())
        assert nvim.lua("return require('codecompanion.chat').current() == nil")
        assert not nvim.blocked()
        assert line_of(list_lines(nvim), "openai")


def test_a_server_started_in_the_meantime_can_be_chosen(start: Start) -> None:
    """The server is probed again, so starting it in another terminal does not require reopening the list."""
    port = unused_port()
    nvim = start(ollama=f"127.0.0.1:{port}")
    open_list(nvim)
    choose(nvim, "ollama")
    nvim.wait_for(lambda: f"Not running at 127.0.0.1:{port}. Start it with: ollama serve" in nvim.messages())
    server = ChatServerThread(key="", models=("qwen3:14b",))
    server.port = port
    with server:
        nvim.feed("<CR>")
        nvim.wait_lua("return vim.b.codecompanion_chat and vim.b.codecompanion_chat.adapter == 'ollama'")


def test_the_line_for_the_configuration_can_be_copied(start: Start) -> None:
    """It is exactly the line that makes the choice permanent."""
    nvim = start()
    open_list(nvim)
    nvim.feed("gg/^  gemini <CR>y")
    line = nvim.lua("return vim.fn.getreg('\"')")
    assert line == 'interactions = { chat = { adapter = "gemini" } },'
    assert nvim.lua(f"return load('return {{ {line} }}')().interactions.chat.adapter") == "gemini"
    for columns, said in ((120, f"Copied for setup(): {line}"), (64, "Copied the entry for setup(); p pastes it")):
        nvim.request("nvim_ui_try_resize", columns, 40)
        nvim.feed("y")
        nvim.wait_screen(re.escape(said))


def test_the_page_for_a_key_is_opened(start: Start) -> None:
    """It opens in the browser; if there is none, that is reported."""
    nvim = start()
    nvim.lua("_G.opened = {}; vim.ui.open = function(url) table.insert(_G.opened, url) end")
    open_list(nvim)
    nvim.feed("gg/^  mistral <CR>o")
    assert nvim.lua("return _G.opened") == ["https://console.mistral.ai/api-keys"]
    nvim.lua("vim.ui.open = function() return nil, 'no browser' end")
    nvim.feed("o")
    nvim.wait_for(lambda: "https://console.mistral.ai/api-keys" in nvim.messages())


def test_a_focused_chat_gets_the_choice(start: Start, ollama: ChatServer, tmp_path: Path) -> None:
    """The chat's text stays and no second chat opens; `/adapter` opens the same list."""
    setup = "{ interactions = { chat = { adapter = 'offline' } } }"
    nvim = start(setup, ollama=f"127.0.0.1:{ollama.port}")
    chat = RealChat(nvim, tmp_path)
    chat.open()
    chat.say("hello")
    said = chat.text().split("## CodeCompanion")[1].split("\n", 1)[1].strip().splitlines()
    assert "press `ga`, or run `:CodeCompanion adapter`" in " ".join(said[:2]), "the answer says how to get a model"
    before = chat.id
    chat.type("/adapter")
    nvim.feed("<CR>")
    nvim.wait_screen("Choose an adapter")
    choose(nvim, "ollama")
    nvim.wait_for(lambda: nvim.lua("return require('codecompanion.chat').current().adapter") == "ollama")
    assert chat.id == before
    chat.say("and now")
    assert "You said: and now" in chat.text()


def test_configured_adapters_are_in_the_list(start: Start, ollama: ChatServer, tmp_path: Path) -> None:
    """These include a gateway whose key is in a file, a server at another address, and a faulty entry."""
    key = tmp_path / "key"
    key.write_text("planted_0123456789")
    nvim = start(
        f"""{{ adapters = {{ http = {{
          gateway = {{ extends = "openai_compatible", env = {{ url = "https://x.example", api_key = "file:{key}" }} }},
          gone = {{ extends = "openai_compatible", env = {{ api_key = "file:/nowhere/key" }} }},
          cmd = {{ extends = "openai_compatible", env = {{ api_key = "cmd:pass show x" }} }},
          box = {{ extends = "openai_compatible", env = {{ url = "http://127.0.0.1:{ollama.port}" }} }},
          wrong = {{ extends = "openai_compatible", env = {{ api_key = "sk-planted-in-the-configuration" }} }},
        }} }} }}"""
    )
    lines = open_list(nvim)
    assert line_of(lines, "gateway") == "gateway key in a file"
    assert line_of(lines, "gone") == "gone needs /nowhere/key"
    assert line_of(lines, "cmd") == "cmd key from a command"
    assert "running: " in line_of(lines, "box")
    mine = lines[: lines.index("Misconfigured")]
    assert lines[0] == "Current and configured"
    assert [line.split()[0] for line in mine[1:6]] == ["box", "cmd", "gateway", "gone", "llama_cpp"]
    assert lines[lines.index("Misconfigured") + 1].startswith("  wrong ")
    assert "planted" not in "\n".join(lines)


def test_a_silent_server_does_not_block_the_editor(start: Start) -> None:
    """Probing stops after 0.3 s, and keys work in the meantime."""
    with socket.socket() as silent:
        silent.bind(("127.0.0.1", 0))
        silent.listen()
        nvim = start(ollama=f"127.0.0.1:{silent.getsockname()[1]}")
        nvim.lua("require('codecompanion.chat.life.choose_adapter').open()")
        assert nvim.lua("return vim.fn.mode()") == "n"
        assert nvim.lua("return #vim.api.nvim_list_wins()") == 1, "the editor goes on while it is asked"
        nvim.wait_screen("Choose an adapter")
        assert "not running" in line_of(list_lines(nvim), "ollama")


@pytest.mark.parametrize(
    "answer",
    [
        b"HTTP/1.0 200 OK\r\n\r\n{",
        b"HTTP/1.0 200 OK\r\n\r\n" + b"[" * 100_000,
        b"HTTP/1.0 404 Not Found\r\n\r\n{}",
        b"SSH-2.0-OpenSSH\r\n",
        b"",
        b'HTTP/1.0 200 OK\r\n\r\n{"data": [{"id": 3}, null, "x"]}',
    ],
)
def test_an_unknown_server_is_not_an_error(start: Start, answer: bytes) -> None:
    """A different program listens on the port."""
    with socket.socket() as strange:
        strange.bind(("127.0.0.1", 0))
        strange.listen()

        def serve() -> None:
            connection, _ = strange.accept()
            with connection:
                connection.recv(1000)
                connection.sendall(answer)

        threading.Thread(target=serve, daemon=True).start()
        nvim = start(ollama=f"127.0.0.1:{strange.getsockname()[1]}")
        assert line_of(open_list(nvim), "ollama")
        assert "E5" not in nvim.messages()
        assert not nvim.blocked()


@pytest.mark.parametrize(("columns", "is_used"), [(120, False), (300, False), (120, True)])
def test_a_running_server_shows_its_card(start: Start, columns: int, is_used: bool) -> None:
    """The line matches `:checkhealth`, with the advice if it fits or the chat uses the server."""
    told = {**LLAMA_CPP, "chat_template_caps": {"supports_tools": False}}
    with ChatServerThread(key="", models=("smol", "other"), pages={"/props": told}) as server:
        entry = f"llama_cpp = {{ env = {{ url = 'http://127.0.0.1:{server.port}' }} }}"
        chat = "interactions = { chat = { adapter = 'llama_cpp' } }"
        nvim = start(f"{{ adapters = {{ http = {{ extend = {{ {entry} }} }} }}, {chat} }}", size=(columns, 44))
        nvim.command("CodeCompanionChat")
        nvim.wait_lua("return require('codecompanion.host').status() == 'ready'")
        nvim.lua("require('codecompanion.chat.life.choose_adapter').CARDS_MS = 30000")
        nvim.wait_lua("return require('codecompanion.chat').current().adapter == 'llama_cpp'")
        if not is_used:
            nvim.command("new")
        line = line_of(open_list(nvim), "llama_cpp")
    card = "SmolLM2-135M.gguf · window of 4,096 tokens · 4 slots · no tools · no images · b11434-abc"
    advice = "No tools are sent: the model's chat template does not support them."
    assert line.startswith(f"llama_cpp running: {card} · 1 more")
    assert (advice in line) is (columns == 300 or is_used)


def test_a_server_that_loads_its_model_can_be_chosen(start: Start) -> None:
    """The chat waits until the model is loaded."""
    with socket.socket() as loading:
        loading.bind(("127.0.0.1", 0))
        loading.listen()

        def serve() -> None:
            connection, _ = loading.accept()
            with connection:
                connection.recv(1000)
                connection.sendall(b'HTTP/1.0 503 Busy\r\n\r\n{"error": {"message": "Loading model"}}')

        threading.Thread(target=serve, daemon=True).start()
        lines = open_list(start(ollama=f"127.0.0.1:{loading.getsockname()[1]}"))
        assert line_of(lines, "ollama") == "ollama running: loading the model"
        assert lines[lines.index("Ready") + 1].startswith("  ollama ")


def test_the_list_does_not_open_over_something_else(start: Start) -> None:
    """A user who kept typing in the meantime is not interrupted."""
    with socket.socket() as silent:
        silent.bind(("127.0.0.1", 0))
        silent.listen()
        nvim = start(ollama=f"127.0.0.1:{silent.getsockname()[1]}")
        nvim.lua("require('codecompanion.adapters.local_servers').LIMIT_MS = 1000")
        nvim.command("CodeCompanion adapter")
        nvim.lua("return vim.wait(20)")
        nvim.feed("iI go on writing")
        time.sleep(1.2)
        nvim.settle()
        assert "Choose an adapter" not in nvim.screen()
        assert nvim.lua("return vim.api.nvim_get_current_line()") == "I go on writing"


def test_a_narrow_window_shows_the_list_too(start: Start, ollama: ChatServer) -> None:
    """In 40 columns, no URL is cut in two; the names are aligned again when there is room."""
    nvim = start(ollama=f"127.0.0.1:{ollama.port}", size=(40, 24))
    lines = open_list(nvim)
    assert line_of(lines, "ollama")
    assert "  groq  needs GROQ_API_KEY" in lines
    assert not any("https://" in line for line in lines)
    assert not nvim.blocked()
    nvim.request("nvim_ui_try_resize", 120, 40)
    nvim.wait_for(lambda: "https://console.groq.com/keys" in line_of(list_lines(nvim), "groq"))


def test_copilot_login_starts_from_the_list(start: Start, tmp_path: Path) -> None:
    """Choosing Copilot starts the login; afterwards the chat uses it."""
    with GitHubServerThread() as github:
        github.pending, github.approved = 0, False
        nvim = start(
            f"{{ adapters = {{ http = {{ extend = {{ copilot = {{ opts = {{ github = '{github.base}' }} }} }} }} }} }}"
        )
        open_list(nvim)
        choose(nvim, "copilot")
        nvim.wait_screen("WDJB-MJHT")
        github.approved = True
        nvim.wait_lua("return vim.b.codecompanion_chat and vim.b.codecompanion_chat.meter ~= nil")
        chat = RealChat(nvim, tmp_path)
        chat.say("hello")
        assert "You said: hello" in chat.text()
        nvim.command("enew")
        assert line_of(open_list(nvim), "copilot") == "copilot login found"


def test_a_chatgpt_login_starts_from_the_list(start: Start, tmp_path: Path) -> None:
    """Choosing ChatGPT opens the page; after the redirect the plan is shown, and the chat uses it."""
    with ChatGPTServerThread() as openai:
        entry = f"env = {{ url = '{openai.url}' }}, opts = {{ issuer = '{openai.base}' }}"
        nvim = start(
            f"{{ adapters = {{ http = {{ extend = {{ chatgpt = {{ {entry} }} }} }} }} }}",
            env={"SSH_CONNECTION": "", "SSH_TTY": ""},
        )
        nvim.lua("vim.ui.open = function(page) _G.page = page return {}, nil end")
        open_list(nvim)
        choose(nvim, "chatgpt")
        nvim.wait_lua("return _G.page ~= nil")
        come_back(nvim.lua("return _G.page"))
        nvim.wait_screen("You're using your ChatGPT plan")
        nvim.feed("<CR>")
        nvim.wait_lua("return vim.b.codecompanion_chat and vim.b.codecompanion_chat.meter ~= nil")
        chat = RealChat(nvim, tmp_path)
        chat.say("hello")
        assert "You said: hello" in chat.text()
        nvim.command("enew")
        assert line_of(open_list(nvim), "chatgpt") == "chatgpt login found"


def test_a_chosen_model_is_used_by_new_chats_after_a_restart_too_if_setup_names_none(
    nvim_factory, tmp_path: Path
) -> None:
    """An entry of one's own whose server lists the models: the configuration names the adapter only."""
    with ChatServerThread([reply("hi")] * 5, key="", models=("swift-large", "swift-small")) as server:
        entry = {"extends": "openai_compatible", "env": {"url": server.url}}
        options: dict[str, Any] = {"adapters": {"http": {"mine": entry}}, "interactions": {"chat": {"adapter": "mine"}}}

        def asked() -> list[str]:
            return [seen.json["model"] for seen in server.requests if seen.body]

        chat = start_chat(nvim_factory, tmp_path, server, options=options)
        chat.say("hello")
        chat.nvim.feed("ga")
        chat.nvim.wait_screen(r"mine · swift-small")
        chat.nvim.feed("/swift-small<CR><CR>")
        kept = "require('codecompanion.adapters.default_adapter').for_new_chat"
        chat.nvim.wait_lua(f"return {kept}(require('codecompanion.config').options) == 'mine'")
        chat.nvim.command("CodeCompanionChat")
        chat.wait_ready()
        chat.say("again")
        assert asked() == ["swift-large", "swift-small"]
        assert "Using mine · swift-small, also in new chats" in chat.nvim.messages()
        chat.nvim.leave()
        later = start_chat(nvim_factory, tmp_path, server, options=options)
        later.say("the next day")
        assert asked() == ["swift-large", "swift-small", "swift-small"]
        later.nvim.leave()
        options["interactions"]["chat"]["adapter"] = {"name": "mine", "model": "swift-large"}
        named = start_chat(nvim_factory, tmp_path, server, options=options)
        named.say("setup() names a model")
        assert asked()[3:] == ["swift-large"]
        named.nvim.feed("ga")
        named.nvim.wait_screen(r"mine · swift-small")
        named.nvim.feed("/swift-small<CR><CR>")
        named.nvim.wait_for(lambda: "new ones use mine · swift-large, as in setup()" in named.nvim.messages())
