"""`insert_edit`: search and replace on disk."""

from __future__ import annotations

import stat
from collections.abc import Callable
from pathlib import Path

import pytest

from codecompanion.errors import ToolError
from codecompanion.tools.tool import ApprovalQuestion
from tests.unit.tools.conftest import Call

Ask = Callable[..., ApprovalQuestion | None]


async def test_an_edit_keeps_mode_line_ends_mark_and_missing_final_newline(root: Path, call: Call) -> None:
    file = root / "a.py"
    file.write_bytes(b"\xef\xbb\xbfone\r\ntwo\r\nthree")
    file.chmod(0o750)
    output = await call("insert_edit", path="a.py", old_text="two", new_text="2\nzwei")
    assert file.read_bytes() == b"\xef\xbb\xbfone\r\n2\r\nzwei\r\nthree"
    assert stat.S_IMODE(file.stat().st_mode) == 0o750
    assert output.text == "Edited a.py: 1 replacement, now at lines 2 to 3."
    assert output.change is not None
    assert output.change.path == str(file)


@pytest.mark.parametrize("encoding", ["utf-16", "latin-1"])
async def test_the_encoding_of_the_file_is_kept(root: Path, call: Call, encoding: str) -> None:
    (root / "a").write_bytes("grün\nblau\n".encode(encoding))
    assert not (await call("insert_edit", path="a", old_text="grün", new_text="weiß")).is_error
    assert (root / "a").read_bytes() == "weiß\nblau\n".encode(encoding)


async def test_a_character_the_encoding_lacks_changes_nothing(root: Path, call: Call) -> None:
    (root / "a").write_bytes("grün\n".encode("latin-1"))
    output = await call("insert_edit", path="a", old_text="grün", new_text="中")
    assert output.is_error
    assert (root / "a").read_bytes() == "grün\n".encode("latin-1")


@pytest.mark.parametrize(
    ("path", "said"),
    [
        ("none.py", "There is no file none.py. file_search finds files by name. create_file creates new files."),
        ("link", "outside the workspace"),
        ("binary", "is a binary file"),
        ("readonly", "is read-only. Nothing was changed"),
        (".", "is a folder"),
    ],
)
async def test_an_impossible_edit_is_an_error_and_changes_nothing(
    root: Path, tmp_path: Path, call: Call, path: str, said: str
) -> None:
    (root / "link").symlink_to("../outside/secret.txt")
    (root / "binary").write_bytes(b"secret\0")
    (root / "readonly").write_text("secret")
    (root / "readonly").chmod(0o444)
    output = await call("insert_edit", path=path, old_text="secret", new_text="public")
    assert output.is_error
    assert said in output.text
    assert (tmp_path / "outside" / "secret.txt").read_text() == "secret\n"
    assert (root / "readonly").read_text() == "secret"


async def test_an_edit_through_a_link_inside_changes_its_target_and_keeps_the_link(root: Path, call: Call) -> None:
    (root / "real").write_text("old")
    (root / "link").symlink_to("real")
    await call("insert_edit", path="link", old_text="old", new_text="new")
    assert (root / "real").read_text() == "new"
    assert (root / "link").is_symlink()


async def test_an_ambiguous_edit_names_the_file_and_the_lines(root: Path, call: Call) -> None:
    (root / "a").write_text("x\nx\n")
    output = await call("insert_edit", path="a", old_text="x", new_text="y")
    assert output.text.startswith("a: old_text occurs 2 times, at lines 1, 2")
    assert (await call("insert_edit", path="a", old_text="x", new_text="y", replace_all=True)).summary == "+2 −2"
    assert (root / "a").read_text() == "y\ny\n"


def test_the_question_shows_the_edit_without_applying_it(root: Path, ask: Ask) -> None:
    (root / "a").write_text("one\ntwo\n")
    question = ask("insert_edit", path="a", old_text="two", new_text="2")
    assert question == ApprovalQuestion(
        key="insert_edit",
        title="Edit a",
        body="--- a/a\n+++ b/a\n@@ -1,2 +1,2 @@\n one\n-two\n+2\n",
        filetype="diff",
        path=str(root / "a"),
        before="one\ntwo\n",
        after="one\n2\n",
    )
    assert (root / "a").read_text() == "one\ntwo\n"
    with pytest.raises(ToolError, match="not found"):
        ask("insert_edit", path="a", old_text="three", new_text="2")


async def test_a_failed_edit_quotes_nothing_from_a_key_file(root: Path, call: Call) -> None:
    (root / ".env").write_text("TOKEN=abc\n")
    (root / "a.txt").write_text("TOKEN=abc\n")
    assert "abc" in (await call("insert_edit", path="a.txt", old_text="TOKEN=abd", new_text="x")).text
    output = await call("insert_edit", path=".env", old_text="TOKEN=abd", new_text="x")
    assert output.text == (
        ".env: old_text was not found in the file; nothing was changed."
        " Its text is not shown: its name suggests keys or passwords."
    )
