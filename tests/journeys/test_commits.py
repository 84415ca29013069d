"""`git commit` opens Neovim, and Git accepts the message written there; the diff is shown, and a template works."""

from __future__ import annotations

import shlex

import pytest

from real_chat import KEY
from tests.journeys.desk import Desk
from tests.journeys.terminal import missing
from tests.journeys.test_prompts import git
from tests.providers.chat.answers import reply
from tests.providers.chat.thread import ChatServerThread

pytestmark = pytest.mark.slow("a journey in a real terminal")

MESSAGE = "fix(stack): pop takes\n\nIt only looked."


@pytest.mark.skipif(bool(missing()), reason=missing())
def test_the_message_is_written_into_gits_commit_buffer(desk: Desk) -> None:
    desk.write("stack.py", "items[-1]\n")
    desk.write("template.txt", "\n# Why, not what.\n")
    git(desk, "init", "-q")
    git(desk, "add", "stack.py")
    git(desk, "commit", "-q", "-m", "feat(stack): a stack")
    for name, value in (("user.name", "x"), ("user.email", "x@y"), ("commit.template", "template.txt")):
        git(desk, "config", name, value)
    with ChatServerThread([reply(MESSAGE), reply(MESSAGE)], key=KEY) as server:
        desk.configure(server.url)
        here = {"GIT_EDITOR": shlex.join(desk.command()), "LOOP_KEY": KEY}
        desk.write("stack.py", "items.pop()\n")
        terminal = desk.terminal(["git", "commit", "-v", "-a"], size=(80, 40), env=here)
        terminal.wait("# Why, not what.")
        terminal.keys(":CodeCompanion commit<CR>")
        screen = terminal.wait("It only looked")
        assert screen.index("It only looked") < screen.index("# Why, not what.") < screen.index("+items.pop()")
        terminal.keys("u")
        terminal.wait("# Why, not what.", gone="It only looked")
        terminal.keys("<C-r>")
        terminal.wait("It only looked")
        terminal.keys(":wq<CR>")
        terminal.wait_ended()
        assert git(desk, "log", "-1", "--format=%B").strip() == MESSAGE
        assert "+items.pop()" in str(server.requests[-1].json["messages"][-1]["content"])
        # nothing is staged: an amended commit keeps its message, and it is said
        terminal = desk.terminal(["git", "commit", "--amend"], size=(80, 40), env=here)
        terminal.wait("It only looked")
        terminal.keys(":CodeCompanion commit<CR>")
        terminal.wait("Nothing is staged")
        terminal.keys(":q!<CR>")
        terminal.wait_ended()
        assert git(desk, "log", "-1", "--format=%B").strip() == MESSAGE
        assert len(server.requests) == 1
