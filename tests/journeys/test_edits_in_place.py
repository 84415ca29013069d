"""Inline edits: select, instruct, review, decide, undo, with a host that dies in between (3)."""

from __future__ import annotations

import asyncio

import pytest

from real_chat import KEY
from tests.journeys.chat import quit_all
from tests.journeys.desk import Desk
from tests.journeys.terminal import missing
from tests.providers.chat.answers import failure, reply
from tests.providers.chat.thread import ChatServerThread

pytestmark = pytest.mark.slow("a journey in a real terminal")

OLD = "import sys\n\n\ndef fact(n):\n    if n < 2:\n        return 1\n    return n * fact(n - 1)\n\n\nprint(fact(3))\n"
NEW = 'def fact(n):\n    """Return n!."""\n    if n < 2:\n        return 1\n    return prod(range(1, n + 1))\n'


@pytest.mark.skipif(bool(missing()), reason=missing())
def test_an_edit_is_reviewed_decided_and_undone(desk: Desk) -> None:
    gate = asyncio.Event()
    answer = f"placement: replace\n```python\n{NEW}```\n"
    held = reply(answer, gate=gate, gate_after=26)
    with ChatServerThread([reply(answer), held, failure(401, "no"), reply(answer)], key=KEY) as server:
        desk.configure(server.url)
        path = desk.write("fact.py", OLD)
        terminal = desk.nvim("fact.py", env={"LOOP_KEY": KEY})
        terminal.wait("def fact")
        # select, say, look
        terminal.keys("4GV3j:CodeCompanion make it iterative<CR>")
        screen = terminal.wait(r"2 hunks · g2 accept")
        assert 'Return n!."""' in screen
        assert "return n * fact(n - 1)  −" in screen
        # one change is rejected, the other accepted, and undone
        terminal.keys("4G]c")
        terminal.wait("hunk 2 of 2")
        terminal.keys("[c")
        terminal.wait("hunk 1 of 2")
        terminal.keys("g5")
        terminal.wait(r"g2 accept · g3 reject", gone="Return n!")
        terminal.keys("g2")
        screen = terminal.wait("Accepted", gone="g2 accept")
        assert "    return prod(range(1, n + 1))\n" in screen
        assert "Return n!" not in screen
        terminal.keys("u")
        terminal.wait(r"return n \* fact\(n - 1\)  −")
        terminal.keys("<C-r>")
        terminal.wait(r"    return prod\(range\(1, n \+ 1\)\)\n", gone="g2 accept")
        terminal.keys("u")
        terminal.wait("g2 accept")
        terminal.keys("g3")
        terminal.wait(r"return n \* fact\(n - 1\)\n", gone="prod")
        # the host dies while the code arrives
        terminal.keys("4GV3j:CodeCompanion make it iterative<CR>")
        terminal.wait("Return n!")
        terminal.kill9("codecompanion.engine")
        terminal.wait("The Python process ended", gone="Return n!")
        server.release(gate)
        # the key is refused, and then it works
        terminal.keys("4GV3j:CodeCompanion make it iterative<CR>")
        terminal.wait("was refused")
        terminal.keys(":write<CR>")
        terminal.wait("written")
        assert path.read_text() == OLD
        terminal.keys("4GV3j:CodeCompanion make it iterative<CR>")
        terminal.wait("2 hunks · g2 accept")
        terminal.keys("g3")
        terminal.wait("Rejected", gone="Return n!")
        # the conversation can be read and goes on as a chat
        terminal.keys(":CodeCompanion edits<CR>")
        terminal.wait("replaces the lines")
        quit_all(terminal)
        assert path.read_text() == OLD
