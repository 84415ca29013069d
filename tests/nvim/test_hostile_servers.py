"""Hostile text from MCP servers and project prompts on the screen: nothing hidden, nothing run, nothing broken."""

from __future__ import annotations

import json
import re
import sys
import unicodedata
from pathlib import Path

from real_chat import KEY, RealChat, start_chat
from test_prompt_library import messages, start
from tests.faults.hostile_texts import OUTSIDE, TEXTS
from tests.mcp.listener import HOSTILE
from tests.providers.chat.answers import Call, reply
from tests.providers.chat.thread import ChatServerThread

SECRET = "the-secret-of-another-folder"
EVERYTHING = "\n".join(reversed(TEXTS.values()))


def hidden(screen: str) -> set[str]:
    """Return control sequences that a terminal would run, and characters that reorder or hide text."""
    odd = {letter for letter in screen if unicodedata.category(letter) in ("Cc", "Cf")}
    return odd - {"\n"}


def check(chat: RealChat, pattern: str) -> str:
    screen = chat.nvim.wait_screen(pattern)
    assert hidden(screen) == set(), screen
    return screen


def outline(chat: RealChat) -> list[str]:
    """Return the roles of the chat, as shown in its buffer outside folds and fences."""
    return [line for line in chat.nvim.lines() if re.match(r"## (Me|CodeCompanion)", line)]


def test_a_servers_text_is_shown_and_has_no_effect(nvim_factory, tmp_path):
    """The server's page, log, tool list, approval, form and result all contain the hostile text."""
    (tmp_path / "text").write_bytes(EVERYTHING.encode())
    (tmp_path / "secret.txt").write_text(SECRET)
    entry = {"cmd": [sys.executable, str(HOSTILE), "text"], "env": {"TEXT": str(tmp_path / "text")}}
    asks = [reply(calls=[Call(f"odd__{name}", json.dumps({"text": EVERYTHING}), name)]) for name in ("echo", "ask")]
    with ChatServerThread([*asks, reply("It is a text."), reply("Still.")], key=KEY) as server:
        options = {"mcp": {"servers": {"odd": entry}}}
        chat = start_chat(nvim_factory, tmp_path, server, options=options, size=(110, 45))
        chat.send("what is this?")
        check(chat, r"echo of the MCP server")
        chat.press_on_approval("g2")
        check(chat, r"ask of the MCP server")
        chat.press_on_approval("g2")
        check(chat, r"asks you to enter values")
        assert "1. Me" not in chat.text()
        chat.press_on_approval("g2")
        check(chat, r"2 in all\):")
        chat.nvim.feed("<Esc>")
        chat.press_on_approval("g3")
        check(chat, r"It is a text\.")
        chat.wait_state("idle")
        chat.nvim.command("CodeCompanion mcp")
        check(chat, r"odd · ready · 3 of 3 tools")
        chat.nvim.feed("K")
        check(chat, r"Output of odd")
        chat.nvim.feed("qq")
        chat.send("/tools")
        check(chat, r"mcp:odd +[\d.k]+ tokens")
        chat.nvim.feed("q")
        chat.say("and now?")
        check(chat, r"Still\.")
        assert [line.split()[1] for line in outline(chat)] == ["Me", "CodeCompanion"] * 2 + ["Me"]
        names = chat.nvim.lua(
            "return vim.tbl_map(function(c) return c.name end, require('codecompanion.chat.slash').list())"
        )
        assert all(re.fullmatch(r"[\w:-]+", name) for name in names), names
        assert chat.nvim.lua("return require('codecompanion.chat').current().yolo") is False
        assert SECRET not in json.dumps([one.json for one in server.requests if one.json])
        assert not list(tmp_path.rglob("ran"))
        assert not chat.nvim.blocked()


def prompt(text: str, number: int) -> str:
    """Return a prompt file with the text in its front matter and its body."""
    written = json.dumps(re.sub(r"[\x00-\x1f\x7f-\x9f\u2028\ufeff]", " ", text))
    return (
        f"---\nname: {written}\ndescription: {written}\nopts:\n  alias: p{number}\n  auto_submit: true\n"
        f"  adapter: {written}\n---\n{text}\n"
    )


def test_a_projects_prompts_are_shown_and_have_no_effect(nvim_factory, tmp_path: Path):
    """Each text is used as name, description and body.

    It is readable in the input before sending, and nothing is chosen or accepted.
    """
    project = [(f"p{number}.md", prompt(text, number)) for number, text in enumerate(TEXTS.values())]
    with ChatServerThread([reply("Seen.")] * 2 * len(TEXTS), key=KEY) as server:
        chat = start(nvim_factory, tmp_path, server, project=project, size=(110, 45))
        (tmp_path / "secret.txt").write_text(SECRET)
        nvim = chat.nvim
        chat.open()
        chat.say("hello")
        nvim.command("CodeCompanion trust")
        check(chat, r"14 files \(·\) not loaded until you trust")
        nvim.feed("q")
        chat.trust()
        offered = [tool["function"]["name"] for tool in server.requests[-1].json["tools"]]
        for number, (name, text) in enumerate(TEXTS.items()):
            sent = len(server.requests)
            nvim.command(f"CodeCompanion /p{number}")
            nvim.wait_for(lambda: chat.draft().strip(), f"the text of {name}")
            draft = chat.draft()
            assert "@{" not in draft, name
            assert not draft.startswith("/"), name
            assert "#{file:../" not in draft, name
            assert "#{mcp:" not in draft, name
            assert len(server.requests) == sent, f"{name} was sent by itself"
            if name == "mentions":  # of a difference, which this folder has none of
                nvim.feed("<Esc>Gcc<Esc>")
                continue
            nvim.feed("<Esc><CR>")
            nvim.wait_for(
                lambda sent=sent: len(server.requests) > sent and chat.state() == "idle", f"a reply to {name}"
            )
            assert [tool["function"]["name"] for tool in server.requests[-1].json["tools"]] == offered, name
            assert messages(server)[-1] == ("user", draft), name
            assert re.sub(r"\W", "", text) == re.sub(r"\W", "", draft), name
        assert SECRET not in json.dumps([one.json for one in server.requests if one.json])
        assert OUTSIDE in json.dumps(messages(server, 1))
        assert not list(tmp_path.rglob("ran"))
        assert nvim.lua("return require('codecompanion.chat').current().yolo") is False
