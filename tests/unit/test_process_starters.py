"""A list of every place that starts a process, with the program it starts.

A new place fails the test: the list must say why it is safe in a folder that somebody else filled. Only
`workspace/git.py` starts git.
"""

# ruff: noqa: E501 - tables of ways to start a process are read across
from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

REPO = Path(__file__).parents[2]
PACKAGE = REPO / "python" / "codecompanion"

OF_PYTHON = {
    "adapters/keys/key_source.py": ("subprocess.run", "the user's `cmd:` that prints a key"),
    "mcp/stdio.py": ("create_subprocess_exec", "our supervisor, which starts an MCP server of the user's"),
    "mcp/supervisor.py": ("subprocess.Popen", "that server"),
    "session/code/index_process.py": ("create_subprocess_exec", "a module of ours in this Python"),
    "session/gather/team_text.py": ("create_subprocess_exec", "the user's `context.team.command`"),
    "session/mcp_config/expand_variables.py": ("subprocess.run", "the user's `cmd:` in an entry of a server"),
    "session/vectors/model_process.py": ("start_worker", "the embedding process, of ours"),
    "tools/builtin/grep_search.py": ("run_program", "ripgrep, or our own searcher in this Python"),
    "tools/builtin/run_command.py": ("run_program", "the command of the model, in the sandbox"),
    "tools/process.py": ("create_subprocess_exec", "`run_program`: a command line of its callers"),
    "tools/sandbox/escape_check.py": ("subprocess.run", "our own attempts to leave the sandbox"),
    "tools/sandbox/inside/launcher.py": ("os.execvpe os.fork", "the command, from inside of the sandbox"),
    "tools/sandbox/probe.py": ("subprocess.run", "our own attempts to leave the sandbox"),
    "workspace/bounded_process.py": ("subprocess.Popen", "`run_bounded`: a command line of its callers"),
    "workspace/git.py": ("run_bounded", "git, without the configuration of the repository"),
    "workspace/text_search.py": ("run_bounded", "ripgrep, without a configuration file"),
}
OF_LUA = {
    "lua/codecompanion/chat/life/choose_adapter.lua": ("ui.open", "the browser, with a provider's page on its keys"),
    "lua/codecompanion/config/own_tool_settings.lua": ("vim.system", "nothing: a sentence of an error names it"),
    "lua/codecompanion/host/process.lua": ("jobstart", "our host, in the plugin's own folder"),
    "lua/codecompanion/host/own_memory.lua": ("ffi", "nothing: it closes the editor's memory to other programs"),
    "lua/codecompanion/install/make_environment.lua": ("vim.system", "Python and uv, to install the plugin's packages"),
    "lua/codecompanion/pages/login_page.lua": ("ui.open", "the browser, with the page of a provider's login"),
    "lua/codecompanion/chat/sources/clipboard.lua": (
        "vim.system",
        "the program that reads an image from the clipboard",
    ),
}

_WRAPPERS = {
    "codecompanion.workspace.bounded_process": "run_bounded",
    "codecompanion.tools.process": "run_program",
    "codecompanion.session.code.index_process": "start_worker",
}
_HARMLESS_OF_SUBPROCESS = frozenset(
    "DEVNULL PIPE STDOUT SubprocessError TimeoutExpired CalledProcessError CompletedProcess Process".split()
)
_OF_OS = re.compile(r"system|popen|fork|forkpty|exec[lv]\w*|spawn\w+|posix_spawn\w*|startfile")
_MODULES = frozenset("pty multiprocessing webbrowser _posixsubprocess popen2 pexpect plumbum sh".split())
_ANYWHERE = frozenset(
    "create_subprocess_exec create_subprocess_shell subprocess_exec subprocess_shell open_process stdio_client"
    " ProcessPoolExecutor Popen".split()
)
_LUA = re.compile(
    r"\b(?:vim\.system|jobstart|termopen|systemlist|rpcstart|libcallnr|libcall|os\.execute|io\.popen|ui\.open)\b"
    r"|\.spawn\b|\bfn(?:\.|\[[\"'])system\b|\bcall(?: |\([\"'])system\b|\bffi\b|\bcmd(?:\.|\(?[\"'](?:\w+!? )*)terminal\b"
    r"|(?:[\"']|\[\[)(?::|<Cmd>|silent!? |noautocmd |keepalt )*!(?=[\w./~%])"
)
_STARTS = re.compile(
    r"\b(?:run|Popen|call|check_\w+|create_subprocess_\w+|run_bounded|run_program|find_program|exec\w+)$"
)
_GIT = re.compile(r"""[\[(*]*\s*['"](?:[\w/]*/)?git['" ]""")
_LUA_COMMENT = re.compile(r"(?:^|\s)--.*")


def starters_of_python(text: str) -> Iterator[str]:
    """Yield the qualified names of all functions in a Python module that start a process, whatever the import form."""
    tree = ast.parse(text)
    names = {"os": "os", "subprocess": "subprocess"}
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            names |= {one.asname: one.name for one in node.names if one.asname}
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from (one.name for one in node.names if one.name.partition(".")[0] in _MODULES)
        elif isinstance(node, ast.ImportFrom):
            module = node.module or ""
            if module.partition(".")[0] in _MODULES:
                yield module
            for one in node.names:
                if one.name == _WRAPPERS.get(module):
                    yield one.name
                elif one.name == "*" and module in ("os", "subprocess"):
                    yield module
                else:
                    yield from _of_attribute(module, one.name)
        elif isinstance(node, ast.Attribute):
            base = node.value.id if isinstance(node.value, ast.Name) else ""
            yield from _of_attribute(names.get(base, base), node.attr)
        elif isinstance(node, ast.Constant) and node.value in (_MODULES - {"sh"}) | {"subprocess"}:
            yield str(node.value)
        elif isinstance(node, ast.Call) and ast.unparse(node.func) == "getattr":
            first = ast.unparse(node.args[0]) if node.args else ""
            if names.get(first) in ("os", "subprocess") and not isinstance(node.args[1], ast.Constant):
                yield f"getattr({first})"
            elif names.get(first) in ("os", "subprocess"):
                yield from _of_attribute(names[first], ast.literal_eval(node.args[1]))


def _of_attribute(module: str, name: str) -> Iterator[str]:
    if module == "subprocess" and name not in _HARMLESS_OF_SUBPROCESS:
        yield f"subprocess.{name}"
    elif module == "os" and _OF_OS.fullmatch(name):
        yield f"os.{name}"
    elif name in _ANYWHERE:
        yield name


def starters_of_lua(text: str) -> Iterator[str]:
    """Yield the words of a Lua source that start a process."""
    for line in text.splitlines():
        yield from (found[0].strip() for found in _LUA.finditer(_LUA_COMMENT.sub("", line)))


def test_each_place_of_python_that_starts_a_process_is_listed() -> None:
    found = dict[str, str]()
    for path in sorted(PACKAGE.rglob("*.py")):
        if starters := sorted(set(starters_of_python(path.read_text("utf-8")))):
            found[path.relative_to(PACKAGE).as_posix()] = " ".join(starters)
    assert found == {name: starters for name, (starters, _) in OF_PYTHON.items()}
    assert not [path for path in (REPO / "rplugin").rglob("*.py") if list(starters_of_python(path.read_text("utf-8")))]


def test_each_place_of_lua_that_starts_a_process_is_listed() -> None:
    found = dict[str, str]()
    rooms = [REPO / room for room in ("lua", "plugin", "ftplugin")]
    for path in sorted([*REPO.glob("*.lua"), *(path for room in rooms for path in room.rglob("*.lua"))]):
        if starters := sorted(set(starters_of_lua(path.read_text("utf-8")))):
            found[path.relative_to(REPO).as_posix()] = " ".join(starters)
    assert found == {name: starters for name, (starters, _) in OF_LUA.items()}


def test_only_one_place_starts_git() -> None:
    """Of the places above, only `workspace/git.py` names the program; in Lua none does."""
    named = list[str]()
    for name in OF_PYTHON:
        for node in ast.walk(ast.parse((PACKAGE / name).read_text("utf-8"))):
            called = ast.unparse(node.func) if isinstance(node, ast.Call) else ""
            if isinstance(node, ast.Call) and _STARTS.search(called):
                words = [ast.unparse(one) for one in (*node.args, *(value.value for value in node.keywords))]
                named += [name for word in words if _GIT.match(word)]
    assert named == ["workspace/git.py"] * 2
    assert not [name for name in OF_LUA if re.search(r"""["'](?:[\w/]*/)?git["' ]""", (REPO / name).read_text("utf-8"))]


@pytest.mark.parametrize(
    "text",
    [
        "import subprocess\nsubprocess.run(x)", "import subprocess as s\ns.check_output(x)", "from subprocess import run as r",
        "from subprocess import *", "import asyncio\nasyncio.create_subprocess_exec(x)", "loop.subprocess_shell(a, x)",
        "from asyncio.subprocess import create_subprocess_shell", "import os\nos.system(x)", "import os as o\no.execvp(x, y)",
        "import os\nos.posix_spawn(x, y, z)", "from os import spawnl", "import os\nos.popen(x)", "import pty", "from pty import spawn",
        "import multiprocessing.pool", "from concurrent.futures import ProcessPoolExecutor", "import_module('subprocess')",
        "import os\ngetattr(os, 'system')(x)", "import os\ngetattr(os, name)(x)", "anyio.open_process(x)", "import webbrowser",
        "from codecompanion.workspace.bounded_process import run_bounded",
    ],
)  # fmt: skip
def test_each_way_to_start_a_process_in_python_is_detected(text: str) -> None:
    assert list(starters_of_python(text))


@pytest.mark.parametrize(
    "text",
    [
        "vim.system({ a })", "vim.fn.system(a)", "local fn = vim.fn; fn.system(a)", "vim.fn.systemlist(a)", "vim.fn['system'](a)",
        'vim.call("system", a)', "vim.fn.jobstart(a)", "vim.fn.termopen(a)", "uv.spawn(a)", "vim.loop.spawn(a)", "os.execute(a)",
        "io.popen(a)", 'vim.cmd("!ls")', "vim.cmd('silent !ls')", "vim.cmd([[!ls]])", 'vim.cmd("call system(x)")', "vim.ui.open(a)",
        'vim.cmd("terminal ls")', "vim.cmd.terminal()", 'vim.api.nvim_input(":!ls")', 'require("ffi").C.system(a)', "x(vim.system)",
    ],
)  # fmt: skip
def test_each_way_to_start_a_process_in_lua_is_detected(text: str) -> None:
    assert list(starters_of_lua(text))


@pytest.mark.parametrize("text", ["vim.cmd('edit!')", "-- vim.system is not used", "local system = 1", 'x = "!"'])
def test_lua_that_starts_no_process_is_not_listed(text: str) -> None:
    assert not list(starters_of_lua(text))
