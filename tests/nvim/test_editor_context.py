"""Editor context in a message, end to end: a real Neovim, the real host, the bytes on the wire."""

from __future__ import annotations

import subprocess

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from codecompanion.model.messages import EDITOR_TAG, LOOKING_TAG
from codecompanion.retrieval.near_mentions import near_mentions
from harness import find_nvim, other_nvims
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
    """Return the context sent with the newest message."""
    texts = sent(server)
    after_answer = max((at for at, text in enumerate(texts) if text == "Ok."), default=-1)
    return texts[after_answer + 1 : -1]


def start(nvim_factory, tmp_path, server, files=FILES, *, tells=False, options=None, opened="src/stack.lua", **more):
    """Start a chat next to an open file; the line about the visible text is sent only if `tells` is set."""
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


def test_the_buffer_is_sent_as_the_user_sees_it(nvim_factory, tmp_path, server):
    """Unsaved changes are included; the message has one folded line below it, and K shows the sent text."""
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


def test_an_unchanged_buffer_is_referred_to_and_not_sent_again(nvim_factory, tmp_path, server):
    """The model still has the text, so only changes are sent."""
    chat = start(nvim_factory, tmp_path, server)
    chat.say("first #{buffer}")
    chat.say("second #{buffer} and #{file:src/stack.lua}")
    again = "`src/stack.lua`, all 7 lines: not sent again, because it is above, as `#{buffer}`."
    assert before_last(server) == [f"`#{{buffer}}`: {again}", f"`#{{file:src/stack.lua}}`: {again}"]
    chat.say("again #{file:src/stack.lua}")
    assert before_last(server) == [f"`#{{file:src/stack.lua}}`: {again}"]
    assert "#{file:src/stack.lua} · already sent, as #{buffer}" in chat.text()
    in_file(chat, "vim.api.nvim_buf_set_lines(0, 0, 0, false, { '-- new' })")
    chat.say("third #{buffer} #{buffer:stack.lua}")
    whole, same = before_last(server)
    assert "-- new" in whole
    stands = "not sent again, because it is in this message, as `#{buffer}`."
    assert same == f"`#{{buffer:stack.lua}}`: `src/stack.lua`, all 8 lines, with unsaved changes: {stands}"
    assert "#{buffer:stack.lua} src/stack.lua · the same as #{buffer}" in chat.text()


def taken_out(chat):
    """Return the number of lines marked as removed since then."""
    return chat.nvim.screen().count("· since removed")


def test_an_attached_file_is_not_sent_again_by_a_mention(nvim_factory, tmp_path, server):
    """This applies to files named by path, as the buffer, as visible text and as a selection.

    The references are marked as removed when the file is detached.
    """
    lines = [f"local value_{n} = {n} -- a line that is long enough" for n in range(1, 31)]
    chat = start(nvim_factory, tmp_path, server, files=[("src/stack.lua", "\n".join(lines) + "\n")])
    chat.send("/file src/stack.lua")
    chat.nvim.wait_for(lambda: "<file>src/stack.lua" in chat.text(), "the attachment")
    in_file(chat, "vim.cmd('normal! 3GV20j') vim.cmd('normal! \\27')")
    chat.say("what is #{file:src/stack.lua} #{buffer} #{viewport} #{selection}")
    assert sum(text.count("local value_9 =") for text in sent(server)) == 1
    assert sum("not sent again, because it is above, as attached." in text for text in sent(server)) == 4
    assert "#{selection} src/stack.lua:3-23 · already sent, as attached" in chat.text()
    chat.nvim.feed("<Esc>")
    chat.nvim.lua("vim.fn.cursor(1, 1); vim.fn.search('<file>src/stack.lua')")
    chat.nvim.feed("dd")
    chat.nvim.wait_for(lambda: taken_out(chat) == 4, "the lines of what names it")
    chat.nvim.command("CodeCompanionUndo")
    chat.nvim.wait_for(lambda: taken_out(chat) == 0, "the lines as they were")
    chat.nvim.command("CodeCompanionRedo")
    chat.nvim.wait_for(lambda: taken_out(chat) == 4, "the lines once more")
    chat_id = chat.id
    chat.nvim.command("bdelete! | CodeCompanionChat Resume " + chat_id)
    chat.nvim.wait_for(lambda: taken_out(chat) == 4, "the lines after the chat was drawn again")
    chat.say("and #{buffer} now")
    assert sum(text.count("local value_9 =") for text in sent(server)) == 1
    assert sum("since removed from context" in text for text in sent(server)) == 4


def test_selection_viewport_and_buffers_are_sent_with_their_locations(nvim_factory, tmp_path, server):
    """A selection is exactly the selected text."""
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
    for name in ("a.log", "b.log", "c.log"):
        (chat.root / "work" / name).write_text("a line of a log\n" * (300_000 if name == "c.log" else 200_000))
        in_file(chat, f"vim.cmd('badd {name}')")
    chat.say("and these #{buffers}")
    (not_all,) = before_last(server)
    assert not_all.startswith(
        "`#{buffers}`: open files that were left out:\n```\nb.log is over the total limit of 4 MB\n"
        "c.log is 4.8 MB, over the limit of 4 MB\n```\n"
    )


def test_diagnostics_quickfix_terminal_and_messages_are_sent(nvim_factory, tmp_path, server):
    """They are sent as lists; an empty list is reported to the model and the user."""
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
    """Files are read by path with a line range, diffs through git."""
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
    assert "left out because they may contain secrets:\n```\n.env" in diff
    assert "planted" not in diff
    assert staged == "`#{diff:staged}`: nothing is staged."
    chat.send("#{diff:nonsense}")
    chat.nvim.wait_for(lambda: "nonsense is not a commit here" in " ".join(chat.text().split()), "why it was not sent")
    chat.nvim.wait_for(lambda: chat.draft() == "#{diff:nonsense}", "the message in the input")


def test_a_message_with_a_missing_item_stays_in_the_input(nvim_factory, tmp_path, server):
    """One sentence reports it immediately, without the host, and nothing is sent."""
    chat = start(nvim_factory, tmp_path, server)
    for wrong, why in (
        ("#{file}", "it needs an argument: #{file:path}"),
        ("#{buffer:gone}", "no open buffer is called gone"),
        ("#{messages:x}", "it takes no argument"),
    ):
        chat.send(wrong)
        chat.nvim.wait_for(lambda why=why: why in " ".join(chat.text().split()), why)
        assert chat.draft() == wrong
        chat.nvim.lua("require('codecompanion.chat.wire.draft').take(require('codecompanion.chat').current())")
    assert server.requests == []


def test_the_model_gets_the_visible_text_only_when_it_changes(nvim_factory, tmp_path, server):
    """One short line is sent; the first time, a notice below the reply says so, and `K` explains how to stop it."""
    chat = start(nvim_factory, tmp_path, server, tells=True)
    chat.say("one")
    notice = "· The model knows which file is open · K explains"
    assert chat.text().index("one\n") < chat.text().index("Ok.") < chat.text().index(notice)
    assert sent(server)[0] == "The user is looking at `src/stack.lua`, lines 1-7 of 7, cursor on line 1."
    chat.say("two")
    assert before_last(server) == []
    in_file(chat, "vim.cmd('normal! 4G')")
    chat.say("three")
    assert before_last(server) == ["The user is looking at `src/stack.lua`, lines 1-7 of 7, cursor on line 4."]
    assert [m.tag for m in chat.view().messages if m.tag] == [LOOKING_TAG, LOOKING_TAG]
    assert chat.text().count(notice) == 1
    before = chat.text()
    chat.nvim.command("edit")
    chat.nvim.wait_for(lambda: chat.text() == before, "the same text")
    chat.nvim.feed("gg/file is open<CR>K")
    chat.nvim.wait_screen(r"interactions\.chat\.opts\.tell_open_file")
    chat.nvim.command("close")
    chat.open()
    chat.say("in a second chat")
    assert "file is open" not in chat.text()


def test_words_in_code_are_not_mentions(nvim_factory, tmp_path, server):
    """This applies to fences, backticks and Ruby interpolation."""
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


def test_users_can_register_their_own_items(nvim_factory, tmp_path, server):
    """They work like the built-in items; an error in one is reported in one sentence, and nothing is lost."""
    chat = start(nvim_factory, tmp_path, server)
    chat.nvim.lua(OWN)
    chat.say("#{branch} #{branch:dev} #{slow} #{never}")
    assert before_last(server) == [
        "`#{branch}`: The branch:\n```\non main\n```",
        "`#{branch:dev}`: The branch:\n```\non dev\n```",
        "`#{slow}`: Your own:\n```\nslowly\n```",
        "`#{never}`: it took longer than 0.1 s.",
    ]
    for wrong, why in (("#{broken}", "its callback failed:"), ("#{wrong}", "its callback returned a number")):
        chat.send(wrong)
        chat.nvim.wait_for(lambda why=why: why in " ".join(chat.text().split()), why)
        assert chat.draft() == wrong
        chat.nvim.lua("require('codecompanion.chat.wire.draft').take(require('codecompanion.chat').current())")
    chat.say("#{quickfix}")
    assert "switched off in interactions.chat.editor_context" in " ".join(chat.text().split())


def test_a_stop_returns_a_waiting_message(nvim_factory, tmp_path, server):
    """The order is kept, nothing is sent, and the editor stays responsive."""
    chat = start(nvim_factory, tmp_path, server)
    chat.nvim.lua(OWN)
    chat.send("#{hangs} first")
    chat.nvim.wait_screen("reading the editor")
    waits = "return require('codecompanion.chat.state.chat_status').waits({ state = 'streaming', label = '%s' })"
    assert [chat.nvim.lua(waits % label) for label in ("reading 2.0k of 6.1k tokens", "reading the editor")] == [
        True,
        False,
    ]
    chat.send("second")
    chat.nvim.feed("<Esc>q")
    chat.nvim.wait_for(lambda: "#{hangs} first" in chat.draft() and "second" in chat.draft(), "both in the input")
    assert server.requests == []


LANGUAGE_SERVER = """
local hover = { contents = { kind = 'markdown', value = 'pop: takes the last one ```` away' } }
local function at(line) return { start = { line = line, character = 0 }, ['end'] = { line = line, character = 3 } } end
local function server(silent)
  return function(dispatchers)
    local closing = false
    return {
      request = function(method, params, callback)
        local uri = params and params.textDocument and params.textDocument.uri
        if method == 'initialize' then
          local can = { hoverProvider = true, definitionProvider = true, referencesProvider = true }
          callback(nil, { capabilities = can })
        elseif method == 'shutdown' then
          callback(nil, nil)
        elseif method == 'textDocument/hover' then
          callback(nil, hover)
        elseif method == 'textDocument/definition' and not silent then
          local one = { targetUri = uri, targetRange = at(2), targetSelectionRange = at(2) }
          callback(nil, { one, { uri = uri, range = at(0) }, one, one, { uri = uri, range = at(5) } })
        elseif method == 'textDocument/references' and not silent then
          callback(nil, { { uri = uri, range = at(2) }, { uri = uri, range = at(6) }, 'rubbish', { uri = 3 } })
        end
        return true, 1
      end,
      notify = function(method) if method == 'exit' then dispatchers.on_exit(0, 15) end return true end,
      is_closing = function() return closing end,
      terminate = function() closing = true end,
    }
  end
end
local id = vim.lsp.start({ name = 'fake', cmd = server(...), root_dir = vim.fn.getcwd() }, { bufnr = 0 })
vim.api.nvim_win_set_cursor(0, { 3, 16 })
return id
"""


@pytest.fixture(params=[find_nvim() or "nvim", *other_nvims()])
def binary(request):
    return request.param


def start_language_server(chat, *, silent):
    chat.nvim.lua(
        "for _, w in ipairs(vim.api.nvim_tabpage_list_wins(0)) do"
        " if vim.api.nvim_buf_get_name(vim.api.nvim_win_get_buf(w)):find('stack') then"
        " vim.api.nvim_set_current_win(w) end end"
    )
    chat.nvim.lua(LANGUAGE_SERVER, silent)
    chat.nvim.wait_lua("local c = vim.lsp.get_clients({ bufnr = 0 })[1] return c ~= nil and c.initialized == true")
    chat.nvim.command("wincmd p")


def test_the_visible_text_of_a_buffer_without_a_file_is_sent(nvim_factory, tmp_path, server):
    """The buffer is identified by its number."""
    chat = start(nvim_factory, tmp_path, server, opened=None)
    chat.nvim.command("topleft vnew")
    chat.nvim.lua("vim.api.nvim_buf_set_lines(0, 0, -1, false, { 'one', 'two' })")
    number = chat.nvim.lua("return vim.api.nvim_get_current_buf()")
    chat.nvim.command("wincmd p")
    chat.say("what is #{viewport}")
    assert before_last(server) == [
        f"`#{{viewport}}`: on the screen of buffer {number}, lines 1-2, with unsaved changes:\n```\none\ntwo\n```"
    ]


def test_a_language_server_describes_the_symbol(nvim_factory, tmp_path, server, binary):
    """Hover text, definition and references are sent; other information is omitted."""
    chat = start(nvim_factory, tmp_path, server, binary=binary)
    chat.say("#{lsp} #{selection}")
    assert before_last(server) == [
        "`#{lsp}`: no language server is attached to src/stack.lua.",
        "`#{selection}`: nothing was selected in src/stack.lua.",
    ], "what is not there is said, and is no reason to keep the message back"
    start_language_server(chat, silent=False)
    chat.say("what is #{lsp}?")
    (told,) = before_last(server)
    assert told.startswith("`#{lsp}`: documentation of pop:\n`````markdown\npop: takes the last one ```` away\n`````\n")
    assert "definition of pop, `src/stack.lua`, lines 3-" in told
    assert "function Stack.pop(self)" in told
    assert "other definitions of pop:\n```\nsrc/stack.lua:3\nsrc/stack.lua:6\n```" in told
    assert "uses of pop:\n```\nsrc/stack.lua:3: function Stack.pop(self)\nsrc/stack.lua:7: return Stack\n```" in told


def test_a_silent_language_server_delays_nothing(nvim_factory, tmp_path, server):
    """The answers received so far are sent; the editor stays responsive."""
    chat = start(nvim_factory, tmp_path, server)
    chat.nvim.lua("require('codecompanion.editor_context').get('lsp').timeout = 300")
    chat.nvim.lua(
        "for _, item in ipairs(require('codecompanion.editor_context.items.symbol_items')) do item.timeout = 300 end"
    )
    start_language_server(chat, silent=True)
    chat.say("what is #{lsp}?")
    (told,) = before_last(server)
    assert "documentation of pop:" in told
    assert "is used" not in told


def test_items_are_completed_with_their_arguments(nvim_factory, tmp_path, server, binary):
    """Neovim's own menu offers names, then the options after the colon."""
    chat = start(nvim_factory, tmp_path, server, binary=binary)
    for typed, completed in (
        ("see #diag", "see #{diagnostics}"),
        ("see #{diff:b", "see #{diff:branch}"),
        ("see #{buffer:st", "see #{buffer:src/stack.lua}"),
        ("see #{file:src/q", "see #{file:src/queue.lua}"),
        ("see #{fil", "see #{file:"),
    ):
        chat.nvim.feed(f"i{typed}<C-x><C-o>")
        chat.nvim.wait_for(lambda completed=completed: chat.draft() == completed, completed)
        chat.nvim.feed("<Esc>")
        chat.nvim.lua("require('codecompanion.chat.wire.draft').take(require('codecompanion.chat').current())")


WRITTEN = st.lists(
    st.sampled_from(
        ["#{buffer}", "#{buffer:a b}", "#{ diff : staged }", "#{x}", "```", "~~~~", "`", '"', " ", "\n", "a"]
    ),
    max_size=14,
).map("".join)


def test_both_sides_find_the_same_mentions(nvim):
    """A mention accepted by Lua is not a near miss in Python."""
    cases = []

    @settings(max_examples=300, deadline=None)
    @given(WRITTEN)
    def collect(text):
        cases.append(text)

    collect()
    found = nvim.lua(
        "return vim.tbl_map(function(text) return vim.tbl_map(function(m) return m.written end,"
        " require('codecompanion.editor_context.mentions').of(text)) end, ...)",
        cases,
    )
    for text, written in zip(cases, found, strict=True):
        told = {near.written for near in near_mentions(text) if "{x}" not in near.written}
        taken = {one for one in written if "{x}" not in one}
        assert told == taken, text


JOINED = """
local lines = require('codecompanion.editor_context.buffer_lines')
local shown = require('codecompanion.files.loaded_files').shown
local bytes = { 'a', ' ', '\\n', '\\0', '\\195\\169', '\\255', '\\128', '\\226\\130', 'x y' }
math.randomseed(7)
for _ = 1, 2000 do
  local given = {}
  for line = 1, math.random(0, 4) do
    local parts = {}
    for part = 1, math.random(0, 5) do
      parts[part] = bytes[math.random(#bytes)]
    end
    given[line] = table.concat(parts)
  end
  local one_by_one = shown(table.concat(vim.tbl_map(shown, given), '\\0')):gsub('%z', '\\n')
  local joined = lines.join(given)
  if joined ~= one_by_one or not pcall(vim.json.encode, joined) then
    return { given, one_by_one, joined }
  end
end
return 'all the same'
"""


def test_lines_are_sanitised_together_as_one_by_one(nvim):
    """Anywhere in the text, a NUL becomes a newline and invalid UTF-8 becomes U+FFFD."""
    assert nvim.lua(JOINED) == "all the same"


SNAPSHOT = "require('codecompanion.editor_context.snapshot').snapshot()"
FIRST_CHANGES = """
_G.open_files = require('codecompanion.editor_context.open_files')
_G.named = function(channel)
  local changes = open_files.changes(channel)
  return changes and vim.tbl_map(vim.fs.basename, changes.names)
end
return named(1)
"""


def test_a_snapshot_does_not_read_each_buffer(nvim):
    """With hundreds of open files that are already known, a message takes as many API calls as with none."""
    counted = """
    for number = 1, 60 do
      vim.bo[vim.fn.bufadd(('f%d.txt'):format(number))].buflisted = true
    end
    local take = require('codecompanion.editor_context.snapshot').snapshot
    local open_files = require('codecompanion.editor_context.open_files')
    take()
    local first, calls = #open_files.changes(1).names, 0
    local getbufvar = vim.fn.getbufvar
    local api = vim.iter(vim.api):fold({}, function(found, name, call)
      found[name] = call
      return found
    end)
    local function count(call)
      return function(...)
        calls = calls + 1
        return call(...)
      end
    end
    for name, call in pairs(api) do
      vim.api[name] = count(call)
    end
    vim.fn.getbufvar = count(getbufvar)
    local taken, changes = take(), open_files.changes(1)
    vim.fn.getbufvar = getbufvar
    for name, call in pairs(api) do
      vim.api[name] = call
    end
    return { first, #taken.buffers, changes == nil, calls }
    """
    first, modified, is_unchanged, calls = nvim.lua(counted)
    assert (first, modified, is_unchanged) == (60, 0, True)
    assert 0 < calls < 30


def test_the_open_files_are_sent_when_they_change(nvim):
    """Only listed files are sent, unsaved files are in every snapshot, and a new host receives all of them."""
    nvim.lua("""
    vim.bo[vim.fn.bufadd('listed.txt')].buflisted = true
    vim.fn.bufadd('unlisted.txt')
    local changed = vim.fn.bufadd('changed.txt')
    vim.fn.bufload(changed)
    vim.bo[changed].buflisted = true
    vim.api.nvim_buf_set_lines(changed, 0, -1, false, { 'new' })
    local scratch = vim.api.nvim_create_buf(true, true)
    vim.api.nvim_buf_set_name(scratch, 'scratch')
    """)
    assert nvim.lua(FIRST_CHANGES) == ["listed.txt", "changed.txt"]
    (unsaved,) = nvim.lua(f"return {SNAPSHOT}.buffers")
    assert unsaved["name"].endswith("/changed.txt")
    assert unsaved["tick"] == nvim.lua("return vim.api.nvim_buf_get_changedtick(vim.fn.bufnr('changed.txt'))")
    assert nvim.lua("return named(1)") is None
    assert nvim.lua("return named(2)") == ["listed.txt", "changed.txt"]


@pytest.mark.parametrize(
    ("change", "named"),
    [
        ("vim.cmd('badd more.txt')", ["listed.txt", "more.txt"]),
        ("vim.bo[vim.fn.bufnr('listed.txt')].buflisted = false", []),
        ("vim.cmd('bwipeout listed.txt')", []),
        ("vim.cmd('edit listed.txt | file renamed.txt')", ["renamed.txt"]),
        ("vim.bo[vim.fn.bufnr('listed.txt')].buftype = 'nofile'", []),
    ],
)
def test_a_change_of_the_open_files_is_noticed_at_once(nvim, change, named):
    nvim.lua("vim.cmd('badd listed.txt')")
    assert nvim.lua(FIRST_CHANGES) == ["listed.txt"]
    nvim.lua(change)
    assert nvim.lua("return named(1)") == named


def test_a_change_without_events_is_noticed_after_the_next_message(nvim):
    nvim.lua("vim.cmd('badd listed.txt')")
    assert nvim.lua(FIRST_CHANGES) == ["listed.txt"]
    nvim.lua("vim.cmd('noautocmd badd more.txt'); open_files.changes(1)")
    assert nvim.wait_lua("return named(1)") == ["listed.txt", "more.txt"]


TAKE_BUFFERS = """
local items, later = require('codecompanion.editor_context').take('see #{buffers}')
_G.answers = nil
later(function(given) answers = given end)
return items[1].comes
"""


def test_buffers_are_sent_as_they_were_at_submit(nvim):
    """Their texts are joined after submitting; typing in, closing or opening buffers later changes nothing."""
    nvim.lua("""
    for _, name in ipairs({ 'a.txt', 'b.txt', 'c.txt' }) do
      vim.cmd('edit ' .. name)
      vim.api.nvim_buf_set_lines(0, 0, -1, false, { 'text of ' .. name })
    end
    vim.cmd('enew | set hidden')
    """)
    assert nvim.lua(TAKE_BUFFERS) == "later"
    nvim.lua("""
    vim.api.nvim_buf_set_lines(vim.fn.bufnr('a.txt'), 0, -1, false, { 'typed later' })
    vim.cmd('bwipeout! b.txt')
    vim.cmd('edit d.txt')
    vim.api.nvim_buf_set_lines(0, 0, -1, false, { 'opened later' })
    """)
    (answer,) = nvim.wait_lua("return answers")
    texts = {text["path"].rpartition("/")[2]: text["text"] for text in answer["texts"]}
    assert texts == {name: f"text of {name}" for name in ("a.txt", "b.txt", "c.txt")}
    assert all(text["unsaved"] for text in answer["texts"])
    nvim.lua(TAKE_BUFFERS)
    (answer,) = nvim.wait_lua("return answers")
    texts = {text["path"].rpartition("/")[2]: text["text"] for text in answer["texts"]}
    assert texts == {"a.txt": "typed later", "c.txt": "text of c.txt", "d.txt": "opened later"}


def test_the_text_of_an_unchanged_buffer_is_not_read_again(nvim):
    """If it was mentioned early enough, it is not read on submit either."""
    nvim.lua("""
    for number = 1, 50 do
      local bufnr = vim.fn.bufadd(('f%d.txt'):format(number))
      vim.fn.bufload(bufnr)
      vim.bo[bufnr].buflisted = true
      vim.api.nvim_buf_set_lines(bufnr, 0, -1, false, { 'text ' .. number })
    end
    _G.texts_of_buffers = require('codecompanion.editor_context.texts_of_buffers')
    _G.reads, _G.read = 0, vim.api.nvim_buf_get_lines
    vim.api.nvim_buf_get_lines = function(...)
      reads = reads + 1
      return read(...)
    end
    texts_of_buffers.read_soon()
    """)
    assert nvim.wait_lua("return reads > 50 and reads") == 51  # the empty first buffer, too
    nvim.lua("vim.api.nvim_buf_set_lines(vim.fn.bufnr('f7.txt'), 0, -1, false, { 'another' }); reads = 0")
    nvim.lua(TAKE_BUFFERS)
    (answer,) = nvim.wait_lua("return answers")
    texts = [text["text"] for text in answer["texts"]]
    assert sorted(texts) == sorted(["another", *(f"text {number}" for number in range(1, 51) if number != 7)])
    assert nvim.lua("return reads") == 1


def test_of_too_much_text_the_most_recent_buffers_are_sent(nvim):
    """The others are listed as omitted."""
    nvim.lua("""
    for number = 1, 6 do
      local bufnr = vim.fn.bufadd(('f%d.txt'):format(number))
      vim.fn.bufload(bufnr)
      vim.bo[bufnr].buflisted = true
      vim.api.nvim_buf_set_lines(bufnr, 0, -1, false, { ('x'):rep(1900000) })
    end
    vim.cmd('buffer f6.txt | enew')
    """)
    nvim.lua(TAKE_BUFFERS)
    (answer,) = nvim.wait_lua("return answers")
    left_out, *texts = answer["texts"]
    assert [text["path"].rpartition("/")[2] for text in texts] == ["f6.txt", "f1.txt"]
    assert left_out["text"].splitlines() == [f"f{n}.txt is over the total limit of 4 MB" for n in (2, 3, 4, 5)]
