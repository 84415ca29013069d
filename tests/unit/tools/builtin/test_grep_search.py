"""`grep_search`: the same result from ripgrep and from the Python walk."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from codecompanion.tools.builtin import GREP_SEARCH, grep_search
from tests.ripgrep import RIPGREP, needs_ripgrep
from tests.unit.tools.conftest import Call


@pytest.fixture(params=[pytest.param(RIPGREP, marks=needs_ripgrep, id="ripgrep"), pytest.param(None, id="python")])
def searcher(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """Run every test that uses this with each searcher."""
    _use(monkeypatch, request.param)


def _use(patch: pytest.MonkeyPatch, ripgrep: str | None) -> None:
    """Let the tool find this ripgrep, or none if it is None."""

    def find(name: str, *_untrusted: Path) -> str:
        assert name == "rg"
        if ripgrep is None:
            raise FileNotFoundError(name)
        return ripgrep

    patch.setattr(grep_search, "find_program", find)


def _make(root: Path, **contents: str | bytes) -> None:
    for name, content in contents.items():
        path = root / name.replace("__", "/")
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content if isinstance(content, bytes) else content.encode())


@pytest.mark.usefixtures("searcher")
async def test_hits_are_sorted_by_file_and_line(root: Path, call: Call) -> None:
    _make(root, b="x foo(\n", sub__z="foo(\nbar\nfoo( foo(\n", **{"sub-b": "foo("})
    output = await call("grep_search", query="foo(")
    assert output.text == "4 hits in 3 files:\nb\n  1: x foo(\nsub/z\n  1: foo(\n  3: foo( foo(\nsub-b\n  1: foo("
    assert output.summary == "4 hits in 3 files"


@pytest.mark.usefixtures("searcher")
@pytest.mark.parametrize(
    ("arguments", "lines"),
    [
        ({"query": "Alpha"}, [1]),
        ({"query": "alpha", "ignore_case": True}, [1, 2, 3]),
        ({"query": "a.pha", "is_regex": True}, [2]),
        ({"query": "a.pha"}, []),
        ({"query": "^beta$", "is_regex": True}, [4]),
        ({"query": r"\d{3}", "is_regex": True}, [5]),
        ({"query": "ÉTÉ", "ignore_case": True}, [6]),
        ({"query": "-v"}, [7]),
        ({"query": r"(\w)\1", "is_regex": True}, [8]),
        ({"query": "(?=x)xyz(?<!q)", "is_regex": True}, [9]),
        ({"query": "\t"}, [10]),
    ],
)
async def test_text_and_regular_expressions_mean_the_same_to_both(
    root: Path, call: Call, arguments: dict[str, object], lines: list[int]
) -> None:
    _make(root, a="Alpha\nalpha\nALPHA\r\nbeta\r\n123\nété\n-v\naabc\nxyz\n\tt\n")
    output = await call("grep_search", **arguments)
    assert [int(line.partition(":")[0]) for line in output.text.splitlines() if line.startswith("  ")] == lines


@pytest.mark.usefixtures("searcher")
async def test_ignored_binary_and_linked_files_are_left_out(root: Path, call: Call) -> None:
    _make(
        root,
        a="needle",
        skip="needle",
        binary=b"needle\n\0",
        node_modules__x="needle",
        late=b"x" * 70_000 + b"\nneedle\n\0",
    )
    (root / ".gitignore").write_text("skip\n")
    (root / "link").symlink_to("a")
    (root / "out").symlink_to("../outside")
    output = await call("grep_search", query="needle")
    assert output.text == "1 hit in 1 file:\na\n  1: needle"
    output = await call("grep_search", query="needle", include_ignored=True)
    assert output.summary == "3 hits in 3 files"
    assert (await call("grep_search", query="secret")).summary == "no hits"


@pytest.mark.usefixtures("searcher")
async def test_path_and_include_narrow_the_search(root: Path, call: Call) -> None:
    _make(root, src__a="needle", src__b="needle", test__a="needle")
    assert (await call("grep_search", query="needle", path="src")).summary == "2 hits in 2 files"
    assert (await call("grep_search", query="needle", path="src/a")).text == "1 hit in 1 file:\nsrc/a\n  1: needle"
    assert (await call("grep_search", query="needle", include="a")).summary == "2 hits in 2 files"
    assert (await call("grep_search", query="needle", path="src", include="test/*")).summary == "no hits"
    assert (await call("grep_search", query="needle", path="../outside")).is_error
    assert (await call("grep_search", query="needle", path="none")).is_error


@pytest.mark.usefixtures("searcher")
async def test_a_limit_shows_the_first_hits_and_counts_all(root: Path, call: Call) -> None:
    for number in range(30):
        _make(root, **{f"f{number:02}": "needle\n" * 10})
    output = await call("grep_search", query="needle", max_results=3)
    assert output.text.splitlines() == [
        "300 hits in 30 files:",
        "f00",
        "  1: needle",
        "  2: needle",
        "  3: needle",
        "[the first 3 are shown; narrow the search with path or include, or raise max_results]",
    ]


@pytest.mark.usefixtures("searcher")
async def test_of_a_long_line_the_surroundings_of_the_match_are_shown(root: Path, call: Call) -> None:
    _make(root, a="é" * 100_000 + "needle" + "x" * 2_000_000)
    line = (await call("grep_search", query="needle")).text.splitlines()[2]
    assert line.startswith("  1: …é")
    assert "éneedlex" in line
    assert line.endswith("x…")
    assert len(line) < 320


@pytest.mark.usefixtures("searcher")
async def test_large_files_are_skipped_and_reported(root: Path, call: Call, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(grep_search, "MAX_FILE_BYTES", 1_000_000)
    _make(root, a="needle", big=b"needle\n" + b"x" * 1_000_000)
    output = await call("grep_search", query="needle")
    assert output.text.splitlines() == ["1 hit in 1 file:", "a", "  1: needle", "[1 file over 1 MB not searched]"]


@pytest.mark.usefixtures("searcher")
async def test_no_hits_report_the_searched_files_and_the_parsed_query(root: Path, call: Call) -> None:
    _make(root, a="x", b="y")
    assert (await call("grep_search", query="nothing")).text == "No hits for 'nothing' in 2 files."
    output = await call("grep_search", query="x|y")
    assert "searched as plain text; set is_regex" in output.text
    assert not output.is_error


@pytest.mark.usefixtures("searcher")
async def test_an_invalid_regular_expression_is_an_error(root: Path, call: Call) -> None:
    _make(root, a="x")
    output = await call("grep_search", query="ret(", is_regex=True)
    assert output.is_error
    assert output.text.startswith("The search failed: ")
    assert len(output.text.splitlines()) == 1


@pytest.mark.usefixtures("searcher")
async def test_odd_names_and_undecodable_lines_are_searched(root: Path, call: Call) -> None:
    names = ["a b\n[x]", "-rf", "é中", "bad\udcff"]
    contents: dict[str, str | bytes] = dict.fromkeys(names, b"needle \xff\n")
    _make(root, utf16="needle".encode("utf-16"), **contents)
    output = await call("grep_search", query="needle")
    assert output.summary == "5 hits in 5 files"
    assert output.text.encode("utf-8")


@pytest.mark.sweep
async def test_a_runaway_regular_expression_is_killed(root: Path, call: Call, monkeypatch: pytest.MonkeyPatch) -> None:
    """In a thread it would hold the interpreter forever and block the session."""
    _use(monkeypatch, None)
    _make(root, a="a" * 60 + "b")
    output = await call("grep_search", {"timeout_s": 0.5}, query="(a+)+$", is_regex=True)
    assert output.text == "grep_search did not finish within 0.5 seconds and was stopped."


_line = st.tuples(st.text(alphabet="abAB.( \té", max_size=12), st.sampled_from(["", "\r"])).map("".join)


@needs_ripgrep
@settings(
    max_examples=25, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow]
)
@given(
    st.dictionaries(st.sampled_from(["a", "b/c", "b-c", "B", "é"]), st.lists(_line, max_size=6), min_size=1),
    st.sampled_from(["a", "A", "b.", "(", ".", "é", "a.b|é", "^a", "b$", r"\s"]),
    st.booleans(),
    st.booleans(),
    st.integers(1, 5),
)
def test_both_searchers_yield_the_same_result(
    make_folder: Callable[[], Path],
    files: dict[str, list[str]],
    query: str,
    is_regex: bool,
    ignore_case: bool,
    limit: int,
) -> None:
    from codecompanion.tools.runner import run_call
    from codecompanion.tools.tool import ToolContext
    from codecompanion.wire.requests import Snapshot
    from codecompanion.workspace.files import walk
    from codecompanion.workspace.paths import Workspace

    root = make_folder()
    for name, lines in files.items():
        (root / name).parent.mkdir(exist_ok=True)
        (root / name).write_bytes("\n".join(lines).encode())
    workspace = Workspace(root)
    context = ToolContext(
        root=workspace.root,
        resolve=workspace.resolve,
        memory_dir=root,
        snapshot=Snapshot(),
        read_stored=str,
        walk=walk,
    )
    arguments = {"query": query, "is_regex": is_regex, "ignore_case": ignore_case, "max_results": limit}
    with pytest.MonkeyPatch.context() as patch:
        _use(patch, RIPGREP)
        with_ripgrep = asyncio.run(run_call(GREP_SEARCH, arguments, context))
        _use(patch, None)
        with_python = asyncio.run(run_call(GREP_SEARCH, arguments, context))
    assert with_ripgrep.is_error == with_python.is_error
    if not with_python.is_error:  # each has its own error message for an invalid regular expression
        assert with_ripgrep.text == with_python.text


@pytest.fixture
def make_folder(tmp_path: Path) -> Callable[[], Path]:
    """Make a fresh folder for every example."""
    numbers = iter(range(10_000))

    def make() -> Path:
        folder = tmp_path / str(next(numbers))
        folder.mkdir()
        return folder

    return make


async def test_files_of_keys_are_left_out_and_named(root: Path, call: Call) -> None:
    """Their lines would be sent to the provider unasked, even if the file itself is named, or open and unsaved."""
    (root / ".aws").mkdir()
    for name in (".env", ".aws/config", "a.py"):
        (root / name).write_text("TOKEN = 1\n")
    said = "[not searched, as they may contain keys or passwords: .aws/config, .env; read_file asks the user]"
    assert (await call("grep_search", query="TOKEN")).text == f"1 hit in 1 file:\na.py\n  1: TOKEN = 1\n{said}"
    alone = await call("grep_search", query="TOKEN", path=".env")
    assert "TOKEN = 1" not in alone.text
    assert "read_file asks the user" in alone.text
