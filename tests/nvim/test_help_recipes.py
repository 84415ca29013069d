"""The help's recipes for Neovim alone, run as printed: four tasks done with the help alone, and the bars.

Recipes for other plugins are run with the plugins themselves in `tests/external/test_recipes.py`.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path

import pytest

from approvals import ask
from chat_driver import ChatDriver, make_chat
from codecompanion.model.history import ViewChanged
from codecompanion.wire import events
from harness import REPO, Nvim
from real_chat import COUNT_TURNS, KEY, RealChat, init_lua, start_chat
from tests.help_file import HELP, snippet
from tests.providers.chat.answers import Call, reply
from tests.providers.chat.thread import ChatServerThread
from tests.summaries import nine_sections

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


# ---- four tasks done from the help alone


def test_the_send_key_can_be_changed(nvim_factory: Callable[..., Nvim]) -> None:
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


@pytest.mark.slow("fills the windows of two real chats")
@pytest.mark.parametrize("automatic", [True, False])
def test_automatic_compaction_can_be_disabled(nvim_factory, tmp_path, automatic) -> None:
    """In the same chat, a summary is requested without the snippet but not with it."""
    window = 8_000

    def answer(received):
        if "nine headings" in str(received.json["messages"][0]["content"])[:3000]:
            return reply(nine_sections("Talk."))
        return reply("Words about it. " * 150)

    management = {"context_management": {"compaction": {"min_token_savings": 100}}}
    # A small window offers fewer tools by default.
    tools = {"opts": {"default_tools": ["full"]}}
    options = {"interactions": {"chat": {"opts": management, "tools": tools}}}
    with ChatServerThread(key=KEY, default=answer) as server:
        init = MERGED_SETUP + init_lua(server.url, options, {"context_window": window})
        init += "" if automatic else snippet("codecompanion-task-no-compaction")
        chat = RealChat(nvim_factory(root=tmp_path, init=init + COUNT_TURNS, env={"LOOP_KEY": KEY}), tmp_path)
        chat.open()
        for number in range(8):
            chat.say(f"question {number} " + "with some words " * 60)
        compacted = [e for e in chat.log() if isinstance(e.payload, ViewChanged) and e.payload.kind == "compacted"]
        assert bool(compacted) is automatic


def test_a_local_ollama_is_used(nvim_factory, tmp_path) -> None:
    """The default URL in the help is replaced by that of the test server."""
    with ChatServerThread([reply("Hello from the llama.")], key="", models=("qwen3:14b",)) as server:
        code = snippet("codecompanion-task-ollama")
        assert "http://localhost:11434" in code
        code = code.replace("http://localhost:11434", server.url.removesuffix("/v1"))
        init = MERGED_SETUP + init_lua(server.url) + code
        chat = RealChat(nvim_factory(root=tmp_path, init=init + COUNT_TURNS), tmp_path)
        chat.open()
        chat.say("hello")
        assert "Hello from the llama." in chat.text()
        sent = [request.json for request in server.requests if request.path.endswith("/chat/completions")]
        assert sent[0]["model"] == "qwen3:14b"
        assert chat.nvim.lua("return vim.b.codecompanion_chat.meter.window") == 32_768


def test_the_models_changes_are_reverted(nvim_factory, tmp_path) -> None:
    """Both the command and the key in the help work."""
    edit = Call("insert_edit", '{"path": "a.txt", "old_text": "one", "new_text": "two"}', id="call_1")
    tools = {"interactions": {"chat": {"tools": {"insert_edit": {"opts": {"require_approval_before": False}}}}}}
    with ChatServerThread([reply(calls=[edit]), reply("Done.")], key=KEY) as server:
        chat = start_chat(nvim_factory, tmp_path, server, options=tools, files=[("a.txt", "one\n")])
        chat.say("change it")
        path = tmp_path / "work" / "a.txt"
        assert path.read_text() == "two\n"
        chat.nvim.command(snippet("codecompanion-task-revert").strip().removeprefix(":"))
        chat.nvim.wait_for(lambda: path.read_text() == "one\n", "the file as it was")


# ---- status line and tab line

TITLE = "100% of %f"


def test_a_status_line_shows_the_state_of_the_chat(chat: ChatDriver) -> None:
    """A `%` is escaped in the meter and in the title of another waiting chat."""
    chat.nvim.lua(snippet("codecompanion-recipe-statusline"))
    chat.push(
        events.Meter(tokens=1000, window=4000, ratio=0.25, exact=True, edit_at=0, compact_at=0),
        events.TitleChanged(title=TITLE),
    )
    chat.nvim.command("enew")
    chat.nvim.wait_screen(r"\[No Name\] +ctx 1\.0k/4\.0k 25% 0:0")
    ask(chat)
    chat.open()
    chat.nvim.wait_screen(rf"“{re.escape(TITLE)}” is waiting for your approval")


def test_lualines_component_argument_is_not_used_as_a_buffer(chat: ChatDriver) -> None:
    chat.push(events.Meter(tokens=1000, window=4000, ratio=0.25, exact=True, edit_at=0, compact_at=0))
    assert chat.nvim.lua("return require('codecompanion').statusline({}, true)") == "ctx 1.0k/4.0k 25%%"
    assert chat.nvim.lua("return require('codecompanion').statusline(9999)") == ""


def test_the_tab_line_names_chats(chat: ChatDriver) -> None:
    chat.push(events.TitleChanged(title=TITLE))
    chat.nvim.lua(snippet("codecompanion-recipe-tabline"))
    chat.nvim.command("tabnew")
    chat.nvim.wait_screen(rf"^ {re.escape(TITLE)}  \[No Name\]")


# ---- notification plugins


def test_a_notification_plugin_may_be_a_table_and_gets_lines_that_fit(chat: ChatDriver) -> None:
    """A table such as nvim-notify's works; the name appears once, and a long message is broken between words."""
    chat.nvim.lua(
        "_G.said = {}; vim.notify = setmetatable({}, { __call = function(_, ...) table.insert(_G.said, { ... }) end })"
    )
    words = " ".join(f"word{number}" for number in range(40))
    chat.nvim.lua("require('codecompanion.say').line(...)", words)
    ((text, _, *more),) = chat.nvim.wait_lua("return #_G.said > 0 and _G.said")
    assert text.replace("\n", " ") == f"codecompanion: {words}"
    assert max(map(len, text.split("\n"))) <= 88
    assert not any("title" in options for options in more if options)


def test_every_recipe_of_the_help_is_run() -> None:
    """Each recipe is run here, or in `tests/external/test_recipes.py` for other plugins."""
    written = Path(__file__).read_text(encoding="utf-8")
    written += (REPO / "tests" / "external" / "test_recipes.py").read_text(encoding="utf-8")
    names = re.findall(r"\*codecompanion-recipe-([\w-]+)\*", HELP.read_text(encoding="utf-8"))
    assert "lualine" in names
    run = set(re.findall(r'"(?:codecompanion-recipe-)?([\w-]+)"', written))
    assert [name for name in names if name.removesuffix("-files") not in run] == []


# ---- lists


def test_every_list_kind_is_in_the_help() -> None:
    """The kinds in the code match those in the help."""
    text = HELP.read_text(encoding="utf-8")
    found = set()
    for path in (REPO / "lua").rglob("*.lua"):
        found |= set(re.findall(r'kind = "codecompanion\.(\w+)"', path.read_text(encoding="utf-8")))
    assert {"session", "model", "buffer"} <= found
    assert [kind for kind in sorted(found) if f".{kind}`" not in text] == []
