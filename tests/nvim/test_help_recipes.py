"""The help's recipes are executed as they are written: five tasks done from it alone, and the plugins it names.

Plugins that cannot be had here are stood in for by tables that do with their options what the real ones do with them.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path

import pytest

from chat_driver import ChatDriver, make_chat
from codecompanion.model.history import ViewChanged
from codecompanion.wire import events
from harness import REPO, Nvim
from real_chat import COUNT_TURNS, KEY, RealChat, init_lua, start_chat
from tests.providers.chat.answers import Call, reply
from tests.providers.chat.thread import ChatServerThread
from tests.summaries import nine_sections

HELP = REPO / "doc" / "codecompanion.txt"
MERGED_SETUP = """
do
  -- the snippet is laid over what the test needs, as a user puts both into one table
  local companion = require("codecompanion")
  local setup, base = companion.setup, nil
  companion.setup = function(options)
    base = vim.tbl_deep_extend("force", base or {}, options)
    setup(base)
  end
end
"""


def snippet(tag: str) -> str:
    """Return the first code block after a tag of the help file."""
    text = HELP.read_text(encoding="utf-8")
    match = re.search(rf"\*{tag}\*.*?>(?:lua|vim)\n(.*?)^<", text, re.MULTILINE | re.DOTALL)
    assert match, f"no code block after *{tag}* in the help"
    return match[1]


# ---- five tasks done from the help alone


def test_the_send_key_is_changed(nvim_factory: Callable[..., Nvim]) -> None:
    chat = make_chat(nvim_factory, options={})
    chat.nvim.lua(snippet("codecompanion-task-send"))
    chat.open()
    for typed in ("ihello<C-y>", "ihello<Esc><C-y>"):
        before = len(chat.sent("submit"))
        chat.nvim.feed(typed)
        chat.nvim.wait_for(lambda before=before: len(chat.sent("submit")) > before, typed)
        chat.nvim.feed("<Esc>")
    before = len(chat.sent("submit"))
    chat.nvim.feed("Giagain<Esc><CR>")
    chat.nvim.settle()
    assert len(chat.sent("submit")) == before


@pytest.mark.parametrize("automatic", [True, False])
def test_automatic_compaction_is_switched_off(nvim_factory, tmp_path, automatic) -> None:
    """The same chat with and without the snippet: only without it a summary is asked for."""
    window = 8_000

    def answer(received):
        if "nine headings" in str(received.json["messages"][0]["content"])[:3000]:
            return reply(nine_sections("Talk."))
        return reply("Words about it. " * 150)

    options = {"interactions": {"chat": {"opts": {"context_management": {"compaction": {"min_token_savings": 100}}}}}}
    with ChatServerThread(key=KEY, default=answer) as server:
        init = MERGED_SETUP + init_lua(server.url, options, {"context_window": window})
        init += "" if automatic else snippet("codecompanion-task-no-compaction")
        chat = RealChat(nvim_factory(root=tmp_path, init=init + COUNT_TURNS, env={"LOOP_KEY": KEY}), tmp_path)
        chat.open()
        for number in range(8):
            chat.say(f"question {number} " + "with some words " * 60)
        compacted = [e for e in chat.log() if isinstance(e.payload, ViewChanged) and e.payload.kind == "compacted"]
        assert bool(compacted) is automatic


def test_ollama_is_talked_to(nvim_factory, tmp_path) -> None:
    """The address of the help is the server's own; here it is the test server's."""
    with ChatServerThread([reply("Hello from the llama.")], key="", models=("qwen3:14b",)) as server:
        code = snippet("codecompanion-task-ollama")
        assert "http://localhost:11434" in code
        code = code.replace("http://localhost:11434", server.url.removesuffix("/v1"))
        init = MERGED_SETUP + init_lua(server.url) + code
        chat = RealChat(nvim_factory(root=tmp_path, init=init + COUNT_TURNS), tmp_path)
        chat.open()
        chat.say("hello")
        assert "Hello from the llama." in chat.text()
        sent = [request.json for request in server.requests if request.json and "messages" in request.json]
        assert sent[0]["model"] == "qwen3:14b"
        assert chat.nvim.lua("return vim.b.codecompanion_chat.meter.window") == 32_768


def test_what_the_model_changed_is_taken_back(nvim_factory, tmp_path) -> None:
    """The command and the key that the help names."""
    edit = Call("insert_edit", '{"path": "a.txt", "old_text": "one", "new_text": "two"}', id="call_1")
    tools = {"interactions": {"chat": {"tools": {"insert_edit": {"opts": {"require_approval_before": False}}}}}}
    with ChatServerThread([reply(calls=[edit]), reply("Done.")], key=KEY) as server:
        chat = start_chat(nvim_factory, tmp_path, server, options=tools, files=[("a.txt", "one\n")])
        chat.say("change it")
        path = tmp_path / "work" / "a.txt"
        assert path.read_text() == "two\n"
        chat.nvim.command(snippet("codecompanion-task-revert").strip().removeprefix(":"))
        chat.nvim.wait_for(lambda: path.read_text() == "one\n", "the file as it was")


def stand_in(nvim: Nvim, module: str, code: str) -> None:
    """Make `require(module)` give what the code returns."""
    nvim.lua(f"package.preload[{module!r}] = function() {code} end")


BLINK = """
return {
  setup = function(opts)
    -- as blink does: a provider is loaded by its module and made with `new`
    _G.complete = function(context, done)
      for _, name in ipairs(opts.sources.per_filetype[vim.bo.filetype]) do
        local provider = opts.sources.providers[name]
        local source = require(provider.module).new(provider.opts or {}, provider)
        if source:enabled() then source:get_completions(context, done) end
      end
    end
  end,
}
"""
CMP = """
local sources, by_filetype = {}, {}
_G.complete = function(context, done)
  for _, item in ipairs(by_filetype[vim.bo.filetype].sources) do
    local source = sources[item.name]
    if source:is_available() then
      source:complete({ context = {
        bufnr = context.bufnr,
        cursor = { row = context.cursor[1], col = context.cursor[2] + 1 },
        cursor_before_line = context.line,
      } }, done)
    end
  end
end
return {
  register_source = function(name, source) sources[name] = source end,
  setup = { filetype = function(name, opts) by_filetype[name] = opts end },
}
"""


@pytest.mark.parametrize(("module", "tag", "code"), [("blink.cmp", "blink", BLINK), ("cmp", "cmp", CMP)])
def test_slash_commands_are_completed_by(chat: ChatDriver, module: str, tag: str, code: str) -> None:
    stand_in(chat.nvim, module, code)
    chat.nvim.lua(snippet(f"codecompanion-task-{tag}"))
    chat.nvim.feed("i/ru<Esc>")
    chat.nvim.settle()
    words = chat.nvim.lua(
        """local words = {}
           local row = vim.api.nvim_win_get_cursor(0)[1]
           _G.complete({ bufnr = vim.api.nvim_get_current_buf(), line = '/ru', cursor = { row, 3 } }, function(result)
             for _, item in ipairs(result.items) do table.insert(words, item.textEdit.newText) end
           end)
           return words"""
    )
    assert words == ["/rules"]


# ---- other plugins

CHOOSE_FIRST = (
    "function(items, opts, done)"
    " _G.kind, _G.shown = opts.kind, vim.tbl_map(opts.format_item, items); done(items[1]) end"
)
UI_SELECT = {
    "snacks": (
        "snacks",
        "return { setup = function(o) if o.picker.ui_select then vim.ui.select = " + CHOOSE_FIRST + " end end }",
    ),
    "telescope": (
        "telescope",
        "return { load_extension = function(n) if n == 'ui-select' then vim.ui.select = " + CHOOSE_FIRST + " end end }",
    ),
    "fzf-lua": (
        "fzf-lua",
        "return { register_ui_select = function(f) local choose = "
        + CHOOSE_FIRST
        + "; vim.ui.select = function(items, opts, done) assert(f(opts, items).winopts.width == 0.9);"
        " choose(items, opts, done) end end }",
    ),
    "mini-pick": ("mini.pick", "return { setup = function() end, ui_select = " + CHOOSE_FIRST + " }"),
}


@pytest.mark.parametrize("name", sorted(UI_SELECT))
def test_a_picker_takes_the_lists_over(chat: ChatDriver, name: str) -> None:
    """Through `vim.ui.select`, with the kind that the help names."""
    stand_in(chat.nvim, *UI_SELECT[name])
    chat.nvim.lua(snippet(f"codecompanion-recipe-{name}"))
    row = {"id": "s1", "title": "a title", "updated": 0, "messages": 1, "cwd": "/", "owned": False}
    chat.answer("list_sessions", [row])
    chat.nvim.command("CodeCompanionChat Resume")
    chat.nvim.wait_for(lambda: len(chat.sent("open_chat")) == 2, "open_chat")
    assert chat.nvim.lua("return _G.kind") == "codecompanion.session"
    assert "a title" in chat.nvim.lua("return _G.shown[1]")
    assert chat.sent("open_chat")[1]["resume"] == "s1"


TELESCOPE_ACTIONS = (
    "return { select_default = { replace = function(_, f) _G.default = f end }, close = function() end }"
)
TELESCOPE_STATE = """return {
  get_current_picker = function()
    return { get_multi_selection = function() return { { path = 'a.lua' }, { 'b.lua' } } end }
  end,
  get_selected_entry = function() return { 'c.lua' } end,
}"""
FILE_PICKERS = {
    "snacks": {
        "snacks": """return { picker = { files = function(opts)
            opts.confirm({ selected = function() return { { file = 'a.lua' }, { file = 'b.lua' } } end,
              close = function() end }) end } }"""
    },
    "telescope": {
        "telescope.builtin": "return { find_files = function(o) assert(o.attach_mappings(1)); _G.default() end }",
        "telescope.actions": TELESCOPE_ACTIONS,
        "telescope.actions.state": TELESCOPE_STATE,
    },
    "fzf-lua": {
        "fzf-lua": "return { files = function(o) o.actions.enter({ '> a.lua', '> b.lua' }, o) end }",
        "fzf-lua.path": "return { entry_to_file = function(e) return { path = e:sub(3) } end }",
    },
    "mini-pick": {
        "mini.pick": "return { builtin = { files = function(_, o) o.source.choose_marked({ 'a.lua', 'b.lua' }) end } }"
    },
}


@pytest.mark.parametrize("name", sorted(FILE_PICKERS))
def test_several_files_are_attached_from_a_picker(chat: ChatDriver, name: str) -> None:
    work = Path(chat.nvim.lua("return vim.fn.getcwd()"))
    for file in ("a.lua", "b.lua"):
        (work / file).write_text("return 1\n")
    for module, code in FILE_PICKERS[name].items():
        stand_in(chat.nvim, module, code)
    chat.nvim.lua("vim.g.mapleader = ' '")
    chat.nvim.lua(snippet(f"codecompanion-recipe-{name}-files"))
    chat.nvim.feed(" af")
    chat.nvim.wait_for(lambda: len(chat.sent("attach")) == 2, "two files")
    assert [Path(sent["path"]).name for sent in chat.sent("attach")] == ["a.lua", "b.lua"]


def test_lualine_shows_what_the_chat_does(chat: ChatDriver) -> None:
    stand_in(chat.nvim, "lualine", "return { setup = function(o) _G.component = o.sections.lualine_x[1] end }")
    chat.nvim.lua(snippet("codecompanion-recipe-lualine"))
    chat.push(events.Meter(tokens=1000, window=4000, ratio=0.25, exact=True, edit_at=0, compact_at=0))
    assert chat.nvim.lua("return _G.component()") == "ctx 1.0k/4.0k 25%"
    stand_in(chat.nvim, "lualine", "return { setup = function(o) _G.name = o.sections.lualine_c[1] end }")
    chat.nvim.lua("package.loaded.lualine = nil")
    chat.nvim.lua(snippet("codecompanion-recipe-title"))
    assert chat.nvim.lua("return _G.name()") == "Chat"
    chat.push(events.TitleChanged(title="Fix the stack"))
    assert chat.nvim.lua("return _G.name()") == "Fix the stack"
    chat.nvim.lua(snippet("codecompanion-recipe-tabline"))
    chat.nvim.command("tabnew")
    chat.nvim.wait_screen(r"^ Fix the stack  \[No Name\]")


def test_fidget_has_a_line_while_a_turn_runs(chat: ChatDriver) -> None:
    code = """return { handle = { create = function(o)
        _G.line = o.message
        return { finish = function() _G.line = 'finished' end } end } }"""
    stand_in(chat.nvim, "fidget.progress", code)
    chat.nvim.lua(snippet("codecompanion-recipe-fidget"))
    chat.accept("go")
    assert chat.nvim.lua("return _G.line") == "answering"
    chat.push(events.TurnFinished(reason="done"))
    assert chat.nvim.lua("return _G.line") == "finished"


def test_noice_finds_our_messages(chat: ChatDriver) -> None:
    """What is said through `vim.notify` matches the route of the help."""
    stand_in(chat.nvim, "noice", "return { setup = function(o) _G.route = o.routes[1] end }")
    chat.nvim.lua(snippet("codecompanion-recipe-noice"))
    chat.nvim.lua("vim.notify = function(text) _G.said = text end; require('codecompanion.say').line('hello')")
    chat.nvim.wait_lua("return _G.said")
    assert chat.nvim.lua("return _G.said:find(_G.route.filter.find) ~= nil and _G.route.filter.event == 'notify'")


def test_render_markdown_is_told_the_filetype_of_chats(chat: ChatDriver) -> None:
    stand_in(chat.nvim, "render-markdown", "return { setup = function(o) _G.types = o.file_types end }")
    chat.nvim.lua(snippet("codecompanion-recipe-render-markdown"))
    assert chat.nvim.lua("return vim.list_contains(_G.types, vim.bo.filetype)")
    assert chat.nvim.lua("return vim.treesitter.language.get_lang(vim.bo.filetype)") == "markdown"


def test_which_key_maps_what_exists(chat: ChatDriver) -> None:
    code = """return { add = function(spec)
        for _, item in ipairs(spec) do
          if item[2] then vim.keymap.set('n', item[1], item[2], { desc = item.desc, remap = true }) end
        end end }"""
    stand_in(chat.nvim, "which-key", code)
    chat.nvim.lua("vim.g.mapleader = ' '")
    chat.nvim.lua(snippet("codecompanion-recipe-which-key"))
    chat.nvim.feed(" aa")
    chat.nvim.wait_for(lambda: "## Me" not in chat.nvim.screen(), "the hidden chat")
    chat.nvim.feed(" aa")
    chat.nvim.wait_screen("## Me")
    keys = chat.nvim.request("nvim_buf_get_keymap", 0, "n")
    assert keys
    assert all(key.get("desc") for key in keys)


def test_every_kind_of_list_is_in_the_help() -> None:
    """The kinds in the code are those of the help."""
    text = HELP.read_text(encoding="utf-8")
    found = set()
    for path in (REPO / "lua").rglob("*.lua"):
        found |= set(re.findall(r'kind = "codecompanion\.(\w+)"', path.read_text(encoding="utf-8")))
    assert {"session", "model", "buffer"} <= found
    assert [kind for kind in sorted(found) if f".{kind}`" not in text] == []
