"""`:CodeCompanionCmd`: a command line generated from words, typed for the user to read, never run automatically."""

from __future__ import annotations

import pytest

from harness import lua_string
from real_chat import KEY, start_chat
from tests.providers.chat.answers import failure, reply, silence
from tests.providers.chat.thread import ChatServerThread

EVIL_RUN = "_G.cc_ran"


def start(nvim_factory, tmp_path, server, **more):
    return start_chat(nvim_factory, tmp_path, server, opened=False, files=[("a.txt", "b 2\na 1\nc 3\n")], **more).nvim


def requests_of(server):
    return [r.json for r in server.requests if r.path.endswith("/chat/completions")]


def test_words_become_a_command_line_that_the_user_runs(nvim_factory, tmp_path):
    """The request has the file's facts and no tools; the answer stays in the command line until <CR> is pressed."""
    with ChatServerThread([reply("```vim\n:1,2sort | nohlsearch\n```")], key=KEY) as server:
        nvim = start(nvim_factory, tmp_path, server)
        nvim.command("edit a.txt")
        nvim.command("1,2CodeCompanionCmd sort them, bitte – ä")
        nvim.wait_lua("return vim.fn.getcmdline() == '1,2sort | nohlsearch'")
        assert nvim.lines() == ["b 2", "a 1", "c 3"], "nothing ran"
        (request,) = requests_of(server)
        assert "tools" not in request
        system, user = request["messages"]
        assert system["content"].startswith("You turn a request into one Neovim command line.")
        assert "Request: sort them, bitte – ä" in user["content"]
        assert "Selected lines: 1 to 2; their range is 1,2" in user["content"]
        assert "b 2\na 1" in user["content"]
        assert "c 3" not in user["content"]
        nvim.feed("<CR>")
        nvim.wait_for(lambda: nvim.lines() == ["a 1", "b 2", "c 3"], "the command the user ran")
        assert nvim.lua("return vim.fn.histget(':', -1)") == "1,2sort | nohlsearch", "it can be repeated"


@pytest.mark.slow("14 Neovims")
@pytest.mark.parametrize(
    ("answer", "said"),
    [
        ("lua {ran}\nlua {ran}", "2 lines instead of one command line"),
        ("echo 1\rlua {ran}\r", "control characters"),
        ("lua {ran}\x1b", "control characters"),
        ("echo 1 \u202e 2", "invisible characters"),
        ("echo '\u200b'", "invisible characters"),
        ("x" * 1001, "longer than 1000 characters"),
        ("   \n", "reply was empty"),
        ('" There is no such command.', "found no command line: There is no such command."),
        ("```\nlua {ran}\nlua {ran}\n```", "2 lines instead of one"),
        ("Use `:sort` to sort them.", "replied in prose: Use `:sort` to sort them."),
        ("run `:lua {ran}`", "replied in prose: run `:lua"),
        ("delete the line below.", "replied in prose: delete the line"),
        ("Sure", "replied in prose: Sure"),
        ("I think `sort` does it", "replied in prose: I think"),
    ],
)
def test_an_unreadable_or_multi_line_answer_is_refused(nvim_factory, tmp_path, answer, said):
    """Special keys, hidden characters and further lines never reach the command line."""
    with ChatServerThread([reply(answer.replace("{ran}", f"{EVIL_RUN} = 1"))], key=KEY) as server:
        nvim = start(nvim_factory, tmp_path, server, size=(160, 30))
        nvim.command("CodeCompanionCmd do something")
        nvim.wait_for(lambda: said in nvim.messages(), said)
        nvim.settle()
        assert nvim.lua("return vim.api.nvim_get_mode().mode") == "n"
        assert nvim.lua(f"return {EVIL_RUN} == nil")


@pytest.mark.parametrize(
    ("answer", "shown"),
    [
        ("%s/`a`/b c d./g", "%s/`a`/b c d./g"),
        ("edit `find . -name a.txt`", "edit `find . -name a.txt`"),
        ("normal A the end of it.", "normal A the end of it."),
        ("'<,'>sort u", "'<,'>sort u"),
        ("Here it is:\n```vim\n:%sort\n```\nIt sorts.", "%sort"),
        ("42", "42"),
    ],
)
def test_a_command_that_looks_like_prose_is_shown(nvim_factory, tmp_path, answer, shown):
    with ChatServerThread([reply(answer)], key=KEY) as server:
        nvim = start(nvim_factory, tmp_path, server)
        nvim.command("CodeCompanionCmd x")
        nvim.wait_lua(f"return vim.fn.getcmdline() == {lua_string(shown)}")


def test_special_keys_in_the_answer_are_text(nvim_factory, tmp_path):
    """`<CR>`, `<C-r>`, bytes that are key codes inside characters, mappings and abbreviations all stay text."""
    text = "echo '<CR><C-r>=1+1 | €…ÀƐ Q' | normal jk"
    with ChatServerThread([reply(text)], key=KEY) as server:
        nvim = start(nvim_factory, tmp_path, server)
        nvim.lua(
            "vim.cmd.cabbrev('echo qall!') vim.keymap.set('c', 'j', '<CR>') vim.keymap.set('n', ':', ':qall!<CR>')"
        )
        nvim.lua("vim.api.nvim_feedkeys(vim.keycode(':CodeCompanionCmd x<CR>'), 'n', false)")
        nvim.wait_lua("return vim.fn.getcmdtype() == ':' and #vim.fn.getcmdline() > 0 and vim.fn.getcmdline()")
        nvim.wait_lua(f"return vim.fn.getcmdline() == {lua_string(text)}")


def test_the_answer_waits_for_normal_mode_and_idle_keys(nvim_factory, tmp_path):
    """A <CR> meant for a buffer runs nothing, because nothing opens while the user types in insert mode."""
    with ChatServerThread([reply(f"lua {EVIL_RUN} = 1")], key=KEY) as server:
        nvim = start(nvim_factory, tmp_path, server)
        nvim.command("edit a.txt")
        nvim.command("CodeCompanionCmd x")
        nvim.feed("ofirst")
        nvim.wait_for(lambda: "opens once you are in Normal mode" in nvim.messages(), "the word that it waits")
        nvim.feed("<CR>second<Esc>")
        nvim.wait_lua("return vim.fn.getcmdtype() == ':'")
        assert nvim.lua(f"return {EVIL_RUN} == nil")
        assert nvim.lines()[1:3] == ["first", "second"]


def test_a_request_can_be_cancelled_and_has_a_time_limit(nvim_factory, tmp_path):
    """Text that arrives later is discarded."""
    with ChatServerThread([silence(), silence()], key=KEY) as server:
        options = {"interactions": {"cmd": {"timeout": 1000}}}
        nvim = start(nvim_factory, tmp_path, server, options=options)
        nvim.command("CodeCompanionCmd x")
        nvim.wait_for(lambda: requests_of(server), "the request")
        nvim.command("CodeCompanion cancel")
        nvim.wait_for(lambda: "Stopped the command line; nothing was changed." in nvim.messages(), "the stop")
        nvim.command("CodeCompanionCmd y")
        nvim.wait_for(lambda: "did not answer within 1 s" in nvim.messages(), "the limit")
        nvim.wait_for(lambda: [r.aborted for r in server.requests] == [True, True], "closed connections")


def test_an_error_of_the_provider_is_one_sentence(nvim_factory, tmp_path):
    """The provider's message is shown, and nothing opens."""
    with ChatServerThread([failure(401, "no such key")], key=KEY) as server:
        nvim = start(nvim_factory, tmp_path, server)
        nvim.command("CodeCompanionCmd x")
        nvim.wait_for(lambda: "was refused (401)" in nvim.messages(), "the error")
        assert nvim.lua("return vim.api.nvim_get_mode().mode") == "n"


def test_the_request_is_logged_and_counted_but_not_listed(nvim_factory, tmp_path):
    """The log is kept, with the cost; `/resume` does not list the chat until the user names it."""
    usage = {"prompt_tokens": 100, "completion_tokens": 5, "total_tokens": 105}
    with ChatServerThread([reply("echo 1", usage=usage)], key=KEY) as server:
        nvim = start(nvim_factory, tmp_path, server)
        nvim.lua(
            """_G.cc_id = nil
               require('codecompanion.host').subscribe(function(event)
                 if event.type == 'chat_opened' then _G.cc_id = event.chat end
               end)"""
        )
        nvim.command("CodeCompanionCmd say 1")
        nvim.wait_lua("return vim.fn.getcmdline() == 'echo 1'")
        nvim.feed("<Esc>")
        ask = """local verb, payload = ...
            _G.cc_answer = nil
            require('codecompanion.host').request(verb, payload, function(err, result)
              _G.cc_answer = { err or false, result or false }
            end)"""

        def asked(verb, payload):
            nvim.lua(ask, verb, payload)
            return nvim.wait_lua("return _G.cc_answer")

        chat = nvim.lua("return _G.cc_id")
        assert asked("list_sessions", {"cwd": ""})[1] == []
        (row,) = asked("list_sessions", {"chat": chat})[1]
        assert row["messages"] == 2
        assert row["first_question"].startswith("Request: say 1")
        assert "105" in asked("show_cost", {"chat": chat})[1]["text"] or "100" in nvim.lua(
            "return _G.cc_answer[2].text"
        )
        assert asked("rename_session", {"chat": chat, "title": "Kept"})[0] is False
        assert [row["title"] for row in asked("list_sessions", {"cwd": ""})[1]] == ["Kept"]
