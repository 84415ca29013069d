"""A user's own strategies and policy files, end to end: the help's snippets, and mistakes with file and line."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path

from harness import Nvim
from real_chat import KEY, RealChat, start_chat
from test_help_recipes import HELP
from test_own_tools import LAID_OVER
from tests.providers.chat.answers import reply
from tests.providers.chat.thread import ChatServerThread

Factory = Callable[..., Nvim]


def block_after(tag: str, kind: str) -> str:
    """Return the first code block of a kind after a tag of the help."""
    text = HELP.read_text(encoding="utf-8")
    match = re.search(rf"\*{tag}\*.*?>{kind}\n(.*?)^<", text, re.MULTILINE | re.DOTALL)
    assert match
    return "\n".join(line.removeprefix("    ") for line in match[1].strip("\n").splitlines()) + "\n"


def laid_out(nvim_factory: Factory, root: Path, server: ChatServerThread, policy: str) -> RealChat:
    """Return a Neovim with the strategy and the policy in its configuration folder."""
    chat = start_chat(nvim_factory, root, server, opened=False)
    folder = Path(chat.nvim.lua("return vim.fn.stdpath('config')"))
    (folder / "codecompanion" / "policies").mkdir(parents=True)
    (folder / "context.py").write_text(block_after("codecompanion-own-strategies", "python"), encoding="utf-8")
    (folder / "codecompanion" / "policies" / "mine.toml").write_text(policy, encoding="utf-8")
    chat.nvim.lua(LAID_OVER + block_after("codecompanion-own-strategies", "lua"))
    chat.open()
    return chat


def test_the_strategy_and_the_policy_of_the_help_manage_a_chat(nvim_factory: Factory, tmp_path: Path) -> None:
    policy = block_after("codecompanion-policy-files", "toml").replace("{ at = 0.5 }", "{ always = true }")
    with ChatServerThread([reply("word " * 300), reply("two"), reply("three")], key=KEY) as server:
        chat = laid_out(nvim_factory, tmp_path, server, policy)
        chat.say("one")
        chat.say("two")
        sent = server.requests[-1].json["messages"]
        assert [len(m["content"]) for m in sent if m["role"] == "assistant"] == [500]
        assert chat.nvim.lua("return require('codecompanion.config').findings().problems") == []


def test_a_mistake_in_a_policy_file_is_reported_with_file_and_line(nvim_factory: Factory, tmp_path: Path) -> None:
    policy = block_after("codecompanion-policy-files", "toml").replace("shorten_replies", "shorten_replys")
    with ChatServerThread([reply("ok")], key=KEY) as server:
        chat = laid_out(nvim_factory, tmp_path, server, policy)
        chat.say("hello")
        (problem,) = chat.nvim.lua("return require('codecompanion.config').findings().problems")
        assert "codecompanion/policies/mine.toml, line 7: stage[1].step" in problem
        assert problem.endswith("Policy codecompanion is used instead.")


def test_a_project_cannot_provide_policies(nvim_factory: Factory, tmp_path: Path) -> None:
    """Its folder is not searched, whatever its name."""
    files = [(f"{folder}/policies/theirs.toml", "extends = 'codecompanion'\n") for folder in (".", "codecompanion")]
    with ChatServerThread([reply("ok")], key=KEY) as server:
        chat = start_chat(nvim_factory, tmp_path, server, files=files)
        chat.send("/policy theirs")
        chat.nvim.wait_screen("no policy 'theirs'")
