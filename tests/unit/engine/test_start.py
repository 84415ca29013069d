"""The imports of a host until it can greet, open a chat and accept a message: none is needed only later."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

START = """
import asyncio, sys
from codecompanion.engine import bridge
from codecompanion.engine.runtime import Runtime
from codecompanion.wire.requests import CloseChat, Hello, OpenChat, Snapshot

print(*sorted(sys.modules))

async def start(root, adapter):
    runtime = Runtime(lambda event: None)
    settings = {"rules": {"enabled": False}, "chat": {"adapter": adapter, "model": "gpt-4o"}}
    folders = {"data_dir": root, "cache_dir": root, "state_dir": root, "log_path": root + "/log"}
    mistakes = await runtime.handle(Hello(settings=settings, nvim="0.11", **folders))
    assert mistakes == [], mistakes
    print(*sorted(sys.modules))
    await runtime.handle(OpenChat(chat="c", snapshot=Snapshot(cwd=root)))
    runtime._chats["c"].control.adapter()
    print(*sorted(sys.modules))
    await runtime.handle(CloseChat(chat="c"))
    await runtime.aclose()

asyncio.run(start(*sys.argv[1:]))
"""
OTHERS = "openai anthropic pydantic genai_prices tiktoken pathspec mcp numpy tree_sitter aiohttp zipfile csv".split()
OTHERS += ["importlib.metadata"]
LATER = "dataclasses importlib.resources tempfile shutil calendar email".split()
"""Modules that the transport needs, but a host that greets does not."""
OURS = """
    cli retrieval completion adapters.chatgpt adapters.copilot adapters.login_adapter adapters.completion
    session.complete edit_in_place session.edit_in_place
    engine.doctor engine.doctor_code engine.look store.vocabulary session.accounts.reporting reports.cost
    reports.trace session.compaction.forecast session.compaction.preview session.history.forking
    session.history.inspection model.gathered session.codebase.gatherer session.codebase.gathered_message
    session.codebase.code_report reports.gathered_code
""".split()
WIRES = {"openai": "openai_chat", "openai_responses": "openai_responses", "anthropic": "anthropic_messages"}


@pytest.mark.parametrize("adapter", WIRES)
def test_a_started_host_has_not_imported_later_needs(tmp_path: Path, adapter: str) -> None:
    """Each of these would slow every start of a host; the SDKs more than everything else together."""
    command = [sys.executable, "-c", START, str(tmp_path), adapter]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    first, greeted, imported = (set(line.split()) for line in done.stdout.splitlines())
    assert first & {*OTHERS, *LATER} == set()
    assert greeted & {"codecompanion.session.session", "codecompanion.session.chat.chat", "httpx2"} == set()
    assert "codecompanion.session.session" in imported
    assert imported & {*OTHERS, *(f"codecompanion.{name}" for name in OURS)} == set()
    wires = {name for name in WIRES.values() if f"codecompanion.adapters.{name}.wire" in imported}
    assert wires | {"openai_chat"} == {"openai_chat", WIRES[adapter]}  # the others use parts of it


FIRST_TOKEN = """
import asyncio, sys
from codecompanion.engine import bridge
from codecompanion.engine.runtime import Runtime
from codecompanion.formats.regex import LazyPattern
from codecompanion.wire.events import Text
from codecompanion.wire.requests import CloseChat, Hello, OpenChat, Snapshot, Submit

OK = b"HTTP/1.1 200 OK\\r\\ncontent-type: text/event-stream\\r\\nconnection: close\\r\\n\\r\\n"
CHUNK = b'data: {"choices": [{"index": 0, "delta": {"content": "Hello"}, "finish_reason": "stop"}]}\\n\\n'
patterns = []

def count(pattern, compiled=LazyPattern.compiled):
    patterns.append(pattern.pattern)
    return compiled(pattern)

LazyPattern.compiled = count

async def answer(reader, writer):
    head = await reader.readuntil(b"\\r\\n\\r\\n")
    if b"/chat/completions" in head:
        writer.write(OK + CHUNK + b"data: [DONE]\\n\\n")
    else:
        writer.write(b"HTTP/1.1 404 Not Found\\r\\ncontent-length: 0\\r\\nconnection: close\\r\\n\\r\\n")
    await writer.drain()
    writer.close()

async def start(root):
    arrived = asyncio.get_running_loop().create_future()

    def emit(event):
        if isinstance(event, Text) and not arrived.done():
            arrived.set_result((sorted(sys.modules), len(patterns)))

    server = await asyncio.start_server(answer, "127.0.0.1", 0)
    address = "http://127.0.0.1:%d/v1" % server.sockets[0].getsockname()[1]
    runtime = Runtime(emit)
    entry = {"kind": "openai", "base_url": address, "key": "FIRST_TOKEN_KEY"}
    settings = {"rules": {"enabled": False}, "chat": {"adapter": "o", "model": "gpt-4o"}, "adapters": {"o": entry}}
    folders = {"data_dir": root, "cache_dir": root, "state_dir": root, "log_path": root + "/log"}
    mistakes = await runtime.handle(Hello(settings=settings, nvim="0.11", **folders))
    assert mistakes == [], mistakes
    await runtime.handle(OpenChat(chat="c", snapshot=Snapshot(cwd=root)))
    await runtime.handle(Submit(chat="c", text="Hello", snapshot=Snapshot(cwd=root), submit_id="s"))
    modules, compiled = await asyncio.wait_for(arrived, 30)
    from codecompanion.context.policy.policy_catalog import _stages_of_file
    print(compiled, _stages_of_file.cache_info().currsize)
    print(*modules)
    await runtime.handle(CloseChat(chat="c"))
    await runtime.aclose()
    server.close()

asyncio.run(start(sys.argv[1]))
"""
MAX_OURS = 369
"""Modules of this package before the first token: 348 when this was written, 472 before modules were deferred."""
MAX_PATTERNS = 35
"""Maximum number of this package's patterns compiled before the first token; currently about 25."""
MAX_OPENED = 60
"""Maximum number of sources and `.pyc` files opened despite the module cache: modules imported before it."""
NOT_BEFORE_THE_FIRST_TOKEN = """
    context.artifact context.ledger context.grounding context.selection context.transcript context.summary.summarize_one
    context.editing.clear_tool_results context.editing.clear_when_it_pays context.editing.trimming
    tools.runner tools.process tools.narrowing tools.file_changes tools.commands.grant_offer tools.commands.network
    tools.commands.command_line tools.builtin.run_command tools.builtin.read_file tools.builtin.insert_edit
    tools.sandbox.confined tools.sandbox.host_proxy session.actions.reverting session.actions.view_edits
    session.chat.removed_messages session.storage.from_checkpoint session.storage.resume store.search.find
    reports adapters.offline engine.old_temporary_files cli retrieval completion mcp
""".split()


def test_a_first_token_needs_few_modules_and_patterns(tmp_path: Path) -> None:
    """A fresh chat pays for its own request: no strategy, tool, search or repair is loaded for it."""
    command, environment = [sys.executable, "-c", FIRST_TOKEN, str(tmp_path)], {**os.environ, "FIRST_TOKEN_KEY": "sk-x"}
    done = subprocess.run(command, capture_output=True, text=True, check=False, env=environment)
    assert done.returncode == 0, done.stderr
    counts, names = done.stdout.splitlines()
    patterns, recovery_files = map(int, counts.split())
    ours = {name.removeprefix("codecompanion.") for name in names.split() if name.startswith("codecompanion.")}
    assert "session.turn.turn" in ours
    early = [name for name in NOT_BEFORE_THE_FIRST_TOKEN for one in ours if f"{one}.".startswith(f"{name}.")]
    assert early == []
    assert len(ours) <= MAX_OURS
    assert patterns <= MAX_PATTERNS
    assert recovery_files == 0  # the request fits


WITH_MODULE_CACHE = """
import sys

opened = []
sys.addaudithook(lambda event, about: event == "open" and opened.append(str(about[0])))
from codecompanion.engine.module_cache import module_cache, use_module_cache

use_module_cache(sys.argv[1] + "/modules")
{start}
from codecompanion.engine.module_cache_writer import write_module_cache

print(write_module_cache(module_cache()), sum(name.endswith((".pyc", ".py")) for name in list(opened)))
"""


def test_a_second_start_opens_few_files_of_modules(tmp_path: Path) -> None:
    """Finding and opening each of 650 files was a seventh of the CPU time until the first token."""
    command = [sys.executable, "-c", WITH_MODULE_CACHE.format(start=FIRST_TOKEN), str(tmp_path)]
    environment, results = {**os.environ, "FIRST_TOKEN_KEY": "sk-x"}, []
    for _ in range(2):
        done = subprocess.run(command, capture_output=True, text=True, check=False, env=environment)
        assert done.returncode == 0, done.stderr
        is_written, opened = done.stdout.splitlines()[-1].split()
        results.append((is_written, int(opened)))
    (first, before), (second, after) = results
    assert (first, second) == ("True", "False")
    assert before > MAX_OURS
    assert after < MAX_OPENED


IMPORT_ALL = """
import pkgutil, sys, codecompanion
alone = ("codecompanion.tools.sandbox.inside.launcher",)
names = [one.name for one in pkgutil.walk_packages(codecompanion.__path__, "codecompanion.")]
for name in names:
    if not name.endswith("__main__") and name not in alone:
        __import__(name)
print(len(sys.modules))
"""


def test_every_module_can_be_imported_in_one_process() -> None:
    """Most are imported late, by the function that needs them: a mistake in one must not stay hidden until then."""
    done = subprocess.run([sys.executable, "-c", IMPORT_ALL], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert int(done.stdout) > MAX_OURS
