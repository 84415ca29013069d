"""Loads the grammars, which are PyPI packages imported when the first file of their language is parsed.

A grammar that is not installed, or does not match the installed tree-sitter, counts as missing: its files are not
parsed, and the log gets one entry.
"""

from __future__ import annotations

import logging
from functools import cache
from importlib import resources
from typing import TYPE_CHECKING

import msgspec

from codecompanion.workspace.syntax.languages import languages

if TYPE_CHECKING:
    from tree_sitter import Language, Query

_log = logging.getLogger(__name__)


class Grammar(msgspec.Struct, frozen=True):
    """A loaded grammar: `tags` finds definitions and imports, `names` finds uses of names (None without a query)."""

    language: Language
    tags: Query
    names: Query | None


@cache
def load_grammar(language: str) -> Grammar | None:
    """Return the grammar of a language, or None if there is none."""
    if language not in languages():
        return None
    from tree_sitter import Language, Query  # not needed before a file is parsed

    entry = languages()[language]
    try:
        loaded = Language(_load(language))
        folder = resources.files(__package__).joinpath("queries")
        tags = folder.joinpath(f"{entry.queries or language}.scm").read_text(encoding="utf-8")
        own = folder.joinpath(f"{entry.queries or language}.locals.scm")
        local = own.read_text(encoding="utf-8") if own.is_file() else ""
        names = Query(loaded, "\n".join([*(f"({name}) @name" for name in entry.names), local])) if entry.names else None
        return Grammar(loaded, Query(loaded, tags), names)
    except (ImportError, ValueError, OSError, AttributeError) as error:  # also QueryError, a ValueError
        _log.warning("files in %s are not parsed: %s", language, error)
        return None


def _load(language: str) -> object:
    """Return the pointer to a grammar, importing each package explicitly to match the declared dependencies."""
    match language:
        case "python":
            import tree_sitter_python as python

            return python.language()
        case "javascript":
            import tree_sitter_javascript as javascript

            return javascript.language()
        case "typescript" | "tsx":
            import tree_sitter_typescript as typescript

            return typescript.language_tsx() if language == "tsx" else typescript.language_typescript()
        case "lua":
            import tree_sitter_lua as lua

            return lua.language()
        case "rust":
            import tree_sitter_rust as rust

            return rust.language()
        case "go":
            import tree_sitter_go as go

            return go.language()
        case _:
            return _load_more(language)


def _load_more(language: str) -> object:
    match language:
        case "c":
            import tree_sitter_c as c

            return c.language()
        case "cpp":
            import tree_sitter_cpp as cpp

            return cpp.language()
        case "java":
            import tree_sitter_java as java

            return java.language()
        case "ruby":
            import tree_sitter_ruby as ruby

            return ruby.language()
        case "bash":
            import tree_sitter_bash as bash

            return bash.language()
        case "markdown":
            import tree_sitter_markdown as markdown

            return markdown.language()
        case _:
            raise ImportError(f"there is no grammar for {language}")
