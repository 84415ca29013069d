"""`run_command`: output, exit code, limits, and the hidden part of the environment."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from codecompanion.tools.builtin import RUN_COMMAND
from codecompanion.tools.builtin.run_command import KeptOutput
from codecompanion.tools.commands.command_environment import HiddenVariables
from codecompanion.tools.tool import ApprovalQuestion
from tests.unit.tools.conftest import Call

Ask = Callable[..., ApprovalQuestion | None]


@pytest.mark.parametrize(
    ("command", "text", "summary", "is_error"),
    [
        ("echo one; echo two >&2", "exit code 0\none\ntwo", "exit 0 · 2 lines", False),
        ("exit 3", "exit code 3\n[no output]", "exit 3 · 0 lines", True),
        ("kill -15 $$", "ended by signal 15\n[no output]", "ended by signal 15 · 0 lines", True),
        ("printf 'a\\rb\\r\\033[31mdone\\033[0m\\r\\n'", "exit code 0\ndone", "exit 0 · 1 line", False),
        ("printf 'x\\0y\\377'", "exit code 0\nx\ufffdy\ufffd", "exit 0 · 1 line", False),
        ("no-such-command-here", "exit code 127\n", "exit 127 · 1 line", True),
    ],
)
async def test_the_result_is_the_exit_code_and_the_output(
    call: Call, command: str, text: str, summary: str, is_error: bool
) -> None:
    output = await call("run_command", command=command)
    assert output.text.startswith(text)
    assert (output.summary, output.is_error) == (summary, is_error)


async def test_the_command_runs_in_the_workspace_or_a_folder_of_it(root: Path, call: Call) -> None:
    (root / "sub").mkdir()
    assert (await call("run_command", command="pwd")).text == f"exit code 0\n{root}"
    assert (await call("run_command", command="pwd", cwd="sub")).text == f"exit code 0\n{root}/sub"
    assert "outside the workspace" in (await call("run_command", command="pwd", cwd="..")).text
    assert "There is no folder none" in (await call("run_command", command="pwd", cwd="none")).text


async def test_the_command_does_not_see_keys(call: Call, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "sk-hidden")
    monkeypatch.setenv("MY_TOKEN", "sk-hidden")
    monkeypatch.setenv("PLAIN", "seen")
    monkeypatch.setenv("MINE", "sk-hidden")
    output = await call("run_command", {"hidden": HiddenVariables(of_adapters=frozenset({"MINE"}))}, command="env")
    assert "sk-hidden" not in output.text
    assert "PLAIN=seen" in output.text


async def test_output_before_the_time_limit_is_kept(call: Call) -> None:
    output = await call("run_command", {"timeout_s": 1.5}, command="echo started; sleep 1000")
    assert output.text == "stopped after the time limit of 1.5 seconds\nstarted"
    assert output.is_error
    output = await call("run_command", command="sleep 1000", timeout_s=0.1)
    assert output.text == "stopped after the time limit of 0.1 seconds\n[no output]"


async def test_the_model_cannot_raise_the_users_limit(call: Call) -> None:
    output = await call("run_command", {"timeout_s": 0.2}, command="sleep 1000", timeout_s=5000)
    assert output.text.startswith("stopped after the time limit of 0.2 seconds")


async def test_background_processes_are_reported(call: Call) -> None:
    output = await call("run_command", command="sleep 1000 & echo x")
    assert output.text == "exit code 0\nx\n[processes left running in the background were ended]"


async def test_of_a_huge_output_head_and_tail_are_kept_with_the_total(call: Call) -> None:
    output = await call("run_command", command="echo first; yes 0123456789 | head -c 49999994; echo last")
    assert output.text.startswith("exit code 0\nfirst\n0123456789\n")
    assert output.text.endswith("0123456789\nlast")
    assert "of 50,000,005 bytes of output were not kept" in output.text
    assert len(output.text) < 2_001_000


async def test_a_single_huge_line_is_kept_at_both_ends(call: Call) -> None:
    output = await call("run_command", command="head -c 5000000 /dev/zero | tr '\\0' x")
    assert output.text.startswith("exit code 0\nxxx")
    assert output.text.endswith("xxx")
    assert "3,000,000 of 5,000,000 bytes" in output.text


@given(st.lists(st.binary(max_size=30), max_size=30), st.integers(1, 40))
def test_memory_is_limited_and_both_ends_are_exact(chunks: list[bytes], limit: int) -> None:
    kept = KeptOutput(limit)
    for chunk in chunks:
        kept.add(chunk)
    whole = b"".join(chunks)
    assert kept.total_bytes == len(whole)
    assert len(kept._head) + sum(map(len, kept._tail)) <= 2 * limit + 30
    assert whole.startswith(bytes(kept._head))
    assert whole.endswith(b"".join(kept._tail))
    if len(whole) <= 2 * limit:
        assert bytes(kept._head) + b"".join(kept._tail) == whole


def test_a_question_is_asked_per_exact_command_and_folder(root: Path, ask: Ask) -> None:
    (root / "sub").mkdir()
    question = ask("run_command", command="./run test")
    assert question is not None
    assert msgspec.structs.replace(question, place="") == ApprovalQuestion(
        key="run_command:\0./run test",
        title="./run test",
        body="./run test",
        filetype="sh",
        command="./run test",
        cwd=str(root.resolve()),
        limit_s=30,
    )
    elsewhere = ask("run_command", command="./run test", cwd="sub")
    assert elsewhere is not None
    assert (elsewhere.key, elsewhere.title) == ("run_command:sub\0./run test", "./run test (in sub)")
    assert (elsewhere.command, elsewhere.folder) == ("./run test", "sub")
    in_root = ask("run_command", command="sub:./run test")
    assert in_root is not None
    assert in_root.key != elsewhere.key
    long = ask("run_command", command=f"echo {'x' * 200}\nrm -rf ~")
    assert long is not None
    assert long.title == f"echo {'x' * 200}"  # the editor cuts it


def test_the_title_is_the_first_line(root: Path) -> None:
    assert RUN_COMMAND.title({"command": "make test"}) == "run_command make test"
    assert RUN_COMMAND.title({"command": "cat <<E\nx\nE"}) == "run_command cat <<E…"
