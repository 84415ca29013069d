"""Edits in place with a real host: they are shown in the buffer, accepted in one step, and never disturb typed text."""

from __future__ import annotations

import asyncio
import contextlib
import os
import re
import signal

import pytest

from real_chat import KEY, RealChat, read_log, start_chat
from tests.forked_python import process_of
from tests.providers.chat.answers import failure, reply
from tests.providers.chat.thread import ChatServerThread

OLD = [
    "import sys",
    "",
    "",
    "def fact(n):",
    "    if n < 2:",
    "        return 1",
    "    return n * fact(n - 1)",
    "",
    "fact(3)",
]
NEW = ["def fact(n):", "    result = 1", "    for i in range(2, n + 1):", "        result *= i", "    return result"]
EDITED = [*OLD[:3], *NEW, *OLD[7:]]
TWO = ["def fact(number):", "    if n < 2:", "        return 1", "    return number * fact(number - 1)"]


def code(lines: list[str], placement: str = "replace") -> str:
    body = "\n".join(lines)
    return f"placement: {placement}\n```python\n{body}\n```\n"


def listed(nvim) -> list[str]:
    """Return the titles of the resumable chats."""
    nvim.lua("require('codecompanion.host').request('list_sessions', {}, function(_, found) sessions = found end)")
    found = nvim.wait_lua("return sessions ~= nil and { sessions }")[0]
    nvim.lua("sessions = nil")
    return [row["title"] for row in found]


class Desk:
    """A file in a Neovim with a scripted model."""

    def __init__(self, chat: RealChat, server: ChatServerThread) -> None:
        self.chat, self.server, self.nvim = chat, server, chat.nvim

    def edit(self, command: str, *, lines: list[str] | None = None, name: str = "fact.py") -> None:
        self.nvim.command(f"edit {name}")
        if lines is not None:
            self.nvim.lua("vim.api.nvim_buf_set_lines(0, 0, -1, false, ...); vim.bo.modified = false", lines)
        self.ask(command)

    def ask(self, command: str) -> None:
        self.nvim.feed(f":{command}<CR>")

    def state(self) -> dict:
        return self.nvim.lua("return vim.b.codecompanion_edit or vim.empty_dict()")

    def wait_proposed(self, changes: int | None = None) -> None:
        def found():
            now = self.state()
            return now.get("state") == "proposed" and (changes is None or now["changes"] == changes)

        self.nvim.wait_for(found, "a proposal")

    def wait_over(self) -> None:
        self.nvim.wait_for(lambda: not self.state(), "the end of the edit")

    def lines(self) -> list[str]:
        return self.nvim.lines()


@pytest.fixture
def desk(nvim_factory, tmp_path):
    """Return a factory of desks: scripted answers, then options."""
    stack = contextlib.ExitStack()

    def make(*answers, size=(80, 24), **more) -> Desk:
        server = stack.enter_context(ChatServerThread(answers, key=KEY))
        files = [("fact.py", "\n".join(OLD) + "\n"), ("other.py", "x = 1\n")]
        chat = start_chat(nvim_factory, tmp_path, server, files=files, opened=False, size=size, **more)
        chat.nvim.command(f"cd {tmp_path}/work")
        return Desk(chat, server)

    with stack:
        yield make


def test_a_selection_is_changed_as_instructed_in_one_step(desk):
    """The whole path is covered: a diff in the buffer with the text unchanged, `g2`, then `u`."""
    here = desk(reply(code(NEW)))
    here.edit("4,7CodeCompanion make it iterative")
    here.wait_proposed()
    assert here.lines() == OLD
    screen = here.nvim.wait_screen(r"    result = 1  \+")
    assert "g2 accept" in screen
    assert "def fact(n):" in screen
    here.nvim.feed("g2")
    here.wait_over()
    assert here.lines() == EDITED
    here.nvim.feed("u")
    here.nvim.wait_for(lambda: here.lines() == OLD, "the old text")
    here.nvim.feed("<C-r>")
    here.nvim.wait_for(lambda: here.lines() == EDITED, "the new text")


def test_a_rejected_edit_leaves_text_and_keys_unchanged(desk):
    here = desk(reply(code(NEW)))
    here.nvim.command("edit fact.py")
    here.nvim.lua("vim.keymap.set('n', ']c', 'iMine<Esc>', { buffer = 0 })")
    here.ask("4,7CodeCompanion make it iterative")
    here.wait_proposed()
    here.nvim.feed("g3")
    here.wait_over()
    assert here.lines() == OLD
    assert here.nvim.lua("return vim.bo.modified") is False
    assert drawn(here) == []
    assert here.nvim.lua("return vim.fn.maparg('g3', 'n', false, true).buffer") != 1
    here.nvim.feed("gg]c")
    assert here.lines()[0] == "Mineimport sys"


def test_undo_restores_a_rejected_proposal_in_order(desk):
    """Later typing is undone first; the file counts as unmodified throughout."""
    here = desk(reply(code(TWO)))
    here.edit("4,7CodeCompanion call it number")
    here.wait_proposed(2)
    here.nvim.feed("g3")
    here.wait_over()
    assert here.lines() == OLD
    assert not here.nvim.lua("return vim.bo.modified")
    here.nvim.feed("Goend<Esc>u")
    here.nvim.settle()
    assert here.lines() == OLD
    assert here.state() == {}
    here.nvim.feed("u")
    here.wait_proposed(2)
    assert not here.nvim.lua("return vim.bo.modified")
    here.nvim.feed("<C-r>")
    here.wait_over()
    here.nvim.feed("u")
    here.wait_proposed(2)
    here.nvim.feed("g2")
    here.wait_over()
    assert here.lines() == [*OLD[:3], *TWO, *OLD[7:]]


def test_a_rejected_proposal_is_reopened_and_keeps_later_typing(desk):
    """The command and the palette reopen it; text typed above, below and within its lines is kept."""
    here = desk(reply(code(TWO)))
    here.edit("4,7CodeCompanion call it number")
    here.wait_proposed(2)
    here.nvim.feed("g3")
    here.wait_over()
    here.nvim.feed("ggOtop<Esc>Goend<Esc>6GA  # small<Esc>")
    here.nvim.command("CodeCompanion reopen")
    here.wait_proposed(2)
    here.nvim.feed("g2")
    here.wait_over()
    changed = [TWO[0], OLD[4] + "  # small", OLD[5], TWO[3]]
    assert here.lines() == ["top", *OLD[:3], *changed, *OLD[7:], "end"]
    here.nvim.command("CodeCompanion reopen")
    assert "No rejected change" in here.nvim.wait_screen("No rejected change")


def test_a_key_that_a_users_mapping_begins_with_is_replaced(desk):
    """This applies when a user's mapping starts with the key.

    The hunk shows the replacement key, and the command always works.
    """
    here = desk(reply(code(TWO)))
    here.nvim.lua("vim.keymap.set('n', 'g2x', 'iMine<Esc>')")
    here.edit("4,7CodeCompanion call it number")
    here.wait_proposed(2)
    here.nvim.wait_screen("gz2 accept · g3 reject")
    here.nvim.feed("ggg2x")
    assert here.lines()[0] == "Mineimport sys"
    here.nvim.feed("u")
    here.nvim.feed("gz2")
    here.wait_over()
    assert here.lines() == [*OLD[:3], *TWO, *OLD[7:]]
    here.nvim.feed("u")
    here.wait_proposed(2)
    here.nvim.command("4CodeCompanion skip")
    here.wait_proposed(1)
    here.nvim.command("CodeCompanion accept")
    here.wait_over()
    assert here.lines() == [*OLD[:6], TWO[3], *OLD[7:]]


def test_always_asks_for_the_scope_and_undo_reverts_it(desk):
    here = desk(reply(code(TWO)), reply(code(["def fact(m):"])), reply(code(["def fact(o):"])))
    here.edit("4,7CodeCompanion call it number")
    here.wait_proposed(2)
    here.nvim.feed("g1")
    here.nvim.wait_screen("Accept this and later edits in place in fact.py")
    here.nvim.feed("<CR>")
    here.wait_over()
    assert here.lines()[3] == TWO[0]
    here.ask("4CodeCompanion call it m")
    here.nvim.wait_for(lambda: here.lines()[3] == "def fact(m):", "the accepted edit")
    here.wait_over()
    here.nvim.feed("u")
    here.wait_proposed(1)
    here.nvim.feed("g3")
    here.wait_over()
    here.ask("4CodeCompanion call it o")
    here.wait_proposed(1)
    assert here.lines()[3] == TWO[0]


def test_undoing_the_edit_of_an_always_asks_again(desk):
    here = desk(reply(code(TWO)), reply(code(["def fact(m):"])))
    here.edit("4,7CodeCompanion call it number")
    here.wait_proposed(2)
    here.nvim.feed("g1")
    here.nvim.wait_screen("Accept this and later edits in place in fact.py")
    here.nvim.feed("<CR>")
    here.wait_over()
    here.nvim.feed("u")
    here.wait_proposed(2)
    here.nvim.feed("g3")
    here.wait_over()
    here.ask("4CodeCompanion call it m")
    here.wait_proposed(1)
    assert here.lines() == OLD


def test_a_selection_without_a_hunk_decides_nothing(desk):
    """This applies even if there is only one hunk, which keys without a selection would decide."""
    here = desk(reply(code([*OLD[3:6], TWO[3]])))
    here.edit("4,7CodeCompanion call it number")
    here.wait_proposed(1)
    for keys in ("ggVg2", "ggVg5", "ggVg3"):
        here.nvim.feed(keys)
        here.nvim.wait_screen("No hunk in the selection")
        here.nvim.feed("<Esc>:<CR>")
        assert here.state()["changes"] == 1
    here.nvim.feed("7GVg3")
    here.wait_over()
    assert here.lines() == OLD


def test_the_view_of_a_different_proposal_decides_nothing(desk):
    """After a new request or typing, keys in the view do not decide a proposal that it does not show."""
    here = desk(reply(code(TWO)), reply(code(NEW)))
    here.edit("4,7CodeCompanion call it number")
    here.wait_proposed(2)
    here.nvim.feed("gK")
    here.nvim.wait_screen("Edit in place fact.py")
    here.nvim.lua("vim.ui.input = function(_, done) done('make it iterative') end")
    here.nvim.feed("gtg<CR>")
    here.wait_proposed(1)
    here.nvim.feed("gtg2")
    here.nvim.wait_screen("The proposal or the text has changed; nothing was applied")
    here.nvim.feed("q")
    assert here.lines() == OLD
    here.nvim.feed("gK")
    here.nvim.wait_screen("Edit in place fact.py")
    here.nvim.feed("g2")
    here.wait_over()
    assert here.lines() == EDITED
    assert here.nvim.lua("return vim.fn.tabpagenr('$')") == 1


def test_changed_line_ends_count_as_a_change(desk):
    here = desk(reply(code(TWO)))
    here.edit("4,7CodeCompanion call it number")
    here.wait_proposed(2)
    here.nvim.feed("g3")
    here.wait_over()
    here.nvim.feed(":set ff=dos<CR>u")
    here.wait_proposed(2)
    assert here.nvim.lua("return vim.bo.modified")


def test_the_keys_of_an_edit_speak_of_edits_only(desk):
    """An edit in place has no calls to approve or to allow; its diff lists its own keys."""
    here = desk(reply(code(TWO)))
    here.edit("4,7CodeCompanion call it number")
    here.wait_proposed(2)
    here.nvim.feed("g?")
    screen = here.nvim.wait_screen("Accept this and later edits in place without asking")
    assert "Accept the change; in Visual mode only the selected hunks" in screen
    assert "Follow up: describe how to change the proposal" in screen
    assert "Show the diff" in screen
    assert "call" not in screen.replace("call it number", "")
    here.nvim.feed("qgK")
    here.nvim.wait_screen("g2 accept · g3 reject · q back")
    here.nvim.feed("g?")
    screen = here.nvim.wait_screen("Go back")
    assert "g1" not in screen
    assert "g5" not in screen


def test_edit_keys_can_differ_from_approval_keys(desk):
    """This is the case in a configuration from an older codecompanion.nvim."""
    keymaps = {"accept_change": {"modes": {"n": "ga"}}, "reject_change": {"modes": {"n": "gr"}}}
    here = desk(reply(code(TWO)), options={"interactions": {"inline": {"keymaps": keymaps}}})
    here.edit("4,7CodeCompanion call it number")
    here.wait_proposed(2)
    here.nvim.wait_screen("ga accept · gr reject · g5 skip hunk")
    here.nvim.feed("ga")
    here.wait_over()
    assert here.lines() == [*OLD[:3], *TWO, *OLD[7:]]
    assert here.nvim.lua("return vim.fn.maparg('ga', 'n')") == ""


def test_changes_are_decided_one_by_one(desk):
    here = desk(reply(code(TWO)))
    here.edit("4,7CodeCompanion call it number")
    here.wait_proposed(2)
    here.nvim.feed("gg]c")
    here.nvim.wait_for(lambda: here.nvim.lua("return vim.fn.line('.')") == 4, "the first change")
    here.nvim.feed("g5")
    here.wait_proposed(1)
    here.nvim.feed("]cVg2")
    here.wait_over()
    assert here.lines() == [*OLD[:6], TWO[3], *OLD[7:]]


def test_undo_restores_the_proposal_of_an_accepted_change(desk):
    here = desk(reply(code(TWO)))
    here.edit("4,7CodeCompanion call it number")
    here.wait_proposed(2)
    here.nvim.feed("4GVg2")
    here.wait_proposed(1)
    assert here.lines()[3] == TWO[0]
    here.nvim.feed("u")
    here.wait_proposed(2)
    here.nvim.feed("g2")
    here.wait_over()
    assert here.lines() == [*OLD[:3], *TWO, *OLD[7:]]


def drawn(here) -> list[int]:
    """Return the 1-based numbers of the lines marked as removed."""
    return here.nvim.lua(
        """local ns = vim.api.nvim_get_namespaces()['codecompanion.changes']
           local found = {}
           for _, mark in ipairs(vim.api.nvim_buf_get_extmarks(0, ns, 0, -1, { details = true })) do
             if mark[4].hl_group then found[#found + 1] = mark[2] + 1 end
           end
           return found"""
    )


@pytest.mark.parametrize(
    ("keys", "undos"), [("g2", 1), ("4GVg2]cVg2", 2), ("7GVg24GVg2", 2), ("4GVg2Goend<Esc>4Gg2", 3)]
)
def test_undo_after_the_last_change_restores_the_proposal(desk, keys, undos):
    """The proposal is complete, with its keys and in its place.

    Redo applies the decision again, any number of times.
    """
    here = desk(reply(code(TWO)))
    here.edit("4,7CodeCompanion call it number")
    here.wait_proposed(2)
    here.nvim.feed(keys)
    here.wait_over()
    done = here.lines()
    assert done[3:7] == TWO
    assert here.nvim.lua("return vim.fn.maparg('g2', 'n', false, true).buffer") != 1
    for _ in range(2):
        here.nvim.feed("u")
        here.wait_proposed()
        here.nvim.feed("u" * (undos - 1))
        here.wait_proposed(2)
        assert here.lines() == OLD
        assert drawn(here) == [4, 7]
        here.nvim.feed("<C-r>" * undos)
        here.wait_over()
        assert here.lines() == done
    here.nvim.feed("u" * undos)
    here.wait_proposed(2)
    here.nvim.feed("g2")
    here.wait_over()
    assert here.lines() == [*OLD[:3], *TWO, *OLD[7:]]
    here.nvim.feed("u")
    here.wait_proposed(2)
    here.nvim.feed("g3")
    here.wait_over()
    assert here.lines() == OLD


def test_a_different_edit_after_the_undo_does_not_count_as_accepted(desk):
    """The accepted change is then in another branch of the undo tree."""
    here = desk(reply(code(TWO)))
    here.edit("4,7CodeCompanion call it number")
    here.wait_proposed(2)
    here.nvim.feed("g2")
    here.wait_over()
    here.nvim.feed("uggOtop<Esc>")
    here.wait_proposed(2)
    assert drawn(here) == [5, 8]
    here.nvim.feed("5GVg28GVg2")
    here.wait_over()
    assert here.lines() == ["top", *OLD[:3], *TWO, *OLD[7:]]


def test_the_last_line_of_a_buffer_is_restored_too(desk):
    here = desk(reply(code(["fact(3)", "fact(4)"])))
    here.edit("9CodeCompanion call it twice")
    here.wait_proposed(1)
    here.nvim.feed("9GVg2")
    here.wait_over()
    here.nvim.feed("u")
    here.wait_proposed(1)
    here.nvim.wait_screen(r"fact\(4\)  \+")
    here.nvim.feed("g2")
    here.wait_over()
    assert here.lines() == [*OLD, "fact(4)"]


def test_a_restored_proposal_can_be_followed_up(desk):
    here = desk(reply(code(TWO)), reply(code(NEW)))
    here.edit("4,7CodeCompanion call it number")
    here.wait_proposed(2)
    chat = here.state()["chat"]
    here.nvim.feed("g2")
    here.wait_over()
    here.nvim.feed("u")
    here.wait_proposed(2)
    here.nvim.feed("g.make it iterative<CR>")
    here.nvim.wait_screen(r"result \*= i")
    here.wait_proposed()
    assert here.state()["chat"] == chat
    here.nvim.feed("g2")
    here.wait_over()
    assert here.lines() == EDITED


def test_lines_of_one_buffer_are_edited_in_parallel(desk):
    """The keys apply to the edit at the cursor's line; overlapping lines are refused with a remedy."""
    gate = asyncio.Event()
    here = desk(reply(code(NEW), gate=gate, gate_after=10), reply(code(["import os, sys"])))
    here.edit("4,7CodeCompanion make it iterative")
    here.nvim.wait_for(lambda: len(here.server.requests) == 1, "the first request")
    here.ask("6,8CodeCompanion again please")
    here.nvim.wait_screen("Lines 4-7 are already being edited · <C-c> stops it")
    here.ask("1CodeCompanion with os")
    here.nvim.wait_screen("g2 accept")
    here.nvim.feed("1Gg2")
    here.nvim.wait_for(lambda: here.lines()[0] == "import os, sys", "the accepted line")
    here.server.release(gate)
    here.wait_proposed()
    here.ask("5CodeCompanion again please")
    here.nvim.wait_screen("Lines 4-7 already have a proposal · g2 accepts it")
    here.nvim.feed("u")
    here.nvim.wait_for(lambda: here.lines() == OLD, "the old text")
    here.nvim.wait_screen(r"import os, sys  \+")
    here.nvim.feed("9Gg2")
    here.nvim.wait_screen("2 edits are proposed in this buffer, none on this line")
    here.nvim.feed("ggg25Gg2")
    here.wait_over()
    assert here.lines() == ["import os, sys", *EDITED[1:]]


def test_text_typed_during_the_reply_is_kept(desk):
    """This applies above, within and below the lines; the user decides about a change that overlaps with typed text."""
    gate = asyncio.Event()
    here = desk(reply(code(TWO), gate=gate, gate_after=10))
    here.edit("4,7CodeCompanion call it number")
    here.nvim.wait_for(lambda: here.state().get("state") == "asking", "a question")
    here.nvim.feed("ggOimport os<Esc>Gofact(4)<Esc>:8s/fact/mine/<CR>")
    here.nvim.wait_for(lambda: "mine" in here.lines()[7], "what was typed")
    here.server.release(gate)
    here.wait_proposed(2)
    here.nvim.feed("g2")
    here.wait_proposed(1)
    typed = ["import os", *OLD[:3], TWO[0], *OLD[4:6], "    return n * mine(n - 1)", *OLD[7:], "fact(4)"]
    assert here.lines() == typed
    here.nvim.wait_screen("You changed these lines too · Vg2 accepts the new lines · g5 keeps yours")
    here.nvim.feed("g2")
    assert here.lines() == typed
    here.nvim.feed("8GVg2")
    here.wait_over()
    assert here.lines()[7] == TWO[3]


@pytest.mark.parametrize("key", ["<C-c>", "g3"])
def test_a_key_stops_the_reply_and_nothing_changes(desk, key):
    gate = asyncio.Event()
    here = desk(reply(code(NEW), gate=gate, gate_after=24))
    here.edit("4,7CodeCompanion make it iterative")
    here.nvim.wait_screen(r"def fact|result")
    here.nvim.feed(key)
    here.wait_over()
    assert here.lines() == OLD
    here.nvim.wait_screen("Stopped; the buffer was not changed")


def test_the_stop_command_takes_the_edit_at_the_cursor_then_the_buffers_then_others(desk):
    """It reports the stopped edits, leaves nothing of them in the buffers, and closes their requests."""
    gate = asyncio.Event()
    held = [reply(code(NEW), gate=gate, gate_after=24) for _ in range(5)]
    here = desk(*held)
    here.edit("4,7CodeCompanion make it iterative")
    here.ask("1CodeCompanion with os")
    here.ask("9CodeCompanion print it")
    here.nvim.wait_for(lambda: len(here.server.requests) == 3, "three requests")
    here.nvim.feed("5G:CodeCompanion cancel<CR>")
    here.nvim.wait_screen("Stopped the edit of lines 4-7; nothing was changed")
    # Three edits at once reach the server in any order.
    here.nvim.wait_for(lambda: sum(one.aborted for one in here.server.requests) == 1, "one closed connection")
    here.nvim.feed("3G:CodeCompanion cancel<CR>")
    here.nvim.wait_screen("Stopped the edit of line 1 and the edit of line 9")
    here.wait_over()
    assert here.lines() == OLD
    here.nvim.feed(":CodeCompanion cancel<CR>")
    here.nvim.wait_screen("Nothing is running outside of chats")
    here.ask("4,7CodeCompanion make it iterative")
    here.ask("1CodeCompanion with os")
    here.nvim.wait_for(lambda: len(here.server.requests) == 5, "two more requests")
    here.nvim.feed(":edit other.py<CR>:CodeCompanion cancel<CR>")
    here.nvim.wait_screen("Stopped the edit of line 1 and .* in fact.py")
    here.nvim.command("edit fact.py")
    here.wait_over()
    assert drawn(here) == []
    here.nvim.command("CodeCompanionChat")
    here.nvim.wait_lua("return vim.bo.filetype == 'codecompanion'")
    here.nvim.feed("<Esc>:CodeCompanion cancel<CR>")
    here.nvim.wait_screen("Nothing is running outside of chats · q stops the reply of this")
    here.nvim.wait_for(lambda: all(one.aborted for one in here.server.requests), "closed connections")
    here.server.release(gate)


def test_the_stop_command_keeps_proposals(desk):
    """Stopping a follow-up restores the previous proposal; a complete proposal cannot be stopped."""
    gate = asyncio.Event()
    here = desk(reply(code(NEW)), reply(code(TWO), gate=gate, gate_after=24))
    here.edit("4,7CodeCompanion make it iterative")
    here.wait_proposed()
    here.nvim.feed(":CodeCompanion cancel<CR>")
    here.nvim.wait_screen("Nothing is running outside of chats · g3 rejects the proposal")
    here.nvim.feed("g.shorter<CR>")
    here.nvim.wait_for(lambda: len(here.server.requests) == 2, "the follow-up")
    here.nvim.feed(":CodeCompanion cancel<CR>")
    here.nvim.wait_screen("Stopped the edit of lines 4-7")
    here.wait_proposed()
    here.server.release(gate)
    here.nvim.feed("g2")
    here.wait_over()
    assert here.lines() == EDITED


def test_a_dead_host_leaves_the_buffer_unchanged_and_the_next_edit_works(desk):
    gate = asyncio.Event()
    here = desk(reply(code(NEW), gate=gate, gate_after=24), reply(code(NEW)))
    here.edit("4,7CodeCompanion make it iterative")
    here.nvim.wait_for(lambda: here.nvim.lua("return vim.b.codecompanion_edit.changes") > 0, "code that arrives")
    os.kill(process_of(here.chat.job_pid()), signal.SIGKILL)
    here.wait_over()
    assert here.lines() == OLD
    assert drawn(here) == []
    here.nvim.wait_screen("The Python process ended")
    here.ask("4,7CodeCompanion make it iterative")
    here.wait_proposed()


def test_a_failure_is_one_sentence(desk):
    here = desk(failure(401, "invalid key"))
    here.edit("4,7CodeCompanion make it iterative")
    here.wait_over()
    assert here.lines() == OLD
    here.nvim.wait_for(lambda: "LOOP_KEY was refused" in here.nvim.messages(), "a sentence")
    assert not here.nvim.blocked()


@pytest.mark.parametrize(
    ("columns", "cause"),
    [(100, "loop: no connection to http://127.0.0.1:9. "), (75, "loop: no connection. "), (55, "")],
)
def test_a_failure_keeps_its_remedy_on_a_narrow_screen(desk, columns, cause):
    away = {"adapters": {"http": {"loop": {"env": {"url": "http://127.0.0.1:9"}}}}}
    here = desk(size=(columns, 24), options=away, opts={"max_retries": 0})
    here.edit("4,7CodeCompanion make it iterative")
    here.wait_over()
    here.nvim.wait_screen(f"{re.escape(cause)}Start the server, or check env\\.url\\.")
    assert not here.nvim.blocked()


def test_an_edit_continues_in_a_chat(desk):
    """The conversation becomes an ordinary stored chat, counted and with tools from then on."""
    here = desk(reply(code(NEW)), reply("Because loops are fast."))
    here.edit("4,7CodeCompanion make it iterative")
    here.wait_proposed()
    chat_id = here.state()["chat"]
    here.nvim.feed(":CodeCompanion edits<CR>")
    here.chat.wait_ready()
    assert here.chat.id == chat_id
    here.nvim.wait_screen(r"## Me[^\n]*\nmake it iterative\n+▸ lines 4-7 of fact.py")
    assert "placement: before" not in here.chat.text()
    here.chat.say("why?")
    assert "Because loops are fast." in here.chat.text()
    assert here.server.requests[1].json["tools"]
    assert "tools" not in here.server.requests[0].json
    assert read_log(here.chat.root, chat_id)


def test_a_follow_up_announces_its_proposal_even_the_same_one(desk):
    """The prompt of Neovim's own `vim.ui.input` does not stay on the command line."""
    shorter = code([*NEW[:4], "    return int(result)"])
    here = desk(reply(code(NEW)), reply(shorter), reply(shorter))
    here.edit("4,7CodeCompanion make it iterative")
    here.wait_proposed()
    here.nvim.feed("g.return an int<CR>")
    assert "Follow up" not in here.nvim.wait_screen("^New proposal")
    here.nvim.feed("g.once more<CR>")
    here.nvim.wait_screen("^The model made the same proposal again")


def test_a_follow_up_is_about_the_proposal(desk):
    here = desk(reply(code(NEW)), reply(code([*NEW[:4], "    return int(result)"])))
    here.edit("4,7CodeCompanion make it iterative")
    here.wait_proposed()
    here.nvim.feed("g.return an int<CR>")
    here.nvim.wait_screen(r"return int\(result\)")
    here.wait_proposed()
    *_, lines, asked = here.server.requests[1].json["messages"]
    assert "result *= i" in lines["content"]
    assert asked["content"] == "return an int"
    here.nvim.feed("g2")
    here.wait_over()
    assert here.lines() == [*OLD[:3], *NEW[:4], "    return int(result)", *OLD[7:]]


def test_a_failed_follow_up_keeps_the_proposal(desk):
    here = desk(reply(code(NEW)), failure(401, "invalid key"))
    here.edit("4,7CodeCompanion make it iterative")
    here.wait_proposed()
    here.nvim.feed("g.return an int<CR>")
    here.nvim.wait_for(lambda: "LOOP_KEY was refused" in here.nvim.messages(), "a sentence")
    here.wait_proposed()
    here.nvim.feed("g2")
    here.wait_over()
    assert here.lines() == EDITED


@pytest.mark.parametrize("layout", ["vertical", "horizontal"])
def test_a_prose_answer_opens_as_a_chat_beside_the_file(desk, layout):
    """The cursor stays in the file, and the sentence says where the reply is."""
    here = desk(reply("placement: chat\nIt calls itself."))
    here.nvim.command("only | enew")
    window = "require('codecompanion.config').options.display.chat.window"
    here.nvim.lua(f"{window}.layout, {window}.min_width = ..., 0", layout)
    here.nvim.lua("require('codecompanion.config').options.display.chat.start_in_insert_mode = true")
    here.edit("4,7CodeCompanion why is it slow?")
    here.nvim.wait_screen("It calls itself.")
    here.nvim.wait_screen("No edit: see the chat. Ask again with :CodeCompanion.")
    assert here.nvim.lua("return { vim.fn.bufname(), vim.fn.mode() }") == ["fact.py", "n"]
    assert here.lines() == OLD


def test_a_prose_answer_does_not_cover_the_file(desk):
    here = desk(reply("placement: chat\nIt calls itself."))
    here.nvim.lua("require('codecompanion.config').options.display.chat.window.layout = 'buffer'")
    here.edit("4,7CodeCompanion why is it slow?")
    here.nvim.wait_screen("The reply is text, not code. :CodeCompanionChat Toggle shows it.")
    assert here.nvim.lua("return vim.fn.bufname()") == "fact.py"
    assert here.lines() == OLD
    here.nvim.command("CodeCompanionChat Toggle")
    here.nvim.wait_screen("It calls itself.")


def test_a_reply_without_a_change_can_be_read(desk):
    here = desk(reply("It is fine as it is.\n" + code(OLD[3:7])))
    here.nvim.command("set columns=180")
    here.edit("4,7CodeCompanion make it iterative")
    here.nvim.wait_screen("contains no change. :CodeCompanionChat Toggle shows it; .*Ask again with :CodeCompanion.")
    assert here.nvim.lua("return vim.fn.bufname()") == "fact.py"
    assert here.lines() == OLD
    here.nvim.command("CodeCompanionChat Toggle")
    here.nvim.wait_screen("It is fine as it is.")


def test_unformatted_code_is_placed_and_several_blocks_are_explained(desk):
    here = desk(reply("\n".join(NEW)), reply("One:\n```\na = 1\n```\nTwo:\n```\nb = 2\n```"))
    here.edit("4,7CodeCompanion make it iterative")
    here.wait_proposed()
    here.nvim.feed("g2")
    here.wait_over()
    assert here.lines() == EDITED
    here.ask("9CodeCompanion a or b")
    here.nvim.wait_screen("No edit. :CodeCompanionChat Toggle shows it.")
    here.nvim.command("CodeCompanionChat Toggle")
    here.nvim.wait_screen("b = 2")


def test_a_new_buffer_gets_the_generated_code(desk):
    here = desk(reply(code(["def test_fact():", "    assert fact(3) == 6"], "new")))
    here.edit("4,7CodeCompanion write a test")
    here.nvim.wait_for(lambda: here.lines()[0] == "def test_fact():", "a new buffer")
    assert here.nvim.lua("return { vim.bo.filetype, vim.fn.bufname() }") == ["python", ""]


@pytest.mark.parametrize(("placement", "at"), [("after", 7), ("before", 3)])
def test_lines_are_added_beside_kept_ones(desk, placement, at):
    here = desk(reply(code(["x = 1"], placement)))
    here.edit("4,7CodeCompanion add x")
    here.wait_proposed(1)
    here.nvim.feed("g2")
    here.wait_over()
    assert here.lines() == [*OLD[:at], "x = 1", *OLD[at:]]


def test_lines_above_the_first_one_are_visible(desk):
    here = desk(reply(code(["x = 1", "y = 2"], "before")))
    here.edit("1CodeCompanion add x")
    here.wait_proposed(1)
    here.nvim.wait_screen(r"x = 1  \+\ny = 2  \+\n")


def test_without_a_selection_the_code_around_the_cursor_is_used(desk):
    here = desk(reply(code(NEW)))
    here.nvim.command("edit fact.py")
    here.nvim.feed("6G")
    here.ask("CodeCompanion make it iterative")
    here.wait_proposed()
    here.nvim.feed("g2")
    here.wait_over()
    assert here.lines() == EDITED


STRANGE = {
    "an empty buffer": ([""], "%", ["a", "b"]),
    "the last line": (["a", "b"], "2", ["c", "d"]),
    "the first line": (["a", "b"], "1", ["c", "d"]),
    "everything away": (["a", "b"], "%", []),
    "a NUL": (["a\0b", "c"], "2", ["d"]),
    "wide and combining": (["日本語 é e\u0301 👩‍💻", "x"], "%", ["日本語 👩‍💻", "y"]),
    "tabs": (["if x {", "\ty()", "}"], "%", ["if x {", "\tz()", "}"]),
}


@pytest.mark.parametrize("what", STRANGE)
def test_strange_texts_are_edited_and_restored(desk, what):
    old, range_, new = STRANGE[what]
    here = desk(reply(code(new)))
    here.nvim.command("enew")
    here.nvim.lua("vim.bo.expandtab = false; vim.api.nvim_buf_set_lines(0, 0, -1, false, ...)", old)
    here.ask(f"{range_}CodeCompanion change it")
    here.wait_proposed()
    assert here.lines() == old
    here.nvim.feed("g2")
    here.wait_over()
    kept = {"2": old[:1], "1": [], "%": []}[range_]
    assert here.lines() == ([*kept, *new, *(old[1:] if range_ == "1" else [])] or [""])
    here.nvim.feed("u")
    here.nvim.wait_for(lambda: here.lines() == old, "the old text")


def test_line_ends_and_a_missing_final_one_stay(desk, tmp_path):
    here = desk(reply(code(["x = 2"])))
    path = tmp_path / "work" / "dos.py"
    path.write_bytes(b"x = 1\r\ny = 1")
    here.edit("1CodeCompanion two", name="dos.py")
    here.wait_proposed()
    here.nvim.feed("g2")
    here.wait_over()
    here.nvim.command("set nofixeol | write")
    assert path.read_bytes() == b"x = 2\r\ny = 1"


def test_an_uneditable_buffer_is_reported(desk):
    here = desk()
    here.edit("help", lines=None)
    for setting, words in (("nomodifiable", "cannot be changed"), ("modifiable filetype=codecompanion", "is a chat")):
        here.nvim.command(f"enew | setlocal {setting}")
        here.ask("1CodeCompanion change it")
        here.nvim.wait_for(lambda words=words: words in here.nvim.messages(), words)
    assert here.server.requests == []


def test_two_buffers_are_edited_at_once_and_one_only_once(desk):
    gate = asyncio.Event()
    here = desk(reply(code(NEW), gate=gate, gate_after=10), reply(code(["x = 2"])))
    here.edit("4,7CodeCompanion make it iterative")
    here.nvim.wait_for(lambda: len(here.server.requests) == 1, "the first request")
    here.ask("4,7CodeCompanion again please")
    here.nvim.wait_screen("Lines 4-7 are already being edited")
    here.edit("1CodeCompanion two", name="other.py")
    here.wait_proposed()
    here.nvim.feed("g2")
    here.wait_over()
    assert here.lines() == ["x = 2"]
    here.server.release(gate)
    here.nvim.command("buffer fact.py")
    here.wait_proposed()


def test_words_are_an_instruction_and_a_mistyped_name_is_not(desk):
    here = desk()
    here.nvim.command("edit fact.py")
    for command, words in (
        ("CodeCompanion heath", "did you mean health"),
        ("CodeCompanion complet off", "did you mean complete"),
        ("CodeCompanion complete this function", "Usage: :CodeCompanion complete"),
    ):
        here.ask(command)
        here.nvim.wait_for(lambda words=words: words in here.nvim.messages(), words)
    assert here.state() == {}
    assert here.server.requests == []


def test_a_proposal_is_readable_in_40_columns_and_nothing_moves(desk):
    long = 'value = "' + "x" * 60 + ' end"'
    here = desk(reply(code(["\tfirst = 1", long])), size=(40, 24))
    here.nvim.command("set number")
    here.edit("2,3CodeCompanion lengthen it", lines=["top", "\tfirst = 1", "second", "cursor", "last"])
    here.nvim.feed("4G")
    row = here.nvim.lua("return vim.fn.winline()")
    here.wait_proposed()
    screen = here.nvim.wait_screen("g2 accept")
    assert "g2 accept · g3 reject" in screen
    assert here.nvim.lua("return vim.fn.winline()") == row or here.nvim.lua("return vim.fn.line('w0')") == 1


def test_40_columns_keep_the_key_of_the_list_and_the_signs_of_full_rows(desk):
    """Without a gutter, a sign beside a line as wide as the window would be invisible."""
    old, new = "x = " + "1" * 36, "x = " + "2" * 36
    here = desk(reply(code([new])), size=(40, 24))
    here.edit("2,2CodeCompanion change it", lines=["top", old, "last"])
    here.wait_proposed()
    screen = here.nvim.wait_screen(r"g2 accept · g3 reject · g\? keys")
    assert f"{old}\n −\n{new[:-3]}\n222  +\n" in screen


def test_a_large_change_is_cut_to_the_window_and_complete_as_a_diff(desk):
    here = desk(reply(code([f"row {number}" for number in range(200)]), chunk_chars=200))
    here.edit("4,7CodeCompanion write rows")
    here.wait_proposed()
    here.nvim.feed("4Gzt")
    here.nvim.wait_screen(r"… \d+ more · gK shows all")
    here.nvim.feed("gK")
    here.nvim.wait_lua("return not vim.wo.diff and vim.fn.search('^row 199$', 'n') > 0")
    here.nvim.wait_screen(r"Edit in place fact.py  \+200 −4 · g2 accept · g3 reject · q back")
    here.nvim.feed("q")
    here.nvim.wait_lua("return vim.fn.tabpagenr('$') == 1")
    here.nvim.feed("g2")
    here.wait_over()
    assert here.lines()[202] == "row 199"


def test_new_lines_below_the_last_line_of_the_window_are_scrolled_to(desk):
    here = desk(reply(code(["return 1", "return 2"])), reply(code(["line 1", "new 2"])))
    here.nvim.command("enew")
    here.nvim.lua("vim.api.nvim_buf_set_lines(0, 0, -1, false, vim.fn.map(vim.fn.range(60), '\"line \" .. v:val'))")
    here.nvim.feed("G")
    here.ask(".CodeCompanion return both")
    here.wait_proposed()
    here.nvim.wait_screen(r"return 2  \+\ng2 accept")
    here.nvim.feed("grggzt22G")
    here.ask("21,22CodeCompanion number it")
    here.wait_proposed()
    here.nvim.feed("gg]c")
    here.nvim.wait_screen(r"new 2  \+\ng2 accept")


def test_a_fold_over_the_change_is_opened(desk):
    here = desk(reply(code(NEW)))
    here.nvim.command("edit fact.py | setlocal foldmethod=manual | 3,8fold")
    here.ask("4,7CodeCompanion make it iterative")
    here.wait_proposed()
    assert here.nvim.lua("return vim.fn.foldclosed(5)") == -1


def test_a_huge_buffer_is_edited_in_place_and_not_sent_whole(desk):
    here = desk(reply(code(["changed"])))
    here.nvim.command("enew")
    here.nvim.lua("for i = 1, 50000 do vim.fn.append(i - 1, 'a line of a huge file, number ' .. i) end")
    here.ask("%CodeCompanion change all")
    here.nvim.wait_for(lambda: "too large to edit" in here.nvim.messages(), "a refusal")
    here.ask("25000CodeCompanion change it")
    here.wait_proposed()
    assert len(here.server.requests) == 1
    assert sum(len(message["content"]) for message in here.server.requests[0].json["messages"]) < 100_000
    here.nvim.feed("g2")
    here.wait_over()
    assert here.lines()[24998:25001] == [
        "a line of a huge file, number 24999",
        "changed",
        "a line of a huge file, number 25001",
    ]


def test_reloading_or_wiping_a_buffer_ends_its_edit(desk):
    here = desk(reply(code(NEW)), reply(code(NEW)), reply(code(NEW)))
    here.edit("4,7CodeCompanion make it iterative")
    here.wait_proposed()
    here.nvim.command("edit!")
    here.wait_over()
    here.nvim.wait_for(lambda: "Buffer reloaded: the proposed edit" in here.nvim.messages(), "what became of it")
    assert here.lines() == OLD
    here.nvim.lua("vim.cmd('4,7CodeCompanion make it iterative')")
    here.wait_proposed()
    here.nvim.feed("g2")
    here.wait_over()
    here.nvim.lua("vim.cmd('edit! fact.py | 4,7CodeCompanion make it iterative')")  # before anything is tidied
    here.wait_proposed()
    here.nvim.command("enew | bwipeout! fact.py")
    closed = "Buffer closed: the proposed edit was discarded."
    here.nvim.wait_for(lambda: closed in here.nvim.messages(), "what became of it")
    here.edit("4,7CodeCompanion why not")
    assert here.lines() == OLD


TWO_SPACES = ["local M = {}", "", "function M.f(a)", "  if a then", "    return a", "  end", "  return 1", "end", ""]


@pytest.mark.parametrize("spelled", ["as it is", "with tabs", "dedented"])
def test_only_the_intended_lines_change_for_any_buffer_options(desk, tmp_path, spelled):
    """Two spaces in a buffer with `noexpandtab` used to become tabs, in every line."""
    asked = ["  if a then", "    return a + 1", "  end"]
    said = {
        "as it is": asked,
        "with tabs": ["\tif a then", "\t\treturn a + 1", "\tend"],
        "dedented": ["if a then", "  return a + 1", "end"],
    }[spelled]
    here = desk(reply(code(said)))
    path = tmp_path / "work" / "two.lua"
    path.write_text("\n".join(TWO_SPACES))
    here.nvim.command("edit two.lua | setlocal noexpandtab tabstop=8 shiftwidth=8")
    here.ask("4,6CodeCompanion add one")
    here.wait_proposed(1)
    assert drawn(here) == [5]
    here.nvim.feed("g2")
    here.wait_over()
    here.nvim.command("write")
    assert path.read_text().split("\n") == [*TWO_SPACES[:4], "    return a + 1", *TWO_SPACES[5:]]


@pytest.mark.parametrize("spelled", ["with tabs", "dedented"])
def test_a_streaming_reply_is_drawn_with_the_files_indentation(desk, tmp_path, spelled):
    """Only the changed line is marked, instead of every line until the reply is complete."""
    lead = {"with tabs": "\t", "dedented": ""}[spelled]
    old = [f"  value_{number} = {number}" for number in range(20)]
    new = [line.replace("= 3", "= 33") for line in old]
    said = code([lead + line.strip() for line in new])
    gate = asyncio.Event()
    here = desk(reply(said, gate=gate, gate_after=said.index("value_15") // 4))
    (tmp_path / "work" / "two.lua").write_text("\n".join(["do", *old, "end", ""]))
    here.nvim.command("edit two.lua | setlocal noexpandtab")
    here.ask("2,21CodeCompanion make it 33")
    here.nvim.wait_screen(r"value_3 = 33")
    assert drawn(here) == [5]
    assert "  value_3 = 33  +" in here.nvim.wait_screen("value_3 = 33")
    here.server.release(gate)
    here.wait_proposed(1)
    assert drawn(here) == [5]


def test_an_edit_in_place_is_listed_once_it_was_opened_as_a_chat(desk):
    """A follow-up in the headless chat does not make it appear in the list."""
    here = desk(reply(code(NEW)), reply(code(TWO)), reply("Because."))
    here.edit("4,7CodeCompanion make it iterative")
    here.wait_proposed()
    assert listed(here.nvim) == []
    here.nvim.feed("g3")
    here.wait_over()
    here.ask("4,7CodeCompanion call it number")
    here.wait_proposed(2)
    assert listed(here.nvim) == []
    here.ask("CodeCompanion edits")
    here.nvim.wait_lua("return vim.bo.filetype == 'codecompanion' and (vim.b.codecompanion_chat or {}).meter ~= nil")
    assert "placement:" not in here.nvim.wait_screen("^replaces the lines *$"), "the format is for the program"
    here.nvim.wait_for(lambda: listed(here.nvim) == ["call it number"], "the chat that was opened")


def test_command_lines_and_commit_messages_are_not_listed(desk):
    here = desk(reply("set number"))
    here.nvim.command("edit fact.py")
    here.ask("CodeCompanionCmd show line numbers")
    here.nvim.wait_screen(":set number")
    here.nvim.feed("<Esc>")
    assert listed(here.nvim) == []
