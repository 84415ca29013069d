"""Parses the fenced blocks of a reply, even nested, indented and unclosed ones (CommonMark 0.31, 4.5, and beyond)."""

from __future__ import annotations

import re

import msgspec

_FENCE = re.compile(r"^([ \t]*)(`{3,}|~{3,})[ \t]*([^`]*?)[ \t]*$")
_MAX_INDENT = 3
"""Maximum indentation of a fence relative to the opening one; a deeper fence is part of the code (CommonMark 4.5)."""


class Block(msgspec.Struct, frozen=True):
    """A fenced block: the text after its opening fence, its lines, and its position in the reply.

    `start` is the line of the opening fence, `end` the line after the closing one.
    """

    language: str
    lines: tuple[str, ...]
    start: int
    end: int
    is_closed: bool = True


class OpenBlock:
    """A block that is being read line by line."""

    def __init__(self, opening: re.Match[str]) -> None:
        indent, fence, self.language = opening.groups()
        self._indent, self._mark, self._length, self._depth = len(indent), fence[0], len(fence), 1
        self.language = self.language.split(" ")[0].strip("{.}").lower()

    def take(self, line: str) -> str | None:
        """Return the line as it appears in the block, or None if it is the closing fence."""
        found = _FENCE.match(line)
        if found is not None and self._is_ours(found):
            if found[3]:
                self._depth += " " not in found[3]
            else:
                self._depth -= 1
                if self._depth == 0:
                    return None
        return self._without_indent(line)

    def is_bare_fence(self, line: str) -> bool:
        """Return whether a line could close the block, if nothing were nested in it."""
        found = _FENCE.match(line)
        return found is not None and self._is_ours(found) and not found[3]

    def _is_ours(self, found: re.Match[str]) -> bool:
        is_long = found[2][0] == self._mark and len(found[2]) >= self._length
        return is_long and len(found[1]) <= self._indent + _MAX_INDENT

    def _without_indent(self, line: str) -> str:
        """Return the line without the indentation of the opening fence, because the block may be inside a list."""
        lead = line[: self._indent]
        return line[self._indent :] if not lead.strip() else line.lstrip()


def opening(line: str) -> OpenBlock | None:
    """Return the block that a line opens, or None."""
    found = _FENCE.match(line)
    return OpenBlock(found) if found is not None else None


def blocks_of(lines: tuple[str, ...]) -> tuple[Block, ...]:
    """Return the fenced blocks of a reply, in order.

    A block that is never closed, because a line was mistaken for a nested fence, ends at the last fence in the reply.
    """
    found: list[Block] = []
    at = 0
    while at < len(lines):
        block = opening(lines[at])
        if block is None:
            at += 1
            continue
        found.append(_block_from(lines, at, block))
        at = found[-1].end
    return tuple(found)


def whole_block(lines: tuple[str, ...]) -> Block | None:
    """Return everything between the first fence and a final one: a Markdown file itself contains fences."""
    first = next((at for at, line in enumerate(lines) if opening(line) is not None), None)
    last = next((at for at in range(len(lines) - 1, -1, -1) if lines[at].strip()), None)
    if first is None or last is None or last <= first:
        return None
    block = opening(lines[first])
    if block is None or not block.is_bare_fence(lines[last]):
        return None
    return Block(block.language, lines[first + 1 : last], first, last + 1)


def _block_from(lines: tuple[str, ...], start: int, block: OpenBlock) -> Block:
    taken: list[str] = []
    bare = 0
    for at in range(start + 1, len(lines)):
        line = block.take(lines[at])
        if line is None:
            return Block(block.language, tuple(taken), start, at + 1)
        bare = at if block.is_bare_fence(lines[at]) else bare
        taken.append(line)
    if bare:
        return Block(block.language, tuple(taken[: bare - start - 1]), start, bare + 1)
    return Block(block.language, tuple(taken), start, len(lines), is_closed=False)
