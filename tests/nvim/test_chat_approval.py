"""Approvals in the chat buffer: the block, its keys and the guarantee that nothing else approves a call (lesson 55)."""

from __future__ import annotations

import random
import re
from collections.abc import Callable
from typing import Any

import msgspec
import pytest

from approvals import answered, ask
from chat_driver import ChatDriver, make_chat
from codecompanion.tools.approval import ANY_FILE
from codecompanion.wire import events
from codecompanion.wire.events import GrantScope
from harness import Nvim

STILL_ASKS = "options that run other programs still ask"
UNTIL = "until Makefile changes"


def grant(chat: ChatDriver) -> None:
    """Answer the open requests to approve."""
    chat.nvim.lua(
        """for _, request in ipairs(require('codecompanion.host').requests) do
             if request.verb == 'approve' then request.callback(nil) end
           end"""
    )


def grant_row(grant_id: str, tool: str, scope: GrantScope) -> dict[str, Any]:
    return {"grant": grant_id, "tool": tool, "scope": msgspec.structs.asdict(scope), "configured": False}


def no_pause(chat: ChatDriver) -> None:
    """Make new approvals answerable immediately."""
    chat.nvim.lua("require('codecompanion.chat.question.next_question').UNREAD_MS = 0")


def test_an_approval_shows_the_exact_command_and_is_answered_on_its_block(chat_everywhere: ChatDriver) -> None:
    """`]a` goes to the block, one key answers there; the block disappears on the host's event."""
    chat = chat_everywhere
    chat.accept("go")
    ask(chat, exact=GrantScope("exactly “rm -rf build\nmake” in sub"))
    screen = chat.nvim.wait_screen(r"▎ run_command\n")
    assert "▸" not in screen  # the block replaces the line of the call
    assert "▎ rm -rf build" in screen
    assert "▎ g2 accept · g3 reject… · g1 always…\n" in screen
    assert "]a goes" not in screen  # the block is visible, and a key answers it from anywhere
    assert screen.count("approval") == 1  # in the bar: waiting for your approval
    chat.nvim.feed("]ag1")
    question = r"Always allow in this chat \W+› exactly “rm -rf build make” in sub +\W+<CR> allow · q close"
    chat.nvim.wait_screen(question)
    chat.nvim.feed("n")
    chat.nvim.wait_for(lambda: "Always allow" not in chat.nvim.screen(), "the question to close")
    assert chat.sent("approve") == []
    chat.nvim.feed("g1")
    chat.nvim.wait_screen(question)
    chat.nvim.feed("y")
    chat.nvim.wait_for(lambda: chat.sent("approve"), "approve")
    assert chat.sent("approve") == [{"chat": chat.id, "call_id": "c9", "decision": "always", "reason": ""}]
    grant(chat)
    chat.nvim.wait_screen("Allowed in this chat: exactly “rm -rf build make” in sub · /approvals revokes it")
    chat.nvim.feed("g2")
    chat.push(events.ApprovalClosed(call_id="c9", decision="always"))
    assert len(chat.sent("approve")) == 1
    assert chat.text().endswith("▸ run_command rm\n\n## Me\n")


@pytest.mark.parametrize(("keys", "decision"), [("g2", "once"), ("g3", "reject"), ("g4", "cancel")])
@pytest.mark.parametrize("place", ["]a", "gg", "G", "Gihalf a question<Esc>"])
def test_a_single_approval_is_answered_from_anywhere(chat: ChatDriver, keys: str, decision: str, place: str) -> None:
    """The keys work on the block, above it and in the input, where typed text stays."""
    no_pause(chat)
    chat.nvim.lua("vim.ui.input = function(_, done) done('') end")
    chat.accept("go")
    ask(chat)
    chat.nvim.feed(place + keys)
    chat.nvim.wait_for(lambda: chat.sent("approve"), "approve")
    assert answered(chat) == [("c9", decision)]
    assert chat.input() == ("half a question" if "half" in place else "")


def test_an_approval_outside_the_window_is_shown_first(chat: ChatDriver) -> None:
    """Nothing runs unseen: the first press shows it, the second one answers."""
    no_pause(chat)
    chat.accept("go")
    chat.reply("\n\n".join(f"paragraph {number}" for number in range(80)), end=False)
    ask(chat)
    chat.nvim.feed("ggg2")
    chat.nvim.wait_screen("This is the approval: read it, then press the key again")
    assert answered(chat) == []
    assert "rm -rf build" in chat.nvim.screen()
    chat.nvim.feed("g2")
    chat.nvim.wait_for(lambda: chat.sent("approve"), "approve")


def test_an_approval_whose_text_is_below_the_window_is_shown_first(chat: ChatDriver) -> None:
    """The first line of an approval alone is not enough, because it does not show the command."""
    chat.accept("go")
    chat.reply("\n\n".join(f"paragraph {number}" for number in range(60)), end=False)
    ask(chat, body="make\n" * 8 + "rm -rf ~")
    row = chat.nvim.lua("return vim.fn.search('^▎ run_command', 'nw')")
    chat.nvim.lua("vim.fn.winrestview({ topline = ... - vim.api.nvim_win_get_height(0) + 1, lnum = ... - 5 })", row)
    assert "rm -rf ~" not in chat.nvim.screen()
    chat.nvim.feed("g2")
    chat.nvim.wait_screen("read it, then press the key again")
    chat.nvim.wait_screen(r"rm -rf ~")
    assert answered(chat) == []


def test_keys_typed_ahead_approve_nothing_unread(chat: ChatDriver) -> None:
    """This applies to a key pressed twice with the block outside the window.

    It also applies right after the block under the cursor disappears, and from another tab page.
    """
    chat.nvim.lua("require('codecompanion.chat.question.next_question').UNREAD_MS = 3600e3")
    chat.accept("go")
    chat.reply("\n\n".join(f"paragraph {number}" for number in range(80)), end=False)
    ask(chat, "c1", body="first")
    chat.nvim.feed("ggg2g2")
    chat.nvim.wait_screen("read it, then press the key again")
    ask(chat, "c2", body="second")
    chat.nvim.lua("require('codecompanion.chat.question.next_question').UNREAD_MS = 0")
    chat.nvim.feed("]a")
    chat.nvim.lua("require('codecompanion.chat.question.next_question').UNREAD_MS = 3600e3")
    chat.push(events.ApprovalClosed(call_id="c1", decision="cancel"))
    chat.nvim.feed("g2")
    chat.nvim.settle()
    chat.nvim.lua("require('codecompanion.chat.question.next_question').UNREAD_MS = 0")
    chat.nvim.command("tabnew")
    chat.nvim.command("CodeCompanion accept")
    chat.nvim.settle()
    assert answered(chat) == []
    assert "second" in chat.nvim.screen()


def test_several_approvals_are_numbered_and_the_one_under_the_cursor_is_answered(chat: ChatDriver) -> None:
    """With the cursor elsewhere, the key jumps to the first approval."""
    no_pause(chat)
    chat.accept("go")
    ask(chat, "c1", body="first command")
    ask(chat, "c2", body="second command")
    screen = chat.nvim.wait_screen("1 of 2")
    assert "2 of 2" in screen
    chat.nvim.feed("Gg2")
    chat.nvim.wait_screen("2 approvals are open; keys answer the one under the cursor")
    assert answered(chat) == []
    chat.nvim.feed("g2")
    chat.nvim.wait_for(lambda: chat.sent("approve"), "approve")
    chat.push(events.ApprovalClosed(call_id=answered(chat)[0][0], decision="once"))
    chat.nvim.wait_for(lambda: " of 2" not in chat.nvim.screen(), "the only one to be alone")


LONG = "curl --fail --silent https://registry.example.org/some/long/path/to/a/package.tar.gz -o package.tar.gz"


@pytest.mark.parametrize("columns", [46, 80, 120])
@pytest.mark.parametrize(
    ("place", "said"), [("network", "in the sandbox, with network"), ("outside", "outside the sandbox")]
)
def test_the_heading_of_a_long_command_shows_where_it_runs(
    nvim_factory: Callable[..., Nvim], columns: int, place: str, said: str
) -> None:
    """The command is shortened, because it is shown below; none of the plugin's text is masked."""
    chat = make_chat(nvim_factory, size=(columns, 30))
    chat.accept("go")
    for call, title in (("c1", LONG), ("c2", f"{LONG} (in sub)"), ("c3", f"HOST {LONG}")):
        ask(chat, call, body=LONG, title=title, place=place)
    headings = [line for line in chat.text().splitlines() if line.startswith("▎ run_command")]
    assert len(headings) == 3
    assert all(f" · {said}" in heading for heading in headings)
    assert "U+2026" not in chat.text()


@pytest.mark.parametrize(
    ("place", "heading", "reason"),
    [
        ("outside", "again, outside the sandbox", "It failed in the sandbox. g2 runs it outside"),
        (
            "network",
            "again, in the sandbox, with network",
            "It failed in the sandbox (no network). g2 runs it with network access",
        ),
    ],
)
def test_a_retry_shows_where_it_would_run_and_why(chat: ChatDriver, place: str, heading: str, reason: str) -> None:
    chat.accept("go")
    why = "it failed in the sandbox" if place == "outside" else ""
    ask(chat, body=LONG, title=LONG, place=place, why=why, note="The command reported: erofs", retry=True)
    text = chat.text()
    assert f"▎ run_command · {heading}" in text
    assert f"▎ ! {reason}\n" in text
    assert "▎ ! The command reported: erofs\n" in text
    assert "Always asks" not in text


def test_a_call_for_the_network_shows_the_models_reason(chat: ChatDriver) -> None:
    chat.accept("go")
    ask(chat, body="make", title="make", place="network", note="The model says: tests")
    assert "▎ ! Network: any host\n▎ ! The model says: tests\n▎ make\n" in chat.text()


def test_a_call_for_the_network_names_the_hosts_and_always_allows_these(chat: ChatDriver) -> None:
    chat.accept("go")
    ask(chat, body="pip install x", title="pip install x", place="network", hosts=("pypi.org", "р.example"))
    assert "▎ ! Network: pypi.org, <U+0440>.example\n" in chat.text()
    chat.nvim.feed("]ag1")
    chat.nvim.wait_screen(r"every command may then reach pypi\.org,\W+<U\+0440>\.example")


@pytest.mark.parametrize("width", [80, 40])
def test_a_host_name_is_not_broken_at_a_dot(chat: ChatDriver, width: int) -> None:
    """Each host is on its own row: split at the dot, `pypi.org.` and `evil.example` would look like two hosts."""
    chat.nvim.command(f"set columns={width}")
    chat.accept("go")
    hosts = [f"cdn{number}.pythonhosted.org" for number in range(4)] + ["pypi.org.evil.example", "xn--pypi-4ve.org"]
    ask(chat, body="pip install x", title="pip install x", place="network", hosts=tuple(hosts))
    rows = "".join(f"▎   {host}\n" for host in hosts)
    assert f"▎ ! Network:\n{rows}▎ ! A host named xn--" in chat.text()


def test_the_name_of_a_tool_is_shown_once(chat: ChatDriver) -> None:
    chat.accept("go")
    ask(chat, body="", title="read_file .env", name="read_file", why="holds keys or passwords")
    assert "▎ read_file .env\n" in chat.text()


def test_a_question_without_a_text_has_no_empty_line(chat: ChatDriver) -> None:
    """`read_file` for a key file shows only the name and the reason for asking."""
    chat.accept("go")
    ask(chat, body="", title=".env", name="read_file", why="holds keys or passwords")
    text = chat.text()
    assert "▎ read_file: .env\n" in text
    assert "▎ ! Always asks: holds keys or passwords\n▎ g2 accept · g3 reject…\n" in text
    chat.nvim.feed("]ag2")
    assert answered(chat) == [("c9", "once")]


def test_after_an_answer_the_cursor_is_in_the_input(chat: ChatDriver) -> None:
    """The cursor does not stay where the removed block was; a cursor elsewhere does not move."""
    chat.accept("go")
    ask(chat)
    chat.nvim.feed("]ag2")
    chat.push(events.ApprovalClosed(call_id="c9", decision="once"))
    assert chat.nvim.lua("return vim.fn.line('.') == vim.fn.line('$')")
    ask(chat)
    chat.nvim.feed("]ag2gg")
    chat.push(events.ApprovalClosed(call_id="c9", decision="once"))
    assert chat.nvim.lua("return vim.fn.line('.')") == 1


def test_successive_calls_are_answered_at_the_cursor(chat_everywhere: ChatDriver) -> None:
    """The cursor moves to the next approval, so `]a` is not needed again, even with tool lines and text in between."""
    chat = chat_everywhere
    no_pause(chat)
    chat.accept("go")
    ask(chat, "c1", body="first")
    chat.nvim.feed("]ag2")
    for before, number in (("c1", 2), ("c2", 3)):
        chat.push(events.ApprovalClosed(call_id=before, decision="once"))
        given = {"name": "run_command", "title": "rm", "status": "ok", "summary": "", "preview": "out\nput"}
        chat.push(events.ToolFinished(call_id=before, message_id=f"t{before}", **given))
        ask(chat, f"c{number}", body=f"number {number}")
        chat.nvim.wait_lua("return vim.fn.getline('.'):find('^▎ run_command') ~= nil")
        chat.nvim.feed("g2")
        chat.nvim.wait_for(lambda number=number: len(chat.sent("approve")) == number, "the next answer")
    assert answered(chat) == [("c1", "once"), ("c2", "once"), ("c3", "once")]
    chat.push(events.ApprovalClosed(call_id="c3", decision="once"), events.TurnFinished(reason="done"))
    chat.accept("again", cycle=2)
    ask(chat, "c4")
    assert chat.nvim.lua("return vim.fn.line('.') == vim.fn.line('$')"), "another turn"


def test_after_one_of_two_parallel_calls_the_other_is_next(chat: ChatDriver) -> None:
    """This works in either order."""
    no_pause(chat)
    chat.accept("go")
    ask(chat, "c1", body="first command")
    ask(chat, "c2", body="second command")
    chat.nvim.feed("]a]ag2")
    chat.push(events.ApprovalClosed(call_id="c2", decision="once"))
    chat.nvim.feed("g2")
    chat.nvim.wait_for(lambda: len(chat.sent("approve")) == 2, "approve")
    assert answered(chat) == [("c2", "once"), ("c1", "once")]


@pytest.mark.parametrize("moved", ["gg", "k", "ihello", "ihello<Esc>", ":new<CR>"])
def test_a_cursor_the_user_moved_stays(chat: ChatDriver, moved: str) -> None:
    """A new approval does not move the cursor of a user who is doing something else."""
    chat.accept("go")
    ask(chat, "c1")
    chat.nvim.feed("]ag2")
    chat.push(events.ApprovalClosed(call_id="c1", decision="once"))
    chat.nvim.feed(moved)
    before = chat.nvim.lua("return { vim.fn.win_getid(), vim.fn.line('$') - vim.fn.line('.'), vim.fn.col('.') }")
    if moved == "gg":
        before = None
    ask(chat, "c2")
    here = chat.nvim.lua("return { vim.fn.win_getid(), vim.fn.line('$') - vim.fn.line('.'), vim.fn.col('.') }")
    assert before in (None, here)
    assert chat.nvim.lua("return vim.fn.getline('.'):find('^▎ ') == nil")


def test_a_repeated_key_does_not_approve_the_next_call(chat: ChatDriver) -> None:
    """If `g2` is pressed twice or held down, a block that has just moved under the cursor must be read first."""
    chat.accept("go")
    ask(chat, "c1")
    chat.nvim.feed("]ag2")
    chat.nvim.lua("require('codecompanion.chat.question.next_question').UNREAD_MS = 3600e3")
    chat.push(events.ApprovalClosed(call_id="c1", decision="once"))
    ask(chat, "c2", body="rm -rf ~")
    for key in ("g2", "g2", "g1"):
        chat.nvim.feed(key)
    chat.nvim.wait_screen("This approval just appeared: read it, then press the key again")
    assert answered(chat) == [("c1", "once")]
    chat.nvim.feed("g4")
    chat.nvim.wait_for(lambda: len(chat.sent("approve")) == 2, "cancel needs no reading")


def test_elsewhere_and_afterwards_the_keys_keep_their_meaning(chat: ChatDriver) -> None:
    """`gr` regenerates, `d` deletes with count and register; afterwards the approval's keys only give a hint."""
    chat.accept("go")
    ask(chat)
    chat.nvim.feed("Gione two three four<Esc>0")
    chat.nvim.feed("gr")
    chat.nvim.wait_for(lambda: chat.sent("regenerate"), "regenerate")
    chat.nvim.feed('"ad2w')
    assert chat.input() == "three four"
    assert chat.nvim.lua("return vim.fn.getreg('a')") == "one two "
    chat.push(events.ApprovalClosed(call_id="c9", decision="cancel"))
    for key in ("g1", "g2", "g3", "g4", "]a"):
        chat.nvim.command("echo ''")
        chat.nvim.feed(key)
        chat.nvim.wait_screen("No approval is pending")
    assert answered(chat) == []
    assert "E163" not in chat.nvim.messages()


def test_a_key_pressed_too_early_is_answered_until_the_approval_appears(chat: ChatDriver) -> None:
    chat.nvim.feed("g2")
    chat.nvim.wait_screen("No approval is pending$")
    chat.accept("go")
    chat.push(events.State(state="streaming", label="starting clock (MCP)"))
    chat.nvim.feed("<Esc>g2")
    chat.nvim.wait_screen("No approval is pending yet")
    ask(chat)
    chat.nvim.wait_for(lambda: "No approval" not in chat.nvim.screen(), "the command line to be empty")
    assert chat.sent("approve") == []


def test_no_approval_key_is_a_prefix_of_a_neovim_default(chat: ChatDriver) -> None:
    """`gr` used to be one: `grn` (a Neovim 0.11 default), pressed slowly, rejected the call, then edited the code."""
    chat.accept("go")
    ask(chat)
    own = chat.nvim.lua("return vim.tbl_map(function(map) return map.lhs end, vim.api.nvim_get_keymap('n'))")
    builtin = ["g?", "g8", "g0", "ga", "gr", "gd", "gg", "gi", "gv", "gx", "dd", "do", "dp"]
    for verb in ("accept_change", "reject_change", "always_accept", "cancel", "skip_hunk"):
        for key in chat.nvim.lua("return require('codecompanion.changes.decision_keys').keys(..., 'n')", verb):
            assert not [other for other in own + builtin if other.startswith(key)], (verb, key)


def test_the_prompt_for_a_reason_leaves_the_command_line(chat: ChatDriver) -> None:
    """Neovim's own prompt would stay there until other text is written."""
    chat.accept("go")
    ask(chat)
    chat.nvim.feed("]ag3")
    chat.nvim.wait_screen("Reason for rejecting it")
    chat.nvim.feed("no<CR>")
    chat.nvim.wait_for(lambda: "Reason for rejecting it" not in chat.nvim.screen(), "the command line to be empty")


@pytest.mark.parametrize("theirs", ["g2", "g2x"])
def test_a_key_mapped_by_the_user_is_left_alone(chat: ChatDriver, theirs: str) -> None:
    """A different key is used, and the block shows it."""
    chat.nvim.lua("vim.keymap.set('n', ..., function() _G.mine = (_G.mine or 0) + 1 end, { buffer = true })", theirs)
    no_pause(chat)
    chat.accept("go")
    ask(chat)
    assert "▎ gz2 accept · g3 reject… · g1 always…" in chat.text()
    chat.nvim.feed("]a" + theirs)
    assert chat.nvim.lua("return _G.mine") == 1
    assert answered(chat) == []
    chat.nvim.feed("gz2")
    chat.nvim.wait_for(lambda: chat.sent("approve"), "approve")
    chat.push(events.ApprovalClosed(call_id="c9", decision="once"))
    chat.nvim.feed(theirs)
    assert chat.nvim.lua("return _G.mine") == 2


@pytest.mark.parametrize(("command", "decision"), [("accept", "once"), ("reject", "reject")])
@pytest.mark.parametrize("where", ["", "new"])
def test_commands_answer_without_a_key(chat: ChatDriver, command: str, decision: str, where: str) -> None:
    """They work inside and outside the chat, and <Plug> mappings run them."""
    no_pause(chat)
    chat.nvim.lua("vim.ui.input = function(_, done) done('') end")
    chat.setup({"interactions": {"shared": {"keymaps": {"accept_change": False, "reject_change": False}}}})
    chat.accept("go")
    ask(chat)
    if where:
        chat.nvim.command(where)
    chat.nvim.lua("vim.keymap.set('n', '<F2>', '<Plug>(CodeCompanion' .. ... .. ')')", command.title())
    chat.nvim.feed("<F2>")
    chat.nvim.wait_for(lambda: chat.sent("approve"), "approve")
    assert answered(chat) == [("c9", decision)]


def test_a_rejection_takes_a_reason_and_can_be_cancelled(chat: ChatDriver) -> None:
    """<Esc> in the prompt leaves the approval open."""
    chat.nvim.lua("vim.ui.input = function(_, done) done(_G.reason) end")
    chat.accept("go")
    ask(chat)
    chat.nvim.feed("]ag3")
    chat.nvim.settle()
    assert chat.sent("approve") == []
    chat.nvim.lua("_G.reason = 'too dangerous'")
    chat.nvim.feed("g3")
    chat.nvim.wait_for(lambda: chat.sent("approve"), "approve")
    assert chat.sent("approve")[0]["decision"] == "reject"
    assert chat.sent("approve")[0]["reason"] == "too dangerous"


@pytest.mark.parametrize("way_out", ["<Esc>", "<C-c>", "half a reason<C-c>"])
def test_leaving_the_prompt_for_a_reason_keeps_the_approval(chat_everywhere: ChatDriver, way_out: str) -> None:
    """Leaving Neovim's own prompt causes no traceback and sends no answer; the next key works."""
    chat = chat_everywhere
    chat.accept("go")
    ask(chat)
    chat.nvim.feed("]ag3")
    chat.nvim.wait_screen("Reason for rejecting it")
    chat.nvim.feed(way_out)
    chat.nvim.wait_for(
        lambda: not chat.nvim.blocked() and "Reason for" not in chat.nvim.screen(), "the prompt to close"
    )
    assert chat.nvim.messages() == ""
    assert answered(chat) == []
    chat.nvim.feed("g2")
    chat.nvim.wait_for(lambda: chat.sent("approve"), "approve")
    assert answered(chat) == [("c9", "once")]


def test_a_late_reason_is_discarded(chat: ChatDriver) -> None:
    """If the turn is stopped while the user types, one sentence reports it and nothing is sent."""
    chat.nvim.lua("vim.ui.input = function(_, done) _G.done = done end")
    chat.accept("go")
    ask(chat)
    chat.nvim.feed("]ag3")
    chat.push(events.ApprovalClosed(call_id="c9", decision="cancel"))
    chat.nvim.lua("_G.done('because')")
    chat.nvim.wait_screen("This approval was already answered or cancelled")
    assert answered(chat) == []


def test_a_question_does_not_interrupt_typing(chat: ChatDriver) -> None:
    """It changes neither mode nor cursor nor window; in insert mode its keys are text."""
    chat.accept("go")
    chat.nvim.feed("Gihalf a sen")
    ask(chat)
    chat.nvim.feed("tence g2 g3 ]a")
    assert chat.nvim.request("nvim_get_mode")["mode"] == "i"
    assert chat.input() == "half a sentence g2 g3 ]a"
    chat.nvim.feed("<Esc>")
    assert chat.sent("approve") == []


def test_a_count_or_another_mode_answers_nothing(chat: ChatDriver) -> None:
    """Nothing is sent for `3g2`, `12k`, or keys in visual or operator-pending mode on the block."""
    chat.accept("go")
    ask(chat)
    chat.nvim.feed("]a")
    for keys in ("3g2", "2g3", "12k", "]a1", "2", "3", "4", "Vg2<Esc>", "vg3<Esc>", "yg2<Esc>", "cg2<Esc>", ">g1<Esc>"):
        chat.nvim.feed("]a" + keys + "<Esc>")
        chat.nvim.settle()
        assert chat.sent("approve") == [], keys


def test_of_two_questions_the_one_under_the_cursor_is_answered(chat: ChatDriver) -> None:
    """When two calls ask at once, `]a` cycles through them."""
    chat.accept("go")
    ask(chat, "c1", body="first command")
    ask(chat, "c2", body="second command")
    chat.nvim.feed("]a]ag2")
    chat.nvim.wait_for(lambda: chat.sent("approve"), "approve")
    assert answered(chat) == [("c2", "once")]
    chat.push(events.ApprovalClosed(call_id="c2", decision="once"))
    assert "first command" in chat.text()
    assert "second command" not in chat.text()
    chat.nvim.feed("]ag2")
    chat.nvim.wait_for(lambda: len(chat.sent("approve")) == 2, "approve")
    assert answered(chat)[1] == ("c1", "once")


KEYS = [*"0123456789", *"hjklwbeGHMLnN%$^{}()|+-_", "<C-d>", "<C-u>", "<C-f>", "<C-b>", "<Tab>", "<CR>", "<Esc>"]
EDITS = [
    *"xXyYpPdDvVr.~J",
    "dd",
    "yy",
    "zz",
    "zt",
    "zo",
    "zc",
    "i1<Esc>",
    "a2g2g3<Esc>",
    "]a",
    "[[",
    "]]",
    "]a",
    "u",
    "K",
]


@pytest.mark.slow("thousands of sequences of keys")
@pytest.mark.parametrize("seed", range(4))
def test_no_key_sequence_without_the_prefix_approves(chat: ChatDriver, seed: int) -> None:
    """Random normal-mode keys, mostly digits, with the cursor on and around the block approve nothing (lesson 55)."""
    chat.accept("go")
    chat.reply("some text\n\nmore text", end=False)
    ask(chat, "c1", body="touch danger")
    ask(chat, "c2", body="rm -rf ~")
    chosen = random.Random(seed)
    for _ in range(60):
        keys = [chosen.choice(KEYS if chosen.random() < 0.7 else EDITS) for _ in range(6)]
        chat.nvim.feed("".join(keys) + "<Esc><Esc>")
        assert chat.sent("approve") == [], keys
        if chosen.random() < 0.3:  # whatever was opened, back to the chat
            chat.nvim.lua(
                """local chat = require('codecompanion.chat').last_chat()
                   for _, win in ipairs(vim.fn.win_findbuf(chat.bufnr)) do vim.api.nvim_set_current_win(win) end"""
            )


# ---- the block


def test_a_long_approval_is_marked_first_and_shows_both_ends(chat: ChatDriver) -> None:
    """The count of omitted lines is shown in their place; the whole block fits the screen; `K` shows everything."""
    chat.accept("go")
    ask(chat, body="".join(f"line {number}\n" for number in range(100)) + "rm -rf ~\n")
    screen = chat.nvim.wait_screen(r"▎ … \d+ more, K")
    assert "▎ run_command: rm\n" in screen
    assert "▎ line 0\n" in screen
    assert "▎ rm -rf ~" in screen
    assert "▎ g2 accept · g3 reject… · g1 always… · K show all" in screen
    shown = int(re.search(r"… (\d+) more", screen)[1]) + len(re.findall(r"▎ line|▎ rm -rf ~", screen))
    assert shown == 101
    chat.nvim.feed("]aK")
    chat.nvim.wait_screen("╭")
    chat.nvim.feed("/line 99<CR>")
    chat.nvim.wait_screen(r"line 99")


@pytest.mark.parametrize("key", ["K", "gK"])
def test_the_details_of_a_command_have_more_than_the_block(chat: ChatDriver, key: str) -> None:
    """The facts are above the command, so that it cannot imitate them."""
    chat.accept("go")
    body, covers = "pip install x\n# Folder        /safe", "“pip install” of named packages"
    more = {"place": "network", "hosts": ("pypi.org",), "cwd": "/p/sub", "limit_s": 60}
    ask(chat, body=body, covers=GrantScope(covers), note="The model says: needed", **more)
    chat.nvim.feed("]a" + key)
    chat.nvim.wait_screen("approval · q close")
    assert chat.nvim.lines() == [
        "# Folder        /p/sub",
        "# Runs          in the sandbox, with network: pypi.org",
        "# Time limit    60 s",
        "# Environment   yours, without secrets; no terminal, no input",
        "# Asks because  nothing allows it yet",
        "# Note          The model says: needed",
        "# Always        in this chat, exactly this command; every command may then reach pypi.org",
        "# or            “pip install” of named packages; every command may then reach pypi.org",
        "",
        "pip install x",
        "# Folder        /safe",
    ]


@pytest.mark.parametrize(
    ("more", "because", "always"),
    [
        ({"why": "it deletes files"}, "it deletes files", "not offered"),
        ({"narrowed": "text of a page"}, "nothing allows it yet", "not offered: text of a page; a new chat offers it"),
        ({"again": "the script has changed"}, "the script has changed", "in this chat, every call of look_up"),
    ],
)
def test_the_details_of_a_call_have_the_reason_and_the_scope_of_always(
    chat: ChatDriver, more: dict[str, str], because: str, always: str
) -> None:
    chat.accept("go")
    ask(chat, name="look_up", title="Look up", body="query: x", filetype="text", **more)
    chat.nvim.feed("]aK")
    chat.nvim.wait_screen("approval · q close")
    assert chat.nvim.lines() == [
        f"Asks because  {because}",
        f"Always        {always}",
        "",
        "query: x",
    ]


def test_a_long_path_keeps_its_end(chat: ChatDriver) -> None:
    """The file matters more than its folders."""
    chat.accept("go")
    path = "lua/" + "very/long/" * 12 + "name_of_it.lua"
    ask(chat, name="create_file", title=f"Create {path}", body="+x", filetype="diff", path=path, before="", after="x")
    first = next(line for line in chat.text().split("\n") if line.startswith("▎ "))
    assert re.fullmatch(r"▎ Create lua/very/[a-z/]*/…/[a-z/]*/name_of_it\.lua   \+1", first)
    assert len(first) <= 100


@pytest.mark.parametrize(
    ("columns", "path", "shown"),
    [
        (40, "shop/cart.py", "Edit shop/cart.py   +1"),
        (60, "src/shop/orders/models/cart.py", "Edit src/shop/orders/models/cart.py   +1"),
        (40, "src/shop/orders/models/cart.py", "Edit src/…/orders/models/cart.py   +1"),
        (40, "src/shop/orders/a_cart_that_is_named.py", "Edit …/a_cart_that_is_named.py   +1"),
        (40, "src/shop/orders/the_cart_that_has_a_longer_name.py", "…/the_cart_that_has_a_longer_name.py"),
        (120, "shop/cart.py", "Edit shop/cart.py   +1"),
    ],
)
def test_the_name_of_the_file_is_visible_at_every_width(nvim_factory, columns: int, path: str, shown: str) -> None:
    """Folders are cut first, then the size of the change, but never the file name, on which the decision is based."""
    chat = make_chat(nvim_factory, size=(columns, 24))
    chat.accept("go")
    title = f"Edit {path}, which has unsaved changes"
    ask(chat, name="insert_edit", title=title, body="+x", filetype="diff", path=f"/w/{path}", before="", after="x")
    first = next(line for line in chat.text().split("\n") if line.startswith("▎ "))
    assert first == f"▎ {shown}"
    assert len(first) <= columns
    consequence = ", so the edit will not be saved" if columns == 120 else ""
    assert f"▎ ! The file has unsaved changes{consequence}\n" in chat.text()


@pytest.mark.parametrize("columns", [40, 80])
def test_the_whole_block_fits_the_screen_with_warnings_and_wide_characters(nvim_factory, columns: int) -> None:
    """Everything from the question in the first line to the input is visible.

    A name is never cut inside a character.
    """
    chat = make_chat(nvim_factory, size=(columns, 24))
    chat.accept("go")
    path = "src/very/long/日本語のフォルダ/for/a/while/設定ファイルの管理モジュール_e\u0301_handler.py"
    body = "\n".join(f'+y{at} = "{"日本語" * 8}"\u200b' for at in range(30))
    title = f"Edit {path}, which has unsaved changes"
    after = re.sub("^.", "", body, flags=re.MULTILINE)
    ask(chat, name="insert_edit", title=title, body=body, filetype="diff", path=f"/w/{path}", before="", after=after)
    screen = chat.nvim.wait_screen("<CR> send")
    assert ("▎ Edit " in screen) is (columns == 80)
    assert "! The file has unsaved changes" in screen
    assert "30 characters that could mislead" in screen.replace("\n", " ")
    assert "handler.py" in screen.replace("\n", "")


HIDING = {
    "far to the right": ("make" + " " * 500 + "; rm -rf ~", "make<500 blanks>; rm -rf ~"),
    "carriage return": ("rm -rf ~\rmake test", "rm -rf ~<U+000D>make test"),
    "escape sequence": ("rm x \x1b[2K\x1b[1Gmake", "rm x <U+001B>[2K<U+001B>[1Gmake"),
    "backspaces": ("rm x\x08\x08\x08\x08ls", "rm x<U+0008><U+0008><U+0008><U+0008>ls"),
    "right to left": ("ls \u202e fr- mr", "ls <U+202E> fr- mr"),
    "zero width": ("l\u200bs\u2060 \ufeff", "l<U+200B>s<U+2060> <U+FEFF>"),
    "tags": ("ls \U000e0072\U000e006d", "ls <U+E0072><U+E006D>"),
    "another blank": ("rm\u00a0-rf", "rm<U+00A0>-rf"),
    "NUL": ("ls\x00rm", "ls<U+0000>rm"),
    "line separator": ("ls\u2028rm", "ls<U+2028>rm"),
    "far below": ("make" + "\n" * 40 + "rm -rf ~", "make\n<39 blank lines>\nrm -rf ~"),
    "blanks below": ("make\n" + "  \n" * 40 + "rm -rf ~", "make\n<40 lines of <2 blanks>>\nrm -rf ~"),
}


@pytest.mark.parametrize("hiding", HIDING.values(), ids=HIDING.keys())
def test_a_command_cannot_hide_text(chat_everywhere: ChatDriver, hiding: tuple[str, str]) -> None:
    """Invisible characters are written out, highlighted, and counted on their own line."""
    chat, (body, shown) = chat_everywhere, hiding
    chat.accept("go")
    ask(chat, body=body)
    assert "".join(f"▎ {line}\n" for line in shown.split("\n")) in chat.text()
    written_out = "shown as <U+…>" in chat.text()
    assert written_out == any(not char.isprintable() and char not in "\n\t" for char in body)
    for line in shown.split("\n"):
        assert line in chat.nvim.screen()


def test_a_long_line_shows_its_end_without_wrap(chat: ChatDriver) -> None:
    """The tail of a command is as visible as its head."""
    chat.nvim.command("setlocal nowrap")
    chat.accept("go")
    ask(chat, body="echo " + "x" * 5000 + "; rm -rf ~")
    screen = chat.nvim.wait_screen("characters not shown>")
    assert "; rm -rf ~" in screen


def test_a_diff_is_shown_by_its_changed_lines(chat: ChatDriver) -> None:
    """The lines have numbers but no file or hunk headers; text that is not a diff is shown unchanged."""
    chat.accept("go")
    body = "--- a/x\n+++ b/x\n@@ -10,3 +10,4 @@\n one\n-two\n+2\n+\n three\n"
    ask(chat, body=body, filetype="diff")
    assert "▎ 10   one\n▎ 11 - two\n▎ 11 + 2\n▎ 12 + \n▎ 13   three\n▎ g2" in chat.text()
    assert "@@" not in chat.text()
    assert "+++" not in chat.text()
    ask(chat, "c2", body="+looks like one", filetype="diff")
    assert "▎ +looks like one\n" in chat.text()


@pytest.mark.parametrize("columns", [40, 60, 80])
def test_the_block_fits_narrow_windows(nvim_factory, columns: int) -> None:
    """The key hints wrap between two keys; nothing is wider than the window."""
    chat = make_chat(nvim_factory, size=(columns, 24))
    chat.accept("go")
    long = f"git status --short {'x' * 60}"
    ask(chat, body=long, covers=GrantScope("“git status”"), title=long[:60] + "…")
    screen = chat.nvim.wait_screen("always…")
    assert "▎ run_command" in screen
    assert "git status --short" in screen
    for words in ("g2 accept", "g3 reject…", "g1 always…"):
        assert words in screen
    after = "".join(f"line {n} {'x' * 60}\n" for n in range(80))
    ask(chat, "c2", body="", filetype="diff", title="Edit a/b.py", path="/w/a/b.py", before="", after=after)
    chat.nvim.feed("]a]azt")
    screen = chat.nvim.wait_screen("K diff")
    assert re.search(r"… \d+ more, K", screen.replace("\n", " "))


def test_an_open_question_follows_the_width_of_the_window(nvim_factory: Callable[..., Nvim]) -> None:
    """The cursor stays on it, and its keys still answer it."""
    chat = make_chat(nvim_factory, size=(40, 24))
    chat.accept("go")
    ask(chat, body="", filetype="diff", title="Edit a.py", path="/w/a.py", before="", after="x\n")
    chat.nvim.wait_screen(r"g1 always…\n▎ K diff")
    chat.nvim.feed("]a")
    chat.nvim.request("nvim_ui_try_resize", 90, 24)
    chat.nvim.wait_screen("g1 always… · K diff")
    assert "Edit a.py" in chat.nvim.request("nvim_get_current_line")
    assert chat.text().count("Edit a.py") == 1
    chat.nvim.feed("g2")
    chat.nvim.wait_for(lambda: chat.sent("approve"), "approve")


def test_a_question_that_is_always_asked_gives_the_reason_and_grants_nothing(chat: ChatDriver) -> None:
    """No key for "always" is shown, and none works."""
    chat.accept("go")
    ask(chat, name="create_file", title="Create Makefile", body="+all:", filetype="diff", why="CI runs it")
    screen = chat.nvim.wait_screen("! Always asks: CI runs it")
    assert "g1" not in screen
    chat.nvim.feed("]ag1")
    chat.nvim.wait_screen("codecompanion: Always asks: CI runs it")
    assert chat.sent("approve") == []


def test_a_narrowed_question_names_the_text_and_grants_nothing(chat: ChatDriver) -> None:
    """The block names the text that causes the restriction, and the way out; later blocks only the key for it."""
    chat.accept("go")
    told = "the chat now has text from https://example.org/"
    ask(chat, name="create_file", title="Create a.txt", body="+a", filetype="diff", narrowed=told)
    screen = chat.nvim.wait_screen(f"! No new “always”: {told}; a new chat offers it")
    assert "g1" not in screen
    chat.push(events.ApprovalClosed(call_id="c9", decision="once"))
    ask(chat, call_id="c8", name="create_file", title="Create b.txt", body="+a", filetype="diff", narrowed=told)
    assert told not in chat.nvim.wait_screen("▎ ! No new “always”; g1 says why\n")
    chat.nvim.feed("]ag1")
    chat.nvim.wait_screen(r"(?m)^No new “always”: .*; a new chat offers it")
    assert f"▎ ! No new “always”: {told}; a new chat offers it" in chat.nvim.screen()
    assert chat.sent("approve") == []


def test_the_message_about_always_is_not_cut(nvim_factory: Callable[..., Nvim]) -> None:
    """Where the reason does not fit, the message points to the approval, which has all of it."""
    chat = make_chat(nvim_factory, size=(80, 24))
    chat.accept("go")
    told = "the chat now has text from the untrusted folder ~/work/a-project (:CodeCompanion trust)"
    ask(chat, name="create_file", title="Create a.txt", body="+a", filetype="diff", narrowed=told)
    shown = " ".join(chat.nvim.wait_screen("! No new “always”").replace("▎", " ").split())
    told = told.replace(":CodeCompanion trust", "gtr to trust it")
    assert f"No new “always”: {told}" in shown
    chat.nvim.feed("]ag1")
    chat.nvim.wait_screen("codecompanion: No new “always”, see the approval")


def test_each_row_of_a_long_warning_has_the_bar(chat: ChatDriver) -> None:
    """A path longer than a row is split, and each part has the bar."""
    chat.accept("go")
    folder = "~/" + "/".join(["a folder with a long name"] * 3) + "/" + "x" * 100
    ask(chat, body="make", narrowed=f"the chat now has text from the untrusted folder {folder}")
    chat.nvim.wait_screen("No new “always”")
    block = [line for line in chat.text().split("\n") if "Always" in line or "folder" in line or "xxx" in line]
    assert len(block) > 3
    assert all(line.startswith("▎ ") for line in block)
    assert max(map(len, block)) <= 100


def test_a_decision_about_trust_updates_the_open_question_in_place(chat: ChatDriver) -> None:
    """The same question offers "always" at once and keeps the user's edits to the diff.

    When trust is withdrawn, "always" is off again.
    """
    chat.accept("go")
    more = {"name": "insert_edit", "title": "Edit a.txt", "path": "/p/a.txt", "before": "a\n", "after": "b\nc\n"}
    told = "the chat now has text from the untrusted folder ~/p"
    ask(chat, body="+a", filetype="diff", narrowed=told, exact=ANY_FILE, **more)
    chat.nvim.wait_screen("No new “always”")
    chat.nvim.feed("]aK")
    assert "g1" not in chat.nvim.wait_screen("g2 accept")
    chat.nvim.feed("Goours<Esc>")
    again = events.ApprovalRequested(call_id="c9", body="+a", filetype="diff", exact=ANY_FILE, **more)
    chat.push(again)
    chat.nvim.wait_screen("g2 accept · g3 reject… · g1 always… · q back")
    chat.nvim.feed("q")
    screen = chat.nvim.wait_screen("g1 always…")
    assert "No new “always”" not in screen
    assert "with your changes" in screen
    assert screen.count("Edit a.txt") == 1
    chat.push(msgspec.structs.replace(again, narrowed=told))
    screen = chat.nvim.wait_screen("No new “always”")
    assert "g1 always…" not in screen
    chat.push(again)
    chat.nvim.wait_screen("g1 always…")
    chat.nvim.feed("g1")
    chat.nvim.wait_screen("› Edit any file; guarded files")
    chat.nvim.feed("<CR>")
    chat.nvim.wait_for(lambda: chat.sent("approve"), "approve")
    [sent] = chat.sent("approve")
    assert (sent["decision"], sent["text"]) == ("always", "b\nc\nours\n")


def test_always_can_cover_a_command_prefix_and_names_it(chat: ChatDriver) -> None:
    """The row of the cursor is marked; the host decides, and the question stays open if it refuses."""
    chat.accept("go")
    exact, covers = "exactly “git status --short”", "“git status” on files of this project"
    ask(chat, body="git status --short", exact=GrantScope(exact), covers=GrantScope(covers))
    chat.nvim.feed("]ag1")
    chat.nvim.wait_screen(rf"Always allow in this chat.*\n.*› {exact} .*\n.*  {covers}")
    chat.nvim.feed("<C-c>")
    chat.nvim.wait_for(lambda: not chat.nvim.blocked(), "the prompt to close")
    assert chat.sent("approve") == []
    chat.nvim.feed("g1")
    chat.nvim.wait_screen(covers)
    chat.nvim.feed("j")
    chat.nvim.wait_screen(rf"  {exact} .*\n.*› {covers}")
    chat.nvim.feed("<CR>")
    chat.nvim.wait_for(lambda: chat.sent("approve"), "approve")
    sent = chat.sent("approve")[0]
    assert (sent["decision"], sent["family"]) == ("always", True)
    chat.nvim.lua(
        """local host = require('codecompanion.host')
           for _, request in ipairs(host.requests) do
             if request.verb == 'approve' then request.callback('not now. The approval is still open.') end
           end"""
    )
    chat.nvim.wait_screen("not now. The approval is still open.")
    chat.nvim.feed("g2")
    chat.nvim.wait_for(lambda: len(chat.sent("approve")) == 2, "approve")


@pytest.mark.parametrize("columns", [40, 60, 80])
@pytest.mark.parametrize("covers", [GrantScope(), GrantScope("“make” with any options", STILL_ASKS, UNTIL)])
@pytest.mark.parametrize("where", ["]a", "G"])
def test_the_question_about_always_leaves_the_approval_readable(
    chat: ChatDriver, columns: int, covers: GrantScope, where: str
) -> None:
    """It opens below the block, or above where there is more space; at 40 columns as well."""
    chat.nvim.command(f"set columns={columns}")
    for number in range(8):
        chat.accept(f"question {number}")
    ask(chat, body="make\ntest", exact=GrantScope("exactly “make test”", until=UNTIL), covers=covers)
    before = chat.nvim.wait_screen("▎ g2 accept")
    block = before[before.index("▎ run_command") : before.index("g1 always…")]
    chat.nvim.feed(where + "g1")
    assert block in chat.nvim.wait_screen("Always allow")


def test_the_line_of_a_call_does_not_repeat_its_open_approval(chat: ChatDriver) -> None:
    """The command is on the screen once; a folder is named beside the tool."""
    chat.accept("go")
    ask(chat, body="make test", title="make test (in sub)", place="inside")
    assert "▸" not in chat.text()
    assert "▎ run_command in sub · in the sandbox\n▎ make test\n▎ g2" in chat.text()
    chat.push(events.ApprovalClosed(call_id="c9", decision="once"))
    assert chat.text().endswith("▸ run_command rm\n\n## Me\n")


def test_a_command_whose_makefile_changed_explains_the_second_question(chat: ChatDriver) -> None:
    chat.accept("go")
    ask(chat, body="make test", again="Makefile changed since you allowed it")
    chat.nvim.wait_screen("! Asks again: Makefile changed since you allowed it")
    assert "g1 always…" in chat.nvim.wait_screen("g2 accept")


def test_yolo_shows_its_exceptions(chat: ChatDriver) -> None:
    """They are shown when YOLO mode is switched on, and in the status line while it is on."""
    chat.nvim.feed("gty")
    chat.nvim.wait_for(lambda: chat.sent("set_yolo"), "set_yolo")
    assert (
        "! YOLO mode is on: tools run without asking. Exceptions: delete_file, run_command,"
        " changes to guarded files (Makefile, .git, CI …). gty turns it off." in chat.text()
    )
    chat.nvim.wait_screen(r"YOLO but delete_file, run_command, guarded files")
    chat.nvim.feed("gty")
    chat.nvim.wait_for(lambda: len(chat.sent("set_yolo")) == 2, "set_yolo")
    assert "YOLO mode is off: tools ask again." in chat.text()


@pytest.mark.parametrize("columns", [100, 50])
def test_a_condition_of_both_scopes_is_below_them_and_cannot_be_chosen(chat: ChatDriver, columns: int) -> None:
    chat.nvim.command(f"set columns={columns}")
    chat.accept("go")
    covers = GrantScope("“flake8” with any options", STILL_ASKS, UNTIL)
    ask(chat, body="flake8 a.py", exact=GrantScope("exactly “flake8 a.py”", until=UNTIL), covers=covers)
    chat.nvim.feed("]ag1")
    assert chat.nvim.wait_screen("Both apply until Makefile changes").count("until") == 1
    chat.nvim.feed("G")
    chat.nvim.wait_screen("› “flake8”")
    chat.nvim.feed("y")
    chat.nvim.wait_for(lambda: chat.sent("approve"), "approve")
    assert chat.sent("approve")[0]["family"] is True
    grant(chat)
    chat.nvim.wait_screen("Allowed in this chat: “flake8” with")


def test_a_long_list_of_commands_is_shown_whole_before_it_is_allowed(chat: ChatDriver) -> None:
    chat.accept("go")
    commands = " and ".join(f"“program{number} sub”" for number in range(12))
    ask(chat, body="make", exact=GrantScope("exactly “make”"), covers=GrantScope(commands))
    chat.nvim.feed("]ag1")
    screen = chat.nvim.wait_screen("Always allow in this chat")
    assert all(f"program{number} sub" in re.sub(r"[│\s]+", " ", screen) for number in range(12)), screen


def test_standing_approvals_are_listed_and_revoked(chat: ChatDriver) -> None:
    """In one float that stays in place; no part of a row can be hidden in it."""
    flake8 = GrantScope("“flake8” with any options", STILL_ASKS, "until build or settings files change")
    rows = [
        grant_row("a", "insert_edit", ANY_FILE),
        grant_row("b", "run_command", GrantScope("make \u202etset")),
        grant_row("c", "run_command", GrantScope("git status …")) | {"configured": True},
        grant_row("d", "run_command", flake8),
        grant_row("e", "clock__now", GrantScope(until="until the server changes it")),
    ]
    chat.answer("list_grants", rows)
    chat.answer("revoke_grant", "run_command asks again: make test")
    chat.nvim.command("CodeCompanion approvals")
    screen = chat.nvim.wait_screen("Runs without asking in this chat")
    assert "insert_edit  any file; guarded files (Makefile, .git, CI …) still ask" in screen
    assert "clock__now   every call, until the server changes it" in screen
    assert "run_command  make <U+202E>tset" in screen
    assert "run_command  git status …  · from your configuration" in screen
    assert re.search(r"until build\W+or settings files change", screen), screen
    place = chat.nvim.lua("return vim.api.nvim_win_get_position(0)")
    chat.answer("list_grants", [rows[0], *rows[2:]])
    chat.nvim.feed("jx")
    chat.nvim.wait_for(lambda: "<U+202E>" not in chat.nvim.screen(), "the line to go")
    assert chat.sent("revoke_grant")[-1]["grant"] == "b"
    assert chat.nvim.lua("return vim.api.nvim_win_get_position(0)") == place
    chat.nvim.feed("q")


@pytest.mark.parametrize(
    ("what", "is_offered"), [("make test", False), ("make test\nmake clean", True), ("make " + "x" * 120, False)]
)
def test_the_list_offers_to_show_a_command_of_several_lines(chat: ChatDriver, what: str, is_offered: bool) -> None:
    chat.answer("list_grants", [grant_row("a", "run_command", GrantScope(what))])
    chat.nvim.command("CodeCompanion approvals")
    screen = chat.nvim.wait_screen("x revoke")
    assert ("K show all" in screen) == is_offered
    chat.nvim.feed("K")
    chat.nvim.wait_for(lambda: "x revoke" not in chat.nvim.screen().split("\n")[-1] and
                       len(chat.nvim.lua("return vim.api.nvim_list_wins()")) == 3, "all of it")  # fmt: skip


@pytest.mark.parametrize(
    ("asks", "yolo", "told"),
    [
        ([True, False, False], False, "; 2 tools run without asking (/tools)"),
        ([True], False, ""),
        ([True, False], True, "; YOLO mode runs tools without asking"),
    ],
)
def test_a_chat_without_approvals_says_what_runs_anyway(
    chat: ChatDriver, asks: list[bool], yolo: bool, told: str
) -> None:
    if yolo:
        chat.nvim.feed("gty")
    chat.answer("list_grants", [])
    chat.answer("list_tools", {"tools": [{"asks": one, "sent": True} for one in asks]})
    chat.nvim.command("CodeCompanion approvals")
    chat.nvim.wait_for(
        lambda: f"codecompanion: No approvals given in this chat{told}\n" in f"{chat.nvim.messages()}\n", "the line"
    )


# ---- outside the user's view


def test_an_approval_in_a_chat_that_is_closed_while_it_waits_is_announced(chat: ChatDriver) -> None:
    """Every time the last window of the chat is closed, but not while another window shows it."""
    chat.nvim.lua("_G.told = {}; vim.notify = function(text) table.insert(_G.told, text) end")
    chat.nvim.command("set columns=120")
    chat.accept("go")
    ask(chat, title="rm -rf build")
    chat.nvim.command("split | close")
    assert chat.nvim.lua("vim.wait(50) return #_G.told") == 0
    chat.nvim.lua("require('codecompanion.chat').toggle()")
    told = chat.nvim.wait_lua("return #_G.told > 0 and _G.told")
    assert told == ["codecompanion: Approval needed in “New chat”: run_command: rm -rf build · :CodeCompanion approval"]
    assert "waiting for your approval" in chat.nvim.lua("return require('codecompanion').statusline()")


def test_a_narrow_screen_names_the_command_that_goes_to_the_approval(nvim_factory) -> None:
    chat = make_chat(nvim_factory, size=(40, 24))
    chat.accept("go")
    ask(chat, title="rm -rf build")
    chat.nvim.lua("require('codecompanion.chat').toggle()")
    chat.nvim.wait_screen("^:CodeCompanion approval")


def test_a_waiting_approval_in_a_hidden_chat_is_announced_once(chat: ChatDriver) -> None:
    """A notification, an autocmd and the status line announce it; `:CodeCompanion approval` goes to it."""
    chat.record_autocmds()
    chat.nvim.lua("_G.told = {}; vim.notify = function(text) table.insert(_G.told, text) end")
    chat.nvim.command("set columns=120")
    chat.accept("go")
    chat.nvim.lua("require('codecompanion.chat').toggle()")
    ask(chat, title="rm -rf build")
    told = chat.nvim.wait_lua("return #_G.told > 0 and _G.told")
    assert told == ["codecompanion: Approval needed in “New chat”: run_command: rm -rf build · :CodeCompanion approval"]
    assert chat.fired()[-1] == (
        "CodeCompanionApprovalWaiting",
        {
            "chat": chat.id,
            "bufnr": chat.fired()[-1][1]["bufnr"],
            "call_id": "c9",
            "name": "run_command",
            "title": "rm -rf build",
            "unseen": True,
        },
    )
    assert "waiting for your approval" in chat.nvim.lua("return require('codecompanion').statusline()")
    chat.nvim.command("CodeCompanion approval")
    chat.nvim.feed("g2")
    chat.nvim.wait_for(lambda: chat.sent("approve"), "approve")
    chat.push(events.ApprovalClosed(call_id="c9", decision="once"))
    assert chat.fired()[-1][0] == "CodeCompanionApprovalAnswered"
    assert chat.nvim.lua("return #_G.told") == 1


def test_a_visible_chat_is_announced_only_if_neovim_lost_the_focus(chat: ChatDriver) -> None:
    """A visible approval needs no notification unless the editor is unfocused."""
    chat.record_autocmds()
    chat.nvim.lua("_G.told = {}; vim.notify = function(text) table.insert(_G.told, text) end")
    chat.accept("go")
    ask(chat, "c1")
    chat.push(events.ApprovalClosed(call_id="c1", decision="once"), events.TurnFinished(reason="done"))
    chat.nvim.settle()
    assert chat.nvim.lua("return _G.told") == []
    assert chat.fired()[-1][1]["unseen"] is False
    chat.nvim.command("doautocmd FocusLost")
    chat.push(events.TurnFinished(reason="done"))
    chat.nvim.wait_lua("return #_G.told == 1")
    assert chat.nvim.lua("return _G.told[1]") == "codecompanion: The reply in “New chat” is complete"
    assert chat.fired()[-1][1]["unseen"] is True
    chat.nvim.command("doautocmd FocusGained")
    chat.push(events.TurnFinished(reason="done"))
    chat.nvim.settle()
    assert chat.nvim.lua("return #_G.told") == 1


def test_the_command_line_does_not_repeat_what_is_on_the_screen(chat: ChatDriver) -> None:
    """Neovim's own `vim.notify` shows nothing outside the screen, so a lost focus makes no difference."""
    chat.accept("go")
    chat.nvim.command("doautocmd FocusLost")
    chat.nvim.command("botright new")
    ask(chat)
    screen = chat.nvim.wait_screen("▎ g2 accept")
    assert screen.count("approval") == 1
    assert chat.nvim.messages() == ""
    assert chat.nvim.lua("return require('codecompanion.chat.state.questions').elsewhere()") is None


def test_the_key_that_goes_to_an_approval_is_shown_where_it_is_needed(chat: ChatDriver) -> None:
    """Of several questions, the cursor chooses one; a block above the window is not visible."""
    chat.accept("go")
    ask(chat, "c1")
    assert "]a goes" not in chat.nvim.wait_screen("▎ g2 accept")
    ask(chat, "c2")
    chat.nvim.wait_screen("⋯ ]a goes to the approval")
    chat.push(events.ApprovalClosed(call_id="c2", decision="once"))
    chat.nvim.wait_for(lambda: "]a goes" not in chat.nvim.screen(), "one question left")


def test_notifications_of_hidden_chats_can_be_disabled(chat: ChatDriver) -> None:
    """The autocmd still fires."""
    chat.setup({"display": {"chat": {"notify_unseen": False}}})
    chat.record_autocmds()
    chat.nvim.lua("_G.told = {}; vim.notify = function(text) table.insert(_G.told, text) end")
    chat.accept("go")
    chat.nvim.lua("require('codecompanion.chat').toggle()")
    ask(chat)
    chat.nvim.settle()
    assert chat.nvim.lua("return _G.told") == []
    assert chat.fired()[-1][0] == "CodeCompanionApprovalWaiting"


def test_the_status_line_of_another_window_names_the_waiting_chat(chat: ChatDriver) -> None:
    """With two chats, it names the hidden one."""
    chat.accept("go")
    first = chat.id
    chat.open()
    second, chat.id = chat.id, first
    ask(chat)
    assert chat.nvim.lua("return require('codecompanion').statusline()").startswith(
        "“New chat” is waiting for your approval"
    )
    chat.id = second
