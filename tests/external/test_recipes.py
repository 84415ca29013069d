"""The help's recipes for other plugins, run as printed with the plugins themselves.

Each needs clones of its plugins (see `neovim_plugins.py`) and is skipped with a message otherwise; fzf-lua also needs
`fzf`. Completion in blink.cmp and nvim-cmp is tested in `test_completion_plugins.py`.
"""

from __future__ import annotations

import re
import shutil
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest
from neovim_plugins import on_runtimepath
from plugin_managers import git

from approvals import ask
from chat_driver import ChatDriver, make_chat
from codecompanion.wire import events
from ghost import start as start_ghost
from harness import NO_PROVIDER, Nvim
from real_chat import KEY, start_chat
from tests.help_file import HELP, snippet
from tests.providers.chat.answers import reply
from tests.providers.chat.thread import ChatServerThread

LUALINE = "nvim-lualine+lualine.nvim"
TELESCOPE = ("nvim-lua+plenary.nvim", "nvim-telescope+telescope.nvim", "nvim-telescope+telescope-ui-select.nvim")
NOICE = ("MunifTanjim+nui.nvim", "folke+noice.nvim")
TITLE = "100% of %f and %{x}"


def recipe(name: str) -> str:
    """Return the code of a recipe."""
    return snippet(f"codecompanion-recipe-{name}")


@pytest.fixture
def start(tmp_path: Path) -> Iterator[Callable[..., ChatDriver]]:
    """Return `start(*plugins, after=…, before=…)`, which opens a chat in a Neovim with these plugins and the fake host.

    `before` is run before the first chat, as in a user's init file.
    """
    with ExitStack() as stack:

        def make(*plugins: str, before: str = "", **more: Any) -> ChatDriver:
            def nvim(init: str, **options: Any) -> Nvim:
                return stack.enter_context(Nvim(tmp_path, init=init, **options))

            return make_chat(nvim, init=on_runtimepath(*plugins) + NO_PROVIDER + before, **more)

        yield make


def test_every_plugin_that_the_help_requires_is_run_here() -> None:
    """A plugin added to the help needs a scene here."""
    found = re.findall(r'require\("([\w-]+)(?:\.\w+)*"\)', HELP.read_text(encoding="utf-8"))
    scenes = {"lualine", "snacks", "telescope", "fzf-lua", "mini", "fidget", "noice", "render-markdown", "which-key"}
    completion = {"blink", "cmp"}
    assert set(found) - {"codecompanion"} == scenes | completion


# ---- status lines


def test_lualine_shows_the_state_and_title_of_a_chat(start: Callable[..., ChatDriver]) -> None:
    """lualine displays a `%` in the meter and in the title literally; no information is shown twice."""
    chat = start(LUALINE, before=recipe("lualine"))
    chat.push(events.Meter(tokens=1000, window=4000, ratio=0.25, exact=True, edit_at=0, compact_at=0))
    chat.nvim.wait_screen(r"NORMAL .*Chat .*(Bot|All)")
    chat.push(events.TitleChanged(title=TITLE))
    screen = chat.nvim.wait_screen(rf"NORMAL .*{re.escape(TITLE)} ")
    assert screen.count("25") == 1
    chat.nvim.command("split 50\\%d.txt")
    chat.nvim.wait_screen(rf"^ {re.escape(TITLE)} ")
    chat.nvim.wait_screen(r"NORMAL .*50%d\.txt +ctx 1\.0k/4\.0k 25% ")
    assert chat.nvim.messages() == ""


BARS = {
    "heirline": (
        "rebelot+heirline.nvim",
        "require('heirline').setup({ statusline = { provider = function()"
        " return require('codecompanion').statusline() end } })\n",
    ),
    "mini.statusline": (
        "nvim-mini+mini.nvim",
        "require('mini.statusline').setup({ content = { active = function()"
        " return MiniStatusline.combine_groups({ { strings = { require('codecompanion').statusline() } } }) end } })\n",
    ),
}


@pytest.mark.parametrize("name", sorted(BARS))
def test_the_function_of_the_help_is_an_item_of_other_status_lines(start: Callable[..., ChatDriver], name: str) -> None:
    """It works unchanged in the status lines named by the help."""
    assert name in HELP.read_text(encoding="utf-8")
    mirrored, setup = BARS[name]
    chat = start(mirrored, before="vim.o.laststatus = 2\n" + setup)
    chat.push(events.Meter(tokens=1000, window=4000, ratio=0.25, exact=True, edit_at=0, compact_at=0))
    chat.nvim.wait_screen(r"^ ?ctx 1\.0k/4\.0k 25% *$")
    assert chat.nvim.messages() == ""


def test_completion_at_the_cursor_shows_its_state_in_lualine(tmp_path: Path) -> None:
    init = on_runtimepath(LUALINE) + snippet("codecompanion-complete-statusline", 2)
    with ExitStack() as stack:
        ghost = start_ghost(lambda **options: stack.enter_context(Nvim(tmp_path, **options)), init=init)
        ghost.open("a.py")
        ghost.suggest("nge(3)")
        ghost.type("ira")
        ghost.nvim.wait_screen(r"INSERT .* suggestion +")


# ---- lists and files in pickers

PICKERS = {
    "snacks": ("folke+snacks.nvim",),
    "telescope": TELESCOPE,
    "fzf-lua": ("ibhagwan+fzf-lua",),
    "mini-pick": ("nvim-mini+mini.nvim",),
}
SEVERAL = {"mini-pick": "<C-x><C-n><C-x><M-CR>"}
"""The keys that mark two files and choose them, if they differ from <Tab> twice and <CR>."""


def need(program: str) -> None:
    """Skip the test if a program that the plugin requires is missing."""
    if shutil.which(program) is None:
        pytest.skip(f"no `{program}` on the PATH")


def offer_two_chats(chat: ChatDriver) -> None:
    """Make the host return two stored chats."""
    row = {"updated": 0, "messages": 1, "cwd": "/", "owned": False}
    stored = [{"id": "s1", "title": "an apple", **row}, {"id": "s2", "title": "100% pear, %f", **row}]
    chat.answer("list_sessions", stored)


def choose_the_second(chat: ChatDriver, keys: str) -> None:
    """Open the list of chats and choose the pear with these keys, once typing has filtered out the other chat."""
    offer_two_chats(chat)
    chat.nvim.feed(":CodeCompanionChat Resume<CR>")
    chat.nvim.wait_screen("an apple")
    assert "100% pear, %f" in chat.nvim.screen()
    chat.nvim.feed(keys)
    if len(keys) > 1:
        chat.nvim.wait_for(lambda: "an apple" not in chat.nvim.screen(), "the list to be filtered")
    chat.nvim.feed("<CR>")
    chat.nvim.wait_for(lambda: len(chat.sent("open_chat")) == 2, "the chosen chat")
    assert chat.sent("open_chat")[1]["resume"] == "s2"


@pytest.mark.parametrize("name", sorted(PICKERS))
def test_a_chat_is_chosen_in_a_picker(start: Callable[..., ChatDriver], name: str) -> None:
    if name == "fzf-lua":
        need("fzf")
    choose_the_second(start(*PICKERS[name], before=recipe(name)), "pear")


def test_a_chat_is_chosen_in_dressing(start: Callable[..., ChatDriver]) -> None:
    """The help says that dressing needs no configuration."""
    assert "dressing.nvim shows the lists" in HELP.read_text(encoding="utf-8")
    choose_the_second(start("stevearc+dressing.nvim"), "j")


@pytest.mark.parametrize("layout", ["buffer", "vertical"])
@pytest.mark.parametrize("name", sorted(PICKERS))
def test_several_files_are_attached_from_a_picker(
    start: Callable[..., ChatDriver], tmp_path: Path, name: str, layout: str
) -> None:
    """If the chat is hidden while a file is edited, it is shown in its own window, not in the picker's."""
    if name == "fzf-lua":
        need("fzf")
    files = recipe(f"{name}-files")
    options = {"display": {"chat": {"window": {"layout": layout}}}}
    before = "vim.g.mapleader = ' '\n" + recipe(name) + files
    chat = start(*PICKERS[name], before=before, options=options)
    for file in ("a.lua", "b.lua"):
        (tmp_path / "work" / file).write_text("return 1\n")
    git(tmp_path / "work", "init", "-q")
    git(tmp_path / "work", "add", "-A")
    chat.nvim.command("CodeCompanionChat Toggle")
    chat.nvim.feed(" af")
    chat.nvim.wait_for(lambda: all(name in chat.nvim.screen() for name in ("a.lua", "b.lua")), "the files")
    chat.nvim.feed(SEVERAL.get(name, "<Tab><Tab><CR>"))
    chat.nvim.wait_for(lambda: len(chat.sent("attach")) == 2, "two files")
    assert sorted(Path(sent["path"]).name for sent in chat.sent("attach")) == ["a.lua", "b.lua"]
    chat.nvim.wait_screen("## Me")
    assert chat.nvim.lua("return vim.bo.filetype") == "codecompanion"
    assert chat.nvim.lua("return vim.api.nvim_win_get_config(0).relative") == ""


# ---- messages and questions

LONG = "Install failed: cannot write to the folder of the environment, which belongs to somebody else on this machine."


def test_noice_shows_each_message_once_and_complete(start: Callable[..., ChatDriver]) -> None:
    chat = start(*NOICE, before=recipe("noice"), size=(80, 24))
    chat.nvim.lua("require('codecompanion.say').line(...)", LONG)
    screen = chat.nvim.wait_screen("Install failed")
    assert f"codecompanion: {LONG}" in " ".join(screen.replace("~", " ").split())
    assert screen.count("Install") == screen.count("codecompanion:") == 1
    assert chat.nvim.lua("return #require('noice.message.manager').get({ event = 'notify' }, { history = true })") == 1


def test_a_question_for_text_is_answered_in_noice(start: Callable[..., ChatDriver]) -> None:
    """The new name of a chat and the reason for a rejection are entered in noice's own window."""
    chat = start(*NOICE, before=recipe("noice"), size=(80, 24))
    ask(chat)
    chat.nvim.feed("]ag3")
    chat.nvim.wait_screen("╭─+ Reason")
    chat.nvim.feed("not that<CR>")
    chat.nvim.wait_for(lambda: chat.sent("approve"), "the answer")
    assert [(one["decision"], one["reason"]) for one in chat.sent("approve")] == [("reject", "not that")]
    offer_two_chats(chat)
    chat.answer("rename_session", True)
    chat.nvim.feed(":CodeCompanionChat Resume<CR>")
    chat.nvim.wait_screen("an apple")
    chat.nvim.feed("r")
    chat.nvim.wait_screen("╭─+ .*itle")
    chat.nvim.feed("<C-u>a plum<CR>")
    chat.nvim.wait_for(lambda: chat.sent("rename_session"), "the new name")
    assert chat.sent("rename_session")[0]["title"] == "a plum"


def test_a_one_key_question_is_answered_with_noice_enabled(start: Callable[..., ChatDriver]) -> None:
    chat = start(*NOICE, before=recipe("noice"), size=(80, 24))
    offer_two_chats(chat)
    chat.answer("delete_session", True)
    chat.nvim.feed(":CodeCompanionChat Resume<CR>")
    chat.nvim.wait_screen("an apple")
    chat.nvim.feed("d")
    chat.nvim.wait_screen(r"\[y\]es")
    chat.nvim.feed("y")
    chat.nvim.wait_for(lambda: chat.sent("delete_session"), "the answer")


def test_nvim_notify_shows_a_complete_message(start: Callable[..., ChatDriver]) -> None:
    """nvim-notify cuts off lines that are too long, so the message is wrapped."""
    before = "vim.notify = require('notify')\nvim.notify.setup({ stages = 'static' })\n"
    chat = start("rcarriga+nvim-notify", before=before, size=(80, 24))
    chat.nvim.lua("require('codecompanion.say').line(...)", LONG)
    screen = chat.nvim.wait_screen("Install failed")
    rows = [row.rpartition("│")[0].rpartition("│")[2] for row in screen.split("\n")]
    assert f"codecompanion: {LONG}" in " ".join(" ".join(rows).split())


def test_fidget_shows_a_line_during_a_turn(start: Callable[..., ChatDriver]) -> None:
    chat = start("j-hui+fidget.nvim", before="require('fidget').setup({})\n" + recipe("fidget"))
    chat.accept("go")
    chat.nvim.wait_screen("answering CodeCompanion")
    chat.push(events.TurnFinished(reason="done"))
    chat.nvim.wait_screen("Completed|✔")


# ---- keys

SHOWN_KEYS = {"g": ["Revert the file change", "Show the system prompt"], "]": ["Next header"], "[": ["Previous header"]}


def test_which_key_describes_the_keys_of_a_chat(start: Callable[..., ChatDriver]) -> None:
    before = "vim.g.mapleader = ' '\nvim.o.timeoutlen = 50\n" + recipe("which-key")
    chat = start("folke+which-key.nvim", before=before, size=(100, 50))
    for key, texts in SHOWN_KEYS.items():
        chat.nvim.feed(key)
        for text in texts:
            chat.nvim.wait_screen(re.escape(text))
        chat.nvim.feed("<Esc>")
        chat.nvim.wait_for(lambda texts=texts: texts[0] not in chat.nvim.screen(), "the closed list")
    chat.nvim.feed(" ")
    chat.nvim.wait_screen(r"\+CodeCompanion")
    chat.nvim.feed("a")
    chat.nvim.wait_screen("r .*Resume")
    chat.nvim.feed("a")
    chat.nvim.wait_for(lambda: "## Me" not in chat.nvim.screen(), "the hidden chat")
    chat.nvim.feed(" aa")
    chat.nvim.wait_screen("## Me")


# ---- the text of a chat, and signs beside an edit

REPLY = "# A heading\n\nSome **bold** words.\n\n- one\n- [ ] two\n\n| a | b |\n|---|---|\n| 1 | 2 |\n"


def test_render_markdown_renders_a_complete_reply(start: Callable[..., ChatDriver]) -> None:
    """It is rendered without a keypress, although its end follows the previous chunk at once.

    Our own decorations stay.
    """
    chat = start("MeanderingProgrammer+render-markdown.nvim", before=recipe("render-markdown"))
    chat.accept("show me")
    start_of_reply, table, rest = REPLY.partition("| a")
    chat.push(events.ReplyStarted(adapter="openai", model="gpt-4o"), events.Text(text=start_of_reply))
    chat.nvim.wait_screen("󰲣 CodeCompanion")
    chat.push(events.Text(text=table))
    chat.push(events.Text(text=rest), events.ReplyFinished(message_id="r", stop="stop"))
    chat.push(events.TurnFinished(reason="done"))
    chat.nvim.wait_screen("┌───┬───┐\n│ a │ b │")
    chat.nvim.wait_screen("● one")
    screen = chat.nvim.wait_screen(r"󰲣 CodeCompanion \(openai · gpt-4o\)")
    assert screen.count("󰲣 Me") == 2
    assert "##" not in screen
    assert "Some bold words." in screen
    assert screen.count("show me") == 1
    assert "<CR> send · g? help" in screen
    assert chat.nvim.messages() == ""


SIGNS = {
    "mini.diff": ("nvim-mini+mini.nvim", "require('mini.diff').setup()\n", "▒"),
    "gitsigns": ("lewis6991+gitsigns.nvim", "require('gitsigns').setup()\n", "┃"),
}
SHOP = (
    "import sys\n\n\ndef total(items):\n    result = 0\n    return result\n\n\ndef tax(value):\n    return value / 5\n"
)
CHANGED = "```python\ndef total(items, start=0):\n    result = start\n    return result\n```\n"


@pytest.mark.parametrize("name", sorted(SIGNS))
def test_signs_of_a_diff_plugin_show_an_edit_once_it_is_accepted(tmp_path: Path, name: str) -> None:
    """The proposal is not part of the text, and the sign of the user's own change keeps its place."""
    mirrored, setup, sign = SIGNS[name]
    init = on_runtimepath(mirrored) + setup
    with ExitStack() as stack:

        def factory(init: str = "", _before: str = init, **options: Any) -> Nvim:
            return stack.enter_context(Nvim(init=_before + init, **options))

        server = stack.enter_context(ChatServerThread([reply(CHANGED)], key=KEY))
        chat = start_chat(factory, tmp_path, server, files=[("shop.py", SHOP)], opened=False)
        work = tmp_path / "work"
        git(work, "init", "-q")
        git(work, "add", "-A")
        git(work, "commit", "-q", "-m", "feat: shop")
        (work / "shop.py").write_text(SHOP.replace("/ 5", "/ 6"))
        chat.nvim.command("set number | edit shop.py")
        chat.nvim.wait_screen(rf"^{sign} +10 .*/ 6")
        chat.nvim.feed(":4,6CodeCompanion let it begin anywhere<CR>")
        chat.nvim.wait_screen(r"\+ def total\(items, start=0\):")
        screen = chat.nvim.wait_screen(r"\S+ accept")
        assert signed(screen, sign) == [10]
        accept = re.search(r"(\S+) accept", screen)
        assert accept
        chat.nvim.feed(accept[1])
        chat.nvim.wait_for(lambda: signed(chat.nvim.screen(), sign) == [4, 5, 10], "the signs")


def signed(screen: str, sign: str) -> list[int]:
    """Return the numbers of the lines with a sign."""
    return [int(number) for number in re.findall(rf"^{sign} +(\d+) ", screen, re.MULTILINE)]
