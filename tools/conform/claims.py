"""The claims: for each row, the tests that show it in a chat, and the place where a user sees it.

`claims/<document>.toml` has one table for each row:

    [R-412]
    tests = ["tests/…/test_x.py::test_y"]     # each drives a session, a real Neovim or the command line
    promise = "The system prompt stays."      # the document's promise in our words; else the row's first sentence
    seen = "the inspector (`gd`)"             # key, command, option or screen
    not_applicable = "reason"                 # instead of tests: the row is about the source's internals

`promise` and `seen` are printed in `doc/compared-documents.md`.
"""

from __future__ import annotations

import tomllib
from dataclasses import dataclass
from pathlib import Path

from tools.conform.rows import DOCUMENTS, Row, read_rows

FOLDER = Path(__file__).parent / "claims"
_KEYS = {"tests", "promise", "seen", "not_applicable"}


@dataclass(frozen=True)
class Claim:
    """The claim for one row."""

    tests: tuple[str, ...] = ()
    promise: str = ""
    seen: str = ""
    not_applicable: str = ""


class ClaimsWrong(ValueError):
    """The claims are malformed; the message gives the file, row and key."""


def parse_claims(text: str, file: str) -> dict[str, Claim]:
    """Return the claims of one file by row.

    Raises:
        ClaimsWrong: a key is unknown, or neither or both of `tests` and `not_applicable` are given.
    """
    claims = dict[str, Claim]()
    for number, table in tomllib.loads(text).items():
        place = f"{file}: [{number}]"
        if unknown := set(table) - _KEYS:
            raise ClaimsWrong(f"{place}: unknown key {sorted(unknown)[0]}; expected one of {', '.join(sorted(_KEYS))}")
        if bool(table.get("tests")) == bool(table.get("not_applicable")):
            raise ClaimsWrong(f"{place}: expected either tests or not_applicable")
        claims[number] = Claim(**{**table, "tests": tuple(table.get("tests", ()))})
    return claims


def read_claims(document: str) -> dict[str, Claim]:
    """Return the claims of a document by row.

    Raises:
        ClaimsWrong: as `parse_claims`.
    """
    file = FOLDER / f"{document}.toml"
    return parse_claims(file.read_text(encoding="utf-8"), file.name)


def read_all() -> list[tuple[Row, Claim | None]]:
    """Return every row of the five documents with its claim, in order; None if it has none.

    Raises:
        ClaimsWrong: as `parse_claims`.
    """
    return [(row, claims.get(row.number)) for d in DOCUMENTS for claims in [read_claims(d)] for row in read_rows(d)]
