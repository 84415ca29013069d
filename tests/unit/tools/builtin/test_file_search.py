"""`file_search`: globs over the project's own files."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.unit.tools.conftest import Call


@pytest.fixture(autouse=True)
def files(root: Path) -> None:
    for name in (
        "src/a.py",
        "src/deep/b.py",
        "src/deep/c.lua",
        "Makefile",
        "!odd.txt",
        "#x.txt",
        ".ci/run",
        "node_modules/x.py",
        "skip.log",
        "tests/test_a.py",
    ):
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text("")
    (root / ".gitignore").write_text("*.log\n")


@pytest.mark.parametrize(
    ("pattern", "found"),
    [
        ("*.py", ["src/a.py", "src/deep/b.py", "tests/test_a.py"]),
        ("src/*.py", ["src/a.py"]),
        ("./src/*.py", ["src/a.py"]),
        ("src/**/*.py", ["src/a.py", "src/deep/b.py"]),
        ("**/deep/*.{py,lua}", ["src/deep/b.py", "src/deep/c.lua"]),
        ("{src,tests}/*.py", ["src/a.py", "tests/test_a.py"]),
        ("src", ["src/a.py", "src/deep/b.py", "src/deep/c.lua"]),
        ("src/deep/", ["src/deep/b.py", "src/deep/c.lua"]),
        ("Makefile", ["Makefile"]),
        (".ci/*", [".ci/run"]),
        ("!odd.txt", ["!odd.txt"]),
        ("#x.txt", ["#x.txt"]),
        ("test_?.py", ["tests/test_a.py"]),
    ],
)
async def test_a_glob_lists_what_it_matches_sorted(call: Call, pattern: str, found: list[str]) -> None:
    output = await call("file_search", pattern=pattern)
    assert output.text.splitlines() == found
    assert output.summary == f"{len(found)} file{'' if len(found) == 1 else 's'}"


async def test_an_absolute_glob_inside_the_workspace_is_understood(root: Path, call: Call) -> None:
    assert (await call("file_search", pattern=f"{root}/src/*.py")).text == "src/a.py"


async def test_a_partial_name_finds_paths_that_contain_it(call: Call) -> None:
    output = await call("file_search", pattern="MAKE")
    assert output.text == "No file matches 'MAKE'; these paths contain it:\nMakefile"


async def test_ignored_files_are_only_listed_on_request(call: Call) -> None:
    assert (
        await call("file_search", pattern="skip.log")
    ).text == "No file matches 'skip.log' (ignored files were left out)."
    assert (await call("file_search", pattern="*.log", include_ignored=True)).text == "skip.log"
    assert "node_modules/x.py" in (await call("file_search", pattern="*.py", include_ignored=True)).text


async def test_a_truncated_list_is_marked(call: Call) -> None:
    output = await call("file_search", pattern="*.py", max_results=1)
    assert output.text == "src/a.py\n[2 more files, 3 in all; narrow the pattern or raise max_results]"
    assert output.summary == "3 files"


@pytest.mark.parametrize("pattern", ["{" + "a,b}{" * 20 + "c,d}", "  ", "/"])
async def test_an_invalid_pattern_is_an_error(call: Call, pattern: str) -> None:
    assert (await call("file_search", pattern=pattern)).is_error


async def test_names_that_are_not_unicode_do_not_break_the_result(root: Path, call: Call) -> None:
    Path(str(root) + "/bad\udcff.txt").write_text("")
    output = await call("file_search", pattern="bad*")
    assert output.text.encode("utf-8") == b"bad?.txt"
