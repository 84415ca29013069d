"""An hour in a 16k window under each of the six policies, with file edits in between (story e).

Invariants under every policy: every question is answered, the meter never exceeds 100 %, the chat shows where something
was removed, the newest question and answer are visible, the edits are on disk, and after a power failure the resumed
chat is identical.
"""

from __future__ import annotations

import re

import pytest

from codecompanion.context.policy.policy_catalog import policy_names
from tests.journeys.chat import BUSY, approve, command, open_chat, quit_all, read_through, send
from tests.journeys.desk import Desk
from tests.journeys.project import lay_out
from tests.journeys.terminal import Terminal

pytestmark = pytest.mark.slow("a journey in a real terminal")

ROUNDS = 9
USUAL = ("codecompanion", "adaptive")
REMOVED = r"✂|compacted|Summary · |summarised|handed on|Context state"


def percent(screen: str) -> int:
    """Return the fill level of the context as shown on the screen."""
    found = re.findall(r"· ~?(\d+) %", screen)
    assert found, f"no meter\n{screen}"
    return int(found[-1])


def ask(terminal: Terminal, number: int) -> str:
    """Ask to read two files, or every third time to change one; return the screen after the turn."""
    if number % 3 == 2:
        send(terminal, f'replace "highest" with "top_{number}" in src/stack_{number}.py')
        approve(terminal)
        terminal.wait(rf"`insert_edit` src/stack_{number}\.py", gone=BUSY)
    else:
        send(terminal, f"read ledger_{'abcdef'[number % 6]}.txt then read part_{number}.md")
        terminal.wait(rf"`read_file`\s+part_{number}\.md", gone=BUSY)
    return terminal.still()


@pytest.mark.parametrize(
    "policy",
    [
        pytest.param(name, marks=[] if name in USUAL else [pytest.mark.thorough("the same under another policy")])
        for name in policy_names()
    ],
)
def test_a_long_chat_in_a_small_window_works(desk: Desk, policy: str) -> None:
    lay_out(desk, lines=170)
    for number in range(ROUNDS):
        desk.write(f"src/stack_{number}.py", "highest = 1\n")
        desk.write(f"part_{number}.md", f"This is part {number}.\n")
    opts = {"policy": policy, "context_management": {"compaction": {"min_token_savings": 500}}}
    desk.configure_offline(
        {
            "adapters": {"http": {"offline": {"opts": {"context_window": 16_000}}}},
            "interactions": {"chat": {"adapter": "offline", "opts": opts}},
        }
    )
    terminal = desk.nvim(size=(110, 40))
    open_chat(terminal)
    full = []
    for number in range(ROUNDS):
        screen = ask(terminal, number)
        full.append(percent(screen))
    assert max(full) <= 100, full
    assert re.search(REMOVED, read_through(terminal)), f"it is not said that something was removed: {full}"
    for number in range(2, ROUNDS, 3):
        assert desk.read(f"src/stack_{number}.py") == f"top_{number} = 1\n"
    last = f"part_{ROUNDS - 1}.md" if ROUNDS % 3 else f"src/stack_{ROUNDS - 1}.py"
    assert last in screen
    terminal.kill9()

    again = desk.nvim(size=(110, 40))
    command(again, "CodeCompanionChat Resume last", re.escape(last))
    resumed = again.wait(r"· ~?\d+ %")
    assert abs(percent(again.still()) - full[-1]) <= 1, (resumed, full)
    send(again, "read part_0.md")
    again.wait(r"`read_file` part_0\.md", gone=BUSY)
    quit_all(again)
