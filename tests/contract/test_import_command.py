"""`import` as used by outside callers (`:help codecompanion-cli`); the formats are tested in tests/unit/cli."""

from __future__ import annotations

import json

import pytest

from tests.contract.command_line import run

CHAT = {"messages": [{"role": "user", "content": "Why — \u2028?"}, {"role": "assistant", "content": "Because."}]}


def test_import_prints_the_transcript_format_for_other_commands(tmp_path):
    path = tmp_path / "chat.json"
    path.write_text(json.dumps(CHAT))
    status, out, err = run("import", "--from", "openai", str(path))
    assert (status, err) == (0, "")
    assert [json.loads(line) for line in out.split("\n") if line] == CHAT["messages"]
    assert run("import", "--from", "openai", "-", stdin=json.dumps(CHAT))[1] == out
    status, answer, _ = run("context", "-", stdin=out)
    assert status == 0
    assert json.loads(answer)["before"]["messages"] == 2


@pytest.mark.parametrize("origin", ["claude-code", "openai", "anthropic", "swe-agent", "codecompanion"])
def test_import_errors_name_file_and_line_and_print_nothing(origin, tmp_path):
    path = tmp_path / "chat.json"
    path.write_text('{"role": "user",\n')
    status, out, err = run("import", "--from", origin, str(path))
    assert (status, out) == (2, "")
    assert f"{path}:1: not JSON" in err
    assert "; expected " in err
    assert len(err.splitlines()) == 1


def test_importing_a_missing_file_is_bad_input(tmp_path):
    status, _, err = run("import", "--from", "openai", str(tmp_path / "none"))
    assert status == 2
    assert "No such file" in err


def test_importing_a_damaged_session_warns_and_succeeds(tmp_path):
    """Damaged parts are counted and named on stderr; stdout contains only the imported messages."""
    path = tmp_path / "s.jsonl"
    path.write_text('{"role": "user", "content": "a"}{"role": "assistant", "content": "b"}\n{"role": "us')
    status, out, err = run("import", "--from", "openai", str(path))
    assert status == 0
    assert [json.loads(line)["content"] for line in out.splitlines()] == ["a", "b"]
    assert err.startswith("warning: 1 part was not imported, 2 messages were:\n")
    assert f"{path}:2: not JSON" in err


def test_importing_a_truncated_document_prints_its_complete_part(tmp_path):
    """The incomplete message is named in a warning and not printed; the exit status is 0."""
    path = tmp_path / "chat.json"
    whole = json.dumps(CHAT, ensure_ascii=False)
    path.write_text(whole[:-12])
    status, out, err = run("import", "--from", "openai", str(path))
    assert status == 0
    assert [json.loads(line) for line in out.split("\n") if line] == CHAT["messages"][:1]
    assert err.startswith("warning: 1 part was not imported, 1 message was:\n")
    assert f"{path}:1: the file ends in the middle of messages[1]: not JSON" in err
