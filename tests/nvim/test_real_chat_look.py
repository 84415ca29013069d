"""Details that a demanding user checks, with the real host: cursor positions, names, layout."""

from __future__ import annotations

import re

import msgspec
import pytest

from codecompanion.wire import events
from real_chat import KEY, start_chat
from tests.providers.chat.answers import reply, silence
from tests.providers.chat.thread import ChatServerThread
from tests.summaries import nine_sections


@pytest.mark.parametrize("layout", ["horizontal", "vertical", "float"])
def test_closing_the_inspector_returns_the_cursor_to_the_chat(nvim_factory, tmp_path, layout):
    """The inspector covers a floating chat, its sum matches the meter, and `q` never leads to another window."""
    with ChatServerThread(key=KEY) as server:
        options = {"display": {"chat": {"window": {"layout": layout}}}}
        chat = start_chat(nvim_factory, tmp_path, server, options=options, size=(80, 30))
        chat.say("hello")
        chat.nvim.feed("<Esc>gd")
        screen = chat.nvim.wait_screen(r"# ~?[\d.k]+ of 128k tokens \([01] %\), 3 messages")
        total = re.search(r"# (~?[\d.k]+) of", screen)
        assert total
        rows = "\n".join(chat.nvim.lines())
        assert total[1].lstrip("~") + "  sum" in rows
        chat.nvim.feed("q")
        assert chat.nvim.lua("return vim.bo.filetype") == "codecompanion"
        assert f" {total[1].lstrip('~')}/128.0k" in chat.nvim.lua("return require('codecompanion').statusline()")


def test_the_inspector_shows_earlier_requests(nvim_factory, tmp_path):
    """R-328: `[` shows each request as it was sent, `b` its body, and `]` goes to the next one."""
    with ChatServerThread(key=KEY) as server:
        chat = start_chat(nvim_factory, tmp_path, server, size=(120, 40))
        chat.say("hello")
        chat.say("and again")
        sent = [one.body for one in server.requests if one.method == "POST"]
        chat.nvim.feed("<Esc>gd")
        chat.nvim.wait_screen(r"╭ Next request ─[^§]*# .*, 5 messages \+ tools")
        chat.nvim.feed("[")
        chat.nvim.wait_screen(r"╭ Sent request 2 of 2 · turn-2 ─[^§]*# .*, 4 messages")
        chat.nvim.feed("[[")
        chat.nvim.wait_screen(r"╭ Sent request 1 of 2 · turn-1 ─[^§]*# .*, 2 messages")
        chat.nvim.feed("6G<CR>")
        chat.nvim.wait_screen(r"╭ user ")
        chat.nvim.feed("qb")
        chat.nvim.wait_screen('"messages": ')
        shown = "\n".join(chat.nvim.lines())
        assert msgspec.json.format(shown.encode(), indent=-1) == sent[0]
        chat.nvim.feed("q]")
        chat.nvim.wait_screen(r"Sent request 2 of 2")
        chat.nvim.feed("]")
        chat.nvim.wait_screen(r"╭ Next request ")


def test_the_inspector_shows_the_request_for_a_summary(nvim_factory, tmp_path):
    """R-328: its title is its purpose, its text and body can be read, and nothing can be changed from there."""
    usage = {"prompt_tokens": 1234, "completion_tokens": 9}
    script = [reply("The port is 8089. " * 200), reply(nine_sections("The port is 8089."), usage=usage)]
    with ChatServerThread(script, key=KEY) as server:
        chat = start_chat(nvim_factory, tmp_path, server, size=(100, 30))
        chat.say("which port?")
        chat.send("/compact")
        chat.nvim.wait_screen(r"Compact now\?")
        chat.nvim.feed("y")
        chat.nvim.wait_screen("▎ Summary ")
        chat.nvim.wait_lua("return vim.b.codecompanion_chat.state == 'idle'")
        asked = server.requests[-1]
        chat.nvim.feed("<Esc>gd")
        chat.nvim.wait_screen(r"╭ Next request ")
        chat.nvim.feed("[")
        screen = chat.nvim.wait_screen(r"╭ Sent request 2 of 2 · summary ─")
        assert re.search(r"# 1\.2k tokens, 1 message", screen)
        assert re.search(r"1\.2k +100 %.* user ", screen)
        assert "[ ] other requests · b body" in screen
        assert "p pin" not in screen
        chat.nvim.feed("u<CR>")
        chat.nvim.wait_screen(r"╭ user ")
        assert "\n".join(chat.nvim.lines()) == asked.json["messages"][0]["content"]
        chat.nvim.feed("qb")
        chat.nvim.wait_screen('"messages": ')
        assert msgspec.json.format("\n".join(chat.nvim.lines()).encode(), indent=-1) == asked.body
        assert any(message.tag == "compact_summary" for message in chat.view().messages)


def test_attachments_are_named_relative_to_the_workspace(nvim_factory, tmp_path):
    """The context block and the request name files as the tools do, not by absolute path."""
    with ChatServerThread(key=KEY) as server:
        chat = start_chat(nvim_factory, tmp_path, server, files=[("sub/a.txt", "alpha\n"), ("b.txt", "beta\n")])
        chat.nvim.command("edit b.txt")
        chat.nvim.command("CodeCompanionChat Toggle")
        chat.send("/file sub/a.txt")
        chat.nvim.wait_screen("> - ↻ <file>sub/a.txt</file>")
        chat.send("/buffer b.txt")
        chat.nvim.wait_screen("> - ↻ <buffer>b.txt</buffer>")
        chat.say("look")
        # The system prompt names the working folder.
        texts = [str(message["content"]) for message in server.requests[-1].json["messages"][1:]]
        assert any(text.startswith("The content of `sub/a.txt`") for text in texts)
        assert str(tmp_path) not in "".join(texts)


def test_a_blank_line_is_below_the_activity(nvim_factory, tmp_path):
    """The activity uses the blank line above the input and leaves another one."""
    with ChatServerThread([reply("words " * 40, chunk_chars=5, delay_s=0.2)], key=KEY) as server:
        chat = start_chat(nvim_factory, tmp_path, server)
        chat.send("go")
        screen = chat.nvim.wait_screen(r"⋯ streaming").splitlines()
        row = next(index for index, line in enumerate(screen) if "⋯ " in line)
        assert screen[row + 1].strip() == ""
        assert screen[row + 2].startswith("## Me")
        chat.nvim.feed("<Esc>q")


def test_a_selection_has_the_language_of_its_buffer(nvim_factory, tmp_path):
    """This also applies if the file name does not reveal the language."""
    with ChatServerThread(key=KEY) as server:
        chat = start_chat(nvim_factory, tmp_path, server, files=[("script", "local a = 1\nreturn a\n")], opened=False)
        chat.nvim.command("edit script | set filetype=lua")
        chat.nvim.feed("Vj:CodeCompanionChat<CR>")
        chat.wait_ready()
        assert chat.draft() == "script:1-2\n```lua\nlocal a = 1\nreturn a\n```\n"


def test_there_is_room_below_an_edit_line(chat_everywhere):
    """The line of an edit does not touch the header of the input."""
    chat_everywhere.accept("look")
    chat_everywhere.push(
        events.ReplyStarted(adapter="openai", model="gpt-4o"),
        events.Text(text="Looked."),
        events.ContextEdited(cleared=2, tokens_before=900, tokens_after=300, call_ids=()),
        events.TurnFinished(reason="done"),
    )
    screen = chat_everywhere.nvim.wait_screen("✂ 2 tool results").splitlines()
    row = next(index for index, line in enumerate(screen) if "✂" in line)
    assert [screen[row - 1].strip(), screen[row + 1].strip()] == ["", ""]
    assert screen[row + 2].startswith("## Me")


def test_the_manual_opens_without_help_tags_and_scrolls_on_a_short_screen(nvim_factory, tmp_path):
    """The help tags are created, as a plugin manager would do; the key list needs more than 24 lines."""
    with ChatServerThread(key=KEY) as server:
        chat = start_chat(nvim_factory, tmp_path, server, size=(80, 24))
        chat.nvim.feed("<Esc>g?")
        chat.nvim.wait_screen("g[?] all keys · q close")
        chat.nvim.feed("g?")
        chat.nvim.wait_screen("more below · / search · q close")
        chat.nvim.feed("q")
        chat.nvim.command("CodeCompanion help")
        assert chat.nvim.lua("return vim.fn.expand('%:t')") == "codecompanion.txt"
        assert chat.nvim.lua("return { vim.bo.buftype, vim.bo.filetype, vim.bo.modifiable }") == ["help", "help", False]
        chat.nvim.command("help codecompanion-windows")


def test_a_narrow_status_line_keeps_the_meter(nvim_factory, tmp_path):
    """At 40 columns, the start of the line is cut, not the context usage."""
    with ChatServerThread([silence()], key=KEY) as server:
        chat = start_chat(nvim_factory, tmp_path, server, size=(40, 24))
        chat.send("go")
        chat.nvim.wait_screen(r"waiting for the model.* · ~?\d % +All")
        chat.nvim.feed("<Esc>q")
