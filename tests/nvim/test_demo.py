"""`codecompanion demo`: a recording replayed through the plugin in a real headless Neovim."""

from __future__ import annotations

import base64
import json
import re

import pytest

from codecompanion.context.policy.policy_catalog import policy_names
from codecompanion.placeholders import TOOL_RESULT_CLEARED
from harness import find_nvim
from tests.contract.command_line import run
from tests.patience import PATIENCE_S
from tools.demo.play import SESSION

PICTURE = base64.b64encode(b"\x89PNG\r\n\x1a\n" + b"\0" * 64).decode()


@pytest.fixture(autouse=True)
def nvim_or_skip():
    if find_nvim() is None:
        pytest.skip("no Neovim found: set NVIM_BIN, or run `make setup`")


def recording(turns):
    """Return a chat with rules, a file, an image and another agent's tools."""
    messages = [
        {"role": "user", "content": "Be brief.", "meta": {"tag": "rules", "path": "AGENTS.md"}},
        {"role": "user", "content": "file content " * 200, "meta": {"tag": "file", "path": "src/a.py"}},
        {
            "role": "user",
            "content": [{"type": "image_url", "image_url": {"url": f"data:image/png;base64,{PICTURE}"}}],
            "meta": {"tag": "image", "path": "shot.png"},
        },
    ]
    for i in range(turns):
        call = {"id": "same", "type": "function", "function": {"name": "str_replace_editor", "arguments": "{}"}}
        messages += [
            {"role": "user", "content": f"question {i}"},
            {"role": "assistant", "content": None, "tool_calls": [call]},
            {"role": "tool", "tool_call_id": "same", "content": f"recorded result {i} " * 200},
            {"role": "assistant", "content": f"answer {i} " * 40},
        ]
    return messages


def play(tmp_path, messages, *arguments):
    path = tmp_path / "session.jsonl"
    path.write_text("".join(json.dumps(message) + "\n" for message in messages))
    return run("demo", str(path), "--nvim", find_nvim() or "", *arguments, timeout_s=2 * PATIENCE_S)


def test_a_recording_is_edited_compacted_and_shown(tmp_path):
    """The output has the requests, the tokens before and after, the kept messages, the placeholders and the screen."""
    status, out, err = play(tmp_path, recording(14), "--window", "7600")
    assert (status, err) == (0, "")
    assert "1 tool result cleared" in out
    assert "→ a summary of" in out
    assert "28 requests, 14 tool calls" in out
    assert TOOL_RESULT_CLEARED in out
    assert "File content for `src/a.py` cleared during compaction" in out
    assert "Image content for `shot.png` cleared during compaction" in out
    assert "rules byte-identical to what was read: 1 of 1" in out
    assert "Summary · " in out
    assert re.search(r"· ~?\d+ %", out)


@pytest.mark.slow("every policy through a recorded session")
@pytest.mark.parametrize("policy", [name for name in policy_names() if name != "codecompanion"])
def test_every_policy_completes_a_recording(tmp_path, policy):
    """Each policy runs in the real plugin; every turn is answered and the rules stay, whatever is removed."""
    status, out, err = play(tmp_path, recording(14), "--window", "7600", "--policy", policy)
    assert (status, err) == (0, "")
    assert "28 requests, 14 tool calls" in out
    assert "tool results cleared" in out or "→ a summary of" in out
    assert "rules byte-identical to what was read: 1 of 1" in out
    assert "Internal error" not in out


def test_an_unknown_policy_is_bad_input(tmp_path):
    status, _, err = play(tmp_path, recording(1), "--policy", "codebudy")
    assert status == 2
    assert "codebuddy" in err


def test_a_recording_without_a_user_is_bad_input(tmp_path):
    status, _, err = play(tmp_path, [{"role": "assistant", "content": "x"}])
    assert status == 2
    assert "no message of a user" in err


def test_a_missing_neovim_is_one_line(tmp_path):
    path = tmp_path / "session.jsonl"
    path.write_text(json.dumps({"role": "user", "content": "x"}) + "\n")
    status, _, err = run("demo", str(path), "--nvim", "/does/not/exist")
    assert status == 1
    assert "no Neovim ≥ 0.10" in err
    assert len(err.splitlines()) == 1


@pytest.mark.skipif(not SESSION.exists(), reason="the built-in session is not part of this checkout")
def test_the_built_in_session_crosses_both_thresholds():
    """`make demo`."""
    status, out, err = run("demo", "--nvim", find_nvim() or "", timeout_s=2 * PATIENCE_S)
    assert (status, err) == (0, "")
    assert " edited " in out
    assert " compacted " in out
