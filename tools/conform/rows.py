"""The requirement rows of the five documents, read from `doc/dev/requirements/`."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

ROOT = Path(__file__).resolve().parents[2]
FOLDER = ROOT / "doc" / "dev" / "requirements"
DOCUMENTS = ("codebuddy", "codebuddy-context", "kodacode", "cowork", "codecompanion")
"""Names of the files, in the order of their numbers."""

Mark = Literal["doc", "src", "ours"]
_ROW = re.compile(r"^- \*\*(R-\d{3})\*\* (?:\(([^)]*)\) )?(.*)$")
_HEADING = re.compile(r"^## (.*)$")
_TITLE = re.compile(r"^# (.*?)(?: \(R-.*\))?$")
_OF_DOCUMENT = re.compile(r"\(doc\)|\bdoc\b(?= and src)")
_OURS = re.compile(r"(?:\bOurs\b|\bours\b|\bNot built\b|\bnot followed\b|\bThe source\b|\bthe source\b)")


@dataclass(frozen=True)
class Row:
    """One requirement: its number, its place, its source, and its text."""

    number: str
    document: str
    section: str
    mark: Mark
    text: str

    @property
    def in_document(self) -> bool:
        """Whether the published document contains the requirement, or a part of it."""
        return self.mark == "doc" or bool(_OF_DOCUMENT.search(self.text))

    @property
    def deviation(self) -> str:
        """Return where and why we differ from the document or its source, in the words of the row; "" if we do not."""
        if self.mark == "ours":
            return self.text
        told = [one for one in sentences(self.text) if _OURS.search(one)]
        return " ".join(told)


def sentences(text: str) -> list[str]:
    """Return the sentences of a row; a full stop ends a sentence only before a capital letter, bracket or backtick."""
    return re.split(r"(?<=[.!?)])(?<!e\.g\.) (?=[A-Z(`])", text)


def parse_rows(text: str, document: str) -> list[Row]:
    """Return the rows of one requirements file, in order."""
    rows = list[Row]()
    section = ""
    for line in text.splitlines():
        if heading := _HEADING.match(line):
            section = heading[1]
        elif row := _ROW.match(line):
            number, said, words = row.groups()
            mark: Mark = "doc" if said and "doc" in said else "src" if said == "src" else "ours"
            if said and mark == "ours":
                words = f"({said}) {words}"
            rows.append(Row(number, document, section, mark, words))
    return rows


def read_rows(document: str) -> list[Row]:
    """Return the rows of a document in `DOCUMENTS`."""
    return parse_rows((FOLDER / f"{document}.md").read_text(encoding="utf-8"), document)


def title(document: str) -> str:
    """Return the title of a document's requirements, without its row numbers."""
    first = (FOLDER / f"{document}.md").read_text(encoding="utf-8").splitlines()[0]
    found = _TITLE.match(first)
    return found[1] if found else document
