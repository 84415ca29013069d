"""`create_file` and `delete_file`."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from codecompanion.errors import ToolError
from codecompanion.tools.tool import ApprovalQuestion
from tests.unit.tools.conftest import Call, names_in

Ask = Callable[..., ApprovalQuestion | None]


async def test_a_file_is_created_with_its_folders_exactly_as_given(root: Path, call: Call) -> None:
    output = await call("create_file", path="neu/ä 中.txt", content="a\r\nb")
    assert (root / "neu" / "ä 中.txt").read_bytes() == b"a\r\nb"
    assert (output.text, output.summary) == ("Created neu/ä 中.txt: 2 lines.", "+2")
    assert output.change is not None
    assert output.change.path == str(root / "neu" / "ä 中.txt")


async def test_an_existing_file_is_replaced_only_on_request(root: Path, call: Call) -> None:
    (root / "a").write_text("old")
    output = await call("create_file", path="a", content="new")
    assert output.is_error
    assert "a already exists" in output.text
    assert (root / "a").read_text() == "old"
    assert (await call("create_file", path="a", content="new", overwrite=True)).text == "Replaced a: 1 line."
    assert (root / "a").read_text() == "new"


@pytest.mark.parametrize(
    ("path", "said"),
    [
        ("../outside/new", "outside the workspace"),
        ("link/new", "outside the workspace"),
        ("dangling", "outside the workspace"),
        ("file/new", "file is a file, not a folder"),
        ("folder", "folder is a folder"),
        ("new/", "is a folder"),
        ("x" * 300, "cannot be used"),
    ],
)
async def test_a_file_is_never_created_outside_or_over_something_else(
    root: Path, tmp_path: Path, call: Call, path: str, said: str
) -> None:
    (root / "link").symlink_to("../outside")
    (root / "dangling").symlink_to("../outside/new")
    (root / "file").write_text("")
    (root / "folder").mkdir()
    output = await call("create_file", path=path, content="x", overwrite=True)
    assert output.is_error
    assert said in output.text
    assert names_in(tmp_path / "outside") == ["secret.txt"]


def test_the_question_shows_the_new_file_or_what_changes_in_the_old(root: Path, ask: Ask) -> None:
    question = ask("create_file", path="a", content="x\n")
    assert question is not None
    assert (question.key, question.title, question.filetype) == ("create_file", "Create a", "diff")
    assert question.body == "--- /dev/null\n+++ b/a\n@@ -0,0 +1 @@\n+x\n"
    (root / "a").write_text("y\n")
    question = ask("create_file", path="a", content="x\n", overwrite=True)
    assert question is not None
    assert (question.title, question.body) == ("Replace a", "--- a/a\n+++ b/a\n@@ -1 +1 @@\n-y\n+x\n")
    with pytest.raises(ToolError, match="already exists"):
        ask("create_file", path="a", content="x\n")


async def test_a_file_is_deleted_and_a_folder_is_not(root: Path, call: Call) -> None:
    (root / "a").write_text("x")
    (root / "folder").mkdir()
    assert (await call("delete_file", path="a")).text == "Deleted a."
    assert not (root / "a").exists()
    assert "only files can be deleted" in (await call("delete_file", path="folder")).text
    assert "only files can be deleted" in (await call("delete_file", path=".")).text
    assert "There is no file a" in (await call("delete_file", path="a")).text


async def test_of_a_link_only_the_link_is_deleted(root: Path, tmp_path: Path, call: Call) -> None:
    (root / "link").symlink_to("../outside/secret.txt")
    (root / "folder").symlink_to("../outside")
    assert (await call("delete_file", path="link")).text == "Deleted link."
    assert "outside the workspace" in (await call("delete_file", path="folder/secret.txt")).text
    assert "outside the workspace" in (await call("delete_file", path="../outside/secret.txt")).text
    assert (await call("delete_file", path="folder")).text == "Deleted folder."
    assert (tmp_path / "outside" / "secret.txt").exists()


def test_the_deletion_question_names_only_this_path_and_shows_the_loss(root: Path, ask: Ask) -> None:
    (root / "a").write_text("line\n" * 50)
    question = ask("delete_file", path="./a")
    assert question is not None
    assert question.key == f"delete_file:{root}/a"
    assert question.body.startswith("a: 50 lines\n\nline\n")
    assert question.body.endswith("line\n… 10 more lines\n")
