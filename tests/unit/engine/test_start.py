"""What a host imports to greet, open a chat and be ready for a message: not what it may need later."""

from __future__ import annotations

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
"""The transport needs them; a host that greets does not."""
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
def test_a_started_host_has_not_imported_what_it_does_not_need_yet(tmp_path: Path, adapter: str) -> None:
    """Each of these cost every start of a host; the SDKs more than all else together."""
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
