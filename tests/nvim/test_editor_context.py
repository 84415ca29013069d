"""What a message mentions of the editor, the whole way: a real Neovim, the real host, the bytes on the wire."""

from __future__ import annotations

import subprocess

import pytest

from codecompanion.model.messages import EDITOR_TAG, LOOKING_TAG
from real_chat import KEY, start_chat
from tests.providers.chat.answers import reply
from tests.providers.chat.thread import ChatServerThread

FILES = [
    (
        "src/stack.lua",
        "local Stack = {}\n\nfunction Stack.pop(self)\n  return table.remove(self)\nend\n\nreturn Stack\n",
    ),
    ("src/queue.lua", "local Queue = {}\nreturn Queue\n"),
]
VERTICAL = {"display": {"chat": {"window": {"layout": "vertical"}}}}
SAID = "function Stack.pop(self)"


@pytest.fixture
def server():
    with ChatServerThread(default=lambda received: reply("Ok."), key=KEY) as running:
        yield running


def sent(server, index=-1):
    """Return the texts of a request, without the system prompt."""
    requests = [r.json["messages"] for r in server.requests if r.path.endswith("/chat/completions")]
    return [message["content"] for message in requests[index] if message["role"] != "system"]


def before_last(server):
    """Return what went along with the newest message."""
    texts = sent(server)
    after_answer = max((at for at, text in enumerate(texts) if text == "Ok."), default=-1)
    return texts[after_answer + 1 : -1]


def start(nvim_factory, tmp_path, server, files=FILES, *, tells=False, options=None, opened="src/stack.lua", **more):
    """Start a chat beside an open file; the line on what is looked at is off unless it `tells`."""
    options = {"rules": {"enabled": False}, **VERTICAL, **(options or {})}
    chat = options.setdefault("interactions", {}).setdefault("chat", {})
    chat.setdefault("opts", {}).setdefault("tell_open_file", tells)
    started = start_chat(nvim_factory, tmp_path, server, files=files, options=options, opened=False, **more)
    if opened:
        started.nvim.command(f"edit {opened}")
    started.open()
    return started


def in_file(chat, lua):
    """Run Lua in the window of the file."""
    return chat.nvim.lua(
        "local f = vim.iter(vim.api.nvim_tabpage_list_wins(0)):find(function(w)"
        " return vim.bo[vim.api.nvim_win_get_buf(w)].buftype == '' and"
        " vim.bo[vim.api.nvim_win_get_buf(w)].filetype ~= 'codecompanion' end)"
        f" return vim.api.nvim_win_call(f, function() {lua} end)"
    )


def test_the_buffer_goes_along_as_it_is_seen(nvim_factory, tmp_path, server):
    """Unsaved changes included; one folded line below the question; K shows what was sent."""
    chat = start(nvim_factory, tmp_path, server)
    in_file(chat, "vim.api.nvim_buf_set_lines(0, 0, 0, false, { '-- not saved ```` yet' })")
    chat.say("explain #{buffer} please")
    (context,) = before_last(server)
    assert context.startswith(
        "`#{buffer}`: `src/stack.lua`, all 8 lines, with unsaved changes:\n`````lua\n-- not saved"
    )
    assert context.endswith("return Stack\n`````")
    assert sent(server)[-1] == "explain #{buffer} please"
    assert "#{buffer} src/stack.lua · 8 lines · ~" in chat.nvim.screen()
    assert [m.tag for m in chat.view().messages] == [EDITOR_TAG, None, None]
    chat.nvim.lua("vim.fn.search('#{buffer} src/stack.lua')")
    chat.nvim.feed("K")
    chat.nvim.wait_screen("with unsaved changes")


def test_what_is_unchanged_is_named_and_not_sent_again(nvim_factory, tmp_path, server):
    """The model still has it; a change is sent."""
    chat = start(nvim_factory, tmp_path, server)
    chat.say("first #{buffer}")
    chat.say("second #{buffer} and #{file:src/stack.lua}")
    assert before_last(server) == [
        "`#{buffer}`: unchanged since it was sent above.",
        "`#{file:src/stack.lua}`: the same as `#{buffer}`.",
    ]
    chat.say("again #{file:src/stack.lua}")
    assert before_last(server) == ["`#{file:src/stack.lua}`: unchanged since it was sent as `#{buffer}` above."]
    assert "unchanged, still above" in chat.text()
    in_file(chat, "vim.api.nvim_buf_set_lines(0, 0, 0, false, { '-- new' })")
    chat.say("third #{buffer} #{buffer:stack.lua}")
    whole, same = before_last(server)
    assert "-- new" in whole
    assert same == "`#{buffer:stack.lua}`: the same as `#{buffer}`."


def test_selection_viewport_and_buffers(nvim_factory, tmp_path, server):
    """Places are said; a selection is what was selected."""
    chat = start(nvim_factory, tmp_path, server)
    in_file(chat, "vim.cmd('badd src/queue.lua') vim.cmd('normal! 3GVj') vim.cmd('normal! \\27')")
    chat.say("see #{selection}")
    (selected,) = before_last(server)
    assert selected.startswith(
        "`#{selection}`: selected in `src/stack.lua`, lines 3-4:\n```lua\nfunction Stack.pop(self)"
    )
    chat.say("see #{viewport}")
    (viewed,) = before_last(server)
    assert viewed.startswith("`#{viewport}`: on the screen of `src/stack.lua`, lines 1-7:")
    chat.say("see #{buffers}")
    (all_of_them,) = before_last(server)
    assert "`src/stack.lua`, all 7 lines:" in all_of_them
    assert "`src/queue.lua`, all 2 lines:" in all_of_them
    assert "#{buffers} 2 files · 9 lines" in chat.text()


def test_diagnostics_quickfix_terminal_and_messages(nvim_factory, tmp_path, server):
    """Lists; what is empty is said to the model and to the user."""
    chat = start(nvim_factory, tmp_path, server)
    chat.say("#{quickfix} #{diagnostics} #{terminal}")
    assert before_last(server) == [
        "`#{quickfix}`: the quickfix list is empty.",
        "`#{diagnostics}`: there are no diagnostics in src/stack.lua.",
        "`#{terminal}`: no terminal is open.",
    ]
    assert "#{quickfix} · the quickfix list is empty" in chat.text()
    in_file(
        chat,
        """vim.diagnostic.set(vim.api.nvim_create_namespace('t'), 0,
             {{ lnum = 3, col = 2, message = 'no\\nsuch', severity = 1, source = 'lua_ls', code = 42 }})
           vim.fn.setqflist({{ filename = 'src/queue.lua', lnum = 2, col = 1, text = 'here' }})
           vim.api.nvim_echo({{ 'a message of the editor' }}, true, {})""",
    )
    chat.say("#{diagnostics} #{quickfix} #{messages} #{diagnostics:workspace}")
    problems, quickfix, messages, workspace = before_last(server)
    assert "diagnostics of `src/stack.lua`:" in problems
    assert "4:3: error: no such [lua_ls 42]\n    return table.remove(self)" in problems
    assert "src/queue.lua:2:1: here" in quickfix
    assert "a message of the editor" in messages
    assert "src/stack.lua:4:3: error" in workspace


def test_file_and_diff_are_read_by_the_host(nvim_factory, tmp_path, server):
    """By path, some lines of it; by git."""
    chat = start(nvim_factory, tmp_path, server)
    work = tmp_path / "work"
    git = ["git", "-c", "user.name=a", "-c", "user.email=a@b", "-C", str(work)]
    for command in (["init", "-q", "-b", "main"], ["add", "."], ["commit", "-qm", "first"]):
        subprocess.run([*git, *command], check=True)
    (work / "src/queue.lua").write_text("local Queue = { 1 }\nreturn Queue\n", "utf-8")
    (work / ".env").write_text("KEY=planted\n", "utf-8")
    chat.say("#{file:src/stack.lua:3-5} #{diff} #{diff:staged}")
    file, diff, staged = before_last(server)
    assert file.startswith("`#{file:src/stack.lua:3-5}`: `src/stack.lua`, lines 3-5:")
    assert "+local Queue = { 1 }" in diff
    assert "new files that git does not track" in diff
    assert "planted" not in diff
    assert staged == "`#{diff:staged}`: nothing is staged."
    for wrong, why in (
        ("#{diff:nonsense}", "there is no diff 'nonsense'"),
        ("#{file:gone.lua}", "There is no file"),
        ("#{file}", "write what is meant after a colon: #{file:path}"),
        ("#{buffer:gone}", "no open buffer is called gone"),
        ("#{messages:x}", "it takes nothing after the colon"),
    ):
        count = len(server.requests)
        chat.send(wrong)
        chat.nvim.wait_for(lambda why=why: why in " ".join(chat.text().split()), why)
        chat.nvim.wait_for(lambda wrong=wrong: chat.draft().strip() == wrong, "the message in the input")
        assert len(server.requests) == count
        assert "back in the input. Your message" not in " ".join(chat.text().split()), "said once"
        chat.nvim.lua("require('codecompanion.chat.wire.draft').take(require('codecompanion.chat').current())")


def test_the_model_is_told_what_is_looked_at_and_not_again(nvim_factory, tmp_path, server):
    """One short line, only when it is new."""
    chat = start(nvim_factory, tmp_path, server, tells=True)
    chat.say("one")
    assert sent(server)[0] == "The user is looking at `src/stack.lua`, lines 1-7 of 7, cursor in line 1."
    chat.say("two")
    assert before_last(server) == []
    in_file(chat, "vim.cmd('normal! 4G')")
    chat.say("three")
    assert before_last(server) == ["The user is looking at `src/stack.lua`, lines 1-7 of 7, cursor in line 4."]
    assert [m.tag for m in chat.view().messages if m.tag] == [LOOKING_TAG, LOOKING_TAG]
    assert "looking at" not in chat.text()


def test_words_in_code_mention_nothing(nvim_factory, tmp_path, server):
    """Fences, backticks, Ruby."""
    chat = start(nvim_factory, tmp_path, server)
    chat.say("`#{buffer}` and x#{buffer}\n```ruby\n#{buffer}\n```")
    assert before_last(server) == []


OWN = """
require('codecompanion').setup(vim.tbl_deep_extend('force', require('codecompanion.config').user, {
  interactions = { chat = { editor_context = {
    quickfix = false,
    branch = { callback = function(at) return 'on ' .. (at.argument ~= '' and at.argument or 'main') end,
               description = 'The branch', opts = { has_params = true } },
    broken = { callback = function() error('it broke') end },
    wrong = { callback = function() return { 1 } end },
    slow = { callback = function(_, done) vim.defer_fn(function() done('slowly') end, 9) end, opts = { async = true } },
    never = { callback = function() end, opts = { async = true, timeout = 100 } },
    hangs = { callback = function() end, opts = { async = true, timeout = 60000 } },
  } } } }))
"""


def test_items_of_ones_own(nvim_factory, tmp_path, server):
    """Registered like the built-in ones; what they do wrong is one sentence, and nothing is lost."""
    chat = start(nvim_factory, tmp_path, server)
    chat.nvim.lua(OWN)
    chat.say("#{branch} #{branch:dev} #{slow} #{never}")
    assert before_last(server) == [
        "`#{branch}`: The branch:\n```\non main\n```",
        "`#{branch:dev}`: The branch:\n```\non dev\n```",
        "`#{slow}`: Your own:\n```\nslowly\n```",
        "`#{never}`: it took longer than 0.1 s.",
    ]
    for wrong, why in (("#{broken}", "its callback failed:"), ("#{wrong}", "its callback gave a number")):
        chat.send(wrong)
        chat.nvim.wait_for(lambda why=why: why in " ".join(chat.text().split()), why)
        assert chat.draft() == wrong
        chat.nvim.lua("require('codecompanion.chat.wire.draft').take(require('codecompanion.chat').current())")
    chat.say("#{quickfix}")
    assert "switched off in interactions.chat.editor_context" in " ".join(chat.text().split())


def test_a_stop_gives_a_waiting_message_back(nvim_factory, tmp_path, server):
    """Order is kept, nothing was sent, the editor is free meanwhile."""
    chat = start(nvim_factory, tmp_path, server)
    chat.nvim.lua(OWN)
    chat.send("#{hangs} first")
    chat.nvim.wait_screen("reading the editor")
    chat.send("second")
    chat.nvim.feed("<Esc>q")
    chat.nvim.wait_for(lambda: "#{hangs} first" in chat.draft() and "second" in chat.draft(), "both in the input")
    assert server.requests == []
