"""What a message asks to be shown of the project in its own words: `#{codebase}`, and files by `@path` (R-213).

The message is sent as it was typed. Words in fenced code and between backticks mention nothing: a decorator that was
pasted is no file. Pure: which of the names are files is found out where there is a disk.
"""

from __future__ import annotations

import re
from typing import Literal

import msgspec

from codecompanion.formats.regex import regex

CODEBASE = "#{codebase}"
_CODEBASE = regex(r"#\{codebase\}", re.IGNORECASE)
MAX_FILES, _MAX_CHARS = 20, 400
_FENCE = regex(r" {0,3}(`{3,}|~{3,})([^\n]{0,200})")
_INLINE = regex(r"`[^`\n]+`")
_FILE = regex(rf'(?<![\w@./\\-])@(?:"([^"\n]{{1,{_MAX_CHARS}}})"|((?:\\ |[^\s"<>|(){{}}\[\],;@]){{1,{_MAX_CHARS}}}))')
_TICKED = regex(rf"(?<![\w@./\\`-])@`(?=[^`\n]{{0,{_MAX_CHARS}}}[./])([^`\"\n]{{1,{_MAX_CHARS}}})`")
"""A path between backticks after the sign; a word without dot and slash there is a decorator, or a person."""
_TRAILING = ".,:;!?'’”*_"
_LINES = regex(r":\d+(?:-\d+)?$")


class Mentions(msgspec.Struct, frozen=True):
    """What a message mentions: the whole project, and names that may be files, in their order, each once."""

    codebase: bool = False
    files: tuple[str, ...] = ()

    def __bool__(self) -> bool:
        """Return whether there is anything."""
        return self.codebase or bool(self.files)


NONE = Mentions()


def mentions_in(text: str) -> Mentions:
    """Return what a message mentions; nearly free for one with neither `@` nor `#{`."""
    if "@" not in text and "#{" not in text:
        return NONE
    said = prose_of(text)
    names = (quoted or _plain(bare) for quoted, bare in _FILE.findall(said))
    return Mentions(CODEBASE in said.lower(), tuple(dict.fromkeys(filter(None, names)))[:MAX_FILES])


def prose_of(text: str) -> str:
    """Return what a message says in words: without fenced code, and without what stands between backticks."""
    return _INLINE.sub(" ", _TICKED.sub(r'@"\1"', _without_fenced(text)))


def bare_question(text: str) -> str:
    """Return what is asked, without `#{codebase}`: that asks for code, and is not what the code is about."""
    return " ".join(_CODEBASE.sub(" ", text).split(" ")).strip() if "#{" in text else text


def _without_fenced(text: str) -> str:
    """Return the text without fenced code; a fence that is not closed ends with the text."""
    kept, fence = list[str](), ""
    for line in text.split("\n"):
        found = _FENCE.match(line)
        if found and not fence:
            fence = found[1]
        elif not fence:
            kept.append(line)
        elif found and found[1].startswith(fence) and not found[2].strip():
            fence = ""
    return "\n".join(kept)


def _plain(name: str) -> str:
    """Return a name without what belongs to the sentence around it, or to a place within the file."""
    return _LINES.sub("", name.replace("\\ ", " ").rstrip(_TRAILING)).rstrip(_TRAILING)


def wants_code(enabled: bool | Literal["auto"], always: bool, mentions: Mentions, files: tuple[str, ...]) -> bool:
    """Return whether code is gathered for a message with these mentions, of which `files` exist.

    `always`: the policy gathers for every message (R-201); under the others a message asks for it itself.
    """
    return enabled is True or (enabled == "auto" and (always or mentions.codebase or bool(files)))
