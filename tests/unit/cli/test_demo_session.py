"""The recorded session of `make demo`: written by us, consistent, long enough (1)."""

from __future__ import annotations

import ast
import json
from pathlib import Path

import pytest

from codecompanion.cli.__main__ import main
from codecompanion.counting.tokens import MessageCounter
from codecompanion.model.invariants import pair_tool_calls
from codecompanion.model.messages import IMAGE_TAG, RULES_TAG, Message
from codecompanion.model.transcript_format import read_bytes
from tools.demo.make_session import record
from tools.demo.play import SESSION

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
    return read_bytes(SESSION.read_bytes().split(b"\n"), SESSION.name).messages


def test_the_committed_session_equals_the_scripts_output() -> None:
    assert record()[1] == SESSION.read_text(encoding="utf-8"), "run `python -m tools.demo.make_session`"


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


def test_the_invented_project_is_valid_python(messages: tuple[Message, ...]) -> None:
    """The files shown and written in the session can be parsed."""
    session, _ = record()
    for path, text in session.files.items():
        if path.endswith(".py"):
            ast.parse(text, path)


def test_an_installed_package_reports_that_the_demo_needs_a_checkout(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """The demo player is in `tools/`, which is never installed."""
    monkeypatch.setattr("codecompanion.cli.commands.demo.CHECKOUT", tmp_path)
    assert main(["demo"]) == 1
    assert "in a checkout of the plugin" in capsys.readouterr().err
