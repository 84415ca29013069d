"""Reads the tokens of the plugin's logins before an adapter needs them: a tool may print their files in any chat."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from pathlib import Path

import msgspec

from codecompanion.formats.outside_text import NOT_READABLE

FILES = ("logins.json", "chatgpt.json")
"""The login files of `copilot/stored_login.py` and `chatgpt/stored_login.py`, which are not imported for this."""
_MAX_BYTES = 1_000_000


def tokens_in(folder: Path) -> list[str]:
    """Return the tokens in the files of a folder (blocks), skipping unreadable files."""
    found: list[str] = []
    for name in FILES:
        with contextlib.suppress(OSError, *NOT_READABLE), (folder / name).open("rb") as opened:
            found += _tokens(msgspec.json.decode(opened.read(_MAX_BYTES)))
    return found


def _tokens(value: object) -> Iterator[str]:
    for key, inner in value.items() if isinstance(value, dict) else ():
        if isinstance(inner, str) and str(key).endswith("token"):
            yield inner
        else:
            yield from _tokens(inner)
