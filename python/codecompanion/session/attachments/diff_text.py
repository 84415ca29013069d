"""`/diff`: attaches the changes reported by git."""

from __future__ import annotations

import asyncio
from pathlib import Path

from codecompanion.errors import InputError
from codecompanion.formats.text_files import printable
from codecompanion.workspace.git_diff import Diff, read_diff

MAX_CHARS = 400_000
_MAX_UNTRACKED = 100


async def diff_attachment(what: str, root: Path) -> tuple[str, str]:
    """Return the title and text of a diff; for `what`, see `workspace.git_diff`.

    Raises:
        InputError: the diff cannot be read, or nothing has changed.
    """
    try:
        diff = await asyncio.to_thread(read_diff, root, what)
    except InputError as error:
        raise InputError(f"Nothing was attached: {error}.") from None
    if not diff:
        raise InputError(f"Nothing was attached: {diff.nothing}.")
    return diff.title, printable(_text(diff, named=not what))


def _text(diff: Diff, *, named: bool) -> str:
    """Return the text of the attachment; with `named`, it lists untracked files."""
    text = diff.text
    if named:
        text += "".join(f"new file, not tracked: {name}\n" for name in diff.untracked[:_MAX_UNTRACKED])
        more = len(diff.untracked) - _MAX_UNTRACKED
        text += f"… and {more} more new files\n" if more > 0 else ""
    text += "".join(f"changed, left out as a file of keys or passwords: {name}\n" for name in diff.secret)
    if len(text) > MAX_CHARS:
        text = text[:MAX_CHARS] + f"\n[cut here: {MAX_CHARS:,} of {len(text):,} characters]\n"
    return text
