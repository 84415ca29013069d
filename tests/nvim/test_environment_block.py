"""The environment block of the system prompt, from the user's Neovim to the wire."""

from __future__ import annotations

from typing import Any

from real_chat import KEY, RealChat, start_chat
from tests.providers.chat.answers import reply
from tests.providers.chat.thread import ChatServerThread

FILES = [(".git/HEAD", "ref: refs/heads/fix/slices\n")]


def system_prompts(server: ChatServerThread) -> list[str]:
    """Return the system prompt of each request to the server."""
    bodies = [r.json["messages"] for r in server.requests if r.path.endswith("/chat/completions")]
    return [body[0]["content"] for body in bodies]


def chat_opts(**opts: Any) -> dict[str, Any]:
    return {"interactions": {"chat": {"opts": opts}}}


def ask_twice(chat: RealChat) -> None:
    chat.say("first")
    chat.say("second")


def test_the_model_knows_its_environment_and_gs_shows_the_prompt(nvim_factory: Any, tmp_path: Any) -> None:
    with ChatServerThread([reply("One."), reply("Two.")], key=KEY) as server:
        env = {"LC_ALL": "de_DE.UTF-8"}
        chat = start_chat(nvim_factory, tmp_path, server, files=FILES, env=env, size=(100, 40))
        ask_twice(chat)
        first, second = system_prompts(server)
        assert first == second, "the prompt cache lives on"
        block = first[first.index("The user's environment:") :]
        version = chat.nvim.lua("local v = vim.version(); return ('%d.%d.%d'):format(v.major, v.minor, v.patch)")
        date = chat.nvim.lua("return os.date('%Y-%m-%d')")
        shell = chat.nvim.lua("return vim.fs.basename(vim.o.shell)")
        for line in (
            f"- Shell: {shell} (tools run commands in sh)",
            f"- Working folder: `{tmp_path / 'work'}`",
            "- Git branch: `fix/slices`",
            f"- Date: {date}",
            "- Language: de_DE",
            f"- Editor: Neovim {version}",
        ):
            assert line in block.split("\n")
        chat.nvim.feed("gs")
        assert "Git branch: `fix/slices`" in chat.nvim.wait_screen("The user's environment:")


def test_the_option_disables_the_block(nvim_factory: Any, tmp_path: Any) -> None:
    with ChatServerThread([reply("One."), reply("Two.")], key=KEY) as server:
        chat = start_chat(nvim_factory, tmp_path, server, files=FILES, options=chat_opts(tell_environment=False))
        ask_twice(chat)
        assert not any("environment" in prompt or "fix/slices" in prompt for prompt in system_prompts(server))


def test_the_block_follows_a_users_own_system_prompt(nvim_factory: Any, tmp_path: Any) -> None:
    with ChatServerThread([reply("One.")], key=KEY) as server:
        chat = start_chat(nvim_factory, tmp_path, server, files=FILES, options=chat_opts(system_prompt="Be a pirate."))
        chat.say("first")
        [prompt] = system_prompts(server)
        assert prompt.startswith("Be a pirate.\n\nThe user's environment:\n")
