"""Reads a reply: its code and placement, or an answer that is not an edit.

The prompt asks for a first line `placement: …` and one fenced block (`prompts/edit_in_place.md`): text that can be
streamed, unlike JSON. The reader accepts much more: models omit the line, answer in JSON, as a diff or without a fence,
explain before and after, or repeat the surroundings of the code. Anything else is an answer to be shown in a chat, with
the reason.
"""

from __future__ import annotations

import json
import re
from typing import Any

import msgspec

from codecompanion.edit_in_place.fences import Block, OpenBlock, blocks_of, opening, whole_block
from codecompanion.edit_in_place.fit import fitted, left_out
from codecompanion.edit_in_place.patch import DIFFS, patched
from codecompanion.edit_in_place.place import Placement, resembles
from codecompanion.formats.outside_text import NOT_READABLE
from codecompanion.wire.requests import EditPlace

_WORDS: dict[str, Placement] = {
    "replace": "replace",
    "add": "after",
    "after": "after",
    "before": "before",
    "new": "new",
    "chat": "chat",
}
_NAMED = re.compile(r"^\W{0,4}placement\W{1,6}(replace|add|after|before|new|chat)\W*$", re.IGNORECASE)
_ALONE = re.compile(r"^[\s*`\[<#]{0,4}(replace|add|after|before|new|chat)[\s*`\]>.:]{0,4}$", re.IGNORECASE)
_THOUGHTS = re.compile(r"^\s*<(think|thinking|reasoning)>.*?</\1>\s*", re.DOTALL | re.IGNORECASE)
_SENTENCE = re.compile(r"^\s*(?:[-*]\s+)?[A-Z'\"“].*[.!?:]\s*$")
_SIGNS = re.compile(r"[(){}\[\];=<>]|^\s+\S|^(?:#|//|--|/\*|@)|^(?:import|from|return|end|else|fi|done)\b|^\S+:$")
"""Matches characters that are common in lines of code and rare in prose."""
_MAX_PROSE_WORDS = 60
"""Maximum words of prose around a block without a placement line; with more, the reply is an explanation."""
_MARKDOWN = frozenset({"markdown", "md", "quarto", "rmd", "mdx"})


class Reading(msgspec.Struct, frozen=True):
    """The interpretation of a complete reply: code for a placement, or (`chat`) an answer.

    `note`: a sentence to show with the edit, or the reason why the reply is an answer.
    """

    placement: Placement
    lines: tuple[str, ...] = ()
    language: str = ""
    note: str = ""


IN_WORDS = Reading("chat", note="The reply is text, not code.")
NO_CODE = Reading("chat", note="The reply contains no code for this location.")
OTHER_DIFF = Reading("chat", note="The reply is a diff that does not apply to these lines.")
SEVERAL = Reading("chat", note="The reply has several blocks of code, not one edit.")
EXPLAINS = Reading("chat", note="The reply explains code instead of editing it.")


def read_reply(text: str, place: EditPlace, instruction: str = "") -> Reading:
    """Read a complete reply to an instruction; `place` is where its code would go."""
    lines = _lines(_THOUGHTS.sub("", text, count=1))
    head, header = _header(lines)
    if header == "chat":
        return IN_WORDS
    body = lines[head:]
    found = _from_json(body)
    if found is not None:
        placement, code = found
        return IN_WORDS if placement == "chat" else _edit(placement, Block("", code, 0, 0), place, instruction)
    block = _chosen(body, place, is_announced=header is not None)
    return block if isinstance(block, Reading) else _edit(header or "replace", block, place, instruction)


def _edit(placement: Placement, block: Block, place: EditPlace, instruction: str) -> Reading:
    code = block.lines
    if block.language in DIFFS and place.filetype not in DIFFS:
        whole = patched(code, place) if placement == "replace" else None
        return OTHER_DIFF if whole is None else Reading("replace", whole)
    code = fitted(code, place, placement, instruction)
    if placement != "replace" and not any(line.strip() for line in code):
        return NO_CODE
    missing = left_out(code, place) if placement == "replace" else ""
    note = f"The reply omits code: {missing[:60]}" if missing else ""
    return Reading(placement, code, block.language, note)


def _lines(text: str) -> tuple[str, ...]:
    """Return the lines of a string, without the empty line after a final line break."""
    lines = text.replace("\r\n", "\n").split("\n")
    return tuple(lines[:-1] if lines[-1] == "" else lines)


# ---- the placement line


def placement_in(line: str, *, is_first: bool) -> Placement | None:
    """Return the placement that a line names; a bare word counts only in the first line."""
    found = _NAMED.match(line) or (_ALONE.match(line) if is_first else None)
    return _WORDS[found[1].lower()] if found is not None else None


def _header(lines: tuple[str, ...]) -> tuple[int, Placement | None]:
    """Return the index after the placement line, and the placement; (0, None) if there is none before any code."""
    is_first = True
    for at, line in enumerate(lines):
        named = placement_in(line, is_first=is_first)
        if named is not None:
            return at + 1, named
        if opening(line) is not None:
            inside = at + 1 < len(lines) and is_first
            named = placement_in(lines[at + 1], is_first=False) if inside else None
            return (0, None) if named is None else _inside_fence(lines, at, named)
        is_first = is_first and not line.strip()
    return 0, None


def _inside_fence(lines: tuple[str, ...], at: int, named: Placement) -> tuple[int, Placement | None]:
    """Return the index after a placement line inside a fence (that of the code or its own), and the placement."""
    own = len(lines) > at + 2 and opening(lines[at + 2]) is not None
    return (at + 3, named) if own else (at + 2, named)


# ---- the code


def _chosen(body: tuple[str, ...], place: EditPlace, *, is_announced: bool) -> Block | Reading:
    """Return the block to use as the edit, or a reading that explains why there is none."""
    blocks = blocks_of(body)
    if place.filetype in _MARKDOWN and len(blocks) > 1 and (whole := whole_block(body)) is not None:
        blocks = (whole,)
    if not blocks or (len(blocks) == 1 and is_announced and not blocks[0].is_closed and not blocks[0].lines):
        return _unfenced(body, place, is_announced=is_announced)
    if is_announced:
        return blocks[0]
    alike = [block for block in blocks if resembles(block.lines, place.region)]
    if len(alike) == 1:
        return alike[0]
    if len(blocks) > 1:
        return SEVERAL
    around = (*body[: blocks[0].start], *body[blocks[0].end :])
    return blocks[0] if sum(len(line.split()) for line in around) <= _MAX_PROSE_WORDS else EXPLAINS


def _unfenced(body: tuple[str, ...], place: EditPlace, *, is_announced: bool) -> Block | Reading:
    """Return a reply without fences as code if it is announced and not prose, resembles the region, or is only code."""
    # A header inside the only fence leaves the closing fence unmatched.
    lines = tuple(line for line in body if opening(line) is None)
    said = [line for line in lines if line.strip()]
    if not said:
        return NO_CODE
    is_prose = 2 * sum(bool(_SENTENCE.match(line)) and len(line.split()) > 3 for line in said) >= len(said)
    if resembles(lines, place.region) or (not is_prose if is_announced else _is_code(said)):
        return Block("", lines, 0, len(body))
    return IN_WORDS


def _is_code(said: list[str]) -> bool:
    """Return whether unannounced lines are code: its only sentences are comments, and most lines look like code.

    An indented sentence is text inside the code.
    """
    sentences = [line for line in said if _SENTENCE.match(line) and len(line.split()) > 2]
    if any(not line.startswith((" ", "\t", '"', "'", "-- ")) for line in sentences):
        return False
    return 2 * sum(bool(_SIGNS.search(line)) for line in said) > len(said)


def _from_json(body: tuple[str, ...]) -> tuple[Placement, tuple[str, ...]] | None:
    """Return the placement and code of a reply in the JSON format that other tools request."""
    text = "\n".join(body).strip()
    blocks = blocks_of(body)
    if len(blocks) == 1 and blocks[0].language in ("json", ""):
        text = "\n".join(blocks[0].lines).strip()
    if not (text.startswith("{") and text.endswith("}")):
        return None
    try:
        value: Any = json.loads(text, strict=False)
    except NOT_READABLE:
        return None
    if not isinstance(value, dict) or not isinstance(value.get("placement"), str):
        return None
    placement, code = _WORDS.get(value["placement"].strip().lower()), value.get("code", "")
    if placement is None or not isinstance(code, str):
        return None
    return placement, _lines(code)


class ReplyReader:
    """Reads a reply as it arrives, so that its code can be shown line by line; `read_reply` has the final say."""

    def __init__(self) -> None:
        self.text = ""
        self.placement: Placement | None = None
        self._rest = ""
        self._open: OpenBlock | None = None
        self._lines_seen = 0
        self._is_over = self._expects_continuation = False

    def expect_continuation(self) -> None:
        """Expect the rest of a reply that was cut off at a limit; the rest may open its block again."""
        self._expects_continuation = True

    def feed(self, piece: str) -> tuple[str, ...]:
        """Add a chunk of the reply and return the lines of code that it completes."""
        if self._expects_continuation and piece.strip():
            self._expects_continuation = False
            piece = self._without_opening(piece)
        self.text += piece
        *whole, self._rest = (self._rest + piece).split("\n")
        found = [self._take(line.rstrip("\r")) for line in whole]
        return tuple(line for line in found if line is not None)

    def _without_opening(self, piece: str) -> str:
        first, newline, rest = piece.partition("\n")
        return rest if self._open is not None and newline and opening(first) is not None else piece

    def _take(self, line: str) -> str | None:
        is_first, self._lines_seen = self._lines_seen == 0, self._lines_seen + bool(line.strip())
        if self._is_over:
            return None
        if self._open is not None:
            taken = self._open.take(line)
            if taken is None:
                self._is_over, self._open = True, None
            return taken
        self.placement = self.placement or placement_in(line, is_first=is_first)
        if self.placement != "chat":
            self._open = opening(line)
            if self._open is not None and self._open.language in (*DIFFS, "json"):
                self._is_over, self._open = True, None
        return None
