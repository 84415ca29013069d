"""Mistakes in the user's prompts, slash commands, editor context and system prompt are listed in one place."""

from __future__ import annotations

from harness import lua_string
from real_chat import KEY
from test_prompt_library import start
from tests.providers.chat.answers import reply
from tests.providers.chat.thread import ChatServerThread

MINE = (
    "---\nname: Mine\nopts:\n  alias: mine\n  auto_summit: true\nparameters: [who]\n---\n"
    "For ${parameters.who}, ${file.fn}, ${context.filname}, ${HOME}, ${argument}: ${parameters.wo}\n"
)
BROKEN = "---\nname: [1\n---\nx\n"
SETUP = """
local options = require('codecompanion.config').user
require('codecompanion').setup(vim.tbl_deep_extend('force', options, {
  interactions = { chat = {
    opts = { system_prompt = 'Be kind. ${default_system_promt} ${HOME}' },
    slash_commands = { bad = { callback = function() error('no luck', 0) end } },
    editor_context = { worse = { callback = function() error('no chance', 0) end } },
  } },
  prompt_library = {
    Own = { prompts = { { role = 'user', content = 'See ${utils.fn}.' } } },
    Raising = {
      opts = { alias = 'raising' },
      prompts = { { role = 'user', content = function() error('oh', 0) end } },
    },
  },
}))
"""


def test_all_mistakes_are_listed_and_each_is_reported_where_it_occurs(nvim_factory, tmp_path):
    with ChatServerThread([reply("Seen.")], key=KEY) as server:
        mine = [("mine.md", MINE), ("broken.md", BROKEN)]
        chat = start(nvim_factory, tmp_path, server, mine=mine, lua=SETUP, size=(160, 50))
        nvim = chat.nvim
        nvim.command("CodeCompanion /raising")
        nvim.wait_for(lambda: "The prompt Raising failed: oh" in nvim.messages(), "the sentence")
        chat.open()
        for typed, said in (("/bad", "/bad failed: no luck"), ("see #{worse}", "its callback failed: no chance")):
            chat.send(typed)
            nvim.wait_for(lambda said=said: said in " ".join(chat.text().split()), said)
            nvim.lua("require('codecompanion.chat.wire.draft').take(require('codecompanion.chat').current())")
        nvim.command("CodeCompanion problems")
        nvim.wait_screen("problems? in")
        shown = nvim.lua("return table.concat(vim.api.nvim_buf_get_lines(0, 0, -1, false), '\\n')")
        expected = "expected ${arguments}, ${parameters.…} or ${context.…}."
        for one in (
            f'prompt_library["Own"]: ${{utils.fn}} is not a placeholder and is left as it is; {expected}',
            f"mine.md: ${{file.fn}} is not a placeholder and is left as it is; {expected}",
            "mine.md: ${context.filname} is not a placeholder and is left as it is; did you mean ${context.filename}?",
            "mine.md: ${argument} is not a placeholder and is left as it is; did you mean ${arguments}?",
            "mine.md: ${parameters.wo} is not a placeholder and is left as it is; did you mean ${parameters.who}?",
            "mine.md:5: unknown key `opts.auto_summit`.",
            "interactions.chat.opts.system_prompt: ${default_system_promt} is not a placeholder here and is left",
            "interactions.chat.slash_commands.bad: it failed: no luck",
            "interactions.chat.editor_context.worse: its callback failed: no chance",
            "The prompt Raising failed: oh",
            "broken.md:",
        ):
            assert one in shown, one
        assert "${HOME} stands" not in shown
        nvim.feed("q")
        nvim.command("checkhealth codecompanion")
        nvim.wait_screen("mine.md")
        health = nvim.lua("return table.concat(vim.api.nvim_buf_get_lines(0, 0, -1, false), '\\n')")
        assert "${file.fn} is not a placeholder" in health
        assert "its callback failed: no chance" in health
        nvim.command("bwipe")
        nvim.lua(f"require('codecompanion').prompt({lua_string('mine')}, 'me')")
        nvim.wait_for(lambda: "${file.fn} is not a placeholder" in " ".join(chat.text().split()), "named when used")
