"""`code_search`: code locations for a question or a name, and the size of its results."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from codecompanion.model.found_code import FoundCode, SearchOutcome
from codecompanion.tools.builtin import CODE_SEARCH, code_search
from codecompanion.tools.files.open_files import Opened, OpenFile
from tests.unit.tools.conftest import Call

TEXT = "def pay(card):\n    return card.charge()"


class Lookup:
    """Returns its fixed answer, and records its arguments."""

    def __init__(self, *results: FoundCode, is_partial: bool = False) -> None:
        self.outcome = SearchOutcome(results, "auto", is_partial=is_partial)
        self.asked: tuple[Any, ...] = ()

    async def __call__(
        self, query: str, kind: str, below: str, limit: int, unsaved: Mapping[str, str]
    ) -> SearchOutcome:
        self.asked = (query, kind, below, limit, dict(unsaved))
        return self.outcome


def place(path: str, start: int, text: str = TEXT, symbol: str = "pay") -> FoundCode:
    return FoundCode(path, start, start + text.count("\n"), 0.5, "auto", symbol, text, "function")


async def test_a_question_returns_paths_lines_and_code(call: Call) -> None:
    lookup = Lookup(place("shop/checkout.py", 4), place("shop/mail.py", 9))
    output = await call("code_search", {"look_up_code": lookup}, query="how is a card charged")
    assert output.text == f"shop/checkout.py:4-5 function pay\n{TEXT}\n\nshop/mail.py:9-10 function pay\n{TEXT}"
    assert output.summary == "2 places in 2 files"
    assert lookup.asked == ("how is a card charged", "any", "", code_search.PLACES, {})


async def test_uses_are_one_line_each_below_their_path(call: Call) -> None:
    uses = (place("a.py", 3, "  pay(1)", "run"), place("a.py", 7, "  pay(2)", ""), place("b.py", 1, "pay", "main"))
    lookup = Lookup(*uses)
    output = await call("code_search", {"look_up_code": lookup}, query="pay", kind="reference", path=".")
    assert output.text == "a.py\n     3: pay(1)  [in run]\n     7: pay(2)\nb.py\n     1: pay  [in main]"
    assert output.summary == "3 places in 2 files"
    assert lookup.asked[1:4] == ("reference", "", code_search.LINES)


async def test_a_folder_is_shown_relative_to_the_workspace(call: Call, root: Path) -> None:
    (root / "lib").mkdir()
    lookup = Lookup()
    for path in ("lib", "./lib/", str(root / "lib")):
        await call("code_search", {"look_up_code": lookup}, query="x", path=path)
        assert lookup.asked[2] == "lib"


async def test_a_path_outside_the_workspace_is_refused(call: Call) -> None:
    output = await call("code_search", {"look_up_code": Lookup()}, query="x", path="../outside")
    assert output.is_error


async def test_every_place_is_shown_within_the_size_limit(call: Call) -> None:
    long = "\n".join(f"line {number} of a long function" for number in range(400))
    lookup = Lookup(*(place(f"{number}.py", 1, long) for number in range(8)))
    output = await call("code_search", {"look_up_code": lookup}, query="x")
    assert len(output.text) < code_search.MAX_CHARS * 1.1
    assert all(f"{number}.py:1-400" in output.text for number in range(8))
    assert "more lines; read_file shows them]" in output.text


async def test_one_endless_line_is_truncated(call: Call) -> None:
    output = await call("code_search", {"look_up_code": Lookup(place("a.js", 1, "x" * 5_000_000))}, query="x")
    assert len(output.text) < code_search.MAX_CHARS * 1.1


async def test_control_characters_of_a_file_are_not_shown(call: Call) -> None:
    output = await call("code_search", {"look_up_code": Lookup(place("a.py", 1, "a\x1b[31mb"))}, query="x")
    assert "\x1b" not in output.text


async def test_an_empty_result_names_alternatives(call: Call) -> None:
    output = await call("code_search", {"look_up_code": Lookup(is_partial=True)}, query="x")
    assert not output.is_error
    assert "Nothing found" in output.text
    assert "not indexed yet" in output.text
    assert "grep_search" in output.text


async def test_without_an_index_other_tools_are_named(call: Call) -> None:
    output = await call("code_search", query="x")
    assert output.is_error
    assert "grep_search" in output.text


async def test_unsaved_texts_are_searched(call: Call, root: Path) -> None:
    lookup = Lookup()
    path = str((root / "a.py").resolve())
    outside = str(root.resolve().parent / "outside" / "b.py")

    class Editor:
        async def look(self, paths: object) -> Opened:
            files = (
                OpenFile(path=path, buffer=1, tick=1, modified=True, text="new\n"),
                OpenFile(path=outside, buffer=2, tick=1, modified=True, text="other\n"),
            )
            return Opened({file.path: file for file in files})

    await call("code_search", {"look_up_code": lookup, "editor": Editor()}, query="x")
    assert lookup.asked[4] == {"a.py": "new\n"}


def test_it_asks_no_permission_and_costs_few_tokens() -> None:
    """The tool is read-only, and its schema is in every request."""
    assert CODE_SEARCH.effect == "read"
    spec = CODE_SEARCH.spec
    assert len(spec.description) + len(str(spec.parameters)) < 700


@pytest.mark.parametrize("arguments", [{"query": ""}, {"query": "x", "kind": "usage"}, {"kind": "text"}])
async def test_wrong_arguments_yield_an_answer(call: Call, arguments: dict[str, Any]) -> None:
    with pytest.raises(Exception, match="code_search"):
        await call("code_search", {"look_up_code": Lookup()}, **arguments)
