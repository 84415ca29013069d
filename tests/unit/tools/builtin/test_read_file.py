"""`read_file`: ranges, stored results, and everything that is not a readable text file."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from codecompanion.tools.approval import Approvals
from codecompanion.tools.builtin import READ_FILE
from codecompanion.tools.limit import shorten
from codecompanion.tools.runner import decided
from codecompanion.tools.tool import ToolContext
from tests.unit.tools.conftest import Call


async def test_a_file_has_line_numbers(root: Path, call: Call) -> None:
    (root / "a.py").write_bytes(b"one\r\n\r\nthree \xc3\xa9")
    output = await call("read_file", path="a.py")
    assert (output.text, output.summary, output.is_error) == ("1\tone\n2\t\n3\tthree é", "3 lines", False)


@pytest.mark.parametrize(
    ("first", "last", "text"),
    [
        (2, 3, "2\tb\n3\tc\n[2 more lines up to line 5]"),
        (5, 5, "5\te"),
        (4, 99, "4\td\n5\te"),
        (1, 1, "1\ta\n[4 more lines up to line 5]"),
    ],
)
async def test_a_range_is_inclusive_and_reports_the_rest(
    root: Path, call: Call, first: int, last: int, text: str
) -> None:
    (root / "a").write_text("a\nb\nc\nd\ne\n")
    assert (await call("read_file", path="a", start_line=first, end_line=last)).text == text


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ({"path": "a", "start_line": 4}, "a has 3 lines; start_line 4 is beyond its end."),
        ({"path": "a", "start_line": 3, "end_line": 2}, "end_line 2 comes before start_line 3."),
        ({"path": "A.PY"}, "There is no file A.PY. Did you mean sub/a.py?"),
        ({"path": "none"}, "There is no file none. file_search finds files by name."),
        ({"path": "sub"}, "sub is a folder; file_search lists the files in it."),
        ({"path": "binary"}, "is a binary file of 6 bytes."),
        ({"path": "fifo"}, "is not a regular file."),
        ({"path": "../outside/secret.txt"}, "is outside the workspace"),
        ({"path": "link"}, "link is outside the workspace"),
        ({"path": "/proc/self/environ"}, "is outside the workspace"),
        ({"path": "stored:../../etc/passwd"}, "There is no stored result"),
    ],
)
async def test_an_unreadable_file_is_an_error_with_a_hint(
    root: Path, call: Call, arguments: dict[str, object], said: str
) -> None:
    (root / "a").write_text("1\n2\n3\n")
    (root / "sub").mkdir()
    (root / "sub" / "a.py").write_text("")
    (root / "binary").write_bytes(b"PK\x03\x04\0\0")
    (root / "link").symlink_to("../outside/secret.txt")
    os.mkfifo(root / "fifo")
    output = await call("read_file", **arguments)
    assert output.is_error
    assert said in output.text
    assert "secret\n" not in output.text


async def test_an_empty_file_is_reported_as_such(root: Path, call: Call) -> None:
    (root / "a").write_text("")
    assert (await call("read_file", path="a")).text == "a is empty."


async def test_names_and_bytes_that_are_not_ascii_are_read(root: Path, call: Call) -> None:
    (root / "grüße 中.txt").write_bytes(b"ok \xff\x1b[31m")
    assert (await call("read_file", path="grüße 中.txt")).text == "1\tok ÿ\ufffd[31m"


async def test_a_file_without_permission_is_an_error(as_nobody: Path, call: Call) -> None:
    from codecompanion.workspace.paths import Workspace

    (as_nobody / "a").write_text("x")
    (as_nobody / "a").chmod(0)
    workspace = Workspace(as_nobody)
    output = await call("read_file", {"root": workspace.root, "resolve": workspace.resolve}, path="a")
    assert output.is_error
    assert "cannot be read: permission denied." in output.text


async def test_the_rest_of_a_truncated_result_is_read_as_in_its_note(call: Call, stored: dict[str, str]) -> None:
    sha = "ef" * 32
    stored[sha] = "".join(f"line {number}\n" for number in range(1, 1001))
    assert f'"stored:{sha}", start_line' in shorten(stored[sha], 2000, sha)
    output = await call("read_file", path=f"stored:{sha}", start_line=500, end_line=501)
    assert output.text == "500\tline 500\n501\tline 501\n[499 more lines up to line 1000]"


async def test_only_a_sha256_reaches_the_store(call: Call, stored: dict[str, str]) -> None:
    stored["../secret"] = "secret"
    assert (await call("read_file", path="stored:../secret")).is_error
    assert (await call("read_file", path="stored:" + "0" * 64)).is_error


async def test_a_single_line_of_five_megabytes_is_read_by_columns(call: Call, stored: dict[str, str]) -> None:
    stored["a" * 64] = "0123456789" * 500_000
    output = await call("read_file", path="stored:" + "a" * 64, start_column=4_000_001, end_column=4_000_012)
    assert output.text == "1\t012345678901"
    whole = await call("read_file", path="stored:" + "a" * 64)
    assert len(whole.text) == 5_000_002, "results are never cut here"


async def test_the_title_names_the_range(call: Call) -> None:
    from codecompanion.tools.builtin import READ_FILE

    assert READ_FILE.title({"path": "lua/foo.lua", "start_line": 1, "end_line": 120}) == "read_file lua/foo.lua 1-120"
    assert READ_FILE.title({"path": "a", "end_line": 9}) == "read_file a 1-9"
    assert READ_FILE.title({"path": "stored:" + "a" * 64}) == "read_file stored:" + "a" * 12


@pytest.mark.parametrize("path", [".env", "./.env", "sub/../.env", "link.txt", "id_rsa", ".ssh/known"])
async def test_a_key_file_is_asked_about_whatever_was_granted(root: Path, context: ToolContext, path: str) -> None:
    for name in ("sub", ".ssh"):
        (root / name).mkdir()
    for name in (".env", "id_rsa", ".ssh/known"):
        (root / name).write_text("TOKEN=1\n")
    (root / "link.txt").symlink_to(".env")
    (root / "a.py").write_text("x = 1\n")
    granted = Approvals(yolo=True, always=frozenset({"read_file"}))
    asked = (await decided(READ_FILE, {"path": path}, context, granted)).question
    assert asked is not None
    assert (asked.title, asked.why) == (f"read_file {path}", "its name suggests keys or passwords")
    assert granted.after(asked, "always") == granted
    for other in ("a.py", "../out.env", "stored:" + "0" * 64):
        assert (await decided(READ_FILE, {"path": other}, context, granted)).question is None
