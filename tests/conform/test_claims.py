"""Tests that the claims are about existing rows and name existing tests."""

from __future__ import annotations

import ast
import re
from functools import cache

import pytest

from tests.help_file import option_entries
from tools.conform.claims import ClaimsWrong, parse_claims, read_all, read_claims
from tools.conform.rows import DOCUMENTS, FOLDER, ROOT, parse_rows, read_rows
from tools.docgen.documents_page import lines_of_document


@cache
def functions(file: str) -> frozenset[str]:
    tree = ast.parse((ROOT / file).read_text(encoding="utf-8"))
    return frozenset(n.name for n in ast.walk(tree) if isinstance(n, ast.FunctionDef | ast.AsyncFunctionDef))


@pytest.mark.parametrize("document", DOCUMENTS)
def test_every_row_is_parsed(document: str) -> None:
    """A row in an unknown form would never be checked."""
    written = re.findall(r"\*\*(R-\d{3})\*\*", (FOLDER / f"{document}.md").read_text(encoding="utf-8"))
    assert [row.number for row in read_rows(document)] == written
    assert len(written) >= 47


def test_a_row_has_its_mark_and_our_additions() -> None:
    text = (
        "# X: y (R-101…R-103)\n\n## S\n- **R-101** (doc) It is so.\n- **R-102** (src) It is so. Ours: never more.\n"
        "- **R-103** (In the source it is not.) It is.\n"
    )
    exact, partly, ours = parse_rows(text, "x")
    assert (exact.mark, exact.section, exact.deviation, exact.in_document) == ("doc", "S", "", True)
    assert (partly.mark, partly.deviation, partly.in_document) == ("src", "Ours: never more.", False)
    assert (ours.mark, ours.text) == ("ours", "(In the source it is not.) It is.")
    assert ours.deviation == ours.text


def test_claims_are_about_rows_of_their_document() -> None:
    for document in DOCUMENTS:
        assert set(read_claims(document)) <= {row.number for row in read_rows(document)}


def test_every_test_of_a_claim_exists() -> None:
    missing = [
        f"{row.number}: {test}"
        for row, claim in read_all()
        if claim
        for test in claim.tests
        for file, _, name in [test.partition("::")]
        if not (ROOT / file).exists() or name not in functions(file)
    ]
    assert not missing, "\n".join(missing)


def test_names_in_a_place_are_in_the_help() -> None:
    """Every option, command and help tag in `seen` exists."""
    help_file = (ROOT / "doc" / "codecompanion.txt").read_text(encoding="utf-8")
    options = option_entries()
    unknown = [
        f"{row.number}: {name}"
        for row, claim in read_all()
        if claim
        for name in re.findall(r"`([^`]+)`", claim.seen)
        for wanted in [f"*{name.removeprefix(':help ')}*" if name.startswith(":help ") else _in_help(name)]
        if wanted not in help_file and name not in options
    ]
    assert not unknown, "\n".join(unknown)


def _in_help(name: str) -> str:
    """Return the form in which the help contains a name: a command without its arguments."""
    known = ("@path", "python -m codecompanion")
    return next((one for one in known if name.startswith(one)), name.split(" ")[0])


@pytest.mark.parametrize("document", DOCUMENTS)
def test_the_page_has_each_promise_of_a_document(document: str) -> None:
    """Each promise is in a row with its place, or in the list of promises without a row."""
    *_, last = lines = list(lines_of_document(document))
    listed = last.rpartition(": ")[2] if last.startswith("Also promised") else ""
    shown = set(re.findall(r"^\| (R-\d{3}) \|", "\n".join(lines), re.MULTILINE)) | set(re.findall(r"R-\d{3}", listed))
    assert shown == {row.number for row in read_rows(document) if row.in_document}


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ('[R-101]\ntest = ["a"]', "x.toml: [R-101]: unknown key test"),
        ('[R-101]\nseen = "a"', "x.toml: [R-101]: expected either tests or not_applicable"),
        ('[R-101]\ntests = ["a"]\nnot_applicable = "b"', "x.toml: [R-101]: expected either"),
    ],
)
def test_a_mistake_in_the_claims_is_named(text: str, said: str) -> None:
    with pytest.raises(ClaimsWrong) as caught:
        parse_claims(text, "x.toml")
    assert str(caught.value).startswith(said)
