"""Defines the types of code search: parser results, file chunks, found snippets (R-222, R-239, R-249).

Lines are 1-based and inclusive; paths are relative to the project's root, with `/`; scores are 0..1 unless a name says
otherwise.
"""

from __future__ import annotations

from typing import Literal

import msgspec

DefinitionKind = Literal[
    "function", "method", "class", "interface", "type", "variable", "constant", "module", "macro", "heading", "other"
]


class Definition(msgspec.Struct, frozen=True):
    """A definition: its name, its lines including decorators and doc comment, the line of its name, its signature.

    `parent`: the names of the enclosing definitions, joined by ".", or "" if there are none.
    """

    name: str
    kind: DefinitionKind
    start: int
    end: int
    line: int
    signature: str = ""
    parent: str = ""


class Reference(msgspec.Struct, frozen=True):
    """A name used on a line but not defined there."""

    name: str
    line: int


class ImportStatement(msgspec.Struct, frozen=True):
    """An import statement, verbatim: its lines and the names it imports."""

    start: int
    end: int
    text: str
    names: tuple[str, ...] = ()


class ParsedFile(msgspec.Struct, frozen=True):
    """The result of parsing one file. `language`: "" if unknown. `is_parsed`: with a grammar, not with patterns."""

    language: str = ""
    definitions: tuple[Definition, ...] = ()
    references: tuple[Reference, ...] = ()
    imports: tuple[ImportStatement, ...] = ()
    is_parsed: bool = False


class CodeChunk(msgspec.Struct, frozen=True):
    """An indexed chunk of a file, made of whole definitions if the file was parsed. `symbol`: "parent.name" or ""."""

    path: str
    start: int
    end: int
    text: str
    symbol: str = ""
    kind: DefinitionKind | Literal["block", "file"] = "block"
