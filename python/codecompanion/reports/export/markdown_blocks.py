"""Splits Markdown text into blocks of prose and code, with CommonMark's rules for fences.

Both exports write the fences themselves, so no text of a chat can open or close one.
"""

from __future__ import annotations

from collections.abc import Iterator

import msgspec

from codecompanion.formats.regex import regex

_FENCE = regex(r" {0,3}(?P<mark>`{3,}|~{3,})(?P<language>[^`]*)$")
_LANGUAGE = regex(r"[A-Za-z0-9_+#.-]{1,30}")


class Block(msgspec.Struct, frozen=True):
    """A block of lines of prose, or of code in a `language` ("" = unknown)."""

    text: str
    is_code: bool = False
    language: str = ""


def blocks_of(text: str) -> Iterator[Block]:
    """Yield the blocks of a string; an unclosed fence ends with the text."""
    if "```" not in text and "~~~" not in text:
        whole = text.replace("\r\n", "\n").replace("\r", "\n").strip("\n")
        if whole.strip():
            yield Block(whole)
        return
    prose: list[str] = []
    code: list[str] = []
    mark, language = "", ""
    for line in text.replace("\r\n", "\n").replace("\r", "\n").split("\n"):
        if mark:
            stripped = line.strip()
            if len(stripped) >= len(mark) and set(stripped) == {mark[0]} and len(line) - len(line.lstrip(" ")) < 4:
                yield Block("\n".join(code), True, language)
                code, mark = [], ""
            else:
                code.append(line)
            continue
        found = _FENCE.match(line)
        if not found or (found["mark"][0] == "`" and "`" in found["language"]):
            prose.append(line)
            continue
        if any(part.strip() for part in prose):
            yield Block("\n".join(prose).strip("\n"))
        named = _LANGUAGE.match(found["language"].strip())
        prose, mark, language = [], found["mark"], named[0] if named else ""
    if mark:
        yield Block("\n".join(code), True, language)
    if any(part.strip() for part in prose):
        yield Block("\n".join(prose).strip("\n"))
