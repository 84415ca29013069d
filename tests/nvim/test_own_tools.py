"""A user's own tools, end to end: the help's snippets, a real host, a model's calls, and the results it reads."""

from __future__ import annotations

import json
import os
import re
import signal
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from harness import Nvim
from real_chat import KEY, RealChat, start_chat
from test_help_recipes import HELP, snippet
from tests.providers.chat.answers import Call, reply
from tests.providers.chat.thread import ChatServerThread

Factory = Callable[..., Nvim]
LAID_OVER = """
local given = require("codecompanion.config").user
local companion = setmetatable({ setup = function(options)
  require("codecompanion").setup(vim.tbl_deep_extend("force", given, options))
end }, { __index = require("codecompanion") })
local require = function(name) return name == "codecompanion" and companion or require(name) end
"""


def start(nvim_factory: Factory, root: Path, server: ChatServerThread, code: str, **more: Any) -> RealChat:
    """Return an open chat; `code` calls `setup` and is merged with the options of the test."""
    chat = start_chat(nvim_factory, root, server, opened=False, **more)
    chat.nvim.lua(LAID_OVER + code)
    chat.open()
    return chat


def tools(lua: str, opts: str = "") -> str:
    """Return a `setup` call that configures these tools."""
    return f'require("codecompanion").setup({{ interactions = {{ chat = {{ tools = {{ {lua} {opts} }} }} }} }})'


def results(server: ChatServerThread) -> list[str]:
    """Return the tool results of the last request."""
    sent = [r.json["messages"] for r in server.requests if r.path.endswith("/chat/completions")][-1]
    return [message["content"] for message in sent if message["role"] == "tool"]


def offered(server: ChatServerThread) -> dict[str, Any]:
    """Return the functions of the last request by name."""
    sent = [r.json.get("tools", []) for r in server.requests if r.path.endswith("/chat/completions")][-1]
    return {tool["function"]["name"]: tool["function"] for tool in sent}


def test_the_tools_of_the_help_are_called_and_approved(nvim_factory: Factory, tmp_path: Path) -> None:
    """They run as printed: one at once, the other after approval and with a late answer."""
    calls = [Call("open_windows", id="a"), Call("run_make", '{"target": "hello"}', id="b")]
    with ChatServerThread([reply(calls=calls), reply("Done.")], key=KEY) as server:
        files = [("Makefile", "hello:\n\t@echo from make\n")]
        chat = start(nvim_factory, tmp_path, server, snippet("codecompanion-own-tools"), files=files)
        chat.send("go")
        chat.wait_state("awaiting_approval")
        assert '"target": "hello"' in chat.text()
        chat.press_on_approval("g2")
        chat.nvim.wait_screen("Done\\.")
        assert server.refusals == []
        windows, made = results(server)
        assert isinstance(json.loads(windows), list)
        assert made == "from make\n"
        schema = offered(server)["run_make"]
        assert schema["description"] == "Run a target of the Makefile."
        assert schema["parameters"]["required"] == ["target"]
        assert offered(server)["open_windows"]["parameters"] == {"type": "object", "properties": {}}


def test_the_python_of_the_help_is_a_tool(nvim_factory: Factory, tmp_path: Path) -> None:
    text = HELP.read_text(encoding="utf-8")
    match = re.search(r"\*codecompanion-own-tools-python\*.*?>python\n(.*?)^<.*?>lua\n(.*?)^<", text, re.M | re.S)
    assert match
    code = "\n".join(line.removeprefix("    ") for line in match[1].splitlines())
    call = Call("weather", '{"city": "Oslo", "unit": "f"}', id="a")
    with ChatServerThread([reply(calls=[call]), reply("Warm.")], key=KEY) as server:
        chat = start_chat(nvim_factory, tmp_path, server, opened=False)
        folder = Path(chat.nvim.lua("return vim.fn.stdpath('config')")) / "tools"
        folder.mkdir(parents=True)
        (folder / "weather.py").write_text(code, encoding="utf-8")
        chat.nvim.lua(LAID_OVER + match[2])
        chat.open()
        chat.send("How warm?")
        chat.press_on_approval("g2")
        chat.nvim.wait_screen("Warm\\.")
        assert results(server) == ['{"city":"Oslo","degrees":70.7}']
        schema = offered(server)["weather"]["parameters"]
        assert schema["properties"]["unit"]["enum"] == ["c", "f"]
        assert schema["properties"]["city"]["description"] == "Its name, in English."


RUN = "opts = { require_approval_before = false }"


@pytest.mark.slow("17 chats in real Neovims")
@pytest.mark.parametrize(
    ("callback", "result"),
    [
        ("function() return 'text' end", "text"),
        ("function() return 7 end", "7"),
        ("function() return { status = 'success', data = { a = { 1, 2 } } } end", '{"a":[1,2]}'),
        ("function() return { status = 'error', data = 'not today' } end", "not today"),
        ("function() return { status = 'error' } end", "It failed without giving a reason."),
        ("function(_, _, done) vim.schedule(function() done('later') end) end", "later"),
        ("function(_, _, done) done('one'); done('two') end", "one"),
        ("function(_, _, done) done('one'); return 'two' end", "two"),
        ("function() error('no luck', 0) end", "The tool mine failed: no luck"),
        ("function() error({}) end", "The tool mine failed: table: 0x"),
        ("function() end", "The tool mine returned nothing; expected a string, { status ="),
        ("function() return print end", "The tool mine failed: it returned function; expected a string"),
        ("function() return { vim.uv.new_timer() } end", "it returned a table that is not JSON"),
        ("function() return 'a\\255b\\192\\128 ö' end", "a�b�� ö"),
        ("function() return '' end", "(no output)"),
        ("{ cmds = { function(self, args, input) return { status = 'success', data = 'one' } end,"
         " function(self, args, input, cb) cb({ status = 'success', data = input.input .. '+two' }) end } }",
         "one+two"),
        ("{ cmds = { function() return { status = 'error', data = 'first' } end, function() return 'never' end } }",
         "first"),
    ],
)  # fmt: skip
def test_the_model_reads_the_result_of_a_lua_function(
    nvim_factory: Factory, tmp_path: Path, callback: str, result: str
) -> None:
    with ChatServerThread([reply(calls=[Call("mine", id="a")]), reply("Done.")], key=KEY) as server:
        code = tools(f"mine = {{ description = 'Mine.', callback = {callback}, {RUN} }}")
        chat = start(nvim_factory, tmp_path, server, code)
        chat.say("go")
        assert server.refusals == []
        assert results(server)[0].startswith(result) or result in results(server)[0]


def test_a_long_result_is_truncated_and_stored_like_any_other(nvim_factory: Factory, tmp_path: Path) -> None:
    with ChatServerThread([reply(calls=[Call("mine", id="a")]), reply("Done.")], key=KEY) as server:
        big = "function() return ('a line of text\\n'):rep(350000) end"
        chat = start(nvim_factory, tmp_path, server, tools(f"mine = {{ description = 'M.', callback = {big}, {RUN} }}"))
        chat.say("go")
        assert len(results(server)[0]) < 50_000
        assert "of 5,250,000 characters are omitted here" in results(server)[0]


def test_a_tool_that_never_answers_is_stopped_and_notified(nvim_factory: Factory, tmp_path: Path) -> None:
    """The time limit or the user stops it; its later result is dropped."""
    hangs = """mine = { description = 'Hangs.', opts = { require_approval_before = false, timeout = %d },
      callback = function(_, context, done)
        context.on_cancel(function() _G.told = context.is_cancelled(); done('too late') end)
      end }"""
    with ChatServerThread([reply(calls=[Call("mine", id="a")]), reply("Gone on.")], key=KEY) as server:
        chat = start(nvim_factory, tmp_path, server, tools(hangs % 300))
        chat.say("go")
        assert results(server) == ["mine did not finish within 0.3 seconds and was stopped."]
        chat.nvim.wait_lua("return _G.told == true")
        assert "too late" not in chat.text()
    with ChatServerThread([reply(calls=[Call("mine", id="a")]), reply("Never.")], key=KEY) as server:
        (tmp_path / "two").mkdir()
        chat = start(nvim_factory, tmp_path / "two", server, tools(hangs % 60_000))
        chat.send("go")
        chat.wait_state("running_tools")
        chat.nvim.wait_lua("return next(package.loaded['codecompanion.host.run_own_tools'] or {}) ~= nil")
        chat.nvim.feed("q")
        chat.nvim.wait_lua("return _G.told == true")
        chat.wait_state("idle")
        assert len([r for r in server.requests if r.path.endswith("/chat/completions")]) == 1


def test_a_host_that_dies_ends_the_call_and_the_chat_continues(nvim_factory: Factory, tmp_path: Path) -> None:
    """The tool is notified; a late answer does not count as a reply to the next host."""
    hangs = """mine = { description = 'Hangs.', opts = { require_approval_before = false },
      callback = function(_, context, done)
        _G.began = true
        context.on_cancel(function() _G.told = true end)
        _G.late = done
      end }"""
    answers = [reply(calls=[Call("mine", id="a")]), reply("Here again.")]
    with ChatServerThread(answers, key=KEY) as server:
        chat = start(nvim_factory, tmp_path, server, tools(hangs))
        chat.send("go")
        chat.nvim.wait_lua("return _G.began == true")
        os.kill(chat.host_pid(), signal.SIGKILL)
        chat.nvim.wait_lua("return _G.told == true")
        chat.nvim.lua("_G.late('from another life')")
        chat.say("go on")
        assert "Here again." in chat.text()
        assert "another life" not in str(server.requests[-1].json)
        assert server.refusals == []


def test_mistakes_name_their_key_and_the_other_tools_are_offered(nvim_factory: Factory, tmp_path: Path) -> None:
    lua = """
      good = { description = 'Good.', callback = function() return 1 end },
      nothing = { description = 'x' },
      both = { description = 'x', python = 'm:f', callback = function() end },
      read_file = { callback = function() end },
      off = false,
      words = { description = 'x', callback = { cmds = { { 'ls' } } } },
      wrong = { description = 'x', callback = function() end, schema = { type = 'string' } },
      ['dotted.name'] = { description = 'x', callback = function() end },
      gone = { python = 'tools/none.py:f' },
      module = { python = 'no_such_module_of_mine:f' },
      odd = { python = 'a b:f' },
      held = { description = 'x', callback = function() end, schema = { f = print } },
      silent = { callback = function() end },
    """
    with ChatServerThread([reply("Hello.")], key=KEY) as server:
        chat = start(nvim_factory, tmp_path, server, tools(lua))
        chat.say("hi")
        own = [name for name in offered(server) if name in lua]
        assert own == ["read_file", "good"]
        found = chat.nvim.lua("return require('codecompanion.config').findings()")
        problems, foreign = "\n".join(found["problems"]), "\n".join(found["foreign"])
        path = "interactions.chat.tools."
        assert f"{path}nothing: `callback` or `python` is missing; there is no built-in with this name" in problems
        assert f"{path}both: has both `callback` and `python`; set only one" in problems
        assert f"{path}words.callback: `cmds[1]` is a table; expected a function" in problems
        assert f'{path}odd.python: "a b" is not a module name' in problems
        assert f"{path}held.schema.f: got a function; expected a plain value" in problems
        assert f"{path}read_file.callback: a built-in tool has this name" in foreign
        for said in (
            f"{path}dotted.name: it is not offered: its name must be 1 to 64",
            f'{path}wrong: it is not offered: its schema is not of type "object"',
            f"{path}silent: it is not offered: it has no description",
            f"{path}gone: there is no file",
            f"{path}module: no_such_module_of_mine cannot be loaded: ModuleNotFoundError",
        ):
            assert said in problems, problems
        chat.nvim.command("CodeCompanion problems")
        chat.nvim.wait_screen(r"tools\.silent: it is not offered")


def test_a_users_failures_are_listed_with_key_file_and_line(nvim_factory: Factory, tmp_path: Path) -> None:
    """`:CodeCompanion problems` lists tools that raise an error in Lua or Python, and missing members of groups."""
    (tmp_path / "own.py").write_text('def broken() -> str:\n    """Break."""\n    raise KeyError("x")\n')
    lua = f"""
      odd = {{
        description = 'Odd.',
        opts = {{ require_approval_before = false }},
        callback = function() error('no luck') end,
      }},
      broken = {{ opts = {{ require_approval_before = false }}, python = '{tmp_path / "own.py"}:broken' }},
      groups = {{
        mine = {{ tools = {{ 'read_file', 'odd', 'grep_serch', 'insert_edit_into_file', 'files' }} }},
      }},
      opts = {{ default_tools = {{ 'mine', 'broken', 'nothing' }} }},
    """
    both = reply(calls=[Call("odd", "{}", "c1"), Call("broken", "{}", "c2")])
    with ChatServerThread([both, reply("Done.")], key=KEY) as server:
        chat = start(nvim_factory, tmp_path, server, tools(lua))
        chat.trust()
        chat.send("go")
        chat.nvim.wait_screen(r"Done\.")
        assert set(offered(server)) == {"read_file", "odd", "insert_edit", "broken"}
        found = chat.nvim.lua("return require('codecompanion.config').findings()")
        path = "interactions.chat.tools."
        assert found["problems"] == [
            f"{path}groups.mine.tools[3]: there is no tool grep_serch; did you mean grep_search?",
            f"{path}groups.mine.tools[5]: files is a group; list only tools here",
            f"{path}opts.default_tools[3]: there is no tool nothing; /tools lists all.",
        ]
        lua_failure, python_failure = found["failures"]
        assert re.fullmatch(re.escape(path) + r"odd: .*:\d+: no luck", lua_failure)
        assert python_failure == f"{path}broken: KeyError: 'x' ({tmp_path / 'own.py'}, line 3)"
        chat.nvim.command("CodeCompanion problems")
        chat.nvim.wait_screen(r"2 failures in your own code")
        chat.nvim.feed("q")
        chat.nvim.command("checkhealth codecompanion")
        chat.nvim.wait_for(lambda: "Your own code failed" in chat.nvim.screen(), "the check-up")


def test_python_that_prints_or_reads_input_does_not_break_the_channel(nvim_factory: Factory, tmp_path: Path) -> None:
    """The host talks to the editor over standard input and output, so a program must have neither."""
    source = (
        "import os, subprocess, sys\n"
        "def loud():\n    'Loud.'\n    print('noise', flush=True)\n    sys.stdout.write('more')\n"
        "    subprocess.run(['echo', 'out'])\n    os.write(1, b'raw')\n"
        "    return subprocess.run(['cat'], stdout=subprocess.PIPE).stdout.decode() + 'read nothing'\n"
    )
    (tmp_path / "loud.py").write_text(source)
    with ChatServerThread([reply(calls=[Call("loud", id="a")]), reply("Quiet.")], key=KEY) as server:
        chat = start(nvim_factory, tmp_path, server, tools(f"loud = {{ python = '{tmp_path}/loud.py:loud', {RUN} }}"))
        chat.say("go")
        assert results(server) == ["read nothing"]
        assert "Quiet." in chat.text()


def test_programs_started_by_a_python_tool_cannot_find_the_editor(nvim_factory: Factory, tmp_path: Path) -> None:
    """Otherwise a program could ask the editor for its keys through `$NVIM`."""
    (tmp_path / "own.py").write_text(
        "import subprocess\n\ndef shown() -> str:\n    '''Show the environment.'''\n"
        "    return subprocess.run(['env'], capture_output=True, text=True).stdout\n"
    )
    lua = f"""
      shown = {{ opts = {{ require_approval_before = false }}, python = '{tmp_path / "own.py"}:shown' }},
      opts = {{ default_tools = {{ 'shown' }} }},
    """
    with ChatServerThread([reply(calls=[Call("shown")]), reply("Done.")], key=KEY) as server:
        chat = start(
            nvim_factory, tmp_path, server, tools(lua), env={"NVIM_LISTEN_ADDRESS": str(tmp_path / "nvim.sock")}
        )
        chat.send("go")
        chat.nvim.wait_screen(r"Done\.")
        names = {line.partition("=")[0] for line in results(server)[0].splitlines()}
        assert "HOME" in names
        assert not {"NVIM", "NVIM_LISTEN_ADDRESS"} & names
