"""Pickers, reports, errors, mistakes: nothing blocks, and no key ends up in the wrong place (story f).

`Terminal.wait` fails if Neovim shows a hit-enter or more prompt, so every step here also checks that.
"""

from __future__ import annotations

import pytest

from real_chat import KEY
from tests.journeys.chat import READY, command, draft, open_chat, quit_all, say, send
from tests.journeys.desk import Desk
from tests.journeys.project import lay_out
from tests.providers.chat.answers import failure, reply, silence
from tests.providers.chat.thread import ChatServerThread
from tests.providers.loopback.answers import Answer

pytestmark = pytest.mark.slow("a journey in a real terminal")

REPORTS = [
    (":CodeCompanionCost<CR>", r"(Cost|Usage) of this chat"),
    (":CodeCompanionTrace<CR>", r"Turn 1 of 1"),
    ("gd", r"Next request"),
    ("gp", r"Preview"),
    ("gs", r"You are CodeCompanion"),
]
"""Keys that open a report or another page, and the expected text."""


def assert_no_trace(screen: str) -> None:
    """Assert that no Lua or Python traceback is on the screen."""
    for trace in ("traceback", "Error executing", "Keyboard interrupt", "E5108", "Could not show"):
        assert trace not in screen, screen


@pytest.mark.parametrize("layout", ["buffer", "float", "vertical"])
def test_reports_open_in_normal_mode_and_return_to_the_chat(desk: Desk, layout: str) -> None:
    """This applies even if a report is requested while typing.

    It is on top, `q` closes it, and the draft is unchanged.
    """
    lay_out(desk)
    desk.configure_offline({"display": {"chat": {"window": {"layout": layout}}}})
    terminal = desk.nvim("src/stack.py")
    open_chat(terminal)
    say(terminal, "read notes.md", r"`read_file` notes\.md")
    draft(terminal, "half a thought")
    for keys, wanted in REPORTS:
        terminal.keys(keys)
        screen = terminal.wait(wanted)
        assert "-- INSERT --" not in terminal.still()
        terminal.keys("jjkk")
        assert "jjkk" not in terminal.still()
        terminal.keys("q")
        screen = terminal.wait("half a thought", gone=wanted)
        assert "`read_file` notes.md" in screen
    for text in ("CodeCompanionCost", "CodeCompanionTrace"):
        terminal.keys(f"A<C-o>:{text}<CR>")
        wanted = "(Cost|Usage) of this chat" if "Cost" in text else "Turn 1 of 1"
        terminal.wait(wanted, gone="-- INSERT --")
        terminal.keys("q")
        terminal.wait("half a thought", gone=wanted)
        terminal.keys("<Esc>")
    quit_all(terminal)


PICKERS = {
    "model": ("ga", r"Choose a model"),
    "resume": (":CodeCompanionChat Resume<CR>", r"Resume a chat"),
    "checkpoint": (":CodeCompanionRestore<CR>", r"Restore a chat"),
    "policy": ("A/policy<Esc><CR>", r"Policy"),
    "rules": ("A/rules<Esc><CR>", r"Rules"),
    "file": ("A/file<Esc><CR>", r"Attach files"),
    "buffer": ("A/buffer<Esc><CR>", r"Attach buffers"),
}


@pytest.mark.parametrize(
    "name",
    [
        pytest.param(name, marks=[] if name in ("model", "file") else [pytest.mark.thorough("the same window")])
        for name in PICKERS
    ],
)
def test_a_picker_can_be_left_with_ctrl_c_and_without_a_choice(desk: Desk, name: str) -> None:
    """There is no traceback, the chat is unchanged, and it can still be used."""
    keys, title = PICKERS[name]
    lay_out(desk)
    desk.configure_offline()
    terminal = desk.nvim("notes.md")
    open_chat(terminal)
    say(terminal, "read notes.md", r"`read_file` notes\.md")
    for leave in ("<C-c>", "<Esc>", "q"):
        terminal.keys(keys)
        terminal.wait(rf"╭ {title}")
        assert "-- INSERT --" not in terminal.still()
        terminal.keys(leave)
        screen = terminal.wait(r"`read_file` notes\.md", gone="╭")
        assert_no_trace(terminal.still())
        assert "-- INSERT --" not in screen, screen
        terminal.keys("Gdd")
    say(terminal, "find files ledger_*", "ledger_a")
    quit_all(terminal)


def test_ctrl_c_leaves_insert_mode_and_loses_nothing(desk: Desk) -> None:
    """In the input, during a reply and in normal mode, the chat keeps its place."""
    lay_out(desk)
    script: list[Answer] = [reply("The ebb and flow of it. " * 40, chunk_chars=12, delay_s=0.1)]
    with ChatServerThread(script, key=KEY) as server:
        desk.configure(server.url)
        terminal = desk.nvim("notes.md")
        open_chat(terminal)
        terminal.keys("Gihalf a thought")
        terminal.wait("half a thought")
        terminal.keys("<C-c>")
        terminal.wait("half a thought", gone="-- INSERT --")
        terminal.keys("<Esc><CR>")
        terminal.wait("ebb and flow")
        terminal.keys("Gianother")
        terminal.wait("another")
        terminal.keys("<C-c>")
        screen = terminal.wait("another", gone="-- INSERT --")
        assert "half a thought" in screen
        quit_all(terminal)


def test_errors_of_the_provider_are_one_sentence_each(desk: Desk) -> None:
    """No network, a wrong key, a rate limit, a broken stream or a silent server causes one sentence and no prompt."""
    script: list[Answer] = [
        failure(401, "Incorrect API key provided: sk-p****.", code="invalid_api_key"),
        failure(429, "Rate limit reached for requests", code="rate_limit_exceeded", headers={"retry-after": "30"}),
        reply("The stack forgets to remove what it returns, and so on.", break_after=6),
        silence(),
        reply("At last."),
    ]
    with ChatServerThread(script, key=KEY) as server:
        desk.configure(server.url, opts={"max_retries": 1})
        terminal = desk.nvim()
        open_chat(terminal)
        screen = say(terminal, "first", r"✗ .*key")
        assert screen.count("✗") == 1, screen
        assert KEY not in screen
        send(terminal, "second")
        terminal.wait(r"30 s|[Rr]etry|again in")
        terminal.keys("<Esc>q")
        terminal.wait("[Ss]topped", gone="⋯ ")
        server.script[:] = script[2:]
        say(terminal, "third", r"✗ .*connection|cut off")
        send(terminal, "fourth")
        terminal.wait("waiting for the model")
        terminal.keys("<Esc>q")
        terminal.wait("[Ss]topped", gone="⋯ ")
        screen = say(terminal, "fifth", "At last")
        assert terminal.rows()[-1] in ("", "-- INSERT --"), screen
        quit_all(terminal)
    terminal = desk.nvim()
    open_chat(terminal)
    screen = say(terminal, "anybody?", "✗ ")
    assert "connection" in screen
    quit_all(terminal)


MISTAKES = {
    "unknown key": {"interactions": {"chat": {"adaptor": "offline"}}},
    "unknown policy": {"interactions": {"chat": {"opts": {"policy": "codebudy"}}}},
    "foreign": {"strategies": {"chat": {"adapter": "offline", "slash_commands": {"opts": {}}}}, "extensions": {}},
    "wrong types": {"interactions": "all", "display": {"chat": {"window": {"width": "wide"}}}, "rules": 7},
    "own policy": {"interactions": {"chat": {"opts": {"policies": {"mine": {"stage": ["x"]}}}}}},
    "many": {f"key_{number}": {} for number in range(40)},
}


@pytest.mark.parametrize("name", MISTAKES)
def test_a_mistake_in_setup_costs_one_line_and_no_prompt(desk: Desk, name: str) -> None:
    """The file can be edited, and a chat still opens; `:checkhealth` has the details."""
    lay_out(desk)
    desk.configure_offline(MISTAKES[name])
    terminal = desk.nvim("notes.md")
    terminal.wait("N1 is closed in winter")
    screen = terminal.still()
    assert screen.count("codecompanion") <= 2, screen
    terminal.wait("N1 is closed in winter")
    command(terminal, "CodeCompanionChat", READY)
    quit_all(terminal)
