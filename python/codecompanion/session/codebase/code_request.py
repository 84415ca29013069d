"""Reads the requests for code in a message, and reports mentions that could not be interpreted (R-213).

Most messages have no such requests; nothing is imported for them.
"""

from __future__ import annotations

import asyncio
from collections.abc import Collection
from pathlib import Path
from typing import TYPE_CHECKING, Literal

import msgspec

from codecompanion.wire.requests import Snapshot

if TYPE_CHECKING:
    from codecompanion.retrieval.mentions import Mentions

GATHERING_OFF = "No code · context.enabled is false"
_MAX_MISSING = 3
_PLAIN_TEXTS = (".html", ".css", ".json", ".toml", ".txt", ".yaml", ".yml", ".xml")
"""File extensions of text formats, besides those of the known languages."""


class CodeRequest(msgspec.Struct, frozen=True):
    """The mentions in a message, whether to gather code for it, and sentences about mentions not understood."""

    mentions: Mentions
    is_wanted: bool
    told: tuple[str, ...] = ()


async def code_request_of(
    text: str,
    snapshot: Snapshot,
    root: Path,
    enabled: bool | Literal["auto"],
    always: bool,
    written: Collection[str] = (),
) -> CodeRequest | None:
    """Return the code request of a message, or None if it contains none and no code is gathered automatically.

    For `enabled` and `always`, see `wants_code`. `written`: the mentions that the editor handles and has sent.
    """
    has_signs = "@" in text or "#" in text
    if not has_signs and (enabled is False or (enabled == "auto" and not always)):
        return None
    from codecompanion.retrieval.mentions import mentions_in, wants_code

    mentions = mentions_in(text)
    if not has_signs:
        return CodeRequest(mentions, wants_code(enabled, always, mentions, ()))
    from codecompanion.retrieval.near_mentions import corrections, near_mentions

    found, folders = tuple[str, ...](), tuple[str, ...]()
    if mentions.files:
        from codecompanion.workspace.named_files import files_named, folders_named

        open_files = tuple(buffer.name for buffer in snapshot.buffers)
        found = await asyncio.to_thread(files_named, root, mentions.files, open_files)
        folders = await asyncio.to_thread(folders_named, root, mentions.files)
    is_wanted, near = wants_code(enabled, always, mentions, found), near_mentions(text, found, written)
    if enabled is False:
        asks = mentions.codebase or bool(found) or any(one.asks_for_code for one in near)
        others = corrections([one for one in near if not one.asks_for_code])
        return CodeRequest(mentions, False, (*others, GATHERING_OFF) if asks else others)
    if is_wanted:  # gathering itself reports unreadable files; a decorator is not meant as a file
        named = tuple(name for name in mentions.files if name in found or _is_meant_as_file(name))
        named = tuple(name for name in named if name not in folders)
        told = (*corrections(near), *_folders(folders), *_beyond(mentions))
        return CodeRequest(msgspec.structs.replace(mentions, files=named), True, told)
    lost = tuple(name for name in mentions.files if name not in (*found, *folders))
    return CodeRequest(mentions, False, (*corrections(near), *_folders(folders), *_missing(lost, root)))


def _folders(names: tuple[str, ...]) -> tuple[str, ...]:
    """Return sentences saying that these folders were not read."""
    from codecompanion.workspace.named_files import IS_FOLDER

    return tuple(f"@{name} was not read: {IS_FOLDER}" for name in names[:_MAX_MISSING])


def _beyond(mentions: Mentions) -> tuple[str, ...]:
    """Return a sentence about the names that are ignored because they exceed the limit."""
    from codecompanion.retrieval.mentions import MAX_FILES

    more = mentions.beyond
    was = "was" if more == 1 else "were"
    return (f"A message can name at most {MAX_FILES} files; {more:,} more {was} ignored.",) if more else ()


def _missing(names: tuple[str, ...], root: Path) -> tuple[str, ...]:
    """Return a sentence about names after `@` that look like files but do not exist."""
    from codecompanion.workspace.named_files import NO_SUCH_FILE

    lost = [name for name in names if _is_meant_as_file(name)]
    if not lost:
        return ()
    shown = ", ".join(f"@{name}" for name in lost[:_MAX_MISSING]) + (" …" if len(lost) > _MAX_MISSING else "")
    was = "was" if len(lost) == 1 else "were"
    return (f"{shown} {was} not read: {NO_SUCH_FILE.format(root=root.name or root)}",)


def _is_meant_as_file(name: str) -> bool:
    """Return whether a name ends like that of a project file, unlike a decorator, a package or a person."""
    from codecompanion.workspace.syntax.languages import language_of

    last = name.rpartition("/")[2]
    if not last.rpartition(".")[0]:
        return False
    is_text = last.casefold().endswith(_PLAIN_TEXTS) or bool(language_of(last))
    return is_text and ("/" in name or last.count(".") == 1)
