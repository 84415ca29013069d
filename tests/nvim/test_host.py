"""The host process from the editor's side: start, crash, restart, exit; requests in, events out."""

from __future__ import annotations

import os
import signal
import stat
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from harness import REPO, Nvim, is_gone, lua_string, wait_until, wait_until_gone

STUB = Path(__file__).parent / "stub_host.py"

RECORD = """
_G.seen, _G.replies = {}, {}
_G.host = require("codecompanion.host")
host.subscribe(function(event) table.insert(_G.seen, event) end)
_G.ask = function(verb, payload)
  host.request(verb, payload, function(err, result)
    table.insert(_G.replies, { err = err or "", result = result })
  end)
end
_G.draft = function(text) ask("save_draft", { chat = "c1", text = text }) end
"""


def fake_python(root: Path) -> Path:
    """Return an executable that replaces the Python of `python.host_prog`."""
    script = root / "stub-python"
    script.write_text(f'#!/bin/sh\nexec "{sys.executable}" "{STUB}" "$@"\n')
    script.chmod(0o755)
    return script


def init_lua(host_prog: object, extra: str = "") -> str:
    """Return an init file that uses `host_prog`."""
    options = f"{{ python = {{ host_prog = {lua_string(str(host_prog))} }} }}"
    return f'{extra}\nrequire("codecompanion.config").setup({options})\n'


@pytest.fixture
def start(nvim_factory: Callable[..., Nvim], tmp_path: Path) -> Callable[..., Nvim]:
    """Return a function that starts a Neovim with the stub host and records the events."""

    def start(extra: str = "", **options: Any) -> Nvim:
        nvim = nvim_factory(init=init_lua(fake_python(tmp_path), extra), **options)
        nvim.lua(RECORD)
        return nvim

    return start


def events(nvim: Nvim, kind: str) -> list[dict[str, Any]]:
    """Return the events of one type seen so far."""
    return [event for event in nvim.lua("return _G.seen") if event["type"] == kind]


def replies(nvim: Nvim, count: int) -> list[dict[str, Any]]:
    """Wait for `count` replies and return them."""
    return nvim.wait_for(lambda: len(found := nvim.lua("return _G.replies")) >= count and found, f"{count} replies")


def test_nothing_starts_before_the_first_request(start: Callable[..., Nvim]) -> None:
    """Lesson 33: the host is never started before the first chat command."""
    nvim = start()
    assert nvim.lua("return { host.status() }") == ["stopped", ""]
    assert nvim.lua("return host.inspect().job == nil")


def test_the_host_starts_after_the_chat_is_drawn(start: Callable[..., Nvim]) -> None:
    """Finding and starting Python takes as long as drawing the chat."""
    nvim = start()
    seen = nvim.lua("draft('one') return { host.status(), host.inspect().job or 'none', host.inspect().queued }")
    assert seen == ["starting", "none", 1]
    nvim.wait_lua("return host.status() == 'ready' and host.inspect().job ~= nil")
    nvim.lua("host.stop() host.start() host.stop() host.start() host.start()")
    nvim.wait_lua("return host.status() == 'ready'")


def test_a_request_before_the_host_is_ready_is_answered(start: Callable[..., Nvim]) -> None:
    """Queued requests are sent after the hello."""
    nvim = start()
    assert nvim.lua("draft('one'); draft('two') return (host.status())") == "starting"
    assert [reply["result"] for reply in replies(nvim, 2)] == ["one", "two"]
    assert nvim.lua("return (host.status())") == "ready"
    assert len(events(nvim, "host_ready")) == 1
    assert events(nvim, "host_ready")[0]["pid"] == nvim.lua("return host.inspect().pid")


def test_requests_of_a_chat_wait_until_it_is_open(start: Callable[..., Nvim]) -> None:
    """A submit sent right after opening finds its chat."""
    nvim = start(env={"STUB_LISTS_FIRST": "1"})
    snapshot = "snapshot = vim.empty_dict()"
    nvim.lua(f"ask('open_chat', {{ chat = 'c1', {snapshot} }}); draft('after'); ask('list_sessions', {{ cwd = '/x' }})")
    results = [reply.get("result") for reply in replies(nvim, 3)]
    assert results[0][0]["cwd"] == "/x", "another chat's request need not wait"
    assert results[1:] == [None, "after"]


def test_a_request_with_a_snapshot_includes_the_open_files(start: Callable[..., Nvim]) -> None:
    """The open files are sent before the request if they have changed, and always to a new host."""
    nvim = start()
    regenerate = (
        "ask('regenerate', { chat = 'c', snapshot = require('codecompanion.editor_context.snapshot').snapshot() })"
    )
    nvim.lua(f"vim.cmd('badd a.txt | badd b.txt'); {regenerate}")
    replies(nvim, 1)
    nvim.lua(f"vim.cmd('bdelete a.txt'); {regenerate}; {regenerate}")
    replies(nvim, 3)
    nvim.lua("draft('die')")
    replies(nvim, 4)
    nvim.lua(regenerate)
    results = [reply.get("result") for reply in replies(nvim, 5)]
    assert results == [["a.txt", "b.txt"], ["b.txt"], ["b.txt"], None, ["b.txt"]]


def test_a_killed_host_is_reported_and_the_next_request_starts_another(start: Callable[..., Nvim]) -> None:
    """After `kill -9`, pending requests fail and the next one works."""
    nvim = start()
    nvim.lua("draft('one')")
    replies(nvim, 1)
    first = nvim.lua("return host.inspect().pid")
    nvim.lua("draft('die')")
    reply = replies(nvim, 2)[1]
    assert "ended" in reply["err"]
    (exit_event,) = events(nvim, "host_exit")
    assert exit_event["code"] == 137
    assert exit_event["stderr_tail"] == "last words"
    assert nvim.lua("return (host.status())") == "failed"
    nvim.lua("draft('three')")
    assert replies(nvim, 3)[2]["result"] == "three"
    assert nvim.lua("return host.inspect().pid") != first
    assert not nvim.blocked()


def test_a_restart_waits_for_the_old_process_to_exit(start: Callable[..., Nvim], tmp_path: Path) -> None:
    """Two hosts at once would compete for a chat."""
    nvim = start()
    closed = tmp_path / "closed"
    nvim.lua(f"draft('close_to {closed}')")
    replies(nvim, 1)
    first = nvim.lua("return host.inspect().pid")
    nvim.lua("host.restart(); draft('again')")
    assert replies(nvim, 2)[1]["result"] == "again"
    assert closed.read_text() == "closed"
    assert is_gone(first)


def test_leaving_neovim_lets_the_host_finish_pending_requests(start: Callable[..., Nvim], tmp_path: Path) -> None:
    """Lesson 36: a draft saved at the last moment is stored."""
    nvim = start()
    nvim.lua("draft('one')")
    replies(nvim, 1)
    closed = tmp_path / "closed"
    nvim.lua(f"vim.api.nvim_create_autocmd('VimLeavePre', {{ callback = function() draft('close_to {closed}') end }})")
    nvim.notify_lua("vim.cmd('qa!')")
    wait_until(lambda: closed.exists() and closed.read_text() == "closed", "the host to close its runtime")


def test_a_host_outlives_neovim_only_briefly(start: Callable[..., Nvim]) -> None:
    """After `kill -9` of the editor, the channel closes and the process exits, even if a library's thread hangs."""
    nvim = start()
    nvim.lua("draft('hang_on_close')")
    replies(nvim, 1)
    pid = nvim.lua("return host.inspect().pid")
    nvim.kill9()
    wait_until_gone(pid)


def test_our_own_error_is_one_sentence_and_a_bug_names_the_log(start: Callable[..., Nvim]) -> None:
    """Lesson 38: there is no raw traceback and no hit-enter prompt."""
    nvim = start()
    nvim.lua("draft('raise'); draft('bug'); draft('unjson')")
    ours, bug, unjson = (reply["err"] for reply in replies(nvim, 3))
    assert ours == "The provider is busy; try again in a minute"
    assert bug.startswith("Internal error in request save_draft (TypeError: a bug")
    assert ":CodeCompanion log" in unjson
    assert not nvim.blocked()


@pytest.mark.parametrize("where", ["task", "thread"])
def test_a_background_failure_is_one_notice(start: Callable[..., Nvim], where: str) -> None:
    """Without a guard, exceptions in tasks would be silent; a repetition is not shown."""
    nvim = start()
    nvim.lua(f"draft('{where}_bug'); draft('{where}_bug')")
    replies(nvim, 2)
    nvim.wait_for(lambda: events(nvim, "notice"), "a notice")
    (notice,) = events(nvim, "notice")
    assert notice["level"] == "ERROR"
    assert f"a {where}" in notice["text"]
    nvim.wait_for(lambda: f"Internal error in a {where}" in nvim.messages(), "the notice on the command line")
    assert not nvim.blocked()


def test_the_log_is_private_and_has_no_secret(start: Callable[..., Nvim], tmp_path: Path) -> None:
    """Lesson 44: keys never reach the disk, and the log has mode 0600."""
    from_config = 'require("codecompanion.config").secrets = function() return { openai = "sk-very-secret" } end'
    nvim = start(from_config, env={"OTHER_API_KEY": "provider is busy"})  # a piece of the stub's other error
    nvim.lua("draft('bug'); draft('raise')")
    reply, raised = replies(nvim, 2)
    assert raised["err"] == "The [redacted]; try again in a minute"
    log = Path(nvim.lua("return require('codecompanion.system.log').path()"))
    text = log.read_text()
    assert "TypeError: a bug with key [redacted]" in text
    assert "Traceback" in text
    assert "sk-very-secret" not in text + str(reply)
    assert stat.S_IMODE(log.stat().st_mode) == 0o600


def test_a_refused_configuration_fails_the_host_with_its_sentence(start: Callable[..., Nvim]) -> None:
    """The user sees which key is wrong, and requests do not hang."""
    nvim = start(env={"STUB_REFUSES": "there is no adapter 'opnai'"})
    nvim.lua("draft('one')")
    assert replies(nvim, 1)[0]["err"] == "interactions.chat.adapter: there is no adapter 'opnai'"
    assert nvim.lua("return { host.status() }") == ["failed", "interactions.chat.adapter: there is no adapter 'opnai'"]


def test_an_invalid_request_is_refused_by_name(start: Callable[..., Nvim]) -> None:
    """If the request has an id, the caller receives the error; otherwise every subscriber does."""
    nvim = start()
    nvim.lua("ask('save_draft', { chat = 'c1', txt = 'x' }); host.notify('nonsense', { chat = 'c1' })")
    assert "save_draft: Object" in replies(nvim, 1)[0]["err"]
    (failed,) = nvim.wait_for(lambda: events(nvim, "request_failed"))
    assert failed["verb"] == "nonsense"
    assert failed["chat"] == "c1"
    assert "unknown verb 'nonsense'" in failed["error"]


def test_invalid_utf8_does_not_stop_a_request(start: Callable[..., Nvim]) -> None:
    """A Latin-1 buffer may be part of a snapshot; the rest of the text still arrives."""
    nvim = start()
    nvim.lua(r"draft('caf\233 ok')")
    assert replies(nvim, 1)[0]["result"] == "caf\ufffd ok"


def test_a_burst_arrives_complete_and_in_order(start: Callable[..., Nvim]) -> None:
    """5,000 chunks are merged and batched, and none is lost."""
    nvim = start()
    nvim.lua("draft('burst 5000')")
    replies(nvim, 1)

    def text() -> str:
        return "".join(event["text"] for event in events(nvim, "text"))

    nvim.wait_for(lambda: "chunk4999 " in text(), "the last chunk")
    assert text() == "".join(f"chunk{number} " for number in range(5000))
    assert len(events(nvim, "text")) < 500


def test_a_failing_subscriber_does_not_block_the_others(start: Callable[..., Nvim]) -> None:
    """One broken part of the UI does not silence the others or block the editor with a prompt."""
    nvim = start()
    nvim.lua("for _ = 1, 3 do host.subscribe(function() error('broken view') end) end")
    nvim.lua("draft('burst 3')")
    nvim.wait_for(lambda: events(nvim, "text"))
    nvim.wait_for(lambda: "broken view" in nvim.messages(), "why it is not shown")
    assert not nvim.blocked()


def test_the_host_works_without_provider_and_without_rplugin(start: Callable[..., Nvim]) -> None:
    """This applies with `g:loaded_python3_provider = 0` and the rplugin runtime plugin disabled."""
    nvim = start("vim.g.loaded_python3_provider = 0; vim.g.loaded_remote_plugins = 1")
    nvim.lua("draft('one')")
    assert replies(nvim, 1)[0]["result"] == "one"


def test_a_missing_python_is_named(nvim_factory: Callable[..., Nvim], tmp_path: Path) -> None:
    """An invalid python.host_prog is reported."""
    nvim = nvim_factory(init=init_lua(tmp_path / "nowhere" / "python"))
    nvim.lua(RECORD)
    nvim.lua("draft('one')")
    assert "python.host_prog" in replies(nvim, 1)[0]["err"]
    assert "python.host_prog is not executable" in nvim.messages()
    assert not nvim.blocked()


@pytest.mark.parametrize(
    ("version", "modules", "expected"),
    [("(3, 9, 2)", "", "Python 3.11 or newer is required"), ("(3, 12, 0)", "pynvim", "pynvim is missing")],
)
def test_a_python_that_cannot_run_the_host_gives_the_reason(
    nvim_factory: Callable[..., Nvim], tmp_path: Path, version: str, modules: str, expected: str
) -> None:
    """If Python is too old or packages are missing, one sentence names `:CodeCompanion install`."""
    prelude = tmp_path / "old.py"
    prelude.write_text(
        "import collections, importlib.util, runpy, sys\n"
        f"V = collections.namedtuple('V', 'major minor micro'); sys.version_info = V(*{version})\n"
        f"find = importlib.util.find_spec\n"
        f"importlib.util.find_spec = lambda name, *a: None if name in {modules.split()!r} else find(name, *a)\n"
        "sys.argv = sys.argv[2:]\n"
        f"sys.path.insert(0, {str(REPO / 'python')!r})\n"
        "runpy.run_module('codecompanion.engine', run_name='__main__', alter_sys=True)\n"
    )
    script = tmp_path / "old-python"
    script.write_text(f'#!/bin/sh\nexec "{sys.executable}" "{prelude}" "$@"\n')
    script.chmod(0o755)
    nvim = nvim_factory(init=init_lua(script))
    nvim.lua(RECORD)
    nvim.lua("draft('one')")
    error = replies(nvim, 1)[0]["err"]
    assert expected in error
    assert ":CodeCompanion install" in error
    assert not nvim.blocked()


def test_the_host_gets_the_folder_of_cached_bytecode(nvim_factory: Callable[..., Nvim], tmp_path: Path) -> None:
    """The folder must be known before any import, so it is passed as an argument."""
    script = tmp_path / "python"
    keep = f'printf "%s\\n" "$@" > "{tmp_path}/arguments"'
    script.write_text(f'#!/bin/sh\n{keep}\nexec "{sys.executable}" "{STUB}" "$@"\n')
    script.chmod(0o755)
    options = f"{{ python = {{ host_prog = '{script}' }} }}"
    nvim = nvim_factory(init=f'require("codecompanion.config").setup({options})\n')
    nvim.lua(RECORD)
    nvim.lua("draft('one')")
    assert replies(nvim, 1)[0]["result"] == "one"
    folder = nvim.lua("return vim.fn.stdpath('data') .. '/codecompanion/modules'")
    assert (tmp_path / "arguments").read_text().splitlines()[3:] == [folder]


def test_a_deleted_working_folder_does_not_matter(start: Callable[..., Nvim], tmp_path: Path) -> None:
    """The host starts in its own folder."""
    nvim = start()
    gone = tmp_path / "gone"
    gone.mkdir()
    nvim.command(f"cd {gone}")
    gone.rmdir()
    nvim.lua("draft('one')")
    assert replies(nvim, 1)[0]["result"] == "one"


def test_the_host_exits_on_a_signal_without_leaving_a_process(start: Callable[..., Nvim]) -> None:
    """SIGTERM is a request to close, not a crash with a traceback."""
    nvim = start()
    nvim.lua("draft('one')")
    replies(nvim, 1)
    pid = nvim.lua("return host.inspect().pid")
    os.kill(pid, signal.SIGTERM)
    nvim.wait_for(lambda: events(nvim, "host_exit"))
    assert events(nvim, "host_exit")[0]["code"] == 0


def test_another_pythons_home_does_not_prevent_the_start(nvim_factory: Callable[..., Nvim]) -> None:
    """This applies if Neovim was started inside another Python's environment."""
    nvim = nvim_factory(init=init_lua(sys.executable, "vim.env.PYTHONHOME = '/nonsense'"))
    nvim.lua(RECORD)
    nvim.lua("host.start()")
    nvim.wait_lua("return host.status() == 'ready'")


def test_subscribers_are_called_in_order_and_may_come_and_go_during_an_event(start: Callable[..., Nvim]) -> None:
    """A removed subscriber is not called again, not even for the current event; a new one receives the next event."""
    nvim = start()
    heard = nvim.lua(
        """local heard, leave = {}, {}
           local function listen(name, also)
             leave[name] = host.subscribe(function(event)
               table.insert(heard, name .. event.number)
               if also and event.number == 1 then also() end
             end)
           end
           listen("a", function()
             leave.b()
             for n = 1, 50 do listen("new" .. n .. "-") end
           end)
           listen("b")
           listen("c")
           host.on_events('[{ "type": "x", "chat": "c1", "number": 1 }, { "type": "x", "chat": "c1", "number": 2 }]')
           return heard"""
    )
    assert heard == ["a1", "c1", "a2", "c2", *(f"new{number}-2" for number in range(1, 51))]


def test_the_python_in_use_is_recorded_for_the_command_line(start: Callable[..., Nvim], tmp_path: Path) -> None:
    """`bin/codecompanion` cannot ask Neovim for `python.host_prog`."""
    nvim = start()
    nvim.lua("draft('one')")
    nvim.wait_lua("return host.status() == 'ready'")
    noted = Path(nvim.lua("return vim.fn.stdpath('data')")) / "codecompanion" / "python"
    assert noted.read_text() == f"{tmp_path / 'stub-python'}\n"
