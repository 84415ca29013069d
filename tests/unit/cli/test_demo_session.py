"""The recorded session of `make demo`: made by us, consistent, long enough (issue 2, how it is shown, 1)."""

from __future__ import annotations

import ast
import json
import subprocess
import sys
from pathlib import Path

import pytest

from codecompanion.cli.demo import SESSION
from codecompanion.counting.tokens import MessageCounter
from codecompanion.formats.transcript_format import read_lines
from codecompanion.model.invariants import pair_tool_calls
from codecompanion.model.messages import IMAGE_TAG, RULES_TAG, Message

BENCH = Path(__file__).resolve().parents[3] / "bench"
TOOLS = {
    "read_file",
    "grep_search",
    "file_search",
    "insert_edit",
    "create_file",
    "run_command",
    "get_diagnostics",
    "memory",
}


@pytest.fixture(scope="module")
def messages() -> tuple[Message, ...]:
    """Return the messages of the committed session."""
    return read_lines(SESSION.read_text(encoding="utf-8").splitlines(), SESSION.name).messages


def test_the_committed_session_is_what_the_script_writes() -> None:
    run = subprocess.run(
        [sys.executable, str(BENCH / "make_demo_session.py"), "--check"], capture_output=True, text=True, check=False
    )
    assert run.returncode == 0, f"run bench/make_demo_session.py\n{run.stderr}"


def test_it_outgrows_a_window_of_128k_and_stays_a_small_file(messages: tuple[Message, ...]) -> None:
    assert MessageCounter().count_messages(messages) > 1.4 * 128_000
    assert SESSION.stat().st_size < 900_000


def test_every_call_has_its_result_and_only_our_tools_are_called(messages: tuple[Message, ...]) -> None:
    pairing = pair_tool_calls(messages)
    calls = [(index, n) for index, message in enumerate(messages) for n in range(len(message.tool_calls))]
    assert len(calls) >= 80
    assert set(pairing.result_of) == set(calls)
    assert {call.name for message in messages for call in message.tool_calls} == TOOLS
    for message in messages:
        for call in message.tool_calls:
            assert isinstance(json.loads(call.arguments), dict)


def test_it_has_rules_a_file_an_image_parallel_calls_and_a_failure(messages: tuple[Message, ...]) -> None:
    tags = [message.tag for message in messages if message.tag]
    assert sorted(tags) == ["file", IMAGE_TAG, RULES_TAG]
    assert next(message for message in messages if message.tag == RULES_TAG).path == "AGENTS.md"
    assert any(len(message.tool_calls) > 3 for message in messages)
    assert any(message.is_error for message in messages if message.role == "tool")
    assert sum(message.role == "user" and message.tag is None for message in messages) >= 14


def test_the_invented_project_is_python(messages: tuple[Message, ...]) -> None:
    """What the session shows of files and writes into them can be parsed."""
    sys.path.insert(0, str(BENCH))
    try:
        from make_demo_session import record  # type: ignore[import-not-found]
    finally:
        sys.path.remove(str(BENCH))
    session, _ = record()
    for path, text in session.files.items():
        if path.endswith(".py"):
            ast.parse(text, path)
