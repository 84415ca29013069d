"""Finds text that looks like a mention but is not: `#codebase`, `#{codebse}`, `@codebase`, and `#{buffer}` elsewhere.

The text is sent unchanged, and the user is shown the correct spelling. Ordinary text raises no warning: `#include`,
`#123`, headings, decorators, email addresses, code, Ruby strings. The names are data (`mention_names.toml`). Pure.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator
from functools import cache
from itertools import islice

import msgspec

from codecompanion.formats import typed
from codecompanion.formats.package_table import package_table
from codecompanion.formats.regex import regex
from codecompanion.retrieval.mentions import CODEBASE, is_in_string, prose_of
from codecompanion.retrieval.word_forms import edits_within

MAX_LISTED = 3
MAX_EDITS = 2
_MAX_SHOWN = 60
_MAX_FOUND = 200
"""Maximum number of matches to examine per pattern."""
_ANYTHING_ELSE = "#{codebase} gathers code, @path shows a file"
_SWITCHED_OFF = "switched off in interactions.chat.editor_context"
_NOT_HERE = "paste its content"

_BRACED = regex(r"(?<![\w\\#$/])#\{([^{}\n]{1,200})\}")
_BARE = regex(r"(?<![^\s(])#([A-Za-z][A-Za-z_-]{2,30})(:\S{1,200})?(?![\w{}=/-]|\.\w|\s*\{)", re.MULTILINE)
_AT = regex(r"(?<![\w@./\\`-])@(\{?)([A-Za-z][A-Za-z_-]{2,30})(\}?)(?![\w/\\(@-]|\.\w)")
_NAME = regex(r"[A-Za-z][A-Za-z_ -]{0,30}")


class _Other(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A mention name used by other programs, and its equivalent here."""

    instead: str = _NOT_HERE
    with_argument: str = ""
    bare: bool = False
    at: bool = False


class _Known(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A valid mention. `bare`, `at`: whether `#name` and `@name` are recognised as attempts to write it."""

    bare: bool = False
    at: bool = False


class _Names(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    known: dict[str, _Known]
    other: dict[str, _Other]


@cache
def _names() -> _Names:
    return typed.convert(package_table("retrieval/mention_names.toml"), _Names)


def known_mentions() -> tuple[str, ...]:
    """Return the valid mentions, as they are typed."""
    return tuple(f"#{{{name}}}" for name in _names().known)


class NearMention(msgspec.Struct, frozen=True):
    """Text that resembles a mention, and advice for the user.

    `asks_for_code`: the intended mention is `#{codebase}`.
    """

    written: str
    instead: str
    asks_for_code: bool = False


def near_mentions(text: str, files: Collection[str] = (), written: Collection[str] = ()) -> tuple[NearMention, ...]:
    """Return the near mentions in a message, each once, in order.

    `files`: names after `@` that are files; `written`: mentions that the editor knows (`#{diff:staged}`).
    """
    if "#" not in text and "@" not in text:
        return ()
    said = prose_of(text)
    found = sorted((*_braced(said, written), *_bare(said), *_after_at(said, files)), key=lambda one: one[0])
    return tuple(dict.fromkeys(near for _, near in found))


def corrections(near: Collection[NearMention]) -> tuple[str, ...]:
    """Return one sentence for each suggested correction, at most `MAX_LISTED` sentences."""
    by_advice: dict[str, list[str]] = {}
    for one in near:
        by_advice.setdefault(one.instead, []).append(_short(one.written))
    return tuple(
        f"Sent as plain text: {', '.join(written[:MAX_LISTED])}{' …' if len(written) > MAX_LISTED else ''} · {instead}"
        for instead, written in list(by_advice.items())[:MAX_LISTED]
    )


def _short(text: str) -> str:
    return text if len(text) <= _MAX_SHOWN else f"{text[: _MAX_SHOWN - 1]}…"


def _plain(name: str) -> str:
    return name.replace("_", "").replace("-", "").replace(" ", "").casefold()


def _meant(name: str) -> str:
    """Return the intended known name, "" = none."""
    plain = _plain(name)
    names = _names()
    if plain in names.known or plain in names.other:
        return plain if plain in names.known else ""
    return next((name for name in names.known if _is_slip(plain, name)), "")


def _is_slip(name: str, known: str) -> bool:
    """Return whether a name is a typo of a known name; short names allow no edits, or every other word would match."""
    edits = min(MAX_EDITS, len(known) // 4)
    return edits > 0 and name[:1] == known[:1] and edits_within(name, known, edits)


def _braced(said: str, taken: Collection[str]) -> Iterator[tuple[int, NearMention]]:
    for match in islice(_BRACED.finditer(said), _MAX_FOUND):
        written, inside = match[0], match[1].strip()
        name, _, argument = inside.partition(":")
        if (
            written in taken
            or written.casefold() == CODEBASE
            or not _NAME.fullmatch(name.strip())
            or is_in_string(said, match.start())
        ):
            continue
        if name != "codebase" and name in _names().known:
            yield match.start(), NearMention(written, _SWITCHED_OFF)
            continue
        near = _near(written, name, argument.strip())
        if near is not None:
            yield match.start(), near
        elif _stands_alone(said, match.start(), match.end()):
            yield match.start(), NearMention(written, _ANYTHING_ELSE)


def _stands_alone(said: str, start: int, end: int) -> bool:
    """Return whether the text from `start` to `end` is a separate word."""
    return (start == 0 or said[start - 1] in " \t\n(") and (end == len(said) or said[end] in " \t\n.,:;!?)")


def _bare(said: str) -> Iterator[tuple[int, NearMention]]:
    for match in islice(_BARE.finditer(said), _MAX_FOUND):
        name, argument = match[1], (match[2] or "").removeprefix(":")
        other = _names().other.get(_plain(name))
        meant = _names().known.get(_meant(name))
        is_told = meant is not None and (meant.bare or bool(argument))
        is_told = is_told or (other is not None and (other.bare or bool(argument and other.with_argument)))
        near = _near(match[0].rstrip(".,:;!?"), name, argument.rstrip(".,:;!?")) if is_told else None
        if near is not None:
            yield match.start(), near


def _after_at(said: str, files: Collection[str]) -> Iterator[tuple[int, NearMention]]:
    for match in islice(_AT.finditer(said), _MAX_FOUND):
        name, other = match[2], _names().other.get(_plain(match[2]))
        if bool(match[1]) != bool(match[3]) or name in files:
            continue
        meant = _names().known.get(_meant(name))
        is_told = (meant is not None and meant.at) or (other is not None and other.at)
        near = _near(match[0], name, "") if is_told else None
        if near is not None:
            yield match.start(), near


def _near(written: str, name: str, argument: str) -> NearMention | None:
    """Return the suggested correction for a name, or None for an unknown name."""
    if known := _meant(name):
        after = f":{argument}" if argument and known != "codebase" else ""
        return NearMention(written, f"write #{{{known}{after}}}", known == "codebase")
    other = _names().other.get(_plain(name))
    if other is None:
        return None
    instead = other.with_argument.replace("{}", argument) if argument and other.with_argument else other.instead
    return NearMention(written, instead, instead == "write #{codebase}")
