"""`:CodeCompanion login copilot` in a real Neovim with the real host and a local fake GitHub server."""

from __future__ import annotations

import json
import stat
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from harness import Nvim
from real_chat import RealChat, start_chat
from tests.contents import contents_below
from tests.providers.github.server import LOGIN, GitHubServer
from tests.providers.github.thread import GitHubServerThread

Start = Callable[..., RealChat]
OWN = "data/nvim/codecompanion/logins.json"


@pytest.fixture
def github() -> Iterator[GitHubServer]:
    """Run a fake GitHub server that waits for its user's approval."""
    with GitHubServerThread() as server:
        server.pending, server.approved = 0, False
        yield server


@pytest.fixture
def start(nvim_factory: Callable[..., Nvim], tmp_path: Path, github: GitHubServer) -> Start:
    """Return a function that starts a Neovim whose chats use Copilot on this server."""

    def start(opened: bool = False) -> RealChat:
        copilot = {"opts": {"github": github.base, "max_retries": 0}}
        options = {
            "opts": {"log_level": "TRACE"},
            "adapters": {"http": {"extend": {"copilot": copilot}}},
            "interactions": {"chat": {"adapter": "copilot"}},
        }
        return start_chat(nvim_factory, tmp_path, github, options=options, opened=opened)

    return start


def begin(chat: RealChat) -> None:
    """Start a login and wait for the code."""
    chat.nvim.command("CodeCompanion login copilot")
    chat.nvim.wait_screen("WDJB-MJHT")


def test_a_newcomer_logs_in_and_gets_an_answer(start: Start, github: GitHubServer, tmp_path: Path) -> None:
    """The code and page are shown, only the owner can read the stored login, and Copilot's default model answers."""
    chat = start(opened=True)
    chat.say("hello")
    assert "not logged in to Copilot" in " ".join(chat.text().split())
    assert ":CodeCompanion login copilot" in " ".join(chat.text().split())
    begin(chat)
    screen = chat.nvim.screen()
    assert f"{github.base}/login/device" in screen
    assert "valid for 15 minutes" in screen
    chat.nvim.feed("y")
    assert chat.nvim.lua("return vim.fn.getreg('\"')") == "WDJB-MJHT"
    github.approved = True
    chat.nvim.wait_for(lambda: "Logged in to copilot as octocat: 3 models" in chat.nvim.messages())
    assert "WDJB-MJHT" not in chat.nvim.screen()
    kept = tmp_path / OWN
    assert stat.S_IMODE(kept.stat().st_mode) == 0o600
    assert json.loads(kept.read_text())["github.com"]["oauth_token"] == LOGIN
    chat.nvim.command("CodeCompanionChat New")
    chat.wait_ready()
    chat.say("hello again")
    assert "You said: hello again" in chat.text()
    assert not chat.nvim.blocked()


def test_the_login_and_its_tokens_are_nowhere_else(start: Start, github: GitHubServer, tmp_path: Path) -> None:
    """They are not in the log at its most verbose level, in the database or in Neovim's memory."""
    github.approved = True
    chat = start(opened=True)
    chat.nvim.command("CodeCompanion login copilot")
    chat.nvim.wait_for(lambda: "Logged in" in chat.nvim.messages())
    chat.say("hello")
    assert "You said: hello" in chat.text()
    shown = chat.nvim.lua("return vim.inspect(require('codecompanion.host').inspect()) .. vim.inspect(vim.g)")
    shown += chat.text() + chat.nvim.messages()
    chat.nvim.__exit__()
    tokens = [seen.headers["authorization"].removeprefix("Bearer ") for seen in github.requests[-1:]]
    assert tokens[0].startswith("tid=")
    for secret in (LOGIN, *tokens):
        assert secret not in shown
        holders = [path for path, content in contents_below(tmp_path) if secret.encode() in content]
        assert [path.name for path in holders] == (["logins.json"] if secret == LOGIN else [])


@pytest.mark.parametrize("key", ["q", "<Esc>", ":close<CR>"])
def test_a_stopped_login_changes_nothing(start: Start, github: GitHubServer, tmp_path: Path, key: str) -> None:
    """However the login window is closed, GitHub is no longer polled, and another login can start."""
    chat = start()
    begin(chat)
    chat.nvim.feed(key)
    chat.nvim.wait_for(lambda: "Login cancelled. Nothing was changed." in chat.nvim.messages())
    asked = len(github.requests)
    github.approved = True
    chat.nvim.settle()
    assert len(github.requests) == asked
    assert not (tmp_path / OWN).exists()
    chat.nvim.command("CodeCompanion login copilot")
    chat.nvim.wait_for(lambda: "Logged in to copilot as octocat" in chat.nvim.messages())


def test_a_refusal_is_one_sentence(start: Start, github: GitHubServer) -> None:
    """The window closes, and no prompt waits for a key."""
    github.approved, github.login_error = True, {"error": "access_denied"}
    chat = start()
    chat.nvim.command("CodeCompanion login copilot")
    chat.nvim.wait_for(lambda: "you declined the login" in chat.nvim.messages())
    assert "WDJB-MJHT" not in chat.nvim.screen()
    assert not chat.nvim.blocked()


def test_an_account_without_copilot_is_reported_at_once(start: Start, github: GitHubServer) -> None:
    """The login is stored; the message says that it cannot be used."""
    github.approved, github.exchange_status = True, 403
    chat = start()
    chat.nvim.command("CodeCompanion login copilot")
    chat.nvim.wait_for(lambda: "but it cannot be used" in chat.nvim.messages())
    assert not chat.nvim.blocked()


def test_a_login_is_forgotten_on_request(start: Start, github: GitHubServer, tmp_path: Path) -> None:
    """The chat that uses it reports this with its next message."""
    github.approved = True
    chat = start(opened=True)
    chat.nvim.command("CodeCompanion login copilot")
    chat.nvim.wait_for(lambda: "Logged in" in chat.nvim.messages())
    chat.nvim.command("CodeCompanion logout copilot")
    chat.nvim.wait_for(lambda: "Logged out of" in chat.nvim.messages())
    assert not (tmp_path / OWN).exists()
    chat.say("hello")
    assert "not logged in to Copilot" in " ".join(chat.text().split())
    chat.nvim.command("CodeCompanion logout copilot")
    chat.nvim.wait_for(lambda: "This plugin has no login" in chat.nvim.messages())


def test_two_neovims_use_one_login(start: Start, github: GitHubServer) -> None:
    """The second finds the login of the first; both exchange it for their own token."""
    github.approved = True
    first = start(opened=True)
    first.nvim.command("CodeCompanion login copilot")
    first.nvim.wait_for(lambda: "Logged in" in first.nvim.messages())
    second = start(opened=True)
    for chat in (first, second, first):
        chat.say("hello")
        assert "You said: hello" in chat.text()
    assert github.exchanges == 2


def test_an_adapter_with_a_key_has_no_login(start: Start) -> None:
    """One sentence reports that."""
    chat = start()
    chat.nvim.command("CodeCompanion login openai")
    chat.nvim.wait_for(lambda: "openai has no login" in chat.nvim.messages())


def test_the_health_check_reports_the_login(start: Start, tmp_path: Path) -> None:
    """It reports whether there is a login and how to get one, but never the token."""
    chat = start()
    assert "not logged in; run :CodeCompanion login copilot" in chat.health()
    (tmp_path / OWN).parent.mkdir(parents=True, exist_ok=True)
    (tmp_path / OWN).write_text(json.dumps({"github.com": {"oauth_token": LOGIN}}))
    text = chat.health()
    assert "a login was found" in text
    assert LOGIN not in text
