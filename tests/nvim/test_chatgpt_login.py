"""`:CodeCompanion login chatgpt` in a real Neovim with the real host and a local fake OpenAI server."""

from __future__ import annotations

import json
import stat
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from codecompanion.model.history import UsageReported, ViewChanged
from harness import Nvim
from real_chat import RealChat, start_chat
from tests.contents import contents_below
from tests.providers.chatgpt.browser import come_back, sign_in
from tests.providers.chatgpt.server import ChatGPTServer
from tests.providers.chatgpt.thread import ChatGPTServerThread
from tests.providers.loopback.answers import failure
from tests.providers.responses.answers import Call, Reply, Text
from tests.summaries import nine_sections

Start = Callable[..., RealChat]
FOLDER = "data/nvim/codecompanion"
OWN = f"{FOLDER}/chatgpt.json"
CATCH_PAGES = "_G.pages = {}; vim.ui.open = function(page) table.insert(_G.pages, page) return {}, nil end\n"
NO_SSH = {"SSH_CONNECTION": "", "SSH_TTY": ""}


@pytest.fixture
def openai() -> Iterator[ChatGPTServer]:
    """Run a fake OpenAI server with one user who has a plan."""
    with ChatGPTServerThread() as server:
        yield server


@pytest.fixture
def start(nvim_factory: Callable[..., Nvim], tmp_path: Path, openai: ChatGPTServer) -> Start:
    """Return a function that starts a Neovim whose chats use a plan on this server.

    Pages are recorded instead of opened.
    """

    def start(
        *, opened: bool = False, env: dict[str, str] | None = None, more: dict[str, Any] | None = None, **other: Any
    ) -> RealChat:
        chatgpt = {"env": {"url": openai.url}, "opts": {"issuer": openai.base, "max_retries": 0}}
        options = {
            "opts": {"log_level": "TRACE"},
            "adapters": {"http": {"extend": {"chatgpt": chatgpt}}},
            "interactions": {"chat": {"adapter": "chatgpt", **(more or {})}},
        }
        started = start_chat(
            nvim_factory, tmp_path, openai, options=options, opened=opened, env={**NO_SSH, **(env or {})}, **other
        )
        started.nvim.lua(CATCH_PAGES)
        return started

    return start


def begin(chat: RealChat, command: str = "CodeCompanion login chatgpt") -> str:
    """Start a login and return the opened page."""
    seen = len(chat.nvim.lua("return _G.pages"))
    chat.nvim.command(command)
    chat.nvim.wait_screen("Continue with ChatGPT")
    chat.nvim.wait_lua(f"return #_G.pages > {seen}")
    return str(chat.nvim.lua("return _G.pages[#_G.pages]"))


def log_in(chat: RealChat, command: str = "CodeCompanion login chatgpt") -> None:
    """Log in through the page, as a browser would."""
    status, _ = come_back(begin(chat, command))
    assert status == 200
    chat.nvim.wait_for(lambda: "Logged in to chatgpt" in chat.nvim.messages())


def got_it(chat: RealChat) -> None:
    """Read and dismiss the message after the first login."""
    chat.nvim.wait_screen("You're using your ChatGPT plan")
    chat.nvim.feed("<CR>")
    chat.nvim.wait_for(lambda: "You're using your ChatGPT plan" not in chat.nvim.screen())


def test_a_newcomer_logs_in_and_gets_an_answer(start: Start, openai: ChatGPTServer, tmp_path: Path) -> None:
    """The page opens and redirects back, the plan notice appears once, and only the owner can read the stored login."""
    chat = start(opened=True)
    chat.say("hello")
    said = " ".join(chat.text().split())
    assert "not logged in to ChatGPT. Run :CodeCompanion login chatgpt." in said
    page = begin(chat)
    screen = chat.nvim.screen()
    assert "Waiting for your browser, for up to 10 minutes." in screen
    assert "y copy · o open · p paste address · q stop" in screen
    chat.nvim.feed("y")
    assert chat.nvim.lua("return vim.fn.getreg('\"')") == page
    come_back(page)
    chat.nvim.wait_for(lambda: "Logged in to chatgpt as ada@example.com: 2 models" in chat.nvim.messages())
    chat.nvim.wait_screen("https://chatgpt.com/settings/usage")
    got_it(chat)
    assert stat.S_IMODE((tmp_path / OWN).stat().st_mode) == 0o600
    chat.nvim.command("CodeCompanionChat New")
    chat.wait_ready()
    chat.say("hello again")
    assert "You said: hello again" in chat.text()
    assert "CodeCompanion (chatgpt · gpt-6-sol)" in chat.text()
    assert not openai.refusals
    assert not chat.nvim.blocked()


def test_the_login_and_its_tokens_are_nowhere_else(start: Start, openai: ChatGPTServer, tmp_path: Path) -> None:
    """They are not in the log at its most verbose level, in the database or in Neovim's memory."""
    chat = start(opened=True)
    log_in(chat)
    got_it(chat)
    chat.say("hello")
    assert "You said: hello" in chat.text()
    openai.sign_in.expire()
    chat.say("hello again")
    assert "You said: hello again" in chat.text()
    shown = chat.nvim.lua("return vim.inspect(require('codecompanion.host').inspect()) .. vim.inspect(vim.g)")
    shown += chat.text() + chat.nvim.messages()
    chat.nvim.__exit__()
    tokens = [*openai.sign_in.valid, *openai.sign_in.refreshes, *openai.sign_in.used]
    codes = ["ac_" + "0" * 32]
    assert len(tokens) >= 3
    for secret in (*tokens, *codes):
        assert secret not in shown
        holders = [path for path, content in contents_below(tmp_path) if secret.encode() in content]
        assert {path.name for path in holders} <= {"chatgpt.json"}


@pytest.mark.parametrize("key", ["q", "<Esc>", ":close<CR>"])
def test_a_stopped_login_changes_nothing(start: Start, openai: ChatGPTServer, tmp_path: Path, key: str) -> None:
    """This applies however its window is closed; the port is closed, and another login can start."""
    chat = start()
    page = begin(chat)
    chat.nvim.feed(key)
    chat.nvim.wait_for(lambda: "Login cancelled. Nothing was changed." in chat.nvim.messages())
    with pytest.raises(OSError, match="refused"):
        come_back(page)
    assert not (tmp_path / OWN).exists()
    log_in(chat)


def test_a_declined_login_is_reported(start: Start, openai: ChatGPTServer) -> None:
    """One sentence is shown, and the window closes."""
    openai.sign_in.consent = "deny"
    chat = start()
    come_back(begin(chat))
    chat.nvim.wait_for(lambda: "you declined the login on ChatGPT's page. Nothing was changed." in chat.nvim.messages())
    assert "Continue with ChatGPT" not in chat.nvim.screen()
    assert not chat.nvim.blocked()


def test_a_login_without_the_plan_is_reported_at_once(start: Start, openai: ChatGPTServer, tmp_path: Path) -> None:
    """The report includes a remedy, and the next login asks for permission again."""
    openai.sign_in.consent = "identity"
    chat = start()
    come_back(begin(chat))
    chat.nvim.wait_for(lambda: "may not use your ChatGPT plan: log in again and grant access" in chat.nvim.messages())
    assert not (tmp_path / OWN).exists()
    openai.sign_in.consent = "allow"
    assert "prompt=consent" in begin(chat)


def test_on_another_machine_the_address_is_pasted(start: Start, openai: ChatGPTServer) -> None:
    """No browser opens; a wrong URL is reported and changes nothing, and the input is not kept in the history."""
    chat = start(env={"SSH_CONNECTION": "10.0.0.1 1 10.0.0.2 22"})
    chat.nvim.command("CodeCompanion login chatgpt")
    chat.nvim.wait_screen("Your browser is on another machine")
    assert chat.nvim.lua("return #_G.pages") == 0
    chat.nvim.feed("y")
    back = sign_in(chat.nvim.lua("return vim.fn.getreg('\"')"))
    chat.nvim.feed("phttps://chatgpt.com/<CR>")
    chat.nvim.wait_for(lambda: "This is not the final address of ChatGPT's page" in chat.nvim.messages())
    chat.nvim.feed("p<Esc>")
    chat.nvim.feed(f"p{back}<CR>")
    chat.nvim.wait_for(lambda: "Logged in to chatgpt as ada@example.com" in chat.nvim.messages())
    assert "ac_" not in chat.nvim.lua("return vim.fn.histget('@', -1) .. vim.fn.histget('@', -2)")


def test_another_account_is_one_key_away(start: Start, openai: ChatGPTServer) -> None:
    """The user can also switch back: the list contains all accounts that have logged in."""
    chat = start()
    log_in(chat)
    got_it(chat)
    first = begin(chat)
    assert "login_hint=ada" in first
    chat.nvim.wait_screen("Continue as ada@example.com")
    openai.sign_in.user = "grace@example.com"
    chat.nvim.feed("a")
    chat.nvim.wait_lua("return #_G.pages == 3")
    page = chat.nvim.lua("return _G.pages[3]")
    assert "dynamic_agent_client" in page
    come_back(page)
    chat.nvim.wait_for(lambda: "Logged in to chatgpt as grace@example.com" in chat.nvim.messages())
    got_it(chat)
    assert "was stopped" not in chat.nvim.messages()
    begin(chat)
    chat.nvim.feed("a")
    chat.nvim.wait_screen("Another account")
    chat.nvim.feed("/ada<CR><CR>")
    chat.nvim.wait_lua("return #_G.pages == 5")
    openai.sign_in.user = "ada@example.com"
    come_back(chat.nvim.lua("return _G.pages[5]"))
    chat.nvim.wait_for(lambda: chat.nvim.messages().count("as ada@example.com") == 2)


def test_a_login_is_forgotten_on_request(start: Start, openai: ChatGPTServer, tmp_path: Path) -> None:
    """It is also revoked; the chat that uses it reports this with its next message."""
    chat = start(opened=True)
    log_in(chat)
    got_it(chat)
    chat.nvim.command("CodeCompanion logout chatgpt")
    chat.nvim.wait_for(lambda: "Logged out of chatgpt" in chat.nvim.messages())
    assert not (tmp_path / OWN).exists()
    assert len(openai.sign_in.revoked) == 1
    chat.say("hello")
    assert "not logged in to ChatGPT" in " ".join(chat.text().split())
    chat.nvim.command("CodeCompanion logout chatgpt")
    chat.nvim.wait_for(lambda: "This plugin has no login" in chat.nvim.messages())


def test_without_a_name_the_user_chooses(start: Start) -> None:
    """The choices are the adapters that have a login."""
    chat = start()
    chat.nvim.command("CodeCompanion login")
    chat.nvim.wait_screen("copilot")
    chat.nvim.feed("/chatgpt<CR><CR>")
    chat.nvim.wait_screen("Continue with ChatGPT")


def test_two_neovims_use_one_login(start: Start, openai: ChatGPTServer) -> None:
    """If both need the token when it expires, it is refreshed once and both get their answer."""
    first = start(opened=True)
    log_in(first)
    got_it(first)
    second = start(opened=True)
    for chat in (first, second):
        chat.say("hello")
    openai.sign_in.expire()
    threads = [threading.Thread(target=chat.say, args=("again",)) for chat in (first, second)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    for chat in (first, second):
        assert "You said: again" in chat.text()
    renewals = [seen for seen in openai.requests if b"grant_type=refresh_token" in seen.body]
    assert len(renewals) == 1


def test_tools_run_on_a_plan(start: Start, openai: ChatGPTServer) -> None:
    """The call, its result and the answer meet the requirements of a plan."""
    chat = start(opened=True, files=[("notes.txt", "the planted words")])
    log_in(chat)
    got_it(chat)
    read = Call("read_file", json.dumps({"path": "notes.txt"}))
    openai.script = [Reply((Text("Looking.", "commentary"), read)), Reply((Text("Done.", "final_answer"),))]
    chat.say("read my notes")
    assert "Done." in chat.text()
    assert "the planted words" in openai.requests[-1].body.decode()
    assert not openai.refusals


def test_a_summary_is_written_by_the_plan(start: Start, openai: ChatGPTServer) -> None:
    """The length limit that other endpoints receive is omitted."""
    chat = start(opened=True)
    log_in(chat)
    got_it(chat)
    for number in range(3):
        chat.say(f"tell me about {number}: " + "many words " * 100)
    openai.script = [Reply((Text(nine_sections("The user asked for three things.")),))]
    chat.send("/compact")
    chat.nvim.wait_screen("Compact now")
    chat.nvim.feed("y")
    chat.nvim.wait_for(lambda: any(event.payload.__class__ is ViewChanged for event in chat.log()), "a compaction")
    assert chat.view().messages
    assert "The user asked for three things." in str(chat.view())
    summary = json.loads(openai.requests[-1].body)
    assert "max_output_tokens" not in summary
    chat.say("go on")
    assert "You said: go on" in chat.text()
    assert not openai.refusals


def test_a_plan_costs_no_money(start: Start, openai: ChatGPTServer) -> None:
    """`/cost` says so, in words; a budget in dollars covers only dollar costs."""
    chat = start(opened=True, more={"opts": {"budget": 0.000001}})
    log_in(chat)
    got_it(chat)
    chat.say("one")
    chat.say("two")
    assert "You said: two" in chat.text()
    chat.send("/cost")
    screen = chat.nvim.wait_screen("included in the plan")
    assert "price unknown" not in screen
    assert [event.payload for event in chat.log() if isinstance(event.payload, UsageReported)][-1].included


def test_an_exhausted_plan_is_one_sentence(start: Start, openai: ChatGPTServer) -> None:
    """The sentence includes the page for managing usage, and the request is sent once."""
    chat = start(opened=True)
    log_in(chat)
    got_it(chat)
    openai.failures = [failure(429, "Limit.", code="subscription_sharing_usage_limit_exceeded")]
    asked = len(openai.requests)
    chat.say("hello")
    said = " ".join(chat.text().split())
    assert "the usage limit of your ChatGPT plan or of this app has been reached" in said
    assert "https://chatgpt.com/settings/usage" in said
    assert len(openai.requests) == asked + 1


def test_the_health_check_reports_the_login(start: Start, tmp_path: Path) -> None:
    """It reports whether there is a login and how to get one, but never the token."""
    chat = start()
    assert "not logged in; run :CodeCompanion login chatgpt" in chat.health()
    log_in(chat)
    got_it(chat)
    text = chat.health()
    assert "a login was found" in text
    assert json.loads((tmp_path / OWN).read_text())["refresh_token"] not in text


def test_in_a_narrow_window_the_whole_address_is_visible(start: Start) -> None:
    """In 40 columns the URL wraps below the instructions, and the keys are visible."""
    chat = start(size=(40, 24))
    page = begin(chat)
    screen = chat.nvim.screen()
    assert "q stop" in screen
    assert "Waiting for your browser" in screen
    assert chat.nvim.lua("return vim.api.nvim_buf_get_lines(0, 0, -1, false)").count(page) == 1
    assert chat.nvim.lua("return vim.wo.wrap")
