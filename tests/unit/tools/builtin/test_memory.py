"""`memory` (R-550): notes under `/memories`, and nothing else."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from codecompanion.errors import CodeCompanionError
from codecompanion.tools.builtin.memory import _Folders, _real
from codecompanion.tools.tool import ApprovalQuestion
from codecompanion.workspace.secret_text import why_secret
from tests.unit.tools.conftest import Call, names_in

Ask = Callable[..., ApprovalQuestion | None]


@pytest.fixture
def memory(tmp_path: Path) -> Path:
    return tmp_path / "memory"


async def test_a_note_is_created_viewed_edited_renamed_and_deleted(memory: Path, call: Call) -> None:
    assert (
        await call("memory", command="view", path="/memories")
    ).text == "/memories is empty: there are no memories yet."
    await call("memory", command="create", path="/memories/a/b.md", file_text="one\nthree\n")
    await call("memory", command="insert", path="/memories/a/b.md", insert_line=1, insert_text="two")
    await call("memory", command="str_replace", path="/memories/a/b.md", old_str="three", new_str="3")
    assert (memory / "a" / "b.md").read_text() == "one\ntwo\n3\n"
    assert (await call("memory", command="view", path="/memories/a/b.md")).text == "1\tone\n2\ttwo\n3\t3"
    assert (await call("memory", command="view", path="/memories/a/b.md", view_range=[2, -1])).text == "2\ttwo\n3\t3"
    await call("memory", command="rename", old_path="/memories/a/b.md", new_path="/memories/c/d.md")
    view = await call("memory", command="view", path="/memories/")
    assert view.text == "Files in /memories:\n/memories/a/\n/memories/c/\n/memories/c/d.md (10 bytes)"
    assert (await call("memory", command="delete", path="/memories/c")).text == "Deleted /memories/c."
    assert names_in(memory) == ["a"]


async def test_an_unwritable_note_is_named_by_the_models_path(memory: Path, call: Call) -> None:
    """The real folder is irrelevant to the model, and would push the reason off the line."""
    await call("memory", command="create", path="/memories/a.md", file_text="one\n")
    (memory / "a.md").chmod(0o400)
    failed = await call("memory", command="insert", path="/memories/a.md", insert_line=1, insert_text="two")
    assert failed.text.startswith("/memories/a.md is read-only")
    assert str(memory) not in failed.text


async def test_only_the_user_can_read_a_note(memory: Path, call: Call) -> None:
    """Lesson 44: this includes a note that others could read before."""
    await call("memory", command="create", path="/memories/a.md", file_text="one\n")
    assert (memory / "a.md").stat().st_mode & 0o777 == 0o600
    assert memory.stat().st_mode & 0o077 == 0
    (memory / "a.md").chmod(0o644)
    await call("memory", command="insert", path="/memories/a.md", insert_line=1, insert_text="two")
    assert (memory / "a.md").stat().st_mode & 0o777 == 0o600


@pytest.mark.parametrize(
    ("content", "line", "text", "result"),
    [
        ("", 0, "a", "a"),
        ("b\n", 0, "a", "a\nb\n"),
        ("a", 1, "b", "a\nb"),
        ("a\n", 1, "b\n", "a\nb\n"),
        ("a\x0bb\n", 1, "c", "a\x0bb\nc"),
    ],
)
async def test_a_line_is_inserted_after_the_line_named(
    memory: Path, call: Call, content: str, line: int, text: str, result: str
) -> None:
    await call("memory", command="create", path="/memories/n", file_text=content)
    await call("memory", command="insert", path="/memories/n", insert_line=line, insert_text=text)
    assert (memory / "n").read_text() == result


@pytest.mark.parametrize(
    "path",
    [
        "/etc/passwd",
        "memories/../x",
        "/memories/../secret",
        "/memories/a/../../secret",
        "/memories2/x",
        "/memories\0/x",
        "/memories/..\\x",
        "/memories/link/secret.txt",
        "/memories/file",
        "../memories/x",
        "",
        "/",
    ],
)
async def test_no_command_reaches_outside_the_folder(memory: Path, tmp_path: Path, call: Call, path: str) -> None:
    memory.mkdir()
    (memory / "link").symlink_to("../outside")
    (memory / "file").symlink_to("../outside/secret.txt")
    (memory / "note").write_text("x")
    for arguments in (
        {"command": "view", "path": path},
        {"command": "create", "path": path, "file_text": "x"},
        {"command": "str_replace", "path": path, "old_str": "secret", "new_str": "x"},
        {"command": "insert", "path": path, "insert_line": 0, "insert_text": "x"},
        {"command": "delete", "path": path},
        {"command": "rename", "old_path": path, "new_path": "/memories/new"},
        {"command": "rename", "old_path": "/memories/note", "new_path": path},
    ):
        output = await call("memory", **arguments)
        assert output.is_error, arguments
        assert "secret\n" not in output.text
    assert (tmp_path / "outside" / "secret.txt").read_text() == "secret\n"
    assert names_in(memory) == ["file", "link", "note"]
    assert names_in(tmp_path / "outside") == ["secret.txt"]


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow])
@given(
    st.lists(st.sampled_from(["/", "memories", "..", ".", "link", "a", "\0", "~", " ", "\\", "%2e%2e"]), max_size=10)
)
def test_no_path_leads_out_of_the_folder(tmp_path: Path, pieces: list[str]) -> None:
    folder = tmp_path / "memory"
    folder.mkdir(exist_ok=True)
    if not (folder / "link").is_symlink():
        (folder / "link").symlink_to("/")
    try:
        real = _real("/memories/" + "".join(pieces), _Folders(folder))
    except CodeCompanionError:
        return
    assert real == folder or folder in real.parents
    assert os.path.realpath(real) == str(real)


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ({"command": "create", "path": "/memories/x"}, "memory create also needs `file_text`."),
        ({"command": "rename", "path": "/memories/x"}, "memory rename also needs `old_path`, `new_path`."),
        ({"command": "create", "path": "/memories/note", "file_text": ""}, "already exists"),
        ({"command": "create", "path": "/memories", "file_text": ""}, "already exists"),
        ({"command": "create", "path": "/memories/big", "file_text": "x" * 200_001}, "the limit is 200,000"),
        ({"command": "create", "path": "/memories/note/x", "file_text": ""}, "Nothing was changed"),
        ({"command": "view", "path": "/memories/none"}, "There is no /memories/none"),
        ({"command": "view", "path": "/memories/note", "view_range": [2, 1]}, "is not a range"),
        ({"command": "insert", "path": "/memories/note", "insert_line": 5, "insert_text": ""}, "beyond its end"),
        ({"command": "str_replace", "path": "/memories/note", "old_str": "zz", "new_str": ""}, "not found"),
        ({"command": "delete", "path": "/memories"}, "cannot be deleted"),
        ({"command": "rename", "old_path": "/memories/note", "new_path": "/memories/note"}, "already exists"),
        ({"command": "rename", "old_path": "/memories", "new_path": "/memories/x"}, "cannot be renamed"),
        ({"command": "rename", "old_path": "/memories/d", "new_path": "/memories/d/x"}, "memory rename failed"),
        ({"command": "insert", "path": "/memories/d", "insert_line": 0, "insert_text": ""}, "is a folder"),
    ],
)
async def test_an_impossible_command_is_an_error_with_the_reason(
    memory: Path, call: Call, arguments: dict[str, object], said: str
) -> None:
    memory.mkdir()
    (memory / "note").write_text("a\n")
    (memory / "d").mkdir()
    output = await call("memory", **arguments)
    assert output.is_error
    assert said in output.text
    assert (memory / "note").read_text() == "a\n"


def test_writing_asks_viewing_does_not_and_a_deletion_asks_per_path(ask: Ask) -> None:
    assert ask("memory", command="view", path="/memories") is None
    created = ask("memory", command="create", path="/memories/a", file_text="x")
    deleted = ask("memory", command="delete", path="/memories/a")
    assert created is not None
    assert deleted is not None
    assert (created.key, created.title, created.body) == ("memory", "Memory: create", "path: /memories/a\nfile_text: x")
    assert deleted.key == "memory:delete:/memories/a"


@pytest.mark.parametrize("command", ["create", "insert", "str_replace"])
async def test_a_secret_is_not_saved(memory: Path, call: Call, command: str) -> None:
    """Later chats read the memory, and it is sent to other providers."""
    await call("memory", command="create", path="/memories/a.md", file_text="one\n")
    token = "ghp_" + "aB3dE5fG7hJ9kL1mN3pQ5rS7tU9vW1xY3zA5"
    arguments = {
        "create": {"path": "/memories/b.md", "file_text": token},
        "insert": {"path": "/memories/a.md", "insert_line": 0, "insert_text": token},
        "str_replace": {"path": "/memories/a.md", "old_str": "one", "new_str": token},
    }[command]
    result = await call("memory", {"why_secret": why_secret}, command=command, **arguments)
    assert result.is_error
    assert "omit the secret" in result.text
    assert token not in result.text
    assert {path.read_text() for path in memory.iterdir()} == {"one\n"}


async def test_a_folder_is_limited_to_a_thousand_notes(memory: Path, call: Call) -> None:
    memory.mkdir()
    for number in range(1000):
        (memory / f"{number}.md").write_text("x")
    result = await call("memory", command="create", path="/memories/new.md", file_text="x")
    assert result.is_error
    assert "merge or delete some first" in result.text
    listed = await call("memory", command="view", path="/memories")
    assert listed.text.endswith("… 800 more: search finds them.")


async def test_a_search_without_a_hit_says_so(call: Call) -> None:
    assert (await call("memory", command="search", query="x")).text == "No memory contains these words."
    assert "also needs `query`" in (await call("memory", command="search")).text
